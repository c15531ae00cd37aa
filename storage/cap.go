package storage

import (
	"context"
	"fmt"
)

// A Stock is a table, or a part of one, that strangers can make grow.
type Stock string

const (
	StockActors     Stock = "actors"     // remote_actor
	StockKeys       Stock = "keys"       // remote_key
	StockTombstones Stock = "tombstones" // tombstone
	StockSchemes    Stock = "schemes"    // host_scheme
	StockKept       Stock = "kept"       // kept, of activities that are processed
	StockTold       Stock = "told"       // audit, of what other nodes caused
	StockJobs       Stock = "jobs"       // job, of those that ended
	StockReaders    Stock = "readers"    // reader
	StockIssued     Stock = "issued"     // issued, of identities that no profile has last
)

// A Cap bounds a stock. Bytes are those of the values that others chose.
type Cap struct {
	Rows  int
	Bytes int64
}

// Caps are the bounds of a node.
var Caps = map[Stock]Cap{
	StockActors:     {Rows: 50_000, Bytes: 128 << 20},
	StockKeys:       {Rows: 50_000, Bytes: 32 << 20},
	StockTombstones: {Rows: 100_000, Bytes: 32 << 20},
	StockSchemes:    {Rows: 50_000, Bytes: 8 << 20},
	StockKept:       {Rows: 500_000, Bytes: 128 << 20},
	StockTold:       {Rows: 100_000, Bytes: 64 << 20},
	StockJobs:       {Rows: 200_000, Bytes: 256 << 20},
	StockReaders:    {Rows: 50_000, Bytes: 16 << 20},
	StockIssued:     {Rows: 200_000, Bytes: 64 << 20},
}

// A stock says how to measure one and what goes first.
type stock struct {
	table, key, age string // age orders it, the oldest first
	size            string // bytes of a row
	of              string // which rows of the table; "" all
	last            string // which of them are evicted last; "" none
}

// ofPeer holds for rows of a host that follows, or is followed.
const ofPeer = `(EXISTS (SELECT 1 FROM follower f WHERE f.host = s.host) OR EXISTS (SELECT 1 FROM subscription b WHERE b.host = s.host))`

var stocks = map[Stock]stock{
	StockActors: {table: "remote_actor", key: "id", age: "fetched_at", last: ofPeer,
		size: "length(id) + length(handle) + length(name) + length(inbox) + length(shared_inbox) + length(doc)"},
	StockKeys:       {table: "remote_key", key: "key_id", age: "fetched_at", size: "length(key_id) + length(owner) + length(key)", last: ofPeer},
	StockTombstones: {table: "tombstone", key: "uri", age: "until", size: "length(uri)", last: ofPeer},
	StockSchemes:    {table: "host_scheme", key: "host", age: "at", size: "length(host)", last: ofPeer},
	StockKept:       {table: "kept", key: "key", age: "at", size: "length(actor) + length(signer)", of: "length(s.body) = 0"},
	StockTold:       {table: "audit", key: "id", age: "at", size: "length(actor) + length(detail)", of: toldByPeers},
	StockIssued: {table: "issued", key: "identity", age: "issued_at", size: "length(identity) + length(signer)",
		last: "EXISTS (SELECT 1 FROM profile p WHERE p.erc8004 = s.identity)"},
	StockReaders: {table: "reader", key: "id", age: "at", size: "length(host) + length(actor)"},
	StockJobs:    {table: "job", key: "id", age: "done_at", size: "length(args)", of: "s.state <> 'waiting'", last: "s.state || '' = 'dead'"}, // || keeps the index by done_at
}

// evictAtOnce bounds what one call of Evict removes.
const evictAtOnce = 2000

// Evict removes the oldest of a stock that is over its cap, down to seven
// eighths of it, at most evictAtOnce rows a call, and returns how many.
func (tx *Tx) Evict(ctx context.Context, of Stock, most Cap) (int, error) {
	s, ok := stocks[of]
	if !ok {
		return 0, fmt.Errorf("storage: no stock %q", of)
	}
	var rows int
	var bytes int64
	if err := tx.row(ctx, s.measure()).Scan(&rows, &bytes); err != nil {
		return 0, err
	}
	surplus := rows - most.Rows
	if over := bytes - most.Bytes; over > 0 {
		surplus = max(surplus, int(over*int64(rows)/bytes), 1) // as if all were of one size; the next call sees
	}
	if surplus <= 0 {
		return 0, nil
	}
	if err := tx.lockName(ctx, "evict "+string(of)); err != nil {
		return 0, err
	}
	n := min(surplus+most.Rows/8, rows, evictAtOnce)
	gone, err := tx.deleteSome(ctx, s.table, s.key, s.oldest(false), n)
	if err == nil && gone < n && s.last != "" {
		var more int
		more, err = tx.deleteSome(ctx, s.table, s.key, s.oldest(true), n-gone)
		gone += more
	}
	return gone, err
}

func (s stock) measure() string {
	query := `SELECT count(*), COALESCE(sum(` + s.size + `), 0) FROM ` + s.table + ` s`
	if s.of != "" {
		query += ` WHERE ` + s.of
	}
	return query
}

// oldest finds the oldest rows: of those that go last, or of the others.
func (s stock) oldest(last bool) string {
	query := `true`
	if s.of != "" {
		query += ` AND ` + s.of
	}
	switch {
	case s.last != "" && last:
		query += ` AND ` + s.last
	case s.last != "":
		query += ` AND NOT ` + s.last
	}
	return query + ` ORDER BY ` + s.age + ` LIMIT ?`
}

// WaitingBytes is how many bytes of activities wait to be processed.
func (tx *Tx) WaitingBytes(ctx context.Context) (n int64, err error) {
	err = tx.row(ctx, waitingBytes).Scan(&n)
	return n, err
}

const waitingBytes = `SELECT COALESCE(sum(length(body)), 0) FROM kept WHERE length(body) > 0`
