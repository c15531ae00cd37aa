package commit

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"stoa/protocol"
)

// A Group is tables that something in memory is made of. Its generation grows with each
// batch of any process that changes one of them: a batch counts in the table generation,
// as the last thing before its commit, so that counts of several processes wait for each
// other no longer than that.
type Group struct {
	Name   string
	Tables []string
}

const (
	lookEvery = time.Second     // how often the changes of other processes are looked for, by one statement
	lookLimit = 2 * time.Second // how long a look says that nothing changed
)

// generations are what a process knows of the groups of its database.
type generations struct {
	groups []Group
	opened time.Time

	looking sync.Mutex   // held while looking
	looked  atomic.Int64 // when the last look that succeeded began, after opened
	tried   atomic.Int64 // when the last look began

	mu     sync.Mutex // guards those below
	known  []uint64   // by group: the generation
	stored []int64    // by group: what the table had when it was last seen
}

func newGenerations(groups []Group) *generations {
	g := &generations{groups: groups, opened: time.Now(), known: make([]uint64, len(groups)), stored: make([]int64, len(groups))}
	g.looked.Store(-int64(lookLimit))
	g.tried.Store(-int64(lookEvery))
	return g
}

// Generation returns the generation of a group, by its place in Config.Groups. While it is
// the same and valid, what was read after the first call includes every change that this
// process answered, and those that other processes committed two seconds ago. It is not
// valid when the table generation could not be read for so long. One caller a second reads it.
func (db *DB) Generation(ctx context.Context, group int) (n uint64, valid bool) {
	g := db.generations
	if g.old(&g.tried, lookEvery) && g.looking.TryLock() {
		if g.old(&g.tried, lookEvery) {
			db.look(ctx)
		}
		g.looking.Unlock()
	}
	valid = !g.old(&g.looked, lookLimit)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[group], valid
}

func (g *generations) old(at *atomic.Int64, age time.Duration) bool {
	return time.Since(g.opened)-time.Duration(at.Load()) >= age
}

// look reads the table generation.
func (db *DB) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	g := db.generations
	began := int64(time.Since(g.opened))
	g.tried.Store(began)
	stored := make([]int64, len(g.groups))
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		rows, err := tx.QueryRaw(ctx, `SELECT name, n FROM generation`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var n int64
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			for i := range g.groups {
				if g.groups[i].Name == name {
					stored[i] = n
				}
			}
		}
		return rows.Err()
	})
	if err != nil {
		if protocol.CodeOf(err) != protocol.Overloaded { // which Read has logged
			db.log.ErrorContext(ctx, "changes of other processes cannot be looked for", "err", err)
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, n := range stored {
		if n != g.stored[i] {
			g.stored[i] = n
			g.known[i]++
		}
	}
	g.looked.Store(began)
}

// changed counts a batch of this process, which left n in the table. A later look then
// finds a change only where another process made one.
func (g *generations) changed(group int, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known[group]++
	if g.stored[group]+1 == n {
		g.stored[group] = n
	}
}

const countChange = `INSERT INTO generation (name, n) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = generation.n + 1 RETURNING n`

// countChanges counts in the table generation that the batch changed tables of groups, on
// PostgreSQL as a part of its last round trip. It is the last statement before the commit.
func (b *batch) countChanges(ctx context.Context, last *pipeline) error {
	b.generation = make([]int64, len(b.db.generations.groups))
	for i := range b.changed.each {
		name := b.db.generations.groups[i].Name
		if b.db.engine == SQLite {
			rows, err := b.conn.query(ctx, countChange, name)
			if err := First(rows, err).Scan(&b.generation[i]); err != nil {
				return err
			}
			continue
		}
		last.query(countChange, []any{name}, func(rows pgx.Rows) error {
			if rows.Next() {
				return rows.Scan(&b.generation[i])
			}
			return rows.Err()
		})
	}
	return nil
}

// changedBy are the groups with tables that a statement changes: those named after INTO,
// UPDATE and DELETE FROM.
func (p *plan) changedBy(query string) (groups held) {
	if len(p.groupsOf) == 0 {
		return 0
	}
	var before, last string
	for word := range strings.FieldsFuncSeq(query, notName) {
		if strings.EqualFold(last, "INTO") || strings.EqualFold(last, "UPDATE") || strings.EqualFold(last, "FROM") && strings.EqualFold(before, "DELETE") {
			groups |= p.groupsOf[word]
		}
		before, last = last, word
	}
	return groups
}

// changes notes which groups the running op changes by a statement.
func (tx *Tx) changes(query string) {
	if tx.batch != nil {
		tx.batch.opChanged |= tx.conn.namedBy(tx.db.plan, query).changed
	}
}

// ExecAside is Exec for a statement that changes nothing of what is made of its table's
// groups.
func (tx *Tx) ExecAside(ctx context.Context, query string, args ...any) (int64, error) {
	if tx.batch == nil {
		return 0, ErrReadOnly
	}
	before := tx.batch.opChanged
	n, err := tx.Exec(ctx, query, args...)
	tx.batch.opChanged = before
	return n, err
}
