package razorpay_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/razorpay"
	"stoa/protocol/must"
)

const (
	keyID  = "rzp_live_abc123"
	secret = "key_secret_test"
	hook   = "whsec_test"
)

// world is the fake vendor, a client of it, and the clock of both.
type world struct {
	paytest.Rail
	vendor *paytest.Razorpay
	server *httptest.Server
	p      *razorpay.Provider

	mu sync.Mutex
	at time.Time
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{at: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	w.vendor = paytest.NewRazorpay(keyID, secret, hook, w.now)
	w.server = httptest.NewServer(w.vendor)
	t.Cleanup(w.server.Close)
	// A client that reuses connections sends a GET again by itself when one is cut.
	w.server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	w.p = w.account(t, func(*razorpay.Account) {})
	w.Rail = paytest.Rail{Provider: w.p, Now: w.now, Pay: func(t *testing.T, l pay.Link, paise int64) []paytest.Hook {
		must.Get(w.vendor.Pay(l.ProviderID, paise))(t)
		return w.vendor.Hooks()
	}}
	return w
}

func (w *world) account(t *testing.T, change func(*razorpay.Account)) *razorpay.Provider {
	t.Helper()
	a := razorpay.Account{KeyID: keyID, KeySecret: secret, WebhookSecrets: []string{hook}, Client: w.server.Client(), Base: w.server.URL, Now: w.now}
	change(&a)
	p := must.Get(razorpay.New(a))(t)
	return p
}

func (w *world) link(t *testing.T, n int) pay.Link {
	t.Helper()
	l := must.Get(w.p.CreateLink(t.Context(), w.Request(n)))(t)
	return l
}

// events parses webhooks; ignored ones are left out.
func (w *world) events(t *testing.T, hooks []paytest.Hook) (all []pay.Event) {
	t.Helper()
	for _, h := range hooks {
		events := must.Get(w.p.ParseWebhook(h.Header, h.Body))(t)
		for _, e := range events {
			if e.Kind != pay.Ignored {
				all = append(all, e)
			}
		}
	}
	return all
}

func kinds(events []pay.Event) (k []pay.Kind) {
	for _, e := range events {
		k = append(k, e.Kind)
	}
	return k
}

func TestExercise(t *testing.T) {
	t.Parallel()
	paytest.Exercise(t, func(t *testing.T) paytest.Rail { return open(t).Rail })
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*razorpay.Account){
		"no key":            func(a *razorpay.Account) { a.KeyID = "" },
		"another's key":     func(a *razorpay.Account) { a.KeyID = "sk_live_1" },
		"key with a colon":  func(a *razorpay.Account) { a.KeyID = "rzp_live_a:b" },
		"no secret":         func(a *razorpay.Account) { a.KeySecret = "" },
		"secret with space": func(a *razorpay.Account) { a.KeySecret = "a b" },
		"empty webhook":     func(a *razorpay.Account) { a.WebhookSecrets = []string{"a", ""} },
		"many webhooks":     func(a *razorpay.Account) { a.WebhookSecrets = strings.Split("abcdefghi", "") },
		"no client":         func(a *razorpay.Account) { a.Client = nil },
	} {
		a := razorpay.Account{KeyID: keyID, KeySecret: secret, Client: http.DefaultClient}
		change(&a)
		_, err := razorpay.New(a)
		require.ErrorIs(t, err, pay.ErrAccount, name)
		require.NotContains(t, err.Error(), secret)
	}
	w := open(t)
	require.False(t, w.p.Caps().Test)
	require.True(t, w.account(t, func(a *razorpay.Account) { a.KeyID = "rzp_test_abc" }).Caps().Test, "test keys move no money")
}

// TestRequest: what the vendor gets is what its documentation asks for.
func TestRequest(t *testing.T) {
	t.Parallel()
	var got map[string]any
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		header.Set("Request", r.Method+" "+r.URL.Path)
		json.NewDecoder(r.Body).Decode(&got)
		w.Write([]byte(`{"id":"plink_1","short_url":"https://rzp.io/i/1","status":"created","amount":150000,"currency":"INR",` +
			`"reference_id":"bid_1-1","expire_by":1800000000}`))
	}))
	t.Cleanup(s.Close)
	w := open(t)
	p := w.account(t, func(a *razorpay.Account) { a.Base = s.URL })
	until := w.now().Add(20 * time.Minute)
	l := must.Get(p.CreateLink(t.Context(), pay.LinkRequest{
		Ref: "bid_1-1", AmountPaise: 1500_00, Currency: "INR", Description: strings.Repeat("ß", 3000), ExpiresAt: until, ReturnURL: "https://n1.example/pay/t",
		Notes: map[string]string{"bid": strings.Repeat("आ", 300)},
	}))(t)
	require.Equal(t, pay.Link{ProviderID: "plink_1", URL: "https://rzp.io/i/1", ExpiresAt: time.Unix(1800000000, 0)}, l)
	require.Equal(t, map[string]any{
		"amount": 150000., "currency": "INR", "accept_partial": false, "reference_id": "bid_1-1", "description": strings.Repeat("ß", 2048),
		"expire_by": float64(until.Unix()), "notify": map[string]any{"sms": false, "email": false}, "reminder_enable": false,
		"notes": map[string]any{"bid": strings.Repeat("आ", 255)}, "callback_url": "https://n1.example/pay/t", "callback_method": "get",
	}, got)
	require.Equal(t, "POST /v1/payment_links", header.Get("Request"))
	require.Equal(t, "application/json", header.Get("Content-Type"))
	require.Equal(t, "Basic cnpwX2xpdmVfYWJjMTIzOmtleV9zZWNyZXRfdGVzdA==", header.Get("Authorization"))
}

// TestCreateLink_Again: an attempt whose answer was lost made the link; the next finds it.
func TestCreateLink_Again(t *testing.T) {
	t.Parallel()
	for _, fault := range []paytest.Fault{paytest.Lost, paytest.Garbage} {
		w := open(t)
		w.vendor.FailNext(fault)
		_, err := w.p.CreateLink(t.Context(), w.Request(1))
		require.ErrorIs(t, err, pay.ErrTemporary)
		l := w.link(t, 1)
		id, status := w.vendor.LinkOf(w.Request(1).Ref)
		require.Equal(t, id, l.ProviderID)
		require.Equal(t, "created", status)
		require.Len(t, w.vendor.Book(), 1, "there is one link")
	}
}

// TestCreateLink_AgainLate: a link that was made in time is found when it is too late to make one.
func TestCreateLink_AgainLate(t *testing.T) {
	t.Parallel()
	w := open(t)
	r, other := w.Request(1), w.Request(2)
	w.vendor.FailNext(paytest.Lost)
	_, err := w.p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrTemporary)
	w.pass(6 * time.Minute)
	w.vendor.FailNext(paytest.Unavailable)
	_, err = w.p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrTemporary, "whether there is one is not known")
	l := must.Get(w.p.CreateLink(t.Context(), r))(t)
	require.WithinDuration(t, r.ExpiresAt, l.ExpiresAt, 0)
	_, err = w.p.CreateLink(t.Context(), other)
	require.ErrorIs(t, err, pay.ErrExpiry)
	w.pass(14 * time.Minute)
	_, err = w.p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrExpiry, "the hold is over")
}

// TestCreateLink_NotListed: a reference that is taken and not listed yet is asked for again.
func TestCreateLink_NotListed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write([]byte(`{"payment_links":[{"reference_id":"bid_1-10","id":"plink_1"}]}`))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error":{"description":"payment link creation with reference ID already attempted"}}`))
	}))
	t.Cleanup(s.Close)
	w := open(t)
	r := w.Request(1)
	r.Ref = "bid_1-1"
	_, err := w.account(t, func(a *razorpay.Account) { a.Base = s.URL }).CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrTemporary)
	require.ErrorContains(t, err, "not listed yet")
}

// TestCreateLink_RefUsed: a closed link, or one of another amount, is never given out again.
func TestCreateLink_RefUsed(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := w.link(t, 1)
	other := w.Request(1)
	other.AmountPaise++
	_, err := w.p.CreateLink(t.Context(), other)
	require.ErrorIs(t, err, pay.ErrRefUsed)
	require.NoError(t, w.p.CancelLink(t.Context(), l.ProviderID))
	_, err = w.p.CreateLink(t.Context(), w.Request(1))
	require.ErrorIs(t, err, pay.ErrRefUsed)
	l = w.link(t, 2)
	must.Get(w.vendor.Pay(l.ProviderID, 1500_00))(t)
	require.Equal(t, l, w.link(t, 2), "a paid link is the link: the poller finds the payment")
	l = w.link(t, 3)
	w.pass(21 * time.Minute)
	_, err = w.p.CreateLink(t.Context(), pay.LinkRequest{Ref: w.Request(3).Ref, AmountPaise: 1500_00, Currency: "INR", ExpiresAt: w.now().Add(time.Hour)})
	require.ErrorIs(t, err, pay.ErrRefUsed, "%s is expired", l.ProviderID)
}

// TestCreateLink_FifteenMinutes: the vendor's minimum is known before it is asked, and its own
// refusal, when its clock is ahead, is the same error.
func TestCreateLink_FifteenMinutes(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.Request(1)
	w.pass(5 * time.Minute)
	_, err := w.p.CreateLink(t.Context(), r)
	require.NoError(t, err, "15 minutes are left")
	r = w.Request(2)
	r.ExpiresAt = w.now().Add(15*time.Minute - time.Second)
	_, err = w.p.CreateLink(t.Context(), r)
	require.ErrorIs(t, err, pay.ErrExpiry)
	w.vendor.Now = func() time.Time { return w.now().Add(10 * time.Minute) }
	_, err = w.p.CreateLink(t.Context(), w.Request(3))
	require.ErrorIs(t, err, pay.ErrExpiry)
	require.ErrorContains(t, err, "too soon")
	require.NotErrorIs(t, err, pay.ErrTemporary)
}

// TestCancel: the link is closed, or the payment wins.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := open(t)
	paid, expired := w.link(t, 1), w.link(t, 2)
	must.Get(w.vendor.Pay(paid.ProviderID, 1500_00))(t)
	require.ErrorIs(t, w.p.CancelLink(t.Context(), paid.ProviderID), pay.ErrPaid)
	w.pass(20 * time.Minute)
	require.NoError(t, w.p.CancelLink(t.Context(), expired.ProviderID))
	w.vendor.FailNext(paytest.Fault{}, paytest.Unavailable)
	require.ErrorIs(t, w.p.CancelLink(t.Context(), expired.ProviderID), pay.ErrTemporary, "the look at the link failed")
	for _, id := range []string{"", "../orders", "plink_1/cancel", "plink_1?x=1", strings.Repeat("p", 65), "plink_none"} {
		require.ErrorIs(t, w.p.CancelLink(t.Context(), id), pay.ErrUnknown, id)
		_, err := w.p.FetchLink(t.Context(), id)
		require.ErrorIs(t, err, pay.ErrUnknown, id)
	}
}
