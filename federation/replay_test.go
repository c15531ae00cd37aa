package federation

import (
	"context"
	"crypto"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestSignatureIsGoodForOnePost is a node that publishes an author's signed
// request a second time under another id: the first is accepted, the copy is
// refused, and the log continues.
func TestSignatureIsGoodForOnePost(t *testing.T) {
	a, b, pair, _ := granted(t)
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
	pair := must.Get(key.GenerateEd25519())(t)
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

// TestRecheck_Directory: an author whom a key directory names is verified by the directory as this node finds it, which is asked again when it
// did not list the key; what the other node says of him counts for nothing.
func TestRecheck_Directory(t *testing.T) {
	t.Parallel()
	const agent = "https://agent.example"
	pair := must.Get(key.GenerateEd25519())(t)
	a, b := two(t, nil)
	var listed atomic.Bool
	var asked atomic.Int64
	b.f.c.Listed = func(_ context.Context, host string, ref httpsig.AgentRef, keyid string) (crypto.PublicKey, error) {
		asked.Add(1)
		if host != a.name || ref.URL != agent || keyid != pair.Thumbprint() || !listed.Load() {
			return nil, protocol.Errorf(protocol.KeyUnknown, "not listed")
		}
		return pair.Public(), nil
	}
	b.follow(a)
	post := func(text, agent string) *protocol.StoredPost {
		return a.post(func(p *protocol.StoredPost) {
			thumb := pair.Thumbprint()
			p.Body = text
			p.Author = protocol.Author{Name: "agent.example", KeyID: &thumb, Verified: true, Method: protocol.BySignature,
				Proof: protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &agent}}
			in := protocol.NewPost{Kind: p.Kind, Title: p.Title, Body: text, Tags: p.Tags}
			p.Evidence = signedAs(t, a, pair, in, "Signature-Agent", `sig1="`+agent+`"`)
		})
	}
	p := post("Signed with a key of a directory.", agent)
	other := post("Signed with a key of another directory.", "https://other.example")
	settle(t, a, b)
	require.False(t, b.held(p.URI).Author.Verified)
	require.Equal(t, protocol.ByNothing, b.held(p.URI).Author.Proof.Level)
	listed.Store(true)
	a.tick.pass(recheckAfter[0] + recheckAfter[1])
	settle(t, a, b)
	got := b.held(p.URI).Author
	require.True(t, got.Verified)
	require.Equal(t, protocol.ByDirectory, got.Proof.Level)
	require.Equal(t, agent, *got.Proof.Subject)
	require.False(t, b.held(other.URI).Author.Verified)

	forged := a.post(func(p *protocol.StoredPost) { // what the directory lists for one key is not for another
		thumb := pair.Thumbprint()
		p.Body = "Changed on the way."
		p.Author = protocol.Author{Name: "agent.example", KeyID: &thumb, Verified: true, Method: protocol.BySignature}
		in := protocol.NewPost{Kind: p.Kind, Title: p.Title, Body: "As it was signed.", Tags: p.Tags}
		p.Evidence = signedAs(t, a, pair, in, "Signature-Agent", `sig1="`+agent+`"`)
	})
	settle(t, a, b)
	require.Nil(t, b.held(forged.URI))
	require.Positive(t, asked.Load())
}
