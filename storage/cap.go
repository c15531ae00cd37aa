package storage

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Stock is a table, or a part of one, that strangers can cause to grow.
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
	StockReactions  Stock = "reactions"  // reaction
	StockBlockedBy  Stock = "blocked by" // blocked_by
	StockIssued     Stock = "issued"     // issued, of identities that no profile has last
	StockBids       Stock = "bids"       // bid, of those that were never paid and are over
	StockPayEvents  Stock = "pay events" // pay_event, of those that were applied
	StockCheckouts  Stock = "checkouts"  // checkout, of those that hold nothing
	StockMeetings   Stock = "meetings"   // meeting, of those that are over
	StockMailboxes  Stock = "mailboxes"  // meeting_mailbox, of those that want mail
	StockStopped    Stock = "stopped"    // meeting_mailbox, of those that want none
	StockRefusals   Stock = "refusals"   // remote_refusal
	StockDevices    Stock = "devices"    // device, of visitors
	StockProofs     Stock = "proofs"     // state_proof
	StockDelegated  Stock = "delegated"  // delegated_key
	StockMoves      Stock = "moves"      // identity_move
	StockDocuments  Stock = "documents"  // agent_document
	StockTwins      Stock = "twins"      // agent_twin
)

// A Cap limits a stock. Bytes are those of the values that others chose.
type Cap struct {
	Rows  int
	Bytes int64
}

// Caps are the caps of a node.
var Caps = map[Stock]Cap{
	StockActors:     {Rows: 50_000, Bytes: 128 << 20},
	StockKeys:       {Rows: 50_000, Bytes: 32 << 20},
	StockTombstones: {Rows: 100_000, Bytes: 32 << 20},
	StockSchemes:    {Rows: 50_000, Bytes: 8 << 20},
	StockKept:       {Rows: 500_000, Bytes: 128 << 20},
	StockTold:       {Rows: 100_000, Bytes: 64 << 20},
	StockJobs:       {Rows: 200_000, Bytes: 256 << 20},
	StockReaders:    {Rows: 50_000, Bytes: 16 << 20},
	StockReactions:  {Rows: 500_000, Bytes: 256 << 20},
	StockBlockedBy:  {Rows: 100_000, Bytes: 64 << 20},
	StockIssued:     {Rows: 200_000, Bytes: 64 << 20},
	StockBids:       {Rows: 200_000, Bytes: 256 << 20},
	StockPayEvents:  {Rows: 50_000, Bytes: 256 << 20},
	StockCheckouts:  {Rows: 100_000, Bytes: 128 << 20},
	StockMeetings:   {Rows: 200_000, Bytes: 256 << 20},
	StockMailboxes:  {Rows: 200_000, Bytes: 16 << 20},
	StockStopped:    {Rows: 1_000_000, Bytes: 64 << 20},
	StockRefusals:   {Rows: 20_000, Bytes: 64 << 20},
	StockDevices:    {Rows: 100_000, Bytes: 64 << 20},
	StockProofs:     {Rows: 20_000, Bytes: 256 << 20},
	StockDelegated:  {Rows: 100_000, Bytes: 64 << 20},
	StockMoves:      {Rows: 100_000, Bytes: 32 << 20},
	StockDocuments:  {Rows: 200_000, Bytes: 64 << 20},
	StockTwins:      {Rows: 200_000, Bytes: 64 << 20},
}

// PictureCap bounds the pictures of a node: one more is refused, because those that are stored are in use.
var PictureCap = Cap{Rows: 100_000, Bytes: 16 << 30}

// A stock describes how to measure a stock and which rows are evicted first.
type stock struct {
	table, key, age string // age orders it, the oldest first
	size            string // bytes of a row
	of              string // which rows of the table; "" all
	last            string // which of them are evicted last; "" none
	parts           string // table whose rows go with them, by their column bid; "" none
}

// ofPeer selects rows of a host that follows, or is followed.
const ofPeer = `(EXISTS (SELECT 1 FROM follower f WHERE f.host = s.host) OR EXISTS (SELECT 1 FROM subscription b WHERE b.host = s.host))`

// abandoned selects bids that were never paid, are over and have no dispute of a known payer; the index bid_unpaid has them. latePaid
// selects those for which a bank may still answer: they moved within three days, in milliseconds, of the newest.
const (
	abandoned = `NOT s.paid AND s.state IN ('lapsed', 'withdrawn', 'unconfirmed') AND COALESCE(s.dispute, '') = ''`
	latePaid  = `s.moved_at > (SELECT max(b.moved_at) - 259200000 FROM bid b WHERE NOT b.paid AND b.state IN ('lapsed', 'withdrawn', 'unconfirmed'))`
)

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
	StockReaders:   {table: "reader", key: "id", age: "at", size: "length(host) + length(actor)"},
	StockReactions: {table: "reaction", key: "key", age: "at", size: "length(actor) + length(uri)"},
	StockBlockedBy: {table: "blocked_by", key: "id", age: "at", size: "length(actor) + length(uri)"},
	StockBids:      {table: "bid", key: "id", age: "moved_at", size: "length(doc)", of: abandoned, last: latePaid, parts: "bid_move"},
	StockPayEvents: {table: "pay_event", key: "id", age: "done_at", size: "length(raw) + length(head)", of: "s.done_at IS NOT NULL"},
	StockCheckouts: {table: "checkout", key: "id", age: "made_at", size: "length(doc) + length(sealed)", of: "s.hold_until IS NULL",
		last: "(s.signed OR s.state = 'ordered')"},
	StockMeetings:  {table: "meeting", key: "id", age: "moved_at", size: "length(doc)", of: "s." + meetingIsOver},
	StockMailboxes: {table: "meeting_mailbox", key: "hash", age: "sent_at", size: "length(hash)", of: "NOT s.stopped"},
	StockStopped:   {table: "meeting_mailbox", key: "hash", age: "sent_at", size: "length(hash)", of: "s.stopped"},
	StockRefusals: {table: "remote_refusal", key: "actor", age: "until",
		size: "length(actor) + length(text) + length(in_reply_to) + length(context) + length(conversation)"},
	StockDevices:   {table: "device", key: "id", age: "ends_at", size: "length(reader) + length(endpoint) + length(program)", of: "s.ends_at IS NOT NULL"},
	StockProofs:    {table: "state_proof", key: "id", age: "at", size: "length(doc)"},
	StockDelegated: {table: "delegated_key", key: "id", age: "ends_at", size: "length(identity) + length(account) + length(public_jwk)"},
	StockMoves: {table: "identity_move", key: "agent", age: "at", size: "length(agent) + length(owner) + length(former)",
		last: "EXISTS (SELECT 1 FROM profile p WHERE p.erc8004 = s.agent)"},
	StockDocuments: {table: "agent_document", key: "agent", age: "read_at", size: "length(agent) + length(uri) + length(fault)",
		last: "EXISTS (SELECT 1 FROM profile p WHERE p.erc8004 = s.agent)"},
	StockTwins: {table: "agent_twin", key: "id", age: "at", size: "length(id) + length(agent)"},
	// || '' keeps the planner off the index by state: the rows are read in the order of done_at.
	StockJobs: {table: "job", key: "id", age: "done_at", size: "length(args)", of: "s.state <> 'waiting'", last: "s.state || '' = 'dead'"},
}

// Limits of an eviction.
const (
	chooseAtOnce = 100_000 // rows chosen on one snapshot
	evictAtOnce  = 500     // rows deleted in one transaction
)

// Evict deletes the oldest rows of a stock that is over its cap, down to seven
// eighths of it, and returns how many. It measures and selects on a snapshot, in a
// time that grows with the stock and for which no write waits, and deletes in
// bounded transactions.
func (db *DB) Evict(ctx context.Context, of Stock, most Cap) (all int, err error) {
	s, ok := stocks[of]
	if !ok {
		return 0, fmt.Errorf("storage: no stock %q", of)
	}
	for {
		var keys []any
		err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
			keys, err = s.surplus(ctx, tx, most)
			return err
		})
		gone := 0
		for chunk := range slices.Chunk(keys, evictAtOnce) {
			n := 0
			if err == nil {
				err = db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
					n, err = s.drop(ctx, tx, chunk)
					return err
				})
			}
			gone += n
		}
		if all += gone; err != nil || gone == 0 {
			return all, err
		}
	}
}

// surplus returns the keys of the rows to delete, oldest first.
func (s stock) surplus(ctx context.Context, tx *Tx, most Cap) (keys []any, err error) {
	var rows int
	var bytes int64
	if err := tx.row(ctx, s.measure()).Scan(&rows, &bytes); err != nil {
		return nil, err
	}
	surplus := rows - most.Rows
	if over := bytes - most.Bytes; over > 0 {
		surplus = max(surplus, int(over*int64(rows)/bytes), 1) // assuming rows of one size; the next measurement corrects it
	}
	if surplus <= 0 {
		return nil, nil
	}
	n := min(surplus+most.Rows/8, rows, chooseAtOnce)
	for _, last := range []bool{false, true} {
		if len(keys) == n || last && s.last == "" {
			break
		}
		more, err := list[any](ctx, tx, `SELECT `+s.key+` FROM `+s.table+` s WHERE `+s.oldest(last), n-len(keys))
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// drop deletes rows by their keys, except those that have left the stock since they
// were selected.
func (s stock) drop(ctx context.Context, tx *Tx, keys []any) (int, error) {
	if s.table == "reaction" { // their posts count them
		gone, err := tx.Reactions().dropKeys(ctx, keys)
		return len(gone), err
	}
	query := `DELETE FROM ` + s.table + ` AS s WHERE ` + s.key + ` IN (` + marks(len(keys)) + `)`
	if s.of != "" {
		query += ` AND ` + s.of
	}
	if s.parts == "" {
		n, err := tx.write(ctx, query, keys...)
		return int(n), err
	}
	if err := tx.dirty(); err != nil {
		return 0, err
	}
	gone, err := list[any](ctx, tx, query+` RETURNING `+s.key, keys...)
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	_, err = tx.write(ctx, `DELETE FROM `+s.parts+` WHERE bid IN (`+marks(len(gone))+`)`, gone...)
	return len(gone), err
}

func (s stock) measure() string {
	query := `SELECT count(*), COALESCE(sum(` + s.size + `), 0) FROM ` + s.table + ` s`
	if s.of != "" {
		query += ` WHERE ` + s.of
	}
	return query
}

// oldest selects the oldest rows: of those that are evicted last, or of the others.
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

// EnqueueEvict queues the job that evicts what is over the cap of a stock. It comes before all others
// that wait: under a flood both grow.
func (js Jobs) EnqueueEvict(ctx context.Context, of Stock) error {
	return js.tx.Enqueue(ctx, Job{
		Kind: EvictJob, Lane: string(EvictJob), Dedupe: string(EvictJob) + " " + string(of), Args: []byte(of), RunAt: js.tx.Now.Add(-time.Hour),
	})
}

// KeptCost is the cost of a stored activity in addition to its text, in bytes: its
// row, its job and their indexes.
const KeptCost = 1 << 10

// WaitingBytes is the size in bytes of the activities that wait to be processed, up
// to a bound or a little more. It reads no more of them than fit into the bound.
func (ib Inbox) WaitingBytes(ctx context.Context, most int64) (int64, error) {
	return find[int64](ctx, ib.tx, waitingBytes, KeptCost, most/KeptCost+1)
}

const waitingBytes = `SELECT COALESCE(sum(n + ?), 0) FROM (SELECT length(body) AS n FROM kept WHERE length(body) > 0 LIMIT ?) r`
