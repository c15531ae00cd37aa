package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// An insert is the text of an INSERT of any number of rows.
type insert struct {
	into  string // INSERT INTO t (…) VALUES
	row   string // (?, ?, …)
	bySeq bool   // held-back rows are written in the order of their first value, a number
	alone bool   // only one row per statement
}

func (i insert) width() int { return strings.Count(i.row, "?") }

// sizes are the numbers of rows of one statement on SQLite, so that few texts are
// prepared. On PostgreSQL, where statements stay unnamed, one statement takes as
// many rows as its parameters allow.
var sizes = [...]int{32, 8, 1}

const maxParameters = 65_535 // of a statement of PostgreSQL

// size is how many of the remaining rows the next statement takes.
func (i insert) size(c *conn, left int) int {
	if i.alone {
		return 1
	}
	if c.engine == enginePostgres {
		return min(left, maxParameters/i.width())
	}
	for _, size := range sizes {
		if size <= left {
			return size
		}
	}
	return 1
}

// text is the statement for so many rows.
func (i insert) text(rows int) string { return i.into + i.row + strings.Repeat(", "+i.row, rows-1) }

// rows are the rows of one table that a batch holds back.
type rows struct {
	insert
	wide int
	args []any // wide values per row
	n    int
	mark int // rows of the ops before the running one

	number func(ctx context.Context, n int) error // completes the first n rows before they are written; may be nil
	seen   map[int64]bool                         // numbers of this transaction, also of rows that were dropped
}

func newRows(i insert) *rows { return &rows{insert: i, wide: i.width()} }

func (r *rows) add(args ...any) {
	r.args = append(r.args, args...)
	r.n++
}

// first reports whether the transaction has not seen this number before.
func (r *rows) first(seq int64) bool {
	if r.seen[seq] {
		return false
	}
	if r.seen == nil {
		r.seen = map[int64]bool{}
	}
	r.seen[seq] = true
	return true
}

// holds reports whether a row with this number is held back.
func (r *rows) holds(seq int64) bool {
	for i := range r.n {
		if r.args[i*r.wide] == any(seq) {
			return true
		}
	}
	return false
}

// cut drops the rows of the running op.
func (r *rows) cut() {
	if r.n > r.mark {
		clear(r.args[r.mark*r.wide:])
		r.args, r.n = r.args[:r.mark*r.wide], r.mark
	}
}

// flush writes the first n rows and keeps the rest.
func (r *rows) flush(ctx context.Context, c *conn, n int) error {
	if n == 0 {
		return nil
	}
	if r.bySeq {
		r.sort(n)
	}
	if r.number != nil {
		if err := r.number(ctx, n); err != nil {
			return err
		}
	}
	at := 0
	for at < n {
		size := r.size(c, n-at)
		if _, err := c.exec(ctx, r.text(size), r.args[at*r.wide:(at+size)*r.wide]...); err != nil {
			return fmt.Errorf("%s: %w", r.into, err)
		}
		at += size
	}
	left := copy(r.args, r.args[at*r.wide:])
	clear(r.args[left:])
	r.args, r.n, r.mark = r.args[:left], r.n-n, max(0, r.mark-n)
	return nil
}

// sort orders the first n rows by number: then rows are appended at the end of the
// table, and FTS5 buffers words only as long as numbers rise.
func (r *rows) sort(n int) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	seq := func(i int) int64 { return r.args[i*r.wide].(int64) }
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(seq(i), seq(j)) })
	sorted := make([]any, 0, len(r.args))
	for _, i := range order {
		sorted = append(sorted, r.args[i*r.wide:(i+1)*r.wide]...)
	}
	r.args = append(sorted, r.args[n*r.wide:]...)
}
