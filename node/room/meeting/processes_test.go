package meeting_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/calendar/calendartest"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestTwoProcesses: two processes on PostgreSQL run the jobs of approvals, moves and reminders at once: each event is
// written once, and each letter comes once.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		now := &atomic.Int64{}
		now.Store(start.UnixMilli())
		one := open(t, c, now, true)
		worlds := []*world{one}
		if c.URL != "" {
			worlds = append(worlds, open(t, c, now, true))
		}
		one.person("asha")
		one.settings("asha", always())
		d := one.keep()
		for _, w := range worlds[1:] {
			w.calendars()
		}
		one.connect(d.url)
		const meetings = 6
		var made []protocol.MeetingReceipt
		for n := range meetings {
			made = append(made, one.confirmed(n, protocol.NewMeeting{}))
		}
		// does lets each process do something with some of the meetings, and run the jobs that follow; it returns
		// how many letters of a kind came, none of them twice.
		does := func(do func(w *world, n int) error, kind string) (letters int) {
			t.Helper()
			for _, w := range worlds {
				w.sent, w.raw = nil, nil
			}
			var all sync.WaitGroup
			errs := make(chan error, meetings)
			for p, w := range worlds {
				all.Go(func() {
					for n := p; n < meetings; n += len(worlds) {
						errs <- do(w, n)
					}
					w.runJobs()
				})
			}
			all.Wait()
			one.runJobs() // what one has left to the other when that had ended
			for range meetings {
				require.NoError(t, <-errs)
			}
			seen := map[string]bool{}
			for _, w := range worlds {
				for _, l := range w.sent {
					require.False(t, seen[l.ID], "%s came twice", l.ID)
					require.Contains(t, l.ID+" "+l.Method, kind)
					seen[l.ID] = true
				}
			}
			return len(seen)
		}
		require.Equal(t, meetings, does(func(w *world, n int) error { return moves["approve"](w, made[n]) }, "REQUEST"))
		require.Equal(t, strings.Repeat("PUT ", meetings), strings.Join(d.changes, " ")+" ")
		require.Equal(t, meetings, does(func(w *world, n int) error {
			_, err := moveTo(w, made[n], start.Add(time.Duration(60+n)*time.Hour))
			return err
		}, "REQUEST"))
		require.Equal(t, strings.Repeat("PUT ", 3*meetings), strings.Join(d.changes, " ")+" ", "a move finds the event, which takes one PUT that is refused")
		require.Len(t, d.events(t, calendartest.Collection), meetings)

		none := func(*world, int) error { return nil }
		one.pass(42 * time.Hour) // a day before the last ones
		require.Equal(t, meetings, does(none, ".24h"))
		one.pass(17*time.Hour + 30*time.Minute) // half an hour before the first one
		require.Equal(t, 1, does(none, ".1h"))
		require.Len(t, d.changes, 3*meetings)
	})
}

// moveTo moves a meeting.
func moveTo(w *world, r protocol.MeetingReceipt, at time.Time) (protocol.OwnMeeting, error) {
	return does(w, w.Move, owner("asha"), protocol.MeetingMove{OwnMeetingRef: ref(r), StartsAt: at.Format(time.RFC3339)})
}
