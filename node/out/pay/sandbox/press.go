package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
)

// A Button is something that a payer does on the sandbox's page.
type Button string

// The buttons.
const (
	Pay       Button = "pay"        // pays the whole amount now
	Fail      Button = "fail"       // tries, and the bank refuses; the link stays open
	PayLate   Button = "pay-late"   // pays now, and the bank answers three minutes after the link's end
	PayTwice  Button = "pay-twice"  // pays two times, as two payments
	PayPartly Button = "pay-partly" // pays half
)

// Buttons are all buttons, in the order of the page.
var Buttons = []Button{Pay, Fail, PayLate, PayTwice, PayPartly}

// lateness is by how much a late payment misses the link's end. The node takes a payment of the
// next two minutes as in time, because clocks differ.
const lateness = 3 * time.Minute

// SignatureHeader has the MAC of the body in hex.
const SignatureHeader = "Sandbox-Signature"

// A Hook is one webhook request that the sandbox makes. At is when: a moment in the future is for a
// job that waits until then.
type Hook struct {
	At     time.Time
	Header http.Header
	Body   []byte
}

// message is the body of a webhook. Its members are in the order in which it is written.
type message struct {
	ID      string `json:"id"`
	Event   string `json:"event"`
	Link    string `json:"link"`
	Payment string `json:"payment"`
	Amount  int64  `json:"amount"`
	At      int64  `json:"at"` // Unix seconds
}

const (
	paid    = "payment.paid"
	partial = "payment.partial"
	failed  = "payment.failed"
)

// Press returns the webhooks that follow from a button. Pressing it again returns the same events
// with the same ids, as a provider that delivers again does.
func (p *Provider) Press(b Button, providerID string) ([]Hook, error) {
	t, err := parseTicket(providerID)
	if err != nil {
		return nil, err
	}
	now := p.now()
	late := t.until.Add(lateness)
	if now.After(late) {
		late = now
	}
	switch b {
	case Pay:
		return []Hook{p.hook(paid, t, "1", t.paise, now)}, nil
	case Fail:
		return []Hook{p.hook(failed, t, "0", t.paise, now)}, nil
	case PayLate:
		return []Hook{p.hook(paid, t, "late", t.paise, late)}, nil
	case PayTwice:
		return []Hook{p.hook(paid, t, "1", t.paise, now), p.hook(paid, t, "2", t.paise, now)}, nil
	case PayPartly:
		return []Hook{p.hook(partial, t, "part", t.paise/2, now)}, nil
	}
	return nil, pay.Fail(pay.ErrRefused, "the sandbox has no button %q", b)
}

func (p *Provider) hook(event string, t ticket, n string, paise int64, at time.Time) Hook {
	payment := paymentPrefix + t.ref + "_" + n
	body, _ := json.Marshal(message{"evt_" + payment, event, t.id(), payment, paise, at.Unix()}) // strings and numbers
	h := http.Header{"Content-Type": {"application/json"}, SignatureHeader: {pay.MAC(p.secret, body)}}
	return Hook{at, h, body}
}

// ParseWebhook implements pay.Provider.
func (p *Provider) ParseWebhook(h http.Header, rawBody []byte) ([]pay.Event, error) {
	if !pay.Authentic([]string{p.secret}, rawBody, h.Get(SignatureHeader)) {
		return nil, pay.ErrSignature
	}
	var m message
	if err := json.Unmarshal(rawBody, &m); err != nil {
		return nil, &pay.Failure{Kind: pay.ErrMalformed, Text: "the sandbox's webhook is not JSON", Err: err}
	}
	t, err := parseTicket(m.Link)
	if err != nil {
		return nil, &pay.Failure{Kind: pay.ErrMalformed, Text: "the sandbox's webhook has no link", Err: err}
	}
	kind, known := map[string]pay.Kind{paid: pay.Paid, partial: pay.Partial, failed: pay.Ignored}[m.Event]
	if !known || m.ID == "" || m.Payment == "" || m.Amount < 0 || m.Amount > protocol.MaxMinor {
		return nil, &pay.Failure{Kind: pay.ErrMalformed, Text: "the sandbox's webhook is incomplete", Err: errors.New(m.Event)}
	}
	return []pay.Event{{
		Provider: Name, EventID: m.ID, Kind: kind, Ref: t.ref, ProviderID: m.Link, PaymentID: m.Payment,
		AmountPaise: m.Amount, Currency: protocol.Rupee, OccurredAt: time.Unix(m.At, 0).UTC(),
	}}, nil
}
