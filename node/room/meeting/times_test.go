package meeting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// A letter has one line for a time where the clocks of both sides agree, whatever their zones are called.
func TestTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 4, 30, 0, 0, time.UTC)
	of := protocol.MeetingTime{StartsAt: at, EndsAt: at.Add(15 * time.Minute)}
	for want, zones := range map[string][]string{
		"    Tue 1 Dec 2026, 10:00 to 10:15 IST (Asia/Kolkata)":                                                         {"Asia/Calcutta", "Asia/Kolkata"},
		"    Tue 1 Dec 2026, 05:30 to 05:45 CET (Europe/Paris)":                                                         {"Europe/Paris", "Europe/Berlin"},
		"    Tue 1 Dec 2026, 10:00 to 10:15 IST (Asia/Kolkata)\n    Tue 1 Dec 2026, 05:30 to 05:45 CET (Europe/Berlin)": {"Asia/Kolkata", "Europe/Berlin"},
	} {
		require.Equal(t, want, times(words.English(), of, zones...))
	}
	require.Equal(t, "Tue 1 Dec 2026, 10:00 IST", both(at, "Asia/Kolkata", "Asia/Calcutta"))
	require.Equal(t, "Tue 1 Dec 2026, 10:00 IST (Tue 1 Dec 2026, 05:30 CET)", both(at, "Asia/Kolkata", "Europe/Berlin"))
}
