package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// TestUpgrade runs the program of the release before, whose path is STOA_TEST_BEFORE. On PostgreSQL its process goes on beside one
// of this program, which has migrated the tables; on SQLite it goes back to the copy that the migration has left.
func TestUpgrade(t *testing.T) {
	before := os.Getenv("STOA_TEST_BEFORE")
	if before == "" {
		return // make soak builds it
	}
	titles := 0
	write := func(c *client.Client) protocol.Post {
		t.Helper()
		titles++
		return post(t, c, protocol.NewPost{Kind: protocol.Offer, Title: fmt.Sprintf("Upgrade %d", titles), Body: "Written while programs change.", Name: "Asha"})
	}
	shows := func(t *testing.T, c *client.Client, all ...protocol.Post) {
		t.Helper()
		for _, p := range all {
			require.Contains(t, string(must.Get(c.Call(t.Context(), "get_board_post", map[string]any{"id": p.ID}))(t).Body), p.Title)
		}
		res := must.Get(c.Call(t.Context(), "read_board", map[string]any{"limit": 1}))(t)
		require.Contains(t, string(res.Body), all[len(all)-1].ID)
	}
	t.Run("postgres", func(t *testing.T) {
		database, port := storagetest.EmptyPostgresURL(t), freePorts(t, 2)
		old := newServerProcessOf(t, before, port, "--database", database)
		at := func(port int) *client.Client { // under the address of the node
			dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
			}
			return must.Get(client.New(old.url, client.Options{HTTP: &http.Client{Transport: &http.Transport{DialContext: dial}}}))(t)
		}
		first := write(at(port))
		now := newServerProcess(t, port+10, "--database", database, "--base-url", old.url, "--data", old.data)
		require.Contains(t, now.log.String(), "database migrated")
		all := []protocol.Post{first, write(at(port)), write(at(port + 10)), write(at(port))}
		shows(t, at(port), all...)
		shows(t, at(port+10), all...)
		old.kill()
		shows(t, at(port+10), append(all, write(at(port+10)))...)
		out, errs, code := stoa(t, "", "admin", "check", "--data", old.data, "--database", database)
		require.Equal(t, 0, code, out+errs)
	})
	t.Run("sqlite", func(t *testing.T) {
		port := freePorts(t, 1)
		at := func(s *server) *client.Client { return must.Get(client.New(s.url, client.Options{}))(t) }
		old := newServerProcessOf(t, before, port)
		first := write(at(old))
		old.kill()
		out, errs, code := stoa(t, "", "admin", "migrate", "--dry-run", "--data", old.data)
		require.Equal(t, 0, code, errs)
		require.Contains(t, out, "the database was not changed")
		old.program = filepath.Join(bin(t), "stoa")
		old.start()
		shows(t, at(old), first, write(at(old)))
		old.kill()
		copies := must.Get(filepath.Glob(filepath.Join(old.data, "stoa.db.before-*")))(t)
		require.Len(t, copies, 1)
		for _, part := range []string{"-wal", "-shm"} {
			require.NoError(t, os.RemoveAll(filepath.Join(old.data, "stoa.db"+part)))
		}
		require.NoError(t, os.Rename(copies[0], filepath.Join(old.data, "stoa.db")))
		old.program = before
		old.start()
		shows(t, at(old), first)
	})
}
