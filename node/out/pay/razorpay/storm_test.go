package razorpay_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
)

// A ledger keeps what events report, once each by payment and refund, as a consumer does.
type ledger struct {
	refs     map[string]string // reference by payment
	paid     map[string]int64  // by payment
	refunded map[string]int64  // by refund, done only
	of       map[string]string // payment by refund
}

func (l *ledger) apply(events []pay.Event) {
	for _, e := range events {
		switch e.Kind {
		case pay.Paid, pay.Partial:
			l.paid[e.PaymentID], l.refs[e.PaymentID] = e.AmountPaise, e.Ref
		case pay.RefundDone:
			l.refunded[e.RefundID], l.of[e.RefundID] = e.AmountPaise, e.PaymentID
		}
	}
}

// storm is a random run of payers, a provider with faults, and webhooks that are doubled, lost, late
// and out of order.
type storm struct {
	*world
	t       *testing.T
	r       *rand.Rand
	n       int
	links   []string
	waiting []string // payments that the bank has not answered
	asked   map[string]int64
	l       ledger
}

// again repeats a call until the vendor answers.
func (s *storm) again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, pay.ErrTemporary) {
			return err
		}
	}
}

func (s *storm) step() {
	pick := func(from []string) string { return from[s.r.IntN(len(from))] }
	amount := []int64{1500_00, 1500_00, 1500_00, 1, 700_00, 1500_01, 3000_00}[s.r.IntN(7)]
	switch op := s.r.IntN(12); {
	case op < 2 || len(s.links) == 0:
		s.n++
		var l pay.Link
		require.NoError(s.t, s.again(func() (err error) { l, err = s.p.CreateLink(s.t.Context(), s.Request(s.n)); return err }))
		s.links = append(s.links, l.ProviderID)
	case op < 5:
		s.vendor.Pay(pick(s.links), amount) // an error is a page that takes no payment
	case op == 5:
		if id, err := s.vendor.Begin(pick(s.links), amount); err == nil {
			s.waiting = append(s.waiting, id)
		}
	case op == 6:
		if id, err := s.vendor.Fail(pick(s.links), amount); err == nil {
			s.waiting = append(s.waiting, id)
		}
	case op == 7 && len(s.waiting) > 0:
		s.vendor.Settle(pick(s.waiting))
	case op == 8:
		err := s.again(func() error { return s.p.CancelLink(s.t.Context(), pick(s.links)) })
		require.True(s.t, err == nil || errors.Is(err, pay.ErrPaid), "%v", err)
	case op == 9:
		s.pass(time.Duration(s.r.IntN(600)) * time.Second)
	case op == 10:
		s.refund()
	default:
		if pending := s.vendor.PendingRefunds(); len(pending) > 0 {
			require.NoError(s.t, s.vendor.SettleRefund(pick(pending), s.r.IntN(4) > 0))
		}
	}
}

// refund asks for the refund of a payment that is known, always by the same key and amount.
func (s *storm) refund() {
	for payment, paid := range s.l.paid { // in a random order
		paise, known := s.asked[payment]
		if paise = max(paise, min(paid, 100+s.r.Int64N(paid))); !known {
			s.asked[payment] = paise
		}
		paise = s.asked[payment]
		err := s.again(func() error { _, err := s.p.Refund(s.t.Context(), payment, "refund-"+payment, paise); return err })
		require.True(s.t, err == nil || errors.Is(err, pay.ErrAmount) && paise < 100, "%v", err)
		return
	}
}

// TestStorm: whatever happens to webhooks and requests, polling in the end makes the ledger equal to
// the vendor's book, to the paisa.
func TestStorm(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("STOA_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	s := &storm{world: open(t), t: t, r: rand.New(rand.NewPCG(seed, 1)), asked: map[string]int64{}}
	s.l = ledger{map[string]string{}, map[string]int64{}, map[string]int64{}, map[string]string{}}
	faults := rand.New(rand.NewPCG(seed, 2))
	s.vendor.SetFault(func(*http.Request) paytest.Fault {
		if faults.IntN(4) > 0 {
			return paytest.Fault{}
		}
		return paytest.Faults[faults.IntN(len(paytest.Faults))]
	})
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		events, err := s.p.ParseWebhook(r.Header, raw)
		if err != nil || s.r.IntN(5) == 0 { // refused now and then after it was applied, so that it comes again
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		s.l.apply(events)
	}))
	t.Cleanup(door.Close)
	delivered := 0
	for i := range 600 {
		s.step()
		if i%7 == 0 {
			delivered += s.vendor.Deliver(t.Context(), door.Client(), door.URL, paytest.Mischief{Rand: s.r, Double: 0.3, Lose: 0.2, Delay: 0.2, Shuffle: true})
		}
	}
	require.Positive(t, delivered)
	s.reconcile()
}

func (s *storm) reconcile() {
	for _, id := range s.links {
		require.NoError(s.t, s.again(func() error {
			events, err := s.p.FetchLink(s.t.Context(), id)
			s.l.apply(events)
			return err
		}))
	}
	for payment, paise := range s.asked { // the same key gives the id of the refund, whose state is fetched
		var r pay.Refund
		if s.again(func() (err error) { r, err = s.p.Refund(s.t.Context(), payment, "refund-"+payment, paise); return err }) != nil {
			continue
		}
		id := r.ID
		require.NoError(s.t, s.again(func() (err error) { r, err = s.p.FetchRefund(s.t.Context(), id); return err }))
		if r.Status == pay.RefundOK {
			s.l.apply([]pay.Event{{Kind: pay.RefundDone, RefundID: r.ID, PaymentID: payment, AmountPaise: paise}})
		}
	}
	got := map[string]paytest.Balance{}
	for payment, paise := range s.l.paid {
		b := got[s.l.refs[payment]]
		b.Payments, b.Paid = b.Payments+1, b.Paid+paise
		got[s.l.refs[payment]] = b
	}
	for refund, paise := range s.l.refunded {
		b := got[s.l.refs[s.l.of[refund]]]
		b.Refunded += paise
		got[s.l.refs[s.l.of[refund]]] = b
	}
	book, payments := s.vendor.Book(), 0
	for ref, want := range book {
		want.Pending = 0
		require.Equal(s.t, want, got[ref], ref)
		payments += want.Payments
	}
	require.Greater(s.t, payments, 5)
	require.NotEmpty(s.t, s.l.refunded)
	s.t.Logf("%d links, %d payments, %d refunds done", len(book), payments, len(s.l.refunded))
}
