package complaint

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// world is a room with a clock and the letters that it sends.
type world struct {
	*Complaints
	t     *testing.T
	clock atomic.Int64
	sent  []string // addressee and subject of each letter
	last  string   // text of the last
	mail  bool
	done  map[int64]bool // jobs that ran
}

func each(t *testing.T, test func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		w := &world{t: t, mail: true, done: map[int64]bool{}}
		w.clock.Store(time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC).UnixMilli())
		c.Now = func() time.Time { return time.UnixMilli(w.clock.Load()).UTC() }
		db := storagetest.OpenConfig(t, c)
		w.Complaints = New(hall.House{Base: "https://stoa.example", DB: db,
			Words: func(string) hall.Words { return words.English() }}, "Stoa", Times{24 * time.Hour, 360 * time.Hour, 8760 * time.Hour},
			[]byte("0123456789abcdef0123456789abcdef"), 0, func() Send {
				if !w.mail {
					return nil
				}
				return func(_ context.Context, _, to, subject, text string) error {
					w.sent, w.last = append(w.sent, to+" "+subject), text
					return nil
				}
			}, Appeals{})
		test(w)
	})
}

func (w *world) later(d time.Duration) { w.clock.Add(d.Milliseconds()) }

func (w *world) tx(do func(ctx context.Context, tx *storage.Tx) error) error {
	return w.DB.Write(w.t.Context(), do)
}

func (w *world) file(by protocol.Caller, mail string) (out protocol.ComplaintReceipt, err error) {
	err = w.tx(func(ctx context.Context, tx *storage.Tx) (err error) {
		out, err = w.File(ctx, tx, by, protocol.NewComplaint{Subject: "other", Kind: "privacy", Text: "My number is there.", Mail: mail})
		return err
	})
	return out, err
}

func (w *world) read(id, token string) (out protocol.Complaint, err error) {
	err = w.tx(func(ctx context.Context, tx *storage.Tx) (err error) {
		out, err = w.Read(ctx, tx, protocol.Caller{}, protocol.ComplaintInput{ID: id, ReadToken: token})
		return err
	})
	return out, err
}

func (w *world) answer(id, words string, done bool) error {
	return w.tx(func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.Answer(ctx, tx, protocol.Caller{Standing: protocol.Operator, Account: "acc_o"}, protocol.ComplaintAnswer{ID: id, Answer: words, Done: done})
		return err
	})
}

func (w *world) list(state string) (ids []string) {
	require.NoError(w.t, w.DB.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for after := ""; ; {
			page, err := w.List(ctx, tx, protocol.Caller{}, protocol.ComplaintQuery{State: state, Paging: protocol.Paging{Limit: 1, After: after}})
			for _, c := range page.Items {
				ids = append(ids, c.ID)
			}
			if err != nil || page.Next == nil {
				return err
			}
			after = *page.Next
		}
	}))
	return ids
}

// work runs the letters that are due.
func (w *world) work() {
	for range 3 {
		var jobs []storage.Job
		require.NoError(w.t, w.DB.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Jobs().List(ctx, storage.JobWaiting, storage.ComplaintMailJob, 100, "")
			jobs = page.Items
			return err
		}))
		for _, j := range jobs {
			if w.done[j.ID] || j.RunAt.After(time.UnixMilli(w.clock.Load())) {
				continue
			}
			w.done[j.ID] = true
			after := must.Get(storage.HandlerOf(w.Letter)(w.t.Context(), j))(w.t)
			require.NoError(w.t, w.tx(func(ctx context.Context, tx *storage.Tx) error {
				if after != nil {
					return after(ctx, tx)
				}
				return nil
			}))
		}
	}
}

func stranger(network string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Proof, Network: network, Above: 9}
}

// TestComplaint: what becomes of a complaint, when it is due, and that only its token opens it.
func TestComplaint(t *testing.T) {
	each(t, func(w *world) {
		first := must.Get(w.file(stranger("n1"), ""))(w.t)
		w.later(time.Minute)
		second := must.Get(w.file(stranger("n2"), ""))(w.t)
		require.Equal(w.t, []string{first.ID, second.ID}, w.list("open"), "those that are due first")
		for _, token := range []string{"", "stoa_read_x", second.ReadToken} {
			require.Contains(w.t, []protocol.Code{protocol.NotFound, protocol.Unauthorized}, protocol.CodeOf(must.Err(w.read(first.ID, token))))
		}
		c := must.Get(w.read(first.ID, first.ReadToken))(w.t)
		require.Equal(w.t, protocol.ComplaintReceived, c.State)
		require.Equal(w.t, 24*time.Hour, c.AcknowledgeBy.Sub(c.CreatedAt))
		require.Equal(w.t, 15*24*time.Hour, c.ResolveBy.Sub(c.CreatedAt))

		w.later(24 * time.Hour)
		require.Equal(w.t, []string{first.ID, second.ID}, w.list("overdue"))
		require.NoError(w.t, w.answer(first.ID, "", false))
		require.Equal(w.t, []string{second.ID}, w.list("overdue"))
		require.Equal(w.t, []string{second.ID, first.ID}, w.list("open"), "its answer is due later")
		w.later(15 * 24 * time.Hour)
		require.Len(w.t, w.list("overdue"), 2)
		require.NoError(w.t, w.answer(first.ID, "It is hidden.", true))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(w.answer(first.ID, "Again.", true)))
		c = must.Get(w.read(first.ID, first.ReadToken))(w.t)
		require.Equal(w.t, protocol.ComplaintResolved, c.State)
		require.Equal(w.t, "It is hidden.", *c.Answer)
		require.Equal(w.t, []string{first.ID}, w.list("resolved"))

		prune := func() (n int) {
			require.NoError(w.t, w.tx(func(ctx context.Context, tx *storage.Tx) (err error) { n, err = tx.PruneExpired(ctx); return err }))
			return n
		}
		require.Zero(w.t, prune())
		w.later(366 * 24 * time.Hour)
		require.Equal(w.t, 1, prune(), "what is open stays")
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.read(first.ID, first.ReadToken))))
		require.Equal(w.t, []string{second.ID}, w.list("open"))
	})
}

// TestComplaint_Mail: a mailbox gets one letter with nothing in it that anybody wrote, and the answer only after its reader confirmed that.
func TestComplaint_Mail(t *testing.T) {
	each(t, func(w *world) {
		c := must.Get(w.file(stranger("n1"), "ravi@example.org"))(w.t)
		again := must.Get(w.file(stranger("n2"), "ravi+x@example.org"))(w.t)
		w.work()
		require.Len(w.t, w.sent, 1, "one letter to a mailbox at a time")
		require.NotContains(w.t, w.last, "number")
		require.NoError(w.t, w.answer(again.ID, "Secret of another.", true))
		require.NoError(w.t, w.answer(c.ID, "We are looking.", false))
		w.work()
		require.Len(w.t, w.sent, 1, "nobody has confirmed it")

		s := &storage.StoredComplaint{ID: c.ID, ComplaintDoc: storage.ComplaintDoc{Mail: "ravi@example.org"}}
		confirm := func(id, ticket string) error {
			return w.tx(func(ctx context.Context, tx *storage.Tx) error {
				_, err := w.Confirm(ctx, tx, protocol.Caller{}, protocol.ComplaintConfirmation{ID: id, Ticket: ticket})
				return err
			})
		}
		require.Contains(w.t, w.last, w.ticket(s))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(must.Err(w.read(c.ID, w.ticket(s)))), "the link opens nothing before")
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(confirm(again.ID, w.ticket(s))))
		require.Equal(w.t, protocol.NotFound, protocol.CodeOf(confirm(c.ID, c.ReadToken)), "who wrote it does not read the mailbox")
		require.NoError(w.t, confirm(c.ID, w.ticket(s)))
		require.NoError(w.t, confirm(c.ID, w.ticket(s)))
		w.work()
		require.Len(w.t, w.sent, 2)
		require.Contains(w.t, w.last, "    | We are looking.")
		require.Equal(w.t, "confirmed", must.Get(w.read(c.ID, w.ticket(s)))(w.t).Mail)
		require.NoError(w.t, w.answer(c.ID, "Done.", true))
		w.work()
		require.Len(w.t, w.sent, 3)
		require.Contains(w.t, w.last, "    | Done.")

		w.mail = false
		require.Equal(w.t, protocol.Validation, protocol.CodeOf(must.Err(w.file(stranger("n3"), "asha@example.org"))), "a node that sends no mail")
	})
}

// TestComplaint_Bounds: a network files some in a day, strangers fill half, and nothing is dropped for newer ones.
func TestComplaint_Bounds(t *testing.T) {
	each(t, func(w *world) {
		for range protocol.ComplaintsADay {
			must.Get(w.file(stranger("n1"), ""))(w.t)
		}
		require.Equal(w.t, protocol.RateLimited, protocol.CodeOf(must.Err(w.file(stranger("n1"), ""))))
		w.later(25 * time.Hour)
		must.Get(w.file(stranger("n1"), ""))(w.t)

		require.NoError(w.t, w.tx(func(ctx context.Context, tx *storage.Tx) error {
			for i := protocol.ComplaintsADay + 1; i < protocol.SharedComplaints.Strangers(); i++ {
				s := &storage.StoredComplaint{ID: protocol.NewID(protocol.ComplaintID, tx.Now), State: protocol.ComplaintReceived, DueAt: tx.Now, Complainant: "x",
					CreatedAt: tx.Now}
				if err := tx.Complaints().Insert(ctx, s); err != nil {
					return err
				}
			}
			return nil
		}))
		require.Equal(w.t, protocol.Conflict, protocol.CodeOf(must.Err(w.file(stranger("n2"), ""))))
		must.Get(w.file(protocol.Caller{Standing: protocol.Session, Account: "acc_a", Handles: []string{"asha"}, Network: "n2"}, ""))(w.t)
		easy := stranger("n3")
		easy.Above = 0
		require.NoError(w.t, w.tx(func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Complaints().Due(ctx, tx.Now, 1, "")
			if err != nil {
				return err
			}
			page.Items[0].State = protocol.ComplaintResolved
			return tx.Complaints().Update(ctx, &page.Items[0])
		}))
		require.Equal(w.t, protocol.PowRequired, protocol.CodeOf(must.Err(w.file(easy, ""))), "the fuller, the dearer")
		must.Get(w.file(stranger("n3"), ""))(w.t)
	})
}
