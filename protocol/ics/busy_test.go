package ics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/teambition/rrule-go"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/schedule"
	"stoa/storage/storagetest"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, ok := protocol.Zone(name)
	require.True(t, ok, name)
	return z
}

func vevent(lines ...string) string {
	return "BEGIN:VEVENT\nUID:x@example.org\nDTSTAMP:20261101T000000Z\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\n"
}

func vcalendar(events ...string) string {
	return "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n" + strings.Join(events, "") + "END:VCALENDAR\n"
}

// TestBusy: one week, Monday 23 to Monday 30 November 2026, of an owner in India.
func TestBusy(t *testing.T) {
	t.Parallel()
	owner := Calendar{Zone: zone(t, "Asia/Kolkata"), Mails: []string{"asha@example.net"}, Node: "node.example"}
	from := at(t, "2026-11-23T00:00:00+05:30")
	for name, c := range map[string]struct {
		events []string
		want   string // in India
	}{
		"UTC":            {[]string{vevent("DTSTART:20261124T053000Z", "DTEND:20261124T060000Z")}, "24 11:00-24 11:30"},
		"IANA zone":      {[]string{vevent("DTSTART;TZID=Europe/Berlin:20261124T100000", "DTEND;TZID=Europe/Berlin:20261124T110000")}, "24 14:30-24 15:30"},
		"Windows zone":   {[]string{vevent("DTSTART;TZID=Eastern Standard Time:20261124T100000", "DURATION:PT45M")}, "24 20:30-24 21:15"},
		"prefixed zone":  {[]string{vevent("DTSTART;TZID=/mozilla.org/20050126_1/Europe/Berlin:20261124T100000", "DURATION:PT1H")}, "24 14:30-24 15:30"},
		"unknown zone":   {[]string{vevent("DTSTART;TZID=My zone:20261124T100000", "DURATION:PT1H")}, "24 10:00-24 11:00"},
		"floating":       {[]string{vevent("DTSTART:20261124T100000", "DURATION:PT1H")}, "24 10:00-24 11:00"},
		"whole day":      {[]string{vevent("DTSTART;VALUE=DATE:20261124", "DTEND;VALUE=DATE:20261126")}, "24 00:00-26 00:00"},
		"one day":        {[]string{vevent("DTSTART;VALUE=DATE:20261124")}, "24 00:00-25 00:00"},
		"hours of a day": {[]string{vevent("DTSTART;VALUE=DATE:20261124", "DURATION:PT1H")}, "24 00:00-25 00:00"},
		"day of week":    {[]string{vevent("DTSTART;VALUE=DATE:20261103", "RRULE:FREQ=WEEKLY;BYDAY=TU,TH")}, "24 00:00-25 00:00, 26 00:00-27 00:00"},
		"no length":      {[]string{vevent("DTSTART:20261124T053000Z")}, ""},
		"ends first":     {[]string{vevent("DTSTART:20261124T053000Z", "DTEND:20261124T043000Z")}, ""},
		"transparent":    {[]string{vevent("DTSTART:20261124T053000Z", "DURATION:PT1H", "TRANSP:TRANSPARENT")}, ""},
		"cancelled":      {[]string{vevent("DTSTART:20261124T053000Z", "DURATION:PT1H", "STATUS:CANCELLED")}, ""},
		"tentative":      {[]string{vevent("DTSTART:20261124T053000Z", "DURATION:PT1H", "STATUS:TENTATIVE")}, "24 11:00-24 12:00"},
		"declined":       {[]string{vevent("DTSTART:20261124T053000Z", "DURATION:PT1H", "ATTENDEE;PARTSTAT=DECLINED:mailto:Asha@example.net")}, ""},
		"others decline": {[]string{vevent("DTSTART:20261124T053000Z", "DURATION:PT1H", "ATTENDEE;PARTSTAT=DECLINED:mailto:b@example.net")}, "24 11:00-24 12:00"},
		"of the node":    {[]string{"BEGIN:VEVENT\nUID:mtg_1@Node.example\nDTSTART:20261124T053000Z\nDURATION:PT1H\nEND:VEVENT\n"}, ""},
		"began before":   {[]string{vevent("DTSTART:20261101T000000Z", "DTEND:20261123T003000Z")}, "01 05:30-23 06:00"},
		"outside":        {[]string{vevent("DTSTART:20261201T000000Z", "DURATION:PT1H")}, ""},
		"daily, counted": {[]string{vevent("DTSTART;TZID=Europe/Berlin:20261023T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=33")},
			"23 14:30-23 15:30, 24 14:30-24 15:30"},
		"until, UTC": {[]string{vevent("DTSTART;TZID=Europe/Berlin:20261023T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261124T090000Z")},
			"23 14:30-23 15:30, 24 14:30-24 15:30"},
		"until, a day": {[]string{vevent("DTSTART:20261023T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261123")}, "23 10:00-23 11:00"},
		"long, each week": {[]string{vevent("DTSTART:20261101T220000", "DURATION:P3D", "RRULE:FREQ=WEEKLY")},
			"22 22:00-25 22:00, 29 22:00-02 22:00"},
		"without two": {[]string{vevent("DTSTART:20261101T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY",
			"EXDATE:20261124T100000,20261125T043000Z", "EXDATE;TZID=Asia/Kolkata:20261126T100000", "EXDATE;VALUE=DATE:20261127")},
			"23 10:00-23 11:00, 27 10:00-27 11:00, 28 10:00-28 11:00, 29 10:00-29 11:00"},
		"dates": {[]string{vevent("DTSTART:20261101T100000", "DURATION:PT1H", "RDATE:20261124T120000,20261125T120000", "RDATE;VALUE=PERIOD:20261126T120000Z/PT1H")},
			"24 12:00-24 13:00, 25 12:00-25 13:00, 26 17:30-26 18:30"},
		"one moved": {[]string{vevent("DTSTART:20261120T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO,TU"),
			vevent("RECURRENCE-ID:20261124T100000", "DTSTART:20261125T150000", "DURATION:PT2H")}, "23 10:00-23 11:00, 25 15:00-25 17:00"},
		"one cancelled": {[]string{vevent("DTSTART:20261120T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO,TU"),
			vevent("RECURRENCE-ID:20261124T043000Z", "DTSTART:20261124T100000", "DURATION:PT1H", "STATUS:CANCELLED")}, "23 10:00-23 11:00"},
		"one moved here": {[]string{vevent("DTSTART:20261001T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3"),
			vevent("RECURRENCE-ID:20261002T100000", "DTSTART:20261125T150000", "DURATION:PT2H")}, "25 15:00-25 17:00"},
		"unknown rule": {[]string{vevent("DTSTART:20261124T100000", "DURATION:PT1H", "RRULE:FREQ=HOURLY")}, "24 10:00-24 11:00"},
		"broken rule":  {[]string{vevent("DTSTART:20261124T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=never")}, "24 10:00-24 11:00"},
		"a task":       {[]string{strings.ReplaceAll(vevent("DTSTART:20261124T100000", "DURATION:PT1H"), "VEVENT", "VTODO")}, ""},
	} {
		budget := BusyBudget
		busy, err := owner.Busy(vcalendar(c.events...), from, from.AddDate(0, 0, 7), &budget)
		require.NoError(t, err, name)
		var shown []string
		for _, b := range busy {
			shown = append(shown, b.Start.In(owner.Zone).Format("02 15:04-")+b.End.In(owner.Zone).Format("02 15:04"))
		}
		require.Equal(t, c.want, strings.Join(shown, ", "), name)
	}
}

// TestBusy_Days: an all-day event in a zone whose clocks change is 23 and 25 hours long.
func TestBusy_Days(t *testing.T) {
	t.Parallel()
	owner := Calendar{Zone: zone(t, "Europe/Berlin")}
	for day, hours := range map[string]float64{"20270328": 23, "20261025": 25, "20261124": 24} {
		for _, rule := range []string{"X:y", "RRULE:FREQ=YEARLY"} {
			budget := BusyBudget
			busy, err := owner.Busy(vcalendar(vevent("DTSTART;VALUE=DATE:"+day, rule)), at(t, "2026-01-01T00:00:00Z"), at(t, "2027-08-01T00:00:00Z"), &budget)
			require.NoError(t, err)
			require.Equal(t, hours, busy[0].End.Sub(busy[0].Start).Hours(), day)
		}
	}
}

// TestBusy_Bounded: a calendar of endless rules costs a bounded number of days, and is then refused.
func TestBusy_Bounded(t *testing.T) {
	t.Parallel()
	owner, from := Calendar{Zone: time.UTC}, at(t, "2026-11-23T00:00:00Z")
	for _, rule := range []string{
		"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1000000", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;INTERVAL=10000;COUNT=1", "FREQ=MONTHLY;BYSETPOS=366;COUNT=9",
	} {
		budget := 30_000
		_, err := owner.Busy(vcalendar(strings.Repeat(vevent("DTSTART:19700101T000000Z", "DURATION:PT1H", "RRULE:"+rule), 10)), from, from.AddDate(0, 0, 31), &budget)
		require.Equal(t, strings.Contains(rule, "10000;"), err == nil, rule)
		budget = 30_000
		endless := "RRULE:" + rule[:strings.LastIndex(rule, ";")]
		_, err = owner.Busy(vcalendar(vevent("DTSTART:19700101T000000Z", "DURATION:PT1H", endless)), from, from.AddDate(0, 0, 31), &budget)
		require.NoError(t, err, rule)
		require.Greater(t, budget, 28_000, "without a count the past is skipped")
	}
	require.ErrorIs(t, must.Err(owner.Busy("BEGIN:VCALENDAR\n", from, from, new(int))), errShape)
}

// TestRule_Oracle compares random rules with rrule-go.
func TestRule_Oracle(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(storagetest.Seed(t), 5))
	found := 0
	for range storagetest.Rounds(t, 2000) {
		start := time.Date(2020+g.IntN(6), time.Month(1+g.IntN(12)), 1+g.IntN(31), 10, 30, 0, 0, time.UTC)
		text := randomRule(g)
		option, err := rrule.StrToROption(text)
		require.NoError(t, err, text)
		option.Dtstart = start
		oracle, err := rrule.NewRRule(*option)
		require.NoError(t, err, text)
		from := start.AddDate(0, 0, g.IntN(900)-30)
		from = time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, time.UTC)
		to := from.AddDate(0, 0, g.IntN(400))
		budget := BusyBudget
		clock := func(d date) time.Time { return d.time().Add(10*time.Hour + 30*time.Minute) }
		got, err := occurrences(text, start, dateOf(from), dateOf(to), clock, &budget)
		require.NoError(t, err, text)
		var dates []date
		for _, x := range oracle.Between(from, to.Add(24*time.Hour-time.Second), true) {
			dates = append(dates, dateOf(x))
		}
		require.Equal(t, dates, got, "%s from %s: %s to %s", text, start, from, to)
		found += len(got)
	}
	require.Greater(t, found, 2000)
}

func randomRule(g *rand.Rand) string {
	freq := []string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}[g.IntN(4)]
	parts := []string{"FREQ=" + freq}
	sometimes := func(n int, format string, args ...any) {
		if g.IntN(n) == 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	signed := func(most int) int { return (1 + g.IntN(most)) * (1 - 2*g.IntN(2)) }
	sometimes(2, "INTERVAL=%d", 1+g.IntN(5))
	sometimes(3, "COUNT=%d", 1+g.IntN(60))
	if len(parts) < 3 || !strings.HasPrefix(parts[len(parts)-1], "COUNT") {
		sometimes(3, "UNTIL=%d%02d%02dT103000Z", 2020+g.IntN(8), 1+g.IntN(12), 1+g.IntN(28))
	}
	sometimes(3, "WKST=%s", dayNames[g.IntN(7)])
	sometimes(4, "BYMONTH=%d,%d", 1+g.IntN(12), 1+g.IntN(12))
	if freq != "WEEKLY" {
		sometimes(4, "BYMONTHDAY=%d,%d", signed(31), signed(31))
	}
	if freq == "YEARLY" {
		sometimes(5, "BYYEARDAY=%d,%d,%d", signed(366), signed(366), signed(366))
	}
	switch g.IntN(4) {
	case 0:
		sometimes(1, "BYDAY=%s,%s", dayNames[g.IntN(7)], dayNames[g.IntN(7)])
	case 1:
		if freq == "MONTHLY" || freq == "YEARLY" {
			sometimes(1, "BYDAY=%d%s,%d%s", signed(5), dayNames[g.IntN(7)], signed(5), dayNames[g.IntN(7)])
		}
	}
	if freq != "DAILY" && len(parts) > 2 {
		sometimes(5, "BYSETPOS=%d,%d", signed(3), signed(3))
	}
	return strings.Join(parts, ";")
}

func TestWindowsZones(t *testing.T) {
	t.Parallel()
	for windows, name := range windowsZones {
		_, ok := protocol.Zone(name)
		require.True(t, ok, "%s: %s", windows, name)
	}
	require.Greater(t, len(windowsZones), 130)
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"PT15M": 15 * time.Minute, "P1D": 24 * time.Hour, "P2W": 14 * 24 * time.Hour, "P1DT2H3M4S": 26*time.Hour + 3*time.Minute + 4*time.Second, "+PT1H": time.Hour,
		"": 0, "P": 0, "-PT15M": 0, "15M": 0, "PT": 0, "PTM": 0, "PT9999999999M": 0, "PT0S": 0, "P1Y": 0,
	} {
		got, ok := duration(text)
		require.Equal(t, want > 0, ok, text)
		if ok {
			require.Equal(t, want, got, text)
		}
	}
}

func FuzzBusy(f *testing.F) {
	f.Add(vcalendar(vevent("DTSTART:20261120T100000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO,-1TU;BYSETPOS=1;COUNT=3", "EXDATE:20261124T100000"),
		vevent("RECURRENCE-ID:20261124T100000", "DTSTART;TZID=UTC:20261125T150000", "DURATION:PT2H")))
	f.Add(vcalendar(vevent("DTSTART;VALUE=DATE:20261124", "DTEND;VALUE=DATE:20261126", "RDATE;VALUE=PERIOD:20261126T120000Z/PT1H")))
	from := at(f, "2026-11-23T00:00:00Z")
	f.Fuzz(func(t *testing.T, object string) {
		budget := 100_000
		busy, err := Calendar{Zone: time.UTC, Node: "n"}.Busy(object, from, from.AddDate(0, 0, 31), &budget)
		for _, b := range busy {
			if err != nil || !b.Start.Before(b.End) || !b.Overlaps(schedule.Interval{Start: from, End: from.AddDate(0, 0, 31)}) {
				t.Fatal(b, err)
			}
		}
	})
}
