package a2aapi_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// signatures checks every signature of a card with the key that its jku leads to
// on this node, and returns the algorithms.
func signatures(h *nodetest.House, raw []byte) (algs []string) {
	h.T.Helper()
	members := must.JSON[map[string]json.RawMessage](raw)(h.T)
	list := must.JSON[[]a2a.Signature](members["signatures"])(h.T)
	delete(members, "signatures")
	payload := must.Get(json.Marshal(members))(h.T)
	canonical := must.Get(strictjson.Canonical(payload))(h.T)
	for _, s := range list {
		header := must.Get(base64.RawURLEncoding.DecodeString(s.Protected))(h.T)
		var protected struct{ Alg, Kid, Jku string }
		require.NoError(h.T, json.Unmarshal(header, &protected))
		require.Contains(h.T, protected.Jku, h.Base+"/.well-known/")
		set := must.Get(key.ParseSet(h.Ask("GET", protected.Jku[len(h.Base):], "").Body.Bytes()))(h.T)
		public, found := set.Find(protected.Kid)
		require.True(h.T, found, "%s in %s", protected.Kid, protected.Jku)
		sig := must.Get(base64.RawURLEncoding.DecodeString(s.Signature))(h.T)
		good := func(payload []byte) bool {
			input := []byte(s.Protected + "." + base64.RawURLEncoding.EncodeToString(payload))
			if k, ok := public.Key.(ed25519.PublicKey); ok {
				return ed25519.Verify(k, input, sig)
			}
			digest := sha256.Sum256(input)
			return ecdsa.Verify(public.Key.(*ecdsa.PublicKey), digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
		}
		require.True(h.T, good(canonical) || good(escaped(canonical)), "%s", protected.Alg)
		algs = append(algs, protected.Alg)
	}
	return algs
}

// escaped is the form that readers of 2025 check.
func escaped(canonical []byte) (out []byte) {
	for _, r := range string(canonical) {
		if r < 0x80 {
			out = append(out, byte(r))
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

func TestA2A_Card(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		pair := must.Get(key.GenerateEd25519())(t)
		require.NoError(t, h.Admin().AddKey(t.Context(), "asha", pair, true))
		a := h.Ask("GET", "/a2a/asha/agent-card.json", "", "A2A-Version", "1.0").Is(200)
		require.Equal(t, "application/json", a.Header().Get("Content-Type"))
		require.Equal(t, "*", a.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, "public, max-age=300", a.Header().Get("Cache-Control"))
		require.Contains(t, a.Header().Values("Vary"), "A2A-Version")
		require.Equal(t, []string{"EdDSA", "EdDSA", "ES256", "EdDSA", "EdDSA"}, signatures(h, a.Body.Bytes()),
			"the agent's key and the node's; EdDSA once more for readers that escape")
		require.Equal(t, a.Body.String(), h.Ask("GET", "/a2a/asha/.well-known/agent-card.json?A2A-Version=1.0", "").Body.String())
		require.Contains(t, a.Body.String(), `"securityRequirements":[{"schemes":{"httpsig":{"list":["agent"]}}}]`)
		bare := h.Ask("GET", "/a2a/asha/agent-card.json", "")
		require.NotContains(t, bare.Body.String(), "securityRequirements", "who names no version may be a client that cannot read them")
		require.Contains(t, bare.Body.String(), `"securitySchemes"`)
		require.NotEqual(t, a.Header().Get("ETag"), bare.Header().Get("ETag"))
		require.Len(t, signatures(h, bare.Body.Bytes()), 5, "and it is signed as it is")
		a = bare

		tag, date := a.Header().Get("ETag"), a.Header().Get("Last-Modified")
		require.Equal(t, 304, h.Ask("GET", "/a2a/asha/agent-card.json", "", "If-None-Match", `"x", W/`+tag).Code)
		require.Equal(t, 304, h.Ask("GET", "/a2a/asha/agent-card.json", "", "If-Modified-Since", date).Code)
		require.Equal(t, 200, h.Ask("GET", "/a2a/asha/agent-card.json", "", "If-Modified-Since", date, "If-None-Match", `"x"`).Code)
		head := h.Ask("HEAD", "/a2a/asha/agent-card.json", "")
		require.Equal(t, tag, head.Header().Get("ETag"))
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // dates have seconds
		h.PutOpen("asha", func(d *protocol.ProfileDraft) { d.Description = "Paper" })
		after := h.Ask("GET", "/a2a/asha/agent-card.json", "", "If-None-Match", tag, "If-Modified-Since", date)
		require.Equal(t, 200, after.Code, "a new profile is a new card")
		require.Equal(t, []string{"EdDSA", "EdDSA", "ES256"}, signatures(h, after.Body.Bytes()))

		require.Equal(t, protocol.NotFound, h.Ask("GET", "/a2a/nobody/agent-card.json", "").Problem().Code)
		joined := h.Ask("GET", "/a2a/.well-known/agent-card.json", "")
		require.Equal(t, protocol.NotFound, joined.Problem().Code, "where clients look that were given an address without the slash at its end")
		require.Contains(t, joined.Body.String(), h.Base+"/a2a/{handle}/agent-card.json")
		for _, accept := range []string{"text/html", "text/plain"} {
			require.Contains(t, h.Ask("GET", "/", "", "Accept", accept).Body.String(), "/a2a", "the first page names the door")
		}
		require.Equal(t, protocol.NotFound, h.Ask("GET", "/a2a/No%20Body/agent-card.json", "").Problem().Code)

		own := h.Ask("GET", "/.well-known/agent-card.json", "").Is(200)
		require.Equal(t, []string{"EdDSA", "ES256"}, signatures(h, own.Body.Bytes()))
		card := nodetest.As[a2a.Card](own)
		require.Equal(t, h.Base+"/a2a", card.SupportedInterfaces[0].URL)
		var names []string
		for _, s := range card.Skills {
			names = append(names, s.ID)
		}
		require.Contains(t, names, "post_to_board")
		require.Contains(t, names, "search_agents")
	})
}

// TestA2A_Card_Client reads cards with another implementation, at the addresses
// that it derives itself.
func TestA2A_Card_Client(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	served := httptest.NewServer(h.Handler())
	t.Cleanup(served.Close)
	for at, want := range map[string]string{"": h.Base + "/a2a", "/a2a/asha": h.Base + "/a2a/asha"} {
		card := must.Get(agentcard.NewResolver(http.DefaultClient).Resolve(t.Context(), served.URL+at))(t)
		require.Equal(t, want, card.SupportedInterfaces[0].URL)
		require.EqualValues(t, "1.0", card.SupportedInterfaces[0].ProtocolVersion)
		require.NotEmpty(t, card.Skills)
	}
}
