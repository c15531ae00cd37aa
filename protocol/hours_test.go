package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func every(opens, closes string) (hours []DayHours) {
	for _, d := range weekdays {
		hours = append(hours, DayHours{d, opens, closes})
	}
	return hours
}

func on(day, opens, closes string) []DayHours { return []DayHours{{day, opens, closes}} }

func TestOpenness(t *testing.T) {
	t.Parallel()
	const (
		kolkata = "Asia/Kolkata"     // no clock change, +05:30
		berlin  = "Europe/Berlin"    // 2026: forward on 29 March at 02:00, back on 25 October at 03:00
		newYork = "America/New_York" // 2026: forward on 8 March, back on 1 November at 02:00
	)
	diwali := []ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-09"}}
	tests := []struct {
		name       string
		zone       string
		hours      []DayHours
		exceptions []ExceptionHours
		at         string
		open       string // when it closes, "" closed
		next       string // when it opens next
	}{
		{"before opening", kolkata, every("09:00", "18:00"), nil, "2026-11-23T03:29:59Z", "", "2026-11-23T03:30:00Z"},
		{"at opening", kolkata, every("09:00", "18:00"), nil, "2026-11-23T03:30:00Z", "2026-11-23T12:30:00Z", ""},
		{"last second", kolkata, every("09:00", "18:00"), nil, "2026-11-23T12:29:59Z", "2026-11-23T12:30:00Z", ""},
		{"at closing", kolkata, every("09:00", "18:00"), nil, "2026-11-23T12:30:00Z", "", "2026-11-24T03:30:00Z"},
		{"another day there", kolkata, on("tuesday", "00:00", "09:00"), nil, "2026-11-23T20:00:00Z", "2026-11-24T03:30:00Z", ""},
		{"only on Mondays", kolkata, on("monday", "09:00", "10:00"), nil, "2026-11-23T04:30:00Z", "", "2026-11-30T03:30:00Z"},
		{"lunch break", kolkata, append(every("09:00", "12:00"), every("14:00", "18:00")...), nil, "2026-11-23T07:00:00Z", "", "2026-11-23T08:30:00Z"},
		{"shifts that touch", kolkata, append(every("14:00", "18:00"), every("09:00", "14:00")...), nil, "2026-11-23T04:00:00Z", "2026-11-23T12:30:00Z", ""},
		{"shifts that overlap", kolkata, append(every("09:00", "15:00"), every("14:00", "18:00")...), nil, "2026-11-23T04:00:00Z", "2026-11-23T12:30:00Z", ""},

		{"past midnight, evening", berlin, on("friday", "20:00", "02:00"), nil, "2026-11-20T22:00:00Z", "2026-11-21T01:00:00Z", ""},
		{"past midnight, night", berlin, on("friday", "20:00", "02:00"), nil, "2026-11-21T00:59:59Z", "2026-11-21T01:00:00Z", ""},
		{"past midnight, over", berlin, on("friday", "20:00", "02:00"), nil, "2026-11-21T01:00:00Z", "", "2026-11-27T19:00:00Z"},
		{"past the end of the week", berlin, on("saturday", "22:00", "05:00"), nil, "2026-11-22T03:00:00Z", "2026-11-22T04:00:00Z", ""},
		{"to midnight and on", berlin, append(on("friday", "20:00", "24:00"), on("saturday", "00:00", "03:00")...), nil, "2026-11-20T20:00:00Z",
			"2026-11-21T02:00:00Z", ""},
		{"to midnight", berlin, on("friday", "20:00", "24:00"), nil, "2026-11-20T22:59:59Z", "2026-11-20T23:00:00Z", ""},
		{"to 00:00 is midnight too", berlin, on("friday", "20:00", "00:00"), nil, "2026-11-20T22:59:59Z", "2026-11-20T23:00:00Z", ""},

		{"always", berlin, every("00:00", "24:00"), nil, "2026-11-20T12:00:00Z", "endless", ""},
		{"always, as some write it", berlin, every("00:00", "23:59"), nil, "2026-11-20T22:59:30Z", "endless", ""},
		{"23:59 is a minute before else", berlin, every("10:00", "23:59"), nil, "2026-11-20T22:59:30Z", "", "2026-11-21T09:00:00Z"},
		{"six days of seven", berlin, every("00:00", "24:00")[1:], nil, "2026-11-17T12:00:00Z", "2026-11-21T23:00:00Z", ""},

		{"clocks forward: closes earlier in UTC", berlin, every("09:00", "18:00"), nil, "2026-03-28T12:00:00Z", "2026-03-28T17:00:00Z", ""},
		{"clocks forward: the day after", berlin, every("09:00", "18:00"), nil, "2026-03-29T12:00:00Z", "2026-03-29T16:00:00Z", ""},
		{"clocks forward: over the leap", berlin, on("saturday", "22:00", "04:00"), nil, "2026-03-29T00:30:00Z", "2026-03-29T02:00:00Z", ""},
		{"clocks forward: opens in the hour that is not", berlin, on("sunday", "02:30", "06:00"), nil, "2026-03-29T00:30:00Z", "", "2026-03-29T01:00:00Z"},
		{"clocks forward: a shift that is not", berlin, on("sunday", "02:15", "02:45"), nil, "2026-03-29T01:00:00Z", "", "2026-04-05T00:15:00Z"},
		{"clocks back: a longer night", berlin, on("saturday", "22:00", "04:00"), nil, "2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z", ""},
		{"clocks back: closes the first time", berlin, on("saturday", "22:00", "02:30"), nil, "2026-10-25T00:29:59Z", "2026-10-25T00:30:00Z", ""},
		{"clocks back: and not again", berlin, on("saturday", "22:00", "02:30"), nil, "2026-10-25T01:15:00Z", "", "2026-10-31T21:00:00Z"},
		{"clocks back: opens the first time", newYork, on("sunday", "01:30", "05:00"), nil, "2026-11-01T05:30:00Z", "2026-11-01T10:00:00Z", ""},
		{"clocks back: stays open", newYork, on("sunday", "01:30", "05:00"), nil, "2026-11-01T06:15:00Z", "2026-11-01T10:00:00Z", ""},
		{"half an hour of summer time", "Australia/Lord_Howe", every("09:00", "17:00"), nil, "2026-01-10T22:30:00Z", "2026-01-11T06:00:00Z", ""},

		{"closed on a feast", kolkata, every("09:00", "18:00"), diwali, "2026-11-08T06:00:00Z", "", "2026-11-10T03:30:00Z"},
		{"open the day before", kolkata, every("09:00", "18:00"), diwali, "2026-11-07T06:00:00Z", "2026-11-07T12:30:00Z", ""},
		{"a night is cut where the feast begins", kolkata, every("20:00", "03:00"), diwali, "2026-11-07T18:00:00Z", "2026-11-07T18:30:00Z", ""},
		{"other hours", kolkata, every("09:00", "18:00"), []ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-08", Opens: "06:00",
			Closes: "08:00"}}, "2026-11-08T01:00:00Z", "2026-11-08T02:30:00Z", ""},
		{"other hours only", kolkata, every("09:00", "18:00"), []ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-08", Opens: "06:00",
			Closes: "08:00"}}, "2026-11-08T04:00:00Z", "", "2026-11-09T03:30:00Z"},
		{"two shifts on a feast", kolkata, nil, []ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-08", Opens: "06:00", Closes: "08:00"},
			{ValidFrom: "2026-11-08", ValidThrough: "2026-11-08", Opens: "10:00", Closes: "11:00"}}, "2026-11-08T03:00:00Z", "", "2026-11-08T04:30:00Z"},
		{"nights of a feast join", kolkata, nil, []ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-09", Opens: "20:00", Closes: "02:00"}},
			"2026-11-08T19:00:00Z", "2026-11-08T20:30:00Z", ""},
		{"its last night runs on", kolkata, every("09:00", "10:00"),
			[]ExceptionHours{{ValidFrom: "2026-11-08", ValidThrough: "2026-11-09", Opens: "20:00", Closes: "02:00"}}, "2026-11-09T19:00:00Z",
			"2026-11-09T20:30:00Z", ""},
		{"over for good", kolkata, nil, diwali, "2026-11-10T06:00:00Z", "", ""},
		{"not before next year's feast", kolkata, nil, []ExceptionHours{{ValidFrom: "2027-11-08", ValidThrough: "2027-11-08", Opens: "06:00",
			Closes: "08:00"}}, "2026-11-10T06:00:00Z", "", "2027-11-08T00:30:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, MerchantDraft{Timezone: tt.zone, Hours: tt.hours, ExceptionHours: tt.exceptions}.Check())
			at := must.Get(time.Parse(time.RFC3339, tt.at))(t)
			o := OpennessAt(NewSchedule(tt.zone, tt.hours, tt.exceptions), at)
			require.NotNil(t, o.OpenNow)
			require.Equal(t, tt.open != "", *o.OpenNow)
			moment := func(at *time.Time) string {
				if at == nil {
					return ""
				}
				return at.Format(time.RFC3339)
			}
			if tt.open == "endless" {
				tt.open = ""
			}
			require.Equal(t, tt.open, moment(o.ClosesAt), "closes")
			require.Equal(t, tt.next, moment(o.OpensAt), "opens")
		})
	}
	require.Equal(t, Openness{}, OpennessAt(NewSchedule(berlin, nil, nil), time.Now()), "unknown is not closed")
	require.Equal(t, Openness{}, OpennessAt(NewSchedule("Nowhere", every("09:00", "18:00"), nil), time.Now()))
}

// A walk through a year, minute by minute where something changes: what a
// schedule says of the next change is what it says when that comes.
func TestOpenness_Agrees(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Kolkata", "Europe/Berlin", "America/New_York", "Pacific/Auckland", "Africa/Casablanca", "Pacific/Chatham"} {
		s := NewSchedule(zone, append(append(on("friday", "20:00", "02:30"), on("sunday", "01:30", "05:00")...), every("11:00", "14:00")...),
			[]ExceptionHours{{ValidFrom: "2026-12-24", ValidThrough: "2026-12-26"}})
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for at.Year() == 2026 {
			o := OpennessAt(s, at)
			next := o.OpensAt
			if *o.OpenNow {
				next = o.ClosesAt
			}
			require.True(t, next.After(at), "%s %s", zone, at)
			for _, before := range []time.Duration{next.Sub(at) / 2, next.Sub(at) - time.Second} {
				require.Equal(t, *o.OpenNow, *OpennessAt(s, at.Add(before)).OpenNow, "%s %s", zone, at.Add(before))
			}
			require.NotEqual(t, *o.OpenNow, *OpennessAt(s, *next).OpenNow, "%s %s", zone, next)
			at = *next
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		currency, amount string
		minor            int64
		back, fault      string
	}{
		{"INR", "1500", 150000, "1500.00", ""}, {"INR", "120.5", 12050, "120.50", ""}, {"INR", "0", 0, "0.00", ""}, {"INR", "0.01", 1, "0.01", ""},
		{"INR", "7.100", 710, "7.10", ""}, {"JPY", "500", 500, "500", ""}, {"JPY", "500.00", 500, "500", ""}, {"KWD", "1.234", 1234, "1.234", ""},
		{"CLF", "1.2345", 12345, "1.2345", ""},
		{"INR", "10000000000.00", MaxMinor, "10000000000.00", ""}, {"INR", "10000000000.01", 0, "", "/amount"},
		{"INR", "1.001", 0, "", "/amount"}, {"JPY", "1.5", 0, "", "/amount"}, {"INR", "-1", 0, "", "/amount"}, {"INR", "1e3", 0, "", "/amount"},
		{"INR", "", 0, "", "/amount"},
		{"INR", ".5", 0, "", "/amount"}, {"INR", "5.", 0, "", "/amount"}, {"INR", "1,000", 0, "", "/amount"}, {"INR", "१०", 0, "", "/amount"},
		{"INR", "9999999999999999999999", 0, "", "/amount"},
		{"XXY", "1", 0, "", "/currency"}, {"inr", "1", 0, "", "/currency"},
	} {
		minor, fault := MoneyDraft{tt.currency, Decimal(tt.amount)}.Minor()
		if tt.fault != "" {
			require.NotNil(t, fault, "%v", tt)
			require.Equal(t, tt.fault, fault.Pointer, "%v", tt)
			continue
		}
		require.Nil(t, fault, "%v", tt)
		require.Equal(t, tt.minor, minor, "%v", tt)
		require.Equal(t, Money{tt.currency, tt.back}, MoneyOf(tt.currency, minor))
	}
}

func TestParseQuery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		q    string
		want TextQuery
		bad  bool
	}{
		{"", TextQuery{}, false}, {"  ", TextQuery{}, false},
		{"paper jaipur", TextQuery{Terms: []Term{{"paper", false, false}, {"jaipur", false, false}}}, false},
		{`"hand made" -plastic`, TextQuery{Terms: []Term{{"hand made", true, false}, {"plastic", false, true}}}, false},
		{`-"hand made"`, TextQuery{Terms: []Term{{"hand made", true, true}}}, false},
		{`tag:Paper -tag:ink`, TextQuery{Tags: []Operand{{"paper", false}, {"ink", true}}}, false},
		{`KIND:business -kind:person`, TextQuery{Kinds: []Operand{{"business", false}, {"person", true}}}, false},
		{"at 10:30 http://a.example", TextQuery{Terms: []Term{{"at", false, false}, {"10:30", false, false}, {"http://a.example", false, false}}}, false},
		{`a"b c"d`, TextQuery{Terms: []Term{{"a", false, false}, {"b c", true, false}, {"d", false, false}}}, false},
		{"hand-made", TextQuery{Terms: []Term{{"hand-made", false, false}}}, false},
		{"काग़ज़\u00a0घर", TextQuery{Terms: []Term{{"काग़ज़", false, false}, {"घर", false, false}}}, false},
		{`"open`, TextQuery{}, true}, {`""`, TextQuery{}, true}, {`" "`, TextQuery{}, true}, {"-", TextQuery{}, true}, {"a - b", TextQuery{}, true},
		{"tag:", TextQuery{}, true}, {"tag:a/b", TextQuery{}, true}, {"kind:robot", TextQuery{}, true}, {"kind:", TextQuery{}, true}, {"-kind:x", TextQuery{}, true},
	} {
		got, faults := ParseQuery(tt.q)
		require.Equal(t, tt.bad, len(faults) > 0, "%q %v", tt.q, faults)
		if !tt.bad {
			require.Equal(t, tt.want, got, "%q", tt.q)
		}
		for _, f := range faults {
			require.Equal(t, "/q", f.Pointer)
		}
	}
	long := ""
	for range MaxQueryTerms {
		long += "a "
	}
	_, faults := ParseQuery(long)
	require.Empty(t, faults)
	_, faults = ParseQuery(long + "b")
	require.Len(t, faults, 1)
}
