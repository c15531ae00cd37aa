package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

func block(kind protocol.BlockKind, value string, at time.Time, until *time.Time) protocol.Block {
	return protocol.Block{ID: protocol.NewID(protocol.BlockID, at), Kind: kind, Value: value, Actor: "operator", CreatedAt: at, ExpiresAt: until}
}

func TestBlocks(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		soon, past := now.Add(time.Hour), now.Add(-time.Second)
		put := func(b protocol.Block) {
			t.Helper()
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Blocks().Put(ctx, b) })
		}
		first := block(protocol.BlockHost, "evil.example", now, &soon)
		put(first)
		put(block(protocol.BlockHost, "late.example", now, &past))
		put(block(protocol.BlockActor, "https://a.example/u", now, nil))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for host, want := range map[string]bool{
				"evil.example": true, "sub.evil.example:8443": true, "EVIL.example": true, "notevil.example": false, "late.example": false, "example": false,
			} {
				require.Equal(t, want, must.Get(tx.Peers().Refused(ctx, host))(t), host)
			}
			got, err := tx.Blocks().Match(ctx, protocol.BlockActor, "https://a.example/u")
			require.True(t, got)
			require.NoError(t, err)
			all, err := tx.Blocks().All(ctx)
			require.Len(t, all, 2)
			return err
		})
		again := block(protocol.BlockHost, "evil.example", now.Add(time.Second), nil)
		put(again)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Blocks().List(ctx, protocol.NodeBlockQuery{Kind: protocol.BlockHost})
			require.Equal(t, []protocol.Block{again}, page.Items, "the same thing is blocked once")
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Blocks().Delete(ctx, first.ID)), storage.ErrNotFound)
			b, err := tx.Blocks().Delete(ctx, again.ID)
			require.Equal(t, again, b)
			require.NoError(t, err)
			n, err := tx.Blocks().Prune(ctx)
			require.Equal(t, 1, n, "what ended")
			return err
		})
	})
}

// The network of an anonymous post is stored apart from it, whichever way the post
// is written, and for a while only.
func TestWriters(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		now := time.Now()
		var ids []string
		var parent string
		for n := range 6 {
			p := samplePost(now.Add(time.Duration(n-40)*24*time.Hour), int64(n))
			p.Network = fmt.Sprint("net", n)
			if n == 5 {
				p.Network = ""
			}
			if n%2 == 1 {
				p.InReplyTo = &parent
			}
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
			parent = p.ID
			ids = append(ids, p.ID)
		}
		of := func(id string) (network string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				network, err = tx.Posts().Writer(ctx, id)
				if err == storage.ErrNotFound {
					return nil
				}
				return err
			})
			return network
		}
		for n := range 5 {
			require.Equal(t, fmt.Sprint("net", n), of(ids[n]))
		}
		require.Empty(t, of(ids[5]))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 3, must.Get(tx.Posts().PruneWriters(ctx, now.Add(-37*24*time.Hour+-time.Hour)))(t))
			return nil
		})
		require.Empty(t, of(ids[2]))
		require.Equal(t, "net3", of(ids[3]))
	})
}

// The queue holds what is visible and reported, and walks without a gap.
func TestReview(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		now := time.Now()
		var want []string
		for n := range 5 {
			p := samplePost(now.Add(time.Duration(-n)*time.Second), int64(n))
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for _, by := range []string{"a", "b", "a"} {
					if _, _, err := tx.Moderation().InsertReport(ctx, p.ID, by, "spam"); err != nil {
						return err
					}
				}
				return nil
			})
			want = append(want, p.ID)
		}
		walk := func() (ids []string) {
			for after := ""; ; {
				page := reads(t, db, func(ctx context.Context, tx *storage.Tx) (protocol.Page[string], error) {
					return tx.Moderation().ListReview(ctx, 2, after)
				})
				ids = append(ids, page.Items...)
				if page.Next == nil {
					return ids
				}
				after = *page.Next
			}
		}
		require.Equal(t, want, walk())
		setState(t, db, want[0], protocol.Hidden)
		setState(t, db, want[2], protocol.Deleted)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 2, must.Get(tx.Moderation().SpendReports(ctx, want[4]))(t))
			return nil
		})
		require.Equal(t, []string{want[1], want[3]}, walk())
		setState(t, db, want[0], protocol.Visible)
		require.Equal(t, []string{want[1], want[3]}, walk(), "what was restored waits for new reports")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			fresh, n, err := tx.Moderation().InsertReport(ctx, want[0], "c", "")
			require.True(t, fresh)
			require.Equal(t, 1, n)
			return err
		})
		require.Equal(t, []string{want[0], want[1], want[3]}, walk())
	})
}

// What other servers report is in the queue, bounded, and counts towards nothing.
func TestFlags(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		var ids []string
		for n := range storage.MaxFlagsOfDomain + 1 {
			p := samplePost(time.Now().Add(time.Duration(n)*time.Second), int64(n))
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().Insert(ctx, p) })
			ids = append(ids, p.ID)
		}
		flag := func(post, domain string) (fresh bool) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				fresh, err = tx.Moderation().InsertFlag(ctx, storage.Report{PostID: post, Reporter: domain, Reason: "spam", Domain: domain})
				return err
			})
			return fresh
		}
		queue := func() (posts []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				page, err := tx.Moderation().ListReview(ctx, 100, "")
				posts = page.Items
				return err
			})
			return posts
		}
		require.True(t, flag(ids[0], "a.example"))
		require.False(t, flag(ids[0], "a.example"), "one domain counts once")
		require.Equal(t, ids[:1], queue())
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Zero(t, must.Get(tx.Moderation().OpenReports(ctx, ids[0]))(t), "it hides nothing")
			return nil
		})
		for n := range storage.MaxFlagsOfPost + 5 {
			require.Equal(t, n < storage.MaxFlagsOfPost-1, flag(ids[0], fmt.Sprintf("b%d.example", n)), n)
		}
		for n, id := range ids[1:] {
			require.Equal(t, n < storage.MaxFlagsOfDomain-1, flag(id, "a.example"), n)
		}
		setState(t, db, ids[1], protocol.Hidden)
		require.False(t, flag(ids[1], "c.example"), "someone has decided")
		require.True(t, flag(ids[len(ids)-1], "a.example"), "which makes room")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, storage.MaxFlagsOfPost, must.Get(tx.Moderation().SpendReports(ctx, ids[0]))(t))
			return nil
		})
		require.False(t, flag(ids[0], "a.example"), "heard, and dismissed")
		require.NotContains(t, queue(), ids[0])
	})
}

// More reports of one post than anyone reads are not stored, so that a decision
// changes a bounded number of rows; after the decision new ones count again.
func TestInsertReport_Bounded(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		p := samplePost(start, 1)
		store(t, db, p)
		report := func(by string) (fresh bool, distinct int) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				fresh, distinct, err = tx.Moderation().InsertReport(ctx, p.ID, by, "spam")
				return err
			})
			return fresh, distinct
		}
		report("first")
		require.NoError(t, storage.CopyRows(t.Context(), db, "report", `reporter = 'first'`, storage.MaxReportsOfPost-2,
			map[string]string{"reporter": "CAST(s AS TEXT)"}))
		fresh, n := report("last")
		require.True(t, fresh)
		require.Equal(t, storage.MaxReportsOfPost, n)
		for _, by := range []string{"one more", "first"} {
			fresh, n = report(by)
			require.False(t, fresh, by)
			require.Equal(t, storage.MaxReportsOfPost, n)
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, storage.MaxReportsOfPost, must.Get(tx.Moderation().SpendReports(ctx, p.ID))(t))
			return nil
		})
		fresh, n = report("one more")
		require.True(t, fresh)
		require.Equal(t, 1, n)
	})
}
