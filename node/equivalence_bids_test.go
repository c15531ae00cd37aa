package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// bid makes what an operation about bids is about: a bid on asha's board, in the state in which the
// operation can do something. It sets the arguments that name it, and reports whether the operation is one of these.
func (d *doors) bid(op *protocol.Operation, args map[string]any) bool {
	d.t.Helper()
	if d.meeting(op, args) {
		return true
	}
	paid, rail := false, protocol.PayUPI
	switch op {
	case protocol.BidForAttention.Operation, protocol.CloseAttentionBoard.Operation:
		d.reopen(rail)
		return true
	case protocol.PressSandbox.Operation:
		rail = protocol.PaySandbox
	case protocol.AnswerBid.Operation, protocol.ApproveBid.Operation, protocol.RemoveBid.Operation, protocol.MarkRefunded.Operation:
		paid = true
	case protocol.GetBid.Operation, protocol.WithdrawBid.Operation, protocol.GetPayment.Operation, protocol.ClaimPayment.Operation,
		protocol.DisputePayment.Operation, protocol.GetOwnBid.Operation, protocol.TraceOwnPayment.Operation, protocol.TracePayment.Operation,
		protocol.ConfirmBidPayment.Operation, protocol.DenyBidPayment.Operation:
	default:
		return false
	}
	d.reopen(rail)
	made := d.newBid()
	secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
	switch utr := newUTR(); {
	case op == protocol.ClaimPayment.Operation:
		args["utr"] = utr
	case op == protocol.DisputePayment.Operation:
		args["utr"] = utr
		d.good("POST", "/api/public/payment/claim", fmt.Sprintf(`{"utr":%q,"payToken":%q}`, utr, secret), "", nil)
		d.good("POST", "/api/owner/bids/"+made.Bid.ID+"/deny", `{}`, d.token, nil)
	case op == protocol.DenyBidPayment.Operation:
		d.good("POST", "/api/public/payment/claim", fmt.Sprintf(`{"utr":%q,"payToken":%q}`, utr, secret), "", nil)
	case op == protocol.ConfirmBidPayment.Operation:
		args["utr"] = utr
	case paid:
		d.good("POST", "/api/owner/bids/"+made.Bid.ID+"/confirm", fmt.Sprintf(`{"utr":%q}`, utr), d.token, nil)
	}
	args["id"] = made.Bid.ID
	switch op.Secret {
	case "payToken":
		delete(args, "id")
		args["payToken"] = secret
	case "statusToken":
		args["statusToken"] = made.StatusToken
	}
	if op == protocol.MarkRefunded.Operation {
		args["id"] = d.refund(made.Bid.ID)
	}
	return true
}

// reopen closes asha's board, which ends what earlier calls left there, and opens it with an account
// at a provider.
func (d *doors) reopen(rail protocol.PayName) {
	d.t.Helper()
	account := `{"handle":"asha","provider":"sandbox"}`
	if rail == protocol.PayUPI {
		account = `{"handle":"asha","provider":"upi","vpa":"asha@okbank"}`
	}
	d.good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":3}`, d.token, nil)
	d.good("POST", "/api/owner/attention/close", `{"handle":"asha"}`, d.token, nil)
	for _, which := range []string{"state=claimed", "disputed=true"} {
		var undecided protocol.Page[protocol.OwnBid]
		d.good("GET", "/api/owner/bids?handle=asha&limit=100&"+which, "", d.token, &undecided)
		for _, b := range undecided.Items {
			d.good("POST", "/api/owner/bids/"+b.ID+"/deny", `{}`, d.token, nil)
		}
	}
	d.good("PUT", "/api/owner/payment-account", account, d.token, nil)
	d.good("PUT", "/api/owner/attention", `{"handle":"asha","floor":500,"slots":3}`, d.token, nil)
}

// newBid bids as an author who has bid nowhere, so that no limit of an author is met.
func (d *doors) newBid() (made protocol.BidReceipt) {
	d.t.Helper()
	handle := fmt.Sprintf("bidder-%x", rand.Uint32())
	_, _, err := d.house.Admin().PutProfile(d.t.Context(), fmt.Appendf(nil, `{"handle":%q,"name":"Meera","kind":"person"}`, handle))
	require.NoError(d.t, err)
	token, _, err := d.house.Admin().CreateToken(d.t.Context(), handle, "bid", 0)
	require.NoError(d.t, err)
	d.good("POST", "/api/public/agents/asha/attention/bids", `{"amount":1500,"message":"Yarn from Panipat."}`, token, &made)
	return made
}

// refund removes a paid bid and returns its refund, once it waits for the owner.
func (d *doors) refund(id string) string {
	d.t.Helper()
	var bid protocol.OwnBid
	d.good("POST", "/api/owner/bids/"+id+"/remove", `{"reason":"No yarn."}`, d.token, nil)
	require.Eventually(d.t, func() bool {
		d.good("GET", "/api/owner/bids/"+id, "", d.token, &bid)
		return bid.State == protocol.BidRefunding
	}, time.Minute, 5*time.Millisecond)
	return bid.Refunds[0].ID
}

// good sends a request that succeeds.
func (d *doors) good(method, path, body, token string, into any) {
	d.t.Helper()
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	a := d.house.ask(method, path, body, headers...)
	require.Less(d.t, a.Code, 300, "%s %s: %s", method, path, a.Body)
	if into != nil {
		a.into(into)
	}
}

// newUTR is a reference that no bank gave before.
func newUTR() string { return fmt.Sprintf("4%011d", rand.Int64N(1e11)) }
