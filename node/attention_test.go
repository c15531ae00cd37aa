package node

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// TestAttention_Doors walks a bid through HTTP and MCP on both engines: the owner opens a board, a
// stranger bids with a proof of work and pays, both sides are told, and the feed shows nothing of a
// TEST bid.
func TestAttention_Doors(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change, func(c *Config) { c.PaySandbox = true })
		token := h.agent("asha", openPolicy)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.worker.Run(ctx) }()
		defer func() { stop(); <-done }()

		a := h.ask("PUT", "/api/owner/attention", `{"floor":"500","slots":1,"protectHours":0}`, "Authorization", token)
		require.Equal(t, 200, a.Code, a.Body)
		a = h.ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", token)
		require.Equal(t, 200, a.Code, a.Body)
		for path, word := range map[string]string{
			"/api/public/agents/asha": `"attention-board"`, "/api/public/people": `"hasAttentionBoard":true`, "/api/public/attention": `"freeSlots":1`,
			"/api/public/agents/asha/attention": `"test":true`, "/api/public/agents/asha/attention/check?amount=500": `"wouldGetSlot":true`,
		} {
			require.Contains(t, h.ask("GET", path, "").Body.String(), word, path)
		}
		bids := "/api/public/agents/asha/attention/bids"
		require.Equal(t, protocol.BelowFloor, h.ask("POST", bids, `{"amount":499.99,"message":"Yarn."}`).problem().Code)
		a = h.ask("POST", bids, `{"amount":500,"message":"Yarn.","name":"Meera"}`)
		require.Equal(t, protocol.PowRequired, a.problem().Code)
		var got protocol.BidReceipt
		a = h.ask("POST", bids, `{"amount":500,"message":"Yarn.","name":"Meera"}`, "Proof-Of-Work", h.proof("bid"))
		require.Equal(t, 201, a.Code, a.Body)
		a.into(&got)
		require.Equal(t, protocol.HoldReserving, *got.Bid.Hold)
		a = h.ask("POST", bids, `{"amount":900,"message":"Ink.","name":"Dev"}`)
		require.Equal(t, protocol.SlotTaken, a.problem().Code, "before a proof is asked for")
		require.Contains(t, a.Body.String(), `"slotAvailableAt"`)

		status := "/api/public/bids/" + got.Bid.ID
		require.Equal(t, 404, h.ask("GET", status, "").Code)
		require.Equal(t, 200, h.ask("GET", status, "", "Authorization", "Bearer "+got.StatusToken).Code)
		secret := got.PaymentURL[strings.LastIndexByte(got.PaymentURL, '/')+1:]
		payment := func() (p protocol.Payment) {
			h.ask("GET", "/api/public/payment", "", "Authorization", "Bearer "+secret).into(&p)
			return p
		}
		require.Eventually(t, func() bool { return payment().Link == "ready" }, 20*time.Second, 20*time.Millisecond)
		a = h.ask("POST", "/api/public/payment/sandbox", `{"button":"pay-twice"}`, "Authorization", "Bearer "+secret)
		require.Equal(t, 200, a.Code, a.Body)
		require.Eventually(t, func() bool { return payment().State == protocol.BidLive }, 20*time.Second, 20*time.Millisecond)

		var board protocol.AttentionBoard
		require.Eventually(t, func() bool {
			h.ask("GET", "/api/public/agents/asha/attention", "").into(&board)
			return len(board.Bids) == 1
		}, 5*time.Second, 20*time.Millisecond)
		require.Equal(t, "Yarn.", *board.Bids[0].Message)
		require.True(t, board.Bids[0].Test)
		require.NotContains(t, h.ask("GET", "/api/public/feed", "").Body.String(), "attention_bid", "TEST is no news")
		require.Eventually(t, func() bool {
			return strings.Contains(h.ask("GET", "/api/public/since", "", "Authorization", "Bearer "+got.StatusToken).Body.String(), `"live"`)
		}, 5*time.Second, 20*time.Millisecond)
		require.Contains(t, h.ask("GET", "/api/public/since", "", "Authorization", token).Body.String(), got.Bid.ID, "the owner is told too")

		over := h.tool("check_bid", `{"handle":"asha","amount":510}`)
		raw, err := json.Marshal(over)
		require.NoError(t, err)
		require.Contains(t, string(raw), "wouldGetSlot")

		require.Eventually(t, func() bool {
			csv := h.ask("GET", "/api/owner/payments.csv?month="+time.Now().In(protocol.India).Format("2006-01"), "", "Authorization", token)
			return csv.Code == 200 && strings.Count(csv.Body.String(), "\n") == 4 && strings.Contains(csv.Body.String(), "-500.00")
		}, 20*time.Second, 50*time.Millisecond, "two payments, one of them sent back")
		require.Equal(t, http.StatusNotFound, h.ask("POST", "/hooks/pay/razorpay/none", `{}`).Code)
		a = h.ask("POST", "/api/owner/bids/"+got.Bid.ID+"/remove", `{"reason":"spam"}`, "Authorization", token)
		require.Equal(t, 200, a.Code, a.Body)
		require.Eventually(t, func() bool { return payment().State == protocol.BidRefunded }, 20*time.Second, 20*time.Millisecond)
	})
}
