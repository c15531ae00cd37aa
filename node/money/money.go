// Package money keeps the books of what the profiles of this node are paid: for bids on attention boards, and for orders of
// shops. The money goes from the payer to the owner directly; the node holds none. What is paid for is a [Subject]: the room
// that has it says what a payment does to it, and this package does the rest: links at payment providers, their events,
// payments, refunds and the ledger.
package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stoa/node/out/pay"
	"stoa/node/out/pay/sandbox"
	"stoa/protocol"
	"stoa/storage"
)

// A Money keeps the books of one node.
type Money struct {
	Base string // public address of the node, without a slash at the end
	DB   *storage.DB
	Seal Sealer
	// Pay opens an account at its payment provider.
	Pay func(Account) (pay.Provider, error)
	// Kinds are what is paid for, by the prefix of their ids. Rooms add theirs when they are made.
	Kinds map[string]Kind
}

// A Sealer encrypts the secrets of payment accounts at rest.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// An Account is what a provider is opened with.
type Account struct {
	Provider       protocol.PayName
	VPA, Name      string
	KeyID          string
	KeySecret      string
	WebhookSecrets []string
}

// A Kind is what is paid for: bids or orders.
type Kind interface {
	// Subject returns what an id names, with its book locked in a writing transaction, so that a book has one writer.
	// storage.ErrNotFound when there is none.
	Subject(ctx context.Context, tx *storage.Tx, id string) (Subject, error)
}

// A Due is what is to be paid for a subject.
type Due struct {
	ID, Book, Account string
	Paise             int64
	Test              bool
	At                time.Time // when it was made
	Until             time.Time // when its hold ends
	What              string    // it is, for the payer
	Page              string    // where the payer's browser returns to
}

// A Subject is a bid or an order that money is paid for.
type Subject interface {
	Due() Due
	Link() *storage.PayLink
	// SaveLink stores the link.
	SaveLink(ctx context.Context, tx *storage.Tx) error
	// Waits reports whether it waits for a payment, and its hold has not been ended.
	Waits() bool
	// Payable reports whether a payment may still pay for it, a late one too; otherwise it goes back.
	Payable() bool
	// Arrived notes that money came in, of any amount.
	Arrived(ctx context.Context, tx *storage.Tx) error
	// Place decides about a payment of all of it, or more, and says what became of it in words. It calls Owe when the payment goes back.
	Place(ctx context.Context, tx *storage.Tx, p *storage.StoredPayment) (outcome string, err error)
	// Unlinked ends it, because its provider makes no link.
	Unlinked(ctx context.Context, tx *storage.Tx) error
	// Refund notes how far the refund of its money is.
	Refund(ctx context.Context, tx *storage.Tx, step Step) error
	// TakenBack notes that the owner sent all of its money back at the provider.
	TakenBack(ctx context.Context, tx *storage.Tx, why string) error
	// TellRefund tells the owner of a refund to make, or one that failed.
	TellRefund(ctx context.Context, tx *storage.Tx, failed bool) error
}

// A Payer is a kind whose subjects are paid on the payment page by a secret of their own.
type Payer interface {
	ByPayToken(ctx context.Context, tx *storage.Tx, hash [32]byte) (Subject, error)
}

// A Payable is a subject of a Payer.
type Payable interface {
	Subject
	// Payment says what the page shows of it, without its link.
	Payment(tx *storage.Tx) protocol.Payment
	// Claim stores that the payer says to have paid.
	Claim(ctx context.Context, tx *storage.Tx, c protocol.Caller, utr string) error
}

// ByPayToken returns what the secret of a payment page opens, of the kinds that have such secrets; storage.ErrNotFound for none.
func (m *Money) ByPayToken(ctx context.Context, tx *storage.Tx, hash [32]byte) (Payable, error) {
	for _, kind := range m.Kinds {
		payer, ok := kind.(Payer)
		if !ok {
			continue
		}
		if of, err := payer.ByPayToken(ctx, tx, hash); err == nil {
			return of.(Payable), nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
	}
	return nil, storage.ErrNotFound
}

// ShowLink completes what the payment page shows: how it is paid now.
func (m *Money) ShowLink(out *protocol.Payment, of Subject, account *storage.PaymentAccount, now time.Time) {
	link, waits := of.Link(), out.State == protocol.BidHeld
	out.Provider, out.Link, out.Now, out.Untrusted = string(account.Provider), "pending", now, true
	out.Claimed, out.Buttons = account.Provider == protocol.PayUPI, []string{}
	switch {
	case !waits:
		out.Link = "closed"
	case link.ID != "":
		out.Link = "ready"
		if !out.Test { // the node's own page has the buttons of a test
			out.URL = protocol.OrNil(link.URL)
		}
		out.UPI, out.VPA = protocol.OrNil(link.UPI), protocol.OrNil(account.VPA)
		if out.Claimed {
			out.Reference = &link.ID
		}
	case link.Failed != "":
		out.Link = "failed"
	}
	if out.Test && link.ID != "" {
		for _, b := range sandbox.Buttons {
			out.Buttons = append(out.Buttons, string(b))
		}
	}
}

// Press does what a payer may do with a TEST. The sandbox signs what a provider would send, and that is checked, stored and applied as
// the events of other providers are.
func (m *Money) Press(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, link, button string) error {
	provider, err := m.Provider(account)
	if err != nil {
		return protocol.Errorf(protocol.Conflict, "this node does not offer the sandbox any more")
	}
	test, ok := provider.(*sandbox.Provider)
	if !ok || link == "" {
		return protocol.Errorf(protocol.Conflict, "there is no test payment to make")
	}
	hooks, err := test.Press(sandbox.Button(button), link)
	if err != nil {
		return protocol.Errorf(protocol.Conflict, "%s", err.Error())
	}
	for _, h := range hooks {
		events, err := provider.ParseWebhook(h.Header, h.Body)
		if err != nil {
			return err
		}
		if err := storeEvents(ctx, tx, account, events, h.Body, h.At); err != nil {
			return err
		}
	}
	return nil
}

// A Step is how far a refund is.
type Step int

const (
	Ordered Step = iota // from the provider
	ByHand              // the owner has to make it
	Refused             // by the provider
	Made                // one of them at least
	Part                // of it was sent back by the owner at the provider
)

// Subject returns the bid or order of an id, with its book locked in a writing transaction.
func (m *Money) Subject(ctx context.Context, tx *storage.Tx, id string) (Subject, error) {
	prefix, _, _ := strings.Cut(id, "_")
	kind := m.Kinds[prefix]
	if kind == nil {
		return nil, storage.ErrNotFound
	}
	return kind.Subject(ctx, tx, id)
}

// Secrets are what is sealed of a payment account.
type Secrets struct {
	KeySecret string   `json:"keySecret,omitempty"`
	Webhooks  []string `json:"webhooks,omitempty"`
}

// SecretsOf opens the secrets of an account.
func (m *Money) SecretsOf(account *storage.PaymentAccount) (s Secrets, err error) {
	if account.Sealed == nil {
		return s, nil
	}
	raw, err := m.Seal.Open(storage.PurposePayments(account.ID), account.Sealed)
	if err != nil {
		return s, fmt.Errorf("payment account %s: %w", account.ID, err)
	}
	return s, json.Unmarshal(raw, &s)
}

// SealSecrets puts the secrets of an account into it.
func (m *Money) SealSecrets(account *storage.PaymentAccount, s Secrets) error {
	account.Sealed = nil
	if s.KeySecret == "" && len(s.Webhooks) == 0 {
		return nil
	}
	raw, err := json.Marshal(s)
	if err == nil {
		account.Sealed = m.Seal.Seal(storage.PurposePayments(account.ID), raw)
	}
	return err
}

// Provider opens the provider of an account. The error is of an account that the node cannot use.
func (m *Money) Provider(account *storage.PaymentAccount) (pay.Provider, error) {
	s, err := m.SecretsOf(account)
	if err != nil {
		return nil, err
	}
	return m.Pay(Account{
		Provider: account.Provider, VPA: account.VPA, Name: PayeeName(account), KeyID: account.KeyID,
		KeySecret: s.KeySecret, WebhookSecrets: s.Webhooks,
	})
}

// PayeeName is how an account calls its owner.
func PayeeName(a *storage.PaymentAccount) string {
	for _, s := range []string{a.PayeeName, a.LegalName, a.Handle} {
		if s != "" {
			return s
		}
	}
	return ""
}

// PayeeOf returns what the payment ids of an account are unique within: for UPI the address, which
// several profiles may share, otherwise the account itself.
func PayeeOf(account *storage.PaymentAccount) string {
	if account.Provider == protocol.PayUPI {
		return strings.ToLower(account.VPA)
	}
	return account.ID
}

// A Job is about one bid, order, refund or account.
type Job struct {
	ID  string `json:"id"`
	N   int    `json:"n,omitempty"`
	Try int    `json:"try,omitempty"`
}

// Enqueue enqueues a job; one of the same kind, subject, number and try is the same.
func Enqueue(ctx context.Context, tx *storage.Tx, kind storage.JobKind, lane string, s Job, at time.Time) error {
	args, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: kind, Lane: lane, Args: args, RunAt: at, Dedupe: fmt.Sprintf("%s %s %d %d", kind, s.ID, s.N, s.Try)})
}

// Jobs are the handlers of what the payment providers are asked.
func (m *Money) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.BidLinkJob:   storage.HandlerOf(m.Link),
		storage.BidCancelJob: storage.HandlerOf(m.Cancel),
		storage.BidPollJob:   storage.HandlerOf(m.Poll),
		storage.PayEventJob:  storage.HandlerOf(m.Event),
		storage.RefundJob:    storage.HandlerOf(m.Refund),
	}
}
