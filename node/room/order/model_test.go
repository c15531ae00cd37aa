package order_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

// A modelOrder is an order of the reference model, which knows nothing of tables and jobs.
type modelOrder struct {
	id, token string
	stranger  bool
	pieces    int
	paise     int64
	state     protocol.OrderState
	lapsed    bool // the clock ended it
	until     time.Time
	in, back  int64  // what was paid, and what of it goes back
	payment   string // that paid for it
	whole     int64  // of back, what is the order's own money
}

// A model is what the rules say about a shop that counts one variant, at ₹80.
type model struct {
	pieces int
	orders []*modelOrder
}

func (m *model) held(strangers bool) (n int) {
	for _, x := range m.orders {
		if x.state == protocol.OrderAwaiting && (x.stranger || !strangers) {
			n += x.pieces
		}
	}
	return n
}

// holds makes room for pieces, and says whether there is room; without it nothing changes. Strangers hold half of all at most, and the
// oldest gives way.
func (m *model) holds(pieces int, stranger bool) bool {
	free := func() int {
		if stranger {
			return max(0, min(m.pieces-m.held(false), max(1, (m.pieces+1)/2)-m.held(true)))
		}
		return max(0, m.pieces-m.held(false))
	}
	var before []modelOrder
	for _, x := range m.orders {
		before = append(before, *x)
	}
	if lacking := pieces - free(); lacking > 0 && lacking <= m.held(true) {
		for _, x := range m.orders {
			if lacking > 0 && x.stranger && x.state == protocol.OrderAwaiting {
				lacking -= x.pieces
				x.state, x.lapsed = protocol.OrderCanceled, true
			}
		}
	}
	if pieces <= free() {
		return true
	}
	for i, x := range m.orders {
		*x = before[i]
	}
	return false
}

// makes says whether an order is made.
func (m *model) makes(x *modelOrder) bool {
	made := m.holds(x.pieces, x.stranger)
	if made {
		m.orders = append(m.orders, x)
	}
	return made
}

func (m *model) advance(now time.Time) {
	for _, x := range m.orders {
		if x.state == protocol.OrderAwaiting && !x.until.After(now) {
			x.state, x.lapsed = protocol.OrderCanceled, true
		}
	}
}

// pays is what follows from a payment.
func (m *model) pays(x *modelOrder, payment string, paise int64) {
	x.in += paise
	payable := x.state == protocol.OrderAwaiting || x.state == protocol.OrderCanceled && x.lapsed
	if !payable || paise < x.paise {
		x.back += paise
		return
	}
	if x.state == protocol.OrderCanceled && !m.holds(x.pieces, false) {
		x.give(paise)
		return
	}
	m.pieces = max(0, m.pieces-x.pieces)
	x.state, x.lapsed, x.payment = protocol.OrderPaid, false, payment
	if excess := paise - x.paise; excess >= 100 { // less stays
		x.back += excess
	}
}

// give sends money of the order itself back; without a rupee left the order is refunded.
func (x *modelOrder) give(paise int64) {
	x.back, x.whole = x.back+paise, x.whole+paise
	if x.paise-x.whole < 100 {
		x.state, x.lapsed = protocol.OrderIsRefunded, false
	}
}

// cancels says whether the shop may cancel an order; what was paid goes back.
func (m *model) cancels(x *modelOrder) bool {
	switch x.state {
	case protocol.OrderAwaiting:
		x.state, x.lapsed = protocol.OrderCanceled, false
		return true
	case protocol.OrderCanceled:
		return true
	case protocol.OrderPaid:
		m.pieces += x.pieces
		x.state = protocol.OrderCanceled
		x.give(x.paise - x.whole)
		return true
	}
	return false
}

// refunds says whether the shop may send a part of an order's money back.
func (x *modelOrder) refunds(paise int64) bool {
	if x.payment == "" || x.state == protocol.OrderIsRefunded || paise > x.paise-x.whole {
		return false
	}
	x.give(paise)
	return true
}

var errDied = errors.New("the process died")

// A storm drives a shop and the model with the same events.
type storm struct {
	*world
	v     *paytest.Vendor
	m     *model
	r     *rand.Rand
	next  int
	late  []pay.Event
	dies  string         // where in its next write the process dies: "before" or "after" its commit
	deeds map[string]int // how often each kind of step was taken
}

// does writes as a process that dies where s.dies says.
func (s *storm) does(fn func(ctx context.Context, tx *storage.Tx) error) error {
	err := s.db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
		if err := fn(ctx, tx); err != nil || s.dies != "before" {
			return err
		}
		return errDied
	})
	if err == nil && s.dies == "after" {
		err = errDied
	}
	return err
}

// step takes one step. Its answer may be lost with the process, before or after the commit; whoever sent it sends it again.
func (s *storm) step() {
	s.t.Helper()
	name, do, want := s.act()
	if s.deeds[name]++; do == nil {
		return
	}
	dies := []string{"before", "after", "", "", "", "", "", "", "", ""}[s.r.IntN(10)]
	s.dies = dies
	err := s.does(do)
	s.dies = ""
	switch {
	case !errors.Is(err, errDied):
	case dies == "before":
		s.deeds["death"]++
		err = s.does(do)
	default:
		s.deeds["death after the commit"]++
		require.True(s.t, want(), "%s was refused", name)
		if name != "order" { // whose answer the hall keeps, by its idempotency key
			if err := s.does(do); err != nil {
				require.Equal(s.t, protocol.Conflict, protocol.CodeOf(err), "%s again: %v", name, err)
			}
		}
		return
	}
	refused := protocol.CodeOf(err) == protocol.Conflict || protocol.CodeOf(err) == protocol.Validation
	if !refused {
		require.NoError(s.t, err, name)
	}
	require.Equal(s.t, want(), !refused, "%s: %v", name, err)
}

// act draws a step: what is written, and what the model says of it, true unless it is refused.
func (s *storm) act() (name string, do func(ctx context.Context, tx *storage.Tx) error, want func() bool) {
	k := s.r.IntN(20)
	if len(s.m.orders) == 0 {
		k = 0
	}
	switch {
	case k < 6:
		return s.makes()
	case k < 11:
		return s.pays()
	case k == 11 && len(s.late) > 0: // a repeat changes nothing
		ev := s.late[s.r.IntN(len(s.late))]
		return "repeat", s.event(ev), func() bool { return true }
	case k == 12:
		x := s.m.orders[s.r.IntN(len(s.m.orders))]
		return "buyer cancels", func(ctx context.Context, tx *storage.Tx) error {
				_, err := s.Cancel(ctx, tx, protocol.Caller{}, protocol.OrderInput{Token: x.token})
				return err
			}, func() bool {
				return (x.state == protocol.OrderAwaiting || x.state == protocol.OrderCanceled) && s.m.cancels(x)
			}
	case k == 13:
		x := s.m.orders[s.r.IntN(len(s.m.orders))]
		return "shop cancels", s.update(protocol.OrderUpdate{ID: x.id, Do: protocol.OrderCancel}), func() bool { return s.m.cancels(x) }
	case k == 14:
		x := s.m.orders[s.r.IntN(len(s.m.orders))]
		return "delivered", s.update(protocol.OrderUpdate{ID: x.id, Do: protocol.OrderDelivered}), func() bool {
			may := x.state == protocol.OrderPaid
			if may {
				x.state = protocol.OrderFulfilled
			}
			return may
		}
	case k == 15:
		return s.refunds()
	case k == 16:
		return s.gives()
	case k == 17:
		n := s.r.IntN(12)
		return "recount", func(ctx context.Context, tx *storage.Tx) error {
			_, err := s.PutStock(ctx, tx, owner("rao"), protocol.StockDraft{Stock: []protocol.StockCount{{ID: s.last, Pieces: &n}}})
			return err
		}, func() bool { s.m.pieces = n; return true }
	}
	steps := []time.Duration{time.Second, time.Minute, 7 * time.Minute, 20 * time.Minute, 3 * time.Hour, 26 * time.Hour}
	s.pass(steps[s.r.IntN(len(steps))])
	s.m.advance(time.UnixMilli(s.now.Load()))
	return "clock", nil, nil
}

func (s *storm) makes() (string, func(context.Context, *storage.Tx) error, func() bool) {
	s.next++
	s.pass(time.Millisecond) // so that no two orders have one time
	x := &modelOrder{stranger: s.r.IntN(2) == 0, pieces: 1 + s.r.IntN(3), state: protocol.OrderAwaiting,
		until: time.UnixMilli(s.now.Load()).Add(protocol.HoldFor)}
	x.paise = int64(x.pieces) * 80_00
	who, in := known(s.next), wants(s.next, s.last, x.pieces)
	if x.stranger {
		who = stranger(s.next)
	}
	return "order", func(ctx context.Context, tx *storage.Tx) error {
		made, err := s.Make(ctx, tx, who, in)
		if err == nil && s.dies != "before" {
			x.id, x.token = made.Order.ID, made.Token
		}
		return err
	}, func() bool { return s.m.makes(x) }
}

func (s *storm) event(ev pay.Event) func(context.Context, *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		x, err := tx.Orders().ByID(ctx, ev.Ref[:len(ev.Ref)-2])
		if err != nil {
			return err
		}
		account, err := tx.PaymentAccounts().ByID(ctx, x.Account)
		if err == nil {
			_, err = s.Apply(ctx, tx, account, ev)
		}
		return err
	}
}

func (s *storm) pays() (string, func(context.Context, *storage.Tx) error, func() bool) {
	x := s.m.orders[max(0, len(s.m.orders)-1-s.r.IntN(6))]
	paise := x.paise + []int64{0, 0, 0, 0, 0, -1, 150, 50}[s.r.IntN(8)]
	ev := s.v.Pays(x.id, paise)
	s.late = append(s.late, ev)
	return "payment", s.event(ev), func() bool { s.m.pays(x, ev.PaymentID, paise); return true }
}

func (s *storm) update(in protocol.OrderUpdate) func(context.Context, *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := s.Update(ctx, tx, owner("rao"), in)
		return err
	}
}

// refunds is a refund by the shop here, whose answer is not lost: sent again it would be another one.
func (s *storm) refunds() (string, func(context.Context, *storage.Tx) error, func() bool) {
	x := s.m.orders[s.r.IntN(len(s.m.orders))]
	paise := 1_00 + s.r.Int64N(x.paise)
	in := protocol.OrderUpdate{ID: x.id, Do: protocol.OrderRefund, Amount: protocol.Decimal(protocol.MoneyOf(protocol.Rupee, paise).Amount)}
	_, err := does(s.world, s.Update, owner("rao"), in)
	if !x.refunds(paise) {
		require.Equal(s.t, protocol.Conflict, protocol.CodeOf(err), "%v", err)
		return "refund refused", nil, nil
	}
	require.NoError(s.t, err)
	s.jobs() // the order is refunded, when all of it is, once the refund is made
	return "refund", nil, nil
}

// gives is a refund that the shop makes in the vendor's own pages.
func (s *storm) gives() (string, func(context.Context, *storage.Tx) error, func() bool) {
	x := s.m.orders[s.r.IntN(len(s.m.orders))]
	if x.payment == "" || x.whole > 0 || x.state == protocol.OrderIsRefunded {
		return "nothing to give", nil, nil
	}
	paise := min(x.paise, s.v.Left(x.payment))
	if s.r.IntN(2) == 0 {
		paise = 1 + s.r.Int64N(paise)
	}
	ev := s.v.Gives(x.id, x.payment, paise)
	s.late = append(s.late, ev)
	return "refund at the provider", s.event(ev), func() bool { x.give(paise); return true }
}

// agrees compares the shop with the model, once the jobs that are due have run.
func (s *storm) agrees() {
	s.t.Helper()
	s.jobs()
	left := s.left(s.last)
	require.Equal(s.t, storage.Stocked{Pieces: s.m.pieces, Held: s.m.held(false), Strangers: s.m.held(true)}, left)
	for _, x := range s.m.orders[max(0, len(s.m.orders)-12):] {
		require.Equal(s.t, x.state, s.order(x.token).State, "%s: %+v", x.id, x)
	}
}

// settled compares all books.
func (s *storm) settled() {
	s.t.Helper()
	for range 3 {
		s.pass(25 * time.Hour)
		s.jobs()
	}
	s.m.advance(time.UnixMilli(s.now.Load()))
	kept, ledger := int64(0), int64(0)
	for _, x := range s.m.orders {
		require.Equal(s.t, x.state, s.order(x.token).State, "%s: %+v", x.id, x)
		kept += x.in - x.back
	}
	require.NoError(s.t, s.db.Read(s.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		till := must.Get(tx.Tills().ByHandle(ctx, "rao"))(s.t)
		return tx.Payments().Ledger(ctx, till.ID, start.Add(-time.Hour), start.AddDate(80, 0, 0), func(l storage.LedgerLine) error {
			ledger += l.Paise
			return nil
		})
	}))
	require.Equal(s.t, kept, ledger, "the ledger is the model's")
	require.Equal(s.t, s.v.Balance(), ledger, "and the vendor's, to the paisa")
}

// TestModel runs random orders, payments (doubled, repeated, late, partial, too large), cancellations, refunds here and at the provider, new
// counts of the stock, steps of the clock and deaths of the process, before and after its commits, against a small model.
func TestModel(t *testing.T) {
	seed, rounds := storagetest.Seed(t), storagetest.Rounds(t, 12)
	each(t, func(w *world) {
		s, steps := &storm{world: w, deeds: map[string]int{}, m: &model{}}, 150
		if os.Getenv("STOA_TEST_ROUNDS") != "" {
			steps = 900
		}
		s.v = paytest.NewVendor(func() time.Time { return time.UnixMilli(w.now.Load()) })
		w.Pay = func(money.Account) (pay.Provider, error) { return s.v, nil }
		w.account(protocol.PaymentDraft{Provider: protocol.PayRazorpay, KeyID: "rzp_test_1", KeySecret: "secret-key", WebhookSecrets: []string{"whsec-one"}})
		for round := range rounds {
			s.r = rand.New(rand.NewPCG(seed, uint64(round)))
			s.m.pieces = 1 + s.r.IntN(10)
			s.stock(s.last, s.m.pieces)
			for range steps {
				s.step()
				s.agrees()
			}
			s.settled()
		}
		w.t.(*testing.T).Logf("%d steps: %v", rounds*steps, fmt.Sprint(s.deeds))
	})
}
