package operate

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestRules_Fresh: blocks are read again when some process changed one, and only then: at once where it
// was changed, within two seconds elsewhere.
func TestRules_Fresh(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		one, two := storagetest.OpenConfig(t, c), storagetest.OpenConfig(t, c)
		rules := func(db *storage.DB) *Rules { return &Rules{DB: db, Log: slog.New(slog.DiscardHandler), Dev: true} }
		here, there := rules(one), rules(two)
		put := func(i int) {
			t.Helper()
			require.NoError(t, one.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Blocks().Put(ctx, protocol.Block{ID: protocol.NewID(protocol.BlockID, tx.Now), Kind: protocol.BlockKey, Value: fmt.Sprint("key ", i),
					CreatedAt: tx.Now})
			}))
		}
		put(0)
		here.Fresh(t.Context())
		there.Fresh(t.Context())
		known := here.blocks.Load()
		require.Len(t, *known, 1)
		require.Len(t, *there.blocks.Load(), 1)

		for range 30 { // over two looks at the generation
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, one.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Audit(ctx, "node", "noted", "x", "")
			}))
			here.Fresh(t.Context())
			require.Same(t, known, here.blocks.Load(), "nothing of them changed")
		}

		put(1)
		here.Fresh(t.Context())
		require.Len(t, *here.blocks.Load(), 2, "at once")
		require.Eventually(t, func() bool {
			there.Fresh(t.Context())
			return len(*there.blocks.Load()) == 2
		}, time.Minute, 20*time.Millisecond, "at the other process")
	})
}
