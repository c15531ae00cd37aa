package attention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stoa/node/out/pay"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// A PayAccount is what a provider is opened with.
type PayAccount struct {
	Provider       protocol.PayName
	VPA, Name      string
	KeyID          string
	KeySecret      string
	WebhookSecrets []string
}

// provider opens the provider of an account. The error is of an account that the node cannot use.
func (a *Attention) provider(account *storage.PaymentAccount) (pay.Provider, error) {
	s, err := a.secretsOf(account)
	if err != nil {
		return nil, err
	}
	return a.Pay(PayAccount{
		Provider: account.Provider, VPA: account.VPA, Name: firstOf(account.PayeeName, account.LegalName, account.Handle), KeyID: account.KeyID,
		KeySecret: s.KeySecret, WebhookSecrets: s.Webhooks,
	})
}

// Due does what is due of a bid: it ends a hold that nobody paid, a wait for the owner, a live bid
// that was not answered as promised, or one whose time is over.
func (a *Attention) Due(_ context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		bid, _, err := locked(ctx, tx, s.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil || bid.Moves != s.N { // it has moved, and that enqueued what is due next
			return err
		}
		switch {
		case bid.State.Unpaid() && !bid.HoldUntil.After(tx.Now):
			return a.endHold(ctx, tx, bid)
		case bid.State.Unpaid():
			return watch(ctx, tx, bid, bid.HoldUntil)
		case bid.State == protocol.BidLive:
			return a.endLive(ctx, tx, bid)
		}
		return nil
	}, nil
}

// endLive ends a live bid whose time is over, or which was not answered as promised.
func (a *Attention) endLive(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	promised := bid.Terms.RefundIfNoReply && bid.AnsweredAt.IsZero() && !bid.RespondBy.IsZero()
	switch {
	case promised && !bid.RespondBy.After(tx.Now):
		kept, err := keptOf(ctx, tx, bid)
		if err != nil {
			return err
		}
		if err := a.move(ctx, tx, bid, protocol.BidUnanswered, "not answered in time"); err != nil {
			return err
		}
		return a.oweWhole(ctx, tx, bid, kept, "the owner did not answer in time")
	case !bid.EndsAt.After(tx.Now):
		if err := a.move(ctx, tx, bid, protocol.BidEnded, "its time is over"); err != nil {
			return err
		}
		return a.dropSecrets(ctx, tx, bid.Account)
	}
	return watch(ctx, tx, bid, nextDue(bid))
}

const (
	linkMargin = time.Minute // by which the provider's clock may be ahead of the node's
	noLink     = "the payment provider of the board's owner made no link"
)

// askLink enqueues the next attempt to make the payment link of a bid.
func (a *Attention) askLink(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	return enqueue(ctx, tx, storage.BidLinkJob, "pay:"+bid.Account, subject{ID: bid.ID}, tx.Now)
}

// Link makes the payment link of a bid, after the bid is stored: the hold exists before anybody can
// pay. The provider knows the link by the bid and the number of the attempt, so that one that was
// made before a process died is found again.
func (a *Attention) Link(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	bid, provider, asOf, err := a.payable(ctx, s.ID)
	if err != nil || bid == nil || bid.State != protocol.BidHeld || bid.Link.ID != "" || !bid.HoldUntil.After(asOf) {
		return nil, err
	}
	attempt := max(1, bid.Link.Attempt)
	link, err := provider.CreateLink(ctx, a.linkRequest(bid, attempt, provider.Caps(), asOf))
	return func(ctx context.Context, tx *storage.Tx) error {
		bid, _, missing := locked(ctx, tx, s.ID)
		if missing != nil || bid.Link.ID != "" {
			return storage.IfMissing(missing, nil)
		}
		return a.linked(ctx, tx, bid, s, attempt, link, err)
	}, nil
}

// linkRequest asks for a link that ends with the hold. One for which the provider was away so long that it makes none of so
// short a time ends as early as it can; the end of the hold cancels it.
func (a *Attention) linkRequest(bid *storage.StoredBid, attempt int, caps pay.Caps, now time.Time) pay.LinkRequest {
	until := bid.HoldUntil
	if least := now.Add(caps.MinExpiry + linkMargin); caps.MinExpiry > 0 && least.After(until) {
		until = least
	}
	return pay.LinkRequest{
		Ref: pay.Ref(bid.ID, attempt), AmountPaise: bid.Paise, Currency: protocol.Rupee, Description: "Attention bid on the board of @" + bid.Handle,
		ExpiresAt: until, ReturnURL: a.Base + "/bids/" + bid.ID, Notes: map[string]string{"bid": bid.ID},
	}
}

// linkNow makes the payment link of a new bid whose provider asks nobody for it. Otherwise, and for
// an account that cannot be opened, a job makes it. The error is validation: the provider does not
// move the amount.
func (a *Attention) linkNow(ctx context.Context, bid *storage.StoredBid, account *storage.PaymentAccount) error {
	provider, err := a.provider(account)
	if err != nil || !provider.Caps().Instant {
		return nil
	}
	link, err := provider.CreateLink(ctx, a.linkRequest(bid, 1, provider.Caps(), bid.BidAt))
	switch {
	case errors.Is(err, pay.ErrAmount):
		return protocol.Invalid(protocol.Fault{Pointer: "/amount", Code: "out-of-range", Detail: err.Error()})
	case err == nil:
		bid.Link = linkOf(bid, 1, link, bid.BidAt)
	}
	return nil
}

func linkOf(bid *storage.StoredBid, attempt int, l pay.Link, at time.Time) storage.BidLink {
	return storage.BidLink{At: at, Attempt: attempt, Ref: pay.Ref(bid.ID, attempt), ID: l.ProviderID, URL: l.URL, UPI: l.UPI, ExpiresAt: l.ExpiresAt}
}

// linked stores a link, or why there is none.
func (a *Attention) linked(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid, s subject, attempt int, link pay.Link, failed error) error {
	bid.Link.Attempt, bid.Link.Ref = attempt, pay.Ref(bid.ID, attempt)
	again := func(wait time.Duration) error {
		at := tx.Now.Add(wait)
		if err := tx.Bids().Save(ctx, bid); err != nil || !at.Before(bid.HoldUntil) || bid.State != protocol.BidHeld {
			return err
		}
		return enqueue(ctx, tx, storage.BidLinkJob, "pay:"+bid.Account, subject{ID: bid.ID, Try: s.Try + 1}, at)
	}
	switch {
	case failed == nil:
		bid.Link = linkOf(bid, attempt, link, tx.Now)
		if err := tx.Bids().Save(ctx, bid); err != nil {
			return err
		}
		if bid.State != protocol.BidHeld { // withdrawn or lapsed during the call
			return cancelLink(ctx, tx, bid)
		}
		return enqueue(ctx, tx, storage.BidPollJob, "pay:"+bid.Account, subject{ID: bid.ID}, tx.Now.Add(pollSoon))
	case errors.Is(failed, pay.ErrTemporary) || errors.Is(failed, pay.ErrExpiry): // the latter where clocks differ
		return again(max(netx.Jitter(netx.Backoff(2*time.Second, 30*time.Second, s.Try+1)), pay.RetryAfter(failed)))
	case errors.Is(failed, pay.ErrRefUsed) && attempt < 5:
		bid.Link.Attempt++
		return again(0)
	}
	// A bid that cannot be paid keeps no slot.
	bid.Link.Failed = noLink
	if bid.State != protocol.BidHeld {
		return tx.Bids().Save(ctx, bid)
	}
	if err := a.move(ctx, tx, bid, protocol.BidLapsed, bid.Link.Failed); err != nil {
		return err
	}
	board, err := tx.AttentionBoards().ByID(ctx, bid.Board)
	if err != nil {
		return err
	}
	return notify(ctx, tx, board, protocol.BidRefundByHand, bid, "No payment link could be made: check your payment account")
}

// payable returns a bid and its provider, and the node's clock; nil when there is no such bid.
func (a *Attention) payable(ctx context.Context, id string) (bid *storage.StoredBid, provider pay.Provider, asOf time.Time, err error) {
	var account *storage.PaymentAccount
	err = a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		asOf = tx.Now
		if bid, err = tx.Bids().ByID(ctx, id); err == nil {
			account, err = tx.PaymentAccounts().ByID(ctx, bid.Account)
		}
		return err
	})
	if err != nil {
		return nil, nil, asOf, storage.IfMissing(err, nil)
	}
	provider, err = a.provider(account)
	if err != nil {
		return nil, nil, asOf, protocol.Errorf(protocol.Forbidden, "payment account %s: %w", account.ID, err)
	}
	return bid, provider, asOf, nil
}

// cancelLink enqueues the job that closes the payment link of a bid.
func cancelLink(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	if bid.Link.ID == "" {
		return nil
	}
	return enqueue(ctx, tx, storage.BidCancelJob, "pay:"+bid.Account, subject{ID: bid.ID}, tx.Now)
}

// Cancel closes the payment link of a bid. When it was paid meanwhile, the poller finds that.
func (a *Attention) Cancel(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	bid, provider, _, err := a.payable(ctx, s.ID)
	if err != nil || bid == nil || bid.Link.ID == "" || !provider.Caps().Cancel {
		return nil, err
	}
	err = provider.CancelLink(ctx, bid.Link.ID)
	if errors.Is(err, pay.ErrTemporary) && s.Try < 10 {
		wait := netx.Jitter(netx.Backoff(moneyFirst, moneyMost, s.Try+1))
		return func(ctx context.Context, tx *storage.Tx) error {
			return enqueue(ctx, tx, storage.BidCancelJob, j.Lane, subject{ID: s.ID, Try: s.Try + 1}, tx.Now.Add(wait))
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

// pollAfter returns when to ask next about a bid of that age; ok is false when no more.
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

// Poll asks the provider what has happened to the link of a bid. Its events go through the same
// function as those of webhooks.
func (a *Attention) Poll(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	bid, provider, _, err := a.payable(ctx, s.ID)
	if err != nil || bid == nil || bid.Link.ID == "" || !provider.Caps().Poll {
		return nil, err
	}
	events, failed := provider.FetchLink(ctx, bid.Link.ID)
	return func(ctx context.Context, tx *storage.Tx) error {
		account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if _, err := a.Apply(ctx, tx, account, ev); err != nil {
				return err
			}
		}
		wait, more := pollAfter(tx.Now.Sub(bid.BidAt))
		if !more { // no late payment is expected any more
			return a.dropSecrets(ctx, tx, bid.Account)
		}
		return enqueue(ctx, tx, storage.BidPollJob, j.Lane, subject{ID: s.ID, N: s.N + 1}, tx.Now.Add(max(wait, pay.RetryAfter(failed))))
	}, nil
}

// Event applies a stored event of a provider.
func (a *Attention) Event(_ context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
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
			if outcome, err = a.Apply(ctx, tx, account, ev); err != nil {
				return err
			}
		}
		return tx.Payments().EndEvent(ctx, e.ID, outcome)
	}, nil
}

// Hook takes a request of a provider's webhook: it checks the signature, stores the event once and
// enqueues its job. Errors: not-found, unauthorized, invalid-request.
func (a *Attention) Hook(ctx context.Context, provider, hook string, head http.Header, body []byte) error {
	var account *storage.PaymentAccount
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		account, err = tx.PaymentAccounts().ByHook(ctx, provider, hook)
		return err
	})
	if err != nil {
		return storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no such webhook"))
	}
	opened, err := a.provider(account)
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
	return a.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
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
	if bid, _, ok := pay.ParseRef(events[0].Ref); ok {
		e.Bid = bid
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
	return enqueue(ctx, tx, storage.PayEventJob, "pay:"+account.ID, subject{ID: account.ID, N: int(e.ID)}, at)
}

// enqueueUpdate enqueues the first attempt to tell a bidder's callbackUrl of the last change.
func enqueueUpdate(ctx context.Context, tx *storage.Tx, bid *storage.StoredBid) error {
	return enqueue(ctx, tx, storage.BidUpdateJob, webhook.Lane(bid.Callback), subject{ID: bid.ID, N: bid.Moves}, tx.Now)
}

// Update makes one attempt to tell a bidder's callbackUrl of one change of the bid. It is repeated
// under the same id, for a day at most.
func (a *Attention) Update(ctx context.Context, j storage.Job, s subject) (func(context.Context, *storage.Tx) error, error) {
	var address string
	u := protocol.BidUpdate{Type: "bid.updated", BidID: s.ID, ID: fmt.Sprintf("%s-%d", s.ID, s.N)}
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		bid, err := tx.Bids().ByID(ctx, s.ID)
		if err != nil {
			return err
		}
		address = bid.Callback
		m, err := tx.Bids().MoveByNumber(ctx, s.ID, s.N)
		if err != nil {
			return err
		}
		u.Handle, u.State, u.CreatedAt = bid.Handle, m.State, m.At
		u.Bid, err = a.view(ctx, tx, bid)
		return err
	})
	if err != nil || address == "" {
		return nil, storage.Missing(err, nil)
	}
	body, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	sent := a.Webhook.Send(ctx, address, u.ID, body)
	if sent == nil {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		f, at := webhook.After(sent, s.Try+1, tx.Now, u.CreatedAt.Add(protocol.CallbackFor))
		switch {
		case !at.IsZero():
			return enqueue(ctx, tx, storage.BidUpdateJob, j.Lane, subject{ID: s.ID, N: s.N, Try: s.Try + 1}, at)
		case f.Kind != webhook.ErrGone:
			return nil
		}
		bid, _, err := locked(ctx, tx, s.ID)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		bid.Callback = ""
		return tx.Bids().Save(ctx, bid)
	}, nil
}
