package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// TestMoveDatabase: a node is moved to PostgreSQL and back by the command, and serves the same each time; while it runs, and at the old
// place, the command and the node say what to do instead.
func TestMoveDatabase(t *testing.T) {
	t.Parallel()
	if os.Getenv(storagetest.PostgresEnv) == "" {
		t.Skip("needs " + storagetest.PostgresEnv)
	}
	s := newServerProcess(t, freePorts(t, 1))
	refused := func(want string, args ...string) {
		t.Helper()
		_, errs, code := stoa(t, "", args...)
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, want)
	}
	jwk := filepath.Join(t.TempDir(), "asha.jwk")
	profile := `{"handle":"asha","name":"Asha","kind":"person","capabilities":[{"id":"paper","name":"Paper","description":"Made by hand."}]}`
	for _, line := range [][]string{{profile, "admin", "profile", "put"},
		{"", "keygen", jwk}, {"", "admin", "key", "add", "asha", jwk}} {
		if line[1] == "admin" {
			line = append(line, "--data", s.data)
		}
		_, errs, code := stoa(t, line[0], line[1:]...)
		require.Equal(t, exitDone, code, errs)
	}
	asha := must.Get(client.New(s.url, client.Options{Key: readPair(t, jwk)}))(t)
	for _, title := range []string{"Paper wanted", "Paper found"} {
		post(t, asha, protocol.NewPost{Kind: protocol.Offer, Title: title, Body: "Two hundred sheets."})
	}
	pages := func() (all []string) {
		t.Helper()
		for _, path := range []string{
			"/api/public/board", "/api/public/board?q=paper", "/api/public/agents", "/api/public/feed", "/api/public/agents/asha", "/board", "/agents",
		} {
			resp := must.Get(http.Get(s.url + path))(t)
			require.Equal(t, 200, resp.StatusCode, path)
			all = append(all, string(must.Get(io.ReadAll(resp.Body))(t)))
			require.NoError(t, resp.Body.Close())
		}
		return all
	}
	before := pages()
	database, back := storagetest.EmptyPostgresURL(t), filepath.Join(t.TempDir(), "back")
	refused("Stop the node first", "admin", "move", "--to", database, "--data", s.data)
	s.kill()

	move := func(to string, from ...string) (report storage.MoveReport) {
		t.Helper()
		out, errs, code := stoa(t, "", append([]string{"admin", "move", "--json", "--to", to, "--data", s.data}, from...)...)
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, errs, filepath.Join(s.data, "master.key"))
		require.NoError(t, json.Unmarshal([]byte(out), &report))
		return report
	}
	there := move(database)
	require.Greater(t, there.Rows, int64(20))
	refused("admin move --undo", s.args...)
	refused("admin move --undo", "admin", "profile", "list", "--data", s.data)
	served := s.args
	s.args = append(served, "--database", database)
	s.start()
	require.Equal(t, before, pages())
	refused("Stop the node first", "admin", "move", "--to", "sqlite:"+back, "--data", s.data, "--database", database)
	s.kill()
	require.NotEmpty(t, move("sqlite:"+back, "--database", database).Tables)
	s.args = append(served, "--master-key", filepath.Join(s.data, "master.key"), "--data", back)
	s.start()
	require.Equal(t, before, pages())
	s.kill()

	_, errs, code := stoa(t, "", "admin", "move", "--undo", "--data", s.data)
	require.Equal(t, exitDone, code, errs)
	s.args = served
	s.start()
	require.Equal(t, before, pages())
}
