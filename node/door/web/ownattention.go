package web

import (
	"context"
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The owner's page of an attention board: its settings, its bids and their money. Its forms do
// operations of the owner, as those of the account page.

const attentionPath = "/account/attention"

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

func (a *account) readBoard(s *Web, r *http.Request) error {
	o := &ownBoard{Handles: a.handles(), Handle: a.Handle, Sent: a.Sent, Done: a.Done}
	a.Board = o
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
		o.Next = attentionPath + "?" + url.Values{"handle": {o.Handle}, "state": {o.State}, "after": {*bids.Next}}.Encode()
	}
	return nil
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

// ownTitle is the heading of a page about one profile; its title is a key.
func ownTitle(title, handle string) templ.Component {
	return inside("h1", sayKey(title).spaced(), in(`span class="of" translate="no"`, "@"+handle))
}

// boardForm has the settings of a board.
func boardForm(o *ownBoard) templ.Component {
	f, at, b := o.sent("put_attention_board", ""), formID("put_attention_board", o.Handle, ""), o.Board
	v := boardValues(b)
	form := posted("card form", at, attentionPath, ownKeys("put_attention_board", o.Handle, ""), version(f, v), boardFields(b).fields(f, at, v),
		sends(saveBoard(b)))
	return drawn(func(ctx context.Context) templ.Component {
		return all{form, when(b.Open, folded(false, "Close the board", para("Live bids end, and the unused part of their money goes back."),
			oneTap(o.Handle, "close_attention_board", tr(ctx, "Close the board"), "", "quiet")))}
	})
}

// payAccountForm sets where bids are paid to. Secrets are never shown.
func payAccountForm(o *ownBoard) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		f, at, a := o.sent("put_payment_account", ""), formID("put_payment_account", o.Handle, ""), o.Account
		v := payTable.shows(a)
		return all{
			posted("card form", at, attentionPath, ownKeys("put_payment_account", o.Handle, ""), version(f, v),
				para("Payers pay you directly; no money passes through this node."), payFields(ctx, a).fields(f, at, v), sends("Save the account")),
			optional(a.WebhookURL, func(at string) templ.Component { return hint("Webhook address for Razorpay: %s", code(at)) }),
			when(a.Provider != nil, oneTap(o.Handle, "delete_payment_account", tr(ctx, "Delete the payment account"), "", "quiet")),
		}
	})
}

// ownAlert says why a form was refused; nothing for one that was not.
func ownAlert(f *sent, back string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		switch {
		case f == nil:
			return templ.NopComponent
		case f.now != nil:
			return alerts(changedSince(back))
		}
		return failed("Nothing was saved.", ownRefusal(ctx, f))
	})
}
