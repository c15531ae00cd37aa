package credential

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"time"

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
	signed, thumbprint, err := s.sign(ctx, tx, p.Author, p.WrittenAt(), integrity.Statement{
		Board: p.Board, Kind: string(p.Kind), Title: p.Title, Body: p.Body, Tags: p.Tags, InReplyTo: p.ReplyTo,
	})
	if err != nil || signed == nil {
		return err
	}
	p.Statement, p.Author.KeyID = signed, &thumbprint
	return nil
}

// SignNews adds to news of a shop what the nodes that follow this one check: the statement, if the node keeps a key of
// the shop, and the feedback of a review, nil for other news. board is that of this node.
func (s *Signer) SignNews(ctx context.Context, tx *storage.Tx, board string, item *protocol.FeedItem, review *protocol.NewsReview) error {
	signed, _, err := s.sign(ctx, tx, item.Actor, item.At, integrity.Statement{
		Board: board, Kind: string(item.Type), Title: item.Subject.Title, Body: item.Summary,
	})
	if err != nil || signed == nil && review == nil {
		return err
	}
	item.Evidence, err = json.Marshal(protocol.NewsEvidence{Statement: signed, Review: review})
	return err
}

// sign completes a statement of a hosted agent and signs it; nil when the node keeps no key of the agent.
func (s *Signer) sign(
	ctx context.Context, tx *storage.Tx, author protocol.Author, at time.Time, st integrity.Statement,
) (signed json.RawMessage, thumbprint string, err error) {
	pair, err := s.Hosted(ctx, tx, *author.Handle, author.ERC8004 != nil)
	if err != nil || pair.IsZero() {
		return nil, "", err
	}
	var nonce [16]byte
	rand.Read(nonce[:])
	st.Actor, st.Created, st.Nonce = *author.Actor, at.Format("2006-01-02T15:04:05Z"), base64.RawURLEncoding.EncodeToString(nonce[:])
	if author.ERC8004 != nil {
		st.Author = *author.ERC8004
	} else {
		public, ok := pair.Public().(ed25519.PublicKey)
		if !ok {
			return nil, "", nil // a statement names an Ed25519 key
		}
		st.Author = key.DIDKey(public)
	}
	signed, err = integrity.SignStatement(st, pair.Signer(), at)
	return signed, pair.Thumbprint(), err
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
