package web

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// The page where a bid is paid. Its address contains a secret, so that it is sent with no-referrer
// and no-store, and no list names it.

// A payment is what the page shows.
type payment struct {
	protocol.Payment
	token   string
	pressed string // the button of a test that was pressed just now
	f       *sent  // the form that was refused; nil for none
}

// code returns the path of the QR code.
func (p payment) code() string { return "/pay/" + p.token + "/qr.svg" }

// waits returns the seconds after which the page is loaded again, 0 for never: not while someone
// may be typing a reference.
func (p payment) waits() int {
	switch {
	case p.f != nil:
		return 0
	case p.State == protocol.BidClaimed, p.State == protocol.BidRefunding, p.State == protocol.BidRefundDue:
		return 30
	case p.State == protocol.BidHeld && (p.Link == "pending" || p.pressed == "pay" || p.pressed == "pay-twice"):
		return 3
	case p.State == protocol.BidHeld && !p.Claimed:
		return 10
	}
	return 0
}

func (s *Web) payPage(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	var p protocol.Payment
	if err := s.invokeOpen(r, protocol.GetPayment.Operation, map[string]any{"payToken": token}, &p); err != nil {
		s.failSecret(w, r, err)
		return
	}
	s.showPayment(w, r, payment{Payment: p, token: token, pressed: r.URL.Query().Get("pressed")})
}

// failSecret is Fail for a page whose address opens something.
func (s *Web) failSecret(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Robots-Tag", "noindex")
	s.Fail(w, r, err)
}

// payForm takes the forms of the page: the payer reports a payment by its reference, or
// presses a button of a board for tests.
func (s *Web) payForm(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	if err := s.parseForm(w, r); err != nil {
		s.failSecret(w, r, err)
		return
	}
	args := map[string]any{"payToken": token}
	if utr := typedUTR(r.PostForm.Get("utr")); utr != "" {
		args["utr"] = utr
	}
	op := protocol.ClaimPayment.Operation
	if button := r.PostForm.Get("button"); button != "" {
		op, args["button"] = protocol.PressSandbox.Operation, button
	}
	err := s.invokeOpen(r, op, args, nil)
	if err == nil {
		to := "/pay/" + token
		if button, ok := args["button"].(string); ok {
			to += "?pressed=" + url.QueryEscape(button)
		}
		redirect(w, r, to)
		return
	}
	f := newSent(r.PostForm)
	f.refuse(r.Context(), protocol.AsError(err))
	var p protocol.Payment
	if err := s.invokeOpen(r, protocol.GetPayment.Operation, map[string]any{"payToken": token}, &p); err != nil {
		s.failSecret(w, r, err)
		return
	}
	s.showPayment(w, r, payment{Payment: p, token: token, f: f})
}

func (s *Web) showPayment(w http.ResponseWriter, r *http.Request, p payment) {
	status := 0
	if p.f != nil {
		status = p.f.err.Code.Status()
	}
	s.writePrivate(w, r, status, view{
		Title: tr(r.Context(), "Pay %s", rupees(p.Amount)), Path: "/pay/{token}", Secret: true, Helps: true, Refresh: p.waits(), Body: payBody(p),
	})
}

// payCode is the QR code of a payment that is open.
func (s *Web) payCode(w http.ResponseWriter, r *http.Request) {
	var p protocol.Payment
	err := s.invokeOpen(r, protocol.GetPayment.Operation, map[string]any{"payToken": r.PathValue("token")}, &p)
	if err == nil && p.UPI == nil {
		err = protocol.Errorf(protocol.NotFound, "there is nothing to pay here now")
	}
	var svg []byte
	if err == nil {
		svg, err = s.QR(*p.UPI, "QR code to pay "+rupees(p.Amount)+" by UPI")
	}
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Robots-Tag", "noindex")
	head.Set("Referrer-Policy", "no-referrer")
	send(w, http.StatusOK, "image/svg+xml", svg)
}

// order reports whether it is paid for an order, and not for a bid.
func (p payment) order() bool { return protocol.IsID(protocol.OrderID, p.BidID) }

// of leads to what is paid for.
func (p payment) of() templ.Component {
	if p.order() {
		return link("/@"+p.Handle, "shop of %s", "@"+p.Handle)
	}
	return link("/@"+p.Handle+"/board", "attention board of %s", "@"+p.Handle)
}

// follow leads to its page.
func (p payment) follow() templ.Component {
	if p.order() {
		return inside(`p class="hint"`, link("/order/"+p.token, "Follow or cancel the order"))
	}
	return inside(`p class="hint"`, spanned("A bid for a slot of attention, by %s (unverified).", called(p.Bidder)), space,
		link("/bids/"+p.BidID, "Follow or withdraw the bid"))
}

// words say what its state means to the payer, when it takes no payment.
func (p payment) words(ctx context.Context) string {
	if !p.order() {
		return stateWords(ctx, p.State, p.Claimed, p.Handle)
	}
	switch p.State {
	case protocol.BidLive:
		return tr(ctx, orderStates[protocol.OrderPaid])
	case protocol.BidRefunded:
		return tr(ctx, orderStates[protocol.OrderIsRefunded])
	}
	return tr(ctx, "It was not paid in time, or was canceled. Do not pay now; order again.")
}

func payTitle(ctx context.Context, p payment) string {
	if p.order() && p.State != protocol.BidClaimed {
		return tr(ctx, "Pay for an order")
	}
	switch p.State {
	case protocol.BidHeld:
		return tr(ctx, "Pay for a bid")
	case protocol.BidClaimed:
		return tr(ctx, "The payment waits for its confirmation")
	case protocol.BidLive:
		return tr(ctx, "Paid: the bid is live")
	}
	return tr(ctx, "Payment of a bid")
}

// testButtons say what a payer may do on a board where no money moves, and what has been done then.
var testButtons = map[string][2]string{
	"pay":  {english("Pay"), english("The payment was made. This page shows it in a moment.")},
	"fail": {english("Try, and the bank refuses"), english("The bank refused the payment. Nothing was paid; the bid can still be paid.")},
	"pay-late": {english("Pay, and it arrives late"),
		english("The payment was made. The bank reports it three minutes after the time to pay is over: then the bid gets a slot, or the money goes back.")},
	"pay-twice":  {english("Pay twice"), english("The payment was made two times. This page shows it in a moment; the second payment goes back.")},
	"pay-partly": {english("Pay half"), english("Half was paid. That goes back; the bid can still be paid.")},
}

// indianClock formats a time for a payer in India.
func indianClock(ctx context.Context, t time.Time) string {
	return words.Of(ctx).Time(t.In(protocol.India), "15:04:05 IST, 2 January")
}

// indianStamp formats a time for the pages of bids: that of India, as in the receipts and the books.
func indianStamp(ctx context.Context, t time.Time) string {
	return words.Of(ctx).Time(t.In(protocol.India), "2 January 2006, 15:04 IST")
}

// payName is the name of a provider for people.
func payName(provider string) string {
	if provider == string(protocol.PayUPI) {
		return "UPI"
	}
	return initial(provider)
}

// bidWords say what the state of a bid means to its bidder.
var bidWords = map[protocol.BidState]string{
	protocol.BidHeld:        english("Not paid yet."),
	protocol.BidClaimed:     english("The owner has to confirm that the payment arrived."),
	protocol.BidUnconfirmed: english("The owner did not confirm the payment. If money left your account, report its reference again or write to the owner."),
	protocol.BidLapsed: english("It was not paid in time, and the bid has lapsed. " +
		"Do not pay now; money that arrives late gets a slot if one can be had, or goes back."),
	protocol.BidWithdrawn:    english("The bidder has withdrawn the bid. Do not pay now."),
	protocol.BidLive:         english("It is paid and live on the board."),
	protocol.BidOutbid:       english("A higher bid took the place. The unused part goes back."),
	protocol.BidEnded:        english("Its time on the board is over."),
	protocol.BidRemoved:      english("The owner removed it. All of the money goes back."),
	protocol.BidUnanswered:   english("The owner did not answer in time. All of the money goes back."),
	protocol.BidRefundDue:    english("It was paid, but no slot could be had. All of the money goes back."),
	protocol.BidRefunded:     english("The money was refunded."),
	protocol.BidRefundFailed: english("The provider refused the refund. It is tried again each day, and the owner was told to make it by hand."),
	protocol.BidRefunding:    english("The refund is on its way."),
}

// stateWords are those of a bid's state. byHand says that the owner, handle, has to send the money back.
func stateWords(ctx context.Context, s protocol.BidState, byHand bool, handle string) string {
	if s == protocol.BidRefunding && byHand {
		return tr(ctx, "The owner of the board has to send the money back. Write to %s if it does not come.", "@"+handle)
	}
	if key := bidWords[s]; key != "" {
		return tr(ctx, key)
	}
	return word(ctx, string(s))
}

// stateClass is the look of a state: done, or in need of attention.
func stateClass(s protocol.BidState) string {
	switch s {
	case protocol.BidLive, protocol.BidRefunded:
		return "done"
	}
	return "card"
}

func copied(label, value string) templ.Component { return labelled(label, in("code data-copy", value)) }

func indianMoment(t time.Time) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		_, err := io.WriteString(w, ` <time datetime="`+machineTime(t)+`">`+templ.EscapeString(indianStamp(ctx, t))+"</time> ")
		return err
	})
}

// payUntil shows when a time ends, before which is a key; a script turns it into a countdown.
func payUntil(before string, until *time.Time, now time.Time) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return optional(until, func(until time.Time) templ.Component {
			left := strconv.FormatInt(until.Sub(now).Milliseconds(), 10)
			return inside(`p class="until"`, put(tr(ctx, before)+" "),
				in(`time datetime="`+machineTime(until)+`" data-left="`+left+`"`, indianClock(ctx, until)))
		})
	})
}
