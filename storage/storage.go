// Package storage stores everything that a node keeps. It is one concrete store
// over two databases, SQLite (a file) and PostgreSQL, and the only package with
// SQL.
//
// Everything happens in a transaction: [DB.Read] gives a snapshot, [DB.Write]
// passes a function to the group-commit writer, which runs many functions in one
// transaction with one flush to disk and isolates them, so that one that fails does
// not affect the others (writer.go, batch.go). Methods of [Tx] are verb and noun,
// one file per subject; they take and return the types of package protocol.
//
// Times are integer milliseconds UTC, listings page by key and never by offset, and
// a reader that pages over numbers misses nothing that is committed later. The
// package starts no goroutine except its writers, and the one that numbers on
// PostgreSQL (number.go), and knows nothing about callers.
package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
)

// Errors a caller tests for with errors.Is.
var (
	ErrNotFound = errors.New("storage: not found")      // there is no such row
	ErrExists   = errors.New("storage: exists already") // a unique constraint refuses the row
	ErrReadOnly = errors.New("storage: write in a read transaction")
	ErrClosed   = errors.New("storage: closed")
)

// A Config is where to store. Exactly one of Path and URL is set.
type Config struct {
	Path  string           // SQLite file; its directory is created with mode 0700 if missing
	URL   string           // postgres://…
	Log   *slog.Logger     // nil means slog.Default
	Now   func() time.Time // the clock of Tx.Now; nil means time.Now
	Queue int              // writes that may wait before new ones are refused; 0 means 1024
}

// A DB is an open database. Its methods may be called concurrently.
type DB struct {
	engine  engine
	log     *slog.Logger
	now     func() time.Time
	config  Config
	main    *bun.DB // writers; on PostgreSQL readers too
	readers *pool

	queue         chan *op
	writers       sync.WaitGroup
	version       atomic.Uint64
	lastNow       atomic.Int64
	unavailableAt atomic.Int64                           // when the log last said that the database is unavailable
	wake          map[string]chan struct{}               // fixed at Open
	watch         func(tx *Tx, query string, args []any) // called before each query, so that tests can explain it; otherwise nil
	watchWrites   bool                                   // watch is also called for statements that write
	spends        sync.Map                               // [16]byte → *batch: keys being spent by a running batch; PostgreSQL only
	told          atomic.Int64                           // readers see feed items and news up to it; PostgreSQL only
	numbering     numbering                              // PostgreSQL only

	gate   sync.RWMutex // guards closed against sends on queue
	closed bool
}

// Open opens the database, migrates its tables and starts the writers. Several
// processes may open the same database.
func Open(ctx context.Context, c Config) (*DB, error) {
	if (c.Path == "") == (c.URL == "") {
		return nil, errors.New("storage: set either a path (SQLite) or a URL (PostgreSQL)")
	}
	db := &DB{config: c, log: c.Log, now: c.Now, wake: map[string]chan struct{}{}}
	if db.log == nil {
		db.log = slog.Default()
	}
	if db.now == nil {
		db.now = time.Now
	}
	for _, topic := range []string{TopicJobs, TopicLog, TopicFeed, TopicRules, topicNumbers} {
		db.wake[topic] = make(chan struct{}, 1)
	}
	if c.Queue <= 0 {
		c.Queue = 1024
	}
	db.queue = make(chan *op, c.Queue)

	var err error
	if c.Path != "" {
		err = db.openSQLite(ctx)
	} else {
		err = db.openPostgres(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.closePools())
	}
	if err := db.startWriters(ctx); err != nil {
		return nil, errors.Join(err, db.closePools())
	}
	if err := db.startNumbering(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.reindex(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.placeUnplaced(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("index the directory: %w", err), db.Close())
	}
	return db, nil
}

// Close waits for the queued writes, stops the writers and closes the database.
// Reads must have ended. A second Close does nothing.
func (db *DB) Close() error {
	db.gate.Lock()
	if db.closed {
		db.gate.Unlock()
		return nil
	}
	db.closed = true
	close(db.queue)
	db.gate.Unlock()
	db.writers.Wait()
	db.numbering.end()
	return db.closePools()
}

func (db *DB) closePools() error {
	var err error
	if db.readers != nil {
		err = db.readers.close()
	}
	return errors.Join(err, db.main.Close())
}

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return string(db.engine) }

// Version grows with each commit of this process. While it is unchanged, a result
// computed from reads includes all writes of this process.
func (db *DB) Version() uint64 { return db.version.Load() }

// Topics of [DB.Wake].
const (
	TopicJobs = "jobs" // a job was enqueued
	TopicLog  = "log"  // a board's log has new entries to read
	TopicFeed = "feed" // the feed has new items to read

	TopicRules = "rules" // blocks or limits changed

	topicNumbers = "numbers" // what was committed has to be numbered or told, on PostgreSQL
)

// Wake returns the topic's channel, which receives a hint after a commit of this
// process that touched the topic, on PostgreSQL once what it appended can be read.
// There is one channel per topic, with room for one hint, for one receiver; hints
// coalesce and other processes send none, so receivers also poll. An unknown topic
// gives nil, which never receives.
func (db *DB) Wake(topic string) <-chan struct{} { return db.wake[topic] }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var one int
		return tx.row(ctx, `SELECT 1`).Scan(&one)
	})
}

// QueueLen is the number of waiting writes.
func (db *DB) QueueLen() int { return len(db.queue) }

// A Tx is a running transaction. It is valid until the function that it was passed
// to returns, and is used by one goroutine.
type Tx struct {
	// Now is when the transaction began, UTC, in whole milliseconds: the only
	// clock for what is stored.
	Now time.Time

	db    *DB
	conn  *conn
	batch *batch // nil in a read
	told  int64  // as DB.told was before it began
}

// Read runs fn on a snapshot: everything it reads is of one moment. A write inside
// it is ErrReadOnly or refused by the database. The error of fn is returned
// unchanged, except that of an unavailable database, which becomes overloaded.
func (db *DB) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.available(ctx, db.read(ctx, fn))
}

func (db *DB) read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	c, err := db.readers.get(ctx)
	if err != nil {
		return fmt.Errorf("begin a read: %w", err)
	}
	defer func() { db.readers.put(c) }()
	told := db.told.Load() // before the snapshot
	if _, err := c.exec(ctx, db.engine.beginRead()); err != nil {
		c.broken = true
		return fmt.Errorf("begin a read: %w", err)
	}
	defer func() {
		// Also after a panic, and when the caller's context has ended.
		if _, e := c.exec(context.Background(), "ROLLBACK"); e != nil {
			c.broken = true
		}
	}()
	return fn(ctx, &Tx{Now: db.clock(), db: db, conn: c, told: told})
}

// clock is the time in whole milliseconds; it never runs backwards.
func (db *DB) clock() time.Time {
	ms := db.now().UnixMilli()
	for {
		last := db.lastNow.Load()
		if ms <= last {
			return time.UnixMilli(last).UTC()
		}
		if db.lastNow.CompareAndSwap(last, ms) {
			return time.UnixMilli(ms).UTC()
		}
	}
}
