package federation

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// TestReach_OnlyTheCaller: a look connects to the host of the node that signed, on two ports, whatever else the request says; actors of a node
// other than itself, strangers and what is not signed get none; and there are few at a time.
func TestReach_OnlyTheCaller(t *testing.T) {
	w := newWorld(t)
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	var mu sync.Mutex
	dialled := map[string]bool{}
	w.f.c.Reach = func(_ context.Context, network, host string, port uint16) error {
		mu.Lock()
		dialled[network+" "+host] = true
		mu.Unlock()
		if port == 80 {
			return errors.New("no")
		}
		return nil
	}
	get := func(address string, as *Federation, actor string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", address, nil)
		if as != nil {
			require.NoError(t, as.sign(r, nil, actor, schemeEd25519))
		}
		res := httptest.NewRecorder()
		w.f.Handler().ServeHTTP(res, r)
		return res
	}
	at := w.base + reachPath
	require.Equal(t, 401, get(at, nil, "").Code)
	require.Equal(t, 403, get(at, a.f, a.base+"/ap/board").Code, "not the node itself")
	require.Equal(t, 403, get(at, w.as(mallory), mallory).Code, "no node")
	stranger := newNode(t, w.net, w.tick, 1, nil)
	require.Equal(t, 403, get(at, stranger.f, stranger.f.site.Node()).Code, "no peer")
	require.Empty(t, dialled)

	// Where as many looks run as there are places, another one is told to come back.
	for range reachAtOnce {
		w.f.reaching <- struct{}{}
	}
	require.Equal(t, http.StatusServiceUnavailable, get(at, a.f, a.f.site.Node()).Code)
	for range reachAtOnce {
		<-w.f.reaching
	}
	s := must.Get(a.f.AskReach(t.Context(), w.base))(t)
	require.Equal(t, protocol.Sight{Document: "ok", IPv4: "ok", IPv6: "ok", Plain4: "failed", Plain6: "failed"}, s)
	require.Equal(t, map[string]bool{"tcp4 a.example": true, "tcp6 a.example": true}, dialled)
	require.Equal(t, 200, get(at+"?host=evil.example", a.f, a.f.site.Node()).Code)
	require.Len(t, dialled, 2)
	require.Equal(t, http.StatusTooManyRequests, get(at, a.f, a.f.site.Node()).Code)
	w.tick.pass(time.Minute)
	require.Equal(t, 200, get(at, a.f, a.f.site.Node()).Code)

	// Who cannot be reached for its key is told that.
	shut := newNode(t, w.net, w.tick, 2, nil)
	w.net.mu.Lock()
	w.net.down["c.example"] = true
	w.net.mu.Unlock()
	s = must.Get(shut.f.AskReach(t.Context(), w.base))(t)
	require.Equal(t, protocol.Sight{Document: "timeout"}, s)
}
