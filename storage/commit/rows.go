package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
// prepared. On PostgreSQL behind a pooler, where statements stay unnamed, one statement
// takes as many rows as its parameters allow; without one, see arrays.
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

// arrays is the statement of PostgreSQL for any number of rows, with an array for each
// column, so that one text, and its plan, which is kept, serves all batches. types are
// those of the columns of the table, by name.
func (i Insert) arrays(types map[string]string) string {
	_, list, _ := strings.Cut(i.Into, "(")
	list, _, _ = strings.Cut(list, ")")
	values := splitValues(strings.TrimSuffix(strings.TrimPrefix(i.Row, "("), ")"))
	var arrays, names []string
	for at, column := range strings.Split(list, ",") {
		if !strings.Contains(values[at], "?") {
			continue
		}
		of := types[strings.TrimSpace(column)]
		if values[at] != "?" { // an expression of a text
			of = "text"
		}
		name := "c" + strconv.Itoa(len(names))
		arrays = append(arrays, "?::"+of+"[]")
		names, values[at] = append(names, name), strings.Replace(values[at], "?", name, 1)
	}
	return Postgres.rebind(strings.TrimSuffix(i.Into, "VALUES ") + "SELECT " + strings.Join(values, ", ") +
		" FROM unnest(" + strings.Join(arrays, ", ") + ") r (" + strings.Join(names, ", ") + ")")
}

// splitValues splits a list of expressions.
func splitValues(list string) (values []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			values, from = append(values, strings.TrimSpace(list[from:i])), i+1
		}
	}
	return append(values, strings.TrimSpace(list[from:]))
}

// An execer runs a statement now, or later and before any that follows.
type execer interface {
	exec(ctx context.Context, query string, args ...any) (int64, error)
}

// Rows are the rows that a batch holds back in a buffer.
type Rows struct {
	*Buffer
	engine Engine
	whole  string // the statement of arrays, "" where the rows are written in lists
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
	if r.whole != "" {
		if err := tx.conn.keep(ctx, r.whole); err != nil {
			return fmt.Errorf("%s: %w", r.Into, err)
		}
		if _, err := to.exec(ctx, r.whole, r.columns(n)...); err != nil {
			return fmt.Errorf("%s: %w", r.Into, err)
		}
		at = n
	}
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

// columns are the values of the first n rows, an array for each column.
func (r *Rows) columns(n int) []any {
	all := make([]any, r.wide)
	cells := make([]any, n*r.wide)
	for c := range all {
		column := cells[c*n : (c+1)*n]
		for i := range column {
			column[i] = r.args[i*r.wide+c]
		}
		all[c] = column
	}
	return all
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
