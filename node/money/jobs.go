package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

const (
	linkMargin = time.Minute // by which the provider's clock may be ahead of the node's

	// NoLink says that a subject got no payment link.
	NoLink = "the owner's payment provider made no link"
)

// AskLink enqueues the job that makes the payment link of a subject.
func (m *Money) AskLink(ctx context.Context, tx *storage.Tx, due Due) error {
	return Enqueue(ctx, tx, storage.BidLinkJob, "pay:"+due.Account, Job{ID: due.ID}, tx.Now)
}

// Link makes the payment link of a subject, after that is stored: the hold exists before anybody can
// pay. The provider knows the link by the subject and the number of the attempt, so that one that was
// made before a process died is found again.
func (m *Money) Link(ctx context.Context, j storage.Job, s Job) (func(context.Context, *storage.Tx) error, error) {
	of, provider, asOf, err := m.payable(ctx, s.ID)
	if err != nil || of == nil || !of.Waits() || of.Link().ID != "" || !of.Due().Until.After(asOf) {
		return nil, err
	}
	attempt := max(1, of.Link().Attempt)
	link, err := provider.CreateLink(ctx, linkRequest(of.Due(), attempt, provider.Caps(), asOf))
	return func(ctx context.Context, tx *storage.Tx) error {
		of, missing := m.Subject(ctx, tx, s.ID)
		if missing != nil || of.Link().ID != "" {
			return storage.IfMissing(missing, nil)
		}
		return m.linked(ctx, tx, of, s, attempt, link, err)
	}, nil
}

// linkRequest asks for a link that ends with the hold. One for which the provider was away so long that it makes none of so
// short a time ends as early as it can; the end of the hold cancels it.
func linkRequest(due Due, attempt int, caps pay.Caps, now time.Time) pay.LinkRequest {
	until := due.Until
	if least := now.Add(caps.MinExpiry + linkMargin); caps.MinExpiry > 0 && least.After(until) {
		until = least
	}
	kind, _, _ := strings.Cut(due.ID, "_")
	return pay.LinkRequest{
		Ref: pay.Ref(due.ID, attempt), AmountPaise: due.Paise, Currency: protocol.Rupee, Description: due.What,
		ExpiresAt: until, ReturnURL: due.Page, Notes: map[string]string{kind: due.ID},
	}
}

// LinkNow makes the payment link of a new subject whose provider asks nobody for it. Otherwise, and for
// an account that cannot be opened, a job makes it. The error is validation: the provider does not
// move the amount.
func (m *Money) LinkNow(ctx context.Context, of Subject, account *storage.PaymentAccount, now time.Time) error {
	provider, err := m.Provider(account)
	if err != nil || !provider.Caps().Instant {
		return nil
	}
	due := of.Due()
	link, err := provider.CreateLink(ctx, linkRequest(due, 1, provider.Caps(), now))
	switch {
	case errors.Is(err, pay.ErrAmount):
		return protocol.Invalid(protocol.Fault{Pointer: "/amount", Code: "out-of-range", Detail: err.Error()})
	case err == nil:
		*of.Link() = linkOf(due.ID, 1, link, now)
	}
	return nil
}

func linkOf(id string, attempt int, l pay.Link, at time.Time) storage.PayLink {
	return storage.PayLink{At: at, Attempt: attempt, Ref: pay.Ref(id, attempt), ID: l.ProviderID, URL: l.URL, UPI: l.UPI, ExpiresAt: l.ExpiresAt}
}

// linked stores a link, or why there is none.
func (m *Money) linked(ctx context.Context, tx *storage.Tx, of Subject, s Job, attempt int, link pay.Link, failed error) error {
	due := of.Due()
	of.Link().Attempt, of.Link().Ref = attempt, pay.Ref(due.ID, attempt)
	again := func(wait time.Duration) error {
		at := tx.Now.Add(wait)
		if err := of.SaveLink(ctx, tx); err != nil || !at.Before(due.Until) || !of.Waits() {
			return err
		}
		return Enqueue(ctx, tx, storage.BidLinkJob, "pay:"+due.Account, Job{ID: due.ID, Try: s.Try + 1}, at)
	}
	switch {
	case failed == nil:
		*of.Link() = linkOf(due.ID, attempt, link, tx.Now)
		if err := of.SaveLink(ctx, tx); err != nil {
			return err
		}
		if !of.Waits() { // withdrawn or lapsed during the call
			return CancelLink(ctx, tx, of)
		}
		return Enqueue(ctx, tx, storage.BidPollJob, "pay:"+due.Account, Job{ID: due.ID}, tx.Now.Add(pollSoon))
	case errors.Is(failed, pay.ErrTemporary) || errors.Is(failed, pay.ErrExpiry): // the latter where clocks differ
		return again(max(netx.Jitter(netx.Backoff(2*time.Second, 30*time.Second, s.Try+1)), pay.RetryAfter(failed)))
	case errors.Is(failed, pay.ErrRefUsed) && attempt < 5:
		of.Link().Attempt++
		return again(0)
	}
	// What cannot be paid keeps nothing.
	of.Link().Failed = NoLink
	if !of.Waits() {
		return of.SaveLink(ctx, tx)
	}
	return of.Unlinked(ctx, tx)
}

// payable returns a subject and its provider, and the node's clock; nil when there is no such subject.
func (m *Money) payable(ctx context.Context, id string) (of Subject, provider pay.Provider, asOf time.Time, err error) {
	var account *storage.PaymentAccount
	err = m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		asOf = tx.Now
		if of, err = m.Subject(ctx, tx, id); err == nil {
			account, err = tx.PaymentAccounts().ByID(ctx, of.Due().Account)
		}
		return err
	})
	if err != nil {
		return nil, nil, asOf, storage.IfMissing(err, nil)
	}
	provider, err = m.Provider(account)
	if err != nil {
		return nil, nil, asOf, protocol.Errorf(protocol.Forbidden, "payment account %s: %w", account.ID, err)
	}
	return of, provider, asOf, nil
}

// CancelLink enqueues the job that closes the payment link of a subject.
func CancelLink(ctx context.Context, tx *storage.Tx, of Subject) error {
	if of.Link().ID == "" {
		return nil
	}
	return Enqueue(ctx, tx, storage.BidCancelJob, "pay:"+of.Due().Account, Job{ID: of.Due().ID}, tx.Now)
}

// Cancel closes the payment link of a subject. When it was paid meanwhile, the poller finds that.
func (m *Money) Cancel(ctx context.Context, j storage.Job, s Job) (func(context.Context, *storage.Tx) error, error) {
	of, provider, _, err := m.payable(ctx, s.ID)
	if err != nil || of == nil || of.Link().ID == "" || !provider.Caps().Cancel {
		return nil, err
	}
	err = provider.CancelLink(ctx, of.Link().ID)
	if errors.Is(err, pay.ErrTemporary) && s.Try < 10 {
		wait := netx.Jitter(netx.Backoff(moneyFirst, moneyMost, s.Try+1))
		return func(ctx context.Context, tx *storage.Tx) error {
			return Enqueue(ctx, tx, storage.BidCancelJob, j.Lane, Job{ID: s.ID, Try: s.Try + 1}, tx.Now.Add(wait))
		}, nil
	}
	return nil, nil
}

// The poller asks about a link every pollSoon while its hold is young, then ever more rarely, until
// three days after the hold: a bank's answer may come as late as that.
const (
	pollSoon   = 30 * time.Second
	pollYoung  = 30 * time.Minute
	pollLater  = 5 * time.Minute
	pollOld    = 6 * time.Hour
	pollRarely = time.Hour
)

// pollAfter returns when to ask next about a subject of that age; ok is false when no more.
func pollAfter(age time.Duration) (wait time.Duration, ok bool) {
	switch {
	case age < pollYoung:
		return pollSoon, true
	case age < pollOld:
		return pollLater, true
	case age < protocol.LateFor:
		return pollRarely, true
	}
	return 0, false
}

// Poll asks the provider what has happened to the link of a subject. Its events go through the same
// function as those of webhooks.
func (m *Money) Poll(ctx context.Context, j storage.Job, s Job) (func(context.Context, *storage.Tx) error, error) {
	of, provider, _, err := m.payable(ctx, s.ID)
	if err != nil || of == nil || of.Link().ID == "" || !provider.Caps().Poll {
		return nil, err
	}
	events, failed := provider.FetchLink(ctx, of.Link().ID)
	return func(ctx context.Context, tx *storage.Tx) error {
		account, err := tx.PaymentAccounts().ByID(ctx, of.Due().Account)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if _, err := m.Apply(ctx, tx, account, ev); err != nil {
				return err
			}
		}
		wait, more := pollAfter(tx.Now.Sub(of.Due().At))
		if !more { // no late payment is expected any more
			return m.DropSecrets(ctx, tx, of.Due().Account)
		}
		return Enqueue(ctx, tx, storage.BidPollJob, j.Lane, Job{ID: s.ID, N: s.N + 1}, tx.Now.Add(max(wait, pay.RetryAfter(failed))))
	}, nil
}

// Event applies a stored event of a provider.
func (m *Money) Event(_ context.Context, j storage.Job, s Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		e, err := tx.Payments().EventByID(ctx, int64(s.N))
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		account, err := tx.PaymentAccounts().ByID(ctx, e.Account)
		if err != nil {
			return err
		}
		var events []pay.Event
		if err := json.Unmarshal(e.Head, &events); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
		outcome := "nothing to do"
		for _, ev := range events {
			if outcome, err = m.Apply(ctx, tx, account, ev); err != nil {
				return err
			}
		}
		return tx.Payments().EndEvent(ctx, e.ID, outcome)
	}, nil
}

// Hook takes a request of a provider's webhook: it checks the signature, stores the event once and
// enqueues its job. Errors: not-found, unauthorized, invalid-request.
func (m *Money) Hook(ctx context.Context, provider, hook string, head http.Header, body []byte) error {
	var account *storage.PaymentAccount
	err := m.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		account, err = tx.PaymentAccounts().ByHook(ctx, provider, hook)
		return err
	})
	if err != nil {
		return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no such webhook"))
	}
	opened, err := m.Provider(account)
	if err != nil || !opened.Caps().Webhook {
		return protocol.Errorf(protocol.NotFound, "there is no such webhook")
	}
	events, err := opened.ParseWebhook(head, body)
	switch {
	case errors.Is(err, pay.ErrSignature):
		return protocol.Errorf(protocol.Unauthorized, "the signature is not valid: %w", err)
	case err != nil:
		return protocol.Errorf(protocol.InvalidRequest, "the event cannot be read: %w", err)
	}
	return m.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return storeEvents(ctx, tx, account, events, body, tx.Now)
	})
}

// eventsEach is after how many stored events their cap is checked: an owner can sign any number.
const eventsEach = 256

// storeEvents stores the events of one message of a provider, once, and enqueues the job that
// applies them.
func storeEvents(ctx context.Context, tx *storage.Tx, account *storage.PaymentAccount, events []pay.Event, body []byte, at time.Time) error {
	if len(events) == 0 {
		return nil
	}
	read, err := json.Marshal(events)
	if err != nil {
		return err
	}
	e := &storage.PayEvent{Provider: string(account.Provider), Account: account.ID, EventID: events[0].EventID, Head: read, Raw: body}
	e.Payment = events[0].PaymentID
	if id, _, ok := pay.ParseRef(events[0].Ref); ok {
		e.Subject = id
	}
	if err := tx.Payments().InsertEvent(ctx, e); errors.Is(err, storage.ErrExists) {
		return nil
	} else if err != nil {
		return err
	}
	if e.ID%eventsEach == 0 {
		if err := tx.Jobs().EnqueueEvict(ctx, storage.StockPayEvents); err != nil {
			return err
		}
	}
	return Enqueue(ctx, tx, storage.PayEventJob, "pay:"+account.ID, Job{ID: account.ID, N: int(e.ID)}, at)
}
