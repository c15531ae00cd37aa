package a2aapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestA2A_Bid walks a bid as a task of its bidder, who has nothing but the A2A endpoint: it asks for
// a payment, and its state follows the bid's.
func TestA2A_Bid(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		h.Hosted("ravi")
		d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
		d.Reopen(protocol.PayUPI)
		all := h.Agents(2)
		me, other := all[0], all[1]
		bid := func(messageID string) a2a.Task {
			return me.Do("/a2a/asha", "SendMessage", fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"data":{"operation":"bid_for_attention",`+
				`"input":{"amount":500,"message":"Yarn."}}}]}}`, messageID)).Task(t)
		}
		state := func(id string) a2a.State { return me.GetTask("asha", id).Task(t).Status.State }

		task := bid("b-1")
		require.Equal(t, a2a.InputRequired, task.Status.State)
		made := must.JSON[protocol.BidReceipt](task.Artifacts[0].Parts[0].Data)(t)
		require.Equal(t, made.Bid.ID, task.ID)
		require.Contains(t, *task.Status.Message.Parts[0].Text, made.PaymentURL)
		require.Contains(t, *task.Status.Message.Parts[0].Text, protocol.NoCharge)
		require.Equal(t, made.PaymentURL, func() string {
			again := must.JSON[protocol.BidReceipt](bid("b-1").Artifacts[0].Parts[0].Data)(t)
			return again.PaymentURL
		}(), "the same message is the same bid")
		require.Equal(t, a2a.InputRequired, state(task.ID))
		for _, lost := range []nodetest.A2AAnswer{
			other.GetTask("asha", task.ID), me.GetTask("ravi", task.ID), other.Do("/a2a/asha", "CancelTask", `{"id":"`+task.ID+`"}`),
		} {
			require.Contains(t, string(lost.Raw), `"code":-32001`, "another caller's, or at another agent")
		}
		require.Equal(t, a2a.InputRequired, me.Do("/a2a", "GetTask", `{"id":"`+task.ID+`"}`).Task(t).Status.State, "at the node's own agent")

		secret := made.PaymentURL[strings.LastIndexByte(made.PaymentURL, '/')+1:]
		d.Good("POST", "/api/public/payment/claim", `{"utr":"`+nodetest.NewUTR()+`","payToken":"`+secret+`"}`, "", nil)
		require.Equal(t, a2a.Working, state(task.ID), "the caller has nothing to do")
		require.Contains(t, string(me.Do("/a2a/asha", "CancelTask", `{"id":"`+task.ID+`"}`).Raw), `"code":-32002`)
		d.Good("POST", "/api/owner/bids/"+task.ID+"/confirm", `{}`, d.Token, nil)
		require.Equal(t, a2a.Completed, state(task.ID))
		require.Equal(t, a2a.Completed, bid("b-1").Status.State, "a repeat tells the present state")
		d.Good("POST", "/api/owner/bids/"+task.ID+"/remove", `{"reason":"No yarn."}`, d.Token, nil)
		removed := me.GetTask("asha", task.ID).Task(t)
		require.Equal(t, a2a.Completed, removed.Status.State, "a task that has ended stays as it ended")
		require.Contains(t, string(removed.Artifacts[0].Parts[0].Data), `"No yarn."`)

		next := bid("b-2")
		require.Equal(t, a2a.Canceled, me.Do("/a2a/asha", "CancelTask", `{"id":"`+next.ID+`"}`).Task(t).Status.State)
		require.Equal(t, a2a.Canceled, state(next.ID))
		lapsed := bid("b-3")
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			b, err := tx.Bids().ByID(ctx, lapsed.ID)
			if err != nil {
				return err
			}
			b.HoldUntil = tx.Now.Add(-time.Second)
			return tx.Bids().Save(ctx, b)
		}))
		require.Equal(t, a2a.Failed, state(lapsed.ID))
		d.Good("POST", "/api/owner/attention/close", `{"handle":"asha"}`, d.Token, nil)
		d.Good("POST", "/api/owner/bids/"+lapsed.ID+"/confirm", `{"utr":"`+nodetest.NewUTR()+`"}`, d.Token, nil)
		require.Equal(t, a2a.Rejected, state(lapsed.ID), "paid too late, and the board is closed")
	})
}
