package board

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// What the operator hides while the board of the post hides it too is not for
// that board to bring back.
func TestHidePost_BesideTheOperator(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		b := &Board{Base: base}
		host, now := "n2.example", time.Now().UTC().Truncate(time.Millisecond)
		uri := "https://n2.example/ap/posts/post_01k9y3v6k8e5w9q2x4z7c1m0ad"
		var id string
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			id, err = b.ReceivePost(ctx, tx, &protocol.StoredPost{Board: "https://n2.example/ap/board", Post: protocol.Post{
				ID: protocol.RemoteID(protocol.PostID, now, uri), URI: uri, Kind: protocol.QuestionPost, Title: "Far away", Body: "b",
				Author: protocol.Author{Name: "Ada", Node: &host, Method: protocol.ByFederation}, Node: &host, CreatedAt: now,
			}})
			return err
		}))
		ended := make(chan error, 1)
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Posts().SetState(ctx, id, protocol.Hidden, "operator: spam"); err != nil {
				return err
			}
			go func() {
				ended <- db.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error { return b.HidePost(ctx, tx, uri) })
			}()
			time.Sleep(300 * time.Millisecond) // long enough to read what is not committed yet
			return nil
		}))
		require.NoError(t, <-ended)
		require.NoError(t, write(t, db, func(ctx context.Context, tx *storage.Tx) error { return b.RestorePost(ctx, tx, uri) }))
		require.NoError(t, db.Read(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, protocol.Hidden, must.Get(tx.Posts().ByID(ctx, id))(t).State)
			return nil
		}))
	})
}
