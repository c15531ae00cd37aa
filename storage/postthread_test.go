package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

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
	each(t, func(t *testing.T, db *storage.DB) {
		one, two, three, self := far(1, "3"), far(2, "1"), far(3, "2"), far(4, "4")
		store(t, db, one, two, three, self)
		require.NoError(t, db.Check(t.Context()))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, p := range []*protocol.StoredPost{one, self} {
				got := must.Get(tx.Posts().ByID(ctx, p.ID))(t)
				require.Nil(t, got.Root)
				require.Nil(t, got.InReplyTo)
			}
			require.Len(t, must.Get(tx.Posts().ListThread(ctx, one.ID, 10, ""))(t).Items, 2)
			return nil
		})
	})
}

// A parent that comes after its replies takes their threads over: some with itself,
// the others by a job, piece by piece, and all but one that is too large.
func TestThread_LateParent(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const short = 150             // replies to the root without any below them
		const whole, large = 60, 1000 // posts below chain-0 and below chain-1
		question := remotePost(start.Add(-time.Hour), "chain-root")
		question.Kind = protocol.QuestionPost
		resolution := far(2+short-1, "root") // the last of the replies, so that a job joins it
		resolution.Kind = protocol.Resolution
		for _, p := range []*protocol.StoredPost{question, resolution} {
			p.Author.Verified, p.Author.KeyID = true, ptr("k")
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for n := range 2 + short - 1 {
				if err := publish(ctx, tx, far(n, "root")); err != nil {
					return err
				}
			}
			for n := range whole + large {
				parent := "0"
				if n >= whole {
					parent = "1"
				}
				if err := publish(ctx, tx, far(1000+n, parent)); err != nil {
					return err
				}
			}
			return publish(ctx, tx, resolution)
		})
		store(t, db, question)
		count := func() (replies, thread int) {
			require.NoError(t, db.Check(t.Context()))
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				got := must.Get(tx.Posts().ByID(ctx, question.ID))(t)
				replies = got.ReplyCount
				thread, err = tx.Posts().CountThread(ctx, question.ID)
				return err
			})
			return replies, thread
		}
		replies, thread := count()
		require.Equal(t, []int{1 + 38 + 1, 1 + whole + 38}, []int{replies, thread}, "a hundred posts, and the one that stays a thread")
		steps := 0
		for ; ; steps++ {
			jobs, _, err := db.ClaimJobs(t.Context(), "o", 1, time.Minute)
			require.NoError(t, err)
			if len(jobs) == 0 {
				break
			}
			require.Equal(t, storage.AdoptJob, jobs[0].Kind)
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.Jobs().Finish(ctx, jobs[0].ID); err != nil {
					return err
				}
				return tx.Posts().AdoptReplies(ctx, string(jobs[0].Args))
			})
			count()
		}
		require.Equal(t, 2, steps, "a hundred at once")
		replies, thread = count()
		require.Equal(t, []int{2 + short, 1 + whole + short}, []int{replies, thread})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, &resolution.ID, must.Get(tx.Posts().ByID(ctx, question.ID))(t).ResolvedBy)
			n, err := tx.Posts().CountThread(ctx, walkID(ctx, t, tx, "https://far.example/notes/chain-1"))
			require.Equal(t, large, n, "too large: it stays a thread of its own")
			return err
		})
		require.Len(t, walkBoard(t, db, protocol.BoardQuery{Root: question.ID, Q: "rag", Paging: protocol.Paging{Limit: 100}}), 1+whole+short)
	})
}

func walkID(ctx context.Context, t *testing.T, tx *storage.Tx, uri string) string {
	p := must.Get(tx.Posts().ByURI(ctx, uri))(t)
	return p.ID
}

// An index of words that older rules made is built again when the database is
// opened, and a post can be taken out of it afterwards.
func TestReindex(t *testing.T) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		open := func() *storage.DB { return must.Get(storage.Open(t.Context(), c))(t) }
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
