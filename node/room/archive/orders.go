package archive

import (
	"context"
	"fmt"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// An orderRecord is one line of orders.ndjson: an order of the shop, with who bought and where it goes, which the shop knows. It has
// nothing that opens the order or pays it, and not the name by which limits know the buyer.
type orderRecord struct {
	ID       string                `json:"id" pattern:"^ord_[0-7][0-9a-hjkmnp-tv-z]{25}$"`
	State    string                `json:"state" enum:"awaiting_payment,paid,fulfilled,canceled,refunded"`
	Claimed  bool                  `json:"claimed" doc:"The buyer reported the payment."`
	Paise    int64                 `json:"paise" minimum:"1"`
	Test     bool                  `json:"test" doc:"No money moved."`
	Known    string                `json:"known,omitempty" enum:"provider,confirmed,stated" doc:"How the payment is known."`
	Lines    []protocol.OrderLine  `json:"lines" maxItems:"100"`
	Totals   []protocol.OrderTotal `json:"totals" maxItems:"20"`
	Way      string                `json:"way" enum:"delivery,pickup"`
	Pay      string                `json:"pay" enum:"now,later"`
	Note     string                `json:"note,omitempty" maxLength:"500" doc:"Of the shop, for buyers."`
	UTR      string                `json:"utr,omitempty" maxLength:"100" doc:"The buyer's reference."`
	Client   string                `json:"client,omitempty" maxLength:"80" doc:"The buyer's account on the blockchain."`
	Receipt  string                `json:"receipt,omitempty" maxLength:"60" doc:"Id of its order receipt."`
	Returned int64                 `json:"returned,omitempty" minimum:"0" doc:"What the shop gave back in hand, in paise."`
	Buyer    *protocol.OrderBuyer  `json:"buyer,omitempty" doc:"Left out a year after the order was over."`
	MadeAt   time.Time             `json:"madeAt"`
	Events   []protocol.OrderEvent `json:"events" maxItems:"100"`
	MoneyRecord
}

// orders writes the orders of a shop, newest first. Without any there is no member: older nodes refuse members that they do not know.
func (e *exporting) orders(ctx context.Context) error {
	till, err := e.tx.Tills().ByHandle(ctx, e.handle)
	if err != nil {
		return storage.IfMissing(err, nil)
	}
	page, err := e.tx.Orders().List(ctx, till.ID, "", protocol.MaxLimit, "")
	if err != nil || len(page.Items) == 0 {
		return err
	}
	open := 0
	err = e.member(ordersFile, func(line func(any) error) error {
		for {
			for i := range page.Items {
				r, err := e.order(ctx, &page.Items[i])
				if err == nil {
					err = line(r)
				}
				if err != nil {
					return err
				}
				if r.underWay() != "" {
					open++
				}
			}
			if page.Next == nil {
				return nil
			}
			if page, err = e.tx.Orders().List(ctx, till.ID, "", protocol.MaxLimit, *page.Next); err != nil {
				return err
			}
		}
	})
	if open > 0 {
		e.manifest.About = append(e.manifest.About, fmt.Sprintf("%d of the orders in orders.ndjson are not over. No other node takes them: "+
			"hand them over, or cancel them, before you leave this node.", open))
	}
	return err
}

func (e *exporting) order(ctx context.Context, x *storage.StoredOrder) (r orderRecord, err error) {
	r = orderRecord{
		ID: x.ID, State: string(x.State), Claimed: x.Claimed, Paise: x.Paise, Test: x.Test, Known: x.Known, Lines: x.Lines, Totals: x.Totals, Way: x.Way,
		Pay: x.Pay, Note: x.Note, UTR: x.UTR, Client: x.Client, Receipt: x.Receipt, Returned: x.Returned, MadeAt: x.MadeAt, Events: x.Events,
	}
	if _, _, err = r.read(ctx, e.tx, x.ID, x.Paid); err == nil && len(x.Sealed) > 0 {
		var buyer protocol.OrderBuyer
		buyer, err = e.Buyer(x)
		r.Buyer = &buyer
	}
	return r, err
}

// underWay says what keeps an order open, "" for one that is over.
func (r *orderRecord) underWay() string {
	if s := protocol.OrderState(r.State); s == protocol.OrderAwaiting || s == protocol.OrderPaid {
		return "is not over"
	}
	return r.owes()
}

// orderStep returns the step that counts one order. Like bids, none is stored: the node that took it goes on with it.
func (im *importing) orderStep(r record) (step, error) {
	var in orderRecord
	if err := im.decode(r, &in); err != nil {
		return step{}, err
	}
	handle := func(ctx context.Context, tx *storage.Tx) (string, error) {
		here, err := tx.Orders().ByID(ctx, in.ID)
		if err != nil {
			return "", err
		}
		return here.Handle, nil
	}
	return im.booked(&im.report.Orders, handle, in.ID, in.underWay(), in.MoneyRecord,
		"orders were checked and left out: they stay on the books of %s; keep the archive as your own copy",
		"orders that are not over were left out too: go on with them on %s, which makes their refunds"), nil
}
