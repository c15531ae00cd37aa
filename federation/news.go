package federation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A ReviewReader asks the chain for feedback that a review is about. It returns an error with the code not-found when the
// chain has no such feedback with that rating, and identity-unverified when this node does not read that chain or
// registry; other errors are temporary.
type ReviewReader func(ctx context.Context, r protocol.NewsReview) error

// isNews reports whether an entry of our log is about news of a shop, or about all news of one.
func isNews(objectID string) bool {
	return protocol.IsID(protocol.FeedID, objectID) || strings.HasPrefix(objectID, storage.LogOfShop)
}

// newsURI is what an entry about news names: the news, or the actor of the shop.
func (f *Federation) newsURI(objectID string) string {
	if handle, ok := strings.CutPrefix(objectID, storage.LogOfShop); ok {
		return f.site.Agent(handle)
	}
	return f.site.News(objectID)
}

// newsEntry is the activity of a log entry about news: the board offers it while it is in the feed, and takes the offer
// back when it left. It is nil without an error for the offer of news that left the feed.
func (f *Federation) newsEntry(ctx context.Context, tx *storage.Tx, e storage.LogEntry) ([]byte, error) {
	uri := f.newsURI(e.ObjectID)
	if e.Kind == storage.LogHide {
		return f.prove(f.site.Withdrawn(uri, e.Seq, e.At), f.site.Board(), e.At)
	}
	if strings.HasPrefix(e.ObjectID, storage.LogOfShop) {
		return f.prove(f.site.OfferAgain(uri, e.Seq, e.At), f.site.Board(), e.At)
	}
	news, err := f.newsObject(ctx, tx, e.ObjectID)
	if err != nil || news == nil {
		return nil, err
	}
	return f.prove(f.site.OfferNews(news), f.site.Board(), e.At)
}

// newsObject is news of this node by the id of its feed item; nil when it is not in the feed.
func (f *Federation) newsObject(ctx context.Context, tx *storage.Tx, id string) (activity.Object, error) {
	item, err := tx.Feed().Published(ctx, id)
	if err != nil {
		return nil, absent(err)
	}
	return f.site.NewsObject(item)
}

// serveNews serves news of this node that is in the feed.
func (f *Federation) serveNews(w http.ResponseWriter, r *http.Request) {
	f.serve(w, r, func(ctx context.Context, tx *storage.Tx) (activity.Object, error) {
		id := r.PathValue("id")
		if !protocol.IsID(protocol.FeedID, id) {
			return nil, storage.ErrNotFound
		}
		news, err := f.newsObject(ctx, tx, id)
		if err != nil || news == nil {
			return nil, err
		}
		return activity.WithContext(news), nil
	})
}

// readOfferAgain reads that a followed board shows the news of a shop of its node again.
func (f *Federation) readOfferAgain(s *storage.Subscription, act *activity.Activity) after {
	actor := act.ObjectID()
	if act.Actor.One() != s.Board || !f.sameOrigin(actor, s.Board) {
		return noEffect
	}
	return func(ctx context.Context, tx *storage.Tx) error { return tx.FeedOrigins().RestoreOf(ctx, actor) }
}

// readNews reads news of a shop of the node of a followed board. Who the shop is, and that a review was given, is checked
// by this node; a shop that signed nothing is shown on the word of its node, which the feed names.
func (f *Federation) readNews(ctx context.Context, s *storage.Subscription, act *activity.Activity) (after, error) {
	var n activity.News
	if act.Actor.One() != s.Board || !activity.HasStoa(act.Context) || strictjson.DecodeChecked(act.Object, &n) != nil || !n.Type.Is(activity.NewsType) {
		return noEffect, nil
	}
	uri := string(n.ID)
	for _, id := range append([]string{uri, string(n.URL)}, n.AttributedTo...) {
		if !f.sameOrigin(id, s.Board) {
			return nil, fmt.Errorf("%w: news of another origin than its board", errIdentity)
		}
	}
	host := hostOf(s.Board)
	if err := f.admits(ctx, host); err != nil {
		return nil, err
	}
	item, review, err := n.Item(host)
	if err != nil {
		return nil, err
	}
	if err := f.verifyShop(ctx, s.Board, &n, &item); err != nil {
		return nil, err
	}
	if review != nil {
		if err := f.verifyReview(ctx, &n, *review); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		return f.receiveNews(ctx, tx, host, uri, n.Published.Time, item, present(n.Statement))
	}, nil
}

// verifyShop checks the statement by a key of the shop, if there is one, and says in the item who the shop is.
func (f *Federation) verifyShop(ctx context.Context, board string, n *activity.News, item *protocol.FeedItem) error {
	v, err := integrity.Judge(ctx, integrity.Claim{
		ID: string(n.ID), Kind: string(item.Type), Title: item.Subject.Title, Body: item.Summary, Name: string(n.Author.Name),
		Handle: *item.Actor.Handle, ERC8004: strings.ToLower(string(n.Author.ERC8004)), Actor: n.AttributedTo[0], Board: board,
		Published: n.Published.Time, Statement: present(n.Statement),
	}, f.c.Authority)
	if err != nil {
		return fmt.Errorf("author of %s: %w", n.ID, err)
	}
	judged(&item.Actor, v)
	return nil
}

// verifyReview asks the chain for the feedback of a review, if this node reads it. What the chain does not have is refused.
func (f *Federation) verifyReview(ctx context.Context, n *activity.News, r protocol.NewsReview) error {
	if r.Agent == "" || r.Agent != strings.ToLower(string(n.Author.ERC8004)) {
		return fmt.Errorf("%w: a review of another identity than its shop claims", errIdentity)
	}
	if f.c.Reviews == nil {
		return nil
	}
	err := f.c.Reviews(ctx, r)
	switch {
	case err == nil, protocol.CodeOf(err) == protocol.IdentityUnverified:
		return nil
	case protocol.CodeOf(err) == protocol.NotFound:
		return fmt.Errorf("%w: %w", errIdentity, err)
	}
	return fmt.Errorf("review %s: %w", n.ID, err)
}

// receiveNews adds news of another node to the feed, unless the node is silenced, the shop blocked, or its statement
// that of other news.
func (f *Federation) receiveNews(
	ctx context.Context, tx *storage.Tx, host, uri string, published time.Time, item protocol.FeedItem, statement []byte,
) error {
	policy, err := policyOf(ctx, tx, host)
	if err != nil || policy == storage.PolicySilence || policy == storage.PolicyReject {
		return err
	}
	item.Actor.Complete(tx.Now)
	if blocked, err := blockedAuthor(ctx, tx, item.Actor); err != nil || blocked {
		return err
	}
	switch known, err := tx.FeedOrigins().Has(ctx, uri); {
	case err != nil:
		return err
	case !known && statement != nil:
		key := sha256.Sum256(append([]byte("shop's statement\x00"), statement...))
		if first, err := tx.Requests().UseSignature(ctx, key, tx.Now.Add(usedSignatureAge)); err != nil || !first {
			return err
		}
	}
	item.At = protocol.ShownAt(published, tx.Now)
	item.ID = protocol.RemoteID(protocol.FeedID, item.At, uri)
	switch item.Type {
	case protocol.FeedMerchantJoined:
		item.Subject.ID = *item.Actor.Handle + "@" + host
	case protocol.FeedListing:
		item.Subject.ID = protocol.RemoteID(protocol.ItemID, item.At, uri)
	default:
		item.Subject.ID = protocol.RemoteID(protocol.ReviewID, item.At, uri)
	}
	fresh, err := tx.FeedOrigins().Receive(ctx, storage.FeedOrigin{URI: uri, Host: host, Item: item})
	if errors.Is(err, storage.ErrExists) { // another item has the id: it was received before its row was deleted
		return nil
	}
	if err == nil && fresh {
		f.log.Info("news received", "from", host, "type", item.Type, "verified", item.Actor.Verified, "id", item.ID)
	}
	return err
}
