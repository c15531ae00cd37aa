// Package commit is group commit over SQLite and PostgreSQL: many writes share one
// transaction and one flush to disk, and one that fails does not affect the others
// (writer.go, batch.go).
//
// Rows that are only appended are held back in a [Buffer] and written for the whole
// batch with one statement a table. A statement that names such a table writes them
// first (held.go), so a caller never reads a stale table. The package knows no table
// but those of its buffers, spent, the keys that may be used once (spend.go), and
// generation, which counts changes (generation.go).
package commit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
)

// Errors a caller tests for with errors.Is.
var (
	ErrNotFound = errors.New("storage: not found")      // there is no such row
	ErrExists   = errors.New("storage: exists already") // a unique constraint refuses the row
	ErrReadOnly = errors.New("storage: write in a read transaction")
	ErrClosed   = errors.New("storage: closed")
	ErrServed   = errors.New("storage: another process serves the database")
)

// A Config is a database and what is known about its tables. Exactly one of Path and
// URL is set.
type Config struct {
	Path  string           // SQLite file; its directory is created with mode 0700 if missing
	URL   string           // postgres://…
	Log   *slog.Logger     // nil means slog.Default
	Now   func() time.Time // the clock of Tx.Now; nil means time.Now
	Queue int              // writes that may wait before new ones are refused; 0 means 1024
	Serve bool             // this process serves the database: on SQLite only one may, and another is ErrServed

	Replicas []string // postgres://… of standbys, for ReadAnywhere; PostgreSQL only

	Topics  []string                                                  // of Tx.Wake
	Groups  []Group                                                   // of DB.Generation
	Buffers func(e Engine) []Buffer                                   // in the order in which a batch writes them at its end
	Migrate func(ctx context.Context, e Engine, tables *sql.DB) error // runs before the first transaction
}

// A DB is an open database. Its methods may be called concurrently.
type DB struct {
	engine   Engine
	log      *slog.Logger
	now      func() time.Time
	config   Config
	plan     *plan
	main     *bun.DB // writers; on PostgreSQL readers too
	readers  *pool
	direct   bool      // without a pooler in between; PostgreSQL only
	reach    *reach    // PostgreSQL only
	replicas *replicas // nil when there are none
	serving  *sql.DB   // holds the lock of the serving process (serve.go); nil where there is none

	queue         chan *op
	writer        sync.WaitGroup
	version       atomic.Uint64
	lastNow       atomic.Int64
	heard         pulse                    // of the writer; at is 0 while it is at no batch
	unavailableAt atomic.Int64             // when the log last said that the database is unavailable
	wake          map[string]chan struct{} // fixed at Open
	generations   *generations
	watch         func(tx *Tx, query string, args []any)

	gate   sync.RWMutex // guards closed against sends on queue
	closed bool
}

// Open opens the database, migrates its tables and starts the writer. Several
// processes may open the same database.
func Open(ctx context.Context, c Config) (*DB, error) {
	if (c.Path == "") == (c.URL == "") {
		return nil, errors.New("storage: set either a path (SQLite) or a URL (PostgreSQL)")
	}
	db := &DB{config: c, log: c.Log, now: c.Now, heard: pulse{opened: time.Now(), limit: waitLimit},
		wake: map[string]chan struct{}{}, generations: newGenerations(c.Groups)}
	if db.log == nil {
		db.log = slog.Default()
	}
	if db.now == nil {
		db.now = time.Now
	}
	for _, topic := range c.Topics {
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
	db.plan = newPlan(db.engine, c.Buffers(db.engine), c.Groups)
	if err := c.Migrate(ctx, db.engine, db.main.DB); err != nil {
		return nil, errors.Join(err, db.closePools())
	}
	if db.direct {
		if err := db.plan.readTypes(ctx, db.main.DB); err != nil {
			return nil, errors.Join(fmt.Errorf("read the types of columns: %w", err), db.closePools())
		}
	}
	if err := db.startWriter(ctx); err != nil {
		return nil, errors.Join(err, db.closePools())
	}
	return db, nil
}

// Close waits for the queued writes, stops the writer and closes the database.
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
	db.writer.Wait()
	return db.closePools()
}

func (db *DB) closePools() error {
	var err error
	if db.readers != nil {
		err = db.readers.close()
	}
	return errors.Join(err, db.replicas.close(), db.main.Close(), db.endServing())
}

// Ready says that what may take long is done: from now on a process that serves ends statements which the server does not answer.
func (db *DB) Ready() {
	if db.reach != nil && db.config.Serve {
		db.reach.limit.Store(int64(silenceLimit))
	}
}

// Direct reports whether there is no pooler before PostgreSQL; false on SQLite.
func (db *DB) Direct() bool { return db.direct }

func (db *DB) Engine() Engine { return db.engine }

// URL is the address of PostgreSQL, "" on SQLite.
func (db *DB) URL() string { return db.config.URL }

// Version grows with each commit of this process. While it is unchanged, a result
// computed from reads includes all writes of this process.
func (db *DB) Version() uint64 { return db.version.Load() }

// Topic returns a topic's channel, which receives a hint after a commit of this
// process whose writes called Tx.Wake, and from Hint. It has room for one hint, for
// one receiver; hints coalesce and other processes send none, so receivers also poll.
// An unknown topic gives nil, which never receives.
func (db *DB) Topic(topic string) <-chan struct{} { return db.wake[topic] }

// Hint wakes the receiver of a topic.
func (db *DB) Hint(topic string) {
	select {
	case db.wake[topic] <- struct{}{}:
	default:
	}
}

// QueueLen is the number of waiting writes.
func (db *DB) QueueLen() int { return len(db.queue) }

// Watch makes every statement of a Tx call see first, after what is held back for it
// is written, so that tests can explain it. It is called before the first transaction.
func (db *DB) Watch(see func(tx *Tx, query string, args []any)) { db.watch = see }

// Read runs fn on a snapshot: everything it reads is of one moment. A write inside
// it is ErrReadOnly or refused by the database. The error of fn is returned
// unchanged, except that of an unavailable database, which becomes overloaded.
func (db *DB) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	err := db.read(ctx, fn)
	if isStandby(err) {
		return err // fn writes
	}
	return db.Available(ctx, err)
}

func (db *DB) read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	c, err := db.readers.get(ctx)
	if err != nil {
		return fmt.Errorf("begin a read: %w", err)
	}
	defer func() { db.readers.put(c) }()
	return c.read(ctx, db, fn)
}

// ReadLong is Read for what takes long and nobody waits for.
func (db *DB) ReadLong(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		if db.engine == Postgres {
			if err := tx.conn.bun.Conn.Raw(func(raw any) error { wireOf(raw.(*stdlib.Conn).Conn()).patience(longLimit); return nil }); err != nil {
				return err
			}
		}
		return fn(ctx, tx)
	})
}

// Lookup is Tx.Lookup outside the transactions of Read and Write.
func (db *DB) Lookup(ctx context.Context, query string, args ...any) Row {
	return First(db.main.DB.QueryContext(ctx, db.engine.rebind(query), db.named(args)...))
}

// Clock is the time in whole milliseconds; it never runs backwards.
func (db *DB) Clock() time.Time {
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

// LastClock is the newest result of Clock.
func (db *DB) LastClock() time.Time { return time.UnixMilli(db.lastNow.Load()) }
