package attention_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/provider/pay"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A modelBid is a bid of the reference model, which knows nothing of tables and jobs.
type modelBid struct {
	id       string
	n        int // in the order in which they were made
	paise    int64
	state    protocol.BidState
	keeps    bool
	until    time.Time
	free     time.Time
	ends     time.Time
	refunded int64
	paid     int64
}

// A model is what the rules say about a board, written as plainly as possible.
type model struct {
	slots, protect, days int
	step                 int64
	bids                 []*modelBid
}

func (m *model) advance(now time.Time) {
	for _, b := range m.bids {
		switch {
		case b.state == protocol.BidHeld && !b.until.After(now):
			b.state, b.keeps = protocol.BidLapsed, false
		case b.state == protocol.BidLive && !b.ends.After(now):
			b.state = protocol.BidEnded
		}
	}
}

func (m *model) live() (all []*modelBid) {
	for _, b := range m.bids {
		if b.state == protocol.BidLive {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *modelBid) int {
		if a.paise != b.paise {
			return int(b.paise - a.paise)
		}
		return a.n - b.n
	})
	return all
}

func (m *model) used(except *modelBid) (n int) {
	for _, b := range m.bids {
		if b.state == protocol.BidLive || b.keeps && b != except {
			n++
		}
	}
	return n
}

func (m *model) lowest(now time.Time) *modelBid {
	all := m.live()
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].free.After(now) {
			return all[i]
		}
	}
	return nil
}

// admits says whether a bid is made, and whether it keeps a slot.
func (m *model) admits(paise int64, now time.Time) (made, keeps bool) {
	if m.used(nil) < m.slots {
		return true, true
	}
	low := m.lowest(now)
	return low != nil && paise >= low.paise+m.step, false
}

// pays is what follows from a payment.
func (m *model) pays(b *modelBid, paise int64, now time.Time) {
	b.paid += paise
	unpaid := b.state == protocol.BidHeld || b.state == protocol.BidLapsed || b.state == protocol.BidWithdrawn
	if !unpaid || paise < b.paise {
		b.refunded += paise
		return
	}
	if !b.keeps && m.used(b) >= m.slots {
		low := m.lowest(now)
		if low == nil || b.paise < low.paise+m.step {
			b.state = protocol.BidRefunded
			b.refunded += paise
			return
		}
		low.state = protocol.BidOutbid
		span := time.Duration(m.days) * 24 * time.Hour
		back := low.paise * low.ends.Sub(now).Milliseconds() / span.Milliseconds()
		if low.ends.Sub(now) >= span {
			back = low.paise
		}
		if back >= 100 {
			low.state = protocol.BidRefunded
			low.refunded += back
		}
	}
	b.keeps, b.state = false, protocol.BidLive
	b.free = now.Add(time.Duration(m.protect) * time.Hour)
	b.ends = now.Add(time.Duration(m.days) * 24 * time.Hour)
	b.refunded += paise - b.paise
}

func (m *model) kept() (sum int64) {
	for _, b := range m.bids {
		sum += b.paid - b.refunded
	}
	return sum
}

// A storm drives a board and the model with the same events.
type storm struct {
	w    *world
	v    *vendor
	m    *model
	r    *rand.Rand
	next int // bidder
	late []pay.Event
}

func (s *storm) nowT() time.Time { return time.UnixMilli(s.w.now.Load()).UTC() }

func (s *storm) step() {
	s.w.t.Helper()
	switch k := s.r.IntN(20); {
	case k < 6:
		s.makeBid()
	case k < 12 && len(s.m.bids) > 0:
		s.pay()
	case k < 13 && len(s.late) > 0: // a repeat changes nothing
		s.w.delivers(s.late[s.r.IntN(len(s.late))])
	case k < 14 && len(s.m.bids) > 0:
		s.withdraw()
	case k < 15 && len(s.m.live()) > 0:
		s.remove()
	default:
		steps := []time.Duration{time.Second, time.Minute, 7 * time.Minute, 20 * time.Minute, 3 * time.Hour, 26 * time.Hour}
		s.w.pass(steps[s.r.IntN(len(steps))])
	}
	s.m.advance(s.nowT())
	s.v.answer = []pay.RefundStatus{pay.RefundOK, pay.RefundPending}[s.r.IntN(2)]
	s.v.refund = nil
	if s.r.IntN(5) == 0 {
		s.v.refund = pay.Fail(pay.ErrTemporary, "503")
	}
	s.w.runJobs(func(storage.Job) bool { return false })
}

func (s *storm) makeBid() {
	paise := int64(100+10*s.r.IntN(12)) * 100
	s.next++
	made, keeps := s.m.admits(paise, s.nowT())
	got, err := s.w.bids(keyed(s.next), fmt.Sprint(paise/100))
	if !made {
		require.Equal(s.w.t, protocol.SlotTaken, protocol.CodeOf(err))
		return
	}
	require.NoError(s.w.t, err)
	require.Equal(s.w.t, keeps, *got.Bid.Hold == protocol.HoldReserving)
	s.m.bids = append(s.m.bids, &modelBid{id: got.Bid.ID, n: s.next, paise: paise, state: protocol.BidHeld, keeps: keeps, until: got.HoldExpiresAt})
	s.w.pass(time.Millisecond) // so that no two bids have one time
}

func (s *storm) pay() {
	b := s.m.bids[max(0, len(s.m.bids)-1-s.r.IntN(6))]
	paise := b.paise
	switch s.r.IntN(8) {
	case 0:
		paise -= 1
	case 1:
		paise += 150
	}
	ev := s.v.pays(b.id, paise)
	s.m.pays(b, paise, s.nowT())
	for range 1 + s.r.IntN(3) {
		s.w.delivers(ev)
	}
	s.late = append(s.late, ev)
}

func (s *storm) withdraw() {
	b := s.m.bids[len(s.m.bids)-1]
	err := s.w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := s.w.Withdraw(ctx, tx, protocol.Caller{Standing: protocol.Signed, KeyID: fmt.Sprintf("key-%d", b.n)}, protocol.BidInput{ID: b.id})
		return err
	})
	if b.state == protocol.BidHeld || b.state == protocol.BidWithdrawn {
		require.NoError(s.w.t, err)
		b.state, b.keeps = protocol.BidWithdrawn, false
		return
	}
	require.Equal(s.w.t, protocol.Conflict, protocol.CodeOf(err))
}

func (s *storm) remove() {
	all := s.m.live()
	b := all[s.r.IntN(len(all))]
	require.NoError(s.w.t, s.w.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := s.w.Remove(ctx, tx, owner("asha"), protocol.BidRemoval{OwnBidRef: protocol.OwnBidRef{ID: b.id}, Reason: "spam"})
		return err
	}))
	b.state = protocol.BidRefunded
	b.refunded += b.paise
}

// agrees compares the board with the model.
func (s *storm) agrees() {
	s.w.t.Helper()
	board, err := s.w.readBoard()
	require.NoError(s.w.t, err)
	live := s.m.live()
	require.LessOrEqual(s.w.t, len(live), s.m.slots)
	require.Len(s.w.t, board.Bids, len(live))
	for i, b := range live {
		require.Equal(s.w.t, b.id, board.Bids[i].ID)
	}
	require.Equal(s.w.t, s.m.slots-s.m.used(nil), board.FreeSlots)
}

// settled lets every refund be made and compares all books.
func (s *storm) settled() {
	s.w.t.Helper()
	s.v.refund, s.v.answer = nil, ""
	for range 4 {
		s.w.pass(3 * time.Hour)
		s.m.advance(s.nowT())
		s.w.runJobs(nil)
	}
	require.Equal(s.w.t, s.m.kept(), s.w.kept(), "the ledger is the model's")
	require.Equal(s.w.t, s.v.balance(), s.w.kept(), "and the vendor's, to the paisa")
	require.NoError(s.w.t, s.w.db.Check(context.Background()))
	for _, b := range s.m.bids {
		if b.paid > 0 {
			require.Equal(s.w.t, b.state, s.w.bid(b.id).State, "%s", b.id)
		}
	}
}

// TestModel runs random bids, payments (doubled, repeated, late, partial, too large), lapses,
// withdrawals, removals, displacements and steps of the clock against a small model.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := storagetest.Seed(t)
	const all = 16
	rounds, steps := storagetest.Rounds(t, all), 150
	if rounds == all {
		steps = 6250 // 100,000 in all
	}
	each(t, func(w *world) {
		w.t.(*testing.T).Logf("%d steps", rounds*steps)
		for round := range rounds {
			s := &storm{w: w, r: rand.New(rand.NewPCG(seed, uint64(round)))}
			if round > 0 { // a board of its own, in the same database
				require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
					_, err := w.Close(ctx, tx, owner("asha"), protocol.OwnInput{})
					return errors.Join(err)
				}))
				w.runJobs(nil)
				require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.DeleteProfile(ctx, "asha") }))
			}
			slots := 1 + s.r.IntN(4)
			s.m = &model{slots: slots, protect: 2, days: 3, step: 10_00}
			s.v = w.market(protocol.AttentionDraft{Slots: slots, SlotDays: 3, ProtectHours: new(2)})
			for range steps {
				s.step()
				s.agrees()
			}
			s.settled()
		}
	})
}
