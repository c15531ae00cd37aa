package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// An Insert is the text of an INSERT of any number of rows.
type Insert struct {
	Into   string // INSERT INTO t (…) VALUES
	Row    string // (?, ?, …)
	Sorted bool   // held-back rows are written in the order of their first value, a number
	Alone  bool   // only one row per statement
}

func (i Insert) width() int { return strings.Count(i.Row, "?") }

// table is the t of Into.
func (i Insert) table() string { return strings.Fields(i.Into)[2] }

// sizes are the numbers of rows of one statement on SQLite, so that few texts are
// prepared. On PostgreSQL, where statements stay unnamed, one statement takes as
// many rows as its parameters allow.
var sizes = [...]int{32, 8, 1}

const maxParameters = 65_535 // of a statement of PostgreSQL

// size is how many of the remaining rows the next statement takes.
func (i Insert) size(e Engine, left int) int {
	if i.Alone {
		return 1
	}
	if e == Postgres {
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
func (i Insert) text(rows int) string { return i.Into + i.Row + strings.Repeat(", "+i.Row, rows-1) }

// An execer runs a statement now, or later and before any that follows.
type execer interface {
	exec(ctx context.Context, query string, args ...any) (int64, error)
}

// Rows are the rows that a batch holds back in a buffer.
type Rows struct {
	*Buffer
	engine Engine
	wide   int
	args   []any // wide values per row
	n      int
	mark   int // rows of the ops before the running one
}

// Row are the values of a row, which Buffer.Number may replace.
func (r *Rows) Row(i int) []any { return r.args[i*r.wide : (i+1)*r.wide] }

func (r *Rows) add(args ...any) {
	r.args = append(r.args, args...)
	r.n++
}

// holds reports whether a row with this value in a column is held back.
func (r *Rows) holds(column int, value any) bool {
	for i := range r.n {
		if r.Row(i)[column] == value {
			return true
		}
	}
	return false
}

// cut drops the rows of the running op.
func (r *Rows) cut() {
	if r.n > r.mark {
		clear(r.args[r.mark*r.wide:])
		r.args, r.n = r.args[:r.mark*r.wide], r.mark
	}
}

// flush writes the first n rows and keeps the rest.
func (r *Rows) flush(ctx context.Context, tx *Tx, to execer, n int) error {
	if n == 0 {
		return nil
	}
	if r.Sorted {
		r.sort(n)
	}
	if r.Number != nil {
		if err := r.Number(ctx, tx, r, n); err != nil {
			return err
		}
	}
	at := 0
	for at < n {
		size := r.size(r.engine, n-at)
		if _, err := to.exec(ctx, r.text(size), r.args[at*r.wide:(at+size)*r.wide]...); err != nil {
			return fmt.Errorf("%s: %w", r.Into, err)
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
func (r *Rows) sort(n int) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	seq := func(i int) int64 { return r.Row(i)[0].(int64) }
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(seq(i), seq(j)) })
	sorted := make([]any, 0, len(r.args))
	for _, i := range order {
		sorted = append(sorted, r.Row(i)...)
	}
	r.args = append(sorted, r.args[n*r.wide:]...)
}
