package storage

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/storage/commit"
)

// Verbs of the subjects. Those that run a statement first write what the batch holds
// back of the tables that it names (commit.Tx).

func (tx *Tx) writes() bool  { return tx.sql.Writes() }
func (tx *Tx) careful() bool { return tx.sql.Careful() }

// dirty is called before a write that reads before it writes.
func (tx *Tx) dirty() error { return tx.sql.Dirty() }

// wake wakes the receiver of a topic after the commit.
func (tx *Tx) wake(topic string) { tx.sql.Wake(topic) }

// write runs a statement that changes data, and returns how many rows it changed.
func (tx *Tx) write(ctx context.Context, query string, args ...any) (int64, error) {
	return tx.sql.Exec(ctx, query, args...)
}

// exec is write for a statement of which the number of rows does not matter.
func (tx *Tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := tx.write(ctx, query, args...)
	return err
}

// raw is for settings of the transaction and for commit.Tx.ExecRaw.
func (tx *Tx) raw(ctx context.Context, query string, args ...any) error {
	_, err := tx.sql.ExecRaw(ctx, query, args...)
	return err
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

// query runs a statement that returns rows.
func (tx *Tx) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return tx.sql.Query(ctx, query, args...)
}

// row is the first row of a query; its Scan returns ErrNotFound when there is none.
func (tx *Tx) row(ctx context.Context, query string, args ...any) commit.Row {
	return commit.First(tx.sql.Query(ctx, query, args...))
}

// lookup is row for a statement that runs with every write, by a unique key.
func (tx *Tx) lookup(ctx context.Context, query string, args ...any) commit.Row {
	return tx.sql.Lookup(ctx, query, args...)
}

// A scanner is a *sql.Rows that is positioned at a row.
type scanner interface{ Scan(dest ...any) error }

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

// lockName makes other transactions that lock the same name wait for the end of
// this one; SQLite has one writer and needs no lock. A batch that fails with a
// deadlock is run again.
func (tx *Tx) lockName(ctx context.Context, name string) error {
	if tx.db.engine != enginePostgres {
		return nil
	}
	_, err := tx.write(ctx, `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`, name)
	return err
}

// tryLockName locks the same name as lockName, or reports at once that another
// transaction has it.
func (tx *Tx) tryLockName(ctx context.Context, name string) (bool, error) {
	if tx.db.engine != enginePostgres {
		return false, nil
	}
	var locked bool
	err := tx.row(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))`, name).Scan(&locked)
	return !locked, err
}

// marks are n placeholders.
func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

func toAny(texts []string) []any {
	all := make([]any, len(texts))
	for i, s := range texts {
		all[i] = s
	}
	return all
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
