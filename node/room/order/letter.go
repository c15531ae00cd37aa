package order

import (
	"context"
	"strings"
	"time"

	"stoa/node/hall"
	"stoa/node/money"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// told are the events of which the buyer is told by mail, and how. Nothing is sent before the shop acted or money moved, so that nobody
// has mail sent to others.
var told = map[string]string{
	"denied": hall.Key("The shop did not find your payment. If you paid, report its reference again."), "paid": hall.Key("Your order is paid."),
	"packed": hall.Key("Your order is packed."), "sent": hall.Key("Your order is on its way."), "delivered": hall.Key("Your order was delivered."),
	"picked_up": hall.Key("You picked up your order."), "canceled": hall.Key("Your order was canceled."),
	"refund": hall.Key("The shop sends money back."), "refunded": hall.Key("Money was sent back."),
	"answered": hall.Key("The shop answered your review."),
}

// letterFor is how long a letter is tried.
const letterFor = 24 * time.Hour

// Letter is the handler of OrderMailJob.
func (o *Orders) Letter(ctx context.Context, j storage.Job, l money.Job) (func(context.Context, *storage.Tx) error, error) {
	send := o.LettersVia()
	var x *storage.StoredOrder
	err := o.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		x, err = tx.Orders().ByID(ctx, l.ID)
		return err
	})
	if err != nil || send == nil || l.N >= len(x.Events) {
		return nil, storage.Missing(err, nil)
	}
	who, err := o.buyerOf(x)
	if err != nil || who.Mail == "" {
		return nil, err
	}
	t, e := o.Words(who.Language), x.Events[l.N]
	subject := t.Text("Your order at %s", x.Shop)
	if x.Test {
		subject = "TEST: " + subject
	}
	text := []string{t.Text(told[e.What]), title(x) + ", " + protocol.FormatRupees(x.Paise)}
	if e.Note != "" {
		text = append(text, "    | "+strings.ReplaceAll(e.Note, "\n", "\n    | "))
	}
	text = append(text, t.Text("Its page; whoever has this address can see the order:"), o.Base+"/order/"+who.Token)
	if x.Reported && x.Known == protocol.KnownStated {
		text = append(text, t.Text("Confirm there that this mailbox is yours, and the order counts as paid by you, also when you review it:"),
			o.Base+"/order/"+who.Token+"?mail="+o.ticket(x.ID, who.Mail))
	}
	failed := send(ctx, x.ID+"."+e.What+"."+e.At.UTC().Format("20060102150405"), who.Mail, subject, strings.Join(text, "\n\n")+"\n")
	if failed == nil {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		at := tx.Now.Add(netx.Jitter(netx.Backoff(time.Minute, time.Hour, l.Try+1)))
		if at.After(e.At.Add(letterFor)) {
			return nil
		}
		return money.Enqueue(ctx, tx, storage.OrderMailJob, j.Lane, money.Job{ID: l.ID, N: l.N, Try: l.Try + 1}, at)
	}, nil
}
