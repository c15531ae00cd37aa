package protocol

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openAt is what a reader of the hours would say of a minute, in a zone whose
// clocks never change: it looks at the shifts of the day and of the evening before.
func openAt(d MerchantDraft, local time.Time) bool {
	ruled := func(date time.Time) (shifts [][2]int, rule string) {
		name := date.Format(time.DateOnly)
		add := func(opens, closes string) {
			from, to := minutes(opens), minutes(closes)
			if from == 0 && closes == "23:59" {
				to = day
			}
			if to < from {
				to += day
			}
			shifts = append(shifts, [2]int{from, to})
		}
		for _, e := range d.ExceptionHours {
			if e.ValidFrom <= name && name <= e.ValidThrough {
				if rule = e.ValidFrom; e.Opens != "" {
					add(e.Opens, e.Closes)
				}
			}
		}
		if rule == "" {
			for _, h := range d.Hours {
				if h.Day == weekdays[date.Weekday()] {
					add(h.Opens, h.Closes)
				}
			}
		}
		return shifts, rule
	}
	minute := local.Hour()*60 + local.Minute()
	today, rule := ruled(local)
	for _, s := range today {
		if s[0] <= minute && minute < s[1] {
			return true
		}
	}
	before, ruleBefore := ruled(local.AddDate(0, 0, -1))
	for _, s := range before {
		if minute+day < s[1] && (rule == "" || rule == ruleBefore) {
			return true
		}
	}
	return false
}

// Random hours, asked at random moments: open or not is what the hours say, and
// the change that is named is the next one.
func TestOpenness_Oracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	clock := func(end bool) string {
		switch m := r.IntN(50); {
		case m == 0 && end:
			return "24:00"
		case m == 1:
			return "23:59"
		case m < 10:
			return "00:00"
		}
		return fmt.Sprintf("%02d:%02d", r.IntN(24), r.IntN(4)*15)
	}
	zone, _ := Zone("Asia/Kolkata")
	start := time.Date(2026, 11, 2, 0, 0, 0, 0, zone)
	tried := 0
	for tried < 150 {
		d := MerchantDraft{Timezone: "Asia/Kolkata"}
		for range r.IntN(10) {
			d.Hours = append(d.Hours, DayHours{weekdays[r.IntN(7)], clock(false), clock(true)})
		}
		for range r.IntN(4) {
			from := start.AddDate(0, 0, r.IntN(20))
			e := ExceptionHours{ValidFrom: from.Format(time.DateOnly), ValidThrough: from.AddDate(0, 0, r.IntN(3)).Format(time.DateOnly)}
			if r.IntN(2) == 0 {
				e.Opens, e.Closes = clock(false), clock(true)
			}
			d.ExceptionHours = append(d.ExceptionHours, e)
		}
		s := NewSchedule(d.Timezone, d.Hours, d.ExceptionHours)
		if len(d.Check()) > 0 || s == nil {
			continue
		}
		tried++
		for range 5 {
			at := start.Add(time.Duration(r.IntN(25*day)) * time.Minute)
			o := OpennessAt(s, at)
			require.Equal(t, openAt(d, at), *o.OpenNow, "%+v at %s", d, at)
			next := o.OpensAt
			if *o.OpenNow {
				next = o.ClosesAt
			}
			last := at.Add(8*24*time.Hour - time.Minute) // what is open longer has no end, what is closed may open within a year
			if next != nil && next.Before(last) {
				last = next.Add(-time.Minute)
				require.NotEqual(t, *o.OpenNow, openAt(d, next.In(zone)), "%+v at %s, then %s", d, at, next)
			}
			for m := at; !m.After(last); m = m.Add(time.Minute) {
				if openAt(d, m.In(zone)) != *o.OpenNow {
					require.Failf(t, "changes earlier", "%+v at %s: at %s, not %v", d, at, m.In(zone), next)
				}
			}
		}
	}
}
