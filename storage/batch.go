package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/jackc/pgx/v5/stdlib"
)

// errApart means that an error cannot be attributed to one op of the batch, which
// must run again with a savepoint around every op.
var errApart = errors.New("storage: run the batch again with savepoints")

// errBegin means that a transaction did not begin, so nothing was written.
var errBegin = errors.New("storage: begin a write")

// A batch is one transaction of several ops.
//
// The ops of the hot path only spend and append. Their rows are held back and
// written for the whole batch with one statement per table. They need no savepoint:
// to undo them, the batch drops their held-back rows and deletes what they spent.
// Any other write opens a savepoint for its op first (dirty), and any statement
// that names a table with held-back rows writes them first (held.go).
//
// When the database refuses held-back rows (a duplicate id), it is not known which
// op they belong to. Then the transaction is rolled back and the ops run again in
// careful mode: with a savepoint around each, and no rows held back after its end.
type batch struct {
	db      *DB
	conn    *conn
	tx      *Tx
	careful bool
	single  bool // one op: it is undone by rolling back the transaction
	results []error
	wrote   bool
	topics  map[string]bool

	posts, tags, words, feed, log, writers *rows
	news                                   *newsRows
	split                                  bool // the batch must run again in careful mode
	ahead                                  map[[16]byte]aheadState

	// State of the running op:
	savepoint bool
	touched   bool
	spent     [][16]byte
	taken     [][16]byte // the spent keys that were inserted ahead
	opTopics  map[string]bool
}

func (w *writer) attempt(ops []*op, careful bool) (_ *batch, err error) {
	ctx := context.Background()
	b := &batch{
		db: w.db, conn: w.conn, careful: careful, single: len(ops) == 1,
		results: make([]error, len(ops)), topics: map[string]bool{}, opTopics: map[string]bool{},
		posts: newRows(postInsert), tags: newRows(tagInsert), words: newRows(postWords.insert(w.db.engine)),
		feed: newRows(feedInsert), log: newRows(logInsert), writers: newRows(writerInsert), news: &newsRows{rows: newRows(newsInsert)},
	}
	if w.db.engine == enginePostgres {
		b.log = newRows(waitingInsert)
	} else {
		b.log.number = b.numberLog
	}
	b.tx = &Tx{Now: w.db.clock(), db: w.db, conn: w.conn, batch: b, told: w.db.told.Load()}
	if _, err := w.conn.exec(ctx, w.db.engine.begin()); err != nil {
		w.conn.broken = w.db.engine == enginePostgres
		return nil, errors.Join(errBegin, err)
	}
	defer b.forgetSpends()
	ended := false
	defer func() {
		if !ended { // an error, or fn has ended its goroutine
			if _, e := w.conn.exec(ctx, "ROLLBACK"); e != nil {
				w.conn.broken = true
			}
		}
	}()
	if err := b.spendAhead(ctx, ops); err != nil {
		return nil, err
	}
	for i, o := range ops {
		if b.results[i], err = b.run(o); err != nil {
			return nil, err
		}
	}
	if b.single && b.results[0] != nil {
		b.wrote, b.topics = false, nil
		return b, nil
	}
	if err := errors.Join(b.giveBack(ctx), b.finish(ctx)); err != nil {
		return nil, b.apart(err)
	}
	if b.aborted() {
		// PostgreSQL would answer COMMIT with a rollback and no error.
		return nil, b.apart(errors.New("storage: the transaction was given up"))
	}
	if _, err := w.conn.exec(ctx, "COMMIT"); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	ended = true
	return b, nil
}

// apart returns an error that makes the batch run again in careful mode, when err
// cannot be attributed to one op.
func (b *batch) apart(err error) error {
	if b.careful || passing(err) {
		return err
	}
	b.split = true
	return errors.Join(errApart, err)
}

// run runs one op. result is the op's error; fatal ends the batch.
func (b *batch) run(o *op) (result, fatal error) {
	ctx := context.Background()
	b.savepoint, b.touched = false, false
	b.spent, b.taken = b.spent[:0], b.taken[:0]
	clear(b.opTopics)
	for _, r := range b.buffers() {
		r.mark = r.n
	}
	if b.careful {
		if err := b.openSavepoint(ctx); err != nil {
			return nil, err
		}
	}
	result = b.call(o)
	if b.split {
		return nil, errors.Join(errApart, result)
	}
	if result == nil && b.careful {
		result = b.finish(ctx)
	}
	if b.aborted() {
		if !b.savepoint && !b.single {
			return nil, b.apart(errors.New("a statement outside a savepoint failed"))
		}
		if result == nil {
			result = errors.New("storage: a failed statement was passed over")
		}
	}
	if result != nil && b.db.engine == enginePostgres && passing(result) {
		return nil, result
	}
	if result == nil {
		if b.savepoint {
			if _, err := b.conn.exec(ctx, "RELEASE op"); err != nil {
				return nil, fmt.Errorf("release savepoint: %w", err)
			}
		}
		b.wrote = b.wrote || b.touched
		maps.Copy(b.topics, b.opTopics)
		return nil, nil
	}
	if b.single {
		return result, nil // the transaction is rolled back whole
	}
	if err := b.undo(ctx); err != nil {
		return nil, b.apart(fmt.Errorf("undo: %w", err))
	}
	return result, nil
}

// call runs the op's function and turns a panic into an error.
func (b *batch) call(o *op) (err error) {
	defer func() {
		if v := recover(); v != nil {
			b.db.log.ErrorContext(o.ctx, "write panicked", "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("storage: write panicked: %v", v)
		}
	}()
	return o.fn(context.WithoutCancel(o.ctx), b.tx)
}

// undo undoes the running op.
func (b *batch) undo(ctx context.Context) error {
	for _, r := range b.buffers() {
		r.cut()
	}
	if b.savepoint {
		if _, err := b.conn.exec(ctx, "ROLLBACK TO op"); err != nil {
			return err
		}
		if _, err := b.conn.exec(ctx, "RELEASE op"); err != nil {
			return err
		}
	}
	for _, key := range b.taken {
		b.ahead[key] = aheadFree
	}
	for _, key := range b.spent {
		if _, err := b.conn.exec(ctx, `DELETE FROM spent WHERE key = ?`, key[:]); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) buffers() [7]*rows {
	return [7]*rows{b.writers, b.words, b.posts, b.tags, b.feed, b.log, b.news.rows}
}

// tables are the buffers that are written before a savepoint. The others are written
// at the end of the batch if possible: words, because each savepoint makes FTS5
// write out its buffer, and rows that are numbered over all boards (tally.go).
func (b *batch) tables() [4]*rows { return [4]*rows{b.posts, b.tags, b.log, b.writers} }

// openSavepoint begins the savepoint of the running op. The held-back rows of
// earlier ops are written first, so that undoing this op does not undo them.
func (b *batch) openSavepoint(ctx context.Context) error {
	if b.savepoint {
		return nil
	}
	for _, r := range b.tables() {
		if err := r.flush(ctx, b.conn, r.mark); err != nil {
			return err
		}
	}
	if _, err := b.conn.exec(ctx, "SAVEPOINT op"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	b.savepoint = true
	return nil
}

// finish writes all held-back rows.
func (b *batch) finish(ctx context.Context) error {
	if err := b.words.flush(ctx, b.conn, b.words.n); err != nil {
		return err
	}
	if err := b.flush(ctx); err != nil {
		return err
	}
	return b.flushFeed(ctx, b.feed.n, b.news.n)
}

// flush writes the held-back rows of tables.
func (b *batch) flush(ctx context.Context) error {
	for _, r := range b.tables() {
		if err := r.flush(ctx, b.conn, r.n); err != nil {
			return err
		}
	}
	return nil
}

// aborted reports whether PostgreSQL refuses all further statements until the
// transaction or a savepoint is rolled back.
func (b *batch) aborted() bool {
	if b.db.engine != enginePostgres {
		return false
	}
	status := byte('E')
	err := b.conn.bun.Conn.Raw(func(c any) error {
		status = c.(*stdlib.Conn).Conn().PgConn().TxStatus()
		return nil
	})
	return err != nil || status == 'E'
}

// dirty is called before each write that is not held back. It opens the op's
// savepoint.
func (tx *Tx) dirty() error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	b.touched = true
	if b.single || b.savepoint {
		return nil
	}
	return b.openSavepoint(context.Background())
}

// settle writes the held-back rows of tables. Rows of the running op are written
// inside its savepoint only.
func (tx *Tx) settle() error {
	b := tx.batch
	if b == nil {
		return nil
	}
	held, own := false, false
	for _, r := range b.tables() {
		held, own = held || r.n > 0, own || r.n > r.mark
	}
	if !held {
		return nil
	}
	if own && !b.single {
		if err := b.openSavepoint(context.Background()); err != nil {
			return err
		}
	}
	if err := b.flush(context.Background()); err != nil {
		return b.apart(err)
	}
	return nil
}

// settleWords writes the words that are held back. An op that will delete words
// calls it before dirty: words of earlier ops must not be written inside the
// savepoint of this one. A batch in which that would be needed runs again in
// careful mode.
func (tx *Tx) settleWords() error {
	b := tx.batch
	if b == nil || b.words.n == 0 {
		return nil
	}
	ctx := context.Background()
	if b.words.mark > 0 {
		if b.savepoint {
			return b.apart(errors.New("storage: words of earlier writes are held back"))
		}
		if err := b.words.flush(ctx, b.conn, b.words.mark); err != nil {
			return b.apart(err)
		}
	}
	if b.words.n > 0 && !b.single {
		if err := b.openSavepoint(ctx); err != nil {
			return b.apart(err)
		}
	}
	if err := b.words.flush(ctx, b.conn, b.words.n); err != nil {
		return b.apart(err)
	}
	return nil
}
