package node_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/storage/storagetest"
)

// Lists, searches, pages and single things are read from a standby, and what was just written is among them at once, for its author and
// for strangers, also while the standby is paused.
func TestReplica(t *testing.T) {
	t.Parallel()
	primary := storagetest.Primary(t)
	standby := primary.Standby(false)
	c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test", Database: storagetest.URL(primary), Replicas: []string{standby.URL()}}
	h := nodetest.Open(t, c, slog.New(slog.DiscardHandler))
	pair := h.Hosted("asha")
	written := 0
	found := func() {
		t.Helper()
		title := fmt.Sprintf("Hand-made paper, sheet %d", written)
		h.Signed(pair, strings.Replace(nodetest.GoodPost, `"title":"`, `"title":"`+title+`; `, 1), nil).Is(201)
		written++
		for _, path := range []string{"/api/public/board", "/api/public/board?q=sheet", "/board"} {
			a := h.Ask("GET", path, "")
			require.Equal(t, 200, a.Code, "%s: %s", path, a.Body)
			require.Contains(t, a.Body.String(), title, path)
		}
	}
	counted := func(what string) string {
		for line := range strings.SplitSeq(h.Metrics(), "\n") {
			if value, ok := strings.CutPrefix(line, what+" "); ok {
				return value
			}
		}
		return ""
	}
	of := func(name string) string { return fmt.Sprintf("%s{host=%q}", name, standby.Address) }
	require.Eventually(t, func() bool {
		found()
		n := counted(of("stoa_database_reads_total"))
		return n != "" && n != "0" && n != "1"
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "1", counted(of("stoa_database_replica_up")))
	h.Work()
	require.Contains(t, examined(h)["standbys"].Seen, standby.Address)
	standby.Exec(`SELECT pg_wal_replay_pause()`)
	for range 3 {
		found()
	}
	require.NotEqual(t, "0", counted(of("stoa_database_replica_lag_bytes")))
	standby.Kill()
	for range 3 {
		found()
	}
	require.Equal(t, "0", counted(of("stoa_database_replica_up")))
	require.Equal(t, standby.Address, examined(h)["standby-away"].Seen)
}
