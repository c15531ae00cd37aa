package attention

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"stoa/node/money"
	"stoa/node/out/pay"
	"stoa/protocol"
	"stoa/protocol/sorting"
	"stoa/storage"
)

// The life of a payment in words, for an operator or owner whom a payer asks. It has no secrets, and of people only the name that the
// bidder gave.

// maxTraced is how many bids an id leads to at most.
const maxTraced = 10

// Trace traces a payment for an operator.
func (a *Attention) Trace(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.TraceQuery) (protocol.MoneyTraces, error) {
	return a.trace(ctx, tx, in.ID, func(string) bool { return true })
}

// TraceOwn traces a payment on a board of the caller. Others' are not found.
func (a *Attention) TraceOwn(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.TraceQuery) (protocol.MoneyTraces, error) {
	return a.trace(ctx, tx, in.ID, func(handle string) bool { return owns(c, handle) })
}

// trace traces what an id leads to, on boards that may be seen.
func (a *Attention) trace(ctx context.Context, tx *storage.Tx, of string, sees func(handle string) bool) (protocol.MoneyTraces, error) {
	out := protocol.MoneyTraces{Items: []protocol.MoneyTrace{}, Untrusted: true}
	bids, err := tx.Payments().SubjectsOf(ctx, of)
	if err != nil {
		return out, err
	}
	events, err := tx.Payments().Events(ctx, storage.EventsNamed, of)
	if err != nil {
		return out, err
	}
	bids = append(bids, of)
	for _, e := range events {
		found, err := a.subjectOfEvent(ctx, tx, e)
		if err != nil {
			return out, err
		}
		if bids = append(bids, found); found != "" {
			continue
		}
		if one, err := a.traceEvent(ctx, tx, e, sees); err != nil {
			return out, err
		} else if one != nil {
			out.Items = append(out.Items, *one)
		}
	}
	slices.Sort(bids)
	for _, id := range slices.Compact(bids) {
		one, err := a.traceBid(ctx, tx, id, sees)
		if err != nil {
			return out, err
		}
		if one != nil && len(out.Items) < maxTraced {
			out.Items = append(out.Items, *one)
		}
	}
	if len(out.Items) == 0 {
		return out, protocol.Errorf(protocol.NotFound,
			"no bid, payment, refund or event that you may see has this id; try the bank's reference of 12 digits, or the id of the bid")
	}
	return out, nil
}

// subjectOfEvent returns the bid or order that an event is about, "" when the account that signed it has none.
func (a *Attention) subjectOfEvent(ctx context.Context, tx *storage.Tx, e storage.PayEvent) (string, error) {
	bid, err := tx.Bids().ByID(ctx, e.Subject)
	if err == nil && bid.Account == e.Account {
		return bid.ID, nil
	} else if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	if x, err := tx.Orders().ByID(ctx, e.Subject); err == nil && x.Account == e.Account {
		return x.ID, nil
	} else if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	account, err := tx.PaymentAccounts().ByID(ctx, e.Account)
	if err != nil {
		return "", storage.IfMissing(err, nil)
	}
	p, err := tx.Payments().AtProvider(ctx, account.Provider, money.PayeeOf(account), e.Payment)
	if err != nil {
		return "", storage.IfMissing(err, nil)
	}
	return p.Subject, nil
}

// traceEvent traces an event of no bid; nil when it may not be seen.
func (a *Attention) traceEvent(ctx context.Context, tx *storage.Tx, e storage.PayEvent, sees func(string) bool) (*protocol.MoneyTrace, error) {
	account, err := tx.PaymentAccounts().ByID(ctx, e.Account)
	if err != nil || !sees(account.Handle) {
		return nil, storage.IfMissing(err, nil)
	}
	t := &protocol.MoneyTrace{Handle: account.Handle, Provider: e.Provider, Test: account.Test, Next: []protocol.MoneyStep{}}
	return t, a.addEvents(ctx, tx, t, []storage.PayEvent{e})
}

// traceBid traces a bid; nil when there is none that may be seen.
func (a *Attention) traceBid(ctx context.Context, tx *storage.Tx, id string, sees func(string) bool) (*protocol.MoneyTrace, error) {
	if protocol.IsID(protocol.OrderID, id) {
		return a.traceOrder(ctx, tx, id, sees)
	}
	bid, err := tx.Bids().ByID(ctx, id)
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	board, err := tx.AttentionBoards().ByID(ctx, bid.Board)
	if err != nil || !sees(board.Handle) {
		return nil, err
	}
	account, err := tx.PaymentAccounts().ByID(ctx, bid.Account)
	if err != nil {
		return nil, err
	}
	t := &protocol.MoneyTrace{
		BidID: bid.ID, Handle: bid.Handle, State: string(a.stateNow(tx, bid)), Amount: new(rupees(bid.Paise)), Bidder: bid.Author.Name,
		Provider: string(account.Provider), Test: bid.Test, Next: []protocol.MoneyStep{},
	}
	moves, err := tx.Bids().Moves(ctx, bid.ID)
	if err != nil {
		return nil, err
	}
	reported := -1 // the last report, of which the reference is kept
	for i, m := range moves {
		step := protocol.MoneyStep{At: &m.At, What: moveWords[m.State], Note: m.Note}
		if m.Note == saysOnceMore {
			step.What = "payment disputed"
		}
		if m.State == protocol.BidClaimed || m.Note == saysOnceMore {
			reported = i
		}
		t.Steps = append(t.Steps, step)
	}
	if reported >= 0 {
		t.Steps[reported].Reference = bid.UTR
	}
	if bid.Link.ID != "" {
		t.Steps = append(t.Steps, protocol.MoneyStep{At: orNever(bid.Link.At), What: "payment link made", Reference: bid.Link.ID})
	}
	if err := a.nextOfBid(ctx, tx, t, bid); err != nil {
		return nil, err
	}
	if err := a.addPayments(ctx, tx, t, bid.ID, bid.Account); err != nil {
		return nil, err
	}
	sorting.Stable(t.Steps, func(x, y protocol.MoneyStep) int { return timeOf(x.At).Compare(timeOf(y.At)) })
	return t, nil
}

// traceOrder traces an order, without its buyer; nil when there is none that may be seen.
func (a *Attention) traceOrder(ctx context.Context, tx *storage.Tx, id string, sees func(string) bool) (*protocol.MoneyTrace, error) {
	x, err := tx.Orders().ByID(ctx, id)
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	till, err := tx.Tills().ByID(ctx, x.Till)
	if err != nil || !sees(till.Handle) {
		return nil, err
	}
	t := &protocol.MoneyTrace{BidID: x.ID, Handle: x.Handle, State: string(x.State), Amount: new(rupees(x.Paise)), Test: x.Test, Next: []protocol.MoneyStep{}}
	if x.Account != "" {
		account, err := tx.PaymentAccounts().ByID(ctx, x.Account)
		if err != nil {
			return nil, err
		}
		t.Provider = string(account.Provider)
	}
	for _, e := range x.Events {
		step := protocol.MoneyStep{At: &e.At, What: "order " + e.What, Note: e.Note}
		if e.What == "reported" {
			step.Reference = x.UTR
		}
		t.Steps = append(t.Steps, step)
	}
	if x.Link.ID != "" {
		t.Steps = append(t.Steps, protocol.MoneyStep{At: orNever(x.Link.At), What: "payment link made", Reference: x.Link.ID})
	}
	if x.State == protocol.OrderAwaiting {
		what := "the buyer pays; otherwise the order ends"
		if x.Claimed {
			what = "the shop confirms or denies the payment; otherwise the order ends"
		} else if x.HoldUntil.IsZero() {
			what = "the shop confirms the payment when it hands the order over"
		}
		t.Next = append(t.Next, protocol.MoneyStep{At: orNever(x.HoldUntil), What: what})
	}
	if err := a.addPayments(ctx, tx, t, x.ID, x.Account); err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.Steps, func(x, y protocol.MoneyStep) int { return timeOf(x.At).Compare(timeOf(y.At)) })
	return t, nil
}

// addPayments adds the payments of a bid or an order, their refunds and the events about them.
func (a *Attention) addPayments(ctx context.Context, tx *storage.Tx, t *protocol.MoneyTrace, id, account string) error {
	events, err := tx.Payments().Events(ctx, storage.EventsOfSubject, id, account)
	if err != nil {
		return err
	}
	payments, err := tx.Payments().Of(ctx, id)
	if err != nil {
		return err
	}
	for _, p := range payments {
		step := protocol.MoneyStep{
			At: &p.PaidAt, What: "payment arrived", Amount: new(protocol.MoneyOf(p.Currency, p.Paise)), ID: p.ID, Reference: cmp.Or(p.Reference, p.PaymentID),
			Note: "it goes back",
		}
		if p.Placed {
			step.Note = "it paid for the slot"
			if protocol.IsID(protocol.OrderID, id) {
				step.Note = "it paid for the order"
			}
		}
		t.Steps = append(t.Steps, step)
		more, err := tx.Payments().Events(ctx, storage.EventsOfPayment, p.PaymentID, p.Account)
		if err != nil {
			return err
		}
		events = append(events, more...)
	}
	sorting.Stable(events, func(x, y storage.PayEvent) int { return cmp.Compare(x.ID, y.ID) })
	events = slices.CompactFunc(events, func(x, y storage.PayEvent) bool { return x.ID == y.ID })
	if err := a.addEvents(ctx, tx, t, events); err != nil {
		return err
	}
	refunds, err := tx.Refunds().Of(ctx, id)
	for i := range refunds {
		err = errors.Join(err, a.addRefunded(ctx, tx, t, &refunds[i], account))
	}
	return err
}

// addEvents adds events of the provider.
func (a *Attention) addEvents(ctx context.Context, tx *storage.Tx, t *protocol.MoneyTrace, events []storage.PayEvent) error {
	for _, e := range events {
		step := protocol.MoneyStep{At: &e.At, What: "event of the payment provider", ID: e.EventID, Reference: e.Payment, Note: e.Outcome}
		var read []pay.Event
		if json.Unmarshal(e.Head, &read) == nil && len(read) > 0 && read[0].AmountPaise > 0 {
			step.Amount = new(protocol.MoneyOf(read[0].Currency, read[0].AmountPaise))
		}
		if words := outcomeWords[e.Outcome]; words != "" {
			step.Note = words
		}
		if e.DoneAt == nil {
			at, err := a.when(ctx, tx, e.Account, storage.PayEventJob, e.Account+" "+strconv.FormatInt(e.ID, 10))
			if err != nil {
				return err
			}
			step.Note = "not applied yet"
			t.Next = append(t.Next, jobStep(at, "the event is applied", protocol.MoneyStep{ID: e.EventID}))
		}
		t.Steps = append(t.Steps, step)
	}
	return nil
}

// addRefunded adds a refund, and what has to happen next with it.
func (a *Attention) addRefunded(ctx context.Context, tx *storage.Tx, t *protocol.MoneyTrace, r *storage.StoredRefund, account string) error {
	of := protocol.MoneyStep{Amount: new(protocol.MoneyOf(r.Currency, r.Paise)), ID: r.ID}
	owed := of
	owed.At, owed.What, owed.Note = &r.CreatedAt, "refund owed", r.Why
	t.Steps = append(t.Steps, owed)
	of.Reference = r.Reference
	switch r.State {
	case storage.RefundDone:
		of.At, of.What = r.DoneAt, "refund made"
		t.Steps = append(t.Steps, of)
		return nil
	case storage.RefundManual:
		of.What = "the owner has to send the money back and mark the refund as made"
		t.Next = append(t.Next, of)
		return nil
	}
	at, err := a.when(ctx, tx, account, storage.RefundJob, r.ID)
	if err != nil {
		return err
	}
	of.Note = r.LastError
	what := "the refund is requested from the payment provider"
	switch {
	case r.State == storage.RefundFailed && at == nil:
		of.What = "the refund was refused and is not tried again: the owner has to send the money back and mark it as made"
		t.Next = append(t.Next, of)
		return nil
	case r.State == storage.RefundFailed:
		what = "the refund was refused and is tried again; the owner may send the money back by hand"
	case r.State == storage.RefundOrdered && r.Reference != "":
		what = "the payment provider makes the refund, and is asked how far it is"
	case r.State == storage.RefundOrdered:
		what = "the refund is requested, there is no answer yet, and it is tried again"
	}
	t.Next = append(t.Next, jobStep(at, what, of))
	return nil
}

// nextOfBid adds what a bid waits for.
func (a *Attention) nextOfBid(ctx context.Context, tx *storage.Tx, t *protocol.MoneyTrace, bid *storage.StoredBid) error {
	add := func(what string, at time.Time) {
		t.Next = append(t.Next, protocol.MoneyStep{At: orNever(at), What: what})
	}
	switch protocol.BidState(t.State) {
	case protocol.BidHeld:
		add("the payer pays; otherwise the bid lapses", bid.HoldUntil)
		if bid.Link.ID == "" {
			at, err := a.when(ctx, tx, bid.Account, storage.BidLinkJob, bid.ID)
			if err != nil {
				return err
			}
			t.Next = append(t.Next, jobStep(at, "the payment link is asked for", protocol.MoneyStep{}))
		}
	case protocol.BidClaimed:
		add("the owner confirms or denies the payment; otherwise it is not confirmed", bid.HoldUntil)
	case protocol.BidUnconfirmed:
		if bid.Dispute != nil {
			add("the payer disputes it: the owner has to confirm or deny the payment", time.Time{})
		} else {
			add("nothing happens, unless the owner confirms the payment after all", time.Time{})
		}
	case protocol.BidLive:
		if due := nextDue(bid); due.Before(bid.EndsAt) {
			add("the owner answers; otherwise all of the money goes back", due)
		}
		add("its time on the board is over", bid.EndsAt)
	}
	at, err := a.when(ctx, tx, bid.Account, storage.BidPollJob, bid.ID)
	if err == nil && at != nil {
		add("the payment provider is asked for payments", *at)
	}
	return err
}

// when returns when the waiting job of a kind about a subject, of a payment account, runs; nil when there is none.
func (a *Attention) when(ctx context.Context, tx *storage.Tx, account string, kind storage.JobKind, subject string) (*time.Time, error) {
	at, err := tx.Jobs().DueAt(ctx, "pay:"+account, kind, subject)
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	return &at, nil
}

// jobStep is what a job does next; nil: the job was given up.
func jobStep(at *time.Time, what string, step protocol.MoneyStep) protocol.MoneyStep {
	step.At, step.What = at, what
	if at == nil {
		step.What = "no job does this any more: look at the jobs that were given up"
	}
	return step
}

func orNever(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// moveWords say what happened when a bid got a state.
var moveWords = map[protocol.BidState]string{
	protocol.BidHeld: "bid made", protocol.BidClaimed: "payment reported", protocol.BidUnconfirmed: "payment not confirmed",
	protocol.BidLapsed: "bid lapsed", protocol.BidWithdrawn: "bid withdrawn", protocol.BidLive: "bid live", protocol.BidOutbid: "bid displaced",
	protocol.BidEnded: "bid ended", protocol.BidRemoved: "bid removed", protocol.BidUnanswered: "bid not answered",
	protocol.BidRefundDue: "all of the money has to go back", protocol.BidRefunding: "refund begun", protocol.BidRefunded: "money sent back",
	protocol.BidRefundFailed: "refund refused",
}

// outcomeWords say what became of an event, where the outcome that is stored does not.
var outcomeWords = map[string]string{
	"live": "the bid went live", "live, paid too much": "the bid went live; what was paid too much goes back",
	"no slot": "no slot could be had: it goes back", "paid twice": "the bid was paid already: it goes back",
	"paid in part": "less than the bid: it goes back", "another currency": "another currency: it goes back", "a repeat": "known already: nothing changed",
	"unknown reference": "no bid of this account has the reference: nothing changed", "unknown payment": "it waits for the event of its payment",
	"unknown refund": "no refund of this account has the id: nothing changed",
}
