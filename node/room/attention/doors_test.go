package attention_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/pay"
	"stoa/protocol"
)

// TestAttention_Doors walks a bid through HTTP and MCP on both engines: the owner opens a board, a
// stranger bids with a proof of work and pays, both sides are told, and the feed shows nothing of a
// TEST bid.
func TestAttention_Doors(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.PaySandbox = true })
		token := h.Agent("asha", nodetest.OpenPolicy)
		h.Work()

		h.Ask("PUT", "/api/owner/attention", `{"floor":"500","slots":1,"protectHours":0}`, "Authorization", token).Is(200)
		h.Ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", token).Is(200)
		for path, word := range map[string]string{
			"/api/public/agents/asha": `"attention-board"`, "/api/public/people": `"hasAttentionBoard":true`, "/api/public/attention": `"freeSlots":1`,
			"/api/public/agents/asha/attention": `"test":true`, "/api/public/agents/asha/attention/check?amount=500": `"wouldGetSlot":true`,
		} {
			require.Contains(t, h.Ask("GET", path, "").Body.String(), word, path)
		}
		bids := "/api/public/agents/asha/attention/bids"
		require.Equal(t, protocol.BelowFloor, h.Ask("POST", bids, `{"amount":499.99,"message":"Yarn."}`).Problem().Code)
		a := h.Ask("POST", bids, `{"amount":500,"message":"Yarn.","name":"Meera"}`)
		require.Equal(t, protocol.PowRequired, a.Problem().Code)
		var got protocol.BidReceipt
		a = h.Ask("POST", bids, `{"amount":500,"message":"Yarn.","name":"Meera"}`, "Proof-Of-Work", h.Proof("bid")).Is(201)
		a.Into(&got)
		require.Equal(t, protocol.HoldReserving, *got.Bid.Hold)
		a = h.Ask("POST", bids, `{"amount":900,"message":"Ink.","name":"Dev"}`)
		require.Equal(t, protocol.SlotTaken, a.Problem().Code, "before a proof is asked for")
		require.Contains(t, a.Body.String(), `"slotAvailableAt"`)

		status := "/api/public/bids/" + got.Bid.ID
		require.Equal(t, 404, h.Ask("GET", status, "").Code)
		require.Equal(t, 200, h.Ask("GET", status, "", "Authorization", "Bearer "+got.StatusToken).Code)
		secret := got.PaymentURL[strings.LastIndexByte(got.PaymentURL, '/')+1:]
		payment := func() (p protocol.Payment) {
			h.Ask("GET", "/api/public/payment", "", "Authorization", "Bearer "+secret).Into(&p)
			return p
		}
		require.Eventually(t, func() bool { return payment().Link == "ready" }, time.Minute, 20*time.Millisecond)
		h.Ask("POST", "/api/public/payment/sandbox", `{"button":"pay-twice"}`, "Authorization", "Bearer "+secret).Is(200)
		require.Eventually(t, func() bool { return payment().State == protocol.BidLive }, time.Minute, 20*time.Millisecond)

		var board protocol.AttentionBoard
		require.Eventually(t, func() bool {
			h.Ask("GET", "/api/public/agents/asha/attention", "").Into(&board)
			return len(board.Bids) == 1
		}, time.Minute, 20*time.Millisecond)
		require.Equal(t, "Yarn.", *board.Bids[0].Message)
		require.True(t, board.Bids[0].Test)
		require.NotContains(t, h.Ask("GET", "/api/public/feed", "").Body.String(), "attention_bid", "TEST is no news")
		require.Eventually(t, func() bool {
			return strings.Contains(h.Ask("GET", "/api/public/since", "", "Authorization", "Bearer "+got.StatusToken).Body.String(), `"live"`)
		}, time.Minute, 20*time.Millisecond)
		require.Contains(t, h.Ask("GET", "/api/public/since", "", "Authorization", token).Body.String(), got.Bid.ID, "the owner is told too")

		over := h.Tool("check_bid", `{"handle":"asha","amount":510}`)
		raw, err := json.Marshal(over)
		require.NoError(t, err)
		require.Contains(t, string(raw), "wouldGetSlot")

		require.Eventually(t, func() bool {
			csv := h.Ask("GET", "/api/owner/payments.csv?month="+time.Now().In(protocol.India).Format("2006-01"), "", "Authorization", token)
			return csv.Code == 200 && strings.Count(csv.Body.String(), "\n") == 4 && strings.Contains(csv.Body.String(), "-500.00")
		}, time.Minute, 50*time.Millisecond, "two payments, one of them sent back")
		require.Equal(t, http.StatusNotFound, h.Ask("POST", "/hooks/pay/razorpay/none", `{}`).Code)
		h.Ask("POST", "/api/owner/bids/"+got.Bid.ID+"/remove", `{"reason":"spam"}`, "Authorization", token).Is(200)
		require.Eventually(t, func() bool { return payment().State == protocol.BidRefunded }, time.Minute, 20*time.Millisecond)
	})
}

// TestAttention_Webhook: a payment provider reports at the account's own address, without any other
// credential than its signature.
func TestAttention_Webhook(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Agent("asha", nodetest.OpenPolicy)
	api := h.Razorpay()
	h.Work()
	h.Ask("PUT", "/api/owner/attention", `{}`, "Authorization", token).Is(200)
	a := h.Ask("PUT", "/api/owner/payment-account",
		`{"provider":"razorpay","keyId":"rzp_live_1","keySecret":"secret-key","webhookSecrets":["whsec-one"]}`, "Authorization", token).Is(200)
	account := nodetest.As[protocol.PaymentAccount](a)
	var got protocol.BidReceipt
	a = h.Ask("POST", "/api/public/agents/asha/attention/bids",
		`{"amount":500,"message":"Yarn.","name":"Meera","callbackUrl":"https://reader.example.org/told?key=mine"}`, "Proof-Of-Work", h.Proof("bid")).Is(201)
	a.Into(&got)
	link := ""
	require.Eventually(t, func() bool { link, _ = api.LinkOf(pay.Ref(got.Bid.ID, 1)); return link != "" }, time.Minute, 20*time.Millisecond)
	_, err := api.Pay(link, 500_00)
	require.NoError(t, err)
	hook := api.Hooks()[0]
	path, signature := strings.TrimPrefix(*account.WebhookURL, h.Base), hook.Header.Get("X-Razorpay-Signature")
	post := func(path, signature string) int {
		return h.Ask("POST", path, string(hook.Body), "X-Razorpay-Signature", signature, "X-Razorpay-Event-Id", hook.Header.Get("X-Razorpay-Event-Id")).Code
	}
	require.Equal(t, 401, post(path, strings.Repeat("0", 64)))
	require.Equal(t, 404, post(path+"x", signature))
	for range 3 {
		require.Equal(t, 200, post(path, signature))
	}
	require.Eventually(t, func() bool {
		return strings.Contains(h.Ask("GET", "/api/public/bids/"+got.Bid.ID, "", "Authorization", "Bearer "+got.StatusToken).Body.String(), `"state":"live"`)
	}, time.Minute, 20*time.Millisecond)
	require.Contains(t, h.Ask("GET", "/api/public/feed", "").Body.String(), "attention_bid", "money moved: it is news")
	a = h.Ask("GET", "/api/owner/payments", "", "Authorization", token)
	require.Equal(t, 1, strings.Count(a.Body.String(), `"bidId"`), a.Body)
}
