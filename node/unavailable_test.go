package node_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage/storagetest"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *lines) string() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// While PostgreSQL is unavailable, each client is told to retry, by every kind of
// caller, and the log says it once a second; afterwards all goes as before.
func TestDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	if os.Getenv(storagetest.PostgresEnv) == "" {
		return // SQLite is in the process
	}
	url, cut := storagetest.Wire(t, storagetest.PostgresURL(t))
	log := new(lines)
	c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test", Database: url}
	h := nodetest.Open(t, c, slog.New(slog.NewTextHandler(log, nil)))
	pair := h.Hosted("asha")
	token := h.TokenOf("asha", "test")
	proof := h.Proof("board")
	ask := map[string]func() nodetest.Answer{
		"read": func() nodetest.Answer {
			return h.Ask("GET", "/api/public/board?q="+protocol.NewID("x", time.Now()), "")
		},
		"signed": func() nodetest.Answer { return h.Signed(pair, nodetest.GoodPost, nil) },
		"token": func() nodetest.Answer {
			return h.Ask("GET", "/api/owner/profile", "", "Authorization", "Bearer "+token)
		},
		"proof": func() nodetest.Answer {
			return h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", proof)
		},
	}
	cut(true)
	began := time.Now()
	for range 20 {
		for name, request := range ask {
			a := request()
			require.Equal(t, 503, a.Code, "%s: %s", name, a.Body)
			require.Equal(t, protocol.Overloaded, a.Problem().Code, name)
			require.NotEmpty(t, a.Header().Get("Retry-After"), name)
		}
	}
	require.Equal(t, 503, h.Ask("GET", "/readyz", "").Code)
	require.LessOrEqual(t, log.count("level=ERROR"), 3+int(time.Since(began)/time.Second), "%s", log.text.String())
	require.Positive(t, log.count("the database is unavailable"))

	cut(false)
	for name, request := range ask {
		require.Eventually(t, func() bool { return request().Code < 300 }, time.Minute, 20*time.Millisecond, name)
	}
}
