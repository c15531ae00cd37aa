package node_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

const leaflet = `{"kind":"offer","title":"Paper %d","body":"We print 200 sheets of hand-made paper a week in Jaipur and look for a shop that would ` +
	`sell them. Samples by post."}`

// TestPrice_OverHTTP posts texts that are alike with real challenges: each is
// admitted, the second for a harder one that the refusal carries.
func TestPrice_OverHTTP(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev = false })
	post := func(n int, headers ...string) nodetest.Answer {
		return h.Ask("POST", "/api/public/board", fmt.Sprintf(leaflet, n), headers...)
	}
	require.Equal(t, 201, post(1, "Proof-Of-Work", h.Proof("board")).Code)

	cheap := h.Proof("board")
	a := post(2, "Proof-Of-Work", cheap).Is(401)
	p := a.Problem()
	require.Equal(t, protocol.PowRequired, p.Code)
	require.Equal(t, 4, p.Challenge.Hint.Level, "a step for the text, a step for the network")
	require.NotEmpty(t, p.Challenge.Parameters.Data.Text)
	require.Equal(t, protocol.PowInvalid, post(2, "Proof-Of-Work", cheap).Problem().Code, "what was solved asks once")

	s := must.Get(pow.SolveParallel(t.Context(), *p.Challenge, 2))(t)
	require.Equal(t, 201, post(2, "Proof-Of-Work", s.Encode()).Code, "who pays gets in")
	require.Equal(t, protocol.PowSpent, post(2, "Proof-Of-Work", s.Encode()).Problem().Code)

	require.Equal(t, 201, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Code, "another text costs what it did")

	t.Run("a repeated request is no repetition", func(t *testing.T) {
		body := `{"kind":"offer","title":"Once","body":"A text of its own about brass bells and temple lamps from Moradabad, sold by weight."}`
		first := h.Ask("POST", "/api/public/board", body, "Proof-Of-Work", h.Proof("board"), "Idempotency-Key", "once").Is(201)
		again := h.Ask("POST", "/api/public/board", body, "Proof-Of-Work", h.Proof("board"), "Idempotency-Key", "once").Is(201)
		require.Equal(t, first.Body.String(), again.Body.String())
	})
	t.Run("nor is it paid for: the price of the network and of the text stays", func(t *testing.T) {
		h := nodetest.New(t, func(c *node.Config) { c.Dev = false })
		level := func() int {
			c := nodetest.As[pow.Challenge](h.Ask("GET", "/api/public/pow?purpose=board", ""))
			return c.Hint.Level
		}
		before := level()
		for range 6 { // five that are paid raise a network's level
			h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board"), "Idempotency-Key", "again").Is(201)
			require.Equal(t, before, level())
		}
	})
	t.Run("a report says what others say", func(t *testing.T) {
		for range 3 {
			id := unlike(h, t).ID
			h.Ask("POST", "/api/public/board/"+id+"/report", `{"reason":"This is the same spam as everywhere, please take it away at once."}`,
				"Proof-Of-Work", h.Proof("report")).Is(202)
		}
	})
}

// unlike posts a text like no other.
func unlike(h *nodetest.House, t *testing.T) (p protocol.Post) {
	t.Helper()
	body := fmt.Sprintf(`{"kind":"offer","title":"Lamp","body":%q}`, rand.Text()+rand.Text())
	a := h.Ask("POST", "/api/public/board", body, "Proof-Of-Work", h.Proof("board")).Is(201)
	a.Into(&p)
	return p
}

// TestPrice_Client repeats itself through the client behind stoa call, which
// solves what it is asked for; with a token nothing is asked.
func TestPrice_Client(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, func(c *node.Config) { c.Dev = false; c.AllowPrivatePeers = true })
	n.Hosted("asha")
	token := n.TokenOf("asha", "t")
	anybody := must.Get(client.New(n.URL, client.Options{}))(t)
	owner := must.Get(client.New(n.URL, client.Options{Token: token}))(t)
	for _, c := range []*client.Client{anybody, anybody, owner, owner, owner} {
		res := must.Get(c.Call(t.Context(), "post_to_board", map[string]any{"kind": "offer", "title": "Paper",
			"body": "We print 200 sheets of hand-made paper a week in Jaipur and look for a shop."}))(t)
		require.Equal(t, http.StatusCreated, res.Status)
	}
}
