package federation

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// TestAuthorizedFetch: with it, only actors are served without a signature, everything else to servers that are not refused; a node
// that follows reads the log as before, and no cache keeps an answer.
func TestAuthorizedFetch(t *testing.T) {
	w := newWorld(t)
	w.f.c.AuthorizedFetch = true
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	p := w.titled("one")
	settle(t, w.node, a)
	require.NotNil(t, a.held(p.URI))

	get := func(path string, signed bool) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "GET", w.base+path, nil)
		if signed {
			require.NoError(t, w.as(alice).sign(r, nil, alice, schemeCavage))
		}
		res := httptest.NewRecorder()
		w.f.Handler().ServeHTTP(res, r)
		return res
	}
	note := p.URI[len(w.base):]
	for _, path := range []string{"/ap/board", "/ap/node", "/ap/anon"} {
		require.Equal(t, 200, get(path, false).Code, path)
	}
	for _, path := range []string{note, note + "/replies", "/ap/board/outbox", "/ap/board/followers", "/ap/board/log", "/ap/board/log/1", "/ap/posts/x"} {
		res := get(path, false)
		require.Equal(t, 401, res.Code, path)
		require.Equal(t, "private, no-store", res.Header().Get("Cache-Control"), path)
	}
	res := get(note, true)
	require.Equal(t, 200, res.Code, res.Body)
	require.Equal(t, "private, no-store", res.Header().Get("Cache-Control"))
	require.Contains(t, res.Header().Values("Vary"), "Signature, Signature-Input")
	require.Equal(t, 404, get("/ap/posts/x", true).Code)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "victim.example", Policy: storage.PolicyReject})
	}))
	require.Equal(t, http.StatusForbidden, get(note, true).Code)
}
