package storage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

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
	db, err := storage.Open(t.Context(), c)
	require.NoError(t, err)
	do(db)
	require.NoError(t, db.Close())
}

func filled(t *testing.T, c storage.Config, posts int) {
	t.Helper()
	opened(t, c, func(db *storage.DB) {
		require.NoError(t, fill.Fill(t.Context(), db, fill.Config{Base: base, Posts: posts, Profiles: posts / 5, Threads: posts / 10, Boards: 3, Items: 60, Seed: 1}))
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
	var of []string
	require.NoError(t, json.Unmarshal([]byte(text), &of))
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

// TestMove: a database is moved to PostgreSQL and back, by a process that is killed at ten places in each direction, in the middle of
// transactions and between them, and goes on each time. In the end each side has the same rows, finds the same, and holds its invariants.
func TestMove(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	posts := storagetest.Rounds(t, 8) * 500
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
		for i := range 10 {
			_, killed := move(t, way[0], way[1], strconv.Itoa(points/13+i%3))
			require.True(t, killed, "place %d of ten", i+1)
			if i == 5 {
				_, err := storage.Open(t.Context(), way[1])
				require.ErrorIs(t, err, storage.ErrMoving, "half of it is not served")
			}
		}
		for _, point := range []string{"compared", "marked"} {
			_, killed := move(t, way[0], way[1], point)
			require.True(t, killed, point)
		}
		_, err := storage.Open(t.Context(), way[0])
		require.ErrorIs(t, err, storage.ErrMoved)
		move(t, way[0], way[1], "")
		_, err = storage.Open(t.Context(), way[0])
		require.ErrorIs(t, err, storage.ErrMoved)
		require.Equal(t, want, tables(t, way[1]))
		require.Equal(t, words, foundIn(t, way[1]))
		_, err = storage.Move(t.Context(), way[0], way[1], func(storage.MoveStep) {})
		require.ErrorContains(t, err, "is not empty")
	}
}
