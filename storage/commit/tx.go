package commit

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
)

// A Tx is a running transaction. It is valid until the function that it was passed
// to returns, and is used by one goroutine.
type Tx struct {
	// Now is when the transaction began, UTC, in whole milliseconds: the only
	// clock for what is stored.
	Now time.Time

	db    *DB
	conn  *conn
	batch *batch // nil in a read
}

// Writes reports whether the transaction is of Write, and not of Read.
func (tx *Tx) Writes() bool { return tx.batch != nil }

// In is the context of a statement. A batch is the work of many callers, so no
// caller's context may end one of its statements.
func (tx *Tx) In(ctx context.Context) context.Context {
	if tx.batch != nil {
		return context.Background()
	}
	return ctx
}

// Dirty is called by each write that is not held back, before its statement. It
// opens the op's savepoint. A write that first reads what it depends on calls it
// before, so that locks it takes are released if it fails.
func (tx *Tx) Dirty() error {
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

// Exec runs a statement that changes data immediately, and returns how many rows it
// changed.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := tx.settleFor(query, args); err != nil {
		return 0, err
	}
	if err := tx.Dirty(); err != nil {
		return 0, err
	}
	return tx.ExecRaw(ctx, query, args...)
}

// ExecRaw is Exec without savepoint and without writing what is held back. It is for
// settings of the transaction, for Buffer.Number, and after Dirty for a statement that
// does not touch the rows that are held back of its table.
func (tx *Tx) ExecRaw(ctx context.Context, query string, args ...any) (int64, error) {
	if tx.db.watch != nil {
		tx.db.watch(tx, query, args)
	}
	tx.changes(query)
	return tx.conn.exec(tx.In(ctx), query, args...)
}

// Query runs a statement that returns rows.
func (tx *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := tx.settleFor(query, args); err != nil {
		return nil, err
	}
	return tx.QueryRaw(ctx, query, args...)
}

// QueryRaw is Query without writing what is held back, for Buffer.Number.
func (tx *Tx) QueryRaw(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if tx.db.watch != nil {
		tx.db.watch(tx, query, args)
	}
	tx.changes(query)
	return tx.conn.query(tx.In(ctx), query, args...)
}

// Lookup returns the first row of a query that runs with every write, by a unique key,
// so that one plan is right for all its values: PostgreSQL keeps it under a name.
func (tx *Tx) Lookup(ctx context.Context, query string, args ...any) Row {
	return First(tx.Query(ctx, query, tx.db.named(args)...))
}

// named are the arguments of a statement that PostgreSQL keeps under a name, with its
// plan, unless there is a pooler, which would not know the name.
func (db *DB) named(args []any) []any {
	if !db.direct {
		return args
	}
	return append([]any{pgx.QueryExecModeCacheStatement}, args...)
}

// A Row is the first row of a query.
type Row struct {
	rows *sql.Rows
	err  error
}

func First(rows *sql.Rows, err error) Row { return Row{rows, err} }

// Scan reads the row; ErrNotFound when there is none.
func (r Row) Scan(dest ...any) error {
	return r.Read(func(rows *sql.Rows) error { return rows.Scan(dest...) })
}

// Read calls scan at the row; ErrNotFound when there is none.
func (r Row) Read(scan func(*sql.Rows) error) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNotFound
	}
	if err := scan(r.rows); err != nil {
		return err
	}
	return r.rows.Err()
}

// Select builds a query for a row of bun or a slice of them; its Scan takes the
// context of In.
func (tx *Tx) Select(model any) *bun.SelectQuery {
	q := tx.conn.bun.NewSelect().Model(model)
	return q.Err(tx.settleFor(q.GetTableName(), nil))
}

// Insert inserts a row of bun; ErrExists when one of its keys is taken.
func (tx *Tx) Insert(ctx context.Context, model any) error {
	q := tx.conn.bun.NewInsert().Model(model).On("CONFLICT DO NOTHING")
	n, err := tx.insert(ctx, q)
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}

// Put inserts a row of bun, or if the key exists, replaces the named columns of the
// existing row.
func (tx *Tx) Put(ctx context.Context, model any, key string, columns ...string) error {
	q := tx.conn.bun.NewInsert().Model(model)
	if len(columns) == 0 {
		q = q.On("CONFLICT (" + key + ") DO NOTHING")
	} else {
		q = q.On("CONFLICT (" + key + ") DO UPDATE")
		for _, c := range columns {
			q = q.Set(c + " = EXCLUDED." + c)
		}
	}
	_, err := tx.insert(ctx, q)
	return err
}

func (tx *Tx) insert(ctx context.Context, q *bun.InsertQuery) (int64, error) {
	if err := tx.settleFor(q.GetTableName(), nil); err != nil {
		return 0, err
	}
	if err := tx.Dirty(); err != nil {
		return 0, err
	}
	tx.changes("INSERT INTO " + q.GetTableName())
	res, err := q.Exec(tx.In(ctx))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Wake wakes the receiver of a topic after the commit, if the write succeeds.
func (tx *Tx) Wake(topic string) { tx.batch.opTopics[topic] = true }

func (tx *Tx) Engine() Engine { return tx.db.engine }

// Connection is the connection of the transaction, for tests that ask its driver.
func (tx *Tx) Connection() *sql.Conn { return tx.conn.bun.Conn }
