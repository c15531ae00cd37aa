package federation

import (
	"crypto"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
)

// TestSignatureIsGoodForOnePost is a node that publishes an author's signed
// request a second time under another id: the first is accepted, the copy is
// refused, and the log continues.
func TestSignatureIsGoodForOnePost(t *testing.T) {
	t.Parallel()
	pair, err := key.GenerateEd25519()
	require.NoError(t, err)
	chain := &registry{id: agentID, keys: map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}}
	a, b := two(t, chain)
	b.follow(a)
	first := a.post(agentPost(t, a, pair, "Said once."))
	copied := a.post(func(p *protocol.StoredPost) {
		agentPost(t, a, pair, "Said once.")(p)
		p.Evidence = first.Evidence
	})
	after := a.post(nil)
	settle(t, a, b)
	require.True(t, b.held(first.URI).Author.Verified)
	require.Nil(t, b.held(copied.URI))
	require.Equal(t, protocol.Visible, b.state(after.URI))
}

// TestRecheck is a receiver whose view of the chain is behind the author's: the
// post is shown unverified first and verified once the key is seen.
func TestRecheck(t *testing.T) {
	t.Parallel()
	pair, err := key.GenerateEd25519()
	require.NoError(t, err)
	chain := &registry{id: agentID}
	a, b := two(t, chain)
	b.follow(a)
	p := a.post(agentPost(t, a, pair, "Signed with a key of this minute."))
	settle(t, a, b)
	require.False(t, b.held(p.URI).Author.Verified)
	chain.mu.Lock()
	chain.keys = map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}
	chain.mu.Unlock()
	a.tick.pass(recheckAfter[0] + recheckAfter[1])
	settle(t, a, b)
	got := b.held(p.URI)
	require.True(t, got.Author.Verified)
	require.Equal(t, protocol.BySignature, got.Author.Method)
	require.Equal(t, protocol.ByChainKey, got.Author.Proof.Level)
	require.Equal(t, int64(7), *got.Author.Proof.Block)
	require.Equal(t, a.tick.now().UnixMilli(), got.Author.Proof.CheckedAt.UnixMilli(), "when the key was seen")
}
