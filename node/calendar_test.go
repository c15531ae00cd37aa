package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/provider/calendar/calendartest"
	"stoa/protocol"
	"stoa/storage"
)

// TestCalendar_Doors: an owner connects a calendar over HTTP, and what is approved is on it; the feed and
// the file of one meeting are read without credentials, and not kept.
func TestCalendar_Doors(t *testing.T) {
	t.Parallel()
	base := calendartest.Radicale(t)
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change, func(c *Config) { c.AllowPrivatePeers = true })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.worker.Run(ctx) }()
		t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
		putOpen(t, h.Node, "asha", nil)
		d := &doors{t: t, n: h.Node, house: h, token: ownerToken(t, h.Node, "asha")}
		d.takesMeetings()
		var a protocol.CalendarAccount
		login := fmt.Sprintf(`{"handle":"asha","address":"%s","user":"%s","password":"%s"}`, base, calendartest.User, calendartest.Password)
		connected := h.ask("POST", "/api/owner/calendars", login, "Authorization", "Bearer "+d.token)
		require.NotContains(t, connected.Body.String(), calendartest.Password)
		connected.into(&a)
		require.Eventually(t, func() bool {
			d.good("GET", "/api/owner/calendars/"+a.ID, "", d.token, &a)
			return !a.Checking && a.BusyReadAt != nil
		}, time.Minute, 50*time.Millisecond)
		require.Nil(t, a.LastError)
		require.NotNil(t, a.Writes)

		r, token := storedMeeting(protocol.MeetingSubmitted, time.Now().UTC().Add(48*time.Hour).Truncate(time.Minute))
		require.NoError(t, h.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return d.insertFree(ctx, tx, r) }))
		var own protocol.OwnMeeting
		d.good("POST", "/api/owner/meetings/"+r.ID+"/approve", "{}", d.token, &own)
		require.Eventually(t, func() bool {
			d.good("GET", "/api/owner/meetings/"+r.ID, "", d.token, &own)
			return own.Calendar.State == protocol.CalendarWritten
		}, time.Minute, 50*time.Millisecond)
		require.Contains(t, calendartest.Objects(t, base, calendartest.Collection), calendartest.Collection+r.ID+".ics")

		file := h.ask("GET", "/api/public/meetings/"+r.ID+"/event.ics", "", "Authorization", "Bearer "+token)
		require.Equal(t, 200, file.Code)
		require.Equal(t, "text/calendar; charset=utf-8", file.Header().Get("Content-Type"))
		require.Equal(t, 404, h.ask("GET", "/api/public/meetings/"+r.ID+"/event.ics", "").Code)
		var f protocol.MeetingFeed
		d.good("POST", "/api/owner/meeting-feed", `{"handle":"asha"}`, d.token, &f)
		for _, address := range []string{f.URL, *own.ICS} {
			path := address[len(h.Base):]
			got := h.ask("GET", path, "")
			require.Equal(t, 200, got.Code, path)
			require.Contains(t, got.Body.String(), r.ID)
			for name, want := range map[string]string{"Content-Type": "text/calendar; charset=utf-8", "Cache-Control": "private, no-cache", "X-Robots-Tag": "noindex"} {
				require.Equal(t, want, got.Header().Get(name))
			}
			require.Equal(t, 304, h.ask("GET", path, "", "If-None-Match", got.Header().Get("ETag")).Code)
			require.Equal(t, 404, h.ask("GET", path[:len(path)-8]+"x.ics", "").Code)
		}
	})
}
