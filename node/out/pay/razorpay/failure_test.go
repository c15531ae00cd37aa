package razorpay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/outbound"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/razorpay"
)

// calls are all requests that a provider makes.
func calls(w *world, linkID, paymentID, refundID string) map[string]func(context.Context, *razorpay.Provider) error {
	return map[string]func(context.Context, *razorpay.Provider) error{
		"check": func(ctx context.Context, p *razorpay.Provider) error { return p.Check(ctx) },
		"create": func(ctx context.Context, p *razorpay.Provider) error {
			_, err := p.CreateLink(ctx, w.Request(9))
			return err
		},
		"fetch":  func(ctx context.Context, p *razorpay.Provider) error { _, err := p.FetchLink(ctx, linkID); return err },
		"cancel": func(ctx context.Context, p *razorpay.Provider) error { return p.CancelLink(ctx, linkID) },
		"refund": func(ctx context.Context, p *razorpay.Provider) error {
			_, err := p.Refund(ctx, paymentID, "key-0123456789", 100)
			return err
		},
		"fetch refund": func(ctx context.Context, p *razorpay.Provider) error {
			_, err := p.FetchRefund(ctx, refundID)
			return err
		},
	}
}

func settled(t *testing.T, w *world) (linkID, paymentID, refundID string) {
	t.Helper()
	paymentID, err := w.vendor.Pay(w.link(t, 1).ProviderID, 1500_00)
	require.NoError(t, err)
	r, err := w.p.Refund(t.Context(), paymentID, "key-of-the-first-refund", 100)
	require.NoError(t, err)
	return w.link(t, 2).ProviderID, paymentID, r.ID
}

// TestFaults: each request meets each fault of the vendor, is temporary, and works when it is sent
// again. In the end everything was done once.
func TestFaults(t *testing.T) {
	t.Parallel()
	for i, fault := range paytest.Faults {
		w := open(t)
		linkID, paymentID, refundID := settled(t, w)
		for name, call := range calls(w, linkID, paymentID, refundID) {
			w.vendor.FailNext(fault)
			err := call(t.Context(), w.p)
			require.ErrorIs(t, err, pay.ErrTemporary, "%s, fault %d", name, i)
			require.NotErrorIs(t, err, pay.ErrRefused, "%s, fault %d", name, i)
			require.Equal(t, time.Duration(fault.RetryAfter)*time.Second, pay.RetryAfter(err), "%s, fault %d", name, i)
			require.NotContains(t, err.Error(), secret)
			require.NoError(t, call(t.Context(), w.p), "%s again, fault %d", name, i)
		}
		book := w.vendor.Book()
		require.Len(t, book, 3, "fault %d: links of attempts 1, 2 and 9", i)
		require.Equal(t, paytest.Balance{Payments: 1, Paid: 1500_00, Pending: 200}, book[w.Request(1).Ref], "fault %d: one refund of each key", i)
	}
}

// TestStatus: the HTTP status decides, whatever the body says.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   error
	}{
		{400, `{"error":{"code":"SERVER_ERROR","description":"strange"}}`, pay.ErrRefused},
		{400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"The id provided does not exist"}}`, pay.ErrUnknown},
		{401, ``, pay.ErrCredentials},
		{403, `{}`, pay.ErrCredentials},
		{404, `<html>`, pay.ErrUnknown},
		{408, ``, pay.ErrTemporary},
		{409, `{"error":{"code":"BAD_REQUEST_ERROR"}}`, pay.ErrTemporary},
		{422, `{}`, pay.ErrRefused},
		{425, ``, pay.ErrTemporary},
		{429, ``, pay.ErrTemporary},
		{500, `{"error":{"code":"SERVER_ERROR"}}`, pay.ErrTemporary},
		{502, `<html>`, pay.ErrTemporary},
		{503, `{"error":{"code":"BAD_REQUEST_ERROR","description":"payment link creation with reference ID already attempted"}}`, pay.ErrTemporary},
		{504, ``, pay.ErrTemporary},
		{302, ``, pay.ErrRefused},
		{200, ``, pay.ErrTemporary},
		{200, `[]`, pay.ErrTemporary},
		{200, `{"id":1}`, pay.ErrTemporary},
		{200, `{"x":"` + strings.Repeat("a", 300<<10) + `"}`, pay.ErrTemporary},
		{400, strings.Repeat("a", 300<<10), pay.ErrRefused},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			w.Write([]byte(c.body))
		}))
		w := open(t)
		p := w.account(t, func(a *razorpay.Account) { a.Base = s.URL })
		_, err := p.CreateLink(t.Context(), w.Request(1))
		require.ErrorIs(t, err, c.want, "%d %.60s", c.status, c.body)
		require.Equal(t, c.want == pay.ErrTemporary, isTemporary(err), "%d %.60s", c.status, c.body)
		require.Less(t, len(err.Error()), 300)
		s.Close()
	}
}

func isTemporary(err error) bool {
	f, ok := err.(*pay.Failure)
	return ok && f.Kind == pay.ErrTemporary
}

// TestReason: the vendor's text is bounded and on one line.
func TestReason(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"description":"a\nb\u202e%s"}}`, strings.Repeat("x", 1000))
	}))
	t.Cleanup(s.Close)
	w := open(t)
	err := w.account(t, func(a *razorpay.Account) { a.Base = s.URL }).Check(t.Context())
	require.EqualError(t, err, "razorpay answered 400: a b "+strings.Repeat("x", 196))
}

// TestStrangeLinks: an answer that is not the link that was asked for is not shown to anybody.
func TestStrangeLinks(t *testing.T) {
	t.Parallel()
	good := `{"id":"plink_1","short_url":"https://rzp.io/i/1","status":"created","amount":150000,"currency":"INR","reference_id":"REF","expire_by":1800000000}`
	for _, change := range [][2]string{
		{`150000`, `150001`}, {`"INR"`, `"USD"`}, {`REF`, `bid_2-1`}, {`https://`, `http://`}, {`https://rzp.io/i/1`, `javascript:alert(1)`},
		{`https://rzp.io/i/1`, ``}, {`https://rzp.io`, `https://u:p@rzp.io`}, {`plink_1`, `../x`}, {`150000`, `1.5e5`}, {`150000`, `-150000`},
		{`"created"`, `"expired"`},
	} {
		w := open(t)
		ref := w.Request(1).Ref
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Write([]byte(strings.Replace(strings.Replace(good, change[0], change[1], 1), "REF", ref, 1)))
		}))
		p := w.account(t, func(a *razorpay.Account) { a.Base = s.URL })
		_, err := p.CreateLink(t.Context(), w.Request(1))
		require.Error(t, err, "%v", change)
		s.Close()
	}
}

// TestOutbound: with the client of the node, an address that is not public is refused for good.
func TestOutbound(t *testing.T) {
	t.Parallel()
	w := open(t)
	p := w.account(t, func(a *razorpay.Account) { a.Client = outbound.New(outbound.Options{}) })
	err := p.Check(t.Context())
	require.ErrorIs(t, err, pay.ErrRefused)
	require.NotErrorIs(t, err, pay.ErrTemporary)
}

func TestContext(t *testing.T) {
	t.Parallel()
	w := open(t)
	linkID, paymentID, refundID := settled(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(w, linkID, paymentID, refundID) {
		err := call(ctx, w.p)
		require.ErrorIs(t, err, pay.ErrTemporary, name)
		require.ErrorIs(t, err, context.Canceled, name)
	}
}

// TestCredentials: an owner who typed a wrong secret learns it at once.
func TestCredentials(t *testing.T) {
	t.Parallel()
	w := open(t)
	require.NoError(t, w.p.Check(t.Context()))
	p := w.account(t, func(a *razorpay.Account) { a.KeySecret = "wrong" })
	require.ErrorIs(t, p.Check(t.Context()), pay.ErrCredentials)
}
