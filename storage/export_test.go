package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FindPosts searches with steps so small that a test reaches each.
func FindPosts(ctx context.Context, tx *Tx, words []string, before int64, limit, near, few, far int) ([]int64, error) {
	w := postWords
	w.steps = steps{near: near, few: few, far: far}
	return w.find(ctx, tx, words, before, limit)
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
			_, err = tx.write(ctx, add.into+add.row, seq, "rag ")
		}
	}
	if err != nil {
		return err
	}
	return tx.PutSetting(ctx, wordsSetting, "1")
}

// ExplainQueries calls see with each query of db from now on and the engine's plan
// for it, made in the same transaction with the same arguments.
func ExplainQueries(db *DB, see func(query string, plan []string, err error)) {
	explain, columns := "EXPLAIN ", 1
	if db.engine == engineSQLite {
		explain, columns = "EXPLAIN QUERY PLAN ", 4
	}
	db.watch = func(tx *Tx, query string, args []any) {
		rows, err := tx.conn.query(context.Background(), explain+query, args...)
		plan, err := collect(rows, err, func(s scanner) (step string, err error) {
			cells := make([]any, columns)
			for i := range cells {
				cells[i] = new(any)
			}
			cells[columns-1] = &step
			return step, s.Scan(cells...)
		})
		see(query, slices.Clip(plan), err)
	}
}

// ForgetProof leaves a post as it was stored before it said what its author rests on.
func ForgetProof(ctx context.Context, tx *Tx, id string) error {
	return one(tx.write(ctx, `UPDATE post SET proof_level = NULL, proof_subject = NULL, proof_block = NULL, proof_at = NULL WHERE `+byID, idRange(id)...))
}

// CountVisits sums up how many rows the engine looks at for the statements of db
// from now on, and runs each once more for that, without effect. PostgreSQL counts them itself;
// SQLite does not.
func CountVisits(db *DB, visited *float64) {
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
	db.watchWrites = true
	db.watch = func(tx *Tx, query string, args []any) {
		writes := !strings.HasPrefix(query, "SELECT")
		if db.engine != enginePostgres || writes && tx.batch == nil {
			return
		}
		if writes {
			_, err := tx.conn.exec(context.Background(), "SAVEPOINT visits")
			if err != nil {
				panic(err)
			}
			defer func() {
				if _, err := tx.conn.exec(context.Background(), "ROLLBACK TO SAVEPOINT visits"); err != nil {
					panic(err)
				}
			}()
		}
		rows, err := tx.conn.query(context.Background(), "EXPLAIN (ANALYZE, FORMAT JSON) "+query, args...)
		plans, err := collect(rows, err, func(s scanner) (text []byte, err error) { return text, s.Scan(&text) })
		var top []struct{ Plan node }
		if err == nil {
			err = json.Unmarshal(plans[0], &top)
		}
		if err != nil {
			panic(fmt.Sprint(query, ": ", err))
		}
		*visited += visits(top[0].Plan)
	}
}

// CopyRows adds n copies of the row of a table that meets a condition. set says by
// an expression with n, from 1, what is other in a copy.
func CopyRows(ctx context.Context, db *DB, table, where string, n int, set map[string]string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		text := `SELECT name FROM pragma_table_info(?)`
		if db.engine == enginePostgres {
			text = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?`
		}
		rows, err := tx.query(ctx, text, table)
		columns, err := collect(rows, err, scanText)
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
	return tx.claimJobs(ctx, owner, n, time.Minute)
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
			rows, err := tx.query(ctx, "EXPLAIN "+q.text, q.args...)
			steps, err := collect(rows, err, scanText)
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
	for table, of := range heldIn {
		if tx.batch.held()&of != 0 {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

// Count is how many rows a table has.
func Count(ctx context.Context, tx *Tx, table string) (n int, err error) {
	err = tx.row(ctx, `SELECT count(*) FROM `+table).Scan(&n)
	return n, err
}

// Together runs functions as the writes of one batch and returns their errors.
func Together(ctx context.Context, db *DB, fns ...func(ctx context.Context, tx *Tx) error) (errs []error) {
	var ops []*op
	for _, fn := range fns {
		ops = append(ops, &op{ctx: ctx, fn: fn, done: make(chan error, 1)})
	}
	if db.engine == enginePostgres {
		c, err := openConn(ctx, db.main, db.engine)
		if err != nil {
			return []error{err}
		}
		defer c.close()
		(&writer{db: db, conn: c}).commit(ops)
	} else { // they wait while the only writer does
		begun, queued := make(chan struct{}), make(chan struct{})
		ops = append(ops, &op{ctx: ctx, done: make(chan error, 1), fn: func(context.Context, *Tx) error {
			close(begun)
			<-queued
			return nil
		}})
		db.queue <- ops[len(fns)]
		<-begun
		for _, o := range ops[:len(fns)] {
			db.queue <- o
		}
		close(queued)
	}
	for _, o := range ops {
		errs = append(errs, <-o.done)
	}
	return errs[:len(fns)]
}
