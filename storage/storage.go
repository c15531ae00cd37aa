// Package storage stores everything that a node keeps. It is one concrete store
// over two databases, SQLite (a file) and PostgreSQL, and the only package with
// SQL.
//
// Everything happens in a transaction: [DB.Read] gives a snapshot, [DB.Write]
// passes a function to the group-commit writer, which runs many functions in one
// transaction with one flush to disk and isolates them, so that one that fails does
// not affect the others (package commit). The methods of a [Tx] are
// grouped by subject (tx.Posts().Insert); they take and return the types of package
// protocol.
//
// A row is a struct, and a column is named once, by its member (row.go). The structs are those that the methods take and return, so no
// model of an ORM fits them: times are milliseconds, a part of a row is one document, and what is empty may be NULL.
//
// Times are integer milliseconds UTC, listings page by key and never by offset, and
// a reader that pages over numbers misses nothing that is committed later. The
// package starts no goroutine except the writer of package commit, and on PostgreSQL one that
// numbers (number.go) and one that moves words into their indexes (pending.go), and knows nothing about callers.
//
// The subjects are files of one folder: packages of their own, which take a Tx, could not be returned by
// its methods, and a delete or a sale goes through the tables of many.
// What knows no table is in package commit.
package storage

import (
	"cmp"
	"context"
	gosql "database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// Errors a caller tests for with errors.Is.
var (
	ErrNotFound = commit.ErrNotFound // there is no such row
	ErrExists   = commit.ErrExists   // a unique constraint refuses the row
	ErrReadOnly = commit.ErrReadOnly
	ErrClosed   = commit.ErrClosed
	ErrServed   = commit.ErrServed // another process serves the SQLite database
)

// Missing is IfMissing for a row that counts as missing although it was found: another is also returned when err is nil.
func Missing(err, another error) error {
	if err == nil {
		return another
	}
	return IfMissing(err, another)
}

// IfMissing returns err, or another in place of ErrNotFound: nil where a missing row is no error.
func IfMissing(err, another error) error {
	if errors.Is(err, ErrNotFound) {
		return another
	}
	return err
}

// A Config is where to store. Exactly one of Path and URL is set.
type Config struct {
	Path  string           // SQLite file; its directory is created with mode 0700 if missing
	URL   string           // postgres://…
	Log   *slog.Logger     // nil means slog.Default
	Now   func() time.Time // the clock of Tx.Now; nil means time.Now
	Queue int              // writes that may wait before new ones are refused; 0 means 1024
	Serve bool             // this process serves the node, and is on SQLite the only one that does

	NoCopy   bool     // a SQLite database is not copied before it is migrated
	moving   bool     // opened by Move: no part is checked, and no lease ends
	Parts    string   // directory of the parts of old posts (DB.Detach); "" means parts beside the file, or none on PostgreSQL
	Replicas []string // postgres://… of standbys, for ReadAnywhere; PostgreSQL only
}

// A DB is an open database. Its methods may be called concurrently.
type DB struct {
	sql       *commit.DB
	engine    engine
	log       *slog.Logger
	told      atomic.Int64 // readers see feed items and news up to it; PostgreSQL only
	numbering numbering    // PostgreSQL only
	tail      newsTail     // PostgreSQL only
	parts     *parts
	endMoving func() // ends startMoving; nil before
}

// Watch calls see with each statement from now on, and with nil calls nothing. Tests compare by it whether two
// answers take the same steps. It is called while nothing runs.
func (db *DB) Watch(see func(query string)) {
	if see == nil {
		db.sql.Watch(nil)
		return
	}
	db.sql.Watch(func(_ *commit.Tx, query string, _ []any) { see(query) })
}

// An engine is a database program; statements that differ ask for it.
type engine = commit.Engine

const (
	engineSQLite   = commit.SQLite
	enginePostgres = commit.Postgres
)

// Open opens the database, migrates its tables and starts the writer. Several
// processes may open the same database; with Serve, a second one on SQLite is
// ErrServed, and the leases that a process left which was killed are ended.
func Open(ctx context.Context, c Config) (*DB, error) {
	db, err := openTables(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := db.refuseMoved(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.begin(ctx, c); err != nil {
		return nil, err
	}
	return db, nil
}

// openTables opens the database with its tables, and begins nothing.
func openTables(ctx context.Context, c Config) (*DB, error) {
	log := cmp.Or(c.Log, slog.Default())
	if c.Parts == "" && c.Path != "" {
		c.Parts = filepath.Join(filepath.Dir(c.Path), "parts")
	}
	sql, err := commit.Open(ctx, commit.Config{
		Path: c.Path, URL: c.URL, Log: c.Log, Now: c.Now, Queue: c.Queue, Serve: c.Serve, Replicas: c.Replicas,
		Topics: []string{TopicJobs, TopicLog, TopicFeed, TopicTasks, topicNumbers, topicWords},
		Groups: groups, Buffers: buffers, Migrate: migrate(!c.NoCopy, log),
	})
	if err != nil {
		return nil, err
	}
	db := &DB{sql: sql, engine: sql.Engine(), log: log, parts: &parts{dir: c.Parts, open: map[int64]*gosql.DB{}}}
	db.numbering.end = func() {}
	return db, nil
}

// begin starts the background work of a database, and rebuilds indexes that another version of the program built differently. When
// it fails, the database is closed.
func (db *DB) begin(ctx context.Context, c Config) error {
	if err := db.startNumbering(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	db.endMoving = db.startMoving()
	if c.Serve && !c.moving {
		if err := db.checkParts(ctx); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	if err := db.reindex(ctx); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := db.indexItems(ctx); err != nil {
		return errors.Join(fmt.Errorf("index the items: %w", err), db.Close())
	}
	if err := db.placeUnplaced(ctx); err != nil {
		return errors.Join(fmt.Errorf("index the directory: %w", err), db.Close())
	}
	if db.sql.Serves() && !c.moving {
		if err := db.endLeases(ctx); err != nil {
			return errors.Join(fmt.Errorf("end the leases of the last process: %w", err), db.Close())
		}
	}
	db.sql.Ready()
	return nil
}

// Close waits for the queued writes, stops the writer and closes the database.
// Reads must have ended. A second Close does nothing.
func (db *DB) Close() error {
	db.numbering.end()
	if db.endMoving != nil {
		db.endMoving()
	}
	return errors.Join(db.sql.Close(), db.parts.close())
}

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return string(db.engine) }

// Version grows with each commit of this process. While it is unchanged, a result
// computed from reads includes all writes of this process.
func (db *DB) Version() uint64 { return db.sql.Version() }

// Topics of [DB.Wake].
const (
	TopicJobs = "jobs" // a job was enqueued
	TopicLog  = "log"  // a board's log has new entries to read
	TopicFeed = "feed" // the feed has new items to read

	TopicTasks = "tasks" // a task of A2A has changed

	topicNumbers = "numbers" // what was committed has to be numbered or told, on PostgreSQL
	topicWords   = "words"   // words wait to be moved into an index, on PostgreSQL
)

// Wake returns the topic's channel, which receives a hint after a commit of this
// process that touched the topic, on PostgreSQL once what it appended can be read.
// There is one channel per topic, with room for one hint, for one receiver; hints
// coalesce and other processes send none, so receivers also poll. An unknown topic
// gives nil, which never receives.
func (db *DB) Wake(topic string) <-chan struct{} { return db.sql.Topic(topic) }

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var one int
		return tx.row(ctx, `SELECT 1`).Scan(&one)
	})
}

// QueueLen is the number of waiting writes.
func (db *DB) QueueLen() int { return db.sql.QueueLen() }

// A Tx is a running transaction. It is valid until the function that it was passed
// to returns, and is used by one goroutine.
type Tx struct {
	// Now is when the transaction began, UTC, in whole milliseconds: the only
	// clock for what is stored.
	Now time.Time

	db   *DB
	sql  *commit.Tx
	told int64 // DB.told before the first statement
}

// Read runs fn on a snapshot: everything it reads is of one moment. A write inside
// it is ErrReadOnly or refused by the database. The error of fn is returned
// unchanged, except that of an unavailable database, which becomes overloaded.
func (db *DB) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.sql.Read(ctx, db.reading(fn))
}

// ReadAnywhere is Read that a standby may answer, with all that was committed before the call. fn may run twice.
func (db *DB) ReadAnywhere(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.sql.ReadAnywhere(ctx, db.reading(fn))
}

// readLong is Read for what takes long and nobody waits for.
func (db *DB) readLong(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.sql.ReadLong(ctx, db.reading(fn))
}

func (db *DB) reading(fn func(ctx context.Context, tx *Tx) error) func(ctx context.Context, tx *commit.Tx) error {
	told := db.told.Load() // before the snapshot
	return func(ctx context.Context, tx *commit.Tx) error {
		return fn(ctx, &Tx{Now: tx.Now, db: db, sql: tx, told: told})
	}
}

// A ReplicaState is the state of a standby.
type ReplicaState = commit.ReplicaState

// Replicas asks each standby for its state. primary is how many reads the primary answered although a standby could have.
func (db *DB) Replicas(ctx context.Context) (all []ReplicaState, primary uint64) {
	return db.sql.Replicas(ctx)
}

// Write runs fn in a transaction that it may share with other writes, and returns
// when the transaction is on disk, as commit.DB.Write describes. fn may run twice, so
// it changes nothing but tx, does no I/O, and calls neither Read nor Write. spends are
// what it is likely to pass to Spend.
func (db *DB) Write(ctx context.Context, fn func(ctx context.Context, tx *Tx) error, spends ...protocol.Spend) error {
	return db.sql.Write(ctx, func(ctx context.Context, tx *commit.Tx) error {
		return fn(ctx, &Tx{Now: tx.Now, db: db, sql: tx, told: db.told.Load()})
	}, spends...)
}
