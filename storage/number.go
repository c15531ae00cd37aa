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

// On PostgreSQL no transaction waits for the number of another one: a lock that is
// held during a commit would let only one process commit at a time, so the server
// could not flush several commits together. Log entries get their numbers, and feed
// items become visible, after the commit.
//
// Log entries are inserted into log_waiting. One statement, which runs in one
// process at a time, moves the committed ones into log with the next numbers of
// their boards, including the entries of a process that died. They are numbered in
// the order of their ids, which are taken at the end of a batch, when its ops have
// read everything that they depend on. So an entry that depends on another one has
// the greater id and was committed later: a transaction that sees it also sees the
// other one. (Transaction ids are taken at the beginning and have no such order.)
//
// Feed items and news have numbers from a sequence before they are committed.
// Readers may see them up to a number (DB.told) that is committed itself, so that
// it is not issued again after a crash, and below which every transaction has
// ended. A transaction that calls nextval holds a lock on the sequence until it
// ends: when all transactions that held the lock at a moment have ended, readers
// may see up to the greatest number that was committed at that moment.

const (
	numberPoll  = time.Second           // the longest time before a commit of another process is noticed
	numberRest  = 40 * time.Millisecond // from one round to the next, at least
	numberShare = 25                    // times as long as the round took, so that rounds of several processes cost little under load
	numberLong  = time.Second / 4       // at most
	numberLimit = 5000                  // log entries per round
	numberStart = 10 * time.Second      // for which a start waits for transactions of other processes
)

// appended wakes the receiver of a topic once the appended rows can be read.
func (tx *Tx) appended(topic string) {
	if tx.db.engine == enginePostgres {
		topic = topicNumbers
	}
	tx.wake(topic)
}

// numbering is the state of a process between its rounds.
type numbering struct {
	end func() // ends the goroutine and waits for it

	mu      sync.Mutex // one round at a time; guards the fields below
	moved   int64      // greatest id of the entries that this process has numbered
	ended   int64      // no running transaction has taken an id up to it
	passed  int64      // log_waiting has, and will have, no entry with an id up to it
	running *takers    // the transactions that a round waits for; nil when it waits for none
}

// takers are the transactions that had taken numbers at a moment and have not ended.
type takers struct {
	ids  map[string]bool
	feed int64 // the greatest committed number of feed and news at that moment
	log  int64 // numbering.moved at that moment
}

// A round is the result of one run of number.
type round struct {
	complete bool  // every log entry that was committed before the round has its number
	newest   int64 // the greatest committed number of feed and news
	waits    bool  // for transactions to end, or for another process
}

// startNumbering returns when readers may see everything that was committed before
// the call.
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
		case <-db.sql.Topic(topicNumbers):
		case <-time.After(wait):
		}
		begin := time.Now()
		r, err := db.number(ctx)
		rest := min(max(numberRest, numberShare*time.Since(begin)), numberLong)
		wait = numberPoll
		if r.waits {
			wait = 0
		}
		if err = db.sql.Available(ctx, err); err != nil && ctx.Err() == nil {
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
// number and can be read by number. On PostgreSQL that is some milliseconds after
// the commit.
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

// number is one round: it numbers the committed log entries, and lets readers see
// feed items and news up to the greatest number below which no transaction runs.
func (db *DB) number(ctx context.Context) (r round, err error) {
	n := &db.numbering
	n.mu.Lock()
	defer n.mu.Unlock()
	var count, last int64
	var mine bool
	err = db.sql.Lookup(ctx, logNumbers, n.passed, numberLimit, newEpoch(db.sql.LastClock())).Scan(&count, &last, &mine)
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
		db.sql.Hint(TopicLog)
	}

	var ids string
	err = db.sql.Lookup(ctx, numbersHeld, db.told.Load(), n.running != nil || n.moved > n.ended).Scan(&r.newest, &ids)
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

// tell lets readers see the numbers that the round waited for, when all transactions
// that had taken numbers have ended.
func (db *DB) tell() {
	n := &db.numbering
	if len(n.running.ids) > 0 {
		return
	}
	n.ended = n.running.log
	if n.running.feed > db.told.Load() {
		db.told.Store(n.running.feed)
		db.sql.Hint(TopicFeed)
	}
	n.running = nil
}

// numbersHeld reads one snapshot, except for the locks, which are read slightly later.
const numbersHeld = `SELECT n, CASE WHEN n > ? OR ? THEN (SELECT COALESCE(string_agg(DISTINCT virtualtransaction, ' '), '') FROM pg_locks
		WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND relation IN ('feed_number'::regclass, 'log_waiting_id_seq'::regclass)) ELSE '' END
	FROM (SELECT GREATEST((SELECT max(n) FROM feed), (SELECT max(n + 0) FROM news), 0) AS n) newest`

// logNumbers moves up to a number of entries from log_waiting to log. When two
// processes run it at the same time, the second one does nothing. One that begins
// before the other ends, and gets the lock after it, does not find the rows that
// the other has moved.
const logNumbers = `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended('number the logs', 0)) AS mine),
	moved AS (
		DELETE FROM log_waiting WHERE id = ANY(ARRAY(SELECT id FROM log_waiting WHERE id > ? AND (SELECT mine FROM turn) ORDER BY id LIMIT ?))
		RETURNING id, board, kind, object_id, at, redacted, activity, request, trace),
	heads AS (
		INSERT INTO stream (board, epoch, head) SELECT board, ?, count(*) FROM moved GROUP BY board ORDER BY board
		ON CONFLICT (board) DO UPDATE SET head = stream.head + EXCLUDED.head, due = TRUE RETURNING id, board, head),
	numbered AS (
		INSERT INTO log (stream, seq, kind, object_id, at, redacted, activity, request, trace)
		SELECT h.id, h.head - count(*) OVER (PARTITION BY m.board) + row_number() OVER (PARTITION BY m.board ORDER BY m.id),
			m.kind, m.object_id, m.at, m.redacted, m.activity, m.request, m.trace FROM moved m JOIN heads h ON h.board = m.board)
	SELECT (SELECT count(*) FROM moved), (SELECT COALESCE(max(id), 0) FROM moved), (SELECT mine FROM turn)`
