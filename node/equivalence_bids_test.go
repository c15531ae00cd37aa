package node_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// bid makes what an operation about bids is about: a bid on asha's board, in the state in which the
// operation can do something. It sets the arguments that name it, and reports whether the operation is one of these.
func bid(d *nodetest.Doors, op *protocol.Operation, args map[string]any) bool {
	d.T.Helper()
	if meeting(d, op, args) {
		return true
	}
	if op == protocol.ReadComplaint.Operation || op == protocol.AnswerComplaint.Operation {
		c := complained(d.House)
		if args["id"] = c["id"]; op.Secret != "" {
			args[op.Secret] = c["given"]
		}
		return true
	}
	if op == protocol.SuspendProfile.Operation || op == protocol.LiftSuspension.Operation {
		args["handle"] = fmt.Sprintf("meera%d", rand.IntN(1_000_000_000))
		d.House.PutProfile([]byte(fmt.Sprintf(`{"handle":%q,"name":"Meera","kind":"person"}`, args["handle"])))
		if op == protocol.LiftSuspension.Operation {
			require.NoError(d.T, d.House.DB.Write(d.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return d.House.Directory.SetState(ctx, tx, args["handle"].(string), protocol.ProfileSuspended, "spam")
			}))
		}
		return true
	}
	paid, rail := false, protocol.PayUPI
	switch op {
	case protocol.BidForAttention.Operation, protocol.CloseAttentionBoard.Operation:
		d.Reopen(rail)
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
	d.Reopen(rail)
	made := d.NewBid()
	secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
	switch utr := nodetest.NewUTR(); {
	case op == protocol.ClaimPayment.Operation:
		args["utr"] = utr
	case op == protocol.DisputePayment.Operation:
		args["utr"] = utr
		d.Good("POST", "/api/public/payment/claim", fmt.Sprintf(`{"utr":%q,"payToken":%q}`, utr, secret), "", nil)
		d.Good("POST", "/api/owner/bids/"+made.Bid.ID+"/deny", `{}`, d.Token, nil)
	case op == protocol.DenyBidPayment.Operation:
		d.Good("POST", "/api/public/payment/claim", fmt.Sprintf(`{"utr":%q,"payToken":%q}`, utr, secret), "", nil)
	case op == protocol.ConfirmBidPayment.Operation:
		args["utr"] = utr
	case paid:
		d.Good("POST", "/api/owner/bids/"+made.Bid.ID+"/confirm", fmt.Sprintf(`{"utr":%q}`, utr), d.Token, nil)
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
		args["id"] = refund(d, made.Bid.ID)
	}
	return true
}

// refund removes a paid bid and returns its refund, once it waits for the owner.
func refund(d *nodetest.Doors, id string) string {
	d.T.Helper()
	var bid protocol.OwnBid
	d.Good("POST", "/api/owner/bids/"+id+"/remove", `{"reason":"No yarn."}`, d.Token, nil)
	require.Eventually(d.T, func() bool {
		d.Good("GET", "/api/owner/bids/"+id, "", d.Token, &bid)
		return bid.State == protocol.BidRefunding
	}, time.Minute, 5*time.Millisecond)
	return bid.Refunds[0].ID
}
