package node_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// proofOf is the proof document of a post, as it is served.
func proofOf(h *nodetest.House, id string) []byte {
	h.T.Helper()
	a := h.Ask("GET", "/board/"+id+"/proof", "").Is(200)
	require.Equal(h.T, attest.MediaType, a.Header().Get("Content-Type"))
	return a.Body.Bytes()
}

// logged is the proof document of a post of the node, once it shows that the board's log has it.
func logged(h *nodetest.House, id string) (raw []byte) {
	h.T.Helper()
	require.Eventually(h.T, func() bool {
		raw = proofOf(h, id)
		return must.Get(attest.Parse(raw))(h.T).Log != nil
	}, time.Minute, 20*time.Millisecond)
	return raw
}

// TestProofDocument_Levels: what the proof of a post shows for every level at which an author is verified.
func TestProofDocument_Levels(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		chain := nodetest.NewEVM(t)
		id, pair := identityOn(chain, 0)
		s := chain.Start(change)
		post := func(a nodetest.Answer) string { return nodetest.As[protocol.Post](a.Is(201)).ID }
		byKey := func(r *http.Request, _ *httpsig.SignOptions) { r.Header.Set("Agent-Identity", id.String()) }
		owner := accountOf(s, 0, id.String())
		hosted := s.Hosted("asha")
		ok := func(names string, also map[string]attest.Result) map[string]attest.Result {
			for name := range strings.FieldsSeq(names) {
				also[name] = attest.Good
			}
			return also
		}
		for _, row := range []struct {
			level protocol.ProofLevel
			id    string
			kind  string
			want  map[string]attest.Result
		}{
			{protocol.ByChainKey, post(s.Signed(pair, nodetest.GoodPost, byKey)), attest.OfChain,
				ok("document node author state block record request", map[string]attest.Result{})},
			{protocol.ByOwner, post(owner.sends(owner.request("POST", "/api/public/board", nodetest.GoodPost, false))), attest.OfChain,
				ok("document node author state block record request", map[string]attest.Result{})},
			{protocol.ByProfileKey, post(s.Signed(hosted, nodetest.GoodPost, nil)), attest.OfProfile,
				ok("document node author request", map[string]attest.Result{"authority": attest.Said})},
			{protocol.ByNothing, s.Post("From nobody").ID, attest.OfNobody, ok("document node author", map[string]attest.Result{"authority": attest.Said})},
			{protocol.BySignIn, post(s.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+s.TokenOf("asha", "test", protocol.ScopePost))),
				attest.OfSession, ok("document node author", map[string]attest.Result{"authority": attest.Said})},
		} {
			raw := logged(s.House, row.id)
			row.want["log"] = attest.Good
			d := must.Get(attest.Parse(raw))(t)
			require.Equal(t, row.kind, d.Authority.Kind, "%s: %s", row.level, d.Authority.Reason)
			require.Equal(t, s.Base+"/board/"+row.id, d.Subject.URL)
			r := attest.Verify(t.Context(), raw, s.Trusting(raw))
			require.Equal(t, row.want, nodetest.Steps(r), "%s: %+v", row.level, r.Steps)
			require.Equal(t, attest.Verified, r.Verdict, "%s", row.level)
			require.Equal(t, row.level, r.Level)
			require.NotNil(t, r.Seen)
			t.Logf("%s: %d bytes, %d nodes", row.level, len(raw), len(d.Authority.Nodes))

			require.Equal(t, attest.Undecided, attest.Verify(t.Context(), raw, attest.Options{}).Verdict, "%s: nothing is known", row.level)
			stranger := attest.Options{Keys: key.Set{Keys: []key.Public{nodetest.NewPair(t).Published()}}}
			require.Equal(t, attest.Refused, attest.Verify(t.Context(), raw, stranger).Verdict, "%s: another node's key", row.level)
			if row.kind == attest.OfChain {
				o := s.Trusting(raw)
				o.Blocks = []string{"0x" + strings.Repeat("ab", 32)}
				require.Equal(t, attest.Refused, attest.Verify(t.Context(), raw, o).Verdict, "%s: another block", row.level)
			}
		}
	})
}

// identityOn registers an identity of an account with a key of its own.
func identityOn(c *nodetest.EVM, account int) (erc8004.ID, key.Pair) {
	c.T.Helper()
	id, _, err := c.Registrar(account).Register(c.T.Context(), "https://agent.example/a")
	require.NoError(c.T, err)
	pair := nodetest.NewPair(c.T)
	c.Publish(account, account, id, pair)
	c.Do("final")
	return id, pair
}

// TestProofDocument_Visibility: the proof is shown to whom the post is shown, and only the address of a post has one.
func TestProofDocument_Visibility(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	pair := h.Hosted("asha")
	p := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil))
	path := "/board/" + p.ID + "/proof"
	logged(h, p.ID)
	var first nodetest.Answer
	require.Eventually(t, func() bool { // the tree of the log may grow between two reads
		first = h.Ask("GET", path, "").Is(200)
		return h.Ask("GET", path, "", "If-None-Match", first.Header().Get("ETag")).Code == 304 &&
			h.Ask("GET", "/api/public"+path, "").Is(200).Body.String() == first.Body.String()
	}, time.Minute, time.Millisecond)
	require.Equal(t, "*", first.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "public, max-age=60", first.Header().Get("Cache-Control"))

	old := first.Body.Bytes()
	next := h.Trusting()
	next.Keys.Keys[0].NotBefore = time.Now().Add(time.Hour)
	require.Equal(t, attest.Verified, attest.Verify(t.Context(), old, next).Verdict, "signed with a key that is newer than the post")
	h.AskSigned(pair, "PUT", "/api/public/board/"+p.ID, `{"kind":"offer","title":"Looms","body":"Three looms."}`).Is(200)
	now := proofOf(h, p.ID)
	for name, raw := range map[string][]byte{"before": old, "after": now} {
		require.Equal(t, attest.Verified, attest.Verify(t.Context(), raw, h.Trusting()).Verdict, name)
	}
	var object attest.Post
	require.NoError(t, json.Unmarshal(must.Get(attest.Parse(now))(t).Subject.Object, &object))
	require.Equal(t, "Three looms.", object.Body)

	decision := protocol.Decision{ID: p.ID, Reason: "x"}
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, decision, nil))
	require.Equal(t, protocol.Gone, h.Ask("GET", path, "").Problem().Code)
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.RestorePost.Operation, decision, nil))
	require.Equal(t, 200, h.Ask("GET", path, "").Code)
	h.AskSigned(pair, "DELETE", "/api/public/board/"+p.ID, "").Is(204)
	require.Equal(t, 410, h.Ask("GET", path, "").Code)
	require.Equal(t, 404, h.Ask("GET", "/board/post_01kaa9zv6k8e5w9q2x4z7c1m0a/proof", "").Code)
}
