package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/client"
	"stoa/protocol"
	"stoa/protocol/must"

	"github.com/stretchr/testify/require"
)

// TestOldCopy puts a node back to an old copy of its data without saying so, under the same epoch of its
// log. The node that follows it notices, says so to both operators, and takes nothing more until its operator decides.
func TestOldCopy(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	p, f := newServerProcess(t, port), newServerProcess(t, port+10)
	admin := func(s *server, args ...string) string {
		t.Helper()
		out, errs, code := stoa(t, "", append(append([]string{"admin"}, args...), "--data", s.data)...)
		require.Equal(t, 0, code, errs)
		return out
	}
	file := filepath.Join(t.TempDir(), "load.jwk")
	_, errs, code := stoa(t, `{"handle":"load","name":"Load","kind":"person"}`, "admin", "profile", "put", "--data", p.data)
	require.Equal(t, 0, code, errs)
	_, errs, code = stoa(t, "", "keygen", file)
	require.Equal(t, 0, code, errs)
	admin(p, "key", "add", "load", file)
	admin(f, "peer", "follow", p.url)
	require.Eventually(t, func() bool { return strings.Contains(admin(f, "peer", "list"), "accepted") }, time.Minute, 100*time.Millisecond, "%s", &f.log)
	write := func(title string) protocol.Post {
		t.Helper()
		c := must.Get(client.New(p.url, client.Options{Key: readPair(t, file)}))(t)
		return post(t, c, protocol.NewPost{Kind: protocol.Offer, Title: title, Body: "As the node says it."})
	}
	for _, title := range []string{"one", "two"} {
		arrives(t, f.url, write(title).URI, time.Minute)
	}
	require.Eventually(t, func() bool { // the profile has its place in the log too
		resp, err := http.Get(p.url + "/ap/board/log/3")
		if err == nil {
			err = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == 200
	}, time.Minute, 100*time.Millisecond, "%s", &p.log)
	saved := filepath.Join(t.TempDir(), "copy.db")
	admin(p, "backup", saved)
	x := write("fork-X")
	arrives(t, f.url, x.URI, time.Minute)

	p.kill()
	for _, name := range []string{"stoa.db", "stoa.db-wal", "stoa.db-shm"} {
		require.NoError(t, orAbsent(os.Remove(filepath.Join(p.data, name))))
	}
	raw := must.Get(os.ReadFile(saved))(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.data, "stoa.db"), raw, 0o600))
	p.start()
	y, z := write("fork-Y"), write("fork-Z")
	require.Eventually(t, func() bool { return strings.Contains(admin(f, "peer", "list"), "conflict") }, 3*time.Minute, 200*time.Millisecond, "%s", &f.log)
	require.Contains(t, f.log.String(), "a followed log contradicts what was taken of it")
	require.Contains(t, admin(f, "peer", "list"), "fork")
	require.Eventually(t, func() bool { return strings.Contains(admin(p, "peer", "list"), "reported by") }, time.Minute, 200*time.Millisecond, "%s", &p.log)
	evidence := must.JSON[protocol.ConflictEvidence]([]byte(admin(f, "peer", "conflict", p.url+"/ap/board", "--json")))(t)
	require.Contains(t, evidence.OursDocument, x.URI)
	require.Contains(t, evidence.TheirsDocument, y.URI)
	require.Nil(t, findURI(board(t, f.url, ""), y.URI))

	admin(f, "peer", "reread", p.url+"/ap/board", "--forget")
	arrives(t, f.url, y.URI, time.Minute)
	require.Eventually(t, func() bool { return findURI(board(t, f.url, ""), x.URI) == nil }, time.Minute, 100*time.Millisecond, "%s", &f.log)
	arrives(t, f.url, z.URI, time.Minute)
	require.NotContains(t, admin(f, "peer", "list"), "conflict")
	arrives(t, f.url, write("follows again").URI, time.Minute)
}

func orAbsent(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
