package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stoa/protocol"
	"stoa/protocol/trace"
)

const (
	maxBatch      = 128 // operations in one transaction
	maxTries      = 6   // for ops whose transaction the database aborted
	triesTogether = 2   // the first of these, before each op gets a transaction to itself
)

// States of an op. The caller may withdraw it until a writer has begun it.
const (
	opWaiting int32 = iota
	opTaken
	opWithdrawn
)

// An op is one call of Write.
type op struct {
	ctx   context.Context // the caller's: checked before the op begins, never after
	fn    func(ctx context.Context, tx *Tx) error
	state atomic.Int32
	done  chan error // capacity 1

	spends []protocol.Spend
}

// Write runs fn in a transaction that it may share with other writes, and returns
// when the transaction is on disk. An error of fn is returned unchanged and undoes
// what fn wrote, and nothing else.
//
// fn may run twice: when the database aborts a transaction, and when another op of
// the batch makes it fail. So it accesses only tx, does no I/O, and never calls Read
// or Write. Its context has the values of ctx but does not end when ctx does: a
// write that has begun is finished. A write whose ctx ends while it waits is dropped
// and returns the context's error. When the queue is full, Write returns a
// *protocol.Error with code overloaded.
//
// spends are what fn is likely to pass to Spend. On PostgreSQL they are inserted for
// all writes of a transaction with one statement. Those that fn does not spend
// remain unspent.
func (db *DB) Write(ctx context.Context, fn func(ctx context.Context, tx *Tx) error, spends ...protocol.Spend) error {
	if s := trace.Of(ctx); s != nil {
		return db.traced(ctx, s, fn, spends)
	}
	return db.write(ctx, &op{ctx: ctx, fn: fn, done: make(chan error, 1), spends: spends})
}

func (db *DB) write(ctx context.Context, o *op) error {
	if err := db.submit(o); err != nil {
		return err
	}
	var late <-chan time.Time
	if db.engine == Postgres {
		timer := time.NewTimer(db.heard.limit)
		defer timer.Stop()
		late = timer.C
	}
	for {
		var err error
		select {
		case err := <-o.done:
			return err
		case <-ctx.Done():
			err = ctx.Err()
		case <-late:
			late = time.After(retryEvery)
			if db.heard.rest() > 0 {
				continue
			}
			err = db.Available(ctx, errHeldUp)
		}
		if o.state.CompareAndSwap(opWaiting, opWithdrawn) {
			return err
		}
		return <-o.done
	}
}

func (db *DB) submit(o *op) error {
	db.gate.RLock()
	defer db.gate.RUnlock()
	if db.closed {
		return ErrClosed
	}
	select {
	case db.queue <- o:
		return nil
	default:
		return Overloaded("too many writes are waiting; try again in a moment", nil)
	}
}

// Overloaded is the error of a request that may succeed in a second.
func Overloaded(detail string, cause error) error {
	return &protocol.Error{Code: protocol.Overloaded, Detail: detail, RetryAfter: time.Second, Err: cause}
}

// A writer owns one connection and runs waiting ops in transactions.
type writer struct {
	db   *DB
	conn *conn
}

func (db *DB) startWriter(ctx context.Context) error {
	c, err := openConn(ctx, db.main, db.engine, &db.heard)
	if err != nil {
		return fmt.Errorf("open the writing connection: %w", err)
	}
	w := &writer{db: db, conn: c}
	db.writer.Go(w.loop)
	return nil
}

// loop runs the waiting ops and does not wait for more: the next batch gathers in
// the queue while the previous one is written to disk.
func (w *writer) loop() {
	ops := make([]*op, 0, maxBatch)
	ended := false
	defer func() {
		if ended {
			w.conn.close()
			return
		}
		// A function has called runtime.Goexit, as a failing test does. Its batch is
		// rolled back; another goroutine continues.
		for _, o := range ops {
			select {
			case o.done <- errors.New("storage: a write has ended its goroutine"):
			default: // it has its answer
			}
		}
		w.db.writer.Go(w.loop)
	}()
	for first := range w.db.queue {
		ops = append(ops[:0], first)
	fill:
		for len(ops) < maxBatch {
			select {
			case o, ok := <-w.db.queue:
				if !ok {
					break fill
				}
				ops = append(ops, o)
			default:
				break fill
			}
		}
		w.commit(ops)
	}
	ended = true
}

// commit writes the ops to disk and answers each.
func (w *writer) commit(ops []*op) {
	if ops = beginOps(ops); len(ops) > 0 {
		w.db.heard.beat()
		w.store(ops)
		w.db.heard.at.Store(0)
	}
}

// store commits ops that have begun. The ops of a batch take locks in the order of
// their arrival, so batches of several processes may deadlock at each attempt. A
// single op holds few locks, and takes those of what is numbered last.
func (w *writer) store(ops []*op) {
	var b *batch
	var err error
	careful := false
	for try := 1; ; try++ {
		b, err = w.attempt(ops, careful)
		if err == nil {
			break
		}
		if errors.Is(err, errApart) {
			careful, try = true, 0
			continue
		}
		if isStandby(err) { // it became one, or a proxy leads to one: nothing was written
			w.conn.broken, err = true, errors.Join(errBegin, err)
		}
		if e := w.reopen(); e != nil {
			err = errors.Join(err, e)
			break
		}
		// Any other error may have occurred after the database accepted the commit, so
		// another run could repeat the writes.
		if !passing(err) && !errors.Is(err, errBegin) {
			break
		}
		if try >= triesTogether && len(ops) > 1 && w.db.engine == Postgres {
			for i := range ops {
				w.store(ops[i : i+1])
			}
			return
		}
		if try >= maxTries {
			err = Overloaded("the database is busy; try again in a moment", err)
			break
		}
		time.Sleep(time.Duration(try) * time.Duration(1+rand.IntN(20)) * time.Millisecond)
	}
	if err != nil {
		err = w.db.Available(context.Background(), err)
		for _, o := range ops {
			o.done <- err
		}
		return
	}
	w.db.announce(b)
	for i, o := range ops {
		o.done <- w.available(b.results[i])
	}
}

// available is Available for the error of an op, which may be one that it has of the server.
func (w *writer) available(err error) error {
	if _, told := errors.AsType[*protocol.Error](err); told || err == nil {
		return err
	}
	return w.db.Available(context.Background(), err)
}

// beginOps marks the ops as begun and drops those that were withdrawn or whose
// caller's context has ended.
func beginOps(ops []*op) []*op {
	kept := ops[:0]
	for _, o := range ops {
		if !o.state.CompareAndSwap(opWaiting, opTaken) {
			continue
		}
		if err := o.ctx.Err(); err != nil {
			o.done <- err
			continue
		}
		if m := o.marks(); m != nil {
			m.taken = time.Now()
		}
		kept = append(kept, o)
	}
	return kept
}

// reopen replaces a lost connection.
func (w *writer) reopen() error {
	if !w.conn.broken {
		return nil
	}
	w.conn.close()
	c, err := openConn(context.Background(), w.db.main, w.db.engine, &w.db.heard)
	if err != nil {
		return fmt.Errorf("open the writing connection again: %w", err)
	}
	w.conn = c
	return nil
}

func (db *DB) announce(b *batch) {
	if b.wrote {
		db.version.Add(1)
	}
	for i := range b.changed.each {
		db.generations.changed(i, b.generation[i])
	}
	for topic := range b.topics {
		db.Hint(topic)
	}
}
