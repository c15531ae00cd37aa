package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

func far(n int, parent string) *protocol.StoredPost {
	p := remotePost(start.Add(time.Duration(n)*time.Second), fmt.Sprint("chain-", n))
	if parent != "" {
		p.ReplyTo = "https://far.example/notes/chain-" + parent
	}
	return p
}

// Replies in a circle, and a post that answers itself, are posts that another
// node may send; they stay threads that end.
func TestThread_Circles(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		one, two, three, self := far(1, "3"), far(2, "1"), far(3, "2"), far(4, "4")
		store(t, db, one, two, three, self)
		require.NoError(t, db.Check(t.Context()))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, p := range []*protocol.StoredPost{one, self} {
				got, err := tx.PostByID(ctx, p.ID)
				require.NoError(t, err)
				require.Nil(t, got.Root)
				require.Nil(t, got.InReplyTo)
			}
			thread, err := tx.ListThread(ctx, one.ID, 10, "")
			require.Len(t, thread.Items, 2)
			return err
		})
	})
}

// A parent that comes after its replies takes their threads over, as far as one
// write may cost.
func TestThread_LateParent(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range 1200 { // 0 is the start of a thread of 900 below, 1 of one of 298
				parent := "0"
				switch {
				case n < 2:
					parent = "root"
				case n > 900:
					parent = "1"
				}
				if err := publish(ctx, tx, far(n, parent)); err != nil {
					return err
				}
			}
			return nil
		})
		root := remotePost(start.Add(-time.Hour), "chain-root")
		store(t, db, root)
		require.NoError(t, db.Check(t.Context()))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.CountThread(ctx, root.ID)
			require.NoError(t, err)
			require.Equal(t, 900, n, "the first thread of 1 and 899")
			got, err := tx.PostByID(ctx, root.ID)
			require.NoError(t, err)
			require.Equal(t, 2, got.ReplyCount, "both are replies")
			n, err = tx.CountThread(ctx, walkID(ctx, t, tx, "https://far.example/notes/chain-1"))
			require.Equal(t, 299, n, "the other one stays a thread of its own")
			return err
		})
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Root: root.ID, Q: "rag", Paging: protocol.Paging{Limit: 100}}), 900)
	})
}

func walkID(ctx context.Context, t *testing.T, tx *storage.Tx, uri string) string {
	p, err := tx.PostByURI(ctx, uri)
	require.NoError(t, err)
	return p.ID
}

// An index of words that older rules made is built again when the database is
// opened, and a post can be taken out of it afterwards.
func TestReindex(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		open := func() *storage.DB {
			db, err := storage.Open(t.Context(), c)
			require.NoError(t, err)
			return db
		}
		db := open()
		shown, hidden := samplePost(start, 1), samplePost(start.Add(time.Second), 2)
		shown.Kind = protocol.QuestionPost
		store(t, db, shown, hidden)
		setState(t, db, hidden.ID, protocol.Hidden)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return storage.SpoilWords(ctx, tx) })
		q := protocol.BoardQuery{Q: "rag", Resolved: ptr(false)}
		require.Empty(t, walkBoard(t, db, q))
		require.NoError(t, db.Close())

		db = open()
		defer db.Close()
		require.Equal(t, []string{shown.ID}, walkBoard(t, db, q))
		require.Equal(t, []string{shown.ID}, walkBoard(t, db, protocol.BoardQuery{Q: "rag"}))
		setState(t, db, shown.ID, protocol.Hidden)
		require.Empty(t, walkBoard(t, db, protocol.BoardQuery{Q: "rag"}))
		require.NoError(t, db.Check(t.Context()))
	})
}
