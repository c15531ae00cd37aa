package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

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

	changed    held    // groups whose tables were changed
	generation []int64 // by group: what the batch left in the table generation

	rows  []Rows // by buffer
	split bool   // the batch must run again in careful mode
	ahead map[[16]byte]aheadState

	// State of the running op:
	savepoint bool
	touched   bool
	spent     [][16]byte
	taken     [][16]byte // the spent keys that were inserted ahead
	opTopics  map[string]bool
	opChanged held
}

func (w *writer) attempt(ops []*op, careful bool) (_ *batch, err error) {
	ctx := context.Background()
	b := w.newBatch(len(ops), careful)
	ended := false
	defer func() {
		if !ended { // an error, or fn has ended its goroutine
			if _, e := w.conn.exec(ctx, "ROLLBACK"); e != nil {
				w.conn.broken = true
			}
		}
	}()
	if err := b.begin(ctx, ops); err != nil {
		ended = errors.Is(err, errBegin)
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
	for _, o := range ops {
		if m := o.marks(); m != nil {
			m.commits, m.batch = time.Now(), len(ops)
		}
	}
	if err := b.commit(ctx); err != nil {
		return nil, err
	}
	ended = true
	return b, nil
}

func (w *writer) newBatch(ops int, careful bool) *batch {
	b := &batch{
		db: w.db, conn: w.conn, careful: careful, single: ops == 1,
		results: make([]error, ops), topics: map[string]bool{}, opTopics: map[string]bool{}, rows: w.db.plan.rows(),
	}
	b.tx = &Tx{Now: w.db.Clock(), db: w.db, conn: w.conn, batch: b}
	return b
}

// begin begins the transaction, and on PostgreSQL spends in the same round trip.
func (b *batch) begin(ctx context.Context, ops []*op) error {
	if b.db.engine == Postgres {
		var p pipeline
		p.exec(ctx, b.db.engine.begin())
		if err := b.spendAhead(ctx, &p, ops); err != nil {
			b.conn.broken = true
			return errors.Join(errBegin, err)
		}
		done, err := p.send(ctx, b.conn)
		if err == nil || done > 0 && answered(err) {
			return err
		}
		b.conn.broken = true
		return errors.Join(errBegin, err)
	}
	if _, err := b.conn.exec(ctx, b.db.engine.begin()); err != nil {
		return errors.Join(errBegin, err)
	}
	return nil
}

// commit writes what is held back and commits, on PostgreSQL in one round trip.
func (b *batch) commit(ctx context.Context) error {
	var last pipeline
	var to execer = b.conn
	if b.db.engine == Postgres {
		to = &last
	}
	if err := errors.Join(b.giveBack(ctx, to), b.finish(ctx, to)); err != nil {
		return b.apart(err)
	}
	if b.aborted() {
		// PostgreSQL would answer COMMIT with a rollback and no error.
		return b.apart(errors.New("storage: the transaction was given up"))
	}
	if err := b.countChanges(ctx, &last); err != nil {
		return err
	}
	if b.db.engine == Postgres {
		last.exec(ctx, "COMMIT")
		done, err := last.send(ctx, b.conn)
		if err != nil && done < last.len()-1 && answered(err) {
			return b.apart(err)
		}
		return err
	}
	if _, err := b.conn.exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
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
	b.savepoint, b.touched, b.opChanged = false, false, 0
	b.spent, b.taken = b.spent[:0], b.taken[:0]
	clear(b.opTopics)
	for i := range b.rows {
		b.rows[i].mark = b.rows[i].n
	}
	if b.careful {
		if err := b.openSavepoint(ctx); err != nil {
			return nil, err
		}
	}
	m := o.marks()
	if m != nil {
		m.began, m.commits = time.Now(), time.Time{}
	}
	result = b.call(o)
	if m != nil {
		m.ran = time.Now()
	}
	if b.split {
		return nil, errors.Join(errApart, result)
	}
	if result == nil && b.careful {
		result = b.finish(ctx, b.conn)
	}
	if b.aborted() {
		if !b.savepoint && !b.single {
			return nil, b.apart(errors.New("a statement outside a savepoint failed"))
		}
		if result == nil {
			result = errors.New("storage: a failed statement was passed over")
		}
	}
	if result != nil && b.db.engine == Postgres && passing(result) {
		return nil, result
	}
	if isStandby(result) {
		return nil, result
	}
	if result == nil {
		if b.savepoint {
			if _, err := b.conn.exec(ctx, "RELEASE op"); err != nil {
				return nil, fmt.Errorf("release savepoint: %w", err)
			}
		}
		b.wrote = b.wrote || b.touched
		b.changed |= b.opChanged
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
	for i := range b.rows {
		b.rows[i].cut()
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

// openSavepoint begins the savepoint of the running op. The held-back rows of
// earlier ops are written first, so that undoing this op does not undo them, except
// those of late buffers.
func (b *batch) openSavepoint(ctx context.Context) error {
	if b.savepoint {
		return nil
	}
	for i := range b.rows {
		r := &b.rows[i]
		if r.Late {
			continue
		}
		if err := r.flush(ctx, b.tx, b.conn, r.mark); err != nil {
			return b.apart(err)
		}
	}
	if _, err := b.conn.exec(ctx, "SAVEPOINT op"); err != nil {
		return b.apart(fmt.Errorf("savepoint: %w", err))
	}
	b.savepoint = true
	return nil
}

// finish writes all held-back rows, in the order of the buffers.
func (b *batch) finish(ctx context.Context, to execer) error {
	for i := range b.rows {
		if err := b.rows[i].flush(ctx, b.tx, to, b.rows[i].n); err != nil {
			return err
		}
	}
	return nil
}

// aborted reports whether PostgreSQL refuses all further statements until the
// transaction or a savepoint is rolled back.
func (b *batch) aborted() bool {
	if b.db.engine != Postgres {
		return false
	}
	status := byte('E')
	err := b.conn.bun.Conn.Raw(func(c any) error {
		status = c.(*stdlib.Conn).Conn().PgConn().TxStatus()
		return nil
	})
	return err != nil || status == 'E'
}
