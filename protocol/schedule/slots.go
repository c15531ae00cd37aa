package schedule

import (
	"fmt"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// An Interval is the time from Start up to, but not including, End.
type Interval struct{ Start, End time.Time }

// Overlaps reports whether two intervals have an instant in common.
func (i Interval) Overlaps(j Interval) bool { return i.Start.Before(j.End) && j.Start.Before(i.End) }

// contains reports whether the whole of j is in i.
func (i Interval) contains(j Interval) bool { return !j.Start.Before(i.Start) && !j.End.After(i.End) }

// Taken is time that is not free, in any order. Meetings count towards the limits of a day and of a
// week; Waiting, which nobody has decided on, and Busy, which other calendars say, do not. Buffers apply
// to all.
type Taken struct{ Meetings, Waiting, Busy []Interval }

// A plan is rules with their zones loaded.
type plan struct {
	Rules
	home      *time.Location
	journeys  []journey
	overrides map[day][]Window
}

type journey struct {
	from, to day
	zone     *time.Location
}

func (r Rules) plan() (*plan, error) {
	p := &plan{Rules: r, overrides: make(map[day][]Window, len(r.Overrides))}
	var ok bool
	if p.home, ok = Zone(r.TimeZone); !ok {
		return nil, fmt.Errorf("time zone %q is not known", r.TimeZone)
	}
	for _, t := range r.Travel {
		zone, ok := Zone(t.TimeZone)
		if !ok {
			return nil, fmt.Errorf("time zone %q is not known", t.TimeZone)
		}
		from, _ := dayOf(t.From)
		to, _ := dayOf(t.To)
		p.journeys = append(p.journeys, journey{from, to, zone})
	}
	for _, o := range r.Overrides {
		d, _ := dayOf(o.Date)
		p.overrides[d] = o.Windows
	}
	return p, nil
}

// zone returns where the person is on a local date.
func (p *plan) zone(d day) *time.Location {
	for _, j := range p.journeys {
		if j.from <= d && d <= j.to {
			return j.zone
		}
	}
	return p.home
}

// day returns the person's local date at an instant. On the edge of a journey an instant can be on
// two dates, of which it is the earlier one, or on none, when it is the date at home.
func (p *plan) day(t time.Time) day {
	home := civil(t.In(p.home))
	for d := home - 1; d <= home+1 && len(p.journeys) > 0; d++ {
		if civil(t.In(p.zone(d))) == d {
			return d
		}
	}
	return home
}

// windows returns the windows of a local date as instants. Those that a change of clocks skips are
// left out.
func (p *plan) windows(d day, add []Interval) []Interval {
	windows, differs := p.overrides[d]
	if !differs {
		windows = p.Weekly[d.weekday()]
	}
	zone := p.zone(d)
	for _, w := range windows {
		from, _ := d.wall(zone, w.From, false)
		to, _ := d.wall(zone, w.To, true)
		if from.Before(to) {
			add = append(add, Interval{from, to})
		}
	}
	return add
}

// between returns, in order, the windows of all dates that concern a range, and their union.
func (p *plan) between(from, to time.Time) (windows, union []Interval) {
	for d := civil(from.UTC()) - 3; d <= civil(to.UTC())+3; d++ {
		windows = p.windows(d, windows)
	}
	union = merged(slices.Clone(windows))
	sorting.Stable(windows, byStart)
	return windows, union
}

// merged returns the union of intervals in order, as intervals that do not touch. It changes all.
func merged(all []Interval) []Interval {
	sorting.Stable(all, byStart)
	union := all[:0]
	for _, i := range all {
		if n := len(union); n > 0 && !i.Start.After(union[n-1].End) {
			if i.End.After(union[n-1].End) {
				union[n-1].End = i.End
			}
			continue
		}
		union = append(union, i)
	}
	return union
}

func byStart(a, b Interval) int { return a.Start.Compare(b.Start) }

// widened returns all that is taken with its buffers, as intervals that do not touch.
func (p *plan) widened(t Taken) []Interval {
	all := make([]Interval, 0, len(t.Meetings)+len(t.Waiting)+len(t.Busy))
	for _, list := range [][]Interval{t.Meetings, t.Waiting, t.Busy} {
		for _, i := range list {
			all = append(all, Interval{i.Start.Add(-minutes(p.BufferBefore)), i.End.Add(minutes(p.BufferAfter))})
		}
	}
	return merged(all)
}

// Slots returns the open slots that begin at from or later and before to, in order, in UTC: within
// the hours, not overlapping what is taken with its buffers, within notice, days ahead and the limits
// of day and week. They begin at the start of each window and every slot step after it, whatever
// from is. The error is a *protocol.Error when the duration is none of the allowed ones.
func (r Rules) Slots(from, to time.Time, duration time.Duration, now time.Time, taken Taken) ([]Interval, error) {
	if !slices.Contains(r.Durations, int(duration/time.Minute)) || duration%time.Minute != 0 {
		return nil, protocol.Errorf(protocol.Validation, "durationMin is one of %v", r.Durations)
	}
	p, err := r.plan()
	if err != nil {
		return nil, err
	}
	first, last := r.bounds(now)
	from, to = latest(from, first), earliest(to, last.Add(time.Nanosecond))
	slots := []Interval{}
	if !from.Before(to) {
		return slots, nil
	}
	windows, union := p.between(from, to)
	held, full, step := p.widened(taken), p.counts(taken.Meetings), r.step()
	for i, w := range windows {
		end := to // the next window has slots of its own
		if i+1 < len(windows) {
			end = earliest(end, windows[i+1].Start)
		}
		at := w.Start
		if early := from.Sub(at); early > 0 {
			at = at.Add((early + step - 1) / step * step)
		}
		for ; at.Before(end); at = at.Add(step) {
			slot := Interval{at, at.Add(duration)}
			if union = since(union, at); len(union) == 0 || !union[0].contains(slot) {
				break
			}
			if held = since(held, at); len(held) > 0 && held[0].Overlaps(slot) || full.has(p.day(at)) {
				continue
			}
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// since returns the intervals without those that end at t or before.
func since(list []Interval, t time.Time) []Interval {
	for len(list) > 0 && !list[0].End.After(t) {
		list = list[1:]
	}
	return list
}

// counted is how many meetings begin on each date and in each week.
type counted struct {
	perDay, perWeek int // limits; 0 for none
	days            map[day]int
	weeks           map[int]int
}

func (p *plan) counts(meetings []Interval) counted {
	c := counted{p.MaxPerDay, p.MaxPerWeek, map[day]int{}, map[int]int{}}
	for _, m := range meetings {
		d := p.day(m.Start)
		c.days[d]++
		c.weeks[d.week()]++
	}
	return c
}

func (c counted) dayFull(d day) bool  { return c.perDay > 0 && c.days[d] >= c.perDay }
func (c counted) weekFull(d day) bool { return c.perWeek > 0 && c.weeks[d.week()] >= c.perWeek }
func (c counted) has(d day) bool      { return c.dayFull(d) || c.weekFull(d) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
