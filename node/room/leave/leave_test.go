package leave_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/board"
	"stoa/node/room/directory"
	"stoa/node/room/leave"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// A world is the room with those that it needs, and a clock.
type world struct {
	t   *testing.T
	db  *storage.DB
	now time.Time
	*leave.Leave
	board *board.Board
	told  []string
}

func each(t *testing.T, test func(w *world)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		w := &world{t: t, now: start}
		c.Now = func() time.Time { return w.now }
		w.db = storagetest.OpenConfig(t, c)
		d := directory.New("https://n1.example", func(*storage.StoredProfile) *protocol.Reputation { return nil })
		w.board = board.New("https://n1.example", nil)
		w.Leave = &leave.Leave{Base: "https://n1.example", SetState: d.SetState, Drop: d.Drop, Distribute: w.board.Distribute, Erase: w.board.Erase,
			Recent: func(context.Context, *storage.Tx, protocol.Caller) error { return nil },
			Tell: func(_ context.Context, _ *storage.Tx, account, handle string, until time.Time) error {
				w.told = append(w.told, fmt.Sprint(account, "@", handle, " until ", until.Format(time.DateOnly)))
				return nil
			}}
		test(w)
		require.NoError(t, w.db.Check(t.Context()))
	})
}

func (w *world) write(fn func(ctx context.Context, tx *storage.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.db.Write(w.t.Context(), fn))
	require.NoError(w.t, w.db.Numbered(w.t.Context()))
}

func (w *world) profile(handle string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}})
		return err
	})
}

func as(handle string) protocol.Caller {
	return protocol.Caller{Standing: protocol.Session, Handle: handle, Handles: []string{handle}, Name: handle}
}

func (w *world) post(handle, title string) (id string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		p, err := w.board.Post(ctx, tx, as(handle), protocol.NewPost{Kind: protocol.Offer, Title: title, Body: "words"})
		id = p.ID
		return err
	})
	return id
}

// runs does one job that is due, and returns its kind, "" for none; jobs of other rooms are dropped.
func (w *world) runs() storage.JobKind {
	w.t.Helper()
	jobs, _, err := w.db.ClaimJobs(w.t.Context(), "o", 1, time.Minute)
	require.NoError(w.t, err)
	if len(jobs) == 0 {
		return ""
	}
	var after func(context.Context, *storage.Tx) error
	if handler := w.Jobs()[jobs[0].Kind]; handler != nil {
		after = must.Get(handler(w.t.Context(), jobs[0]))(w.t)
	}
	w.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Jobs().Finish(ctx, jobs[0].ID); err != nil || after == nil {
			return err
		}
		return after(ctx, tx)
	})
	return jobs[0].Kind
}

func (w *world) runAll() {
	for w.runs() != "" {
	}
}

// runsOne does jobs until one of a kind is done.
func (w *world) runsOne(kind storage.JobKind) {
	w.t.Helper()
	for done := storage.JobKind(""); done != kind; {
		done = w.runs()
		require.NotEmpty(w.t, done, "no job %s", kind)
	}
}

// visible are the titles that the board shows.
func (w *world) visible() (titles []string) {
	w.t.Helper()
	require.NoError(w.t, w.db.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Posts().List(ctx, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100}})
		for _, p := range page.Items {
			titles = append(titles, p.Title)
		}
		return err
	}))
	return titles
}

func (w *world) deletes(handle string) (d protocol.Departure) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
		d, err = w.DeleteProfile(ctx, tx, as(handle), protocol.OwnInput{})
		return err
	})
	return d
}

func (w *world) restores(handle string) error {
	return w.db.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		_, err := w.RestoreProfile(ctx, tx, as(handle), protocol.OwnInput{})
		return err
	})
}

// TestLeave_Orders: a shop that is deleted takes no orders, and those that are not over are settled first. It takes orders again when that is undone.
func TestLeave_Orders(t *testing.T) {
	each(t, func(w *world) {
		w.profile("rao")
		x := &storage.StoredOrder{ID: protocol.NewID(protocol.OrderID, start), State: protocol.OrderAwaiting, Paise: 80_00, MadeAt: start, MovedAt: start,
			HoldUntil: start.Add(20 * time.Minute), Sealed: []byte{1}}
		till := &storage.Till{Handle: "rao", Open: true, Terms: protocol.TillDraft{Open: true, Pickup: true}}
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Tills().Put(ctx, till))
			x.Till = till.ID
			return tx.Orders().Insert(ctx, x)
		})
		open := func() (is bool) {
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				got, err := tx.Tills().ByHandle(ctx, "rao")
				require.Equal(t, got.Open, got.Terms.Open)
				is = got.Open
				return err
			})
			return is
		}
		d := w.deletes("rao")
		require.Equal(t, protocol.LeaveSettling, d.State)
		require.Equal(t, []protocol.LeaveWait{{What: protocol.LeaveOrders, Count: 1, Until: new(x.HoldUntil)}}, d.Waits)
		require.False(t, open())
		require.NoError(t, w.restores("rao"))
		require.True(t, open())
		w.deletes("rao")
		x.State, x.HoldUntil, x.Paid = protocol.OrderPaid, time.Time{}, true
		w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Orders().Save(ctx, x) })
		w.now = w.now.Add(8 * 24 * time.Hour)
		w.runAll()
		require.Equal(t, []protocol.LeaveWait{{What: protocol.LeaveOrders, Count: 1}}, w.deletes("rao").Waits, "it is paid, and not handed over")
		x.State = protocol.OrderFulfilled
		w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Orders().Save(ctx, x) })
		require.Equal(t, protocol.LeaveHidden, w.deletes("rao").State)
		w.now = w.now.Add(8 * 24 * time.Hour)
		w.runAll()
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(t, must.Get(tx.Tills().ByID(ctx, till.ID))(t).Handle, "it is erased")
			return nil
		})
	})
}

// TestLeave_Undone: what a profile has is hidden in parts, also when the process ends between two of them, and exactly that is shown again.
func TestLeave_Undone(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha")
		w.profile("ravi")
		for n := range 120 {
			w.post("asha", fmt.Sprint("looms ", n))
		}
		bad, reply := w.post("asha", "bad"), w.post("ravi", "ravi's")
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			if _, _, err := tx.Moderation().InsertReport(ctx, reply, "r", ""); err != nil {
				return err
			}
			return tx.Posts().SetState(ctx, bad, protocol.Hidden, "operator: bad")
		})
		w.runAll()
		before := w.visible()
		require.Len(t, before, 100)
		d := w.deletes("asha")
		require.Equal(t, protocol.LeaveHidden, d.State)
		require.Empty(t, d.Waits)
		require.Equal(t, start.Add(protocol.UndoFor), *d.GoneAt)
		require.Equal(t, []string{"@asha until 2026-11-27"}, w.told)
		w.runAll()
		require.Equal(t, []string{"ravi's"}, w.visible())
		require.Equal(t, d, w.deletes("asha"), "once more changes nothing")
		w.runAll()
		require.NoError(t, w.restores("asha"))
		w.runsOne(storage.ConcealJob)
		require.Equal(t, protocol.LeaveHidden, w.deletes("asha").State, "while it is shown again")
		w.runAll()
		require.Equal(t, []string{"ravi's"}, w.visible())
		w.now = w.now.Add(6 * 24 * time.Hour)
		w.runAll()
		require.NoError(t, w.restores("asha"))
		w.runAll()
		require.Equal(t, before, w.visible())
		require.NoError(t, w.restores("asha"), "once more changes nothing")
		w.now = w.now.Add(30 * 24 * time.Hour)
		w.runAll()
		require.Equal(t, before, w.visible())
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, protocol.Hidden, must.Get(tx.Posts().ByID(ctx, bad))(t).State)
			return nil
		})
	})
}

// TestLeave_Settles: an agreed meeting is waited for, meanwhile no other is taken; then the profile is hidden. Undone, it takes requests again.
func TestLeave_Settles(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha")
		takes := func() (open bool) {
			w.write(func(ctx context.Context, tx *storage.Tx) error {
				p, err := tx.Profiles().Own(ctx, "asha")
				open = p.Meetings
				return err
			})
			return open
		}
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Meetings().PutSettings(ctx, &storage.MeetingSettings{Handle: "asha", Open: true}); err != nil {
				return err
			}
			return tx.Meetings().Insert(ctx, &storage.StoredMeeting{ID: protocol.NewID(protocol.MeetingID, tx.Now), Handle: "asha", Shown: true,
				State: protocol.MeetingApproved, StartsAt: start.Add(48 * time.Hour), EndsAt: start.Add(49 * time.Hour), AskedAt: tx.Now})
		})
		d := w.deletes("asha")
		require.Equal(t, protocol.LeaveSettling, d.State)
		require.Nil(t, d.GoneAt)
		require.Equal(t, []protocol.LeaveWait{{What: protocol.LeaveMeetings, Count: 1, Until: new(start.Add(49 * time.Hour))}}, d.Waits)
		require.False(t, takes())
		w.runAll()
		require.Empty(t, w.told, "it is shown until then")
		w.now = start.Add(50 * time.Hour)
		w.runAll()
		require.Equal(t, []string{"@asha until 2026-11-29"}, w.told)
		require.NoError(t, w.restores("asha"))
		require.True(t, takes())
	})
}

// TestLeave_Gone: after seven days a profile is erased in parts, and cannot be had back.
func TestLeave_Gone(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha")
		w.profile("ravi")
		var ids []string
		for n := range 120 {
			ids = append(ids, w.post("asha", fmt.Sprint("looms ", n)))
		}
		w.post("ravi", "ravi's")
		w.runAll()
		w.deletes("asha")
		w.runAll()
		w.now = w.now.Add(protocol.UndoFor)
		w.runsOne(storage.EraseProfileJob)
		require.Equal(t, protocol.Conflict, protocol.CodeOf(w.restores("asha")), "too late")
		w.runAll()
		require.Equal(t, []string{"ravi's"}, w.visible())
		w.write(func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Profiles().Own(ctx, "asha")), storage.ErrNotFound)
			require.ErrorIs(t, must.Err(tx.Leavings().BySubject(ctx, "asha")), storage.ErrNotFound)
			for _, id := range ids {
				p := must.Get(tx.Posts().ByID(ctx, id))(t)
				require.Equal(t, protocol.Deleted, p.State)
				require.Empty(t, p.Body)
			}
			entries, err := tx.Logs().After(ctx, w.board.ID(), 0, 1000)
			kinds := map[storage.LogKind]int{}
			for _, e := range entries {
				kinds[e.Kind]++
			}
			require.Equal(t, map[storage.LogKind]int{storage.LogCreate: 121, storage.LogHide: 120, storage.LogDelete: 120}, kinds)
			return err
		})
	})
}
