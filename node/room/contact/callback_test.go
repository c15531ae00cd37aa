package contact_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/node/out/signed"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// receiver is the server at a callback address: it answers with the statuses
// in turn, then with 204, and keeps what came.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex // guards the rest
	answer []int
	got    []protocol.Callback
	ids    []string // of the header
}

func newReceiver(t *testing.T, answer ...int) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		var cb protocol.Callback
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(body, &cb)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.got, r.ids = append(r.got, cb), append(r.ids, req.Header.Get(protocol.WebhookID))
		status := http.StatusNoContent
		if len(r.answer) > 0 {
			status, r.answer = r.answer[0], r.answer[1:]
		}
		if status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.ids...)
}

// sends gives the room a sender.
func (w *world) sends(private bool) {
	w.t.Helper()
	pair := must.Get(key.GenerateEd25519())(w.t)
	client := outbound.New(outbound.Options{AllowPrivate: private, Timeout: time.Minute})
	w.t.Cleanup(client.CloseIdleConnections)
	w.Webhook = &webhook.Sender{Client: client, Sign: &signed.Signer{Key: pair, Base: w.Base}, Private: private}
}

// replied begins a thread with a callback address and answers it.
func (w *world) replied(address string) (threadID, messageID string) {
	w.t.Helper()
	begun := must.Get(w.begin(visitor, protocol.NewContact{Handle: "asha", Message: "Hello", CallbackURL: address}))(w.t)
	said := must.Get(w.answer(asha, begun.ThreadID, "Yes."))(w.t)
	return begun.ThreadID, said.Message.ID
}

func (w *world) callbacks(c protocol.Caller, q protocol.CallbackQuery) (got []protocol.CallbackDelivery) {
	w.t.Helper()
	require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		page, err := w.ListCallbacks(ctx, tx, c, q)
		got = page.Items
		return err
	}))
	return got
}

func (w *world) replay(c protocol.Caller, id string) error {
	return w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.Replay(ctx, tx, c, protocol.CallbackRef{ID: id})
		return err
	})
}

func TestCallback_Delivered(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.sends(true)
		r := newReceiver(w.t)
		thread, message := w.replied(r.URL + "/hook")
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, []string{message}, r.received())
		got := r.got[0]
		require.Equal(w.t, "Yes.", got.Message.Text)
		require.Equal(w.t, protocol.AgentSide, got.Message.From)
		require.Equal(w.t, "asha", *got.Message.Author.Handle)
		require.True(w.t, got.Message.Untrusted)
		require.Equal(w.t, protocol.Callback{Type: "thread.reply", ID: message, ThreadID: thread, Handle: "asha", Message: got.Message,
			CreatedAt: got.Message.CreatedAt}, got)
		d := w.callbacks(asha, protocol.CallbackQuery{})
		require.Len(w.t, d, 1)
		require.Equal(w.t, protocol.CallbackDone, d[0].State)
		require.Equal(w.t, 1, d[0].Attempts)
		require.Nil(w.t, d[0].NextAt)
	})
}

// TestCallback_Tried is the timetable: what fails is tried for 24 hours under
// one id, in ever longer steps.
func TestCallback_Tried(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.sends(true)

		r := newReceiver(w.t, 500, 307)
		_, message := w.replied(r.URL)
		require.NoError(w.t, w.runJobs(nil))
		d := w.callbacks(asha, protocol.CallbackQuery{State: protocol.CallbackWaiting})[0]
		require.Equal(w.t, 500, *d.Status)
		require.Equal(w.t, "the receiver answered 500", d.LastError)
		require.NotNil(w.t, d.NextAt)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 1, "not before its time")
		w.pass(10 * time.Second)
		require.NoError(w.t, w.runJobs(nil))
		d = w.callbacks(asha, protocol.CallbackQuery{})[0]
		require.Equal(w.t, "the receiver answered 307; redirects are not followed", d.LastError)
		w.pass(20 * time.Second)
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, []string{message, message, message}, r.received())
		d = w.callbacks(asha, protocol.CallbackQuery{State: protocol.CallbackDone})[0]
		require.Equal(w.t, 3, d.Attempts)
		require.Empty(w.t, d.LastError)

		never := make([]int, 100)
		for i := range never {
			never[i] = 503
		}
		r = newReceiver(w.t, never...)
		_, message = w.replied(r.URL)
		require.NoError(w.t, w.runJobs(nil))
		for range 30 {
			w.pass(time.Hour)
			require.NoError(w.t, w.runJobs(nil))
		}
		d = w.callbacks(asha, protocol.CallbackQuery{State: protocol.CallbackFailed})[0]
		require.Equal(w.t, message, d.ID)
		tries := len(r.received())
		require.Equal(w.t, tries, d.Attempts)
		require.Greater(w.t, tries, 10)
		require.LessOrEqual(w.t, tries, 40)
		w.pass(48 * time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), tries, "given up")

		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(w.replay(bob, message)), "not another owner's")
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		require.NoError(w.t, w.replay(asha, message))
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), tries+1)
		require.Equal(w.t, protocol.CallbackDone, w.callbacks(asha, protocol.CallbackQuery{})[0].State)
	})
}

// TestCallback_ReplayedWhileItWaits: however often it is asked for, there is one
// row of tries.
func TestCallback_ReplayedWhileItWaits(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.sends(true)
		never := make([]int, 100)
		for i := range never {
			never[i] = 503
		}
		r := newReceiver(w.t, never...)
		_, message := w.replied(r.URL)
		require.NoError(w.t, w.runJobs(nil))
		for range 5 {
			w.pass(time.Millisecond)
			require.NoError(w.t, w.replay(asha, message))
		}
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 2, "the last of them is due")
		w.pass(time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 3)
	})
}

// TestCallback_Gone: 410 ends this delivery, those that wait and those to come.
func TestCallback_Gone(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.sends(true)
		r := newReceiver(w.t, 500, 410)
		thread, _ := w.replied(r.URL)
		require.NoError(w.t, w.runJobs(nil)) // 500: waits
		must.Get(w.answer(asha, thread, "Still yes."))(w.t)
		require.NoError(w.t, w.runJobs(nil)) // 410
		gone := w.callbacks(asha, protocol.CallbackQuery{State: protocol.CallbackGone, ThreadID: thread})
		require.Len(w.t, gone, 2)
		said := must.Get(w.answer(asha, thread, "And yes again."))(w.t)
		w.pass(25 * time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 2)
		require.NotContains(w.t, r.received(), said.Message.ID)
		require.NoError(w.t, w.replay(asha, gone[0].ID))
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 3, "the owner may send it again")
	})
}

// TestCallback_Refused: an address that is not public is never connected to.
func TestCallback_Refused(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		r := newReceiver(w.t)
		w.replied(r.URL) // taken while this was a development node
		w.sends(false)
		require.NoError(w.t, w.runJobs(nil))
		require.Empty(w.t, r.received())
		require.Equal(w.t, protocol.CallbackRefused, w.callbacks(asha, protocol.CallbackQuery{})[0].State)

		w.Private = false
		for _, address := range []string{
			r.URL, "https://127.0.0.1/x", "https://192.168.0.1/", "https://[fe80::1]/", "https://u:p@example.com/", "https://example.com:22/", "ftp://example.com/",
		} {
			_, err := w.begin(visitor, protocol.NewContact{Handle: "asha", Message: "Hello", CallbackURL: address})
			require.Equal(w.t, protocol.Validation, protocol.CodeOf(err), address)
			require.Equal(w.t, "/callbackUrl", protocol.AsError(err).Faults[0].Pointer)
		}
	})
}

// TestCallback_Crash: a process that dies after it sent and before it stored so
// lets the delivery be made again, with the same id (contract §4).
func TestCallback_Crash(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		w.sends(true)
		r := newReceiver(w.t)
		_, message := w.replied(r.URL)
		require.NoError(w.t, w.runJobs(func(j storage.Job) bool { return j.Kind == "callback" }))
		require.Equal(w.t, []string{message}, r.received())
		require.Equal(w.t, protocol.CallbackWaiting, w.callbacks(asha, protocol.CallbackQuery{})[0].State)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 1, "leased still")
		w.pass(3 * time.Minute)
		require.NoError(w.t, w.runJobs(nil))
		require.Equal(w.t, []string{message, message}, r.received())
		d := w.callbacks(asha, protocol.CallbackQuery{})
		require.Len(w.t, d, 1)
		require.Equal(w.t, protocol.CallbackDone, d[0].State)
		w.pass(25 * time.Hour)
		require.NoError(w.t, w.runJobs(nil))
		require.Len(w.t, r.received(), 2)
	})
}
