package fill

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
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
		{"posts=10,profiles=10,boards=7", Config{Posts: 10, Profiles: 10, Boards: 7, Seed: 1}, false},
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
		old, twice := seen[Word(n)]
		require.False(t, twice, "%s is %d and %d", Word(n), old, n)
		if len(Word(n)) > 16 {
			t.Errorf("%s is too long for a tag or a name", Word(n))
		}
		seen[Word(n)] = n
	}
}

// What is filled reads like posts of people: whole sentences of known words, some
// in Hindi; and it keeps Zipf's law, which searches are measured with.
func TestSentences(t *testing.T) {
	t.Parallel()
	const posts = 20_000
	w := newWriter(Config{Base: base, Posts: posts, Profiles: 100, Seed: 1}, time.Now())
	rank := map[string]int{}
	for n := range Words {
		rank[Word(n)] = n
	}
	var hindi int
	has := map[int]int{} // posts with the word of a rank
	for n := range posts {
		r := w.of(1, n)
		kind, inHindi := protocol.PostKinds[w.plan.kind[n]], inHindi(r)
		title, body := w.title(r, kind, inHindi), w.sentences(r, inHindi, 12, 60)
		require.NotContains(t, title+body, "{")
		require.NotContains(t, title+body, "  ")
		require.LessOrEqual(t, len([]rune(title)), 120, title)
		words := strings.Fields(body)
		require.LessOrEqual(t, len(words), 60)
		require.GreaterOrEqual(t, len(words), 10, body)
		require.Regexp(t, `[.।]$`, body)
		if strings.ContainsFunc(body, func(c rune) bool { return unicode.Is(unicode.Devanagari, c) }) {
			hindi++
			require.Contains(t, body, "।", "a text is in one language")
		}
		seen := map[int]bool{}
		for word := range strings.FieldsFuncSeq(title+" "+body, func(c rune) bool { return !unicode.IsLetter(c) }) {
			if n, ok := rank[strings.ToLower(word)]; ok && !seen[n] {
				seen[n] = true
				has[n]++
			}
		}
	}
	require.InDelta(t, posts/8, hindi, posts/50)
	require.InDelta(t, 0.83, float64(has[0])/posts, 0.1, "the first word is in five posts of six")
	sum := 0 // of ten neighbours each, since a single rare word is chance
	for n := range 10 {
		sum += has[95+n]
	}
	require.InDelta(t, 0.02, float64(sum)/10/posts, 0.01, "the hundredth in two of a hundred")
	rare := 0
	for n := Words - 10_000; n < Words; n++ {
		rare += has[n]
	}
	require.InDelta(t, 4e-5, float64(rare)/10_000/posts, 2e-5, "the last in some of a hundred thousand")
}

// What is written keeps every rule of the database and of a post, and is the
// same for the same seed.
func TestFill(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		var told []int
		c := Config{Base: base, Posts: 6000, Profiles: 300, Boards: 205, Seed: 4, Progress: func(_ string, done, _ int) { told = append(told, done) }}
		require.NoError(t, Fill(t.Context(), db, c))
		require.Equal(t, []int{300, 5000, 6000}, told)
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, Fill(t.Context(), db, c), "again: nothing to do")
		require.Len(t, told, 3)
		c.Seed = 5
		require.ErrorContains(t, Fill(t.Context(), db, c), "filled with posts=6000,profiles=300,threads=0,boards=205,seed=4 already")

		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 6000, must.Get(tx.Posts().Count(ctx))(t))
			page := must.Get(tx.Posts().List(ctx, protocol.BoardQuery{Resolved: new(true), Paging: protocol.Paging{Limit: 100}}))(t)
			require.True(t, len(page.Items) > 50)
			for _, p := range page.Items {
				by := must.Get(tx.Posts().ByID(ctx, *p.ResolvedBy))(t)
				require.True(t, protocol.Resolves(&by.Post, &p))
				in := protocol.NewPost{Kind: p.Kind, Title: p.Title, Body: p.Body, Tags: p.Tags}
				require.Empty(t, in.Check())
				require.LessOrEqual(t, len([]rune(p.Title)), 120)
				require.Equal(t, p.ReplyCount, len(must.Get(tx.Posts().ListReplies(ctx, p.ID, 100, ""))(t).Items))
			}
			require.Equal(t, 44, len(must.Get(tx.AttentionBoards().List(ctx, "yarn", 100, ""))(t).Items))
			require.Len(t, must.Get(tx.Posts().List(ctx, protocol.BoardQuery{Q: Word(0), Tag: Tag(0), VerifiedOnly: true}))(t).Items, 20)
			return nil
		}))
	})
}

// Every person may have a board, and a business none.
func TestFill_Persons(t *testing.T) {
	t.Parallel()
	for profiles := range 50 {
		n := 0
		for i := range profiles {
			if !business(i) {
				require.Equal(t, n, persons(i))
				n++
			}
		}
		require.Equal(t, n, persons(profiles))
	}
}

// A filling that was cut off continues where it stopped and ends in the same.
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
				page, err := tx.Posts().List(ctx, protocol.BoardQuery{Paging: protocol.Paging{Limit: 100, After: after}})
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
			stats := must.Get(tx.Site().Statistics(ctx))(t)
			require.Equal(t, 1500, stats.Threads)
			require.Equal(t, 50, stats.Posts.Hidden)
			require.Equal(t, 100, stats.Review)
			require.Equal(t, 300, stats.Blocks)
			for _, state := range []protocol.ThreadState{protocol.ThreadOpen, protocol.ThreadAnswered, protocol.ThreadClosed} {
				require.Len(t, must.Get(tx.Threads().List(ctx, Handle(0), state, 100, ""))(t).Items, 100)
			}
			id := must.Get(tx.Threads().IDByToken(ctx, protocol.SecretHash(ReadToken(7))))(t)
			messages, err := tx.Threads().ListMessages(ctx, id, 20, "")
			require.NotEmpty(t, messages.Items)
			require.NoError(t, err)
			_, _, more, err := tx.News().After(ctx, []string{"handle:" + Handle(0)}, 0, 100)
			require.True(t, more)
			return err
		}))
	})
	c := Config{Base: base, Posts: 10, Threads: 10, Seed: 4}
	require.ErrorContains(t, Fill(t.Context(), storagetest.Open(t), c), "threads are with profiles")
}
