package nodetest

import (
	"net/http/httptest"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/node/out/pay/paytest"
	"stoa/node/out/pay/razorpay"
	"stoa/protocol"
)

// Razorpay has the node use a stand-in for Razorpay. Call it before Work.
func (h *House) Razorpay() *paytest.Razorpay {
	api := paytest.NewRazorpay("rzp_live_1", "secret-key", "whsec-one", nil)
	vendor := httptest.NewServer(api)
	h.T.Cleanup(vendor.Close)
	own := h.Node.Money.Pay
	h.Node.Money.Pay = func(a money.Account) (pay.Provider, error) {
		if a.Provider != protocol.PayRazorpay {
			return own(a)
		}
		return razorpay.New(razorpay.Account{KeyID: a.KeyID, KeySecret: a.KeySecret, WebhookSecrets: a.WebhookSecrets, Client: vendor.Client(), Base: vendor.URL})
	}
	return api
}

// PaidByRazorpay gives a shop, by its owner's Authorization, an account at the stand-in, and returns what pays one of its orders there: the
// stand-in's webhook comes to the node.
func (h *House) PaidByRazorpay(api *paytest.Razorpay, handle, bearer string) func(order string, paise int64) {
	h.T.Helper()
	account := As[protocol.PaymentAccount](h.Ask("PUT", "/api/owner/payment-account", `{"handle":"`+handle+
		`","provider":"razorpay","keyId":"rzp_live_1","keySecret":"secret-key","webhookSecrets":["whsec-one"]}`, "Authorization", bearer).Is(200))
	return func(order string, paise int64) {
		h.T.Helper()
		link := ""
		require.Eventually(h.T, func() bool { link, _ = api.LinkOf(pay.Ref(order, 1)); return link != "" }, time.Minute, 20*time.Millisecond)
		_, err := api.Pay(link, paise)
		require.NoError(h.T, err)
		hook := api.Hooks()[0]
		h.Ask("POST", strings.TrimPrefix(*account.WebhookURL, h.Base), string(hook.Body), "X-Razorpay-Signature", hook.Header.Get("X-Razorpay-Signature"),
			"X-Razorpay-Event-Id", hook.Header.Get("X-Razorpay-Event-Id")).Is(200)
	}
}
