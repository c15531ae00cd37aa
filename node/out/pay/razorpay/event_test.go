package razorpay_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay"
	"stoa/node/out/pay/razorpay"
	"stoa/protocol/must"
)

type vectors struct {
	Webhook  struct{ Body, Secret, Signature string }
	Callback struct{ Query, Secret string }
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/vectors.json"))(t)
	require.NoError(t, json.Unmarshal(raw, &v))
	return v
}

// TestVectors: the bodies are not complete events, so that a good signature is ErrMalformed.
func TestVectors(t *testing.T) {
	t.Parallel()
	v, w := readVectors(t), open(t)
	h := http.Header{"X-Razorpay-Signature": {v.Webhook.Signature}}
	for _, c := range []struct {
		secrets []string
		want    error
	}{
		{[]string{v.Webhook.Secret}, pay.ErrMalformed},
		{[]string{"newer", v.Webhook.Secret}, pay.ErrMalformed},
		{[]string{"newer"}, pay.ErrSignature},
		{nil, pay.ErrSignature},
	} {
		p := w.account(t, func(a *razorpay.Account) { a.WebhookSecrets = c.secrets })
		_, err := p.ParseWebhook(h, []byte(v.Webhook.Body))
		require.ErrorIs(t, err, c.want, "%v", c.secrets)
	}
	q := must.Get(url.ParseQuery(v.Callback.Query))(t)
	p := w.account(t, func(a *razorpay.Account) { a.KeySecret = v.Callback.Secret })
	got := must.Get(p.Callback(q))(t)
	require.Equal(t, razorpay.Callback{LinkID: "plink_Fc8lXILABzQL7M", Ref: "bid_01JD", Status: "paid", PaymentID: "pay_Fc8mUeDrEKf08Y"}, got)
	for member := range q {
		for _, value := range []string{"", q.Get(member) + "x", "|"} {
			changed := url.Values{}
			for m := range q {
				changed.Set(m, q.Get(m))
			}
			changed.Set(member, value)
			_, err := p.Callback(changed)
			require.ErrorIs(t, err, pay.ErrSignature, "%s=%q", member, value)
		}
	}
}

// TestOldSecret: a webhook that was signed before the secret changed is accepted as long as the old
// secret is in the list.
func TestOldSecret(t *testing.T) {
	t.Parallel()
	w := open(t)
	must.Get(w.vendor.Pay(w.link(t, 1).ProviderID, 1500_00))(t)
	w.vendor.SetSecret("newer")
	must.Get(w.vendor.Pay(w.link(t, 2).ProviderID, 1500_00))(t)
	hooks := w.vendor.Hooks()
	require.Len(t, hooks, 2)
	for secrets, want := range map[string][]error{"newer " + hook: {nil, nil}, "newer": {pay.ErrSignature, nil}, hook: {nil, pay.ErrSignature}} {
		p := w.account(t, func(a *razorpay.Account) { a.WebhookSecrets = strings.Fields(secrets) })
		for i, h := range hooks {
			_, err := p.ParseWebhook(h.Header, h.Body)
			require.ErrorIs(t, err, want[i], "%s, webhook %d", secrets, i)
		}
	}
}

// TestPartial: two payments of one link are two events with their own amounts, and the poller finds
// the same.
func TestPartial(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := w.link(t, 1)
	for _, paise := range []int64{500_00, 1000_00} {
		must.Get(w.vendor.Pay(l.ProviderID, paise))(t)
	}
	hooked := w.events(t, w.vendor.Hooks())
	polled := must.Get(w.p.FetchLink(t.Context(), l.ProviderID))(t)
	for name, events := range map[string][]pay.Event{"webhooks": hooked, "poller": polled} {
		require.Equal(t, []pay.Kind{pay.Partial, pay.Partial}, kinds(events), name)
		require.Equal(t, []int64{500_00, 1000_00}, []int64{events[0].AmountPaise, events[1].AmountPaise}, name)
		require.NotEqual(t, events[0].PaymentID, events[1].PaymentID, name)
		require.NotEqual(t, events[0].EventID, events[1].EventID, name)
	}
	require.Equal(t, hooked[0].PaymentID, polled[0].PaymentID)
}

// TestLate: a bank's answer after the link expired, and a second one, are reported by both.
func TestLate(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := w.link(t, 1)
	first, err := w.vendor.Begin(l.ProviderID, 1500_00)
	require.NoError(t, err)
	second := must.Get(w.vendor.Fail(l.ProviderID, 1500_00))(t)
	w.pass(20 * time.Minute)
	require.Equal(t, []pay.Kind{pay.Expired}, kinds(w.events(t, w.vendor.Hooks())))
	_, err = w.vendor.Pay(l.ProviderID, 1500_00)
	require.Error(t, err, "an expired link takes no new payment")
	w.pass(48 * time.Hour)
	require.NoError(t, w.vendor.Settle(first))
	require.NoError(t, w.vendor.Settle(second))
	hooked := w.events(t, w.vendor.Hooks())
	polled := must.Get(w.p.FetchLink(t.Context(), l.ProviderID))(t)
	for name, events := range map[string][]pay.Event{"webhooks": hooked, "poller": polled} {
		require.Equal(t, []pay.Kind{pay.Paid, pay.Paid}, kinds(events), name)
		require.Equal(t, []string{first, second}, []string{events[0].PaymentID, events[1].PaymentID}, name)
		require.Equal(t, w.now(), events[0].OccurredAt, name)
	}
}

// TestFetchLink_Strange: a link that says it is paid and lists no payment is asked for again, as is
// the answer for another link; payments that took nothing are left out.
func TestFetchLink_Strange(t *testing.T) {
	t.Parallel()
	w := open(t)
	for body, want := range map[string]error{
		`{"id":"plink_1","status":"paid","amount":100,"amount_paid":100,"payments":null}`:                                                        pay.ErrTemporary,
		`{"id":"plink_1","status":"paid","amount":100,"amount_paid":100,"payments":[{"payment_id":"pay_1","amount":100,"status":"authorized"}]}`: pay.ErrTemporary,
		`{"id":"plink_2","status":"created","amount":100}`:                                                                                       pay.ErrTemporary,
		`{"id":"plink_1","status":"created","amount":100,"payments":[{"payment_id":"pay_1","amount":100,"status":"failed"}]}`:                    nil,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }))
		events, err := w.account(t, func(a *razorpay.Account) { a.Base = s.URL }).FetchLink(t.Context(), "plink_1")
		require.ErrorIs(t, err, want, body)
		require.Empty(t, events, body)
		s.Close()
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	w := open(t)
	cancelled, expired := w.link(t, 1), w.link(t, 2)
	require.NoError(t, w.p.CancelLink(t.Context(), cancelled.ProviderID))
	w.pass(20 * time.Minute)
	require.Equal(t, []pay.Kind{pay.Cancelled, pay.Expired}, kinds(w.events(t, w.vendor.Hooks())))
	for id, want := range map[string]pay.Kind{cancelled.ProviderID: pay.Cancelled, expired.ProviderID: pay.Expired} {
		events := must.Get(w.p.FetchLink(t.Context(), id))(t)
		require.Equal(t, []pay.Kind{want}, kinds(events))
		require.Equal(t, id, events[0].ProviderID)
	}
	events := must.Get(w.p.FetchLink(t.Context(), expired.ProviderID))(t)
	require.Equal(t, expired.ExpiresAt.UTC(), events[0].OccurredAt)
}

// TestRefunds: pending until the vendor says otherwise; a failed one can be made again under another key.
func TestRefunds(t *testing.T) {
	t.Parallel()
	w := open(t)
	l := w.link(t, 1)
	payment, err := w.vendor.Pay(l.ProviderID, 1500_00)
	require.NoError(t, err)
	w.vendor.Hooks()
	r := must.Get(w.p.Refund(t.Context(), payment, "refund-bid-1", 1500_00))(t)
	require.Equal(t, pay.RefundPending, r.Status)
	_, err = w.p.Refund(t.Context(), payment, "refund-bid-1", 1499_00)
	require.ErrorIs(t, err, pay.ErrRefused, "the same key with another amount")
	_, err = w.p.Refund(t.Context(), payment, "refund-bid-2", 100)
	require.ErrorIs(t, err, pay.ErrRefused, "nothing is left")
	require.NoError(t, w.vendor.SettleRefund(r.ID, false))
	events := w.events(t, w.vendor.Hooks())
	require.Equal(t, []pay.Kind{pay.RefundFailed}, kinds(events))
	require.Equal(t, []any{payment, r.ID, int64(1500_00), "INR"}, []any{events[0].PaymentID, events[0].RefundID, events[0].AmountPaise, events[0].Currency})
	got := must.Get(w.p.FetchRefund(t.Context(), r.ID))(t)
	require.Equal(t, pay.Refund{ID: r.ID, Status: pay.RefundNot}, got)
	again := must.Get(w.p.Refund(t.Context(), payment, "refund-bid-3", 1500_00))(t)
	require.NoError(t, w.vendor.SettleRefund(again.ID, true))
	require.Equal(t, []pay.Kind{pay.RefundDone}, kinds(w.events(t, w.vendor.Hooks())))
	polled := must.Get(w.p.FetchLink(t.Context(), l.ProviderID))(t)
	require.Equal(t, []pay.Kind{pay.Paid}, kinds(polled), "a refunded payment was still a payment")
	for _, key := range []string{"", "short", "with space!", strings.Repeat("k", 65), "../../../x"} {
		_, err := w.p.Refund(t.Context(), payment, key, 100)
		require.ErrorIs(t, err, pay.ErrRefused, key)
	}
}

// sign returns the header of a webhook with this body.
func sign(body, id string) http.Header {
	return http.Header{"X-Razorpay-Signature": {pay.MAC(hook, []byte(body))}, "X-Razorpay-Event-Id": {id}}
}

func TestParseWebhook(t *testing.T) {
	t.Parallel()
	w := open(t)
	link := `"payment_link":{"entity":{"id":"plink_1","reference_id":"bid_1-1","amount":10000,"amount_paid":10000,"currency":"INR","status":"paid","payments":{}}}`
	payment := `"payment":{"entity":{"id":"pay_1","amount":"10000","currency":"INR","status":"captured","notes":[],` +
		`"acquirer_data":{"bank_transaction_id":"5786838"},"created_at":1596890289}}`
	paid := `{"event":"payment_link.paid","created_at":1596890208,"payload":{` + link + `,` + payment + `}}`
	events, err := w.p.ParseWebhook(sign(paid, "evt_1"), []byte(paid))
	require.NoError(t, err)
	require.Equal(t, []pay.Event{{
		Provider: "razorpay", EventID: "evt_1", Kind: pay.Paid, Ref: "bid_1-1", ProviderID: "plink_1", PaymentID: "pay_1", Reference: "5786838",
		AmountPaise: 10000, Currency: "INR", OccurredAt: time.Unix(1596890289, 0).UTC(), // the later of the two times
	}}, events)

	for name, body := range map[string]string{
		"not JSON":          `{`,
		"a list":            `[]`,
		"no link":           `{"event":"payment_link.paid","payload":{` + payment + `}}`,
		"no payment":        `{"event":"payment_link.paid","payload":{` + link + `}}`,
		"negative amount":   strings.Replace(paid, `"10000"`, `-10000`, 1),
		"fraction":          strings.Replace(paid, `"10000"`, `10000.5`, 1),
		"exponent":          strings.Replace(paid, `"10000"`, `1e4`, 1),
		"beyond every bank": strings.Replace(paid, `"10000"`, `1000000000001`, 1),
		"strange payment":   strings.Replace(paid, `pay_1`, `../x`, 1),
		"strange link":      strings.Replace(paid, `plink_1`, `plink/1`, 1),
		"refund of nothing": `{"event":"refund.processed","payload":{"refund":{"entity":{"id":"rfnd_1","amount":100}}}}`,
	} {
		_, err := w.p.ParseWebhook(sign(body, "evt_1"), []byte(body))
		require.ErrorIs(t, err, pay.ErrMalformed, name)
	}
	for _, body := range []string{
		`{}`, `{"event":"payment.captured","payload":{` + payment + `}}`, `{"event":"settlement.processed","payload":{"settlement":{"entity":{}}}}`,
	} {
		events := must.Get(w.p.ParseWebhook(sign(body, "evt_1"), []byte(body)))(t)
		require.Equal(t, []pay.Kind{pay.Ignored}, kinds(events), body)
	}
	huge := paid + strings.Repeat(" ", razorpay.MaxWebhook)
	_, err = w.p.ParseWebhook(sign(huge, "evt_1"), []byte(huge))
	require.ErrorIs(t, err, pay.ErrSignature)
}

// TestEventID: without the header, or with one that nobody would send, the body is the id.
func TestEventID(t *testing.T) {
	t.Parallel()
	w, body := open(t), `{"event":"payment.failed"}`
	var ids []string
	for _, id := range []string{"", "a b", "x\ny", strings.Repeat("e", 65), "evt_good"} {
		events := must.Get(w.p.ParseWebhook(sign(body, id), []byte(body)))(t)
		ids = append(ids, events[0].EventID)
	}
	require.Len(t, slices.Compact(slices.Clone(ids[:4])), 1)
	require.Regexp(t, "^body_[0-9a-f]{32}$", ids[0])
	require.Equal(t, "evt_good", ids[4])
}

// FuzzParseWebhook: whatever a signed body holds, there is no panic, and an event that is not ignored
// is complete.
func FuzzParseWebhook(f *testing.F) {
	f.Add([]byte(`{"event":"payment_link.paid","created_at":1,"payload":{"payment_link":{"entity":{"id":"plink_1","amount":100,` +
		`"payments":[{"amount":null}]}},"payment":{"entity":{"id":"pay_1","amount":100,"acquirer_data":[]}}}}`))
	f.Add([]byte(`{"event":"refund.failed","payload":{"refund":{"entity":{"id":"rfnd_1","payment_id":"pay_1","amount":"100"}}}}`))
	f.Add([]byte(`{"event":"payment_link.expired","payload":{"payment_link":{"entity":{"id":"plink_1"}}}}`))
	p, err := razorpay.New(razorpay.Account{KeyID: keyID, KeySecret: secret, WebhookSecrets: []string{hook}, Client: http.DefaultClient})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := p.ParseWebhook(sign(string(body), "evt_1"), body)
		if err != nil {
			require.ErrorIs(t, err, pay.ErrMalformed)
			return
		}
		require.Len(t, events, 1)
		e := events[0]
		require.Equal(t, "razorpay", e.Provider)
		switch e.Kind {
		case pay.Paid, pay.Partial:
			require.True(t, e.PaymentID != "" && e.ProviderID != "" && e.AmountPaise > 0)
		case pay.RefundDone, pay.RefundFailed:
			require.True(t, e.PaymentID != "" && e.RefundID != "" && e.AmountPaise > 0)
		case pay.Expired, pay.Cancelled:
			require.NotEmpty(t, e.ProviderID)
		default:
			require.Equal(t, pay.Ignored, e.Kind)
		}
	})
}
