package storage_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// TestErased looks for what was deleted in the bytes of a SQLite file: title, body, tags and words of a post.
func TestErased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stoa.db")
	db, err := storage.Open(t.Context(), storage.Config{Path: path})
	require.NoError(t, err)
	var ids []string
	for n := range 40 {
		p := samplePost(start.Add(time.Duration(n)*time.Second), int64(n+1))
		p.Title, p.Body, p.Tags = "zqtitle and more", "zqbody 98765 telephone", []string{"zqtag"}
		store(t, db, p)
		ids = append(ids, p.ID)
	}
	require.NoError(t, db.Close()) // with the log
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, word := range []string{"zqtitle", "zqbody", "zqtag"} {
		require.True(t, bytes.Contains(raw, []byte(word)), word)
	}
	db, err = storage.Open(t.Context(), storage.Config{Path: path})
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetState(ctx, id, protocol.Deleted, "")
		}))
	}
	require.NoError(t, db.Close())
	raw, err = os.ReadFile(path)
	require.NoError(t, err)
	for _, word := range []string{"zqtitle", "zqbody", "zqtag", "98765"} {
		require.False(t, bytes.Contains(raw, []byte(word)), word)
	}
}
