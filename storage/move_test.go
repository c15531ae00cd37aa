package storage_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
	"stoa/storage/storagetest/fill"
)

// opened opens a database, does something with it and closes it.
func opened(t *testing.T, c storage.Config, do func(db *storage.DB)) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	db := must.Get(storage.Open(t.Context(), c))(t)
	do(db)
	require.NoError(t, db.Close())
}

func filled(t *testing.T, c storage.Config, posts int) {
	t.Helper()
	opened(t, c, func(db *storage.DB) {
		require.NoError(t, fill.Fill(t.Context(), db, fill.Config{
			Base: base, Posts: posts, Profiles: min(posts/5, 500), Threads: posts / 10, Boards: 3, Items: 60, Seed: 1,
		}))
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for _, name := range []string{"node-ed25519", "another"} {
				if _, err := tx.Settings().Secret(ctx, name, func() ([]byte, error) { return []byte{0, 1, 0xff, '\\'}, nil }); err != nil {
					return err
				}
			}
			if err := tx.Logs().Append(ctx, boardID, storage.LogHide, "bid_1", nil); err != nil {
				return err
			}
			return tx.Audit(ctx, "operator", "test", "a subject\twith\n\\ \"all\" ठीक", "")
		}))
		require.NoError(t, db.Numbered(t.Context()))
	})
}

// foundIn are the posts, profiles and items that some words find: their indexes are not copied but built.
func foundIn(t *testing.T, c storage.Config) string {
	t.Helper()
	var out strings.Builder
	opened(t, c, func(db *storage.DB) {
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for _, q := range []string{"paper", "silk tea", "tag:cotton", "brass -wood"} {
				posts := must.Get(tx.Posts().List(ctx, protocol.BoardQuery{Q: q, Paging: protocol.Paging{Limit: 20}}))(t)
				for _, p := range posts.Items {
					fmt.Fprintln(&out, q, p.ID)
				}
				profiles := must.Get(tx.Profiles().List(ctx, protocol.AgentQuery{Q: q, Paging: protocol.Paging{Limit: 20}}))(t)
				for _, p := range profiles.Items {
					fmt.Fprintln(&out, q, p.Draft.Handle)
				}
				items := must.Get(tx.Items().Search(ctx, storage.ItemQuery{Q: q, Paging: protocol.Paging{Limit: 20}}))(t)
				for _, i := range items.Items {
					fmt.Fprintln(&out, q, i.ID)
				}
			}
			return nil
		}))
	})
	require.Greater(t, strings.Count(out.String(), "\n"), 50)
	return out.String()
}

// move runs a move in a process of its own, which is killed at a point: the n-th, or the one with that name; "" for none.
func move(t *testing.T, from, to storage.Config, kill string) (points int, killed bool) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestMoveChild$")
	c.Env = append(os.Environ(), "STOA_TEST_MOVE="+string(must.Get(json.Marshal([]any{from.Path, from.URL, to.Path, to.URL, kill}))(t)))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if c.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		return 0, true
	}
	require.NoError(t, err, "%s", &out)
	_, text, _ := strings.Cut(out.String(), "points ")
	return must.Get(strconv.Atoi(strings.Fields(text)[0]))(t), false
}

func TestMoveChild(t *testing.T) {
	text := os.Getenv("STOA_TEST_MOVE")
	if text == "" {
		return // of move
	}
	of := must.JSON[[]string]([]byte(text))(t)
	n := 0
	_, err := storage.MoveAt(t.Context(), storage.Config{Path: of[0], URL: of[1]}, storage.Config{Path: of[2], URL: of[3]}, func(point string) {
		if n++; point == of[4] || strconv.Itoa(n) == of[4] {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	require.NoError(t, err)
	fmt.Println("points", n)
}

// tables are the tables of a database with their rows and hashes, read once more by a move that ends before it marks anything.
func tables(t *testing.T, c storage.Config) []storage.MovedTable {
	t.Helper()
	return must.Get(storage.HashTables(t.Context(), c))(t)
}

func needPostgres(t *testing.T) {
	t.Helper()
	if os.Getenv(storagetest.PostgresEnv) == "" {
		t.Skip("needs " + storagetest.PostgresEnv)
	}
}

// fresh is a new database of the same engine.
func fresh(t *testing.T, like storage.Config) storage.Config {
	if like.URL != "" {
		return storage.Config{URL: storagetest.PostgresURL(t)}
	}
	c := storage.Config{Path: filepath.Join(t.TempDir(), "fresh.db")}
	storagetest.Migrated(t, c.Path)
	return c
}

// indexes are those of a database.
func indexes(t *testing.T, c storage.Config) (all []string) {
	driver, source, query := "sqlite", c.Path, `SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name`
	if c.URL != "" {
		driver, source, query = "pgx", c.URL, `SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname`
	}
	db := must.Get(sql.Open(driver, source))(t)
	defer db.Close()
	rows := must.Get(db.Query(query))(t)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NotEmpty(t, all)
	return all
}

// TestMove: a database is moved to PostgreSQL and back, by a process that is killed at some places in each direction, in the middle of
// transactions and between them, and goes on each time. In the end each side has the same rows, finds the same, and holds its invariants.
func TestMove(t *testing.T) {
	t.Parallel()
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	needPostgres(t)
	posts, kills := storagetest.Rounds(t, 8)*500, storagetest.Rounds(t, 20)
	lite, pg := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}, storage.Config{URL: storagetest.EmptyPostgresURL(t)}
	filled(t, lite, posts)
	want, words := tables(t, lite), foundIn(t, lite)
	back := storage.Config{Path: filepath.Join(t.TempDir(), "back", "stoa.db")}
	other := storage.Config{URL: storagetest.EmptyPostgresURL(t)}
	points, killed := move(t, lite, other, "")
	require.False(t, killed)
	require.Greater(t, points, 100)
	require.True(t, must.Get(storage.Unmove(t.Context(), lite))(t))
	require.False(t, must.Get(storage.Unmove(t.Context(), lite))(t))

	for _, way := range [][2]storage.Config{{lite, pg}, {pg, back}} {
		for i := range kills {
			_, killed := move(t, way[0], way[1], strconv.Itoa(points/(kills+3)+i%3))
			require.True(t, killed, "place %d", i+1)
			if i == kills/2 {
				require.ErrorIs(t, must.Err(storage.Open(t.Context(), way[1])), storage.ErrMoving, "half of it is not served")
			}
		}
		for _, point := range []string{"compared", "marked"} {
			_, killed := move(t, way[0], way[1], point)
			require.True(t, killed, point)
		}
		require.ErrorIs(t, must.Err(storage.Open(t.Context(), way[0])), storage.ErrMoved)
		move(t, way[0], way[1], "")
		require.ErrorIs(t, must.Err(storage.Open(t.Context(), way[0])), storage.ErrMoved)
		require.Equal(t, want, tables(t, way[1]))
		require.Equal(t, words, foundIn(t, way[1]))
		require.Equal(t, indexes(t, fresh(t, way[1])), indexes(t, way[1]))
		require.ErrorContains(t, must.Err(storage.Move(t.Context(), way[0], way[1], func(storage.MoveStep) {})), "is not empty")
	}
}

// refused finds what a CHECK constraint wants in the message of SQLite.
var refused = regexp.MustCompile(`CHECK constraint failed: (\w+) (?:IN \('?([\w-]*)|> \w+)`)

// meant are the values of rows that the start of a node reads.
var meant = map[string]any{"secret.name": "node-ed25519", "post.state": "deleted", "item.doc": "{}", "item.indexed": int64(0), "profile.listed": int64(0),
	"profile_rank.seq": int64(9), "remote_agent.doc": "{}", "ard_entry.doc": "{}"}

// everyTable gives a new database a row in each table, with every column set: what a test alone would not write is moved too.
func everyTable(t *testing.T, path string) (tables int) {
	storagetest.Migrated(t, path)
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	columns := map[string][][2]string{}
	rows := must.Get(db.Query(`SELECT l.name, x.name, x.type FROM pragma_table_list l JOIN pragma_table_xinfo(l.name) x
		WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite~_%' ESCAPE '~'
			AND l.name NOT IN ('goose_db_version', 'compatible', 'tally', 'profile_clock')`))(t)
	for rows.Next() {
		var table, column, of string
		require.NoError(t, rows.Scan(&table, &column, &of))
		columns[table] = append(columns[table], [2]string{column, of})
	}
	require.NoError(t, rows.Err())
	for table, all := range columns {
		values := map[string]any{}
		var names []string
		var args []any
		for n, c := range all {
			names = append(names, c[0])
			switch c[1] {
			case "INTEGER":
				values[c[0]] = int64(1)
			case "BLOB":
				values[c[0]] = []byte{0, 0xff, byte(n), '\\', '\n'}
			default:
				values[c[0]] = fmt.Sprintf("%s %d\t\n\\. \"'{}", c[0], n)
			}
		}
		for name, v := range meant {
			if column, ok := strings.CutPrefix(name, table+"."); ok {
				values[column] = v
			}
		}
		var last error
		for range 20 {
			args = args[:0]
			for _, name := range names {
				args = append(args, values[name])
			}
			_, err := db.Exec(`INSERT INTO "`+table+`" (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(names)-1)+`)`, args...)
			if last = err; err == nil {
				tables++
				break
			}
			m := refused.FindStringSubmatch(err.Error())
			require.NotNil(t, m, "%s: %v", table, err)
			if values[m[1]] = m[2]; strings.Contains(m[0], ">") {
				values[m[1]] = int64(2)
			} else if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
				values[m[1]] = n
			}
		}
		require.NoError(t, last, table)
	}
	return tables
}

// TestMove_EveryTable: a table or a column that is added is moved, or a reason is given why it is not.
func TestMove_EveryTable(t *testing.T) {
	t.Parallel()
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	needPostgres(t)
	lite := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}
	n := everyTable(t, lite.Path)
	want := tables(t, lite)
	require.Len(t, want, n) // with profile_clock, without generation
	pg, back := storage.Config{URL: storagetest.EmptyPostgresURL(t)}, storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}
	for _, way := range [][2]storage.Config{{lite, pg}, {pg, back}} {
		require.Equal(t, want, must.Get(storage.Move(t.Context(), way[0], way[1], func(storage.MoveStep) {}))(t).Tables)
		require.Equal(t, want, tables(t, way[1]))
	}
	opened(t, storage.Config{Path: back.Path}, func(a *storage.DB) {
		copied, left, err := storage.MoveTables(t.Context(), a, storagetest.OpenConfig(t, storage.Config{URL: storagetest.PostgresURL(t)}))
		require.NoError(t, err)
		require.Contains(t, copied, "post.title")
		for name := range left {
			require.NotContains(t, copied, name)
		}
	})
}

// TestMove_Refused: what is not the move's is not written over, and what is not the same on both sides is named.
func TestMove_Refused(t *testing.T) {
	t.Parallel()
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	needPostgres(t)
	dir := t.TempDir()
	lite, other := storage.Config{Path: filepath.Join(dir, "a.db")}, storage.Config{Path: filepath.Join(dir, "b.db")}
	filled(t, lite, 100)
	try := func(from, to storage.Config) error {
		return must.Err(storage.Move(t.Context(), from, to, func(storage.MoveStep) {}))
	}
	require.ErrorContains(t, try(lite, other), "stoa admin backup")
	pg := storage.Config{URL: storagetest.EmptyPostgresURL(t)}
	storagetest.Migrated(t, other.Path)
	require.ErrorContains(t, try(other, pg), "holds no node")

	_, killed := move(t, lite, pg, "compared")
	require.True(t, killed)
	opened(t, other, func(db *storage.DB) {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Settings().PutSecret(ctx, "node-ed25519", []byte("another"))
		}))
	})
	require.ErrorContains(t, try(other, pg), "from another node")
	opened(t, lite, func(db *storage.DB) {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Settings().PutSecret(ctx, "another", []byte("changed"))
		}))
	})
	require.ErrorContains(t, try(lite, pg), "the row of secret with name = another is not the same")
	opened(t, lite, func(db *storage.DB) {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Settings().PutSecret(ctx, "a new one", []byte("x"))
		}))
	})
	require.ErrorContains(t, try(lite, pg), "the row of secret with name = a new one is in the source only")

	full := storage.Config{URL: storagetest.PostgresURL(t)}
	db := must.Get(storage.Open(t.Context(), full))(t)
	require.ErrorIs(t, try(lite, full), storage.ErrServed, "a process is connected")
	require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Audit(ctx, "operator", "test", "x", "") }))
	require.NoError(t, db.Close())
	require.ErrorContains(t, try(lite, full), "the target is not empty")
	opened(t, lite, func(*storage.DB) {}) // nothing was marked
}

// While a move runs, nothing of it locks what every sign-in to the server reads.
func TestMove_LetsOthersSignIn(t *testing.T) {
	t.Parallel()
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	if os.Getenv(storagetest.PostgresEnv) == "" {
		t.Skip("there is no PostgreSQL server")
	}
	address := storagetest.PostgresURL(t)
	db := storagetest.OpenConfig(t, storage.Config{URL: address + "&application_name=stoa-move"})
	require.NoError(t, db.Alone(t.Context(), func() error {
		other := must.Get(pgx.Connect(t.Context(), address))(t)
		defer other.Close(context.Background())
		require.Eventually(t, func() bool { // what is short ends
			var locks int
			require.NoError(t, other.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_stat_get_activity(NULL) a ON a.pid = l.pid
				WHERE l.locktype = 'relation' AND l.database = 0 AND a.datid = (SELECT datid FROM pg_stat_get_activity(pg_backend_pid()))`).Scan(&locks))
			return locks == 0
		}, time.Minute, 50*time.Millisecond)
		return nil
	}))
}
