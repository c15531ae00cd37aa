package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// bidEntry is the activity of a log entry about a bid on an attention board: the
// board offers it while it is in the feed, and takes the offer back when it left.
// It is nil without an error for the offer of a bid that left the feed.
func (f *Federation) bidEntry(ctx context.Context, tx *storage.Tx, e storage.LogEntry) ([]byte, error) {
	if e.Kind == storage.LogHide {
		return f.prove(f.site.Withdrawn(f.site.Bid(e.ObjectID), e.Seq, e.At), f.site.Board(), e.At)
	}
	item, err := tx.Bids().FeedItem(ctx, e.ObjectID)
	if err != nil || item.Node != nil {
		return nil, absent(err)
	}
	return f.prove(f.site.Offer(item), f.site.Board(), e.At)
}

// readOffer reads a bid, or news, of the node of a followed board. Only that node tells of its
// bids: there is nobody else whose word could be checked.
func (f *Federation) readOffer(ctx context.Context, s *storage.Subscription, act *activity.Activity) (after, error) {
	var b activity.Bid
	if act.Actor.One() != s.Board || !act.Embedded() || !activity.HasStoa(act.Context) || strictjson.DecodeChecked(act.Object, &b) != nil {
		return noEffect, nil
	}
	if b.Type.Is(activity.AgentType) {
		return f.readAgent(ctx, s, act)
	}
	if !b.Type.Is(activity.BidType) {
		return f.readNews(ctx, s, act)
	}
	uri := string(b.ID)
	for _, id := range append([]string{uri, string(b.URL)}, b.AttributedTo...) {
		if !f.sameOrigin(id, s.Board) {
			return nil, fmt.Errorf("%w: a bid of another origin than its board", errIdentity)
		}
	}
	host := hostOf(s.Board)
	if err := f.admits(ctx, host); err != nil {
		return nil, err
	}
	item, err := b.Item(host)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return f.receiveBid(ctx, tx, host, uri, b.Published.Time, item)
	}, nil
}

// receiveBid adds a bid of another node to the feed, once, unless the node is
// silenced or the author blocked.
func (f *Federation) receiveBid(ctx context.Context, tx *storage.Tx, host, uri string, published time.Time, item protocol.FeedItem) error {
	switch _, err := tx.Bids().IDByURI(ctx, uri); {
	case err == nil:
		return nil // known, and perhaps taken out since
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	policy, err := policyOf(ctx, tx, host)
	if err != nil || policy == storage.PolicySilence || policy == storage.PolicyReject {
		return err
	}
	if blocked, err := blockedAuthor(ctx, tx, item.Actor); err != nil || blocked {
		return err
	}
	item.At = protocol.ShownAt(published, tx.Now)
	item.ID = protocol.RemoteID(protocol.FeedID, item.At, uri)
	item.Subject.ID = protocol.RemoteID(protocol.BidID, item.At, uri)
	err = tx.Bids().Publish(ctx, "", uri, item)
	if err == nil {
		f.log.Info("bid received", "from", host, "id", item.Subject.ID)
	}
	return err
}

// readUndo reads that a followed board takes back the offer of a bid, of news, or of a shop with all its news.
func (f *Federation) readUndo(s *storage.Subscription, act *activity.Activity) (after, error) {
	var o activity.OfferOf
	if act.Actor.One() != s.Board || !act.Embedded() || strictjson.DecodeChecked(act.Object, &o) != nil || !o.Type.Is("Offer") {
		return noEffect, nil
	}
	uri := (&activity.Activity{Object: o.Object}).ObjectID()
	if uri == "" || !f.sameOrigin(uri, s.Board) {
		return noEffect, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		id, err := tx.Bids().IDByURI(ctx, uri)
		switch {
		case err == nil:
			return tx.Bids().Retract(ctx, "", id)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		case strings.Contains(uri, "/ap/agents/"):
			return errors.Join(tx.FeedOrigins().HideOf(ctx, uri), tx.RemoteAgents().Drop(ctx, uri))
		}
		return tx.FeedOrigins().Withdraw(ctx, uri)
	}, nil
}

// serveBid serves a bid of this node that is in the feed.
func (f *Federation) serveBid(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		id := r.PathValue("id")
		if !protocol.IsID(protocol.BidID, id) {
			return nil, storage.ErrNotFound
		}
		item, err := tx.Bids().FeedItem(ctx, id)
		if err != nil || item.Node != nil {
			return nil, absent(err)
		}
		return activity.WithContext(f.site.BidObject(item)), nil
	})
}
