package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// A day is one line of a table of opening hours.
type day struct {
	Name, Hours string
	Closed      bool
}

// week returns the weekly hours as a table from Monday on; nil when there are none.
func week(ctx context.Context, hours []protocol.DayHours) []day {
	if len(hours) == 0 {
		return nil
	}
	var days []day
	for _, name := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		var shifts []string
		for _, h := range hours {
			if h.Day == name {
				shifts = append(shifts, h.Opens+"–"+h.Closes)
			}
		}
		slices.Sort(shifts)
		days = append(days, day{tr(ctx, initial(name)), cmp.Or(strings.Join(shifts, ", "), tr(ctx, "closed")), len(shifts) == 0})
	}
	return days
}

// coming returns the exceptions that are not over on the day of now in the merchant's zone.
func coming(m protocol.Merchant, now time.Time) (left []protocol.ExceptionHours) {
	zone := ""
	if m.Timezone != nil {
		zone = *m.Timezone
	}
	today := now.In(zoneNamed(zone)).Format(time.DateOnly)
	for _, e := range m.ExceptionHours {
		if e.ValidThrough >= today {
			left = append(left, e)
		}
	}
	return left
}

// exceptional returns the exceptions to the weekly hours, one line per range of dates.
func exceptional(ctx context.Context, exceptions []protocol.ExceptionHours) (days []day) {
	for _, e := range exceptions {
		when := date(ctx, e.ValidFrom)
		if e.ValidThrough != e.ValidFrom {
			when = tr(ctx, "%s to %s", when, date(ctx, e.ValidThrough))
		}
		hours := tr(ctx, "closed")
		if e.Opens != "" {
			hours = e.Opens + "–" + e.Closes
		}
		if e.Title != "" {
			hours += " · " + e.Title
		}
		days = append(days, day{when, hours, e.Opens == ""})
	}
	return days
}

func date(ctx context.Context, s string) string {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return s
	}
	return words.Of(ctx).Time(t, "2 Jan 2006")
}

// nextChange returns when an open merchant closes or a closed one opens, in its own time; "" when that
// is not soon.
func nextChange(ctx context.Context, m protocol.Merchant) string {
	key, at := english("opens %s"), m.OpensAt
	if m.ClosesAt != nil {
		key, at = english("closes %s"), m.ClosesAt
	}
	if at == nil || m.Timezone == nil {
		return ""
	}
	zone, ok := protocol.Zone(*m.Timezone)
	if !ok {
		return ""
	}
	return tr(ctx, key, words.Of(ctx).Time(at.In(zone), "Mon 2 Jan, 15:04 MST"))
}

// zoneName returns a time zone for people: India, or the city that names it.
func zoneName(ctx context.Context, zone string) string {
	if zone == "Asia/Kolkata" {
		return tr(ctx, "India")
	}
	return strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
}

// amount returns an amount in words.
func amount(ctx context.Context, p *protocol.Money, unit *string) string {
	if p == nil {
		return tr(ctx, "price on request")
	}
	if unit != nil {
		return tr(ctx, "%s per %s", money(p.Currency, p.Amount), unitWord(ctx, *unit))
	}
	return money(p.Currency, p.Amount)
}

// telephone returns the address that dials a number.
func telephone(number string) templ.SafeURL {
	return templ.SafeURL("tel:" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '+' {
			return r
		}
		return -1
	}, number))
}

// onMap returns the address of a merchant on the map of OpenStreetMap: its place, otherwise a search for its
// address; "" when neither is known.
func onMap(ctx context.Context, m protocol.Merchant) string {
	const at = "https://www.openstreetmap.org/"
	if g := m.Geo; g != nil {
		lat, lon := strconv.FormatFloat(g.Latitude, 'f', -1, 64), strconv.FormatFloat(g.Longitude, 'f', -1, 64)
		return at + "?" + url.Values{"mlat": {lat}, "mlon": {lon}}.Encode() + "#map=17/" + lat + "/" + lon
	}
	if m.Address == nil || m.Address.Street == "" {
		return ""
	}
	return at + "search?" + query("query", strings.Join(postal(ctx, m.Address, m.City), ", "))
}

// postal returns the lines of a postal address.
func postal(ctx context.Context, a *protocol.Address, city *string) (lines []string) {
	var town []string
	if city != nil {
		town = append(town, *city)
	}
	if a == nil {
		return town
	}
	if a.PostalCode != "" {
		town = append(town, a.PostalCode)
	}
	for _, line := range []string{a.Street, strings.Join(town, " "), regionName(ctx, cmp.Or(a.Region, a.Country))} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
