package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, ok := Zone(name)
	require.True(t, ok, name)
	return zone
}

func date(t testing.TB, s string) day {
	t.Helper()
	d, ok := dayOf(s)
	require.True(t, ok, s)
	return d
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.RFC3339, s))(t)
}

// TestWall: clocks that are put forward and back by an hour, by half an hour and at
// midnight; the date line that Samoa crossed; minutes after midnight.
func TestWall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, date      string
		minute          int
		first, last     string // instants, as the zone shows them
		skipped, atOnce bool
	}{
		{zone: "Europe/Berlin", date: "2027-03-28", minute: 90, first: "2027-03-28T01:30:00+01:00"},
		{zone: "Europe/Berlin", date: "2027-03-28", minute: 120, first: "2027-03-28T03:00:00+02:00", skipped: true},
		{zone: "Europe/Berlin", date: "2027-03-28", minute: 150, first: "2027-03-28T03:30:00+02:00", skipped: true},
		{zone: "Europe/Berlin", date: "2027-03-28", minute: 180, first: "2027-03-28T03:00:00+02:00"},
		{zone: "Europe/Berlin", date: "2026-10-25", minute: 119, first: "2026-10-25T01:59:00+02:00"},
		{zone: "Europe/Berlin", date: "2026-10-25", minute: 150, first: "2026-10-25T02:30:00+02:00", last: "2026-10-25T02:30:00+01:00"},
		{zone: "Europe/Berlin", date: "2026-10-24", minute: 1590, first: "2026-10-25T02:30:00+02:00", last: "2026-10-25T02:30:00+01:00"},
		{zone: "Europe/Berlin", date: "2026-10-25", minute: 180, first: "2026-10-25T03:00:00+01:00"},
		{zone: "America/New_York", date: "2027-03-14", minute: 120, first: "2027-03-14T03:00:00-04:00", skipped: true},
		{zone: "America/New_York", date: "2026-11-01", minute: 90, first: "2026-11-01T01:30:00-04:00", last: "2026-11-01T01:30:00-05:00"},
		{zone: "Australia/Lord_Howe", date: "2027-10-03", minute: 120, first: "2027-10-03T02:30:00+11:00", skipped: true},
		{zone: "Australia/Lord_Howe", date: "2027-04-04", minute: 105, first: "2027-04-04T01:45:00+11:00", last: "2027-04-04T01:45:00+10:30"},
		{zone: "Africa/Cairo", date: "2027-04-30", minute: 0, first: "2027-04-30T01:00:00+03:00", skipped: true},
		{zone: "Africa/Cairo", date: "2027-04-29", minute: 1440, first: "2027-04-30T01:00:00+03:00", skipped: true},
		{zone: "Asia/Beirut", date: "2027-03-28", minute: 0, first: "2027-03-28T01:00:00+03:00", skipped: true},
		{zone: "Asia/Kolkata", date: "2026-12-01", minute: 660, first: "2026-12-01T11:00:00+05:30"},
		{zone: "Asia/Kolkata", date: "2026-12-01", minute: 1560, first: "2026-12-02T02:00:00+05:30"},
		{zone: "Pacific/Apia", date: "2011-12-30", minute: 600, first: "2011-12-31T10:00:00+14:00", skipped: true},
		{zone: "UTC", date: "1969-12-31", minute: 1, first: "1969-12-31T00:01:00Z"},
	} {
		first, valid := date(t, c.date).wall(zoneOf(t, c.zone), c.minute, false)
		require.Equal(t, c.first, first.In(zoneOf(t, c.zone)).Format(time.RFC3339), "%+v", c)
		require.Equal(t, !c.skipped, valid, "%+v", c)
		if c.last == "" {
			c.last = c.first
		}
		last, _ := date(t, c.date).wall(zoneOf(t, c.zone), c.minute, true)
		require.Equal(t, c.last, last.In(zoneOf(t, c.zone)).Format(time.RFC3339), "%+v", c)
	}
}

// TestWall_EveryMinute compares the resolver with what clocks show, minute by minute,
// on every day of two years on which a zone's clocks change: each time that a clock
// shows is found, at its first and at its last occurrence.
func TestWall_EveryMinute(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut", "Africa/Casablanca", "America/Santiago", "Asia/Tehran",
		"Antarctica/Troll", "Pacific/Chatham", "Asia/Kolkata",
	} {
		zone := zoneOf(t, name)
		changes := 0
		for at := instant(t, "2026-01-01T00:00:00Z"); ; changes++ {
			if _, at = at.In(zone).ZoneBounds(); at.IsZero() || at.Year() > 2027 {
				break
			}
			first, last := map[string]time.Time{}, map[string]time.Time{}
			for m := at.Add(-30 * time.Hour); m.Before(at.Add(30 * time.Hour)); m = m.Add(time.Minute) {
				shown := m.In(zone).Format("2006-01-02 15:04")
				if _, seen := first[shown]; !seen {
					first[shown] = m
				}
				last[shown] = m
			}
			for d := civil(at.In(zone)) - 1; d <= civil(at.In(zone))+1; d++ {
				for minute := range dayMinutes {
					shown := time.Unix(int64(d)*daySeconds+int64(minute)*60, 0).UTC().Format("2006-01-02 15:04")
					early, valid := d.wall(zone, minute, false)
					late, _ := d.wall(zone, minute, true)
					if want, exists := first[shown]; exists {
						require.True(t, valid && want.Equal(early) && last[shown].Equal(late), "%s %s: %v %v %v", name, shown, valid, early, late)
						continue
					}
					if edge := late.Sub(at).Abs(); edge < 4*time.Hour {
						require.False(t, valid, "%s %s", name, shown)
						require.True(t, !early.Before(at) && early.Equal(late), "%s %s: forward", name, shown)
					}
				}
			}
		}
		if name != "Asia/Kolkata" && name != "Asia/Tehran" {
			require.GreaterOrEqual(t, changes, 4, name)
		}
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Asia/Kolkata", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC"} {
		_, ok := Zone(name)
		require.True(t, ok, name)
	}
	for _, name := range []string{"", "Local", "local", "EST", "IST", "CET", "GMT", "asia/kolkata", "Asia/Nowhere", "../etc/passwd", "/etc/localtime", "+05:30"} {
		_, ok := Zone(name)
		require.False(t, ok, name)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, want, fault string }{
		{text: "2026-12-01T11:00:00+05:30", want: "2026-12-01T05:30:00Z"},
		{text: "2026-12-01T11:00:00.000+05:30", want: "2026-12-01T05:30:00Z"},
		{text: "2026-12-01T05:30:00Z", zone: "Asia/Kolkata", want: "2026-12-01T05:30:00Z"},
		{text: "2026-12-01T11:00", zone: "Asia/Kolkata", want: "2026-12-01T05:30:00Z"},
		{text: "2026-12-01T11:00:00", zone: "Asia/Kolkata", want: "2026-12-01T05:30:00Z"},
		{text: "2026-12-01 11:00", zone: "Asia/Kolkata", want: "2026-12-01T05:30:00Z"},
		{text: "2026-10-25T02:30", zone: "Europe/Berlin", want: "2026-10-25T00:30:00Z"},
		{text: "2027-03-28T02:30", zone: "Europe/Berlin", fault: "/startsAt skipped-time"},
		{text: "2026-12-01T11:00", fault: "/startsAt no-offset"},
		{text: "2026-12-01T11:00:30+05:30", fault: "/startsAt seconds"},
		{text: "2026-12-01T11:00:00.001+05:30", fault: "/startsAt seconds"},
		{text: "2026-12-01T11:00:30", zone: "Asia/Kolkata", fault: "/startsAt seconds"},
		{text: "2026-12-01T11:00:00.5", zone: "Asia/Kolkata", fault: "/startsAt seconds"},
		{text: "2026-12-01T11:00", zone: "Local", fault: "/timezone unknown-zone"},
		{text: "2026-12-01T11:00:00Z", zone: "EST", fault: "/timezone unknown-zone"},
		{text: "2026-02-30T11:00:00Z", fault: "/startsAt wrong-shape"},
		{text: "2026-12-01T24:00", zone: "Asia/Kolkata", fault: "/startsAt wrong-shape"},
		{text: "tomorrow", zone: "Asia/Kolkata", fault: "/startsAt wrong-shape"},
		{text: "", fault: "/startsAt wrong-shape"},
		{text: "2026-12-01", zone: "Asia/Kolkata", fault: "/startsAt wrong-shape"},
	} {
		at, fault := Parse(c.text, c.zone)
		if c.fault != "" {
			require.NotNil(t, fault, "%+v", c)
			require.Equal(t, c.fault, fault.Pointer+" "+fault.Code, "%+v", c)
			continue
		}
		require.Nil(t, fault, "%+v", c)
		require.Equal(t, c.want, at.Format(time.RFC3339), "%+v", c)
	}
	_, fault := Parse("2027-03-28T02:30", "Europe/Berlin")
	require.Contains(t, fault.Detail, "the next time is 03:30", "it says the way out")
}

// TestDay: dates, weekdays and weeks, before 1970 too.
func TestDay(t *testing.T) {
	t.Parallel()
	at := time.Date(1969, 11, 1, 12, 0, 0, 0, time.UTC)
	for ; at.Year() < 1971; at = at.AddDate(0, 0, 1) {
		d := civil(at)
		require.Equal(t, at.Weekday(), d.weekday(), at)
		require.Equal(t, d.weekday() != time.Monday, d.week() == (d-1).week(), at)
		read, ok := dayOf(at.Format(time.DateOnly))
		require.True(t, ok && read == d, at)
	}
}
