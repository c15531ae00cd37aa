package commit

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// A Buffer is a table of which a batch holds rows back.
type Buffer struct {
	Insert
	Late bool // written at the end of the batch if possible; otherwise also before a savepoint

	// Tables are others than that of Insert which change when the rows are written. A
	// statement that names one of them writes the rows first too.
	Tables []string

	// Key, if set, is a column, with its place in a row. A statement that names the table
	// only with "Key = ?" leaves rows held back when none of its arguments is their key.
	Key   string
	KeyAt int

	// Number, if set, completes the first n rows before they are written, by ExecRaw and
	// QueryRaw.
	Number func(ctx context.Context, tx *Tx, r *Rows, n int) error
}

// held is a set of buffers, or of groups, by their places.
type held uint64

// each returns the places.
func (h held) each(yield func(int) bool) {
	for ; h != 0; h &= h - 1 {
		if !yield(bits.TrailingZeros64(uint64(h))) {
			return
		}
	}
}

// named are the buffers whose tables a statement names, and the groups that it changes.
type named struct {
	all   held
	byKey held // of all, those whose rows the statement selects by their key only

	changed held // the groups with tables that it changes (generation.go)
}

// A plan is what the buffers of a database need of a statement.
type plan struct {
	engine  Engine
	buffers []Buffer
	wide    []int
	whole   []string        // see Rows; empty where statements have no names
	in      map[string]held // by table

	groupsOf map[string]held // by table
}

func newPlan(e Engine, buffers []Buffer, groups []Group) *plan {
	p := &plan{engine: e, buffers: buffers, in: map[string]held{}, groupsOf: map[string]held{}}
	for i, g := range groups {
		for _, table := range g.Tables {
			p.groupsOf[table] |= 1 << i
		}
	}
	for i, b := range buffers {
		p.wide = append(p.wide, b.width())
		for _, table := range append([]string{b.table()}, b.Tables...) {
			p.in[table] |= 1 << i
		}
	}
	return p
}

// rows are the empty buffers of a batch.
func (p *plan) rows() []Rows {
	all := make([]Rows, len(p.buffers))
	for i := range all {
		all[i] = Rows{Buffer: &p.buffers[i], engine: p.engine, wide: p.wide[i]}
		if len(p.whole) > 0 {
			all[i].whole = p.whole[i]
		}
	}
	return all
}

// columnTypes asks the catalog and not information_schema, whose views cost a hundred times as much.
const columnTypes = `SELECT c.relname, a.attname, t.typname
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped`

// readTypes makes the statements with arrays of PostgreSQL.
func (p *plan) readTypes(ctx context.Context, tables *sql.DB) error {
	types := map[string]map[string]string{}
	for _, b := range p.buffers {
		types[b.table()] = map[string]string{}
	}
	rows, err := tables.QueryContext(ctx, columnTypes, slices.Collect(maps.Keys(types)))
	if err != nil {
		return err
	}
	for rows.Next() {
		var table, column, of string
		if err := rows.Scan(&table, &column, &of); err != nil {
			return errors.Join(err, rows.Close())
		}
		types[table][column] = of
	}
	for _, b := range p.buffers {
		p.whole = append(p.whole, b.arrays(types[b.table()]))
	}
	return rows.Err()
}

// namedBy finds the tables that a statement names. Every word of the text counts as a
// name, so that none is missed; a word that means something else there costs an
// unnecessary write.
func (p *plan) namedBy(query string) (n named) {
	n.changed = p.changedBy(query)
	words := map[string]int{}
	for word := range strings.FieldsFuncSeq(query, notName) {
		n.all |= p.in[word]
		words[word]++
	}
	for i := range n.all.each {
		b := &p.buffers[i]
		others := slices.ContainsFunc(b.Tables, func(t string) bool { return words[t] > 0 })
		if b.Key != "" && !others && strings.Count(query, b.Key+" = ?") == words[b.table()] {
			n.byKey |= 1 << i
		}
	}
	return n
}

func notName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// maxNamed is the length of the longest cached text, in bytes; longer ones contain
// long lists of placeholders.
const maxNamed = 4096

// namedBy is that of the plan with a cache by the statement's text.
func (c *conn) namedBy(p *plan, query string) named {
	if len(query) > maxNamed {
		return p.namedBy(query)
	}
	n, known := c.named[query]
	if !known {
		if c.named == nil || len(c.named) >= maxStmts {
			c.named = map[string]named{}
		}
		n = p.namedBy(query)
		c.named[query] = n
	}
	return n
}

// Hold holds a row back. When the database refuses it later, the batch runs again in
// careful mode.
func (tx *Tx) Hold(buffer int, values ...any) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	b.touched = true
	b.rows[buffer].add(values...)
	return nil
}

// Careful reports whether the transaction runs again because a held-back row was
// refused: a row that may be refused is to be written now, so that its own write gets
// the error.
func (tx *Tx) Careful() bool { return tx.batch != nil && tx.batch.careful }

// Held is how many rows of a buffer are held back.
func (tx *Tx) Held(buffer int) int {
	if tx.batch == nil {
		return 0
	}
	return tx.batch.rows[buffer].n
}

// Settle writes what is held back in buffers, as a statement does that names their
// tables. A write that will need it calls it before it changes anything else: of late
// buffers, rows of earlier ops cannot be written inside its savepoint.
func (tx *Tx) Settle(buffers ...int) error {
	var which held
	for _, i := range buffers {
		which |= 1 << i
	}
	if tx.batch == nil {
		return nil
	}
	return tx.batch.settle(which)
}

// SettleRow settles a buffer that has a row with this first value.
func (tx *Tx) SettleRow(buffer int, first any) error {
	if tx.batch == nil || !tx.batch.rows[buffer].holds(0, first) {
		return nil
	}
	return tx.Settle(buffer)
}

// settleFor writes the held-back rows of the tables that a statement names.
func (tx *Tx) settleFor(query string, args []any) error {
	b := tx.batch
	if b == nil {
		return nil
	}
	all := b.held()
	if all == 0 {
		return nil
	}
	n := tx.conn.namedBy(tx.db.plan, query)
	for i := range (n.byKey & all).each {
		r := &b.rows[i]
		if !slices.ContainsFunc(args, func(arg any) bool { return r.holdsKey(arg) }) {
			all &^= 1 << i
		}
	}
	return b.settle(n.all & all)
}

func (r *Rows) holdsKey(key any) bool {
	_, text := key.(string) // []byte cannot be compared
	return text && r.holds(r.KeyAt, key)
}

// held returns the buffers that have rows.
func (b *batch) held() (all held) {
	for i := range b.rows {
		if b.rows[i].n > 0 {
			all |= 1 << i
		}
	}
	return all
}

// settle writes the rows of buffers, those of the running op inside its savepoint
// only. Those of earlier ops must not be written inside it: a batch in which that
// would be needed runs again in careful mode.
func (b *batch) settle(which held) error {
	ctx := context.Background()
	own := false
	for i := range which.each {
		r := &b.rows[i]
		if r.mark > 0 && b.savepoint {
			return b.apart(errors.New("storage: rows of earlier writes are held back"))
		}
		if err := r.flush(ctx, b.tx, b.conn, r.mark); err != nil {
			return b.apart(err)
		}
		own = own || r.n > 0
	}
	if !own {
		return nil
	}
	if !b.single {
		if err := b.openSavepoint(ctx); err != nil {
			return err
		}
	}
	for i := range which.each {
		r := &b.rows[i]
		if err := r.flush(ctx, b.tx, b.conn, r.n); err != nil {
			return b.apart(err)
		}
	}
	return nil
}
