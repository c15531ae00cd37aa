package commit_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/commit"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
)

// The tables of these tests: things, of which rows are held back until a savepoint or
// the end, notes, which are numbered late, and others, of which none are held back.
const (
	things = iota
	notes
)

var tables = []string{
	`CREATE TABLE thing (n BIGINT PRIMARY KEY, owner TEXT NOT NULL)`,
	`CREATE TABLE note (n BIGINT PRIMARY KEY, owner TEXT NOT NULL)`,
	`CREATE TABLE head (n BIGINT NOT NULL)`,
	`INSERT INTO head (n) VALUES (0)`,
	`CREATE TABLE other (n BIGINT PRIMARY KEY)`,
	`CREATE TABLE spent (key BLOB PRIMARY KEY, until BIGINT NOT NULL)`,
}

// A thing is a row of thing for bun.
type thing struct {
	bun.BaseModel `bun:"table:thing"`
	N             int64 `bun:"n,pk"`
	Owner         string
}

// config completes the address of an empty database.
func config(c commit.Config) commit.Config {
	c.Topics = []string{"topic"}
	c.Buffers = func(commit.Engine) []commit.Buffer {
		return []commit.Buffer{
			things: {Insert: commit.Insert{Into: `INSERT INTO thing (n, owner) VALUES `, Row: `(?, ?)`, Sorted: true}, Key: "owner", KeyAt: 1},
			notes: {Insert: commit.Insert{Into: `INSERT INTO note (n, owner) VALUES `, Row: `(?, ?)`}, Late: true, Tables: []string{"head"},
				Number: func(ctx context.Context, tx *commit.Tx, r *commit.Rows, n int) error {
					var head int64
					err := commit.First(tx.QueryRaw(ctx, `UPDATE head SET n = n + ? RETURNING n`, n)).Scan(&head)
					for i := range n {
						r.Row(i)[0] = head - int64(n-i-1)
					}
					return err
				}},
		}
	}
	c.Migrate = func(ctx context.Context, e commit.Engine, db *sql.DB) error {
		for _, text := range tables {
			if e == commit.Postgres {
				text = strings.Replace(text, "BLOB", "BYTEA", 1)
			}
			if _, err := db.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

func eachConfig(t *testing.T, fn func(t *testing.T, c commit.Config)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, config(commit.Config{Path: filepath.Join(t.TempDir(), "commit.db")}))
	})
	if os.Getenv(storagetest.PostgresEnv) == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, config(commit.Config{URL: storagetest.EmptyPostgresURL(t)}))
	})
}

func each(t *testing.T, fn func(t *testing.T, db *commit.DB)) {
	eachConfig(t, func(t *testing.T, c commit.Config) {
		db := must.Get(commit.Open(t.Context(), c))(t)
		defer func() { require.NoError(t, db.Close()) }()
		fn(t, db)
	})
}

type write = func(ctx context.Context, tx *commit.Tx) error

// together runs writes in one batch and returns their errors.
func together(t *testing.T, db *commit.DB, fns ...write) []error { return spending(t, db, nil, fns...) }

// spending is together for writes that say what they will spend.
func spending(t *testing.T, db *commit.DB, spends []protocol.Spend, fns ...write) []error {
	errs := make([]error, len(fns))
	begun, queued := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		_ = db.Write(t.Context(), func(context.Context, *commit.Tx) error {
			close(begun)
			<-queued
			return nil
		})
	})
	<-begun
	for i, fn := range fns {
		running.Go(func() { errs[i] = db.Write(t.Context(), fn, spends...) })
		for db.QueueLen() <= i {
			runtime.Gosched()
		}
	}
	close(queued)
	running.Wait()
	return errs
}

func hold(tx *commit.Tx, n int64, owner string) error {
	return errors.Join(tx.Hold(things, n, owner), tx.Hold(notes, nil, owner))
}

func count(ctx context.Context, tx *commit.Tx, table string) (n int, err error) {
	err = commit.First(tx.Query(ctx, `SELECT count(*) FROM `+table)).Scan(&n)
	return n, err
}

func counts(t *testing.T, db *commit.DB) (all [3]int) {
	t.Helper()
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *commit.Tx) (err error) {
		for i, table := range []string{"thing", "note", "other"} {
			if all[i], err = count(ctx, tx, table); err != nil {
				return err
			}
		}
		return nil
	}))
	return all
}

func spend() protocol.Spend {
	s := protocol.Spend{Until: time.Now().Add(time.Minute), Code: protocol.SignatureReplayed}
	rand.Read(s.Key[:])
	return s
}

var errRoom = errors.New("the room says no")

func other(ctx context.Context, tx *commit.Tx, n int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO other (n) VALUES (?)`, n)
	return err
}
