package fill

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const base = "https://n1.example"

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want Config
		bad  bool
	}{
		{"1000", Config{Posts: 1000, Profiles: 100, Threads: 50, Seed: 1}, false},
		{"1m", Config{Posts: 1_000_000, Profiles: 100_000, Threads: 50_000, Seed: 1}, false},
		{"posts=20k, profiles=7,seed=3", Config{Posts: 20_000, Profiles: 7, Threads: 1000, Seed: 3}, false},
		{"profiles=5", Config{Profiles: 5, Seed: 1}, false},
		{"posts=10,profiles=0", Config{Posts: 10, Seed: 1}, false},
		{"posts=10,threads=2k", Config{Posts: 10, Profiles: 1, Threads: 2000, Seed: 1}, false},
		{text: "", bad: true}, {text: "many", bad: true}, {text: "-1", bad: true}, {text: "99m", bad: true},
		{text: "posts=1,words=2", bad: true}, {text: "1000000000000000000000", bad: true},
	} {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.text)
			if tt.bad {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range Words {
		if n < len(realWords) {
			continue // people's words are used twice
		}
		old, twice := seen[Word(n)]
		require.False(t, twice, "%s is %d and %d", Word(n), old, n)
		seen[Word(n)] = n
	}
}

// What is written keeps every rule of the database and of a post, and is the
// same for the same seed.
func TestFill(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		var told []int
		c := Config{Base: base, Posts: 6000, Profiles: 300, Seed: 4, Progress: func(_ string, done, _ int) { told = append(told, done) }}
		require.NoError(t, Fill(t.Context(), db, c))
		require.Equal(t, []int{300, 5000, 6000}, told)
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, Fill(t.Context(), db, c), "again: nothing to do")
		require.Len(t, told, 3)
		c.Seed = 5
		require.ErrorContains(t, Fill(t.Context(), db, c), "filled with posts=6000,profiles=300,threads=0,seed=4 already")

		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			posts, err := tx.CountPosts(ctx)
			require.NoError(t, err)
			require.Equal(t, 6000, posts)
			page, err := tx.ListPosts(ctx, protocol.BoardQuery{Resolved: new(true), Paging: protocol.Paging{Limit: 100}})
			require.NoError(t, err)
			require.True(t, len(page.Items) > 50)
			for _, p := range page.Items {
				by, err := tx.PostByID(ctx, *p.ResolvedBy)
				require.NoError(t, err)
				require.True(t, protocol.Resolves(&by.Post, &p))
				in := protocol.NewPost{Kind: p.Kind, Title: p.Title, Body: p.Body, Tags: p.Tags}
				require.Empty(t, in.Check())
				require.LessOrEqual(t, len([]rune(p.Title)), 120)
				replies, err := tx.ListReplies(ctx, p.ID, 100, "")
				require.NoError(t, err)
				require.Equal(t, p.ReplyCount, len(replies.Items))
			}
			found, err := tx.ListPosts(ctx, protocol.BoardQuery{Q: Word(0), Tag: Tag(0), VerifiedOnly: true})
			require.Len(t, found.Items, 20)
			return err
		}))
	})
}

// A filling that was cut off goes on where it stopped and ends in the same.
func TestFill_GoesOn(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	text := func(stop bool) (titles []string) {
		db := storagetest.Open(t)
		c := Config{Base: base, Posts: 5200, Profiles: 20, Seed: 9}
		if stop {
			c.Progress = func(what string, done, _ int) {
				if what == "posts" {
					panic(cut)
				}
			}
			require.PanicsWithError(t, "cut", func() { _ = Fill(t.Context(), db, c) })
			c.Progress = nil
		}
		require.NoError(t, Fill(t.Context(), db, c))
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for after := ""; len(titles) < 400; {
				page, err := tx.ListPosts(ctx, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100, After: after}})
				if err != nil {
					return err
				}
				for _, p := range page.Items {
					titles = append(titles, p.Author.Name+": "+p.Title+" "+p.Body)
				}
				after = *page.Next
			}
			return nil
		}))
		return titles
	}
	require.Equal(t, text(false), text(true))
}

// What is private of a filled node keeps the rules of the database too, and is
// found by whom it is for.
func TestFill_Threads(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		c := Config{Base: base, Posts: 2000, Profiles: 60, Threads: 1500, Seed: 4}
		require.NoError(t, Fill(t.Context(), db, c))
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, Fill(t.Context(), db, c), "again: nothing to do")
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			stats, err := tx.Statistics(ctx)
			require.NoError(t, err)
			require.Equal(t, 1500, stats.Threads)
			require.Equal(t, 50, stats.Posts.Hidden)
			require.Equal(t, 100, stats.Review)
			require.Equal(t, 300, stats.Blocks)
			for _, state := range []protocol.ThreadState{protocol.ThreadOpen, protocol.ThreadAnswered, protocol.ThreadClosed} {
				page, err := tx.ListThreads(ctx, Handle(0), state, 100, "")
				require.NoError(t, err)
				require.Len(t, page.Items, 100)
			}
			id, err := tx.ThreadByToken(ctx, protocol.SecretHash(ReadToken(7)))
			require.NoError(t, err)
			messages, err := tx.ListMessages(ctx, id, 20, "")
			require.NotEmpty(t, messages.Items)
			require.NoError(t, err)
			_, _, more, err := tx.News(ctx, []string{"handle:" + Handle(0)}, 0, 100)
			require.True(t, more)
			return err
		}))
	})
	c := Config{Base: base, Posts: 10, Threads: 10, Seed: 4}
	require.ErrorContains(t, Fill(t.Context(), storagetest.Open(t), c), "threads are with profiles")
}
