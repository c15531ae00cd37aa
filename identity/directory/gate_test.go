package directory

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/must"
)

// nobody is a node that hosts no profile.
type nobody struct{}

func (nobody) KeyUsed(context.Context, string, string) {}

func (nobody) DelegatedKey(context.Context, string, string) (k httpsig.Key, by httpsig.Account, ok bool, err error) {
	return k, by, false, nil
}

func (nobody) KeyByThumbprint(context.Context, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}

func (nobody) DirectoryAgent(context.Context, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}

func (nobody) HostedAgent(context.Context, identity.ChainKey, string) (identity.Hosted, bool, error) {
	return identity.Hosted{}, false, nil
}

func (nobody) TokenBySecret(context.Context, string) (identity.Credential, bool, error) {
	return identity.Credential{}, false, nil
}

func (nobody) SessionBySecret(context.Context, string) (identity.Credential, bool, error) {
	return identity.Credential{}, false, nil
}

// TestGate is the whole story: an agent that this node has never heard of signs
// a write, is told to come again, and is admitted.
func TestGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWeb(t), newPair(t)
		w.put(wellKnownOf("agent.example"), answer(directoryMedia, setOf(t, p)))
		c := run(t, Config{Client: w.client(t)})
		gate := identity.Gate{
			Target: httpsig.NewTarget("https", "node.example"), Directory: nobody{}, Directories: c, Now: time.Now,
		}
		op := &protocol.Operation{Access: protocol.Signed}
		from := func(network, agent string, by key.Pair) (protocol.Caller, error) {
			r := httptest.NewRequest(http.MethodPost, "https://node.example/api/public/board", strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Signature-Agent", `sig1="`+agent+`"`)
			require.NoError(t, httpsig.SignRequest(r, gate.Target, []byte("{}"), httpsig.SignOptions{Key: by.Signer(), Created: time.Now()}))
			return gate.Admit(t.Context(), identity.Evidence{Request: r, Body: []byte("{}"), Network: network}, op)
		}
		admit := func(agent string, by key.Pair) (protocol.Caller, error) { return from("n", agent, by) }

		caller, err := admit("https://agent.example", p)
		require.NoError(t, err, "one request is enough where the directory answers within a second")
		require.Equal(t, protocol.Signed, caller.Standing)
		require.Equal(t, p.Thumbprint(), caller.KeyID)
		require.Equal(t, "agent.example", caller.Author("https://node.example", "", time.Now()).Name)

		_, err = admit("https://other.example", p)
		require.ErrorIs(t, err, httpsig.CodeDirectoryStatus)
		require.Equal(t, minRetry, protocol.AsError(err).RetryAfter)

		w.put(wellKnownOf("slow.example"), func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			answer(directoryMedia, setOf(t, p))(rw, r)
		})
		underWay := func(took, want time.Duration, err error) {
			t.Helper()
			e := protocol.AsError(err)
			require.Equal(t, protocol.KeyUnknown, e.Code, "%v", err)
			require.Equal(t, fetchSoon, e.RetryAfter)
			require.Contains(t, e.Detail, "send the request again")
			require.Equal(t, "error=unknown_key", e.Signature)
			require.Equal(t, want, took)
		}
		began := time.Now()
		var all sync.WaitGroup
		for range maxAwaitNet {
			all.Go(func() {
				_, err := admit("https://slow.example", p)
				underWay(time.Since(began), awaitTimeout, err)
			})
		}
		synctest.Wait()
		_, err = admit("https://slow.example", p)
		underWay(time.Since(began), 0, err) // no more places for this network
		_, err = from("another", "https://slow.example", p)
		underWay(time.Since(began), awaitTimeout, err)
		all.Wait()
		time.Sleep(time.Second)
		must.Get(admit("https://slow.example", p))(t)
		require.Empty(t, c.waiters)
		require.Zero(t, c.waiting)
	})
}

// eventually asks a cache that fetches over real sockets until it has an answer.
func eventually(t *testing.T, c *Cache, ref httpsig.AgentRef, p key.Pair) (k httpsig.Key, err error) {
	t.Helper()
	require.Eventually(t, func() bool {
		k, err = c.Lookup(ref, p.Thumbprint(), time.Now())
		return err == nil || protocol.AsError(err).RetryAfter > fetchSoon
	}, time.Minute, 5*time.Millisecond)
	return k, err
}

func TestGuardedClient(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	mux := http.NewServeMux()
	mux.HandleFunc(httpsig.DirectoryPath, answer(directoryMedia, setOf(t, p)))
	mux.HandleFunc("/large", answer(jsonMedia, strings.Repeat(" ", 1<<20)+setOf(t, p), "Content-Length", "2000000"))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	classify := func(err error) httpsig.Code {
		if _, ok := errors.AsType[*outbound.Refused](err); ok {
			return httpsig.CodeDirectoryAddressRefused
		}
		if errors.Is(err, outbound.ErrBodyTooLarge) {
			return httpsig.CodeDirectoryTooLarge
		}
		return ""
	}
	start := func(private bool) *Cache {
		client := outbound.New(outbound.Options{AllowPrivate: private})
		t.Cleanup(client.CloseIdleConnections)
		c := must.Get(New(Config{Client: client, Classify: classify, AllowLoopback: private}))(t)
		runFor(t, c)
		return c
	}

	open := start(true)
	k := must.Get(eventually(t, open, httpsig.AgentRef{Form: httpsig.AgentOrigin, URL: s.URL}, p))(t)
	require.Equal(t, p.Thumbprint(), k.Thumbprint())
	require.ErrorIs(t, must.Err(eventually(t, open, jwks(s.URL+"/large"), p)), httpsig.CodeDirectoryTooLarge)

	// A name that leads to this machine, from outside.
	_, err := eventually(t, start(false), origin("localhost"), p)
	require.ErrorIs(t, err, httpsig.CodeDirectoryAddressRefused)
	require.Equal(t, "directory-address-refused: https://localhost"+httpsig.DirectoryPath+" is not at a public address and port",
		protocol.AsError(err).Detail)
}
