package hall_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// fills stores drafts of a hundred networks that end after a time.
func fills(drafts int, ends time.Duration) func(ctx context.Context, tx *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		for n := range drafts {
			d := storage.Draft{Network: fmt.Sprint(n % 100), Op: "post_to_board", State: storage.DraftWaits, Body: []byte{1}, Result: []byte{},
				EndsAt: tx.Now.Add(ends)}
			d.Hash[0], d.Hash[1], d.Link[0], d.Link[1] = byte(n), byte(n>>8), byte(n), byte(n>>8)
			if err := tx.Drafts().Insert(ctx, d, 100); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestDrafts_Full: when strangers have filled the drafts, a refusal is as it was without them, and known callers notice nothing.
func TestDrafts_Full(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		token := "Bearer " + nodetest.OwnerOf(t, h, "asha")
		require.NoError(t, h.DB.Write(t.Context(), fills(5000, time.Minute)))
		var r struct {
			Code       protocol.Code
			ConfirmURL string
			Challenge  any
		}
		h.Ask("POST", "/api/public/board", nodetest.GoodPost).Is(401).Into(&r)
		require.Equal(t, protocol.PowRequired, r.Code)
		require.NotNil(t, r.Challenge)
		require.Empty(t, r.ConfirmURL)
		h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", token).Is(201)
		again := nodetest.New(t) // where they ended, and wait to be deleted
		require.NoError(t, again.DB.Write(t.Context(), fills(5000, -time.Minute)))
		again.Ask("POST", "/api/public/board", nodetest.GoodPost).Is(401).Into(&r)
		require.NotEmpty(t, r.ConfirmURL)
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			d := storage.Draft{Network: "7", Op: "post_to_board", State: storage.DraftWaits, Body: []byte{1}, Result: []byte{}, EndsAt: tx.Now.Add(time.Hour)}
			d.Hash[2], d.Link[2] = 1, 1
			if err := tx.Drafts().Insert(ctx, d, 50); err != nil {
				return err
			}
			_, err := tx.Drafts().ByHash(ctx, d.Hash)
			require.Equal(t, 5000, must.Get(tx.Drafts().Count(ctx, 6000))(t), "of one network so many, the newest")
			return err
		}))
	})
}
