package ics

import (
	"slices"
	"strings"
	"time"

	"stoa/protocol/schedule"
	"stoa/protocol/sorting"
)

// BusyBudget is how many days of recurrences one calendar may make this process look at: about
// a second of work, and a thousand events that recur a counted number of times.
const BusyBudget = 2_000_000

// A Calendar says whose calendar is read.
type Calendar struct {
	Zone  *time.Location // of dates and of times without zone
	Mails []string       // of the owner, in lower case: what they declined is not busy
	Node  string         // events of the node itself are left out; "" leaves none out
}

// Busy returns the busy times that an object of a calendar server causes between two instants, in
// no order. Recurring events are expanded here, since servers do not agree on doing it. An event
// that is transparent, cancelled or declined is not busy; a tentative one is. A date is busy from
// midnight to midnight. Where a recurrence is not known, only the first occurrence counts.
//
// budget is counted down; begin with BusyBudget. An error means that the object is none, or that the
// budget is used up.
func (c Calendar) Busy(object string, from, to time.Time, budget *int) ([]schedule.Interval, error) {
	calendar, err := decode(object)
	if err != nil {
		return nil, err
	}
	var busy []schedule.Interval
	moved := map[string]map[int64]bool{} // by UID: occurrences that have an event of their own
	for _, e := range calendar.children {
		if p := e.get("RECURRENCE-ID"); p != nil && e.name == "VEVENT" {
			uid := e.text("UID")
			if at, _, ok := p.instant(c.Zone); ok {
				if moved[uid] == nil {
					moved[uid] = map[int64]bool{}
				}
				moved[uid][at.Unix()] = true
			}
		}
	}
	for _, e := range calendar.children {
		if e.name != "VEVENT" || c.free(e) {
			continue
		}
		spans, err := c.spans(e, from, to, moved[e.text("UID")], budget)
		if err != nil {
			return nil, err
		}
		for _, s := range spans {
			if s.Overlaps(schedule.Interval{Start: from, End: to}) {
				busy = append(busy, s)
			}
		}
	}
	return busy, nil
}

// free reports whether an event takes no time.
func (c Calendar) free(e *component) bool {
	if e.upper("TRANSP") == "TRANSPARENT" || e.upper("STATUS") == "CANCELLED" {
		return true
	}
	if c.Node != "" && strings.HasSuffix(strings.ToLower(e.text("UID")), "@"+strings.ToLower(c.Node)) {
		return true
	}
	return slices.ContainsFunc(e.props, func(p property) bool {
		at, ok := mailOf(p.value)
		return p.name == "ATTENDEE" && ok && strings.EqualFold(p.params["PARTSTAT"], Declined) && slices.Contains(c.Mails, at)
	})
}

// spans returns the occurrences of one event that may touch a range.
func (c Calendar) spans(e *component, from, to time.Time, moved map[int64]bool, budget *int) ([]schedule.Interval, error) {
	p := e.get("DTSTART")
	if p == nil {
		return nil, nil
	}
	start, whole, ok := p.instant(c.Zone)
	if !ok {
		return nil, nil
	}
	length, ok := c.length(e, start, whole)
	if !ok {
		return nil, nil
	}
	span := func(at time.Time) schedule.Interval {
		if whole { // days are not always 24 hours long
			return schedule.Interval{Start: at, End: at.AddDate(0, 0, max(1, int(length.Hours()+12)/24))}
		}
		return schedule.Interval{Start: at, End: at.Add(length)}
	}
	if e.get("RECURRENCE-ID") != nil || e.get("RRULE") == nil && e.get("RDATE") == nil {
		return []schedule.Interval{span(start)}, nil
	}
	starts, err := c.starts(e, start, from.Add(-length-24*time.Hour), to.Add(24*time.Hour), budget)
	if err != nil {
		return nil, err
	}
	var spans []schedule.Interval
	for _, at := range starts {
		if !moved[at.Unix()] {
			spans = append(spans, span(at))
		}
	}
	return spans, nil
}

// length returns how long an event is; ok is false for one that takes no time.
func (c Calendar) length(e *component, start time.Time, whole bool) (d time.Duration, ok bool) {
	if p := e.get("DTEND"); p != nil {
		end, _, ok := p.instant(c.Zone)
		return end.Sub(start), ok && end.After(start)
	}
	if d, ok := duration(e.text("DURATION")); ok {
		return d, true
	}
	return 24 * time.Hour, whole // RFC 5545 §3.6.1: a date without an end is one day
}

// starts returns when the occurrences of a recurring event begin, from one instant to another.
func (c Calendar) starts(e *component, start, from, to time.Time, budget *int) ([]time.Time, error) {
	hour, minute, second := start.Clock()
	at := func(d date) time.Time {
		y, m, day := d.time().Date()
		return time.Date(y, m, day, hour, minute, second, 0, start.Location())
	}
	var starts []time.Time
	for _, p := range e.props {
		switch p.name {
		case "RRULE":
			dates, err := occurrences(p.value, start, max(0, dateOf(from)), dateOf(to), at, budget)
			switch err {
			case errRule:
				starts = append(starts, start)
			case errBudget:
				return nil, err
			}
			for _, d := range dates {
				starts = append(starts, at(d))
			}
		case "RDATE":
			starts = append(starts, c.times(p)...)
			if e.get("RRULE") == nil {
				starts = append(starts, start)
			}
		}
	}
	except := map[int64]bool{}
	for _, p := range e.props {
		if p.name == "EXDATE" {
			for _, t := range c.times(p) {
				except[t.Unix()] = true
			}
		}
	}
	starts = slices.DeleteFunc(starts, func(t time.Time) bool { return except[t.Unix()] })
	sorting.Stable(starts, time.Time.Compare)
	return slices.CompactFunc(starts, time.Time.Equal), nil
}

// times reads a list of times. A period counts with its start.
func (c Calendar) times(p property) (list []time.Time) {
	for value := range strings.SplitSeq(p.value, ",") {
		value, _, _ = strings.Cut(value, "/")
		if at, _, ok := parseTime(value, p.params["TZID"], c.Zone); ok {
			list = append(list, at)
		}
	}
	return list
}
