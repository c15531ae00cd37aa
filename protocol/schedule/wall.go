package schedule

import (
	"fmt"
	"time"

	"stoa/protocol"
)

// A day is a date as the number of days since 1970-01-01, in no particular zone.
type day int

const daySeconds = 24 * 60 * 60

// dayOf reads a date YYYY-MM-DD.
func dayOf(date string) (day, bool) {
	t, err := time.Parse(time.DateOnly, date)
	return civil(t), err == nil
}

// civil returns the date that a clock shows.
func civil(t time.Time) day {
	y, m, d := t.Date()
	s := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	n := s / daySeconds
	if s%daySeconds < 0 {
		n--
	}
	return day(n)
}

func (d day) weekday() time.Weekday { return time.Weekday(((int(d)+4)%7 + 7) % 7) } // 1970-01-01 was a Thursday

// week returns the number of the week, which begins on Monday.
func (d day) week() int {
	n := int(d) + 3
	if n < 0 {
		n -= 6
	}
	return n / 7
}

// wall returns the instant at which clocks in a zone show so many minutes after midnight of d. For
// a time that occurs twice, late selects the second. A time that is skipped is as many minutes after
// the change as it would have been after the moment of the change: valid is false for it.
//
// time.Date decides both cases in one way or the other, depending on the zone.
func (d day) wall(zone *time.Location, minute int, late bool) (at time.Time, valid bool) {
	u := time.Unix(int64(d)*daySeconds+int64(minute)*60, 0).UTC()
	_, before := u.Add(-26 * time.Hour).In(zone).Zone() // no zone is further from UTC
	_, after := u.Add(26 * time.Hour).In(zone).Zone()
	a := u.Add(-time.Duration(before) * time.Second)
	if before == after {
		return a, true
	}
	b := u.Add(-time.Duration(after) * time.Second)
	shown := func(t time.Time, offset int) bool { _, is := t.In(zone).Zone(); return is == offset }
	switch first, second := shown(a, before), shown(b, after); {
	case first && second && late:
		return b, true
	case first:
		return a, true
	case second:
		return b, true
	}
	return a, false
}

// Forms of a start time, with and without an offset.
var localForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04"}

// Parse reads a start time: RFC 3339 with an offset, or a local time (2026-12-01T11:00) with the
// name of its zone. It returns UTC. A local time that occurs twice is its first occurrence; one that
// is skipped when clocks are put forward is a fault, and so are seconds. The zone is checked
// whenever it is given. Faults have the pointers /startsAt and /timezone.
func Parse(startsAt, zone string) (time.Time, *protocol.Fault) {
	fault := func(at, code, format string, args ...any) (time.Time, *protocol.Fault) {
		return time.Time{}, &protocol.Fault{Pointer: at, Code: code, Detail: fmt.Sprintf(format, args...)}
	}
	place, known := Zone(zone)
	if zone != "" && !known {
		return fault("/timezone", "unknown-zone", "is not a time zone of IANA such as Asia/Kolkata")
	}
	at, err := time.Parse(time.RFC3339, startsAt)
	for _, form := range localForms {
		local, bad := time.Parse(form, startsAt)
		if bad != nil {
			continue
		}
		if !known {
			return fault("/startsAt", "no-offset", "has no offset: write 2026-12-01T11:00:00+05:30, or give timezone too")
		}
		var valid bool
		if at, valid = civil(local).wall(place, local.Hour()*60+local.Minute(), false); !valid {
			return fault("/startsAt", "skipped-time", "does not exist in %s: clocks are put forward then; the next time is %s",
				zone, at.In(place).Format("15:04"))
		}
		at, err = at.Add(time.Duration(local.Second())*time.Second+time.Duration(local.Nanosecond())), nil
	}
	switch at = at.UTC(); {
	case err != nil:
		return fault("/startsAt", "wrong-shape", "is not a time such as 2026-12-01T11:00:00+05:30")
	case at.Second() != 0 || at.Nanosecond() != 0:
		return fault("/startsAt", "seconds", "must be a whole minute")
	}
	return at, nil
}
