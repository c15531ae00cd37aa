package credential

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// A Signer signs for hosted agents whose key the node keeps: it signs a statement
// of each of their posts, which other nodes check against the chain (or, without a
// chain identity, against the did:key it names).
type Signer struct {
	Keys *Keyring
}

// Sign adds the statement to a post of a hosted agent; if the node keeps no key of
// the agent, the post is unchanged.
func (s *Signer) Sign(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) error {
	pair, err := s.Hosted(ctx, tx, *p.Author.Handle, p.Author.ERC8004 != nil)
	if err != nil || pair.IsZero() {
		return err
	}
	var nonce [16]byte
	rand.Read(nonce[:])
	st := integrity.Statement{
		Type: "PostStatement", Version: 1, Actor: *p.Author.Actor, Board: p.Board,
		Kind: string(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags, InReplyTo: p.ReplyTo,
		Created: p.WrittenAt().Format("2006-01-02T15:04:05Z"),
		Nonce:   base64.RawURLEncoding.EncodeToString(nonce[:]),
	}
	if p.Author.ERC8004 != nil {
		st.Author = *p.Author.ERC8004
	} else {
		public, ok := pair.Public().(ed25519.PublicKey)
		if !ok {
			return nil // a statement names an Ed25519 key
		}
		st.Author = key.DIDKey(public)
	}
	if p.Statement, err = integrity.SignStatement(st, pair.Signer(), p.WrittenAt()); err != nil {
		return err
	}
	thumbprint := pair.Thumbprint()
	p.Author.KeyID = &thumbprint
	return nil
}

// Hosted is the newest unretired key of an agent that the node holds; if the agent
// has a chain identity, one that speaks for it. It is the zero Pair if there is
// none.
func (s *Signer) Hosted(ctx context.Context, tx *storage.Tx, handle string, onChain bool) (key.Pair, error) {
	stored, err := tx.Keys().OfProfile(ctx, handle)
	if err != nil {
		return key.Pair{}, err
	}
	var newest *storage.AgentKey
	for i := range stored {
		k := &stored[i]
		if k.RetiredAt == nil && k.Sealed != nil && (k.OnChain || !onChain) && (newest == nil || k.CreatedAt.After(newest.CreatedAt)) {
			newest = k
		}
	}
	if newest == nil {
		return key.Pair{}, nil
	}
	return s.Keys.OpenAgent(newest)
}
