package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// week has the same windows every day, and no limits but the product's.
func week(zone string, durations []int, windows ...Window) Rules {
	return Rules{TimeZone: zone, Durations: durations, Weekly: [7][]Window{windows, windows, windows, windows, windows, windows, windows}}
}

func shown(t *testing.T, slots []Interval, zone string) string {
	t.Helper()
	var s []string
	for _, i := range slots {
		s = append(s, i.Start.In(zoneOf(t, zone)).Format("15:04-07:00"))
	}
	return strings.Join(s, " ")
}

// TestSlots_ClockChanges: windows shrink and grow with the day, in elapsed time.
func TestSlots_ClockChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, date string
		window     Window
		length     int
		want       string
	}{
		{"Europe/Berlin", "2027-03-28", Window{60, 240}, 60, "01:00+01:00 03:00+02:00"},
		{"Europe/Berlin", "2026-10-25", Window{60, 240}, 60, "01:00+02:00 02:00+02:00 02:00+01:00 03:00+01:00"},
		{"Europe/Berlin", "2026-10-25", Window{60, 150}, 60, "01:00+02:00 02:00+02:00"},
		{"America/New_York", "2027-03-14", Window{60, 240}, 60, "01:00-05:00 03:00-04:00"},
		{"America/New_York", "2026-11-01", Window{60, 180}, 60, "01:00-04:00 01:00-05:00 02:00-05:00"},
		{"Australia/Lord_Howe", "2026-10-04", Window{60, 180}, 30, "01:00+10:30 01:30+10:30 02:30+11:00"},
		{"Australia/Lord_Howe", "2027-04-04", Window{60, 180}, 30, "01:00+11:00 01:30+11:00 01:30+10:30 02:00+10:30 02:30+10:30"},
		{"Africa/Cairo", "2027-04-30", Window{0, 120}, 30, "01:00+03:00 01:30+03:00"},
		{"Asia/Beirut", "2027-03-28", Window{0, 120}, 30, "01:00+03:00 01:30+03:00"},
		{"Africa/Cairo", "2027-04-29", Window{22 * 60, 26 * 60}, 60, "22:00+02:00 23:00+02:00 01:00+03:00"},
		{"Europe/Berlin", "2027-03-27", Window{22 * 60, 26 * 60}, 60, "22:00+01:00 23:00+01:00 00:00+01:00 01:00+01:00"},
		{"Europe/Berlin", "2026-10-24", Window{22 * 60, 26 * 60}, 60, "22:00+02:00 23:00+02:00 00:00+02:00 01:00+02:00 02:00+02:00"},
		{"Asia/Kolkata", "2026-12-01", Window{22 * 60, 26 * 60}, 60, "22:00+05:30 23:00+05:30 00:00+05:30 01:00+05:30"},
	} {
		r := Rules{TimeZone: c.zone, Durations: []int{c.length}, Overrides: []Override{{Date: c.date, Windows: []Window{c.window}}}}
		at, _ := date(t, c.date).wall(zoneOf(t, c.zone), 0, false)
		slots := must.Get(r.Slots(at.Add(-24*time.Hour), at.Add(72*time.Hour), minutes(c.length), at.Add(-48*time.Hour), Taken{}))(t)
		require.Equal(t, c.want, shown(t, slots, c.zone), "%+v", c)
	}
}

// TestSlots_Kept: a meeting is an instant. Other rules of its zone, or another zone
// of its owner, change the hours and not the meeting.
func TestSlots_Kept(t *testing.T) {
	t.Parallel()
	now, at := instant(t, "2026-11-23T00:00:00Z"), instant(t, "2026-12-01T05:30:00Z")
	meeting := Taken{Meetings: []Interval{{at, at.Add(time.Hour)}}}
	for _, zone := range []string{"Asia/Kolkata", "Europe/Berlin", "America/New_York"} {
		r := week(zone, []int{60}, Window{0, dayMinutes})
		slots := must.Get(r.Slots(at.Add(-3*time.Hour), at.Add(3*time.Hour), time.Hour, now, meeting))(t)
		require.Len(t, slots, 6-map[bool]int{true: 1, false: 2}[zone == "Asia/Kolkata"], zone)
		for _, s := range slots {
			require.False(t, s.Overlaps(meeting.Meetings[0]), zone)
		}
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-23T03:30:00Z") // a Monday, 09:00 in India
	morning := func(change func(*Rules)) Rules {
		r := week("Asia/Kolkata", []int{30, 60}, Window{10 * 60, 12 * 60})
		change(&r)
		return r
	}
	span := func(s string) Interval { // on that Monday in India
		from, to, _ := strings.Cut(s, "-")
		return Interval{instant(t, "2026-11-23T"+from+":00+05:30"), instant(t, "2026-11-23T"+to+":00+05:30")}
	}
	all := "10:00+05:30 10:30+05:30 11:00+05:30 11:30+05:30"
	for name, c := range map[string]struct {
		change   func(*Rules)
		taken    Taken
		duration time.Duration
		want     string
	}{
		"free":                {want: all},
		"longer":              {duration: time.Hour, want: "10:00+05:30 10:30+05:30 11:00+05:30"},
		"step":                {change: func(r *Rules) { r.SlotStep = 60 }, want: "10:00+05:30 11:00+05:30"},
		"step over the hours": {change: func(r *Rules) { r.SlotStep = 50 }, want: "10:00+05:30 10:50+05:30"},
		"busy":                {taken: Taken{Busy: []Interval{span("10:29-10:31")}}, want: "11:00+05:30 11:30+05:30"},
		"busy, touching": {taken: Taken{Busy: []Interval{span("09:00-10:00"), span("12:00-13:00"), span("10:30-11:00")}},
			want: "10:00+05:30 11:00+05:30 11:30+05:30"},
		"buffers": {change: func(r *Rules) { r.BufferBefore, r.BufferAfter = 10, 30 }, taken: Taken{Meetings: []Interval{span("10:30-11:00")}},
			want: "11:30+05:30"},
		"buffers, once": {change: func(r *Rules) { r.BufferBefore, r.BufferAfter = 30, 30 }, taken: Taken{Meetings: []Interval{span("11:00-11:01")}},
			want: "10:00+05:30"},
		"all day busy":    {taken: Taken{Busy: []Interval{span("00:00-23:59")}}},
		"notice":          {change: func(r *Rules) { r.MinNotice = 91 }, want: "11:00+05:30 11:30+05:30"},
		"notice, exactly": {change: func(r *Rules) { r.MinNotice = 90 }, want: "10:30+05:30 11:00+05:30 11:30+05:30"},
		"one a day":       {change: func(r *Rules) { r.MaxPerDay = 1 }, taken: Taken{Meetings: []Interval{span("20:00-20:30")}}},
		"two a day":       {change: func(r *Rules) { r.MaxPerDay = 2 }, taken: Taken{Meetings: []Interval{span("20:00-20:30")}}, want: all},
		"one a day, busy": {change: func(r *Rules) { r.MaxPerDay = 1 }, taken: Taken{Busy: []Interval{span("20:00-20:30")}}, want: all},
		"one a week": {change: func(r *Rules) { r.MaxPerWeek = 1 },
			taken: Taken{Meetings: []Interval{{now.Add(6 * 24 * time.Hour), now.Add(145 * time.Hour)}}}},
		"one the week after": {change: func(r *Rules) { r.MaxPerWeek = 1 },
			taken: Taken{Meetings: []Interval{{now.Add(7 * 24 * time.Hour), now.Add(169 * time.Hour)}}}, want: all},
		"closed": {change: func(r *Rules) { r.Overrides = []Override{{Date: "2026-11-23"}} }},
		"another window": {change: func(r *Rules) { r.Overrides = []Override{{Date: "2026-11-23", Windows: []Window{{15 * 60, 16 * 60}}}} },
			want: "15:00+05:30 15:30+05:30"},
		"travel": {change: func(r *Rules) { r.Travel = []Travel{{"2026-11-23", "2026-11-25", "Europe/Berlin"}} },
			want: "14:30+05:30 15:00+05:30 15:30+05:30 16:00+05:30"},
		"adjacent windows": {change: func(r *Rules) { r.Weekly[1] = []Window{{11 * 60, 12 * 60}, {10 * 60, 11 * 60}} }, duration: time.Hour,
			want: "10:00+05:30 10:30+05:30 11:00+05:30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.change == nil {
				c.change = func(*Rules) {}
			}
			if c.duration == 0 {
				c.duration = 30 * time.Minute
			}
			r := morning(c.change)
			require.Equal(t, c.want, shown(t, must.Get(r.Slots(now, now.Add(20*time.Hour), c.duration, now, c.taken))(t), "Asia/Kolkata"))
		})
	}
	for _, d := range []time.Duration{0, -time.Minute, 45 * time.Minute, 30*time.Minute + time.Second} {
		require.Equal(t, protocol.Validation, protocol.CodeOf(must.Err(morning(func(*Rules) {}).Slots(now, now.Add(time.Hour), d, now, Taken{}))), d)
	}
}

// TestBounds: 15 minutes and 90 days, to the second (spec §2.13).
func TestBounds(t *testing.T) {
	t.Parallel()
	r := week("UTC", []int{15}, Window{0, dayMinutes})
	for _, c := range []struct {
		now          string
		soon, andFar bool // 15 minutes and 90 days after 10:00:00
	}{
		{"2026-11-23T09:59:59Z", true, false}, {"2026-11-23T10:00:00Z", true, true}, {"2026-11-23T10:00:00.999Z", true, true},
		{"2026-11-23T10:00:01Z", false, true},
	} {
		now, base := instant(t, c.now), instant(t, "2026-11-23T10:00:00Z")
		for _, b := range []struct {
			at time.Time
			ok bool
			f  Flag
		}{{base.Add(15 * time.Minute), c.soon, TooSoon}, {base.Add(90 * 24 * time.Hour), c.andFar, TooFar}} {
			require.Equal(t, !b.ok, slices.Contains(must.Get(r.Judge(b.at, 15*time.Minute, now, Taken{}))(t).Refusals, b.f), "%s %s", c.now, b.f)
			slots := must.Get(r.Slots(b.at, b.at.Add(time.Minute), 15*time.Minute, now, Taken{}))(t)
			require.Len(t, slots, map[bool]int{true: 1}[b.ok], "%s %s", c.now, b.f)
		}
	}
	// What an owner writes narrows the bounds and never widens them.
	now := instant(t, "2026-11-23T10:00:00Z")
	r.MinNotice, r.MaxDaysAhead = 60, 2
	for at, want := range map[time.Duration][]Flag{59 * time.Minute: {TooSoon}, time.Hour: nil, 48 * time.Hour: nil, 48*time.Hour + time.Minute: {TooFar}} {
		require.Equal(t, want, must.Get(r.Judge(now.Add(at), 15*time.Minute, now, Taken{}))(t).Refusals, at)
	}
	r.MinNotice, r.MaxDaysAhead = 1, 1000
	v := must.Get(r.Judge(now.Add(14*time.Minute), 15*time.Minute, now, Taken{}))(t)
	require.Equal(t, []Flag{TooSoon}, v.Refusals)
	v = must.Get(r.Judge(now.Add(91*24*time.Hour), 15*time.Minute, now, Taken{}))(t)
	require.Equal(t, []Flag{TooFar}, v.Refusals)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-23T03:30:00Z")
	r := week("Asia/Kolkata", []int{30}, Window{10 * 60, 12 * 60})
	r.BufferBefore, r.BufferAfter, r.MaxPerDay, r.MaxPerWeek = 15, 15, 1, 2
	at := func(clock string) time.Time { return instant(t, "2026-11-24T"+clock+":00+05:30") }
	half := func(clock string) Interval { return Interval{at(clock), at(clock).Add(30 * time.Minute)} }
	for name, c := range map[string]struct {
		start    string
		duration time.Duration
		taken    Taken
		refusals []Flag
		warnings []Flag
	}{
		"open":             {start: "10:00"},
		"last":             {start: "11:30"},
		"before":           {start: "09:59", warnings: []Flag{OutsideHours}},
		"ends after hours": {start: "11:31", warnings: []Flag{OutsideHours}},
		"length":           {start: "10:00", duration: 20 * time.Minute, refusals: []Flag{WrongLength}},
		"waiting":          {start: "10:00", taken: Taken{Waiting: []Interval{half("10:29")}}, warnings: []Flag{Overlaps}},
		"busy":             {start: "10:00", taken: Taken{Busy: []Interval{half("10:29")}}, warnings: []Flag{OverlapsBusy}},
		"in buffer":        {start: "10:00", taken: Taken{Busy: []Interval{half("10:44")}}, warnings: []Flag{InBuffer}},
		"after the buffer": {start: "10:00", taken: Taken{Busy: []Interval{half("10:45"), half("09:15")}}},
		"day full":         {start: "10:00", taken: Taken{Meetings: []Interval{half("23:00")}}, warnings: []Flag{DayFull}},
		"everything": {start: "23:00", taken: Taken{Meetings: []Interval{half("23:00"), half("00:10")}},
			warnings: []Flag{OutsideHours, Overlaps, DayFull, WeekFull}},
	} {
		if c.duration == 0 {
			c.duration = 30 * time.Minute
		}
		require.Equal(t, Verdict{c.refusals, c.warnings}, must.Get(r.Judge(at(c.start), c.duration, now, c.taken))(t), name)
	}
}

// TestSlots_Property: with random rules and random taken time, in zones whose clocks
// change, the slots are exactly those on the grid that Judge has nothing to say about,
// and a range in two parts gives the slots of the whole.
func TestSlots_Property(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(storagetest.Seed(t), 11))
	slotsSeen, warned := 0, map[Flag]int{}
	for range storagetest.Rounds(t, 2000) {
		r, taken, now := randomRules(t, g), Taken{}, instant(t, "2026-10-20T00:00:00Z").Add(time.Duration(g.IntN(200*daySeconds))*time.Second)
		for range g.IntN(12) {
			start := now.Add(minutes(g.IntN(10 * dayMinutes)))
			i := Interval{start, start.Add(minutes(1 + g.IntN(300)))}
			of := []*[]Interval{&taken.Meetings, &taken.Waiting, &taken.Busy}[g.IntN(3)]
			*of = append(*of, i)
		}
		duration := minutes(r.Durations[g.IntN(len(r.Durations))])
		from := now.Add(minutes(g.IntN(5 * dayMinutes)))
		to := from.Add(minutes(1 + g.IntN(5*dayMinutes)))
		slots := must.Get(r.Slots(from, to, duration, now, taken))(t)
		middle := from.Add(to.Sub(from) / time.Duration(1+g.IntN(5)))
		left := must.Get(r.Slots(from, middle, duration, now, taken))(t)
		require.Equal(t, slots, append(left, must.Get(r.Slots(middle, to, duration, now, taken))(t)...), "%+v", r)

		slotsSeen += len(slots)
		is := map[time.Time]bool{}
		for _, s := range slots {
			is[s.Start] = true
			require.Equal(t, duration, s.End.Sub(s.Start))
			require.False(t, s.Start.Before(from) || !s.Start.Before(to))
			require.Equal(t, Verdict{}, judged(t, r, s.Start, duration, now, taken, warned), "%+v\n%v %+v", r, s, taken)
		}
		for at := range r.grid(t, from, to) {
			if !is[at] {
				require.NotEqual(t, Verdict{}, judged(t, r, at, duration, now, taken, warned), "%s is open and no slot: %+v", at, r)
			}
		}
	}
	require.Greater(t, slotsSeen, 10_000)
	for _, f := range []Flag{TooSoon, TooFar, OutsideHours, Overlaps, OverlapsBusy, InBuffer, DayFull, WeekFull} {
		require.Greater(t, warned[f], 10, f)
	}
}

func judged(t *testing.T, r Rules, at time.Time, duration time.Duration, now time.Time, taken Taken, warned map[Flag]int) Verdict {
	t.Helper()
	v := must.Get(r.Judge(at, duration, now, taken))(t)
	for _, f := range slices.Concat(v.Refusals, v.Warnings) {
		warned[f]++
	}
	return v
}

// grid returns the instants of a range at which slots may begin: those of each window,
// until the next window begins. It looks at the windows of each date by itself.
func (r Rules) grid(t *testing.T, from, to time.Time) map[time.Time]bool {
	t.Helper()
	p := must.Get(r.plan())(t)
	var windows []Interval
	for d := civil(from) - 9; d < civil(to)+9; d++ {
		windows = p.windows(d, windows)
	}
	slices.SortFunc(windows, byStart)
	grid := map[time.Time]bool{}
	for i, w := range windows {
		for at := w.Start; at.Before(w.End) && (i+1 == len(windows) || at.Before(windows[i+1].Start)); at = at.Add(r.step()) {
			if !at.Before(from) && at.Before(to) {
				grid[at] = true
			}
		}
	}
	return grid
}

// A zone that does not exist, or whose name is an abbreviation, is an error.
func TestRules_UnknownZone(t *testing.T) {
	t.Parallel()
	from := instant(t, "2026-11-24T12:00:00+05:30")
	for _, r := range []Rules{
		week("Mars/Olympus", []int{30}), week("EST", []int{30}), week("", []int{30}),
		{TimeZone: "UTC", Durations: []int{30}, Travel: []Travel{{"2026-11-24", "2026-11-24", "Local"}}},
	} {
		require.Error(t, must.Err(r.Judge(from, 30*time.Minute, from, Taken{})))
		require.Error(t, must.Err(r.Slots(from, from, 30*time.Minute, from, Taken{})))
	}
}

// Bounds of the rules on the wire.
const (
	maxWindows   = 6 // of a day
	maxOverrides = 200
	lastMinute   = 26 * 60 // a window may end two hours after midnight
	dayMinutes   = 24 * 60
)

func randomRules(t *testing.T, g *rand.Rand) Rules {
	t.Helper()
	zones := []string{
		"Asia/Kolkata", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut", "Pacific/Kiritimati", "Pacific/Honolulu",
	}
	r := Rules{
		TimeZone: zones[g.IntN(len(zones))], Durations: []int{5 + g.IntN(40), 50 + g.IntN(190)}, SlotStep: g.IntN(2) * (5 + g.IntN(56)),
		BufferBefore: g.IntN(2) * g.IntN(121), BufferAfter: g.IntN(2) * g.IntN(121), MinNotice: g.IntN(2) * (15 + g.IntN(6*dayMinutes)),
		MaxDaysAhead: g.IntN(2) * (1 + g.IntN(9)), MaxPerDay: g.IntN(4), MaxPerWeek: g.IntN(8),
	}
	windows := func() (list []Window) {
		for at := 0; at < lastMinute-30 && len(list) < maxWindows; {
			w := Window{From: at + g.IntN(600)}
			if w.From >= dayMinutes {
				break
			}
			w.To = min(lastMinute, w.From+1+g.IntN(500))
			list, at = append(list, w), w.To
		}
		return list
	}
	for i := range r.Weekly {
		r.Weekly[i] = windows()
	}
	dates := func(n int) string { return instant(t, "2026-10-18T00:00:00Z").AddDate(0, 0, n).Format(time.DateOnly) }
	for i := range g.IntN(40) {
		r.Overrides = append(r.Overrides, Override{dates(i * 5), windows()})
	}
	for i := range g.IntN(20) {
		r.Travel = append(r.Travel, Travel{dates(i * 10), dates(i*10 + g.IntN(10)), zones[g.IntN(len(zones))]})
	}
	return r
}

// BenchmarkSlots lays the slots of 31 days: half-hours in working hours, 60 of them
// taken, in a zone whose clocks change, with 200 dates that differ.
func BenchmarkSlots(b *testing.B) {
	r := week("Asia/Kolkata", []int{15, 30}, Window{10 * 60, 18 * 60})
	r.TimeZone, r.SlotStep, r.BufferBefore, r.BufferAfter = "Europe/Berlin", 15, 10, 10
	now := time.Date(2027, 3, 10, 8, 0, 0, 0, time.UTC)
	for i := range maxOverrides {
		r.Overrides = append(r.Overrides, Override{now.AddDate(0, 0, i).Format(time.DateOnly), []Window{{9 * 60, 17 * 60}}})
	}
	var taken Taken
	for i := range 60 {
		at := now.Add(time.Duration(i) * 12 * time.Hour)
		taken.Busy = append(taken.Busy, Interval{at, at.Add(time.Hour)})
	}
	b.ReportAllocs()
	for b.Loop() {
		slots, err := r.Slots(now, now.AddDate(0, 0, 31), 30*time.Minute, now, taken)
		if err != nil || len(slots) < 400 {
			b.Fatal(len(slots), err)
		}
	}
}
