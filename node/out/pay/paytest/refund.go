package paytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

var idemForm = regexp.MustCompile(`^[A-Za-z0-9_-]{10,}$`)

// createRefund makes a refund that is pending until [Razorpay.SettleRefund].
func (s *Razorpay) createRefund(r *http.Request, raw []byte) (any, *problem) {
	p := s.payment(r.PathValue("id"))
	if p == nil {
		return nil, errNoID
	}
	key := r.Header.Get("X-Refund-Idempotency")
	if key != "" && !idemForm.MatchString(key) {
		return nil, bad("The idempotency key must be at least 10 characters of letters, numbers, hyphens and underscores")
	}
	if sent, ok := s.keys[p.ID+" "+key]; ok && key != "" {
		if sent.body != string(raw) {
			return nil, bad("Different request body sent for the same Idempotency Header")
		}
		return s.renderRefund(sent.refund), nil
	}
	var in struct {
		Amount int64 `json:"amount"`
	}
	switch err := json.Unmarshal(raw, &in); {
	case err != nil:
		return nil, bad("The request body is not valid JSON")
	case p.Status != "captured" && p.Status != "refunded":
		return nil, bad("The payment status should be captured for action to be taken")
	case in.Amount < 100:
		return nil, bad("The amount must be atleast INR 1.00")
	case s.refunded(p) == p.Amount:
		return nil, bad("The payment has been fully refunded already")
	case in.Amount > p.Amount-s.refunded(p):
		return nil, bad("The total refund amount is greater than the refund payment amount")
	}
	f := &fakeRefund{ID: s.id("rfnd"), payment: p, Amount: in.Amount, Status: "pending", Created: s.Now().Unix()}
	s.refunds = append(s.refunds, f)
	if s.refunded(p) == p.Amount {
		p.Status = "refunded"
	}
	if key != "" {
		s.keys[p.ID+" "+key] = sentRefund{string(raw), f}
	}
	return s.renderRefund(f), nil
}

func (s *Razorpay) getRefund(r *http.Request, _ []byte) (any, *problem) {
	if f := s.refund(r.PathValue("id")); f != nil {
		return s.renderRefund(f), nil
	}
	return nil, errNoID
}

// GiveBack is a refund that the owner makes in the vendor's own pages; it is processed at once.
func (s *Razorpay) GiveBack(paymentID string, paise int64) (refundID string, err error) {
	s.mu.Lock()
	p := s.payment(paymentID)
	if p == nil || paise > p.Amount-s.refunded(p) {
		s.mu.Unlock()
		return "", fmt.Errorf("payment %s has no %d to refund", paymentID, paise)
	}
	f := &fakeRefund{ID: s.id("rfnd"), payment: p, Amount: paise, Status: "pending", Created: s.Now().Unix()}
	if s.refunds = append(s.refunds, f); s.refunded(p) == p.Amount {
		p.Status = "refunded"
	}
	s.mu.Unlock()
	return f.ID, s.SettleRefund(f.ID, true)
}

// SettleRefund ends a pending refund: done, or failed, whereupon its amount can be refunded again.
func (s *Razorpay) SettleRefund(refundID string, done bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.refund(refundID)
	if f == nil || f.Status != "pending" {
		return fmt.Errorf("refund %s is not pending", refundID)
	}
	event := "refund.processed"
	if f.Status = "processed"; !done {
		f.Status, f.payment.Status, event = "failed", "captured", "refund.failed"
	}
	s.emit(event, map[string]any{"refund": s.renderRefund(f), "payment": s.renderPayment(f.payment)})
	return nil
}

// PendingRefunds returns the ids of refunds that are not settled, oldest first.
func (s *Razorpay) PendingRefunds() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.refunds {
		if f.Status == "pending" {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

func (s *Razorpay) refund(id string) *fakeRefund {
	if i := slices.IndexFunc(s.refunds, func(f *fakeRefund) bool { return f.ID == id }); i >= 0 {
		return s.refunds[i]
	}
	return nil
}

// refunded is what has been paid back of a payment or is on its way.
func (s *Razorpay) refunded(p *fakePayment) (sum int64) {
	for _, f := range s.refunds {
		if f.payment == p && f.Status != "failed" {
			sum += f.Amount
		}
	}
	return sum
}

func (s *Razorpay) renderRefund(f *fakeRefund) map[string]any {
	return map[string]any{
		"id": f.ID, "entity": "refund", "amount": f.Amount, "currency": f.payment.link.Currency, "payment_id": f.payment.ID, "notes": []any{}, "receipt": nil,
		"acquirer_data": map[string]any{"arn": nil}, "created_at": f.Created, "batch_id": nil, "status": f.Status,
		"speed_requested": "normal", "speed_processed": "normal",
	}
}
