package protocol

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"stoa/protocol/sorting"
)

// A DayHours is one shift that begins on a day of the week, in the merchant's time zone. It is
// half open: closed at the minute Closes. A shift that closes before it opens continues into the
// next day; several on a day are split shifts; on a day without any, no shift begins.
type DayHours struct {
	Day    string `json:"day" enum:"monday,tuesday,wednesday,thursday,friday,saturday,sunday" doc:"Day on which the shift begins."`
	Opens  string `json:"opens" shape:"opens" doc:"HH:MM, local time." example:"07:30"`
	Closes string `json:"closes" shape:"closes" example:"21:00" doc:"24:00 is the end of the day, and so is 23:59 for a shift from 00:00."`
}

// ExceptionHours replace the weekly hours on every local date from ValidFrom
// through ValidThrough, and cut a shift of the evening before at midnight.
// Without times the merchant is closed; several exceptions with the same dates
// are split shifts.
type ExceptionHours struct {
	Title        string `json:"title,omitempty" maxLength:"80" doc:"Why, such as a holiday." example:"Diwali"`
	ValidFrom    string `json:"validFrom" format:"date" maxLength:"10" doc:"First local date, YYYY-MM-DD."`
	ValidThrough string `json:"validThrough" format:"date" maxLength:"10" doc:"Last local date, YYYY-MM-DD."`
	Opens        string `json:"opens,omitempty" shape:"opens" doc:"HH:MM, local time; without times it is closed."`
	Closes       string `json:"closes,omitempty" shape:"closes" doc:"HH:MM, local time; 24:00 is the end of the day."`
}

// Weekdays are the days in the order of time.Weekday.
var weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// checkHours returns the faults of hours that are empty or contradict each other.
func checkHours(hours []DayHours, exceptions []ExceptionHours) (faults []Fault) {
	add := func(at, code, detail string) { faults = append(faults, Fault{at, code, detail}) }
	for i, h := range hours {
		if h.Opens == h.Closes {
			add("/hours/"+strconv.Itoa(i)+"/closes", "empty-shift", "must differ from opens; a whole day is 00:00 to 24:00")
		}
	}
	for i, e := range exceptions {
		at := "/exceptionHours/" + strconv.Itoa(i)
		from, through := dateOf(e.ValidFrom), dateOf(e.ValidThrough)
		switch {
		case from.IsZero():
			add(at+"/validFrom", "wrong-shape", "is not a date such as 2026-11-08")
		case through.IsZero():
			add(at+"/validThrough", "wrong-shape", "is not a date such as 2026-11-08")
		case through.Before(from):
			add(at+"/validThrough", "out-of-range", "must not be before validFrom")
		case through.Sub(from) > 366*24*time.Hour:
			add(at+"/validThrough", "out-of-range", "at most 366 days after validFrom")
		}
		if (e.Opens == "") != (e.Closes == "") {
			add(at, "half-shift", "give both opens and closes, or neither for a closed day")
		} else if e.Opens != "" && e.Opens == e.Closes {
			add(at+"/closes", "empty-shift", "must differ from opens; a whole day is 00:00 to 24:00")
		}
		for _, o := range exceptions[:i] {
			same := o.ValidFrom == e.ValidFrom && o.ValidThrough == e.ValidThrough
			if !same && o.ValidFrom <= e.ValidThrough && e.ValidFrom <= o.ValidThrough {
				add(at+"/validFrom", "overlap", "overlaps another exception with other dates")
				break
			}
			if same && (o.Opens == "" || e.Opens == "") {
				add(at, "overlap", "another exception says otherwise for the same dates")
				break
			}
		}
	}
	return faults
}

func dateOf(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// A Schedule is opening hours in a form that answers questions.
type Schedule struct {
	zone       *time.Location
	week       [7][]shift
	exceptions []exception
}

type shift struct{ opens, closes int } // minutes of the day; closes may exceed 24 h

type exception struct {
	from, through string // local dates, which compare as texts
	shifts        []shift
}

// NewSchedule returns the schedule of hours that passed Check, nil when nothing is known: no zone,
// or no hours.
func NewSchedule(zone string, hours []DayHours, exceptions []ExceptionHours) *Schedule {
	loc, ok := Zone(zone)
	if !ok || len(hours) == 0 && len(exceptions) == 0 {
		return nil
	}
	s := &Schedule{zone: loc}
	for _, h := range hours {
		day := slices.Index(weekdays, h.Day)
		s.week[day] = append(s.week[day], newShift(h.Opens, h.Closes))
	}
	for _, e := range exceptions {
		x := exception{from: e.ValidFrom, through: e.ValidThrough}
		if e.Opens != "" {
			x.shifts = []shift{newShift(e.Opens, e.Closes)}
		}
		s.exceptions = append(s.exceptions, x)
	}
	return s
}

const day = 24 * 60

func newShift(opens, closes string) shift {
	s := shift{minutes(opens), minutes(closes)}
	if s.opens == 0 && closes == "23:59" {
		s.closes = day
	}
	if s.closes < s.opens {
		s.closes += day
	}
	return s
}

func minutes(s string) int {
	return int(s[0]-'0')*600 + int(s[1]-'0')*60 + int(s[3]-'0')*10 + int(s[4]-'0')
}

// on returns the shifts that begin on a local date, and the exception that applies to it: "" for
// none.
func (s *Schedule) on(date time.Time) (shifts []shift, rule string) {
	name := date.Format(time.DateOnly)
	for _, e := range s.exceptions {
		if e.from <= name && name <= e.through {
			shifts, rule = append(shifts, e.shifts...), e.from
		}
	}
	if rule != "" {
		return shifts, rule
	}
	return s.week[date.Weekday()], ""
}

// A Span is the time from From up to, but not including, To.
type Span struct{ From, To time.Time }

// How far ahead a schedule is searched.
const (
	spanDays = 8   // a longer span counts as endless
	nextDays = 370 // no next opening beyond that
)

// Span returns the span of open time that contains t, or the next one after it. Adjacent shifts
// are one span. ok is false when there is none within a year; endless means that the span does not
// end within eight days, and To is eight days ahead.
func (s *Schedule) Span(t time.Time) (span Span, endless, ok bool) {
	local := t.In(s.zone)
	date := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -1)
	for n := 0; n < nextDays; n++ {
		for _, next := range s.spans(date.AddDate(0, 0, n)) {
			switch {
			case !ok && next.To.After(t):
				span, ok = next, true
			case ok && !next.From.After(span.To):
				if next.To.After(span.To) {
					span.To = next.To
				}
			}
		}
		if !ok {
			continue
		}
		begun := span.From
		if begun.Before(t) {
			begun = t
		}
		if span.To.Sub(begun) > spanDays*24*time.Hour {
			span.To = begun.Add(spanDays * 24 * time.Hour)
			return span, true, true
		}
		// The next day's shifts may still be adjacent; those of the day after cannot.
		if !s.at(date.AddDate(0, 0, n+1), 0).Before(span.To) {
			if rest := s.spans(date.AddDate(0, 0, n+1)); len(rest) == 0 || rest[0].From.After(span.To) {
				break
			}
		}
	}
	return span, false, ok
}

// spans returns the open times that begin on a date, in order. A span past midnight is cut when
// another exception applies to the next date.
func (s *Schedule) spans(date time.Time) (spans []Span) {
	shifts, rule := s.on(date)
	for _, h := range shifts {
		if h.closes > day {
			if _, next := s.on(date.AddDate(0, 0, 1)); next != "" && next != rule {
				h.closes = day
			}
		}
		if span := (Span{s.at(date, h.opens), s.at(date, h.closes)}); span.From.Before(span.To) {
			spans = append(spans, span)
		}
	}
	sorting.Stable(spans, func(a, b Span) int { return cmp.Compare(a.From.UnixNano(), b.From.UnixNano()) })
	return spans
}

// at returns the instant of a local time. For a time that occurs twice when clocks are put back,
// it is the first; for one that is skipped, it is the moment of the change.
func (s *Schedule) at(date time.Time, minute int) time.Time {
	wall := time.Date(date.Year(), date.Month(), date.Day(), 0, minute, 0, 0, time.UTC)
	_, before := wall.AddDate(0, 0, -1).In(s.zone).Zone()
	_, after := wall.AddDate(0, 0, 1).In(s.zone).Zone()
	early := wall.Add(-time.Duration(before) * time.Second)
	late := wall.Add(-time.Duration(after) * time.Second)
	if _, is := early.In(s.zone).Zone(); is == before {
		return early // the first of two, when clocks are put back
	}
	if _, is := late.In(s.zone).Zone(); is == after {
		return late
	}
	leap, _ := early.In(s.zone).ZoneBounds()
	return leap.UTC()
}
