package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const elsewhere = "https://elsewhere.example"

// An outfit is what the archive of a profile holds.
type outfit struct {
	handle, file   string
	posts, threads []string // uris, ids
}

// outfits makes profiles with posts and threads on a node that never runs, and
// exports each.
func outfits(t *testing.T, handles []string, posts, threads, messages int) (all []outfit) {
	dir := t.TempDir()
	a := must.Get(node.OpenAdmin(t.Context(), node.Config{Data: filepath.Join(dir, "data"), BaseURL: elsewhere}, slog.New(slog.DiscardHandler)))(t)
	defer a.Close()
	for _, handle := range handles {
		o := outfit{handle: handle, file: filepath.Join(dir, handle)}
		must.Get(putProfile(t.Context(), a, fmt.Appendf(nil, `{"handle":%q,"name":"Mover","kind":"person"}`, handle)))(t)
		require.NoError(t, a.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			for i := range posts {
				id := protocol.NewID(protocol.PostID, tx.Now.Add(time.Duration(i-posts)*time.Second))
				actor := protocol.ActorID(elsewhere, handle)
				p := &storage.ArchivedPost{StoredPost: protocol.StoredPost{Board: protocol.BoardID(elsewhere), Post: protocol.Post{
					ID: id, URI: protocol.PostURI(elsewhere, id), Kind: protocol.Offer, Title: fmt.Sprint("Offer ", i), Body: "To be had.", Tags: []string{"moving"},
					Author: protocol.Author{Name: "Mover", Handle: &handle, Actor: &actor, Method: protocol.BySession, Verified: true}, CreatedAt: tx.Now,
				}}}
				if err := tx.Posts().Insert(ctx, &p.StoredPost); err != nil {
					return err
				}
				o.posts = append(o.posts, p.URI)
			}
			for i := range threads {
				author := protocol.Author{Name: "Visitor", Method: protocol.ByProof}
				thread := storage.StoredThread{ID: protocol.NewID(protocol.ThreadID, tx.Now), Handle: handle, Kind: protocol.Question, State: protocol.ThreadOpen,
					Writer: "net:x", Author: author,
					TokenHash: sha256.Sum256(fmt.Append(nil, handle, i)), Messages: messages, CreatedAt: tx.Now, UpdatedAt: tx.Now}
				if err := tx.Threads().Import(ctx, &thread); err != nil {
					return err
				}
				for n := range messages {
					m := protocol.Message{ID: protocol.NewID(protocol.MessageID, tx.Now), From: protocol.WriterSide, Author: author, Text: "Is it there still?",
						CreatedAt: tx.Now}
					if err := tx.Threads().ImportMessage(ctx, thread.ID, storage.NumberedMessage{N: n + 1, Message: m}); err != nil {
						return err
					}
				}
				o.threads = append(o.threads, thread.ID)
			}
			return nil
		}))
		f := must.Get(os.Create(o.file))(t)
		archive := must.Get(a.Export(t.Context(), protocol.ExportRequest{Owned: protocol.Owned{Handle: handle}}, nil))(t)
		must.Get(io.Copy(f, archive))(t)
		require.NoError(t, archive.Close())
		require.NoError(t, f.Close())
		all = append(all, o)
	}
	return all
}

// TestCrash_Import kills the importing program, and the node next to it, while an
// archive is being imported: as soon as its profile shows, and at random points.
// When the node has finished what was left, each archive is there whole or not at
// all; one whose profile showed is there.
func TestCrash_Import(t *testing.T) {
	t.Parallel()
	const posts, threads, messages = 200, 40, 3
	random := rand.New(rand.NewPCG(storagetest.Seed(t), 2))
	rounds := []struct {
		handle      string
		shown, both bool // killed when the profile shows; the node too
		unharmed    bool
	}{
		{handle: "shown-both", shown: true, both: true}, {handle: "random-both", both: true}, {handle: "shown", shown: true},
		{handle: "random"}, {handle: "random-again", both: true}, {handle: "random-later", both: true}, {handle: "random-last", both: true},
		{handle: "unharmed", unharmed: true},
	}
	rounds = rounds[:storagetest.Rounds(t, len(rounds))]
	handles := make([]string, len(rounds))
	for i, r := range rounds {
		handles[i] = r.handle
	}
	archives := outfits(t, handles, posts, threads, messages)
	s := newServerProcess(t, freePorts(t, 1))
	shows := func(handle string) bool {
		res, err := http.Get(s.url + "/api/public/agents/" + handle)
		if err != nil {
			return false
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}
	whole := map[string]bool{}
	for i, r := range rounds {
		importer := exec.Command(filepath.Join(bin(t), "stoa"), "admin", "import", archives[i].file, "--vouch", "--data", s.data)
		require.NoError(t, importer.Start())
		ended := make(chan error, 1)
		go func() { ended <- importer.Wait() }()
		switch {
		case r.unharmed:
			require.NoError(t, <-ended)
			whole[r.handle] = true
			continue
		case r.shown:
			require.Eventually(t, func() bool { return shows(r.handle) }, time.Minute, time.Millisecond)
			whole[r.handle] = true
		default:
			time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
		}
		importer.Process.Kill()
		<-ended
		if r.both {
			s.kill()
			s.start()
		}
	}

	a := must.Get(node.OpenAdmin(t.Context(), node.Config{Data: s.data}, slog.New(slog.DiscardHandler)))(t)
	defer a.Close()
	for _, handle := range handles {
		require.Eventually(t, func() (runs bool) {
			require.NoError(t, a.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				runs, err = tx.Imports().Running(ctx, handle)
				return err
			}))
			return !runs
		}, 2*time.Minute, 50*time.Millisecond, "%s", &s.log)
	}
	s.kill()
	for _, o := range archives {
		profile, got, gotThreads := false, 0, 0
		require.NoError(t, a.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().ByHandle(ctx, o.handle)
			profile = err == nil
			for _, uri := range o.posts {
				if _, err := tx.Posts().ByURI(ctx, uri); err == nil {
					got++
				}
			}
			for _, id := range o.threads {
				said := must.Get(tx.Threads().MessagesFrom(ctx, id, 1, 100))(t)
				if len(said) == messages {
					gotThreads++
				}
			}
			return nil
		}))
		t.Logf("%s: profile %t", o.handle, profile)
		if profile || whole[o.handle] {
			require.True(t, profile, o.handle)
			require.Equal(t, []int{posts, threads}, []int{got, gotThreads}, o.handle)
		} else {
			require.Equal(t, []int{0, 0}, []int{got, gotThreads}, o.handle)
		}
	}
	require.NoError(t, a.DB.Check(t.Context()))
}
