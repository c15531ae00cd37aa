package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// The pages of a shop: its hours, and where it is; its items are in ownitems.go. Each form changes a
// part of the merchant record, which put_merchant writes as a whole.

// recordOf returns the input that writes a record.
func recordOf(r protocol.MerchantRecord) protocol.MerchantInput {
	return protocol.MerchantInput{Owned: protocol.Owned{Handle: r.Handle}, MerchantDraft: r.Record}
}

func hoursValues(r protocol.MerchantRecord) url.Values {
	v := hoursTable.shows(recordOf(r))
	for _, day := range weekNames {
		v.Set("hours-"+day, shiftText(r.Record.Hours, day))
	}
	return v
}

// shiftText is a day's hours as they are typed.
func shiftText(hours []protocol.DayHours, day string) string {
	var shifts []string
	for _, h := range hours {
		if h.Day == day {
			shifts = append(shifts, h.Opens+"–"+h.Closes)
		}
	}
	return strings.Join(shifts, ", ")
}

// changedRecord writes the part of the record that a form shows.
func changedRecord(r protocol.MerchantRecord, form url.Values) (any, error) {
	return inputOver(protocol.PutMerchant.Operation, recordOf(r), form), nil
}

// closedDays adds days with other hours; without hours the shop is closed on them.
func closedDays(r protocol.MerchantRecord, form url.Values) (any, error) {
	e := protocol.ExceptionHours{Title: form.Get("why"), ValidFrom: form.Get("from"), ValidThrough: cmp.Or(form.Get("to"), form.Get("from"))}
	hours := shifts(form.Get("hours"))
	if len(hours) == 0 {
		hours = append(hours, [2]string{})
	}
	for _, x := range hours {
		e.Opens, e.Closes = x[0], x[1]
		r.Record.ExceptionHours = append(r.Record.ExceptionHours, e)
	}
	sorting.Stable(r.Record.ExceptionHours, func(a, b protocol.ExceptionHours) int { return strings.Compare(a.ValidFrom, b.ValidFrom) })
	return recordOf(r), nil
}

// exceptionOf returns the days that a form names.
func exceptionOf(form url.Values) protocol.ExceptionHours {
	return protocol.ExceptionHours{
		Title: form.Get("why"), ValidFrom: form.Get("from"), ValidThrough: form.Get("to"), Opens: form.Get("opens"), Closes: form.Get("closes"),
	}
}

func reopenedDays(r protocol.MerchantRecord, form url.Values) (any, error) {
	n := slices.Index(r.Record.ExceptionHours, exceptionOf(form))
	if n < 0 {
		return nil, protocol.Errorf(protocol.NotFound, "these days are not in the list any more; nothing was changed")
	}
	r.Record.ExceptionHours = slices.Delete(r.Record.ExceptionHours, n, n+1)
	return recordOf(r), nil
}

func shopValues(r protocol.MerchantRecord) url.Values { return shopTable.shows(recordOf(r)) }

func geoText(g protocol.Geo) string {
	return strconv.FormatFloat(g.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(g.Longitude, 'f', -1, 64)
}

// typedGeo reads a place on the map, two numbers.
func typedGeo(text string) any {
	var g protocol.Geo
	if n, err := fmt.Sscanf(strings.ReplaceAll(text, ",", " "), "%g %g", &g.Latitude, &g.Longitude); n != 2 || err != nil {
		return text
	}
	return g
}

// shopPlace returns the field of a fault of the record, and what of the field it is about.
func (f *sent) shopPlace(parts []string) (name, element string) {
	name = parts[0]
	if len(parts) < 2 {
		return name, ""
	}
	n, _ := strconv.Atoi(parts[1])
	switch name {
	case "hours":
		if field, text := f.hoursPlace(n); field != "" {
			return field, text
		}
	case "exceptionHours":
		name = "from"
		if len(parts) > 2 {
			name = cmp.Or(map[string]string{"validThrough": "to", "title": "why", "opens": "hours", "closes": "hours"}[parts[2]], name)
		}
	}
	return name, ""
}

// removed is what was removed, for the form that puts it back.
type removed struct {
	what     string
	do, part string
	fields   url.Values
}

// undoDays returns how days that a form removes are put back.
func undoDays(ctx context.Context, form url.Values) *removed {
	e := exceptionOf(form)
	hours := ""
	if e.Opens != "" {
		hours = e.Opens + "–" + e.Closes
	}
	return &removed{cmp.Or(e.Title, date(ctx, e.ValidFrom)), protocol.PutMerchant.Name, "close",
		valued("from", e.ValidFrom, "to", e.ValidThrough, "why", e.Title, "hours", hours)}
}

func hoursForm(f *sent, handle string, r protocol.MerchantRecord) templ.Component {
	v := hoursValues(r)
	return posted("card form", "hours", "/account", shopKeys(handle, "hours"), version(f, v),
		hint("Such as 9am–9pm, 9:00–13:00, 16:00–21:00 or 24 hours. "+
			"Write closed, or leave a day empty, when you are closed."), hoursTable.fields(f, "hours", v), sends("Save the hours"))
}

func closeForm(f *sent, handle string) templ.Component {
	return posted("card form", "close", "/account", subheading("Add days"), shopKeys(handle, "close"), ask(protocol.PutMerchant.Operation, f, "close", nil,
		sideBySide(line("from", "First day").of("exceptionHours.validFrom").with("required", ""), line("to",
			"Last day; empty for one day").of("exceptionHours.validThrough")),
		line("why", "Why, such as Diwali; customers see it").of("exceptionHours.title"),
		line("hours", "Hours on these days; empty when you are closed").of("").upTo(60).with("autocomplete", "off")), sends("Add these days"))
}

func shopForm(f *sent, handle string, r protocol.MerchantRecord) templ.Component {
	v := shopValues(r)
	return posted("card form", "shop", "/account", shopKeys(handle, "shop"), version(f, v), shopTable.fields(f, "shop", v), sends("Save"))
}

// partKeys are the hidden fields of a form that changes a part of what an operation writes.
func partKeys(do, handle, part string) templ.Component {
	return all{hidden("do", do), once(), hidden("part", part, "handle", handle)}
}

// shopKeys are those of a form of the merchant record.
func shopKeys(handle, part string) templ.Component {
	return partKeys(protocol.PutMerchant.Name, handle, part)
}

func shopBody(a *account) templ.Component {
	return all{accountHead(a, "Where your shop is, and how customers reach it."), shopForm(a.part("shop"), a.Handle, answer(a, protocol.GetMerchantRecord))}
}
