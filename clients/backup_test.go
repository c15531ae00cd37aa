package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"filippo.io/age"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/out/s3"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const keyID, keySecret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

// A store is gofakes3, the server of rclone serve s3, which checks signatures. refuse answers in its place, with a status that is not 0.
type store struct {
	url    string
	refuse atomic.Pointer[func(r *http.Request) int]
	aborts atomic.Int64 // of uploads
}

func newStore(t *testing.T) *store {
	s := &store{}
	memory := s3mem.New()
	require.NoError(t, memory.CreateBucket(t.Context(), "copies"))
	handler := gofakes3.New(memory, gofakes3.WithV4Auth(map[string]string{keyID: keySecret})).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse := s.refuse.Load(); refuse != nil {
			if status := (*refuse)(r); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		if r.Method == http.MethodDelete && r.URL.Query().Get("uploadId") != "" {
			s.aborts.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *store) refuses(f func(r *http.Request) int) { s.refuse.Store(&f) }

func (s *store) bucket(secret string) *s3.Bucket {
	return &s3.Bucket{Client: http.DefaultClient, Endpoint: s.url, Region: "ap-south-1", Name: "copies", Prefix: "a/b c/", ID: keyID, Secret: secret,
		PartSize: 5 << 20}
}

func text(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(b))
		return err
	}
}

func TestS3(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	b, ctx := s.bucket(keySecret), t.Context()
	big := make([]byte, 12<<20)
	for i := range big {
		big[i] = byte(rand.Uint32())
	}
	require.NoError(t, b.Put(ctx, "big+1 é.gz", text(big)))
	require.NoError(t, b.Put(ctx, "small", text([]byte("x"))))
	require.NoError(t, b.Put(ctx, "exactly", text(big[:5<<20])))
	require.NoError(t, b.Put(ctx, "below/one", text([]byte("y"))))
	want := []s3.Object{{Name: "big+1 é.gz", Size: 12 << 20}, {Name: "small", Size: 1}, {Name: "exactly", Size: 5 << 20}}
	require.ElementsMatch(t, want, must.Get(b.List(ctx))(t))
	for _, o := range must.Get(b.List(ctx))(t) {
		got, err := io.ReadAll(b.Open(ctx, o))
		require.NoError(t, err, o.Name)
		require.Len(t, got, int(o.Size))
		if o.Size > 1 {
			require.True(t, bytes.Equal(big[:o.Size], got), o.Name)
		}
	}
	require.NoError(t, b.Delete(ctx, "small"))
	require.NoError(t, b.Delete(ctx, "small"), "no error when there is none")
	require.Len(t, must.Get(b.List(ctx))(t), 2)

	t.Run("pages", func(t *testing.T) {
		for i := range 1010 {
			require.NoError(t, b.Put(ctx, fmt.Sprintf("many%d", i), text(nil)))
		}
		require.Len(t, must.Get(b.List(ctx))(t), 1012)
	})
	t.Run("refused", func(t *testing.T) {
		unknown := s.bucket(keySecret)
		unknown.ID = "other"
		for _, other := range []*s3.Bucket{s.bucket("wrong" + keySecret), unknown} {
			_, err := other.List(ctx)
			fault, ok := errors.AsType[*s3.Fault](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, http.StatusForbidden, fault.Status)
			require.NotContains(t, err.Error(), keySecret)
		}
	})
	t.Run("busy", func(t *testing.T) { // each second request is answered with 503
		var n atomic.Int64
		s.refuses(func(*http.Request) int { return int(n.Add(1) % 2 * http.StatusServiceUnavailable) })
		defer s.refuses(func(*http.Request) int { return 0 })
		require.NoError(t, b.Put(ctx, "late", text(big)))
		got, err := io.ReadAll(b.Open(ctx, s3.Object{Name: "late", Size: int64(len(big))}))
		require.NoError(t, err)
		require.True(t, bytes.Equal(big, got))
	})
	t.Run("cut", func(t *testing.T) { // an upload that is not ended is in no list, and the next one ends it
		s.refuses(func(r *http.Request) int {
			if q := r.URL.Query(); q.Get("partNumber") == "2" || r.Method == http.MethodDelete {
				return http.StatusForbidden
			}
			return 0
		})
		require.Error(t, b.Put(ctx, "cut", text(big)))
		s.refuses(func(*http.Request) int { return 0 })
		for _, o := range must.Get(b.List(ctx))(t) {
			require.NotEqual(t, "cut", o.Name)
		}
		before := s.aborts.Load()
		require.NoError(t, b.AbortUploads(ctx, "other"))
		require.Equal(t, before, s.aborts.Load(), "those of other names are left alone")
		require.NoError(t, b.AbortUploads(ctx, "cu"))
		require.Equal(t, before+1, s.aborts.Load())
		require.NoError(t, b.AbortUploads(ctx, "cu"))
		require.Equal(t, before+1, s.aborts.Load())
	})
	t.Run("failed", func(t *testing.T) {
		before := s.aborts.Load()
		err := b.Put(ctx, "half", func(w io.Writer) error { return errors.Join(text(big)(w), errors.New("no more")) })
		require.ErrorContains(t, err, "no more")
		require.Equal(t, before+1, s.aborts.Load())
	})
}

// TestBackup_S3: a node keeps its backups in a bucket, encrypted, and is restored from there.
func TestBackup_S3(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, at storage.Config) {
		s, ctx, quiet := newStore(t), t.Context(), slog.New(slog.DiscardHandler)
		dir := t.TempDir()
		secret, identity, id := filepath.Join(dir, "secret"), filepath.Join(dir, "identity"), must.Get(age.GenerateX25519Identity())(t)
		require.NoError(t, os.WriteFile(secret, []byte(keySecret+"\n"), 0o600))
		require.NoError(t, os.WriteFile(identity, []byte(id.String()+"\n"), 0o600))
		c := node.Config{Listen: "127.0.0.1:0", BaseURL: "https://n1.example", Data: t.TempDir(), Database: at.URL, BackupDir: "s3://copies/n1",
			BackupEndpoint: s.url, BackupKey: keyID, BackupSecret: secret, BackupRecipients: []string{id.Recipient().String()}}
		require.NoError(t, c.Validate())
		n := must.Get(node.New(ctx, c, quiet))(t)
		require.NoError(t, n.Close())
		a := must.Get(node.OpenAdmin(ctx, c, quiet))(t)
		put := func(headline string) {
			in := map[string]any{"handle": "asha", "name": "Asha", "kind": "person", "headline": headline}
			require.NoError(t, a.Operate(ctx, protocol.PutProfile.Operation, in, nil))
		}
		put("before")
		made, err := a.BackUp(ctx, c, quiet, nil)
		require.NoError(t, err)
		require.Equal(t, made.Name, made.Checked, "what is in the bucket was restored on trial")
		put("after")
		place, all, err := node.Backups(ctx, c, "")
		require.NoError(t, err)
		require.Equal(t, "s3://copies/n1/", place)
		require.Len(t, all, 1)
		require.Equal(t, made.Bytes, all[0].Size)

		out, err := a.RestoreProfile(ctx, c, node.Source{Identity: identity}, "asha", true)
		require.NoError(t, err)
		require.Equal(t, "replaced", out.Report.Profile)
		tried, err := node.TryRestore(ctx, c, node.Source{Identity: identity})
		require.NoError(t, err)
		require.Equal(t, made.Rows, tried.Rows)

		require.NoError(t, os.WriteFile(secret, []byte("wrong"+keySecret), 0o600))
		state, err := a.BackUp(ctx, c, quiet, nil)
		require.ErrorContains(t, err, "403")
		require.Equal(t, 1, state.Failures)
		require.Equal(t, made.Name, state.Name)
		require.NotContains(t, state.LastError+err.Error(), keySecret)
		require.NoError(t, os.WriteFile(secret, []byte(keySecret), 0o600))
		require.NoError(t, a.Close())

		require.Eventually(t, func() bool {
			_, err := node.Restore(ctx, c, node.Source{Identity: identity}, quiet)
			require.True(t, err == nil || strings.Contains(err.Error(), "in use"), "%v", err)
			return err == nil
		}, 60e9, 50e6)
		a = must.Get(node.OpenAdmin(ctx, c, quiet))(t)
		defer a.Close()
		p, err := node.Do(context.Background(), a, protocol.GetAgentProfile, protocol.HandleInput{Handle: "asha"})
		require.NoError(t, err)
		require.Equal(t, "before", p.Headline)
	})
}
