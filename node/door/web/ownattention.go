package web

import (
	"net/http"
	"net/url"
	"slices"

	"stoa/protocol"
)

// The owner's page of an attention board: its settings, its bids and their money. Its forms do
// operations of the owner, as those of the account page.

const attentionPath = "/account/attention"

// attentionForms are the operations that the page has forms for.
var attentionForms = []*protocol.Operation{
	protocol.PutAttentionBoard.Operation, protocol.CloseAttentionBoard.Operation, protocol.PutPaymentAccount.Operation,
	protocol.DeletePaymentAccount.Operation, protocol.ConfirmBidPayment.Operation, protocol.DenyBidPayment.Operation, protocol.ApproveBid.Operation,
	protocol.AnswerBid.Operation, protocol.RemoveBid.Operation, protocol.MarkRefunded.Operation,
}

// attentionDone say what a form has done.
var attentionDone = map[string]string{
	"put_attention_board":    english("The board was saved."),
	"close_attention_board":  english("The board is closed. Live bids get the unused part of their money back."),
	"put_payment_account":    english("The payment account was saved."),
	"delete_payment_account": english("The payment account was deleted."),
	"confirm_bid_payment":    english("The payment was confirmed."), "deny_bid_payment": english("The payment was denied."),
	"approve_bid":   english("The text of the bid is public."),
	"answer_bid":    english("The bidder can read your answer."),
	"remove_bid":    english("The bid was removed. Its money goes back."),
	"mark_refunded": english("The refund is marked as made."),
}

// An ownBoard is what the page shows.
type ownBoard struct {
	Handles  []string // with a board, for a choice
	Handle   string
	Board    protocol.OwnAttentionBoard
	Turned   protocol.TurnedAway
	Account  protocol.PaymentAccount
	Claimed  []protocol.OwnBid // payments to confirm, the disputed ones first
	Refunds  []protocol.OwnRefund
	Bids     []protocol.OwnBid
	Payments []protocol.OwnPayment
	Next     string // path of the next page of bids
	State    string // of the bids that are shown
	Sent     *sent  // the form that was refused; nil for none
	Done     string
}

// sent returns the refused form if it is the named one, otherwise nil.
func (o *ownBoard) sent(do, id string) *sent {
	if f := o.Sent; f != nil && f.do == do && f.id == id {
		return f
	}
	return nil
}

func (s *Web) ownAttentionPage(w http.ResponseWriter, r *http.Request) {
	s.showOwnBoard(w, r, &ownBoard{Done: attentionDone[r.URL.Query().Get("done")]})
}

// readOwnBoard fills the page.
func (s *Web) readOwnBoard(r *http.Request, o *ownBoard) error {
	var who protocol.Account
	if err := s.invokeSignedIn(r, protocol.GetAccount.Operation, protocol.None{}, &who); err != nil {
		return err
	}
	if len(who.Handles) == 0 {
		return protocol.Errorf(protocol.NotFound, "no profile belongs to this account")
	}
	o.Handles = who.Handles
	if o.Handle = r.FormValue("handle"); o.Handle == "" {
		o.Handle = who.Handles[0]
	}
	own := map[string]any{"handle": o.Handle}
	var refunds protocol.Page[protocol.OwnRefund]
	var bids, claimed, disputed protocol.Page[protocol.OwnBid]
	var payments protocol.Page[protocol.OwnPayment]
	asked := map[string]any{"handle": o.Handle}
	for _, name := range []string{"state", "after"} {
		if v := r.URL.Query().Get(name); v != "" {
			asked[name] = v
		}
	}
	o.State = r.URL.Query().Get("state")
	for _, x := range []struct {
		op   *protocol.Operation
		args map[string]any
		into any
	}{
		{protocol.GetOwnAttentionBoard.Operation, own, &o.Board}, {protocol.GetTurnedAway.Operation, own, &o.Turned},
		{protocol.GetPaymentAccount.Operation, own, &o.Account},
		{protocol.ListBids.Operation, map[string]any{"handle": o.Handle, "state": protocol.BidClaimed, "limit": protocol.MaxLimit}, &claimed},
		{protocol.ListBids.Operation, map[string]any{"handle": o.Handle, "disputed": true, "limit": protocol.MaxLimit}, &disputed},
		{protocol.ListRefunds.Operation, own, &refunds}, {protocol.ListBids.Operation, asked, &bids}, {protocol.ListPayments.Operation, own, &payments},
	} {
		if err := s.invokeSignedIn(r, x.op, x.args, x.into); err != nil {
			return err
		}
	}
	o.Claimed, o.Refunds, o.Bids, o.Payments = append(disputed.Items, claimed.Items...), refunds.Items, bids.Items, payments.Items
	if bids.Next != nil {
		o.Next = "/account/attention?" + url.Values{"handle": {o.Handle}, "state": {o.State}, "after": {*bids.Next}}.Encode()
	}
	return nil
}

func (s *Web) showOwnBoard(w http.ResponseWriter, r *http.Request, o *ownBoard) {
	err := s.readOwnBoard(r, o)
	switch {
	case protocol.CodeOf(err) == protocol.Unauthorized:
		redirect(w, r, "/sign-in")
	case err != nil:
		s.Fail(w, r, err)
	default:
		status := 0
		if o.Sent != nil {
			status = o.Sent.err.Code.Status()
		}
		s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Attention board"), Path: "/account", Of: o.Handle, Body: ownBoardBody(o)})
	}
}

// ownAttentionForm does what a form of the page is for.
func (s *Web) ownAttentionForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	do := r.PostForm.Get("do")
	op := protocol.Lookup(do)
	if !slices.Contains(attentionForms, op) {
		s.Fail(w, r, protocol.Errorf(protocol.InvalidRequest, "there is no such form here"))
		return
	}
	var err error
	var now url.Values
	if e, ok := edits[do]; ok {
		now, err = s.save(r, op, e)
	} else {
		err = s.invokeSignedIn(r, op, inputOf(op, r.PostForm), nil)
	}
	if err == nil {
		redirect(w, r, "/account/attention?"+url.Values{"handle": {r.PostForm.Get("handle")}, "done": {do}}.Encode())
		return
	}
	o := &ownBoard{Sent: newSent(r.PostForm)}
	o.Sent.now = now
	o.Sent.refuse(r.Context(), protocol.AsError(err))
	if protocol.CodeOf(err) == protocol.Unauthorized {
		s.refusedPage(w, r, o.Sent)
		return
	}
	s.showOwnBoard(w, r, o)
}

// boardValues returns what the form shows of a board; of one that is not open, what it would do.
func boardValues(b protocol.OwnAttentionBoard) url.Values {
	v := boardTable.shows(b)
	v.Set("accepting", yes(b.Wanted || !b.Open))
	v.Set("autoApprove", yes(b.AutoApprove || !b.Open))
	return v
}

// paymentsFile is the export of a month.
func (s *Web) paymentsFile(w http.ResponseWriter, r *http.Request) {
	res, err := s.invokeOwner(r, protocol.ExportPayments.Operation, map[string]any{"handle": r.FormValue("handle"), "month": r.FormValue("month")}, "")
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Disposition", `attachment; filename="payments-`+r.FormValue("month")+`.csv"`)
	send(w, http.StatusOK, res.Op.Media, res.JSON)
}
