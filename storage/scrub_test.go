package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// held counts a word, as it was written or folded, in the files of a SQLite database.
func held(t *testing.T, path, word string) (n int) {
	t.Helper()
	files := must.Get(filepath.Glob(path + "*"))(t)
	for _, f := range files {
		raw := must.Get(os.ReadFile(f))(t)
		n += bytes.Count(bytes.ToLower(raw), []byte(word))
	}
	return n
}

// TestScrub: after a scrub no byte of the files has a word of what was deleted, and what is left is found.
func TestScrub(t *testing.T) {
	t.Parallel()
	const marker = "zzqmarker"
	path := filepath.Join(t.TempDir(), "stoa.db")
	storagetest.Migrated(t, path)
	db := storagetest.OpenConfig(t, storage.Config{Path: path})
	var gone []string
	for n := range 300 {
		p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n))
		p.Body = "common"
		if n%10 == 0 {
			p.Title, p.Body, p.Tags = marker+" title", fmt.Sprintf("common %s%d", marker, n), []string{marker}
			gone = append(gone, p.ID)
		}
		store(t, db, p)
	}
	put := func(handle, text string) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			draft := protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person, Description: text}
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: draft}))
		})
	}
	put("asha", "common weaver")
	put("ravi", "common "+marker)
	require.NotZero(t, held(t, path, marker))
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		for _, id := range gone {
			if err := tx.Posts().SetState(ctx, id, protocol.Deleted, ""); err != nil {
				return err
			}
		}
		return tx.Profiles().Delete(ctx, "ravi")
	})
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().PruneRanks(ctx, time.Now().Add(time.Hour)))
	})
	require.NoError(t, db.Scrub(t.Context()))
	require.Zero(t, held(t, path, marker))
	require.NotZero(t, held(t, path, "weaver"))
	require.Len(t, walkBoard(t, db, protocol.BoardQuery{Q: "common"}), 300-len(gone))
	require.NoError(t, db.Scrub(t.Context()), "again, with nothing to do")
}
