// Package clients lets clients of other implementations, as the SDK of MCP for Go, talk to
// a running node through its doors. It is a module of its own, so that go.mod shows what
// the node needs.
package clients

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol"
	"stoa/storage"
)

// A world is a node that runs on loopback until the test ends, with SQLite.
type world struct {
	*node.Node
	t *testing.T
}

func newWorld(t *testing.T, change ...func(*node.Config)) *world {
	ctx, stop := context.WithCancel(context.Background())
	c := node.Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Dev: true, Version: "test"}
	for _, set := range change {
		set(&c)
	}
	n, err := node.New(ctx, c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return &world{n, t}
}

// agent puts a person.
func (w *world) agent(handle string) {
	w.t.Helper()
	draft := protocol.ProfileDraft{Handle: handle, Name: "Asha Rao", Kind: protocol.Person, ContactPolicy: protocol.NewPolicy(),
		Capabilities: []protocol.Capability{{ID: "make-paper", Name: "Paper", Description: "Hand-made paper to order."}}}
	require.NoError(w.t, w.Admin().Operate(w.t.Context(), protocol.PutProfile.Operation, draft, &protocol.WrittenProfile{}))
}

// get is the body of an answer 200.
func (w *world) get(path string) string {
	w.t.Helper()
	res, err := http.Get(w.URL + path)
	require.NoError(w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, 200, res.StatusCode, "%s", body)
	return string(body)
}

// answers answers a thread with asha as her owner.
func (w *world) answers(threadID, text string) {
	w.t.Helper()
	require.NoError(w.t, w.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		owner := protocol.Caller{Standing: protocol.Session, Handle: "asha", Name: "Asha Rao", Account: "test"}
		_, err := w.Contact.Answer(ctx, tx, owner, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: threadID}, Message: text})
		return err
	}))
}
