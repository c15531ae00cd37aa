package account

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stoa/node/out/webhook"
	"stoa/protocol"
	"stoa/storage"
)

// SendWebhook is the handler of WebhookJob. A receiver that answers that it is gone
// is removed.
func (a *Accounts) SendWebhook(ctx context.Context, j storage.Job, job telling) (func(context.Context, *storage.Tx) error, error) {
	doc := job.Notice // with the link as it is now, which no job keeps
	s, _, link, err := a.addressee(ctx, doc.Notice, func(s storage.NotifySettings) string { return s.Webhook })
	if err != nil || s.Webhook == "" {
		return nil, err
	}
	doc.Link = link
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	err = a.Webhook.Send(ctx, s.Webhook, job.Notice.ID, body)
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, webhook.ErrGone):
		return func(ctx context.Context, tx *storage.Tx) error { return forget(ctx, tx, s) }, nil
	case errors.Is(err, webhook.ErrRefused):
		return nil, protocol.Errorf(protocol.InvalidRequest, "the webhook of @%s: %w", s.Handle, err)
	}
	var wait time.Duration
	if f, ok := errors.AsType[*webhook.Failure](err); ok {
		wait = f.RetryAfter
	}
	err = &protocol.Error{Code: protocol.Overloaded, Detail: "the webhook of @" + s.Handle + " did not take the notice", RetryAfter: wait, Err: err}
	return retry(j, forADay, &job.trial, &job, err)
}

// forget removes a webhook from the settings, unless it was replaced meanwhile.
func forget(ctx context.Context, tx *storage.Tx, s storage.NotifySettings) error {
	now, err := tx.Profiles().NotifySettings(ctx, s.Handle)
	if err != nil || now.Webhook != s.Webhook {
		return err
	}
	now.Webhook = ""
	return tx.Profiles().PutNotifySettings(ctx, now)
}
