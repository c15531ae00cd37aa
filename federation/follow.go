package federation

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Follow requests to follow the board of another node, named by its base address or
// by the board's id. The answer arrives later; until then the subscription is
// pending. A repeated call sends the request again unless it was accepted.
func (f *Federation) Follow(ctx context.Context, address string) (storage.Subscription, error) {
	board, node, err := f.discover(ctx, address)
	if err != nil && unavailable(err) {
		return storage.Subscription{}, fmt.Errorf("look for a board at %s: %w", address, err)
	}
	if err != nil {
		return storage.Subscription{}, protocol.Errorf(protocol.InvalidRequest, "%s has no board to follow: %w", address, err)
	}
	id := string(board.ID)
	s := storage.Subscription{
		Board: id, Host: hostOf(id), NodeActor: node, LogURL: board.Log.One(), State: storage.SubscriptionPending,
	}
	err = f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		known, err := tx.Subscriptions().ByBoard(ctx, id)
		if absent(err) != nil {
			return err
		}
		if err == nil && known.State == storage.SubscriptionAccepted {
			s = *known
			return f.enqueuePull(ctx, tx, id)
		}
		s.FollowID = f.site.Base + "/ap/follows/" + protocol.NewID(protocol.ActivityID, tx.Now)
		s.NextAt = tx.Now.Add(heartbeat)
		if err := tx.Subscriptions().Put(ctx, s); err != nil {
			return err
		}
		return f.enqueueFollow(ctx, tx, id, board.Inbox.One(), s.FollowID)
	})
	return s, err
}

// enqueueFollow queues the Follow of a board. The result of its delivery is
// recorded in the subscription.
func (f *Federation) enqueueFollow(ctx context.Context, tx *storage.Tx, board, inbox, id string) error {
	body, err := f.site.Follow(id, board).Bytes()
	if err != nil {
		return err
	}
	return f.enqueueDeliverJob(ctx, tx, deliverArgs{Actor: f.site.Node(), Inbox: inbox, Body: body, Board: board})
}

// noteFollow records in a pending subscription the result of delivering its Follow;
// a nil cause means that it was delivered.
func (f *Federation) noteFollow(ctx context.Context, board string, tries int, cause error) error {
	failures, last := 0, ""
	if cause != nil {
		failures, last = tries, clipError(cause)
	}
	return f.c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Subscriptions().NoteFollow(ctx, board, failures, last)
	})
}

// Unfollow ends a subscription and sends an Undo to the board. Posts received from
// it are kept.
func (f *Federation) Unfollow(ctx context.Context, board string) error {
	inbox := board + "/inbox"
	if a, err := f.actorOf(ctx, board, actorAge); err == nil {
		inbox = a.Inbox.One()
	}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil {
			return err
		}
		if err := tx.Subscriptions().Delete(ctx, board); err != nil {
			return err
		}
		inner := f.site.Follow(s.FollowID, board)
		delete(inner, "@context")
		return f.enqueueDelivery(ctx, tx, f.site.Node(), inbox, f.site.Undo(s.FollowID+"#undo", inner))
	})
}

// discover finds a board by its id or by the address of its node, whose actor
// WebFinger names (FEP-d556).
func (f *Federation) discover(ctx context.Context, address string) (board *activity.Actor, node string, err error) {
	u, err := f.parseID(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, "", err
	}
	id := u.String()
	if u.Path == "" {
		if id, node, err = f.boardOf(ctx, u); err != nil {
			return nil, "", err
		}
	}
	board, err = f.fetchActor(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if !board.Type.Is("Group") || !f.sameOrigin(id, board.Log.One()) || !board.Implements(activity.LogFeature) {
		return nil, "", fmt.Errorf("%s is not a board with a log", id)
	}
	return board, node, nil
}

func (f *Federation) boardOf(ctx context.Context, base *url.URL) (board, node string, err error) {
	node = origin(base) + "/ap/node"
	if found, err := f.webfinger(ctx, base); err == nil && f.sameOrigin(found, node) {
		node = found
	}
	a, err := f.fetchActor(ctx, node)
	if err != nil {
		return "", "", err
	}
	if !f.sameOrigin(node, a.Board.One()) {
		return "", "", fmt.Errorf("%s names no board", node)
	}
	return a.Board.One(), node, nil
}

// webfinger looks up the node actor of a host.
func (f *Federation) webfinger(ctx context.Context, base *url.URL) (string, error) {
	q := url.Values{"resource": {origin(base) + "/"}}
	raw, err := f.fetchAs(ctx, origin(base)+"/.well-known/webfinger?"+q.Encode(), "", jrd)
	if err != nil {
		return "", err
	}
	var doc struct {
		Links []struct {
			Rel  string `json:"rel"`
			Href string `json:"href"`
		} `json:"links"`
	}
	if err := strictjson.DecodeLoose(raw, &doc); err != nil {
		return "", err
	}
	for _, l := range doc.Links {
		if strings.HasPrefix(l.Rel, "https://www.w3.org/ns/activitystreams#") {
			return l.Href, nil
		}
	}
	return "", errNotFound
}
