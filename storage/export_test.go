package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"stoa/storage/commit"
)

// FindPosts searches with steps so small that a test reaches each.
func FindPosts(ctx context.Context, tx *Tx, words []string, before int64, limit, near, few, far int) ([]int64, error) {
	w := postWords
	w.steps = steps{near: near, few: few, far: far}
	return w.find(ctx, tx, oneOf(words), before, limit)
}

// SpoilWords leaves the index of words as another version of the rules would
// have made it.
func SpoilWords(ctx context.Context, tx *Tx) error {
	empty := `DELETE FROM post_word`
	if tx.db.engine == engineSQLite {
		empty = `INSERT INTO post_word (post_word) VALUES ('delete-all')`
	}
	if _, err := tx.write(ctx, empty); err != nil {
		return err
	}
	rows, err := tx.query(ctx, `SELECT seq FROM post`)
	seqs, err := collect(rows, err, scanInt)
	add := postWords.insert(tx.db.engine)
	for _, seq := range seqs {
		if err == nil {
			_, err = tx.write(ctx, add.Into+add.Row, seq, "rag ")
		}
	}
	if err != nil {
		return err
	}
	return tx.Settings().Put(ctx, wordsSetting, "1")
}

// ExplainQueries calls see with each query of db from now on and the engine's plan
// for it, made in the same transaction with the same arguments.
func ExplainQueries(db *DB, see func(query string, plan []string, err error)) {
	explain, columns := "EXPLAIN ", 1
	if db.engine == engineSQLite {
		explain, columns = "EXPLAIN QUERY PLAN ", 4
	}
	db.sql.Watch(func(tx *commit.Tx, query string, args []any) {
		if !strings.HasPrefix(query, "SELECT") && !strings.HasPrefix(query, "WITH") && !strings.Contains(query, "RETURNING") {
			return
		}
		rows, err := tx.QueryRaw(context.Background(), explain+query, args...)
		plan, err := collect(rows, err, func(s scanner) (step string, err error) {
			cells := make([]any, columns)
			for i := range cells {
				cells[i] = new(any)
			}
			cells[columns-1] = &step
			return step, s.Scan(cells...)
		})
		see(query, slices.Clip(plan), err)
	})
}

// ForgetProof leaves a post as it was stored before it said what its author rests on.
func ForgetProof(ctx context.Context, tx *Tx, id string) error {
	return one(tx.write(ctx, `UPDATE post SET proof_level = NULL, proof_subject = NULL, proof_block = NULL, proof_at = NULL WHERE `+byID, idRange(id)...))
}

// CountVisits counts from now on what the engine looks at for the statements of db,
// until the returned function ends that and tells how much: on PostgreSQL rows, for
// which each statement runs once more without effect, on SQLite pages.
func CountVisits(db *DB) (end func() float64) {
	if db.engine == engineSQLite {
		return countPages(db)
	}
	var visited float64
	type node struct {
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Filtered float64 `json:"Rows Removed by Filter"`
		Join     float64 `json:"Rows Removed by Join Filter"`
		Recheck  float64 `json:"Rows Removed by Index Recheck"`
		Plans    []node
	}
	var visits func(n node) float64
	visits = func(n node) float64 {
		sum := (n.Rows + n.Filtered + n.Join + n.Recheck) * max(n.Loops, 1)
		for _, p := range n.Plans {
			sum += visits(p)
		}
		return sum
	}
	db.sql.Watch(func(tx *commit.Tx, query string, args []any) {
		verb, _, _ := strings.Cut(query, " ")
		if !slices.Contains([]string{"SELECT", "WITH", "INSERT", "UPDATE", "DELETE"}, strings.TrimSpace(verb)) {
			return
		}
		if verb != "SELECT" {
			if !tx.Writes() {
				return
			}
			_, err := tx.ExecRaw(context.Background(), "SAVEPOINT visits")
			if err != nil {
				panic(err)
			}
			defer func() {
				if _, err := tx.ExecRaw(context.Background(), "ROLLBACK TO SAVEPOINT visits"); err != nil {
					panic(err)
				}
			}()
		}
		rows, err := tx.QueryRaw(context.Background(), "EXPLAIN (ANALYZE, FORMAT JSON) "+query, args...)
		plans, err := collect(rows, err, func(s scanner) (text []byte, err error) { return text, s.Scan(&text) })
		var top []struct{ Plan node }
		if err == nil {
			err = json.Unmarshal(plans[0], &top)
		}
		if err != nil {
			panic(fmt.Sprint(query, ": ", err))
		}
		visited += visits(top[0].Plan)
	})
	return func() float64 {
		db.sql.Watch(nil)
		return visited
	}
}

func countPages(db *DB) (end func() float64) {
	before := map[*sql.Conn]int{}
	db.sql.Watch(func(tx *commit.Tx, _ string, _ []any) {
		if c := tx.Connection(); before[c] == 0 {
			before[c] = pages(c)
		}
	})
	return func() (visited float64) {
		db.sql.Watch(nil)
		for c, then := range before {
			visited += float64(pages(c) - then)
		}
		return visited
	}
}

// pages is how many pages a connection to SQLite has looked at.
func pages(c *sql.Conn) (n int) {
	err := c.Raw(func(driver any) error {
		for _, op := range []sqlite.DBStatusOp{sqlite.DBStatusCacheHit, sqlite.DBStatusCacheMiss} {
			looked, _, err := driver.(sqlite.DBStatus).Status(op, false)
			if err != nil {
				return err
			}
			n += looked
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return n
}

// CopyRows adds n copies of the row of a table that meets a condition. set says by
// an expression with n, from 1, what is other in a copy.
func CopyRows(ctx context.Context, db *DB, table, where string, n int, set map[string]string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		text := `SELECT name FROM pragma_table_info(?)`
		if db.engine == enginePostgres {
			text = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?`
		}
		columns, err := list[string](ctx, tx, text, table)
		if err != nil {
			return err
		}
		values := slices.Clone(columns)
		for i, c := range columns {
			if set[c] != "" {
				values[i] = set[c]
			}
		}
		_, err = tx.write(ctx, `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`)
			WITH RECURSIVE series (s) AS (SELECT 1 UNION ALL SELECT s + 1 FROM series WHERE s < CAST(? AS BIGINT))
			SELECT `+strings.Join(values, ", ")+` FROM `+table+` CROSS JOIN series WHERE `+where, n)
		return err
	})
}

// Claim claims jobs in a transaction that the caller rolls back.
func Claim(ctx context.Context, tx *Tx, owner string, n int) ([]Job, error) {
	return tx.Jobs().claim(ctx, owner, n, time.Minute)
}

// EvictKeys deletes rows of a stock that were chosen.
func EvictKeys(ctx context.Context, tx *Tx, of Stock, keys ...any) (int, error) {
	return stocks[of].drop(ctx, tx, keys)
}

// Analyze lets the engine count its rows, as it does by itself in time.
func Analyze(t testing.TB, db *DB) {
	t.Helper()
	text := `ANALYZE`
	if db.engine == engineSQLite {
		text = `PRAGMA optimize`
	}
	require.NoError(t, Exec(t.Context(), db, text))
}

// Exec runs statements as they are, with ? for arguments.
func Exec(ctx context.Context, db *DB, query string, args ...any) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, query, args...)
		return err
	})
}

// OnPostgres reports which engine a database is of.
func OnPostgres(db *DB) bool { return db.engine == enginePostgres }

// NumberPlans are the plans of what numbers and tells after commits, with indexes
// wherever they serve.
func NumberPlans(ctx context.Context, t *testing.T, db *DB) string {
	t.Helper()
	var plans []string
	require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.write(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
		for _, q := range []struct {
			text string
			args []any
		}{{numbersHeld, []any{0, true}}, {logNumbers, []any{0, numberLimit, "x"}}, {redactWaiting, []any{"x", "y"}}} {
			steps, err := list[string](ctx, tx, "EXPLAIN "+q.text, q.args...)
			if err != nil {
				return err
			}
			plans = append(plans, steps...)
		}
		return nil
	}))
	return strings.Join(plans, "\n")
}

// Held are the tables of which a transaction holds something back, or which give it
// when what it holds back is written.
func Held(tx *Tx) (tables []string) {
	for i, b := range buffers(tx.db.engine) {
		if tx.sql.Held(i) > 0 {
			tables = append(append(tables, strings.Fields(b.Into)[2]), b.Tables...)
		}
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// Count is how many rows a table has.
func Count(ctx context.Context, tx *Tx, table string) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM `+table).Scan(&n)
	return n, err
}

// Together runs functions as the writes of one batch and returns their errors.
func Together(ctx context.Context, db *DB, fns ...func(ctx context.Context, tx *Tx) error) []error {
	errs := make([]error, len(fns))
	begun, queued := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { // the others gather while it runs
		_ = db.Write(ctx, func(context.Context, *Tx) error {
			close(begun)
			<-queued
			return nil
		})
	})
	<-begun
	for i, fn := range fns {
		running.Go(func() { errs[i] = db.Write(ctx, fn) })
		for db.QueueLen() <= i {
			runtime.Gosched()
		}
	}
	close(queued)
	running.Wait()
	return errs
}

// Put sets the targets that one source of a profile lists.
func (ps Probes) Put(ctx context.Context, handle, source string, targets []string) error {
	return ps.put(ctx, handle, source, targets)
}

// Boards are the boards that have a log.
func (ls Logs) Boards(ctx context.Context) ([]string, error) { return ls.boards(ctx) }

// PruneTable is what PruneExpired does with one table.
func PruneTable(name string) func(context.Context, *Tx) (int, error) {
	at := slices.IndexFunc(expiring, func(e expiry) bool { return e.table == name })
	return func(ctx context.Context, tx *Tx) (int, error) { return expiring[at].prune(ctx, tx) }
}

// ReviewPlans are the plans of the statements that read reviews and order receipts, by the index that each relies on.
func ReviewPlans(ctx context.Context, t *testing.T, db *DB) map[string]string {
	t.Helper()
	plans := map[string]string{}
	require.NoError(t, db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		explain := "EXPLAIN QUERY PLAN "
		if db.engine == enginePostgres {
			explain = "EXPLAIN "
			if _, err := tx.write(ctx, `SET LOCAL enable_seqscan = off`); err != nil {
				return err
			}
		}
		for index, q := range map[string]struct {
			text string
			args []any
		}{
			"feedback_given":      {feedbackGiven, []any{"a", "c", 1}},
			"feedback_newest":     {feedbackOf, []any{"a", "counted", "~", 20}},
			"feedback_due":        {feedbackDue, []any{9, 20}},
			"feedback_waiting":    {feedbackLastDue, []any{"a"}},
			"feedback_block":      {feedbackAfter, []any{9, "r:", "r;"}},
			"feedback_hidden":     {feedbackHidden, []any{"~", 20}},
			"order_receipt_n":     {receiptsOf, []any{"rao", 9, 20}},
			"order_receipt_order": {receiptsOrder, []any{"rao", "R-1", 9, 20}},
		} {
			rows, err := tx.query(ctx, explain+q.text, q.args...)
			steps, err := collect(rows, err, func(s scanner) (step string, err error) {
				if db.engine == enginePostgres {
					return step, s.Scan(&step)
				}
				var a, b, c int
				return step, s.Scan(&a, &b, &c, &step)
			})
			if err != nil {
				return err
			}
			plans[index] = strings.Join(steps, "\n")
		}
		return nil
	}))
	return plans
}

// PendingTuples is how many entries wait to be moved into a GIN index.
func PendingTuples(ctx context.Context, tx *Tx, index string) (n int, err error) {
	err = tx.row(ctx, `SELECT pending_tuples FROM pgstatginindex(?::text::regclass)`, index).Scan(&n)
	return n, err
}

// ProfileText is the text of a profile in the index of the directory, with the number of the profile.
func ProfileText(ctx context.Context, tx *Tx, handle string) (seq int64, text string, err error) {
	r, err := tx.Profiles().where(ctx, "handle = ?", handle)
	if err != nil {
		return 0, "", err
	}
	p, err := r.profile()
	if err != nil {
		return 0, "", err
	}
	m, err := tx.Merchants().of(ctx, r.Seq)
	text, _ = profileText(p, m)
	return r.Seq, text, err
}

// ShrinkTail makes the news in memory those of a few readers.
func (db *DB) ShrinkTail(readers int) { db.tail.most = readers }

// MoveAt is Move that tells the points at which it may be killed.
func MoveAt(ctx context.Context, from, to Config, at func(point string)) (MoveReport, error) {
	return moveAt(ctx, from, to, func(MoveStep) {}, at)
}

// MoveTables are the tables and columns that a move copies, and those that it does not.
func MoveTables(ctx context.Context, lite, pg *DB) (copied []string, left map[string]string, err error) {
	schemas := map[engine]schema{}
	for _, db := range []*DB{lite, pg} {
		if err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
			schemas[db.engine], err = db.readSchema(ctx, tx.sql.Connection())
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	all, err := matchSchemas(schemas[engineSQLite], schemas[enginePostgres])
	for _, t := range all {
		for _, c := range t.columns {
			copied = append(copied, t.name+"."+c)
		}
	}
	return copied, notMoved, err
}

// HashTables are the tables of a database as a move compares them.
func HashTables(ctx context.Context, c Config) (all []MovedTable, err error) {
	db, err := openAlone(ctx, c, false)
	if err != nil {
		return nil, err
	}
	return all, errors.Join(db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		s, err := db.readSchema(ctx, tx.sql.Connection())
		for _, name := range slices.Sorted(maps.Keys(s.columns)) {
			t := movedTable{name: name}
			for _, column := range slices.Sorted(maps.Keys(s.columns[name])) {
				if notMoved[name+"."+column] == "" {
					t.columns = append(t.columns, column)
				}
			}
			if notMoved[name] != "" || err != nil {
				continue
			}
			var h MovedTable
			if h, err = t.hash(ctx, tx.sql.Connection(), func(int64) {}); err == nil {
				all = append(all, h)
			}
		}
		return err
	}), db.Close())
}

// SealedColumns are the columns that a rotation of the master key seals anew.
func SealedColumns() (all []string) {
	for _, c := range sealedColumns {
		all = append(all, c.table+"."+c.column)
	}
	return all
}

// Columns are the columns of a database.
func Columns(ctx context.Context, db *DB) (all []string, err error) {
	return all, db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		s, err := db.readSchema(ctx, tx.sql.Connection())
		for table, columns := range s.columns {
			for column := range columns {
				all = append(all, table+"."+column)
			}
		}
		return err
	})
}

// Alone is alone.
func (db *DB) Alone(ctx context.Context, do func() error) error { return db.alone(ctx, do) }

// HoldParts takes the lease of who moves old posts.
func (db *DB) HoldParts(ctx context.Context, owner string) error {
	return partWork{db, owner}.hold(ctx)
}

// HeldUp moves posts of a month as a process that is held up when it has put them into the file.
func (db *DB) HeldUp(ctx context.Context, month int64, meanwhile func()) error {
	w := partWork{db, "late"}
	posts, err := w.monthSome(ctx, month, 0)
	if err != nil {
		return err
	}
	meanwhile()
	nothing := func(context.Context, Posts, *numberedPost, *numberedPost) error { return nil }
	return w.each(ctx, posts, nothing, func(context.Context, *Tx) error { return nil })
}

// LongPosts is how many posts have their text in their rows.
func (tx *Tx) LongPosts(ctx context.Context) (int, error) {
	return find[int](ctx, tx, `SELECT count(*) FROM post WHERE body <> '' OR evidence IS NOT NULL OR statement IS NOT NULL OR object IS NOT NULL`)
}

// Terms are the words of posts with how many have each.
func (tx *Tx) Terms(ctx context.Context) (map[string]int, error) {
	rows, err := tx.query(ctx, `SELECT word, n FROM post_term WHERE n > 0`)
	counts := map[string]int{}
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var word string
		var n int
		err = s.Scan(&word, &n)
		counts[word] = n
		return none, err
	})
	return counts, err
}
