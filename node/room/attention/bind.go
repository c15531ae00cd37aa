package attention

import (
	"stoa/node/hall"
	"stoa/node/money"
	"stoa/protocol"
	"stoa/storage"
)

// New makes the room; the parameters are the fields of Attention.
func New(h hall.House, sandbox bool, books *money.Money, webhook Sender, linkKey []byte) *Attention {
	a := &Attention{Base: h.Base, Private: h.Private, DB: h.DB, Sandbox: sandbox, Money: books, Webhook: webhook, LinkKey: linkKey}
	books.Kinds[protocol.BidID] = a
	return a
}

// Bind binds the operations of the room.
func (a *Attention) Bind(t *hall.Table) {
	hall.Bind(t, protocol.ReadBidLink, a.ReadLink)
	hall.Bind(t, protocol.UseBidLink, a.UseLink)
	hall.Bind(t, protocol.ListAttentionBoards, a.List)
	hall.Bind(t, protocol.ReadAttentionBoard, a.ReadBoard)
	hall.Bind(t, protocol.CheckBid, a.Check)
	hall.Bind(t, protocol.BidForAttention, a.Bid)
	hall.Ahead(t, protocol.BidForAttention, a.Ahead)
	hall.Bind(t, protocol.GetBid, a.Get)
	hall.Bind(t, protocol.WithdrawBid, a.Withdraw)
	hall.Bind(t, protocol.DisputePayment, a.Dispute)
	hall.Bind(t, protocol.TracePayment, a.Trace)
	hall.Bind(t, protocol.TraceOwnPayment, a.TraceOwn)
	hall.Bind(t, protocol.GetPayment, a.GetPayment)
	hall.Bind(t, protocol.ClaimPayment, a.Claim)
	hall.Bind(t, protocol.PressSandbox, a.Press)
	hall.Bind(t, protocol.ListBids, a.Bids)
	hall.Bind(t, protocol.GetOwnBid, a.GetBid)
	hall.Bind(t, protocol.AnswerBid, a.Answer)
	hall.Bind(t, protocol.ApproveBid, a.Approve)
	hall.Bind(t, protocol.RemoveBid, a.Remove)
	hall.Bind(t, protocol.ConfirmBidPayment, a.Confirm)
	hall.Bind(t, protocol.DenyBidPayment, a.Deny)
	hall.Bind(t, protocol.CloseAttentionBoard, a.Close)
	hall.Bind(t, protocol.ListPayments, a.Payments)
	hall.Bind(t, protocol.ListRefunds, a.Refunds)
	hall.Bind(t, protocol.MarkRefunded, a.MarkRefunded)
	hall.Bind(t, protocol.ExportPayments, a.Export)
	hall.Bind(t, protocol.GetOwnAttentionBoard, a.GetOwn)
	hall.Bind(t, protocol.PutAttentionBoard, a.PutOwn)
	hall.Bind(t, protocol.GetPaymentAccount, a.GetAccount)
	hall.Bind(t, protocol.PutPaymentAccount, a.PutAccount)
	hall.Bind(t, protocol.DeletePaymentAccount, a.DeleteAccount)
}

// Jobs are the handlers of the room's jobs.
func (a *Attention) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.BidDueJob:    storage.HandlerOf(a.Due),
		storage.BidUpdateJob: storage.HandlerOf(a.Update),
	}
}
