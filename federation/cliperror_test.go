package federation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
	"stoa/storage/storagetest"
)

// What a peer put into an error, both databases store: NUL, bytes that are not UTF-8, and letters that are cut.
func TestClipError(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		o := storage.Outlet{Board: "https://b.example/ap/board", Inbox: "https://p.example/inbox", Host: "p.example"}
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().Put(ctx, o) }))
		for _, text := range []string{"\x00 \xff", "x" + strings.Repeat("é", 400)} {
			said := clipError(errors.New(text))
			require.LessOrEqual(t, len(said), 503)
			require.NoError(t, db.FailOutlet(t.Context(), o.Board, o.Inbox, time.Minute, said, storage.OutletSlow))
		}
	})
}
