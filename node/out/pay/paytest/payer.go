package paytest

import (
	"fmt"
	"slices"
)

// Pay pays a link at once: less than its amount makes it partially paid. It fails where the vendor's
// page does: on a link that is paid, cancelled or expired.
func (s *Razorpay) Pay(linkID string, paise int64) (paymentID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.begin(linkID, paise)
	if err != nil {
		return "", err
	}
	s.capture(p)
	return p.ID, nil
}

// Begin is a payment that the bank has not answered yet. [Razorpay.Settle] is its answer, which may
// come up to three days later, when the link has expired, was cancelled or is paid otherwise.
func (s *Razorpay) Begin(linkID string, paise int64) (paymentID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.begin(linkID, paise)
	if err != nil {
		return "", err
	}
	return p.ID, nil
}

// Settle captures a payment that was begun.
func (s *Razorpay) Settle(paymentID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	p := s.payment(paymentID)
	if p == nil || p.Status != "created" && p.Status != "failed" {
		return fmt.Errorf("payment %s is not waiting for the bank", paymentID)
	}
	s.capture(p)
	return nil
}

// Fail is a payment that the bank refuses. A later Settle of it is a late authorisation.
func (s *Razorpay) Fail(linkID string, paise int64) (paymentID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.begin(linkID, paise)
	if err != nil {
		return "", err
	}
	p.Status = "failed"
	s.emit("payment.failed", map[string]any{"payment": s.renderPayment(p)})
	return p.ID, nil
}

func (s *Razorpay) begin(linkID string, paise int64) (*fakePayment, error) {
	s.tick()
	l := s.link(linkID)
	if l == nil || l.Status != "created" && l.Status != "partially_paid" {
		return nil, fmt.Errorf("link %s takes no payment", linkID)
	}
	p := &fakePayment{ID: s.id("pay"), link: l, Amount: paise, Status: "created", Created: s.Now().Unix(), RRN: fmt.Sprintf("4%011d", s.seq)}
	s.payments = append(s.payments, p)
	return p, nil
}

func (s *Razorpay) capture(p *fakePayment) {
	l := p.link
	p.Status, p.Captured = "captured", s.Now().Unix()
	l.Paid, l.Updated = l.Paid+p.Amount, p.Captured
	l.Status = "paid"
	event := "payment_link.paid"
	if l.Paid < l.Amount {
		l.Status, event = "partially_paid", "payment_link.partially_paid"
	}
	order := map[string]any{
		"id": "order_" + l.ID[len("plink_"):], "entity": "order", "amount": l.Amount, "amount_paid": l.Paid, "amount_due": max(0, l.Amount-l.Paid),
		"currency": l.Currency, "receipt": l.Ref, "status": "paid", "attempts": 1, "notes": []any{}, "created_at": l.Created,
	}
	s.emit(event, map[string]any{"payment_link": s.render(l), "payment": s.renderPayment(p), "order": order})
}

func (s *Razorpay) payment(id string) *fakePayment {
	if i := slices.IndexFunc(s.payments, func(p *fakePayment) bool { return p.ID == id }); i >= 0 {
		return s.payments[i]
	}
	return nil
}

func (s *Razorpay) renderPayment(p *fakePayment) map[string]any {
	refunded, state := s.refunded(p), any(nil)
	if refunded > 0 {
		state = "partial"
	}
	return map[string]any{
		"id": p.ID, "entity": "payment", "amount": p.Amount, "base_amount": p.Amount, "currency": p.link.Currency, "status": p.Status,
		"captured": p.Status == "captured" || p.Status == "refunded", "method": "upi", "vpa": "payer@okbank", "acquirer_data": map[string]any{"rrn": p.RRN},
		"amount_refunded": refunded, "refund_status": state, "fee": 236, "tax": 36, "fee_bearer": "platform", "notes": []any{}, "contact": "+919999999999",
		"email": "payer@example.com", "order_id": "order_" + p.link.ID[len("plink_"):], "created_at": p.Created,
	}
}

// A Balance is the money of a reference at the provider, in paise.
type Balance struct {
	Payments int   // captured
	Paid     int64 // by captured payments
	Refunded int64 // by refunds that are processed
	Pending  int64 // by refunds that are not yet
}

// Book returns the balance of each reference that has a link: what the ledger must agree with.
func (s *Razorpay) Book() map[string]Balance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	book := map[string]Balance{}
	for _, l := range s.links {
		book[l.Ref] = Balance{}
	}
	for _, p := range s.payments {
		if p.Status == "captured" || p.Status == "refunded" {
			b := book[p.link.Ref]
			b.Payments, b.Paid = b.Payments+1, b.Paid+p.Amount
			book[p.link.Ref] = b
		}
	}
	for _, r := range s.refunds {
		b := book[r.payment.link.Ref]
		switch r.Status {
		case "processed":
			b.Refunded += r.Amount
		case "pending":
			b.Pending += r.Amount
		}
		book[r.payment.link.Ref] = b
	}
	return book
}

// LinkOf returns the id and state of the newest link of a reference; "" where there is none.
func (s *Razorpay) LinkOf(ref string) (id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	for _, l := range slices.Backward(s.links) {
		if l.Ref == ref {
			return l.ID, l.Status
		}
	}
	return "", ""
}
