package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func on(t *testing.T, when string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", when)
	require.NoError(t, err)
	return at
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	now := on(t, "2026-11-27 03:10")
	at := func(when ...string) (names []string) {
		for _, w := range when {
			names = append(names, Name("a.example", on(t, w), false))
		}
		return names
	}
	var daily []string
	for d := range 400 {
		daily = append(daily, now.AddDate(0, 0, -d).Format("2006-01-02 15:04"))
	}
	for _, c := range []struct {
		name  string
		there []string
		held  []string
		kept  []string
	}{
		{"none", nil, nil, nil},
		{"one that is years old", at("2020-01-01 03:00"), nil, at("2020-01-01 03:00")},
		{"a year of days", at(daily...), nil, at("2026-11-27 03:10", "2026-11-26 03:10", "2026-11-25 03:10", "2026-11-24 03:10", "2026-11-23 03:10",
			"2026-11-22 03:10", "2026-11-21 03:10", // days
			"2026-11-15 03:10", "2026-11-08 03:10", // weeks: those of the 27th and the 22nd are there
			"2026-10-31 03:10", "2026-09-30 03:10", "2026-08-31 03:10", "2026-07-31 03:10", "2026-06-30 03:10")}, // months
		{"many on one day", at("2026-11-27 03:10", "2026-11-27 03:09", "2026-11-27 00:00", "2026-11-26 23:59", "2026-11-26 00:00"), nil,
			at("2026-11-27 03:10", "2026-11-26 23:59")},
		{"after a gap of months the old ones are there still", at("2026-11-27 03:10", "2026-05-01 03:00", "2026-04-30 03:00", "2026-04-29 03:00",
			"2026-04-28 03:00", "2026-04-27 03:00", "2026-04-26 03:00", "2026-04-25 03:00"), nil,
			at("2026-11-27 03:10", "2026-05-01 03:00", "2026-04-30 03:00", "2026-04-29 03:00", "2026-04-28 03:00", "2026-04-27 03:00", "2026-04-26 03:00")},
		{"a clock that was ahead", append(at("2026-11-27 03:10", "2026-11-27 02:00"), at("2031-01-01 03:00", "2026-11-27 03:11")...), nil,
			at("2026-11-27 03:10", "2031-01-01 03:00", "2026-11-27 03:11")},
		{"a clock that went back", at("2026-11-27 03:10", "2026-11-27 03:05", "2026-11-27 03:00"), at("2026-11-27 03:00"),
			at("2026-11-27 03:10", "2026-11-27 03:00")},
		{"the last that was checked", at(daily...), at("2026-11-19 03:10"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			drop := surplus(c.there, "a.example", now, c.held...)
			kept := slices.DeleteFunc(slices.Clone(c.there), func(n string) bool { return slices.Contains(drop, n) })
			for _, h := range c.held {
				require.Contains(t, kept, h)
			}
			if c.kept != nil {
				require.ElementsMatch(t, c.kept, kept)
			}
			again := surplus(kept, "a.example", now, c.held...)
			require.Empty(t, again, "what is kept is kept again")
		})
	}
}

// TestSurplus_Others: what is no backup of this node is never deleted.
func TestSurplus_Others(t *testing.T) {
	t.Parallel()
	now := on(t, "2026-11-27 03:10")
	others := []string{"README", "stoa.db", "stoa-2026-11-20.db", ".a.example-20200101T000000Z.tar.gz.partial", "a.example-20200101T000000Z.tar",
		"a.example-2020.tar.gz", "a.example-20200101T000000Z.tar.gz.asc", "b.example-20200101T000000Z.tar.gz", "www.a.example-20200101T000000Z.tar.gz",
		"../a.example-20200101T000000Z.tar.gz",
		"a.example-20209901T000000Z.tar.gz", "A.EXAMPLE-20200101T000000Z.tar.gz", ""}
	mine := []string{Name("a.example", now, true), Name("a.example", now.Add(-time.Hour), false), Name("a.example", now.Add(-2*time.Hour), true)}
	require.ElementsMatch(t, mine[1:], surplus(append(others, mine...), "a.example", now))
}

// TestSurplus_DayByDay runs three years: never are fewer kept than the rule says, nor more.
func TestSurplus_DayByDay(t *testing.T) {
	t.Parallel()
	var there []string
	now := on(t, "2024-01-01 03:00")
	for day := range 1100 {
		now = now.Add(24 * time.Hour)
		there = append(there, Name("a.example:8443", now, day%2 == 0))
		for _, name := range surplus(there, "a.example:8443", now) {
			there = slices.DeleteFunc(there, func(n string) bool { return n == name })
		}
		require.LessOrEqual(t, len(there), keptDays+keptWeeks+keptMonths)
		if day > 300 {
			require.GreaterOrEqual(t, len(there), keptDays+keptWeeks+keptMonths-4, "%v", there) // a day is the newest of its week and month too
			_, oldest, ok := ParseName(slices.MinFunc(there, strings.Compare))
			require.True(t, ok)
			require.Greater(t, now.Sub(oldest), 120*24*time.Hour, "five months back")
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	host, at, ok := ParseName(Name("Stoa.Example:8443", on(t, "2026-11-27 03:10"), true))
	require.True(t, ok)
	require.Equal(t, "stoa.example_8443", host)
	require.Equal(t, on(t, "2026-11-27 03:10"), at)
	require.Equal(t, hostName(host), host)
}

func TestNextDaily(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, next string }{
		{"2026-11-27 00:00", "2026-11-27 03:20"},
		{"2026-11-27 02:59", "2026-11-27 03:20"},
		{"2026-11-27 03:00", "2026-11-28 03:20"},
		{"2026-12-31 23:59", "2027-01-01 03:20"},
	} {
		require.Equal(t, on(t, c.next), nextDaily(on(t, c.now), 3*time.Hour, 20*time.Minute), fmt.Sprint(c))
	}
}
