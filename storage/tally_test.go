package storage_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

func someNews(at time.Time, subject string) protocol.FeedItem {
	return protocol.FeedItem{ID: protocol.NewID(protocol.FeedID, at), Type: protocol.FeedListing, At: at,
		Actor: protocol.Author{Name: "Asha", Method: protocol.BySession}, Subject: protocol.Subject{Kind: "item", ID: subject}}
}

// TestFeedAfter_Writers follows the feed and the news of a reader while eight
// writers of two processes write: nothing is missed and nothing comes twice,
// although commits overtake each other and ids are not in their order.
func TestFeedAfter_Writers(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		const writers, each = 8, 40
		var dbs []*storage.DB
		for range 2 {
			db := storagetest.OpenConfig(t, c)
			dbs = append(dbs, db)
		}
		var group sync.WaitGroup
		done := make(chan struct{})
		for w := range writers {
			group.Go(func() {
				for i := range each {
					subject := fmt.Sprintf("s%d-%d", w, i)
					err := dbs[w%2].Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
						if i%5 == 4 { // a write that looks at tables, and so settles in the middle of a batch
							if _, err := tx.Posts().ByID(ctx, "post_01k9y3v6k8e5w9q2x4z7c1m0ad"); err != storage.ErrNotFound {
								return err
							}
						}
						if err := tx.Feed().Append(ctx, someNews(tx.Now.Add(-time.Duration(i%7)*time.Second), subject)); err != nil {
							return err
						}
						if err := tx.News().Append(ctx, storage.NewsReply, subject, "handle:asha", "key:k", "", "key:k"); err != nil {
							return err
						}
						if err := tx.Logs().Append(ctx, fmt.Sprint("board", i%3), "create", subject, nil); err != nil {
							return err
						}
						if i%6 == 5 {
							return errRoom
						}
						return nil
					})
					if i%6 == 5 {
						require.ErrorIs(t, err, errRoom)
					} else {
						require.NoError(t, err)
					}
				}
			})
		}
		go func() { group.Wait(); close(done) }()
		wanted := writers * (each - each/6)
		feed, news := map[string]int{}, map[string]int{}
		var at, told int64
		for last := false; ; {
			err := dbs[1].Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				entries, err := tx.Feed().After(ctx, at, 7)
				for _, e := range entries {
					require.Greater(t, e.N, at)
					at = e.N
					feed[e.Subject.ID]++
				}
				if err != nil {
					return err
				}
				items, upTo, _, err := tx.News().After(ctx, []string{"key:k", "handle:asha"}, told, 5)
				for _, i := range items {
					news[i.Ref]++
				}
				require.GreaterOrEqual(t, upTo, told)
				told = upTo
				return err
			})
			require.NoError(t, err)
			if len(feed) == wanted && len(news) == wanted {
				break
			}
			select {
			case <-done:
				require.False(t, t.Failed(), "a writer gave up")
				require.False(t, last, "one more look after the last commit finds the rest") // only when less came than fits a page
				require.NoError(t, dbs[1].Numbered(t.Context()))
				last = len(feed)+7 >= wanted && len(news)+5 >= wanted
			default:
			}
		}
		for subject, n := range feed {
			require.Equal(t, 1, n, subject)
			require.Equal(t, 1, news[subject], subject)
		}
		require.NoError(t, dbs[0].Check(t.Context()))
	})
}

func TestFeedPlace(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		place := func(id string) (n int64, at string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				n, at, err = tx.Feed().Place(ctx, id)
				return err
			})
			return n, at
		}
		n, at := place("")
		require.Zero(t, n)
		require.Empty(t, at)

		early, late := someNews(start, "early"), someNews(start.Add(time.Minute), "late")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().Append(ctx, late) })
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().Append(ctx, early) })
		first, _ := place(late.ID)
		second, _ := place(early.ID)
		require.Greater(t, second, first, "the order is that of commits, not of ids")
		n, at = place("")
		require.Equal(t, second, n)
		require.Equal(t, early.ID, at)

		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Feed().SetVisible(ctx, "late", false) })
		n, _ = place(late.ID)
		require.Equal(t, first, n, "a place stays when its item is hidden")

		n, at = place(protocol.NewID(protocol.FeedID, start.Add(30*time.Second)))
		require.Equal(t, second, n, "an unknown id gives its time")
		require.NotEmpty(t, at)
		n, _ = place(protocol.NewID(protocol.FeedID, start.Add(-time.Hour)))
		require.Zero(t, n)
	})
}

// A deleted post leaves its place in the feed and nothing of its text.
func TestFeedPlace_OfADeletedPost(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		store(t, db, p)
		var entry storage.FeedEntry
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			entries, err := tx.Feed().After(ctx, 0, 10)
			require.Len(t, entries, 1)
			entry = entries[0]
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Logs().Redact(ctx, p.Board, p.ID); err != nil {
				return err
			}
			return tx.Posts().SetState(ctx, p.ID, protocol.Deleted, "by its author")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(t, must.Get(tx.Feed().After(ctx, 0, 10))(t))
			n, _, err := tx.Feed().Place(ctx, entry.ID)
			require.Equal(t, entry.N, n)
			return err
		})
		require.NoError(t, db.Check(t.Context()))
	})
}

func TestNews(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for i := range 5 {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.News().Append(ctx, storage.NewsReply, fmt.Sprint("r", i), "handle:asha", "agent:a"); err != nil {
					return err
				}
				return tx.News().Append(ctx, storage.NewsInbox, fmt.Sprint("m", i), "handle:rao")
			})
		}
		ask := func(after int64, limit int, names ...string) (refs []string, upTo int64, more bool) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				items, n, m, err := tx.News().After(ctx, names, after, limit)
				for _, i := range items {
					refs = append(refs, i.Ref)
				}
				upTo, more = n, m
				return err
			})
			return refs, upTo, more
		}
		refs, upTo, more := ask(0, 3, "handle:asha", "agent:a", "key:none")
		require.Equal(t, []string{"r0", "r1", "r2"}, refs)
		require.True(t, more)
		refs, upTo, more = ask(upTo, 3, "agent:a")
		require.Equal(t, []string{"r3", "r4"}, refs)
		require.False(t, more)
		refs, again, more := ask(upTo, 3, "agent:a", "handle:asha")
		require.Empty(t, refs)
		require.False(t, more)
		require.Equal(t, upTo, again)
		refs, _, _ = ask(0, 100, "handle:rao")
		require.Len(t, refs, 5)
		refs, _, _ = ask(0, 100)
		require.Empty(t, refs, "who has no name has no news")
		var many []string
		for i := range protocol.MaxProfiles {
			many = append(many, fmt.Sprint("handle:other-", i))
		}
		refs, _, _ = ask(0, 100, append(many, "account:x", "key:k", "visitor:v", "agent:a")...)
		require.Len(t, refs, 5, "no name is passed over")

		require.Equal(t, upTo, must.Get(storage.ParseNewsCursor(storage.NewsCursor(upTo)))(t))
		require.Equal(t, protocol.InvalidCursor, protocol.CodeOf(must.Err(storage.ParseNewsCursor("nonsense"))))
		err := db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.News().Append(ctx, storage.NewsReply, "x", "handle:asha")
		})
		require.ErrorIs(t, err, storage.ErrReadOnly)
	})
}

// After a restore from a backup readers hold places beyond it.
func TestNews_AfterARestore(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const beyond = 500 // handed out after the backup was made
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Logs().NewEpoch(ctx, boardID)) })
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Feed().Append(ctx, someNews(tx.Now, "new")); err != nil {
				return err
			}
			return tx.News().Append(ctx, storage.NewsReply, "new", "handle:asha")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Len(t, must.Get(tx.Feed().After(ctx, beyond, 10))(t), 1)
			items, upTo, _, err := tx.News().After(ctx, []string{"handle:asha"}, beyond, 10)
			require.Len(t, items, 1)
			require.Greater(t, upTo, int64(beyond))
			return err
		})
	})
}
