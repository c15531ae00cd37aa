package federation

import (
	"context"
	"errors"
	"net/http"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Quotes follow FEP-044f. A public post of this node may be quoted by everyone: a QuoteRequest is answered at once, by the post's author,
// with a permission (a QuoteAuthorization, called stamp here) that is served at its id. It is revoked, for good, when the post is hidden or
// deleted: it is not served any more, and the quoting actor is sent its Delete.

// handleQuoteRequest accepts the request to quote a public post of this node, unless a limit of reactions is reached. The quote is counted
// when the request shows that the quoting post is public; nothing is fetched.
func (f *Federation) handleQuoteRequest(ctx context.Context, in *incoming) (after, error) {
	q := in.act.Quoting()
	p, err := f.ownPost(ctx, in.act.ObjectID())
	if err != nil || p == nil || !f.sameOrigin(q.ID, in.actor) {
		return nil, err
	}
	a, err := f.actorOf(ctx, in.actor, actorAge)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	may := activity.Quotable(p) && (q.Author == "" || q.Author == in.actor) && (q.Of == "" || q.Of == p.URI)
	r := storage.Reaction{PostID: p.ID, Actor: in.actor, Kind: storage.QuietQuote, URI: q.ID}
	if q.Author != "" && q.Public {
		r.Kind = storage.Quote
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		kind, key := "Reject", ""
		if may {
			stored, err := f.react(ctx, tx, r)
			if err != nil {
				return err
			}
			if stored {
				kind, key = "Accept", storage.ReactionKey(r)
			}
		}
		inbox := a.Inbox.One()
		if full, err := tx.Jobs().LaneFull(ctx, laneTo(inbox), maxAnswers); err != nil || full {
			return err
		}
		id := f.site.Base + "/ap/answers/" + protocol.NewID(protocol.ActivityID, tx.Now)
		o := f.site.AnswerQuote(kind, id, string(in.act.ID), in.actor, q.ID, p, key)
		return f.enqueueDelivery(ctx, tx, f.site.Author(p), inbox, o)
	}, nil
}

// serveStamp serves the permission to quote a post: 404 when there is none or it is revoked, 410 when the post is deleted.
func (f *Federation) serveStamp(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		p, err := f.localPost(ctx, tx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		key := r.PathValue("key")
		switch p.State {
		case protocol.Deleted:
			o := activity.RevokedStamp(p, key)
			o[statusMember] = http.StatusGone
			return o, nil
		case protocol.Hidden: // it is being revoked
			return nil, storage.ErrNotFound
		}
		q, err := tx.Reactions().QuoteByKey(ctx, p.ID, key)
		if err != nil {
			return nil, err
		}
		return f.site.Stamp(p, key, q.URI), nil
	})
}
