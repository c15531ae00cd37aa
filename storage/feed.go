package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"stoa/protocol"
)

var feedInsert = insert{Into: `INSERT INTO feed (seq, id, type, subject_id, visible, remote, doc, n) VALUES `, Row: `(?, ?, ?, ?, ?, ?, ?, ?)`, Sorted: true}

// feedInsertNumbered takes the number, the last value, from the sequence of PostgreSQL.
var feedInsertNumbered = insert{Into: feedInsert.Into, Row: `(?, ?, ?, ?, ?, ?, ?, nextval('feed_number'))`, Sorted: true}

// Feed reads and writes the items of the feed.
type Feed struct{ tx *Tx }

func (tx *Tx) Feed() Feed { return Feed{tx} }

// A storedItem is an item with what its row has besides.
type storedItem struct {
	protocol.FeedItem
	Evidence json.RawMessage `json:"evidence,omitempty"`
}

// Append adds an item to the feed. Its id is a TypeID of the time of the event. It
// returns ErrExists when the id is taken.
func (fd Feed) Append(ctx context.Context, item protocol.FeedItem) error {
	if !fd.tx.writes() {
		return ErrReadOnly
	}
	seq, err := seqOf(item.ID)
	if err != nil {
		return err
	}
	item.Untrusted = true
	doc, err := json.Marshal(storedItem{item, item.Evidence})
	if err != nil {
		return fmt.Errorf("encode feed item: %w", err)
	}
	fd.tx.appended(TopicFeed)
	values := []any{seq, item.ID, string(item.Type), item.Subject.ID, true, item.Node != nil, string(doc), int64(0)}
	if fd.tx.careful() {
		return fd.place(ctx, values, seq, item.ID)
	}
	if fd.tx.db.engine == enginePostgres {
		values = values[:len(values)-1] // the statement numbers it
	}
	return fd.tx.hold(heldFeed, values...)
}

func (fd Feed) place(ctx context.Context, values []any, seq int64, id string) error {
	numbers, err := take(ctx, fd.tx.sql, 1)
	if err != nil {
		return err
	}
	values[len(values)-1] = numbers[0]
	for at := seq; at < seq+nearby; at++ {
		values[0] = at
		n, err := fd.tx.write(ctx, feedInsert.Into+feedInsert.Row+` ON CONFLICT DO NOTHING`, values...)
		if err != nil {
			return fmt.Errorf("append to the feed: %w", err)
		}
		if n == 1 {
			return nil
		}
		var held string
		if err := fd.tx.row(ctx, `SELECT id FROM feed WHERE seq = ?`, at).Scan(&held); err != nil {
			return err
		}
		if held == id {
			return ErrExists
		}
	}
	return fmt.Errorf("storage: no room for feed item %s near its time", id)
}

// List returns visible items of the types, newest first by id; without types,
// items of all types. local leaves out what happened on other nodes.
func (fd Feed) List(ctx context.Context, types []protocol.FeedType, local bool, limit int, after string) (protocol.Page[protocol.FeedItem], error) {
	limit = bounded(limit)
	before, err := position(listFeed, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[protocol.FeedItem]{}, err
	}
	text, args := feedQuery(types, local, before, limit+1)
	type entry struct {
		protocol.FeedItem
		seq int64
	}
	rows, err := fd.tx.query(ctx, text, args...)
	items, err := collect(rows, err, func(s scanner) (e entry, err error) {
		var doc []byte
		if err := s.Scan(&e.seq, &doc); err != nil {
			return e, err
		}
		return e, readItem(doc, &e.FeedItem)
	})
	if err != nil {
		return protocol.Page[protocol.FeedItem]{}, err
	}
	p := page(items, limit, listFeed, func(e entry) string { return number(e.seq) })
	out := protocol.Page[protocol.FeedItem]{Items: make([]protocol.FeedItem, len(p.Items)), Next: p.Next}
	for i := range p.Items {
		out.Items[i] = p.Items[i].FeedItem
	}
	return out, nil
}

// feedQuery merges one index range per type.
func feedQuery(types []protocol.FeedType, local bool, before int64, limit int) (string, []any) {
	of := `visible`
	if local {
		of += ` AND NOT remote`
	}
	wanted := map[protocol.FeedType]bool{}
	for _, t := range types {
		wanted[t] = true
	}
	var parts []string
	var args []any
	for _, t := range protocol.FeedTypes {
		if len(types) == 0 || wanted[t] {
			parts = append(parts, `SELECT seq, doc FROM (SELECT seq, doc FROM feed WHERE `+of+` AND type = ? AND seq < ? ORDER BY seq DESC LIMIT ?) r`)
			args = append(args, string(t), before, limit)
		}
	}
	if len(parts) == 0 { // types that do not exist
		return `SELECT seq, doc FROM feed WHERE seq < 0`, nil
	}
	return `SELECT seq, doc FROM (` + strings.Join(parts, ` UNION ALL `) + `) m ORDER BY seq DESC LIMIT ?`, append(args, limit)
}

// SetVisible sets whether the items about a subject are visible.
func (fd Feed) SetVisible(ctx context.Context, subjectID string, visible bool) error {
	_, err := fd.tx.write(ctx, `UPDATE feed SET visible = ? WHERE subject_id = ?`, visible, subjectID)
	return err
}

// wipe deletes the text of the items about a subject. Their rows remain, so that a
// client whose last item is one of them can continue after it.
func (fd Feed) wipe(ctx context.Context, subjectID string) error {
	_, err := fd.tx.write(ctx, `UPDATE feed SET visible = FALSE, doc = '' WHERE subject_id = ?`, subjectID)
	return err
}

// A FeedEntry is a feed item with its number. A client that has read up to a number
// with Feed.After has missed no item below it.
type FeedEntry struct {
	protocol.FeedItem
	N int64
}

// After returns visible items with greater numbers than after, in their order.
func (fd Feed) After(ctx context.Context, after int64, limit int) ([]FeedEntry, error) {
	told, err := fd.tx.toldUpTo(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := fd.tx.query(ctx, feedAfter, after, told, bounded(limit))
	return collect(rows, err, func(s scanner) (e FeedEntry, err error) {
		var doc []byte
		if err := s.Scan(&e.N, &doc); err != nil {
			return e, err
		}
		return e, readItem(doc, &e.FeedItem)
	})
}

const (
	feedAfter  = `SELECT n, doc FROM feed WHERE n > ? AND n <= ? AND visible ORDER BY n LIMIT ?`
	feedNewest = `SELECT n, id FROM feed WHERE n > 0 AND n <= ? ORDER BY n DESC LIMIT 1`
)

// Place returns the number and id of the item with an id, visible or not; without an
// id, of the newest item. When the item is not stored, its id gives a time, and the
// number is that of the last item before it, 0 before the first one. On PostgreSQL
// the number is at most Tx.told: a client that continues after an item just
// committed gets that item and its neighbours (again).
func (fd Feed) Place(ctx context.Context, id string) (n int64, at string, err error) {
	told, err := fd.tx.toldUpTo(ctx)
	if err != nil {
		return 0, "", err
	}
	if id == "" {
		err = fd.tx.row(ctx, feedNewest, told).Scan(&n, &at)
		return n, at, orNothing(err)
	}
	err = fd.tx.row(ctx, `SELECT n, id FROM feed WHERE `+byID, idRange(id)...).Scan(&n, &at)
	if err != ErrNotFound {
		return min(n, told), at, err
	}
	seq, err := seqOf(id)
	if err != nil {
		return 0, "", protocol.Errorf(protocol.InvalidCursor, "this is not the id of a feed item")
	}
	err = fd.tx.row(ctx, `SELECT n FROM feed WHERE seq < ? ORDER BY seq DESC LIMIT 1`, seq).Scan(&n)
	return min(n, told), id, orNothing(err)
}

func orNothing(err error) error {
	if err == ErrNotFound {
		return nil
	}
	return err
}

// readItem decodes a stored item. Its author was verified when the item was made;
// for an item of another node that time is not known.
func readItem(doc []byte, item *protocol.FeedItem) error {
	if err := json.Unmarshal(doc, item); err != nil {
		return err
	}
	if item.Node == nil {
		item.Actor.Complete(item.At)
	} else {
		item.Actor.Complete(time.Time{})
	}
	return nil
}
