package paytest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"stoa/node/out/pay"
)

// A Vendor is a payment provider without a network. It keeps a book, which the node's ledger is compared with, and answers as a test says.
type Vendor struct {
	mu      sync.Mutex // guards the rest
	now     func() time.Time
	Links   map[string]pay.LinkRequest // by reference
	paid    map[string]int64           // by payment id
	Refunds map[string]int64           // by key
	of      map[string]string          // payment of a refund
	Status  map[string]pay.RefundStatus
	Link    error            // what CreateLink answers
	Refused error            // what Refund answers
	Answer  pay.RefundStatus // of new refunds; "" done
	Later   pay.RefundStatus // what becomes of a pending one; "" done
	Lost    bool             // Refund makes the refund, and its answer does not arrive
}

// NewVendor makes one with a clock.
func NewVendor(now func() time.Time) *Vendor {
	return &Vendor{now: now, Links: map[string]pay.LinkRequest{}, paid: map[string]int64{}, Refunds: map[string]int64{},
		of: map[string]string{}, Status: map[string]pay.RefundStatus{}}
}

func (v *Vendor) Name() string { return "razorpay" }
func (v *Vendor) Caps() pay.Caps {
	return pay.Caps{MinPaise: 100, Refunds: true, Cancel: true, Webhook: true}
}
func (v *Vendor) Check(context.Context) error { return nil }

func (v *Vendor) CreateLink(_ context.Context, r pay.LinkRequest) (pay.Link, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Link != nil {
		return pay.Link{}, v.Link
	}
	v.Links[r.Ref] = r
	return pay.Link{ProviderID: "plink_" + r.Ref, URL: "https://pay.example/" + r.Ref, ExpiresAt: r.ExpiresAt}, nil
}

func (v *Vendor) FetchLink(context.Context, string) ([]pay.Event, error) { return nil, nil }
func (v *Vendor) CancelLink(context.Context, string) error               { return nil }
func (v *Vendor) ParseWebhook(http.Header, []byte) ([]pay.Event, error)  { return nil, pay.ErrSignature }

func (v *Vendor) Refund(_ context.Context, payment, key string, paise int64) (pay.Refund, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Refused != nil {
		return pay.Refund{}, v.Refused
	}
	if before, made := v.Refunds[key]; made && before != paise {
		return pay.Refund{}, pay.ErrRefused
	}
	if _, made := v.Refunds[key]; !made && v.left(payment) < paise {
		return pay.Refund{}, pay.ErrRefused
	}
	v.Refunds[key], v.of[key] = paise, payment
	if v.Status[key] == "" {
		v.Status[key] = pay.RefundOK
		if v.Answer != "" && !strings.HasSuffix(key, "-3") { // within the week in which it is tried
			v.Status[key] = v.Answer
		}
	}
	if v.Lost {
		return pay.Refund{}, pay.Fail(pay.ErrTemporary, "no answer")
	}
	return pay.Refund{ID: key, Status: v.Status[key]}, nil
}

func (v *Vendor) FetchRefund(_ context.Context, id string) (pay.Refund, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Status[id] == pay.RefundPending {
		v.Status[id] = cmp.Or(v.Later, pay.RefundOK)
	}
	return pay.Refund{ID: id, Status: v.Status[id]}, nil
}

// Pays notes a payment in the book and returns its event.
func (v *Vendor) Pays(bid string, paise int64) pay.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprintf("pay_%d", len(v.paid)+1)
	v.paid[id] = paise
	return pay.Event{
		Provider: "razorpay", EventID: "evt_" + id, Kind: pay.Paid, Ref: pay.Ref(bid, 1), PaymentID: id, AmountPaise: paise, Currency: "INR", OccurredAt: v.now(),
	}
}

// Left is what is not refunded of a payment, nor on its way.
func (v *Vendor) Left(payment string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.left(payment)
}

func (v *Vendor) left(payment string) int64 {
	left := v.paid[payment]
	for key, paise := range v.Refunds {
		if v.of[key] == payment && v.Status[key] != pay.RefundNot {
			left -= paise
		}
	}
	return left
}

// Gives notes in the book what the owner refunds of a payment in the vendor's own pages, and returns its event.
func (v *Vendor) Gives(bid, payment string, paise int64) pay.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprintf("rfnd_own_%d", len(v.Refunds)+1)
	v.Refunds[id], v.of[id], v.Status[id] = paise, payment, pay.RefundOK
	return pay.Event{
		Provider: "razorpay", EventID: "evt_" + id, Kind: pay.RefundDone, Ref: pay.Ref(bid, 1), PaymentID: payment, RefundID: id, AmountPaise: paise,
		Currency: "INR", OccurredAt: v.now(),
	}
}

// Balance is what the vendor's book says the owner has.
func (v *Vendor) Balance() (sum int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for paise := range maps.Values(v.paid) {
		sum += paise
	}
	for key, paise := range v.Refunds {
		if v.Status[key] == pay.RefundOK {
			sum -= paise
		}
	}
	return sum
}
