package attention_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A storm drives a board and the model with the same events. The processes of the board take turns;
// there are two on PostgreSQL.
type storm struct {
	rooms []*world
	v     *paytest.Vendor
	m     *model
	r     *rand.Rand
	next  int // bidder
	late  []pay.Event
	deeds map[string]int // how often each kind of step was taken
}

// An act is one operation: what a process answers to it, and what the model does. The answer is
// errDied of a process that died before it gave one.
type act struct {
	name  string
	do    func(w *world) (string, error)
	model func(m *model) string
	again func(w *world) error // repeats it after its answer was lost, as its sender does; nil where nobody can
}

// w is the process whose turn it is.
func (s *storm) w() *world { return s.rooms[s.r.IntN(len(s.rooms))] }

func (s *storm) t() testing.TB { return s.rooms[0].t }

func (s *storm) nowT() time.Time { return time.UnixMilli(s.rooms[0].now.Load()).UTC() }

func (s *storm) step() {
	s.t().Helper()
	switch k := s.r.IntN(100); {
	case k < 64:
		s.alone(s.act())
	case k < 70 && len(s.rooms) > 1:
		s.race()
	case k < 70:
		s.alone(s.act())
	case k < 72:
		s.dies()
	case k < 74:
		s.workerDies()
	default:
		s.deeds["clock"]++
		steps := []time.Duration{time.Second, time.Minute, 7 * time.Minute, 20 * time.Minute, 3 * time.Hour, 26 * time.Hour}
		s.pass(steps[s.r.IntN(len(steps))])
	}
	s.runJobs()
}

func (s *storm) pass(d time.Duration) {
	s.rooms[0].pass(d)
	s.m.advance(s.nowT())
}

// runJobs does what is due, in every process at once.
func (s *storm) runJobs() {
	s.v.Answer = []pay.RefundStatus{pay.RefundOK, pay.RefundPending, pay.RefundNot}[s.r.IntN(3)]
	s.v.Refused = nil
	if s.r.IntN(5) == 0 {
		s.v.Refused = pay.Fail(pay.ErrTemporary, "503")
	}
	if len(s.rooms) == 1 || s.r.IntN(2) == 0 {
		s.w().runJobs(nil)
		return
	}
	var all sync.WaitGroup
	for _, w := range s.rooms {
		all.Go(func() { w.runJobs(nil) })
	}
	all.Wait()
	s.rooms[0].runJobs(nil) // what one of them left to the other
}

// act draws an operation; nil when there is nothing to do it with.
func (s *storm) act() *act {
	switch k := s.r.IntN(15); {
	case k < 6:
		return s.bid()
	case len(s.m.bids) == 0:
	case k < 11:
		return s.pay()
	case k == 11 && len(s.late) > 0: // a repeat changes nothing
		ev := s.late[s.r.IntN(len(s.late))]
		deliver := func(w *world) (string, error) { _, err := w.deliver(ev); return "", err }
		return &act{"repeat", deliver, func(*model) string { return "" }, nil}
	case k == 12:
		return s.withdraw()
	case k == 13 && len(s.m.live()) > 0:
		return s.remove()
	case k == 14 && len(s.m.live()) > 0:
		return s.give()
	}
	return nil
}

// alone does one operation.
func (s *storm) alone(a *act) {
	s.t().Helper()
	if a != nil {
		s.deeds[a.name]++
		got, err := a.do(s.w())
		require.NoError(s.t(), err, a.name)
		require.Equal(s.t(), a.model(s.m), got, a.name)
	}
}

// race does two operations at once in two processes. What follows is what the model says of them in
// one order or the other.
func (s *storm) race() {
	s.t().Helper()
	acts := []*act{s.act(), s.act()}
	if acts[0] == nil || acts[1] == nil {
		s.alone(acts[0])
		s.alone(acts[1])
		return
	}
	s.deeds["race"]++
	got, errs := make([]string, 2), make([]error, 2)
	var both sync.WaitGroup
	for i, w := range s.rooms[:2] {
		both.Go(func() { got[i], errs[i] = acts[i].do(w) })
	}
	both.Wait()
	require.NoError(s.t(), errors.Join(errs...))
	var why []string
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		m, want := s.m.clone(), make([]string, 2)
		for _, i := range order {
			want[i] = acts[i].model(m)
		}
		differs := ""
		if !slices.Equal(want, got) {
			differs = fmt.Sprintf("answers %q", want)
		} else if differs = cmp.Or(s.differs(m), s.paidOtherwise(m)); differs == "" {
			s.m = m
			return
		}
		why = append(why, differs)
	}
	require.Fail(s.t(), "no order of two operations gives this", "%s and %s answered %q; the model: %q", acts[0].name, acts[1].name, got, why)
}

// dies does an operation in a process that dies in it, and starts another one.
func (s *storm) dies() {
	s.t().Helper()
	a := s.act()
	if a == nil {
		return
	}
	s.deeds["death"]++
	w := s.w()
	w.fault = []fault{beforeCommit, afterCommit}[s.r.IntN(2)]
	got, err := a.do(w)
	committed := w.fault == afterCommit
	w.fault = ""
	w.restart()
	if !errors.Is(err, errDied) { // it was refused, which writes nothing
		require.NoError(s.t(), err, a.name)
		require.Equal(s.t(), a.model(s.m), got, a.name)
		return
	}
	if committed || a.again != nil {
		a.model(s.m)
	}
	if a.again != nil {
		require.NoError(s.t(), a.again(s.w()), a.name)
	}
}

// workerDies lets a worker die before, in or after one of its jobs. Others take its jobs when its
// lease is over.
func (s *storm) workerDies() {
	s.t().Helper()
	s.deeds["worker's death"]++
	s.pass([]time.Duration{0, time.Minute, 20 * time.Minute, 26 * time.Hour}[s.r.IntN(4)])
	w := s.w()
	jobs, _, err := w.db.ClaimJobs(context.Background(), "dies", 10, 2*time.Minute)
	require.NoError(s.t(), err)
	for i, j := range jobs {
		w.fault = []fault{"", "", beforeCommit, afterCommit}[s.r.IntN(4)]
		if w.fault == "" && (i == 0 || s.r.IntN(2) == 0) { // before the job, or between its calls and what it writes
			if i > 0 {
				_, err = w.handle(j)
			}
			break
		}
		after := must.Get(w.handle(j))(s.t())
		if err = w.finish(j, after); err != nil {
			break
		}
	}
	w.fault = ""
	if !errors.Is(err, errDied) {
		require.NoError(s.t(), err)
	}
	w.restart()
	s.pass(2*time.Minute + time.Millisecond)
}

func (s *storm) bid() *act {
	paise := int64(100+10*s.r.IntN(12)) * 100
	s.next++
	by, at := s.next, s.nowT()
	id := ""
	s.pass(time.Millisecond) // so that no two bids have one time
	return &act{
		name: "bid",
		do: func(w *world) (string, error) {
			got, err := w.bids(keyed(by), fmt.Sprint(paise/100))
			if code := protocol.CodeOf(err); code == protocol.SlotTaken {
				return string(code), nil
			}
			if err != nil {
				return "", err
			}
			id, at = got.Bid.ID, got.Bid.CreatedAt
			return string(*got.Bid.Hold), nil
		},
		model: func(m *model) string {
			made, keeps := m.admits(paise, s.nowT())
			if !made {
				return string(protocol.SlotTaken)
			}
			if id == "" { // its answer was lost
				at, id = s.newest()
			}
			m.bids = append(m.bids, &modelBid{id: id, by: by, at: at, paise: paise, state: protocol.BidHeld, keeps: keeps, until: at.Add(20 * time.Minute)})
			if keeps {
				return string(protocol.HoldReserving)
			}
			return string(protocol.HoldCompeting)
		},
	}
}

// newest is the bid that the board's owner sees first.
func (s *storm) newest() (at time.Time, id string) {
	w := s.w()
	require.NoError(s.t(), w.read(func(ctx context.Context, tx *storage.Tx) error {
		page, err := w.Bids(ctx, tx, owner("asha"), protocol.BidQuery{Paging: protocol.Paging{Limit: 1}})
		if err == nil {
			at, id = page.Items[0].CreatedAt, page.Items[0].ID
		}
		return err
	}))
	return at, id
}

func (s *storm) pay() *act {
	at := max(0, len(s.m.bids)-1-s.r.IntN(6))
	b := s.m.bids[at]
	paise := b.paise
	switch s.r.IntN(8) {
	case 0:
		paise -= 1
	case 1:
		paise += 150
	case 2:
		paise += 50
	}
	ev, times := s.v.Pays(b.id, paise), 1+s.r.IntN(3)
	s.late = append(s.late, ev)
	return &act{
		name: "payment",
		do: func(w *world) (string, error) {
			for range times {
				if _, err := w.deliver(ev); err != nil {
					return "", err
				}
			}
			return "", nil
		},
		model: func(m *model) string { m.pays(m.bids[at], ev.PaymentID, paise, s.nowT()); return "" },
		again: func(w *world) error { return must.Err(w.deliver(ev)) },
	}
}

func (s *storm) withdraw() *act {
	at := len(s.m.bids) - 1
	b := s.m.bids[at]
	do := func(w *world) (string, error) {
		return refusal(w.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(w.Withdraw(ctx, tx, protocol.Caller{Standing: protocol.Signed, KeyID: fmt.Sprintf("key-%d", b.by)}, protocol.BidInput{ID: b.id}))
		}))
	}
	return &act{"withdrawal", do, func(m *model) string { return conflict(m.withdraws(m.bids[at])) }, func(w *world) error { return must.Err(do(w)) }}
}

func (s *storm) remove() *act {
	all := s.m.live()
	b := all[s.r.IntN(len(all))]
	at := slices.Index(s.m.bids, b)
	do := func(w *world) (string, error) {
		return refusal(w.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(w.Remove(ctx, tx, owner("asha"), protocol.BidRemoval{OwnBidRef: protocol.OwnBidRef{ID: b.id}, Reason: "spam"}))
		}))
	}
	return &act{"removal", do, func(m *model) string { return conflict(m.removes(m.bids[at])) }, func(w *world) error { return must.Err(do(w)) }}
}

// give is a refund that the owner makes in the vendor's own pages, of a part of a live bid or of all.
func (s *storm) give() *act {
	all := s.m.live()
	b := all[s.r.IntN(len(all))]
	at := slices.Index(s.m.bids, b)
	paise := min(b.paise-b.given, s.v.Left(b.payment))
	if paise <= 0 {
		return nil
	}
	if s.r.IntN(2) == 0 {
		paise = 1 + s.r.Int64N(paise)
	}
	ev := s.v.Gives(b.id, b.payment, paise)
	s.late = append(s.late, ev)
	do := func(w *world) (string, error) { _, err := w.deliver(ev); return "", err }
	return &act{"refund at the provider", do, func(m *model) string { m.gives(m.bids[at], paise); return "" },
		func(w *world) error { return must.Err(do(w)) }}
}

// refusal makes an answer of a refusal that the model knows.
func refusal(err error) (string, error) {
	if code := protocol.CodeOf(err); code == protocol.Conflict {
		return string(code), nil
	}
	return "", err
}

func conflict(done bool) string {
	if done {
		return ""
	}
	return string(protocol.Conflict)
}

// differs says in what the board is not as a model says, "" when it is.
func (s *storm) differs(m *model) string {
	board := must.Get(s.w().readBoard())(s.t())
	var have, want []string
	for _, b := range board.Bids {
		have = append(have, b.ID)
	}
	for _, b := range m.live() {
		want = append(want, b.id)
	}
	if !slices.Equal(have, want) {
		return fmt.Sprintf("live are %q, not %q", have, want)
	}
	if free := m.slots - m.used(nil); free != board.FreeSlots {
		return fmt.Sprintf("%d slots are free, not %d", board.FreeSlots, free)
	}
	return ""
}

// paidOtherwise says which live bid another payment paid for than a model says, "" for none: of two payments of one bid, the first
// pays for it, and the other goes back.
func (s *storm) paidOtherwise(m *model) string {
	for _, b := range m.live() {
		var p *storage.StoredPayment
		require.NoError(s.t(), s.rooms[0].read(func(ctx context.Context, tx *storage.Tx) (err error) {
			p, err = money.Placed(ctx, tx, b.id)
			return err
		}))
		if p == nil || p.PaymentID != b.payment {
			return fmt.Sprintf("%s is paid by %+v, not by %s", b.id, p, b.payment)
		}
	}
	return ""
}

// agrees compares the board with the model.
func (s *storm) agrees() {
	s.t().Helper()
	require.LessOrEqual(s.t(), len(s.m.live()), s.m.slots)
	require.Empty(s.t(), s.differs(s.m))
}

// settled lets every refund be made and compares all books.
func (s *storm) settled() {
	s.t().Helper()
	s.v.Refused, s.v.Answer = nil, ""
	for range 3 {
		s.pass(25 * time.Hour)
		s.w().runJobs(nil)
	}
	w := s.w()
	byHand := s.byHand(w)
	require.Equal(s.t(), s.m.kept(), w.kept(), "the ledger is the model's")
	require.Equal(s.t(), s.v.Balance()-byHand, w.kept(), "and the vendor's, to the paisa")
	for _, b := range s.m.bids {
		if b.paid > 0 {
			require.Equal(s.t(), b.state, w.bid(b.id).State, "%s", b.id)
		}
	}
}

// byHand lets the owner make the refunds that the vendor refused every day for a week, and returns
// their sum in paise.
func (s *storm) byHand(w *world) (sum int64) {
	s.t().Helper()
	for _, b := range s.m.bids {
		if b.paid == 0 {
			continue
		}
		for _, r := range w.bid(b.id).Refunds {
			if r.State != string(storage.RefundFailed) {
				continue
			}
			s.deeds["refund by hand"]++
			must.Get(does(w, w.MarkRefunded, owner("asha"), protocol.RefundDone{ID: r.ID, Reference: "UTR 431298765099"}))(s.t())
			paise, fault := protocol.Decimal(r.Amount.Amount).Paise()
			require.Nil(s.t(), fault)
			sum += paise
		}
	}
	require.LessOrEqual(s.t(), s.deeds["refund by hand"], 1+s.next/100, "few refunds fail for a week")
	return sum
}

// TestModel runs random bids, payments (doubled, repeated, late, partial, too large), lapses,
// withdrawals, removals, displacements, steps of the clock, and deaths of processes and workers
// against a small model; on PostgreSQL with two processes that take turns and race. In a soak of ten
// minutes it takes 100,000 steps, most of them on SQLite, where one costs less.
func TestModel(t *testing.T) {
	seed := storagetest.Seed(t)
	const all = 16
	rounds := storagetest.Rounds(t, all)
	soak := os.Getenv("STOA_TEST_ROUNDS") != ""
	each(t, func(w *world) {
		s, rounds, steps := &storm{rooms: []*world{w}, deeds: map[string]int{}}, rounds, 150
		switch postgres := w.config.URL != ""; {
		case soak && postgres:
			steps = 750
		case soak:
			rounds, steps = 4*rounds, 1375
		case postgres:
			steps = 40
		}
		if w.config.URL != "" {
			s.rooms = append(s.rooms, w.another())
			w.t.Cleanup(func() { require.NoError(w.t, s.rooms[1].db.Close()) })
		}
		for round := range rounds {
			s.r, s.late = rand.New(rand.NewPCG(seed, uint64(round))), nil
			if round > 0 { // another board, in the same database
				s.clear()
			}
			slots := 1 + s.r.IntN(4)
			s.m = &model{slots: slots, protect: 2, days: 3, step: 10_00}
			s.v = w.market(protocol.AttentionDraft{Slots: slots, SlotDays: 3, ProtectHours: new(2)})
			for _, other := range s.rooms {
				other.Pay = w.Pay
			}
			for range steps {
				s.step()
				s.agrees()
			}
			s.settled()
		}
		w.t.(*testing.T).Logf("%d steps: %v", rounds*steps, s.deeds)
	})
}

// clear deletes the board and its owner.
func (s *storm) clear() {
	w := s.rooms[0]
	must.Get(does(w, w.Close, owner("asha"), protocol.OwnInput{}))(w.t)
	w.runJobs(nil)
	require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") }))
	w.runJobs(nil) // news of the first board
}
