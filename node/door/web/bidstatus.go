package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/protocol"
)

// The page of a bid, for its bidder.

// invokeOpen invokes an operation that a secret among its arguments opens.
func (s *Web) invokeOpen(r *http.Request, op *protocol.Operation, args any, into any) error {
	res, err := s.openResult(r, op, args)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(res.JSON, into)
}

// openResult is what such an operation answers.
func (s *Web) openResult(r *http.Request, op *protocol.Operation, args any) (hall.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return hall.Result{}, err
	}
	return s.Table.Invoke(r.Context(), hall.Request{Op: op.Name, Args: raw, Door: "page", Evidence: identity.Evidence{Network: s.Network(r)}})
}

func (s *Web) bidPage(w http.ResponseWriter, r *http.Request) {
	var b protocol.Bid
	args := openedBid.args(r)
	err := s.invokeOpen(r, protocol.GetBid.Operation, args, &b)
	if err == nil {
		s.showBidState(w, r, 0, bidBody(b, args["statusToken"].(string), s.Base, nil, s.tells(r)))
		return
	}
	if code := protocol.CodeOf(err); locked(protocol.BidID, r.PathValue("id"), code) {
		s.showBidState(w, r, code.Status(), bidLocked(r.PathValue("id"), false))
		return
	}
	s.failSecret(w, r, err)
}

// disputeForm takes what a payer says once more, and shows the page again when it is refused.
func (s *Web) disputeForm(w http.ResponseWriter, r *http.Request) {
	args := openedBid.args(r)
	token, _ := args["statusToken"].(string)
	var b protocol.Bid
	if err := s.invokeOpen(r, protocol.GetBid.Operation, args, &b); err != nil {
		s.failSecret(w, r, err)
		return
	}
	if utr := typedUTR(r.PostForm.Get("utr")); utr != "" {
		args["utr"] = utr
	}
	err := s.invokeOpen(r, protocol.DisputePayment.Operation, args, nil)
	if err == nil {
		redirect(w, r, "/bids/"+b.ID)
		return
	}
	f := newSent(r.PostForm)
	f.refuse(r.Context(), protocol.AsError(err))
	s.showBidState(w, r, f.err.Code.Status(), bidBody(b, token, s.Base, f, s.tells(r)))
}

// bidPageForm opens the page with a status token, withdraws the bid, or disputes that its payment was not confirmed.
func (s *Web) bidPageForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	id, token := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("statusToken"))
	switch {
	case err != nil:
	case r.PostForm.Get("do") == protocol.DisputePayment.Name:
		s.disputeForm(w, r)
		return
	case r.PostForm.Get("do") == protocol.AddDevice.Name:
		if err = s.addDevice(r, openedBid); err == nil {
			redirect(w, r, "/bids/"+id+nowTold)
			return
		}
	case r.PostForm.Get("do") == protocol.WithdrawBid.Name:
		err = s.invokeOpen(r, protocol.WithdrawBid.Operation, openedBid.args(r), nil)
	default:
		if err = s.invokeOpen(r, protocol.GetBid.Operation, map[string]any{"id": id, "statusToken": token}, nil); err == nil {
			s.open(w, openedBid, id, token)
		} else if code := protocol.CodeOf(err); locked(protocol.BidID, id, code) {
			s.showBidState(w, r, code.Status(), bidLocked(id, true))
			return
		}
	}
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	redirect(w, r, "/bids/"+id)
}

func (s *Web) showBidState(w http.ResponseWriter, r *http.Request, status int, body templ.Component) {
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Your bid"), Path: "/bids/{id}", Secret: true, Helps: true, Push: true, Body: body})
}

// moveWords say what happened when a bid got a state.
func moveWords(ctx context.Context, s protocol.BidState) string {
	switch s {
	case protocol.BidHeld:
		return tr(ctx, "Bid made")
	case protocol.BidClaimed:
		return tr(ctx, "Payment reported")
	case protocol.BidRefunding:
		return tr(ctx, "Refund begun")
	}
	return initial(stateMark(ctx, s).Word)
}

// sentByOwner reports whether what is still to be refunded has to be sent by the owner of the board.
func sentByOwner(refunds []protocol.BidRefund) bool {
	return !slices.ContainsFunc(refunds, func(x protocol.BidRefund) bool { return x.State != "manual" && x.State != "done" })
}

// refundStates say how far a refund is.
var refundStates = map[string]string{
	"due": english("about to be ordered"), "ordered": english("at the payment provider"), "manual": english("the owner has to send it back"),
	"failed": english("the provider refused it; it is tried again, or made by hand"), "done": english("done"),
}

// stateMark is the state of a bid in a word or two.
func stateMark(ctx context.Context, s protocol.BidState) mark {
	texts := map[protocol.BidState]string{protocol.BidHeld: english("not paid"), protocol.BidClaimed: english("waits for confirmation"),
		protocol.BidUnconfirmed: english("payment not confirmed")}
	class := "poor"
	switch s {
	case protocol.BidLive, protocol.BidRefunded:
		class = "good"
	case protocol.BidHeld, protocol.BidClaimed, protocol.BidRefundDue, protocol.BidRefunding, protocol.BidRefundFailed:
		class = "fair"
	}
	if text := texts[s]; text != "" {
		return mark{Word: tr(ctx, text), Class: class}
	}
	return mark{Word: strings.ToLower(word(ctx, s)), Class: class}
}

// receiptLabels are those of the lines of a receipt.
var receiptLabels = map[string]string{
	"Receipt": english("Receipt"), "Date": english("Date"), "Received by": english("Received by"), "Address": english("Address"), "GSTIN": english("GSTIN"),
	"Received from": english("Received from"), "Amount": english("Amount"), "Taxable value": english("Taxable value"),
	"Refunded": english("Refunded##on a receipt"), "Paid": english("Paid##on a receipt"), "Payment": english("Payment"),
	"Bank reference (UTR)": english("Bank reference (UTR)"), "For": english("For##on a receipt"), "Slot": english("Slot"),
	"Bid": english("Bid##on a receipt"), "Note": english("Note"), "TEST": english("TEST"),
}

// receiptLabel returns the label of a line of a receipt in the language of ctx.
func receiptLabel(ctx context.Context, label string) string {
	if key := receiptLabels[label]; key != "" {
		return tr(ctx, key)
	}
	if percent, ok := strings.CutSuffix(strings.TrimPrefix(label, "GST, "), " % included"); ok {
		return tr(ctx, "GST, %s%% included", percent)
	}
	return label
}

// bidLocked asks for the status token.
func bidLocked(id string, tried bool) templ.Component {
	return all{
		inside(`div class="lead"`, title("A bid"), para("This page opens in the browser that made the bid, or with its status token.")),
		notOpened(tried, english("Check the token.")), opening("/bids/"+id, "statusToken", english("Status token"), english("Show the bid")),
	}
}
