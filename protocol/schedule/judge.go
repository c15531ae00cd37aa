package schedule

import (
	"slices"
	"time"
)

// A Flag is one thing to know about a start time.
type Flag string

// Flags that refuse a start time: no owner may accept it.
const (
	WrongLength Flag = "wrong-length" // none of the allowed lengths
	TooSoon     Flag = "too-soon"     // less than the notice ahead
	TooFar      Flag = "too-far"      // more than the days ahead
)

// Flags that warn the owner, who decides.
const (
	OutsideHours Flag = "outside-hours" // not wholly within the hours
	Overlaps     Flag = "overlaps"      // overlaps a meeting, or a request that waits
	OverlapsBusy Flag = "overlaps-busy" // overlaps busy time
	InBuffer     Flag = "in-buffer"     // overlaps nothing, and is in the buffer of a meeting or busy time
	DayFull      Flag = "day-full"      // as many meetings as the owner wants begin on that local date
	WeekFull     Flag = "week-full"     // the same in its week
)

// A Verdict is what is to be known about a start time. Both lists are empty for an open slot.
type Verdict struct{ Refusals, Warnings []Flag }

// Judge returns what is to be known about a meeting that begins at an instant. A meeting that is
// moved must not be in taken.
func (r Rules) Judge(at time.Time, duration time.Duration, now time.Time, taken Taken) (Verdict, error) {
	p, err := r.plan()
	if err != nil {
		return Verdict{}, err
	}
	var v Verdict
	when := func(list *[]Flag, f Flag, is bool) {
		if is {
			*list = append(*list, f)
		}
	}
	first, last := r.bounds(now)
	when(&v.Refusals, WrongLength, duration%time.Minute != 0 || !slices.Contains(r.Durations, int(duration/time.Minute)))
	when(&v.Refusals, TooSoon, at.Before(first))
	when(&v.Refusals, TooFar, at.After(last))

	slot := Interval{at, at.Add(duration)}
	_, union := p.between(slot.Start, slot.End)
	when(&v.Warnings, OutsideHours, !slices.ContainsFunc(union, func(i Interval) bool { return i.contains(slot) }))
	overlaps := slices.ContainsFunc(taken.Meetings, slot.Overlaps) || slices.ContainsFunc(taken.Waiting, slot.Overlaps)
	busy := slices.ContainsFunc(taken.Busy, slot.Overlaps)
	when(&v.Warnings, Overlaps, overlaps)
	when(&v.Warnings, OverlapsBusy, busy)
	when(&v.Warnings, InBuffer, !overlaps && !busy && slices.ContainsFunc(p.widened(taken), slot.Overlaps))
	full, d := p.counts(taken.Meetings), p.day(at)
	when(&v.Warnings, DayFull, full.dayFull(d))
	when(&v.Warnings, WeekFull, full.weekFull(d))
	return v, nil
}
