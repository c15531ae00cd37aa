package node_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestEnrolment_SoldBoard: a person sells the token of the chain identity while bids on its attention
// board are live, claimed and held, and one of its own is on another board. Board, bids and money
// stay with the profile and its account; the buyer of the identity gets no part in them.
func TestEnrolment_SoldBoard(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testSoldBoard)
}

func testSoldBoard(t *testing.T, change func(*node.Config)) {
	s := nodetest.NewStage(t, "", change)
	s.Watch()
	a := enrolled(s, "asha", 0)
	d := &nodetest.Doors{T: t, House: s.House, Token: a.token}
	d.Reopen(protocol.PayUPI)
	claim := func(made protocol.BidReceipt) {
		secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
		d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
	}
	live, claimed, held := d.NewBid(), d.NewBid(), d.NewBid()
	claim(live)
	d.Good("POST", "/api/owner/bids/"+live.Bid.ID+"/confirm", `{}`, a.token, nil)
	claim(claimed)
	s.OpenBoard("bina", "")
	var own protocol.BidReceipt
	got := a.signs(a.pair, "POST", "/api/public/agents/bina/attention/bids", `{"amount":500,"message":"Looms."}`)
	require.Equal(t, 201, got.Code, "%s", got.Body)
	got.Into(&own)
	require.Equal(t, a.id.String(), *own.Bid.Bidder.ERC8004)

	buyers := nodetest.NewPair(t)
	s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
	a.ends(protocol.EndedByOwner, a.pair)
	s.Chain.Publish(1, 1, a.id, buyers)
	s.Chain.Do("final")
	a.grants(buyers, "")

	for path, body := range map[string]string{
		"GET /api/owner/attention": "", "GET /api/owner/payment-account": "", "GET /api/owner/bids": "", "GET /api/owner/payments": "", "GET /api/owner/refunds": "",
		"PUT /api/owner/attention":                            `{"handle":"asha","floor":1}`,
		"PUT /api/owner/payment-account":                      `{"handle":"asha","provider":"upi","vpa":"thief@okbank"}`,
		"POST /api/owner/attention/close":                     `{"handle":"asha"}`,
		"GET /api/owner/bids/" + claimed.Bid.ID:               "",
		"POST /api/owner/bids/" + claimed.Bid.ID + "/confirm": `{}`,
		"POST /api/owner/bids/" + claimed.Bid.ID + "/deny":    `{}`,
		"POST /api/owner/bids/" + live.Bid.ID + "/remove":     `{"reason":"Mine now."}`,
		"GET /api/public/bids/" + own.Bid.ID:                  "",
	} {
		method, path, _ := strings.Cut(path, " ")
		refused := a.signs(buyers, method, path, body)
		require.Contains(t, []int{403, 404}, refused.Code, "%s %s: %s", method, path, refused.Body)
	}
	list := nodetest.As[protocol.Page[protocol.BoardEntry]](s.Ask("GET", "/api/public/attention", ""))
	require.Len(t, list.Items, 2)
	b := nodetest.As[protocol.AttentionBoard](s.Ask("GET", "/api/public/agents/asha/attention", ""))
	require.True(t, b.Accepting)
	require.Equal(t, live.Bid.ID, b.Bids[0].ID)
	require.Zero(t, b.FreeSlots, "one is live, one claimed, one held")

	var p protocol.Payment
	secret := held.PaymentURL[strings.LastIndexByte(held.PaymentURL, '/')+1:]
	s.Ask("GET", "/api/public/payment", "", "Authorization", "Bearer "+secret).Into(&p)
	require.Equal(t, "asha@okbank", *p.VPA)
	claim(held)
	d.Good("POST", "/api/owner/bids/"+claimed.Bid.ID+"/confirm", `{}`, a.token, nil)
	d.Good("POST", "/api/owner/bids/"+held.Bid.ID+"/deny", `{}`, a.token, nil)
	s.Ask("GET", "/api/public/agents/asha/attention", "").Into(&b)
	require.Len(t, b.Bids, 2)
	var kept protocol.Bid
	d.Good("GET", "/api/public/bids/"+own.Bid.ID, "", a.token, &kept)
	require.Equal(t, protocol.BidHeld, kept.State, "the profile made the bid")
	require.NoError(t, s.DB.Check(t.Context()))
}
