package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// A domain has a limit of a day, a post one for all; a count that is wrong is found.
func TestReactions_Limits(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		now := time.Now()
		c.Now = func() time.Time { return now }
		db := storagetest.OpenConfig(t, c)
		p := samplePost(now, 1)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return insertShown(ctx, tx, p) })
		like := func(n int, domain string) (stored bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				actor := fmt.Sprintf("https://%s/u/%d", domain, n)
				stored, _, err = tx.Reactions().Add(ctx, storage.Reaction{PostID: p.ID, Actor: actor, Kind: storage.Like, URI: actor + "/like", Domain: domain})
				return err
			})
			return stored
		}
		require.True(t, like(0, "a.example"))
		require.NoError(t, storage.CopyRows(t.Context(), db, "reaction", `domain = 'a.example'`, storage.MaxReactionsOfDomain-2,
			map[string]string{"key": "key || CAST(s AS TEXT)", "actor": "actor || '-' || CAST(s AS TEXT)"}))
		require.NoError(t, storage.Exec(t.Context(), db, `UPDATE post SET likes = ?`, storage.MaxReactionsOfDomain-1))
		require.True(t, like(1, "a.example"))
		require.False(t, like(2, "a.example"))
		require.True(t, like(0, "a.example"), "that is stored already")
		require.True(t, like(0, "b.example"))
		now = now.Add(25 * time.Hour)
		require.True(t, like(2, "a.example"), "another day")
		require.NoError(t, db.Check(t.Context()))

		require.NoError(t, storage.Exec(t.Context(), db, `UPDATE post SET likes = likes - 1, shares = ?`, storage.MaxReactionsOfPost))
		require.ErrorContains(t, db.Check(t.Context()), "count of reactions")
		require.False(t, like(1, "b.example"), "the post is full")
	})
}

// The reactions of a host go with its sub-domains, and no others.
func TestReactions_DropHost(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(time.Now(), 1)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return insertShown(ctx, tx, p) })
		hosts := []string{"a.example", "x.a.example:8443", "ba.example", "b.example"}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, host := range hosts {
				r := storage.Reaction{PostID: p.ID, Actor: "https://" + host + "/u", Kind: storage.Share, URI: "https://" + host + "/a", Domain: "d.example"}
				if _, _, err := tx.Reactions().Add(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			gone, next, err := tx.Reactions().Drop(ctx, storage.DropReactions{Host: "a.example"})
			require.Len(t, gone, 2)
			require.Nil(t, next)
			return err
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 2, must.Get(tx.Posts().ByID(ctx, p.ID))(t).Shares)
			return nil
		})
		require.NoError(t, db.Check(t.Context()))
	})
}

// insertShown stores a post with its item of the feed.
func insertShown(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error {
	if err := tx.Posts().Insert(ctx, p); err != nil {
		return err
	}
	return tx.Feed().Append(ctx, feedItem(p))
}
