package razorpay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// newLink is the body that makes a link. Nobody is notified by the vendor.
type newLink struct {
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	AcceptPartial  bool              `json:"accept_partial"`
	ReferenceID    string            `json:"reference_id"`
	Description    string            `json:"description,omitempty"`
	ExpireBy       int64             `json:"expire_by"`
	Notify         notify            `json:"notify"`
	ReminderEnable bool              `json:"reminder_enable"`
	Notes          map[string]string `json:"notes,omitempty"`
	CallbackURL    string            `json:"callback_url,omitempty"`
	CallbackMethod string            `json:"callback_method,omitempty"`
}

type notify struct {
	SMS   bool `json:"sms"`
	Email bool `json:"email"`
}

type newRefund struct {
	Amount int64  `json:"amount"`
	Speed  string `json:"speed"`
}

// A number is a JSON integer, which the vendor sometimes writes as a string, or null. It is from 0
// to protocol.MaxMinor: a larger amount is not one that was paid, and a larger time not a time.
type number int64

// UnmarshalJSON refuses fractions, exponents, signs and what is too large.
func (n *number) UnmarshalJSON(raw []byte) error {
	raw = bytes.Trim(raw, `"`)
	if len(raw) == 0 || string(raw) == "null" {
		*n = 0
		return nil
	}
	v, err := strconv.ParseUint(string(raw), 10, 63)
	if err != nil || v > protocol.MaxMinor {
		return fmt.Errorf("%.20q is not a number from 0 to %d", raw, int64(protocol.MaxMinor))
	}
	*n = number(v)
	return nil
}

type link struct {
	ID          string   `json:"id"`
	Status      string   `json:"status"` // created, partially_paid, paid, cancelled, expired
	Amount      number   `json:"amount"`
	AmountPaid  number   `json:"amount_paid"`
	Currency    string   `json:"currency"`
	ReferenceID string   `json:"reference_id"`
	ShortURL    string   `json:"short_url"`
	ExpireBy    number   `json:"expire_by"`
	ExpiredAt   number   `json:"expired_at"`
	CancelledAt number   `json:"cancelled_at"`
	UpdatedAt   number   `json:"updated_at"`
	Payments    payments `json:"payments"`
}

// currency is INR where the vendor leaves it out, as in some of its answers.
func (l link) currency() string { return currency(l.Currency) }

// currency returns the first of some currencies that is named, in upper case: rupees when none is, XXX (ISO 4217: no
// currency) for what is no code.
func currency(named ...string) string {
	c := strings.ToUpper(cmp.Or(append(named, protocol.Rupee)...))
	if len(c) != 3 || strings.ContainsFunc(c, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return "XXX"
	}
	return c
}

// A linkPayment is a payment as a link lists it.
type linkPayment struct {
	PaymentID string `json:"payment_id"`
	Amount    number `json:"amount"`
	Status    string `json:"status"` // captured, refunded, failed, …
	CreatedAt number `json:"created_at"`
	UpdatedAt number `json:"updated_at"`
}

// took reports whether the payment took money, be it refunded since.
func (p linkPayment) took() bool { return p.Status == "captured" || p.Status == "refunded" }

// payments is a list; a link without one has null, or in webhooks an object.
type payments []linkPayment

// UnmarshalJSON reads a list and nothing else.
func (p *payments) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	return json.Unmarshal(raw, (*[]linkPayment)(p))
}

type payment struct {
	ID           string   `json:"id"`
	Amount       number   `json:"amount"`
	Currency     string   `json:"currency"`
	Status       string   `json:"status"`
	CreatedAt    number   `json:"created_at"`
	AcquirerData acquirer `json:"acquirer_data"`
}

// acquirer is what the bank says. A payment without it has null or an empty list.
type acquirer struct {
	RRN  string `json:"rrn"`
	Bank string `json:"bank_transaction_id"`
}

// UnmarshalJSON reads an object and nothing else.
func (a *acquirer) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	type plain acquirer
	return json.Unmarshal(raw, (*plain)(a))
}

type refund struct {
	ID        string `json:"id"`
	PaymentID string `json:"payment_id"`
	Amount    number `json:"amount"`
	Currency  string `json:"currency"`
	Status    string `json:"status"`
}

func (r refund) refund() (pay.Refund, error) {
	status, known := map[string]pay.RefundStatus{"pending": pay.RefundPending, "processed": pay.RefundOK, "failed": pay.RefundNot}[r.Status]
	if !known || !isID(r.ID) {
		return pay.Refund{}, pay.Fail(pay.ErrTemporary, "razorpay: the answer has no refund")
	}
	return pay.Refund{ID: r.ID, Status: status}, nil
}
