package web

import (
	"net/http"
	"net/url"
	"strings"

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
	if utr := strings.Join(strings.Fields(r.PostForm.Get("utr")), ""); utr != "" {
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
