package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

// An oldPosts is a database with posts of two old months and of the present one, and a clock.
type oldPosts struct {
	*testing.T
	*storage.DB
	now   *time.Time
	c     storage.Config
	posts []*protocol.StoredPost
}

const (
	january  = 202501
	february = 202502
)

func withOldPosts(t *testing.T, c storage.Config) *oldPosts {
	now := start
	c.Now = func() time.Time { return now }
	old := time.Date(2025, 1, 31, 23, 59, 50, 0, time.UTC)
	w := &oldPosts{T: t, now: &now, c: c, DB: storagetest.OpenConfig(t, c)}
	for i := range 8 {
		p := samplePost(old.Add(time.Duration(i)*2*time.Second), int64(i)) // five of January, three of February
		p.Title = fmt.Sprintf("Deckle %d", i)
		switch i {
		case 1, 6:
			p.Statement = []byte(`{"statement":1}`)
		case 2:
			r := remotePost(p.CreatedAt, "1")
			r.ID, r.Title = p.ID, p.Title
			p = r
		}
		w.posts = append(w.posts, p)
	}
	w.posts = append(w.posts, samplePost(start, 8))
	store(t, w.DB, w.posts...)
	w.counted()
	w.state(w.posts[3].ID, protocol.Hidden)
	return w
}

func (w *oldPosts) counted() {
	write(w, w.DB, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Posts().CountFresh(ctx)) })
}

func (w *oldPosts) state(id string, s protocol.PostState) {
	write(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
		if s == protocol.Deleted {
			if err := tx.Logs().Redact(ctx, boardID, id); err != nil {
				return err
			}
		}
		return tx.Posts().SetState(ctx, id, s, "")
	})
}

// seen is what every way to read posts returns.
func (w *oldPosts) seen() (all []any) {
	read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
		ps := tx.Posts()
		add := func(v any, err error) {
			require.NoError(w, err)
			all = append(all, v)
		}
		for _, p := range w.posts {
			got := must.Get(ps.ByID(ctx, p.ID))(w)
			require.Equal(w, got, must.Get(ps.ByURI(ctx, p.URI))(w))
			got.Part = 0
			add(got, nil)
		}
		add(ps.List(ctx, protocol.BoardQuery{Paging: protocol.Paging{Limit: 50}}))
		add(ps.List(ctx, protocol.BoardQuery{Tag: "paper", Author: "asha", Paging: protocol.Paging{Limit: 50}}))
		add(ps.List(ctx, protocol.BoardQuery{Q: "deckle", Paging: protocol.Paging{Limit: 50}}))
		add(ps.ListOwn(ctx, "asha", 50, ""))
		for _, list := range []func() (protocol.Page[protocol.StoredPost], error){
			func() (protocol.Page[protocol.StoredPost], error) { return ps.ListHidden(ctx, 50, "") },
			func() (protocol.Page[protocol.StoredPost], error) { return ps.ListBoosted(ctx, boardID, 50, "") },
		} {
			page, err := list()
			for i := range page.Items {
				page.Items[i].Part = 0
			}
			add(page, err)
		}
		return ps.EachOwn(ctx, "asha", func(p *storage.ArchivedPost) error {
			stored := p.StoredPost
			stored.Part = 0
			all = append(all, stored)
			return nil
		})
	})
	return all
}

func (w *oldPosts) found(q string) int {
	n := 0
	read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
		l, err := tx.Posts().List(ctx, protocol.BoardQuery{Q: `"` + q + `"`, Paging: protocol.Paging{Limit: 50}})
		n = len(l.Items)
		return err
	})
	return n
}

func (w *oldPosts) terms() map[string]int {
	return reads(w, w.DB, func(ctx context.Context, tx *storage.Tx) (map[string]int, error) { return tx.Terms(ctx) })
}

func (w *oldPosts) parts() map[int64]int64 {
	all := must.Get(w.DB.Parts(w.Context()))(w)
	n := map[int64]int64{}
	for _, p := range all {
		n[p.Month] = p.Posts
	}
	return n
}

func (w *oldPosts) bytes(month string) []byte {
	raw, err := os.ReadFile(filepath.Join(w.partsDir(), "posts-"+month+".db"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w, err)
	return raw
}

func (w *oldPosts) partsDir() string {
	if w.c.Parts != "" {
		return w.c.Parts
	}
	return filepath.Join(filepath.Dir(w.c.Path), "parts")
}

// pass lets hours pass and the job visit the files.
func (w *oldPosts) pass(hours int) {
	*w.now = w.now.Add(time.Duration(hours) * time.Hour)
	for more := true; more; {
		more = must.Get(w.EraseParts(w.Context(), "p", time.Hour))(w)
	}
}

func eachOld(t *testing.T, fn func(w *oldPosts)) {
	eachConfig(t, func(t *testing.T, c storage.Config) {
		w := withOldPosts(t, c)
		fn(w)
		w.counted()
		require.NoError(t, w.Check(t.Context()))
	})
}

// What is in a part is read as before, in every way except by a search for words of its text.
func TestParts(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		before, terms := w.seen(), w.terms()
		require.Equal(w, 8, w.found("courier"))
		require.False(w, must.Get(w.DetachOld(w.Context(), 20, "p", time.Hour))(w))
		w.counted()
		require.Equal(w, map[int64]int64{january: 5, february: 3}, w.parts())
		require.Equal(w, before, w.seen())
		require.Equal(w, 1, w.found("courier"))
		require.Equal(w, 8, w.found("deckle"))
		read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(w, 1, must.Get(tx.LongPosts(ctx))(w), "the rows are short")
			return nil
		})
		for _, month := range []int64{february, january} {
			require.NoError(w, w.Reattach(w.Context(), month, "p", nil))
		}
		w.counted()
		require.Equal(w, before, w.seen())
		require.Equal(w, terms, w.terms())
		require.Equal(w, 8, w.found("courier"))
		w.pass(2)
		require.Equal(w, map[int64]int64{january: 0, february: 0}, w.parts())
		require.NotContains(w, string(w.bytes("2025-01")), "courier")
		must.Get(w.DetachOld(w.Context(), 20, "p", time.Hour))(w)
		require.Equal(w, map[int64]int64{january: 0, february: 0}, w.parts(), "an operator took them back")
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		require.Equal(w, map[int64]int64{january: 5, february: 0}, w.parts())
		require.Equal(w, before, w.seen())
	})
}

// A post that is changed leaves its part, and its text leaves the file.
func TestParts_Changes(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		hidden, restored, revised, deleted := w.posts[0], w.posts[3], w.posts[1], w.posts[4]
		w.state(hidden.ID, protocol.Hidden)
		w.state(restored.ID, protocol.Visible)
		write(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
			p := *revised
			p.Body, p.EditedAt = "Only the calender is left.", ptr(start)
			return tx.Posts().Revise(ctx, p.ID, &p)
		})
		secret := []byte(deleted.Body)
		require.Contains(w, string(w.bytes("2025-01")), string(secret))
		w.state(deleted.ID, protocol.Deleted)
		write(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Posts().SetVerdict(ctx, restored.ID, protocol.AuthorProof{Level: protocol.ByNothing}, "", "its key was never registered")
		})
		w.counted()
		read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
			for _, p := range w.posts[:4] {
				got := must.Get(tx.Posts().ByID(ctx, p.ID))(w)
				if p != revised {
					require.Equal(w, p.Body, got.Body)
					require.Equal(w, int64(january), got.Part)
					continue
				}
				require.Equal(w, "Only the calender is left.", got.Body)
			}
			require.Equal(w, revised.Body, must.Get(tx.Posts().Revisions(ctx, revised.ID))(w)[0].Body)
			got, err := tx.Posts().ByID(ctx, deleted.ID)
			require.Empty(w, got.Body)
			require.Nil(w, got.Evidence)
			return err
		})
		require.Equal(w, 1, w.found("calender"))
		require.Equal(w, 7, w.found("deckle"))
		backup := func(lease time.Duration) {
			write(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Settings().PutBackup(ctx, storage.BackupState{LeaseEnd: tx.Now.Add(lease)})
			})
		}
		backup(24 * time.Hour)
		*w.now = w.now.Add(2 * time.Hour)
		require.ErrorIs(w, must.Err(w.EraseParts(w.Context(), "p", time.Hour)), storage.ErrPartsBusy)
		require.Contains(w, string(w.bytes("2025-01")), string(secret), "a backup that is being made may refer to it")
		backup(0)
		w.pass(0)
		require.False(w, bytes.Contains(w.bytes("2025-01"), secret), "what was deleted is not in the file any more")
		require.Equal(w, map[int64]int64{january: 3}, w.parts())
	})
}

// What went back and into its part again is not erased there; another process waits; what arrived late is moved by hand.
func TestParts_Again(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		before := w.seen()
		beside := *w // another process, which has the file open
		beside.DB = storagetest.OpenConfig(w.T, w.c)
		for range 2 {
			require.NoError(w, w.Detach(w.Context(), january, "p", nil))
			require.Equal(w, before, beside.seen())
			require.NoError(w, w.Reattach(w.Context(), january, "p", nil))
			w.pass(2)
		}
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		require.NoError(w, w.Reattach(w.Context(), january, "p", nil))
		require.NoError(w, w.HeldUp(w.Context(), february, func() {}))
		*w.now = w.now.Add(time.Hour)
		require.ErrorIs(w, w.HeldUp(w.Context(), february, func() {
			*w.now = w.now.Add(time.Hour)
			require.NoError(w, w.HoldParts(w.Context(), "another"))
			*w.now = w.now.Add(time.Hour)
		}), storage.ErrPartsBusy)
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		w.pass(2)
		require.Equal(w, map[int64]int64{january: 5}, w.parts())
		require.Equal(w, before, w.seen())
		require.Equal(w, before, beside.seen())

		late := samplePost(time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC), 1)
		store(w, w.DB, late)
		must.Get(w.DetachOld(w.Context(), 21, "p", time.Hour))(w)
		require.Equal(w, map[int64]int64{january: 5}, w.parts())
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		require.Equal(w, map[int64]int64{january: 6}, w.parts())

		require.NoError(w, w.HoldParts(w.Context(), "another"))
		require.ErrorIs(w, must.Err(w.DetachOld(w.Context(), 20, "p", time.Hour)), storage.ErrPartsBusy)
		require.ErrorIs(w, w.Reattach(w.Context(), january, "p", nil), storage.ErrPartsBusy)
		require.ErrorIs(w, w.Detach(w.Context(), storage.MonthOf(start), "p", nil), storage.ErrPartsBusy)
		*w.now = w.now.Add(time.Hour)
		require.ErrorIs(w, w.Detach(w.Context(), storage.MonthOf(start), "p", nil), storage.ErrMonth)
		require.True(w, must.Get(w.DetachOld(w.Context(), 20, "p", 0))(w), "its time is up")
	})
}

// What a killed process left of a file goes when the file is written again, and a file that is there stays.
func TestParts_Put(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		dir := w.partsDir()
		require.NoError(w, os.MkdirAll(dir, 0o700))
		require.NoError(w, os.WriteFile(filepath.Join(dir, ".posts-2020-02.db.part-123"), []byte("half"), 0o600))
		put := func(text string) error {
			return w.PutPart(202002, func(to io.Writer) error { _, err := io.WriteString(to, text); return err })
		}
		require.NoError(w, put("whole"))
		require.ErrorIs(w, put("other"), fs.ErrExist)
		require.Equal(w, "whole", string(w.bytes("2020-02")))
		require.Len(w, must.Get(os.ReadDir(dir))(w), 1)
		require.NoError(w, os.Remove(filepath.Join(dir, "posts-2020-02.db")))
	})
}

// A file that is not there is named: when a post is read, and when the node starts.
func TestParts_Missing(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		require.NoError(w, w.Close())
		file := filepath.Join(w.partsDir(), "posts-2025-01.db")
		require.NoError(w, os.Rename(file, file+".away"))
		c := w.c
		c.Serve = true
		require.ErrorContains(w, must.Err(storage.Open(w.Context(), c)), file)
		c.Serve = false
		w.DB = storagetest.OpenConfig(w.T, c)
		read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorContains(w, must.Err(tx.Posts().ByID(ctx, w.posts[0].ID)), file)
			return must.Err(tx.Posts().ByID(ctx, w.posts[6].ID))
		})
		require.NoError(w, os.Rename(file+".away", file))
		read(w, w.DB, func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Posts().ByID(ctx, w.posts[0].ID)) })
	})
}

// A month without a post, or whose posts were all deleted, needs no file.
func TestParts_Empty(t *testing.T) {
	eachOld(t, func(w *oldPosts) {
		require.NoError(w, w.Detach(w.Context(), 202312, "p", nil))
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		for _, p := range w.posts[:5] {
			w.state(p.ID, protocol.Deleted)
		}
		w.pass(2)
		require.NoError(w, os.Remove(filepath.Join(w.partsDir(), "posts-2025-01.db")))
		require.NoError(w, w.Close())
		c := w.c
		c.Serve = true
		w.DB = storagetest.OpenConfig(w.T, c)
		require.Equal(w, map[int64]int64{202312: 0, january: 0}, w.parts())
		late := samplePost(time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC), 1)
		store(w, w.DB, late)
		require.NoError(w, w.Detach(w.Context(), january, "p", nil))
		require.Equal(w, map[int64]int64{202312: 0, january: 1}, w.parts())
	})
}

func TestMonthOf(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 202612, storage.MonthOf(time.Date(2027, 1, 1, 1, 0, 0, 0, time.FixedZone("IST", 19800))))
	require.EqualValues(t, 202001, storage.MonthOf(time.Date(1999, 1, 1, 1, 0, 0, 0, time.UTC)), "one file for all that says that it is older")
}
