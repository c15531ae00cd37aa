package order

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"stoa/node/money"
	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// Platforms tells the platforms of UCP of the orders that they began.
type Platforms struct {
	// Send delivers one signed document; its failures are *webhook.Failure.
	Send func(ctx context.Context, address, id string, body []byte, fields http.Header) error
	Body func(o *protocol.PlatformOrder) ([]byte, error)
	Page string // address of the profile of this node
}

// tellPlatform enqueues the first attempt to tell the platform of an order of its last change.
func (o *Orders) tellPlatform(ctx context.Context, tx *storage.Tx, x *storage.StoredOrder) error {
	if x.Webhook == "" || o.Platforms == nil || !placed(x) {
		return nil
	}
	return money.Enqueue(ctx, tx, storage.OrderTellJob, webhook.Lane(x.Webhook), money.Job{ID: x.ID, N: x.Moves}, tx.Now)
}

// Tell makes one attempt to send the platform of an order what the order is now. It is repeated under the same id, for a day at most.
func (o *Orders) Tell(ctx context.Context, j storage.Job, l money.Job) (func(context.Context, *storage.Tx) error, error) {
	var x *storage.StoredOrder
	var view *protocol.PlatformOrder
	err := o.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if x, err = tx.Orders().ByID(ctx, l.ID); err == nil {
			view, err = forPlatform(ctx, tx, x)
		}
		return err
	})
	if err != nil || x.Webhook == "" || o.Platforms == nil {
		return nil, storage.Missing(err, nil)
	}
	body, err := o.Platforms.Body(view)
	if err != nil {
		return nil, err
	}
	sent := o.Platforms.Send(ctx, x.Webhook, fmt.Sprintf("%s-%d", l.ID, l.N), body, http.Header{
		"Ucp-Agent": {`profile="` + o.Platforms.Page + `"`}, "Webhook-Timestamp": {strconv.FormatInt(x.MovedAt.Unix(), 10)},
	})
	if sent == nil {
		return nil, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		f, at := webhook.After(sent, l.Try+1, tx.Now, x.MovedAt.Add(protocol.CallbackFor))
		switch {
		case !at.IsZero():
			return money.Enqueue(ctx, tx, storage.OrderTellJob, j.Lane, money.Job{ID: l.ID, N: l.N, Try: l.Try + 1}, at)
		case f.Kind != webhook.ErrGone:
			return nil
		}
		x, err := locked(ctx, tx, l.ID)
		if err != nil {
			return storage.IfMissing(err, nil)
		}
		x.Webhook = ""
		return tx.Orders().Save(ctx, x)
	}, nil
}
