package storage

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"

	"github.com/uptrace/bun"
)

// in is the context of a statement. A batch is the work of many callers, so no
// caller's context may end one of its statements.
func (tx *Tx) in(ctx context.Context) context.Context {
	if tx.batch != nil {
		return context.Background()
	}
	return ctx
}

// write runs a statement that changes data immediately, after the held-back rows
// of the tables that it names are written.
func (tx *Tx) write(ctx context.Context, query string, args ...any) (int64, error) {
	if err := tx.settleFor(query, args); err != nil {
		return 0, err
	}
	return tx.writeUnsettled(ctx, query, args...)
}

// writeUnsettled is write for a statement that does not touch the rows that are held back.
func (tx *Tx) writeUnsettled(ctx context.Context, query string, args ...any) (int64, error) {
	if err := tx.dirty(); err != nil {
		return 0, err
	}
	if tx.db.watchWrites {
		tx.db.watch(tx, query, args)
	}
	return tx.conn.exec(tx.in(ctx), query, args...)
}

// deleteSome deletes the rows of a table that match a condition with an order and a
// limit, and returns how many. key are the columns that identify a row. PostgreSQL gets their keys in an array: it would
// read the whole table rather than join a thousand keys to it.
func (tx *Tx) deleteSome(ctx context.Context, table, key, found string, args ...any) (int, error) {
	query := `DELETE FROM ` + table + ` WHERE (` + key + `) IN (SELECT ` + key + ` FROM ` + table + ` s WHERE ` + found + `)`
	if tx.db.engine == enginePostgres {
		query = `DELETE FROM ` + table + ` WHERE ctid = ANY(ARRAY(SELECT ctid FROM ` + table + ` s WHERE ` + found + `))`
	}
	n, err := tx.write(ctx, query, args...)
	return int(n), err
}

// query runs a statement that returns rows, after what is held back of the tables
// that it names.
func (tx *Tx) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := tx.settleFor(query, args); err != nil {
		return nil, err
	}
	return tx.queryUnsettled(ctx, query, args...)
}

// queryUnsettled is query for what writes the rows that are held back.
func (tx *Tx) queryUnsettled(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if tx.db.watch != nil {
		tx.db.watch(tx, query, args)
	}
	return tx.conn.query(tx.in(ctx), query, args...)
}

// A scanner is a *sql.Rows that is positioned at a row.
type scanner interface{ Scan(dest ...any) error }

// A row is the first row of a query.
type row struct {
	rows *sql.Rows
	err  error
}

func (tx *Tx) row(ctx context.Context, query string, args ...any) row {
	return first(tx.query(ctx, query, args...))
}

func first(rows *sql.Rows, err error) row { return row{rows, err} }

// Scan reads the row; ErrNotFound when there is none.
func (r row) Scan(dest ...any) error {
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
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Err()
}

// collect reads every row of a query.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	items := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, rows.Err()
}

// Builders of bun, for statements that are not on the hot path. Those that write
// open the op's savepoint first.

func (tx *Tx) selectFrom(model any) *bun.SelectQuery { return tx.conn.bun.NewSelect().Model(model) }

// insert inserts the row; ErrExists when one of its keys is taken.
func (tx *Tx) insert(ctx context.Context, model any) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	res, err := tx.conn.bun.NewInsert().Model(model).On("CONFLICT DO NOTHING").Exec(tx.in(ctx))
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}

// put inserts the row, or if the key exists, replaces the named columns of the
// existing row.
func (tx *Tx) put(ctx context.Context, model any, key string, columns ...string) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	q := tx.conn.bun.NewInsert().Model(model)
	if len(columns) == 0 {
		q = q.On("CONFLICT (" + key + ") DO NOTHING")
	} else {
		q = q.On("CONFLICT (" + key + ") DO UPDATE")
		for _, c := range columns {
			q = q.Set(c + " = EXCLUDED." + c)
		}
	}
	_, err := q.Exec(tx.in(ctx))
	return err
}

// found converts sql.ErrNoRows to ErrNotFound.
func found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// one returns ErrNotFound if a statement changed nothing.
func one(n int64, err error) error {
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// Times are stored as milliseconds; zero is the zero time.

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func millisPtr(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func momentPtr(ms *int64) *time.Time {
	if ms == nil {
		return nil
	}
	t := time.UnixMilli(*ms).UTC()
	return &t
}

// page cuts a listing that was read with one more than its limit.
func page[T any](items []T, limit int, listing string, position func(T) string) protocol.Page[T] {
	p := protocol.Page[T]{Items: items}
	if len(items) > limit {
		p.Items = items[:limit]
		p.Next = protocol.Cursor(listing, position(p.Items[limit-1]))
	}
	return p
}

// bounded is the requested limit within the allowed range.
func bounded(limit int) int {
	if limit <= 0 {
		return protocol.DefaultLimit
	}
	return min(limit, protocol.MaxLimit)
}

// position reads the number in a cursor; start if there is no cursor.
func position(listing, after string, start int64) (int64, error) {
	p, err := protocol.ParseCursor(listing, after)
	if err != nil || p == "" {
		return start, err
	}
	n, err := strconv.ParseInt(p, 10, 64)
	if err != nil || n < 0 {
		return 0, protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this listing; leave it out to start from the newest item")
	}
	return n, nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// seqOf is the number that orders rows with time-ordered ids (TypeIDs over a
// UUIDv7): 42 bits of milliseconds and the first 21 random bits. It sorts as the id
// does; if two ids share it, the later one gets a slightly higher number.
func seqOf(id string) (int64, error) {
	if len(id) < 27 || id[len(id)-27] != '_' {
		return 0, fmt.Errorf("storage: %q is not an id", id)
	}
	var hi, lo uint64
	for _, c := range []byte(id[len(id)-26:]) {
		v := decodeDigit(c)
		if v > 31 {
			return 0, fmt.Errorf("storage: %q is not an id", id)
		}
		hi, lo = hi<<5|lo>>59, lo<<5|uint64(v)
	}
	ms := hi >> 16
	if ms == 0 || ms >= 1<<42 {
		return 0, fmt.Errorf("storage: the time in id %q is out of range", id)
	}
	return int64(ms<<21 | (hi&0xfff)<<9 | lo>>53&0x1ff), nil
}

// decodeDigit is the value of a digit of Crockford's base32 in lower case, 255
// for any other character.
func decodeDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'h':
		return c - 'a' + 10
	case c == 'j' || c == 'k':
		return c - 'j' + 18
	case c == 'm' || c == 'n':
		return c - 'm' + 20
	case c >= 'p' && c <= 't':
		return c - 'p' + 22
	case c >= 'v' && c <= 'z':
		return c - 'v' + 27
	}
	return 255
}

// nearby is how far an id may be from its number.
const nearby = 16

// Positions that are addresses are longer than a public cursor may be. Only
// listings for the operator and for federation use them.

func longPosition(listing, after string) (string, error) {
	if after == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(after)
	if name, position, ok := strings.Cut(string(raw), "\x00"); err == nil && ok && name == listing {
		return position, nil
	}
	return "", protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this listing; leave it out to start from the beginning")
}
