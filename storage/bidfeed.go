package storage

import (
	"context"
	"fmt"

	"stoa/protocol"
)

// Publish adds the feed item of a live bid. The bid of this node is told to the nodes that follow
// board, too; uri is the ActivityPub id of a bid of another node, "" for one of this node.
func (bs Bids) Publish(ctx context.Context, board, uri string, item protocol.FeedItem) error {
	names := blockNames(item.Actor, item.Node)
	if uri != "" {
		names = append(names, bidURI(uri))
	}
	for _, name := range names {
		if _, err := bs.tx.write(ctx, `INSERT INTO bid_author (name, subject_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, item.Subject.ID); err != nil {
			return fmt.Errorf("store author of bid: %w", err)
		}
	}
	if err := bs.tx.Feed().Append(ctx, item); err != nil || uri != "" {
		return err
	}
	return bs.tx.Logs().Append(ctx, board, LogCreate, item.Subject.ID, nil)
}

func bidURI(uri string) string { return "uri:" + uri }

// blockNames returns the names by which an operator may block an author, except for a network.
func blockNames(a protocol.Author, node *string) (names []string) {
	add := func(kind protocol.BlockKind, value *string) {
		if value != nil {
			names = append(names, blockName(kind, *value))
		}
	}
	if node != nil {
		add(protocol.BlockActor, a.Actor)
		for _, host := range suffixes(*node) {
			add(protocol.BlockHost, &host)
		}
	}
	if a.Verified { // an unverified author is not who it says
		for _, agent := range a.AgentBlocks() {
			add(protocol.BlockAgent, &agent)
		}
		add(protocol.BlockKey, a.KeyID)
		if node == nil {
			add(protocol.BlockHandle, a.Handle)
		}
	}
	return names
}

func blockName(kind protocol.BlockKind, value string) string { return string(kind) + ":" + value }

// Retract takes a bid out of the feed, and out of the feeds of the nodes that follow board. A bid
// that is not in the feed is no error.
func (bs Bids) Retract(ctx context.Context, board, id string) error {
	item, err := bs.FeedItem(ctx, id)
	if err != nil {
		return orNothing(err)
	}
	if err := bs.tx.Feed().SetVisible(ctx, id, false); err != nil || item.Node != nil {
		return err
	}
	return bs.tx.Logs().Append(ctx, board, LogHide, id, nil)
}

const bidItem = `SELECT doc FROM feed WHERE subject_id = ? AND type = 'attention_bid' AND visible`

// FeedItem returns the feed item of a bid; ErrNotFound when it has none, or it was taken out.
func (bs Bids) FeedItem(ctx context.Context, id string) (item protocol.FeedItem, err error) {
	var doc []byte
	if err := bs.tx.row(ctx, bidItem, id).Scan(&doc); err != nil {
		return item, err
	}
	return item, readItem(doc, &item)
}

const (
	bidsByName    = `SELECT subject_id FROM bid_author WHERE name = ?`
	bidsByNetwork = `SELECT id FROM bid WHERE bidder = ? AND paid AND anonymous`
)

// IDByURI returns the id here of a bid of another node, by its ActivityPub id; ErrNotFound when it
// was never received.
func (bs Bids) IDByURI(ctx context.Context, uri string) (string, error) {
	return find[string](ctx, bs.tx, bidsByName, bidURI(uri))
}

// RetractOf takes every bid of a blocked author out of the feed.
func (bs Bids) RetractOf(ctx context.Context, board string, kind protocol.BlockKind, value string) error {
	query, name := bidsByName, blockName(kind, value)
	if kind == protocol.BlockNetwork {
		query, name = bidsByNetwork, "net:"+value // as Caller.ID has it
	}
	return bs.retractAll(ctx, board, query, name)
}

const bidsOnBoardBy = `SELECT a.subject_id FROM bid_author a JOIN bid b ON b.id = a.subject_id
	WHERE a.name = ? AND b.board = (SELECT id FROM attention_board WHERE handle = ?)
	UNION SELECT id FROM bid WHERE bidder = ? AND paid AND anonymous AND board = (SELECT id FROM attention_board WHERE handle = ?)`

// RetractOn takes the bids of a writer on the attention board of a profile out of the feed. names are
// those by which the profile's owner has blocked the writer.
func (bs Bids) RetractOn(ctx context.Context, board, handle string, names []string) error {
	for _, name := range names {
		if err := bs.retractAll(ctx, board, bidsOnBoardBy, name, handle, name, handle); err != nil {
			return err
		}
	}
	return nil
}

func (bs Bids) retractAll(ctx context.Context, board, query string, args ...any) error {
	ids, err := list[string](ctx, bs.tx, query, args...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := bs.Retract(ctx, board, id); err != nil {
			return err
		}
	}
	return nil
}
