package meeting_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// reads reads what a path below the node's address shows to calendar programs.
func (w *world) reads(address, under string, read func(context.Context, *storage.Tx, string) ([]byte, error)) (text string, err error) {
	w.t.Helper()
	secret, ok := strings.CutPrefix(address, "https://node.example"+under)
	require.True(w.t, ok, address)
	secret, ok = strings.CutSuffix(secret, ".ics")
	require.True(w.t, ok, address)
	err = w.db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		body, err := read(ctx, tx, secret)
		text = string(body)
		return err
	})
	return text, err
}

// TestFeed: a person's feed has what was approved, and cancelled meetings for 30 days; another address ends
// the former one.
func TestFeed(t *testing.T) {
	each(t, false, func(w *world) {
		feed := func() string {
			w.t.Helper()
			f := must.Get(does(w, w.MakeFeed, owner("asha"), protocol.OwnInput{Owned: protocol.Owned{Handle: "asha"}}))(w.t)
			return f.URL
		}
		read := func(address string) string {
			w.t.Helper()
			return must.Get(w.reads(address, "/feeds/cal/", w.Feed))(w.t)
		}
		first := feed()
		require.NotContains(w.t, read(first), "VEVENT")
		approved, gone, waits := w.asked(1, start.Add(24*time.Hour)), w.asked(2, start.Add(26*time.Hour)), w.asked(3, start.Add(28*time.Hour))
		require.NotContains(w.t, read(first), "VEVENT", "what waits is in no feed")
		for _, do := range []string{"approve", "cancel"} {
			require.NoError(w.t, moves[do](w, gone))
		}
		require.NoError(w.t, moves["approve"](w, approved))
		text := read(first)
		for _, part := range []string{"METHOD:PUBLISH\r\n", "X-PUBLISHED-TTL:PT15M\r\n", "UID:" + approved.Request.ID + "@node.example\r\n", "STATUS:CONFIRMED\r\n",
			"UID:" + gone.Request.ID + "@node.example\r\n", "STATUS:CANCELLED\r\n", "Meetings of @asha"} {
			require.Contains(w.t, text, part)
		}
		require.NotContains(w.t, text, waits.Request.ID)
		require.Equal(w.t, text, read(first), "the same bytes")

		second := feed()
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.reads(first, "/feeds/cal/", w.Feed))))
		list := must.Get(does(w, w.Calendars, owner("asha"), protocol.OwnInput{}))(w.t)
		require.Equal(w.t, w.clock(), list.FeedAt.UTC())

		w.pass(29 * 24 * time.Hour)
		w.runJobs()
		require.Contains(w.t, read(second), gone.Request.ID)
		w.pass(36 * time.Hour)
		w.runJobs()
		require.NotContains(w.t, read(second), gone.Request.ID)
		require.Contains(w.t, read(second), approved.Request.ID)
		must.Get(does(w, w.DeleteFeed, owner("asha"), protocol.OwnInput{Owned: protocol.Owned{Handle: "asha"}}))(w.t)
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.reads(second, "/feeds/cal/", w.Feed))))
	})
}

// TestAddToCalendar: the requester gets links and a file once the meeting is approved; the file follows
// moves and the cancellation, and has nothing that was not agreed.
func TestAddToCalendar(t *testing.T) {
	each(t, false, func(w *world) {
		r := w.asked(1, start.Add(24*time.Hour))
		require.Nil(w.t, w.get(r).ICS)
		require.Nil(w.t, w.get(r).AddToCalendar)
		ics := func() (string, error) { return does(w, w.ICS, protocol.Caller{}, input(r)) }
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(ics())))
		require.NoError(w.t, moves["approve"](w, r))
		got := w.get(r)
		for address, want := range map[string]map[string]string{
			got.AddToCalendar.Google:    {"action": "TEMPLATE", "dates": "20261103T043000Z/20261103T050000Z", "text": "Meeting with @asha"},
			got.AddToCalendar.Outlook:   {"startdt": "2026-11-03T04:30:00Z", "enddt": "2026-11-03T05:00:00Z", "subject": "Meeting with @asha"},
			got.AddToCalendar.Office365: {"rru": "addevent", "path": "/calendar/action/compose"},
		} {
			u := must.Get(url.Parse(address))(w.t)
			require.NotContains(w.t, u.RawQuery, "+")
			for name, value := range want {
				require.Equal(w.t, value, u.Query().Get(name), address)
			}
			require.NotContains(w.t, address, "Yarn")
			require.NotContains(w.t, address, "example.org")
		}
		file := must.Get(w.reads(*got.ICS, "/feeds/meeting/", w.Event))(w.t)
		require.Contains(w.t, file, "SEQUENCE:0\r\n")
		require.Contains(w.t, file, "UID:"+r.Request.ID+"@node.example\r\n")
		require.NotContains(w.t, file, "METHOD")
		require.Equal(w.t, file, must.Get(ics())(w.t))

		require.NoError(w.t, moves["move"](w, r))
		file = must.Get(w.reads(*got.ICS, "/feeds/meeting/", w.Event))(w.t)
		require.Contains(w.t, file, "SEQUENCE:1\r\n")
		require.NoError(w.t, moves["cancel"](w, r))
		require.Nil(w.t, w.get(r).AddToCalendar)
		file = must.Get(w.reads(*w.get(r).ICS, "/feeds/meeting/", w.Event))(w.t)
		require.Contains(w.t, file, "STATUS:CANCELLED\r\n")
		for _, wrong := range []string{*got.ICS + "x.ics", strings.Replace(*got.ICS, "stoa_read_e", "stoa_read_c", 1), "https://node.example/feeds/meeting/.ics"} {
			require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.reads(wrong, "/feeds/meeting/", w.Event))), wrong)
		}
	})
}
