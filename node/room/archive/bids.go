package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A bidRecord is one line of bids.ndjson: a bid on the profile's attention board. It has nothing that
// opens the bid, pays for it or tells where its bidder is: no hash of a token, no payment link, no
// callback address, no cookie, and not the name by which limits know the bidder.
type bidRecord struct {
	ID         string             `json:"id" shape:"bid-id"`
	State      string             `json:"state" enum:"held,claimed,unconfirmed,lapsed,withdrawn,live,outbid,ended,removed,unanswered,refund_due,refunding,refunded,refund_failed"`
	Paise      int64              `json:"paise" minimum:"1"`
	Test       bool               `json:"test" doc:"No money moved."`
	Denied     bool               `json:"denied" doc:"The owner denied a reported payment."`
	Author     authorRecord       `json:"author"`
	Message    string             `json:"message" maxLength:"500"`
	URL        string             `json:"url,omitempty" maxLength:"500"`
	Category   string             `json:"category,omitempty" maxLength:"40"`
	UTR        string             `json:"utr,omitempty" maxLength:"100" doc:"The payer's reference."`
	CreatedAt  time.Time          `json:"createdAt"`
	LiveAt     *time.Time         `json:"liveAt,omitempty"`
	EndsAt     *time.Time         `json:"endsAt,omitempty"`
	Answer     string             `json:"answer,omitempty" maxLength:"1000"`
	AnswerURL  string             `json:"answerUrl,omitempty" maxLength:"500"`
	AnsweredAt *time.Time         `json:"answeredAt,omitempty"`
	Reason     string             `json:"reason,omitempty" maxLength:"300" doc:"Why the owner removed it."`
	DisputedAt *time.Time         `json:"disputedAt,omitempty" doc:"When the payer disputed that the payment was not confirmed."`
	Moves      []protocol.BidMove `json:"moves" maxItems:"200" doc:"Every state, oldest first."`
	MoneyRecord
	Receipt *protocol.Receipt `json:"receipt,omitempty"`
}

// A MoneyRecord is the money of a bid or an order. Its name is exported because schemas leave out what is embedded otherwise.
type MoneyRecord struct {
	Payments []paymentRecord `json:"payments" maxItems:"200"`
	Refunds  []refundRecord  `json:"refunds" maxItems:"200"`
}

type paymentRecord struct {
	ID        string    `json:"id" maxLength:"60"`
	Provider  string    `json:"provider" enum:"upi,razorpay,sandbox"`
	PaymentID string    `json:"paymentId" maxLength:"200" doc:"At the provider."`
	Reference string    `json:"reference,omitempty" maxLength:"200" doc:"Of the bank."`
	Paise     int64     `json:"paise" minimum:"1" doc:"Minor units of the currency."`
	Currency  string    `json:"currency,omitempty" maxLength:"3" doc:"Left out for rupees."`
	Placed    bool      `json:"placed" doc:"It paid for a slot."`
	Test      bool      `json:"test"`
	PaidAt    time.Time `json:"paidAt" doc:"By the provider's clock."`
	At        time.Time `json:"at" doc:"When the node stored it."`
}

type refundRecord struct {
	ID        string     `json:"id" shape:"refund-id"`
	Payment   string     `json:"payment" maxLength:"60"`
	Paise     int64      `json:"paise" minimum:"1" doc:"Minor units of the payment's currency."`
	Why       string     `json:"why" maxLength:"1000"`
	State     string     `json:"state" enum:"due,ordered,manual,failed,done"`
	Reference string     `json:"reference,omitempty" maxLength:"200"`
	CreatedAt time.Time  `json:"createdAt"`
	DoneAt    *time.Time `json:"doneAt,omitempty"`
}

// bids writes the bids on the profile's attention board, newest first.
func (e *exporting) bids(ctx context.Context) error {
	board, err := e.tx.AttentionBoards().ByHandle(ctx, e.handle)
	if err != nil {
		return storage.IfMissing(err, nil) // older nodes refuse an archive with a member that they do not know
	}
	open := 0
	err = e.member(bidsFile, func(line func(any) error) error {
		for after, more := "", true; more; {
			page, err := e.tx.Bids().List(ctx, board.ID, "", protocol.MaxLimit, after)
			if err != nil {
				return err
			}
			for i := range page.Items {
				b, err := e.tx.Leavings().Bid(ctx, &page.Items[i])
				if err != nil {
					return err
				}
				r, err := e.bid(ctx, b)
				if err != nil {
					return err
				}
				if r.underWay() != "" {
					open++
				}
				if err := line(r); err != nil {
					return err
				}
			}
			if more = page.Next != nil; more {
				after = *page.Next
			}
		}
		return nil
	})
	if open > 0 {
		e.manifest.About = append(e.manifest.About, fmt.Sprintf("%d of the bids in bids.ndjson are not over. No other node takes them: "+
			"their money stays on the books of this node, so keep the profile here until they are over, or close the board (close_attention_board).", open))
	}
	return err
}

func (e *exporting) bid(ctx context.Context, b *storage.StoredBid) (r bidRecord, err error) {
	r = bidRecord{
		ID: b.ID, State: string(b.State), Paise: b.Paise, Test: b.Test, Denied: b.Denied, Author: recordOf(b.Author), Message: b.Message, URL: b.URL,
		Category: b.Category, UTR: b.UTR, CreatedAt: b.BidAt, LiveAt: timeOrNil(b.LiveAt), EndsAt: timeOrNil(b.EndsAt), Answer: b.Answer,
		AnswerURL: b.AnswerURL, AnsweredAt: timeOrNil(b.AnsweredAt), Reason: b.Reason, DisputedAt: timeOrNil(b.DisputedAt),
	}
	if r.Moves, err = e.tx.Bids().Moves(ctx, b.ID); err != nil {
		return r, err
	}
	placed, refunds, err := r.read(ctx, e.tx, b.ID, b.Paid)
	if err != nil || placed == "" {
		return r, err
	}
	if r.Receipt, err = e.tx.Payments().Receipt(ctx, placed); errors.Is(err, storage.ErrNotFound) {
		r.Receipt = nil
		return r, nil
	}
	if back := storage.RefundedOf(placed, refunds); err == nil && back > 0 {
		r.Receipt.Refunded = new(protocol.MoneyOf(protocol.Rupee, back))
	}
	return r, err
}

// read reads the money of a bid or an order, and returns the payment that paid for it, "" for none. What was never paid has none.
func (r *MoneyRecord) read(ctx context.Context, tx *storage.Tx, id string, paid bool) (placed string, refunds []storage.StoredRefund, err error) {
	r.Payments, r.Refunds = []paymentRecord{}, []refundRecord{}
	if !paid {
		return "", nil, nil
	}
	payments, err := tx.Payments().Of(ctx, id)
	if err == nil {
		refunds, err = tx.Refunds().Of(ctx, id)
	}
	for _, f := range refunds {
		r.Refunds = append(r.Refunds, refundRecord{
			ID: f.ID, Payment: f.Payment, Paise: f.Paise, Why: f.Why, State: string(f.State), Reference: f.Reference, CreatedAt: f.CreatedAt,
			DoneAt: f.DoneAt,
		})
	}
	for _, p := range payments {
		r.Payments = append(r.Payments, paymentRecord{
			ID: p.ID, Provider: string(p.Provider), PaymentID: p.PaymentID, Reference: p.Reference, Paise: p.Paise, Placed: p.Placed, Test: p.Test,
			PaidAt: p.PaidAt, At: p.At,
		})
		if p.Currency != protocol.Rupee {
			r.Payments[len(r.Payments)-1].Currency = p.Currency
		}
		if p.Placed { // one payment is, at most
			placed = p.ID
		}
	}
	return placed, refunds, err
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// underWay says what keeps the books of a bid open, "" for one that is over.
func (b *bidRecord) underWay() (under string) {
	if s := protocol.BidState(b.State); s.Unpaid() || s == protocol.BidLive || s == protocol.BidRefundDue {
		under = "is " + b.State
	}
	return cmp.Or(b.owes(), under)
}

// owes says that money is to be sent back, "" for none.
func (r *MoneyRecord) owes() string {
	for _, f := range r.Refunds {
		if f.State != string(storage.RefundDone) {
			return "has a refund that is not made"
		}
	}
	return ""
}

// kept returns what was paid and not sent back, in paise.
func (r *MoneyRecord) kept() (paise int64) {
	for _, p := range r.Payments {
		paise += p.Paise
	}
	for _, f := range r.Refunds {
		if f.State == string(storage.RefundDone) {
			paise -= f.Paise
		}
	}
	return paise
}

// bidStep returns the step that counts one bid. No bid is stored: its money stays on the books of the
// node that took it, which ends the bid and makes its refunds. Where that node is gone for good, for which
// the operator vouches, the owner has to make them, and the report says which.
func (im *importing) bidStep(r record) (step, error) {
	var in bidRecord
	if err := im.decode(r, &in); err != nil {
		return step{}, err
	}
	handle := func(ctx context.Context, tx *storage.Tx) (string, error) {
		here, err := tx.Bids().ByID(ctx, in.ID)
		if err != nil {
			return "", err
		}
		return here.Handle, nil
	}
	return im.booked(&im.report.Bids, handle, in.ID, in.underWay(), in.MoneyRecord,
		"bids on the attention board were checked and left out: their payments, refunds and receipts stay on the books of %s; "+
			"keep the archive as your own copy",
		"bids that are not over were left out too: %s goes on with them and makes their refunds, so keep the profile there until they "+
			"are over, or close the board there (close_attention_board)"), nil
}

// booked is the step that counts a bid or an order, and stores none. handle is the profile here that has it, if one does; under is what
// keeps it open.
func (im *importing) booked(count *protocol.ImportCount, handle func(context.Context, *storage.Tx) (string, error), id, under string, r MoneyRecord,
	left, open string) step {
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error {
		switch here, err := handle(ctx, tx); {
		case err == nil && here == im.handle:
			count.Same++
			return nil
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return err
		}
		count.LeftOut++
		im.note(left, im.host)
		switch {
		case under == "":
		case !im.gone:
			im.note(open, im.host)
		case r.kept() > 0:
			im.note("%s %s, and no node makes its refund: %s was paid for it and not sent back; settle that with its payer, whom payment %s names",
				id, under, protocol.FormatRupees(r.kept()), cmp.Or(r.Payments[0].Reference, r.Payments[0].PaymentID))
		}
		return nil
	}}
}
