package storage_test

import (
	"context"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

func TestLog(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			_, _, err := tx.Logs().Head(ctx, boardID)
			require.ErrorIs(t, err, storage.ErrNotFound)
			entries, err := tx.Logs().After(ctx, boardID, 0, 10)
			require.Empty(t, entries)
			return err
		})
		const other = "https://n1.example/ap/feed"
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for range 3 {
				require.NoError(t, tx.Logs().Append(ctx, boardID, "create", "x", []byte(`{"id":1}`)))
			}
			return tx.Logs().Append(ctx, other, "delete", "x", nil)
		})
		var epoch string
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Logs().After(ctx, boardID, 1, 1)
			require.NoError(t, err)
			require.Equal(t, []storage.LogEntry{{Board: boardID, Seq: 2, Kind: "create", ObjectID: "x", Activity: []byte(`{"id":1}`), At: entries[0].At}}, entries)
			require.Equal(t, []string{boardID, other}, must.Get(tx.Logs().Boards(ctx))(t))
			var head int64
			epoch, head, err = tx.Logs().Head(ctx, boardID)
			require.EqualValues(t, 3, head)
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Logs().Redact(ctx, boardID, "x") })
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			entries := must.Get(tx.Logs().After(ctx, boardID, 0, 10))(t)
			for _, e := range entries {
				require.True(t, e.Redacted)
				require.Nil(t, e.Activity)
			}
			now, err := tx.Logs().NewEpoch(ctx, boardID)
			require.NotEqual(t, epoch, now)
			require.Less(t, epoch, now, "epochs sort by time")
			return err
		})
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			err := tx.Logs().Append(ctx, boardID, "no-such-kind", "x", nil)
			return err
		})
		require.Error(t, err)
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestFeed(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		var items []protocol.FeedItem
		for n := range 20 {
			at := start.Add(time.Duration(n) * time.Second)
			items = append(items, protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedTypes[1+n%4], At: at,
				Actor:   protocol.Author{Name: "Asha", Method: protocol.BySession, Proof: protocol.AuthorProof{Level: protocol.ByNothing}},
				Subject: protocol.Subject{Kind: "item", ID: string(rune('a' + n))}, Untrusted: true})
		}
		for _, i := range items {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().Append(ctx, i) })
		}
		require.Equal(t, []string{"t", "s", "r"}, feedSubjects(t, db)[:3])
		require.Equal(t, []string{"r", "n", "j", "f", "b"}, feedSubjects(t, db, protocol.FeedListing))
		require.Len(t, feedSubjects(t, db, protocol.FeedListing, protocol.FeedReview, protocol.FeedReview), 10)
		require.Empty(t, feedSubjects(t, db, "nonsense"))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, items[19], must.Get(tx.Feed().List(ctx, nil, false, 1, ""))(t).Items[0])
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().SetVisible(ctx, "t", false) })
		require.Equal(t, "s", feedSubjects(t, db)[0])
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().SetVisible(ctx, "t", true) })
		require.Equal(t, "t", feedSubjects(t, db)[0])
		err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().Append(ctx, items[0]) })
		require.ErrorIs(t, err, storage.ErrExists)
	})
}
