package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"stoa/protocol"
)

// newsTypes selects the items that the board's log tells other nodes by their own ids. Posts and bids are in it by theirs.
const newsTypes = `type IN ('merchant_joined', 'listing', 'review')`

// Publish adds an item about a shop of this node to the feed, and to the log of board.
func (fd Feed) Publish(ctx context.Context, board string, item protocol.FeedItem) error {
	if err := fd.Append(ctx, item); err != nil {
		return err
	}
	return fd.tx.Logs().Append(ctx, board, LogCreate, item.ID, nil)
}

// Published returns an item that Publish added, with its evidence, while it is in the feed; ErrNotFound when it is not.
func (fd Feed) Published(ctx context.Context, id string) (item protocol.FeedItem, err error) {
	var doc []byte
	err = fd.tx.row(ctx, `SELECT doc FROM feed WHERE `+byID+` AND visible AND NOT remote AND `+newsTypes, idRange(id)...).Scan(&doc)
	if err != nil {
		return item, err
	}
	var stored struct {
		Evidence json.RawMessage `json:"evidence"`
	}
	if err := json.Unmarshal(doc, &stored); err != nil {
		return item, err
	}
	item.Evidence = stored.Evidence
	return item, readItem(doc, &item)
}

// Retract takes an item of this node out of the feed, also of the nodes that follow board, by its own id.
func (fd Feed) Retract(ctx context.Context, board, id string) error {
	return fd.show(ctx, board, id, false)
}

// Restore reverts Retract.
func (fd Feed) Restore(ctx context.Context, board, id string) error {
	return fd.show(ctx, board, id, true)
}

func (fd Feed) show(ctx context.Context, board, id string, visible bool) error {
	if err := fd.tx.settleFeed(); err != nil {
		return err
	}
	if _, err := fd.tx.write(ctx, `UPDATE feed SET visible = ? WHERE `+byID, append([]any{visible}, idRange(id)...)...); err != nil {
		return err
	}
	if board == "" { // it was not published
		return nil
	}
	return fd.tx.Logs().Append(ctx, board, shownKind(visible), id, nil)
}

func shownKind(visible bool) LogKind {
	if visible {
		return LogRestore
	}
	return LogHide
}

// ShowAgent shows or hides the items about a profile of this node: those about subjects, and about its counted reviews, if it
// has a chain identity. When it hides them, other nodes list the profile no longer. The nodes that follow board are told in one entry, if anything changed.
func (fd Feed) ShowAgent(ctx context.Context, board, handle, agent string, subjects []string, visible bool) error {
	if err := fd.tx.settleFeed(); err != nil {
		return err
	}
	var changed int64
	for _, id := range append(subjects, handle) {
		n, err := fd.tx.write(ctx, `UPDATE feed SET visible = ? WHERE subject_id = ? AND visible <> ?`, visible, id, visible)
		if err != nil {
			return err
		}
		changed += n
	}
	for _, of := range []string{agent, ReviewsOf(handle)} {
		n, err := fd.tx.Feedbacks().showAll(ctx, of, handle, visible)
		if err != nil {
			return err
		}
		changed += n
	}
	if !visible {
		told, err := fd.tx.Profiles().Untell(ctx, board, handle)
		if err != nil {
			return err
		}
		if told {
			changed++
		}
	}
	if changed == 0 {
		return nil
	}
	return fd.tx.Logs().Append(ctx, board, shownKind(visible), LogOfShop+handle, nil)
}

// WipeAgent deletes the text of the items that ShowAgent hid, of a profile that is deleted.
func (fd Feed) WipeAgent(ctx context.Context, handle, agent string, subjects []string) error {
	for _, id := range append(subjects, handle) {
		if err := fd.wipe(ctx, id); err != nil {
			return err
		}
	}
	for _, of := range []string{agent, ReviewsOf(handle)} {
		if _, err := fd.tx.write(ctx, `UPDATE feed SET doc = '' WHERE `+fd.tx.Feedbacks().told(), of, string(FeedbackCounted), false, handle); err != nil {
			return err
		}
	}
	return nil
}

// LogOfShop begins the object of a log entry that hides or restores all news of a shop; its handle follows.
const LogOfShop = "@"

// A FeedOrigin is a piece of news of a shop of another node.
type FeedOrigin struct {
	URI  string // ActivityPub id
	Host string
	Item protocol.FeedItem // with the id that it has when it is shown alone
}

// FeedOrigins reads and writes the news of shops of other nodes.
type FeedOrigins struct{ tx *Tx }

func (tx *Tx) FeedOrigins() FeedOrigins { return FeedOrigins{tx} }

// Limits of the news of one host: of those that carry a time within a day, and in all. When a host has more, the
// oldest are deleted.
const (
	MaxFeedADay = 300
	MaxFeedKept = 3000
	foldWithin  = 24 * time.Hour // listings of a shop are one item
)

const (
	originState  = `SELECT state, item FROM feed_origin WHERE uri = ?`
	originsToday = `SELECT count(*) FROM (SELECT 1 FROM feed_origin WHERE host = ? AND at > ? AND at <= ? LIMIT ?) r`
	originsOver  = `SELECT uri, item FROM feed_origin WHERE host = ? ORDER BY at DESC LIMIT 100 OFFSET ?`
	originFold   = `SELECT item FROM feed_origin WHERE actor = ? AND type = 'listing' AND at > ? AND at <= ? AND state = 'shown' ORDER BY at DESC LIMIT 1`
	originShown  = `SELECT doc, (SELECT count(*) FROM feed_origin m WHERE m.item = o.item AND m.state = 'shown')
		FROM feed_origin o WHERE o.item = ? AND o.state = 'shown' ORDER BY o.at DESC, o.uri DESC LIMIT 1`
	originsBy = `SELECT item FROM feed_origin WHERE `
)

// Has reports whether news was received.
func (fo FeedOrigins) Has(ctx context.Context, uri string) (bool, error) {
	var state, item string
	err := fo.tx.row(ctx, originState, uri).Scan(&state, &item)
	return err == nil, orNothing(err)
}

// Receive adds news to the feed, or shows it again when it was withdrawn. The listings of a shop within a day are one
// item, which says how many there are. It is false for news that the limits of the host, or a block, keep out, and for
// what is shown already.
func (fo FeedOrigins) Receive(ctx context.Context, o FeedOrigin) (fresh bool, err error) {
	if err := fo.tx.dirty(); err != nil {
		return false, err
	}
	var state, item string
	switch err := fo.tx.row(ctx, originState, o.URI).Scan(&state, &item); {
	case err == nil && (state == "withdrawn" || state == "hidden"):
		return true, fo.set(ctx, `uri = ?`, o.URI, state, "shown")
	case err != ErrNotFound:
		return false, err
	}
	var today int
	day, at := o.Item.At.Add(-24*time.Hour), millis(o.Item.At)
	if err := fo.tx.row(ctx, originsToday, o.Host, millis(day), at, MaxFeedADay).Scan(&today); err != nil || today >= MaxFeedADay {
		return false, err
	}
	item = o.Item.ID
	if o.Item.Type == protocol.FeedListing {
		err := fo.tx.row(ctx, originFold, *o.Item.Actor.Actor, millis(o.Item.At.Add(-foldWithin)), millis(o.Item.At.Add(foldWithin))).Scan(&item)
		if orNothing(err) != nil {
			return false, err
		}
	}
	doc, err := json.Marshal(o.Item)
	if err != nil {
		return false, fmt.Errorf("encode feed item: %w", err)
	}
	agent, keyid := "", ""
	if a := o.Item.Actor; a.Verified && a.ERC8004 != nil {
		agent = *a.ERC8004
	}
	if a := o.Item.Actor; a.Verified && a.KeyID != nil {
		keyid = *a.KeyID
	}
	if _, err := fo.tx.write(ctx, `INSERT INTO feed_origin (uri, item, host, actor, type, agent, keyid, state, at, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'shown', ?, ?)`,
		o.URI, item, o.Host, *o.Item.Actor.Actor, string(o.Item.Type), agent, keyid, at, string(doc)); err != nil {
		return false, err
	}
	if item == o.Item.ID {
		err = fo.tx.Feed().Append(ctx, o.Item)
	} else {
		err = fo.fold(ctx, item)
	}
	if err != nil {
		return false, err
	}
	return true, fo.bound(ctx, o.Host)
}

// fold makes an item of the feed say what is shown in it: the newest, and how many more.
func (fo FeedOrigins) fold(ctx context.Context, item string) error {
	if err := fo.tx.settleFeed(); err != nil {
		return err
	}
	var doc []byte
	var n int
	err := fo.tx.row(ctx, originShown, item).Scan(&doc, &n)
	if err == ErrNotFound {
		_, err = fo.tx.write(ctx, `UPDATE feed SET visible = FALSE WHERE `+byID, idRange(item)...)
		return err
	}
	var shown protocol.FeedItem
	if err == nil {
		err = json.Unmarshal(doc, &shown)
	}
	if err != nil {
		return err
	}
	if shown.ID = item; n > 1 {
		shown.Summary += fmt.Sprintf(" And %d more within a day.", n-1)
	}
	if doc, err = json.Marshal(shown); err != nil {
		return err
	}
	_, err = fo.tx.write(ctx, `UPDATE feed SET visible = TRUE, doc = ? WHERE `+byID, append([]any{string(doc)}, idRange(item)...)...)
	return err
}

// set moves news from one state to another, and makes the feed show it.
func (fo FeedOrigins) set(ctx context.Context, where string, value any, from, to string) error {
	if err := fo.tx.dirty(); err != nil {
		return err
	}
	rows, err := fo.tx.query(ctx, originsBy+where+` AND state = ?`, value, from)
	items, err := collect(rows, err, func(s scanner) (id string, err error) { return id, s.Scan(&id) })
	if err != nil || len(items) == 0 {
		return err
	}
	if _, err := fo.tx.write(ctx, `UPDATE feed_origin SET state = ? WHERE `+where+` AND state = ?`, to, value, from); err != nil {
		return err
	}
	slices.Sort(items)
	for _, item := range slices.Compact(items) {
		if err := fo.fold(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// Withdraw takes news out of the feed until it is received again. What is not known is no error.
func (fo FeedOrigins) Withdraw(ctx context.Context, uri string) error {
	if err := fo.set(ctx, `uri = ?`, uri, "hidden", "withdrawn"); err != nil {
		return err
	}
	return fo.set(ctx, `uri = ?`, uri, "shown", "withdrawn")
}

// HideOf takes all news of a shop out of the feed, by its actor.
func (fo FeedOrigins) HideOf(ctx context.Context, actor string) error {
	return fo.set(ctx, `actor = ?`, actor, "shown", "hidden")
}

// DropOf deletes all news of a shop, by its actor.
func (fo FeedOrigins) DropOf(ctx context.Context, actor string) error {
	if err := fo.tx.dirty(); err != nil {
		return err
	}
	items, err := list[string](ctx, fo.tx, `DELETE FROM feed_origin WHERE actor = ? RETURNING item`, actor)
	if err != nil {
		return err
	}
	slices.Sort(items)
	for _, item := range slices.Compact(items) {
		if err := fo.fold(ctx, item); err != nil {
			return err
		}
		if _, err := fo.tx.write(ctx, `UPDATE feed SET doc = '' WHERE `+byID+` AND remote AND NOT visible`, idRange(item)...); err != nil {
			return err
		}
	}
	return nil
}

// RestoreOf reverts HideOf.
func (fo FeedOrigins) RestoreOf(ctx context.Context, actor string) error {
	return fo.set(ctx, `actor = ?`, actor, "hidden", "shown")
}

// RetractOf takes the news of a blocked author, or host with its sub-domains, out of the feed for good.
func (fo FeedOrigins) RetractOf(ctx context.Context, kind protocol.BlockKind, value string) error {
	where, arg := map[protocol.BlockKind]string{
		protocol.BlockActor: `actor = ?`, protocol.BlockAgent: `agent <> '' AND agent = ?`, protocol.BlockKey: `keyid <> '' AND keyid = ?`,
	}[kind], any(value)
	if kind == protocol.BlockHost {
		return fo.retractHost(ctx, value)
	}
	if where == "" {
		return nil
	}
	for _, from := range notBlocked {
		if err := fo.set(ctx, where, arg, from, "blocked"); err != nil {
			return err
		}
	}
	return nil
}

// notBlocked are the states of news that is not blocked.
var notBlocked = []string{"shown", "hidden", "withdrawn"}

func (fo FeedOrigins) retractHost(ctx context.Context, host string) error {
	rows, err := fo.tx.query(ctx, `SELECT DISTINCT host FROM feed_origin`)
	hosts, err := collect(rows, err, func(s scanner) (h string, err error) { return h, s.Scan(&h) })
	if err != nil {
		return err
	}
	for _, h := range hosts {
		for _, of := range suffixes(h) {
			if of != host {
				continue
			}
			for _, from := range notBlocked {
				if err := fo.set(ctx, `host = ?`, h, from, "blocked"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bound deletes the oldest news of a host that has too much.
func (fo FeedOrigins) bound(ctx context.Context, host string) error {
	rows, err := fo.tx.query(ctx, originsOver, host, MaxFeedKept)
	over, err := collect(rows, err, func(s scanner) (o [2]string, err error) { return o, s.Scan(&o[0], &o[1]) })
	if err != nil {
		return err
	}
	for _, o := range over {
		if _, err := fo.tx.write(ctx, `DELETE FROM feed_origin WHERE uri = ?`, o[0]); err != nil {
			return err
		}
		if err := fo.fold(ctx, o[1]); err != nil {
			return err
		}
		if _, err := fo.tx.write(ctx, `DELETE FROM feed WHERE `+byID+` AND remote AND NOT visible`, idRange(o[1])...); err != nil {
			return err
		}
	}
	return nil
}
