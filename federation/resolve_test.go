package federation

import (
	"crypto"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A resolution by the post's own author holds on every node that verified both
// by itself, wherever the two were made, and ends with the resolution.
func TestResolutionAcrossNodes(t *testing.T) {
	t.Parallel()
	pair := must.Get(key.GenerateEd25519())(t)
	granted := map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}
	chain := &registry{id: agentID, keys: granted}
	a, b := two(t, chain)
	late := &registry{id: agentID} // c's view of the chain is behind
	c := newNode(t, a.net, a.tick, 2, late)
	b.follow(a)
	c.follow(a)

	asked := a.post(agentPost(t, a, pair, "Who has paper?"))
	settle(t, a, b, c)
	byOther := b.post(func(p *protocol.StoredPost) { p.Kind, p.ReplyTo = protocol.Resolution, asked.URI })
	own := b.post(func(p *protocol.StoredPost) {
		p.Kind, p.ReplyTo = protocol.Resolution, asked.URI
		agentPost(t, b, pair, "Found some.")(p)
	})
	settle(t, a, b, c)
	resolvedBy := func(n *node) string {
		p := n.held(asked.URI)
		require.Equal(t, p.ResolvedBy != nil, p.Resolved)
		if p.ResolvedBy == nil {
			return ""
		}
		return *p.ResolvedBy
	}
	require.NotNil(t, a.held(byOther.URI), "someone else's resolution is a reply and no more")
	require.Equal(t, a.held(own.URI).ID, resolvedBy(a))
	require.Equal(t, own.ID, resolvedBy(b))
	require.Empty(t, resolvedBy(c), "c has verified neither author")

	late.mu.Lock()
	late.keys = granted
	late.mu.Unlock()
	a.tick.pass(recheckAfter[0])
	settle(t, a, b, c)
	require.Equal(t, c.held(own.URI).ID, resolvedBy(c), "and says so once it has")

	b.change(own, protocol.Deleted, "delete")
	settle(t, a, b, c)
	for _, n := range []*node{a, b, c} {
		require.Empty(t, resolvedBy(n), n.name)
	}
}
