// Package schedule says when a person can be met: weekly hours in local time, dates that differ,
// travel, buffers, notice and limits. It turns them into instants, lays open slots and judges one
// start time.
//
// It is pure: it reads no clock and stores nothing. Local times become instants by one resolver
// (wall.go), which gives the days when clocks change a defined meaning. An instant that was agreed
// on is kept as it is; nothing here derives it again.
package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
)

// A Window is a part of a local day, in minutes after midnight: From is included, To is not. To is
// up to 1560, which is 02:00 of the next day.
type Window struct {
	From, To int
}

// An Override replaces the weekly hours of one local date, YYYY-MM-DD. Without windows nobody is
// met on that date.
type Override struct {
	Date    string
	Windows []Window
}

// Travel is a time zone for the local dates From through To, YYYY-MM-DD.
type Travel struct {
	From, To, TimeZone string
}

// Rules are when a person can be met. The other members than TimeZone, Durations and Weekly may be
// zero. Times of day are local; lengths are minutes. protocol.MeetingRules checks them.
type Rules struct {
	TimeZone     string      // IANA name
	Durations    []int       // allowed lengths, 5 to 240
	Weekly       [7][]Window // by time.Weekday: Sunday is first
	Overrides    []Override  //
	Travel       []Travel    //
	SlotStep     int         // 5 to 60; 0: the shortest duration, 60 at most
	BufferBefore int         // free before what is taken, up to 120
	BufferAfter  int         // free after it, up to 120
	MinNotice    int         // 15 to 20160; 0: 15
	MaxDaysAhead int         // 1 to 90; 0: 90
	MaxPerDay    int         // meetings that begin on a local date; 0: no limit
	MaxPerWeek   int         // the same from Monday to Sunday; 0: no limit
}

// Zone returns the IANA time zone with that name. Names without a place are refused, except UTC:
// an abbreviation such as EST is an offset, and never has summer time.
func Zone(name string) (*time.Location, bool) {
	if !strings.Contains(name, "/") && name != "UTC" {
		return nil, false
	}
	return protocol.Zone(name)
}

func (r Rules) step() time.Duration {
	if r.SlotStep != 0 {
		return minutes(r.SlotStep)
	}
	return minutes(min(60, slices.Min(r.Durations)))
}

// bounds returns the first and the last instant at which a meeting may begin. Fractions of a
// second of now do not count, so that the bounds are those of a clock that shows seconds.
func (r Rules) bounds(now time.Time) (first, last time.Time) {
	now = now.Truncate(time.Second)
	days := min(protocol.MaxMeetingDays, cmp.Or(r.MaxDaysAhead, protocol.MaxMeetingDays))
	notice := max(protocol.MinMeetingNotice, r.MinNotice)
	return now.Add(minutes(notice)), now.Add(time.Duration(days) * 24 * time.Hour)
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }
