package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"stoa/protocol"
)

// On PostgreSQL no transaction waits for another one's number: a lock that is held
// over a commit would let only one process commit at a time, so that the server
// could not bring several commits to disk at once. Numbers are given and told
// after the commit, by each process for what it knows of.
//
// Entries of logs wait in log_waiting, and one statement moves those that are
// committed into log, with the next numbers of their boards. It runs in one process
// at a time; whichever comes next also finds the entries of one that died. The
// order is that of their ids, which are taken at the end of a batch, when its ops
// have seen everything that they depend on. So an entry that depends on another
// one has the greater id, and was committed later: whoever sees the one sees the
// other. (Ids of transactions are taken at their beginning and would not do.)
//
// Feed items and news have numbers from a sequence before they are committed.
// Readers may see them up to a number (DB.told) that is committed itself, so that
// no crash gives it out again, and below which every transaction has ended. Those
// that took numbers hold a lock on the sequence until they end, as whoever calls
// nextval does: when those that held it at a moment are gone, the greatest number
// committed at that moment may be told.

const (
	numberPoll  = time.Second           // how long what another process has committed may go unseen
	numberRest  = 40 * time.Millisecond // from one round to the next, so that they cost little under load
	numberLimit = 5000                  // entries of logs a round
	numberStart = 10 * time.Second      // that a start waits for transactions of other processes
)

// appended has who waits for a topic woken when what was appended can be read.
func (b *batch) appended(topic string) {
	if b.db.engine == enginePostgres {
		topic = topicNumbers
	}
	b.touched = true
	b.opTopics[topic] = true
}

// numbering is what the rounds of a process know.
type numbering struct {
	end func() // ends the goroutine and waits for it

	mu      sync.Mutex // one round at a time; guards what follows
	moved   int64      // greatest id of the entries that this process has given numbers
	ended   int64      // no transaction that runs has taken an id up to it
	passed  int64      // no entry with an id up to it waits or will
	running *takers    // of the moment that is waited for; nil when there is nothing to tell
}

// takers are the transactions that had numbers at a moment and have not ended.
type takers struct {
	ids  map[string]bool
	feed int64 // the greatest number of the feed and the news that was committed
	log  int64 // numbering.moved
}

// A round says how far numbers have come.
type round struct {
	complete bool  // every entry of a log that was committed before it has its number
	newest   int64 // the greatest number of the feed and the news that is committed
	waits    bool  // for transactions to end, or for another process
}

// startNumbering returns when what was committed before may be told.
func (db *DB) startNumbering(ctx context.Context) error {
	db.numbering.end = func() {}
	if db.engine != enginePostgres {
		return nil
	}
	first, cancel := context.WithTimeout(ctx, numberStart)
	defer cancel()
	if err := db.Numbered(first); err != nil {
		return fmt.Errorf("wait for transactions that have numbers of the feed: %w", err)
	}
	life, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { db.keepNumbering(life) })
	db.numbering.end = func() { cancel(); running.Wait() }
	return nil
}

func (db *DB) keepNumbering(ctx context.Context) {
	wait := numberPoll
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.wake[topicNumbers]:
		case <-time.After(wait):
		}
		r, err := db.number(ctx)
		rest := numberRest
		wait = numberPoll
		if r.waits {
			wait = 0
		}
		if err = db.available(ctx, err); err != nil && ctx.Err() == nil {
			if !errors.As(err, new(*protocol.Error)) {
				db.log.Error("number what was committed", "err", err)
			}
			rest = numberPoll
		}
		if pause(ctx, rest) != nil {
			return
		}
	}
}

// Numbered returns when everything that was committed before the call has its
// number and may be read by it, which on PostgreSQL is some milliseconds after the
// commit.
func (db *DB) Numbered(ctx context.Context) error {
	if db.engine != enginePostgres {
		return nil
	}
	complete, newest := false, int64(-1)
	for {
		r, err := db.number(ctx)
		if err != nil {
			return err
		}
		complete, newest = complete || r.complete, max(newest, r.newest)
		if complete && db.told.Load() >= newest {
			return nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// number gives and tells the numbers that can be.
func (db *DB) number(ctx context.Context) (r round, err error) {
	n := &db.numbering
	n.mu.Lock()
	defer n.mu.Unlock()
	var count, last int64
	var mine bool
	err = db.main.DB.QueryRowContext(ctx, db.engine.rebind(logNumbers), n.passed, numberLimit, newEpoch(time.UnixMilli(db.lastNow.Load()))).Scan(&count, &last, &mine)
	if err != nil {
		return r, fmt.Errorf("number the logs: %w", err)
	}
	r.complete = mine && count < numberLimit
	r.waits = !r.complete
	if r.complete {
		n.passed = n.ended
	}
	n.moved = max(n.moved, last)
	if count > 0 {
		db.hint(TopicLog)
	}

	var ids string
	err = db.main.DB.QueryRowContext(ctx, db.engine.rebind(numbersHeld), db.told.Load(), n.running != nil || n.moved > n.ended).Scan(&r.newest, &ids)
	if err != nil {
		return r, fmt.Errorf("numbers of the feed: %w", err)
	}
	held := map[string]bool{}
	for id := range strings.SplitSeq(ids, " ") {
		if id != "" {
			held[id] = true
		}
	}
	if n.running != nil {
		maps.DeleteFunc(n.running.ids, func(id string, _ bool) bool { return !held[id] })
		db.tell()
	}
	if n.running == nil && (r.newest > db.told.Load() || n.moved > n.ended) {
		n.running = &takers{held, r.newest, n.moved}
		db.tell()
	}
	r.waits = r.waits || n.running != nil
	return r, nil
}

// tell tells what was waited for when no transaction that had a number is left.
func (db *DB) tell() {
	n := &db.numbering
	if len(n.running.ids) > 0 {
		return
	}
	n.ended = n.running.log
	if n.running.feed > db.told.Load() {
		db.told.Store(n.running.feed)
		db.hint(TopicFeed)
	}
	n.running = nil
}

// numbersHeld is read from one snapshot but for the locks, which are of a moment after it.
const numbersHeld = `SELECT n, CASE WHEN n > ? OR ? THEN (SELECT COALESCE(string_agg(DISTINCT virtualtransaction, ' '), '') FROM pg_locks
		WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND relation IN ('feed_number'::regclass, 'log_waiting_id_seq'::regclass)) ELSE '' END
	FROM (SELECT GREATEST((SELECT max(n) FROM feed), (SELECT max(n + 0) FROM news), 0) AS n) newest`

// logNumbers moves entries, as many as may be, from log_waiting to log. Of two at
// once the second does nothing. One that begins before another ends and gets the
// lock after it finds the rows gone that the other has moved.
const logNumbers = `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended('number the logs', 0)) AS mine),
	moved AS (
		DELETE FROM log_waiting WHERE id = ANY(ARRAY(SELECT id FROM log_waiting WHERE id > ? AND (SELECT mine FROM turn) ORDER BY id LIMIT ?))
		RETURNING id, board, kind, object_id, at, redacted, activity),
	heads AS (
		INSERT INTO stream (board, epoch, head) SELECT board, ?, count(*) FROM moved GROUP BY board ORDER BY board
		ON CONFLICT (board) DO UPDATE SET head = stream.head + EXCLUDED.head RETURNING id, board, head),
	numbered AS (
		INSERT INTO log (stream, seq, kind, object_id, at, redacted, activity)
		SELECT h.id, h.head - count(*) OVER (PARTITION BY m.board) + row_number() OVER (PARTITION BY m.board ORDER BY m.id),
			m.kind, m.object_id, m.at, m.redacted, m.activity FROM moved m JOIN heads h ON h.board = m.board)
	SELECT (SELECT count(*) FROM moved), (SELECT COALESCE(max(id), 0) FROM moved), (SELECT mine FROM turn)`
