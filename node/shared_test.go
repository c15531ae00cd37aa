package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/credential"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestProcesses runs two processes of one deployment on PostgreSQL, and one on SQLite: what is
// spent at one is spent at the other, what is written at one is read at both,
// and a repeated request finds its answer at either.
func TestProcesses(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		one := nodetest.New(t, change)
		two := one.Second(change)

		proof := one.Proof("board")
		const tries = 16
		codes := make([]int, tries)
		var group sync.WaitGroup
		for i := range tries {
			group.Go(func() {
				h := []*nodetest.House{one, two}[i%2]
				codes[i] = h.Ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":"Race %d","body":"b"}`, i), "Proof-Of-Work", proof).Code
			})
		}
		group.Wait()
		won := 0
		for _, code := range codes {
			if code == 201 {
				won++
			} else {
				require.Equal(t, 401, code)
			}
		}
		require.Equal(t, 1, won, "a proof pays once over the whole deployment")

		first := one.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", one.Proof("board"), "Idempotency-Key", "k1").Is(201)
		again := two.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", two.Proof("board"), "Idempotency-Key", "k1")
		require.Equal(t, first.Body.String(), again.Body.String())

		var page protocol.Page[protocol.Post]
		require.Eventually(t, func() bool {
			two.Ask("GET", "/api/public/board", "").Into(&page)
			return len(page.Items) == 2
		}, time.Minute, 20*time.Millisecond)
		one.Ask("GET", "/api/public/board?q=looms&verifiedOnly=false", "").Into(&page)
		require.Len(t, page.Items, 1)
	})
}

func TestSigned_HostedKey(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		ctx := context.Background()
		pair := h.Hosted("asha")
		a := h.Signed(pair, nodetest.GoodPost, nil).Is(201)
		p := nodetest.As[protocol.Post](a)
		require.True(t, p.Author.Verified)
		require.Equal(t, "asha", *p.Author.Handle)
		require.Equal(t, pair.Thumbprint(), *p.Author.KeyID)
		require.Nil(t, p.Author.ERC8004)
		rests := protocol.AuthorProof{Level: protocol.ByProfileKey, Subject: p.Author.Actor, CheckedAt: &p.CreatedAt}
		require.Equal(t, rests, p.Author.Proof)
		kept := nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+p.ID, ""))
		require.Equal(t, rests, kept.Post.Author.Proof)
		news := nodetest.As[protocol.Page[protocol.FeedItem]](h.Ask("GET", "/api/public/feed", ""))
		require.Equal(t, rests, news.Items[0].Actor.Proof)
		require.Contains(t, h.Ask("GET", "/board/"+p.ID, "", "Accept", "text/html").Body.String(), "verified by profile key")

		replay := func(r *http.Request, o *httpsig.SignOptions) { o.Nonce = "the-same-nonce-again" }
		require.Equal(t, 201, h.Signed(pair, nodetest.GoodPost, replay).Code)
		again := h.Signed(pair, nodetest.GoodPost, replay)
		require.Equal(t, protocol.SignatureReplayed, again.Problem().Code)
		require.NotEmpty(t, again.Header().Get("Signature-Error"))

		require.NoError(t, h.Admin().RetireKey(ctx, pair.Thumbprint()))
		require.Equal(t, 401, h.Signed(pair, nodetest.GoodPost, nil).Code, "a retired key ends with the commit that retires it")

		secret, token, err := h.Admin().CreateToken(ctx, "asha", "test", 0)
		require.NoError(t, err)
		a = h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+secret).Is(201)
		a.Into(&p)
		require.Equal(t, protocol.BySession, p.Author.Method)
		require.Equal(t, protocol.AuthorProof{Level: protocol.BySignIn, Subject: p.Author.Actor, CheckedAt: &p.CreatedAt}, p.Author.Proof)
		require.Equal(t, 204, h.Ask("DELETE", "/api/public/board/"+p.ID, "", "Authorization", "Bearer "+secret).Code)
		require.Equal(t, protocol.Gone, h.Ask("GET", "/api/public/board/"+p.ID, "").Problem().Code)
		require.NoError(t, h.Admin().RevokeToken(ctx, token.ID))
		require.Equal(t, 401, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+secret).Code, "a revoked token too")

		stranger := must.Get(key.GenerateEd25519())(t)
		refused := h.Signed(stranger, nodetest.GoodPost, nil)
		require.Equal(t, protocol.KeyUnknown, refused.Problem().Code)
		require.NotEmpty(t, refused.Header().Get("Signature-Error"))
		noChain := h.Signed(pair, nodetest.GoodPost, func(r *http.Request, o *httpsig.SignOptions) {
			r.Header.Set("Agent-Identity", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1")
		})
		require.Equal(t, protocol.IdentityUnverified, noChain.Problem().Code)
	})
}

// TestSigned_KeyDirectory is an agent that no profile and no chain vouches for:
// its keys are in a directory of its own, which is fetched in the background.
func TestSigned_KeyDirectory(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	set := must.Get(key.MarshalSet([]key.Public{pair.Published()}))(t)
	var fetches atomic.Int64
	refused := make(chan struct{}) // the first request waits a second for the directory
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		<-refused
		w.Header().Set("Content-Type", "application/http-message-signatures-directory+json")
		w.Write(set)
	}))
	t.Cleanup(agent.Close)
	h := nodetest.Start(t)
	asAgent := func(r *http.Request, o *httpsig.SignOptions) {
		r.Header.Set("Signature-Agent", `sig1="`+agent.URL+`"`)
	}
	first := h.Signed(pair, nodetest.GoodPost, asAgent)
	close(refused)
	require.Equal(t, protocol.KeyUnknown, first.Problem().Code)
	require.NotEmpty(t, first.Header().Get("Retry-After"))
	var p protocol.Post
	require.Eventually(t, func() bool {
		a := h.Signed(pair, nodetest.GoodPost, asAgent)
		return a.Code == 201 && json.Unmarshal(a.Body.Bytes(), &p) == nil
	}, time.Minute, 50*time.Millisecond)
	require.True(t, p.Author.Verified)
	require.Equal(t, agent.Listener.Addr().String(), p.Author.Name)
	require.Equal(t, protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &agent.URL, CheckedAt: &p.CreatedAt}, p.Author.Proof)
	page := h.Ask("GET", "/board/"+p.ID, "", "Accept", "text/html").Body.String()
	require.Contains(t, page, "verified for "+agent.Listener.Addr().String())
	require.Contains(t, page, "Site that publishes the key")
	require.Equal(t, pair.Thumbprint(), *p.Author.KeyID)
	require.EqualValues(t, 1, fetches.Load())
}

// TestSigned_KeyDirectoryElsewhere: a node that follows another one verifies by the author's key directory itself; what the other node says counts
// for nothing, and a key that the directory does not list verifies nobody.
func TestSigned_KeyDirectoryElsewhere(t *testing.T) {
	t.Parallel()
	pair, other := must.Get(key.GenerateEd25519())(t), must.Get(key.GenerateEd25519())(t)
	var lists atomic.Pointer[[]key.Public]
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/http-message-signatures-directory+json")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(must.Get(key.MarshalSet(*lists.Load()))(t))
	}))
	t.Cleanup(agent.Close)
	lists.Store(&[]key.Public{pair.Published()})
	home, away, late := nodetest.Start(t), nodetest.Start(t), nodetest.Start(t)
	require.NoError(t, away.Admin().Follow(t.Context(), home.Base))
	asAgent := func(r *http.Request, o *httpsig.SignOptions) {
		r.Header.Set("Signature-Agent", `sig1="`+agent.URL+`"`)
	}
	post := nodetest.As[protocol.Post](home.Signed(pair, nodetest.GoodPost, asAgent).Is(201))
	copyOn := func(h *nodetest.House) (p protocol.Post) {
		for _, p := range nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", "")).Items {
			if p.Title == post.Title {
				return p
			}
		}
		return p
	}
	require.Eventually(t, func() bool { return copyOn(away).Author.Proof.Level == protocol.ByDirectory }, time.Minute, 50*time.Millisecond)
	there := copyOn(away).Author
	require.True(t, there.Verified)
	require.Equal(t, agent.Listener.Addr().String(), there.Name)
	require.Equal(t, agent.URL, *there.Proof.Subject)
	require.Equal(t, pair.Thumbprint(), *there.KeyID)

	lists.Store(&[]key.Public{other.Published()})
	require.NoError(t, late.Admin().Follow(t.Context(), home.Base))
	require.Eventually(t, func() bool { return copyOn(late).ID != "" }, time.Minute, 50*time.Millisecond)
	require.False(t, copyOn(late).Author.Verified)
}

// TestPresignedDirectory is a key that only its owner holds: the node serves the
// key directory that the owner signed, and nothing before that.
func TestPresignedDirectory(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	ctx := context.Background()
	pair := h.Hosted("asha")
	at := "/.well-known/service-agents/" + pair.Thumbprint() + "/jwks.json"
	require.Equal(t, protocol.DirectoryExpired, h.Ask("GET", at, "").Problem().Code)

	signed := must.Get(credential.SignDirectory(h.Base, pair))(t)
	elsewhere := must.Get(credential.SignDirectory("https://other.example", pair))(t)
	require.Error(t, h.Admin().PutDirectory(ctx, pair.Thumbprint(), elsewhere), "signed for another node")
	require.Error(t, h.Admin().PutDirectory(ctx, pair.Thumbprint(), []byte("{}")))
	require.NoError(t, h.Admin().PutDirectory(ctx, pair.Thumbprint(), signed))
	a := h.Ask("GET", at, "").Is(200)
	require.NotEmpty(t, a.Header().Get("Signature"))
	require.Contains(t, a.Body.String(), pair.Thumbprint())
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Post("Counted")
	h.Ask("GET", "/api/public/board", "")
	h.Ask("GET", "/api/public/board", "")
	for _, line := range []string{
		`stoa_operation_duration_seconds_count{code="ok",door="http",operation="post_to_board"} 1`,
		`stoa_operation_duration_seconds_count{code="ok",door="http",operation="read_board"} 2`,
		`stoa_jobs{kind="prune",state="waiting"} 1`,
		`stoa_outlet_lag_entries 0`,
		`stoa_feed_streams 0`,
		`stoa_build_info{engine="sqlite",version="test"} 1`,
	} {
		require.Contains(t, h.Metrics(), line)
	}
}
