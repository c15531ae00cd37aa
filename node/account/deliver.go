package account

import (
	"context"
	"errors"
	"time"

	"stoa/node/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// deliver posts a notice to an owner's webhook and judges what became of it.
func (a *Accounts) deliver(ctx context.Context, s storage.NotifySettings, id string, body []byte) (func(context.Context, *storage.Tx) error, error) {
	err := a.Webhook.Send(ctx, s.Webhook, id, body)
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, webhook.ErrGone): // it wants no more
		return func(ctx context.Context, tx *storage.Tx) error {
			now, err := tx.NotifySettings(ctx, s.Handle)
			if err != nil || now.Webhook != s.Webhook {
				return err
			}
			now.Webhook = ""
			return tx.PutNotifySettings(ctx, now)
		}, nil
	case errors.Is(err, webhook.ErrRefused):
		return nil, protocol.Errorf(protocol.InvalidRequest, "the webhook of @%s: %w", s.Handle, err)
	}
	var wait time.Duration
	if f, ok := errors.AsType[*webhook.Failure](err); ok {
		wait = f.RetryAfter
	}
	return nil, &protocol.Error{Code: protocol.Overloaded, Detail: "the webhook of @" + s.Handle + " did not take the notice", RetryAfter: wait, Err: err}
}
