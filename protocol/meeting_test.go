package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeetingRules_Check(t *testing.T) {
	t.Parallel()
	require.Empty(t, MeetingRules{}.Check())
	require.Empty(t, MeetingRules{}.Complete().Check())
	on := func(windows ...MeetingWindow) (hours []MeetingHours) {
		for _, w := range windows {
			hours = append(hours, MeetingHours{"monday", w})
		}
		return hours
	}
	seven := on(MeetingWindow{"00:00", "01:00"}, MeetingWindow{"01:00", "02:00"}, MeetingWindow{"02:00", "03:00"}, MeetingWindow{"03:00", "04:00"},
		MeetingWindow{"04:00", "05:00"}, MeetingWindow{"05:00", "06:00"}, MeetingWindow{"06:00", "07:00"})
	require.Empty(t, MeetingRules{UsualHours: seven[:6]}.Check())
	for want, r := range map[string]MeetingRules{
		"/timezone unknown-zone":                     {TimeZone: "Mars/Olympus"},
		"/timezone unknown-zone: this machine's":     {TimeZone: "Local"},
		"/timezone unknown-zone: an abbreviation":    {TimeZone: "EST"},
		"/durations/1 out-of-range":                  {Durations: []int{15, 4}},
		"/durations/0 out-of-range":                  {Durations: []int{241}},
		"/usualHours/0/to empty-window":              {UsualHours: on(MeetingWindow{"10:00", "10:00"})},
		"/usualHours/1 overlap":                      {UsualHours: on(MeetingWindow{"10:00", "12:00"}, MeetingWindow{"11:59", "13:00"})},
		"/usualHours/6 too-many":                     {UsualHours: seven},
		"/dateOverrides/0/date wrong-shape":          {DateOverrides: []MeetingOverride{{Date: "23.11.2026"}}},
		"/dateOverrides/0/date wrong-shape: no day":  {DateOverrides: []MeetingOverride{{Date: "2026-02-29"}}},
		"/dateOverrides/1/date duplicate":            {DateOverrides: []MeetingOverride{{Date: "2026-02-28"}, {Date: "2026-02-28"}}},
		"/dateOverrides/0/windows/0/to empty-window": {DateOverrides: []MeetingOverride{{"2026-02-28", []MeetingWindow{{"02:00", "01:00"}}}}},
		"/travel/0/to wrong-shape":                   {Travel: []MeetingTravel{{"2026-02-28", "", "UTC"}}},
		"/travel/0/from wrong-shape":                 {Travel: []MeetingTravel{{"", "2026-02-28", "UTC"}}},
		"/travel/0/to out-of-range":                  {Travel: []MeetingTravel{{"2026-02-28", "2026-02-27", "UTC"}}},
		"/travel/0/timezone unknown-zone":            {Travel: []MeetingTravel{{"2026-02-27", "2026-02-28", "CET"}}},
		"/travel/0/timezone unknown-zone: none":      {Travel: []MeetingTravel{{"2026-02-27", "2026-02-28", ""}}},
		"/travel/1 overlap":                          {Travel: []MeetingTravel{{"2026-02-01", "2026-02-28", "UTC"}, {"2026-02-28", "2026-03-01", "UTC"}}},
		"/questions/0 out-of-range":                  {Questions: []string{" "}},
	} {
		faults := r.Check()
		require.NotEmpty(t, faults, want)
		want, _, _ := strings.Cut(want, ": ")
		require.Equal(t, want, faults[0].Pointer+" "+faults[0].Code)
	}
}
