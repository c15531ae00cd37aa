package credential

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"stoa/identity/attest"
	"stoa/identity/directory"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
)

// A Prover makes the proof documents of the node's objects (docs/PROOF.md).
type Prover struct {
	DB          *storage.DB
	Base        string
	Key         key.Pair // the node's
	Chain       *Chain   // nil when no chain is configured
	Directories *directory.Cache
	Log         *slog.Logger

	queue chan protocol.AuthorProof // what Run reads the state for
}

// proofQueue is how many states wait to be read; further ones are read when somebody asks.
const proofQueue = 64

// NewProver completes a prover.
func NewProver(p Prover) *Prover {
	p.queue = make(chan protocol.AuthorProof, proofQueue)
	return &p
}

// Note has the state that shows the caller's authority read soon: endpoints keep that of some blocks only. It does not wait.
func (p *Prover) Note(c protocol.Caller) {
	if c.Agent == "" || c.Proof.Block == nil || c.Proof.BlockHash == nil || c.Evidence == nil {
		return
	}
	at := c.Proof
	at.Subject = &c.Agent
	select {
	case p.queue <- at:
	default:
	}
}

// Run reads what Note asked for, until ctx ends. What cannot be read now is read when somebody asks.
func (p *Prover) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-p.queue:
			if _, err := p.state(ctx, at); err != nil && ctx.Err() == nil {
				p.Log.Debug("state of an author not read", "identity", *at.Subject, "err", err)
			}
		}
	}
}

// Post returns the proof document of a post that the caller may show. network is that of who asks: its reads of the chain are counted.
func (p *Prover) Post(ctx context.Context, network, id string) ([]byte, error) {
	var post *protocol.StoredPost
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		post, err = tx.Posts().ByID(ctx, id)
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no post with that id"))
	}
	object, err := json.Marshal(attest.Post{
		Kind: string(post.Kind), Title: post.Title, Body: post.Body, Tags: post.Tags, InReplyTo: post.ReplyTo, Board: post.Board, Author: post.Author,
		CreatedAt: post.CreatedAt, EditedAt: post.EditedAt,
	})
	if err != nil {
		return nil, err
	}
	seen := post.WrittenAt()
	if post.Author.Proof.CheckedAt != nil {
		seen = *post.Author.Proof.CheckedAt
	} else if post.Node != nil { // when it came is not kept
		seen = time.Now()
	}
	d := attest.Document{
		Subject:  attest.Subject{Kind: attest.KindPost, ID: post.URI, URL: p.Base + "/board/" + post.ID, Object: object},
		Evidence: post.Evidence, Statement: post.Statement,
	}
	if d.Authority, err = p.authority(ctx, network, post.Author); err != nil {
		return nil, err
	}
	return attest.Seal(d, p.Base, seen, post.Author.Proof.Level, post.Author.Proof, p.Key)
}

// authority is what shows that the author's key, account or session is the author's.
func (p *Prover) authority(ctx context.Context, network string, a protocol.Author) (attest.Authority, error) {
	switch a.Proof.Level {
	case protocol.ByChainKey, protocol.ByOwner, protocol.ByWallet:
		if p.Chain != nil && !p.Chain.Dev {
			ctx = erc8004.WithSource(ctx, network)
		}
		at, err := p.state(ctx, a.Proof)
		if err != nil || a.KeyID == nil {
			return at, err
		}
		_, byAccount := httpsig.ParseAccount(*a.KeyID)
		switch {
		case a.Proof.Level != protocol.ByChainKey && !byAccount:
			err = p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				stored, err := tx.DelegatedKeys().Find(ctx, at.Identity, *a.KeyID)
				if err == nil {
					at.Key = json.RawMessage(stored.PublicJWK)
				}
				return storage.IfMissing(err, nil)
			})
		case a.Proof.Level == protocol.ByChainKey && at.Kind == attest.OfNode && len(at.Record) == 0:
			at.Key = p.granted(ctx, at.Identity, *a.KeyID)
		}
		return at, err
	case protocol.ByDirectory:
		at := attest.Authority{Kind: attest.OfDirectory, Directory: *a.Proof.Subject}
		at.Key = p.listed(at.Directory, *a.KeyID)
		return at, nil
	case protocol.ByProfileKey:
		at := attest.Authority{Kind: attest.OfProfile}
		err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			stored, err := tx.Keys().ByThumbprint(ctx, *a.KeyID)
			if err == nil {
				at.Key = stored.PublicJWK
			}
			return storage.IfMissing(err, nil)
		})
		return at, err
	case protocol.BySignIn:
		return attest.Authority{Kind: attest.OfSession}, nil
	}
	return attest.Authority{Kind: attest.OfNobody}, nil
}

// state is the state of the chain at the block of an author's proof: as it was stored, or as the chain's endpoint still has it. An error is a
// *protocol.Error, when the caller's or the chain's reads are used up.
func (p *Prover) state(ctx context.Context, at protocol.AuthorProof) (attest.Authority, error) {
	a := attest.Authority{Kind: attest.OfNode, Identity: *at.Subject}
	if at.Owner != nil {
		a.Owner = *at.Owner
	}
	if at.Block == nil || at.BlockHash == nil {
		a.Reason = "the node did not keep the block at which it verified the author"
		return a, nil
	}
	a.Block, a.BlockHash = uint64(*at.Block), *at.BlockHash
	id := a.Identity + " " + a.BlockHash
	var stored storage.StateProof
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		stored, err = tx.Keys().StateProof(ctx, id)
		return err
	})
	if err == nil {
		return a, json.Unmarshal(stored.Doc, &a)
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return a, err
	}
	agent, err := erc8004.ParseID(a.Identity)
	if p.Chain == nil || err != nil {
		a.Reason = "the node does not read that chain any more"
		return a, nil
	}
	view, proof, err := p.Chain.Reader.Prove(ctx, agent, a.Block, a.BlockHash)
	switch spent := (*erc8004.BudgetError)(nil); {
	case errors.As(err, &spent):
		return a, chainError(err)
	case err != nil && !errors.Is(err, erc8004.ErrNoStateProof):
		a.Reason = "the chain cannot be read now"
		return a, nil
	case view.Block == 0:
		a.Reason = "the chain's endpoint does not have the state of that block any more"
		return a, nil
	}
	a.Owner, a.Wallet = view.Controllers()
	a.Record = view.Record
	if a.Reason = "the chain's endpoint gave no proof of that state"; proof != nil {
		a.Kind, a.Reason = attest.OfChain, ""
		a.Layout, a.Header, a.Nodes = proof.Layout, proof.Header, proof.Nodes
	}
	doc, err := json.Marshal(a)
	if err != nil {
		return a, err
	}
	return a, p.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return tx.Keys().PutStateProof(ctx, storage.StateProof{ID: id, Doc: doc, At: tx.Now})
	})
}

// granted is the key of that thumbprint as the identity grants it today, nil for none.
func (p *Prover) granted(ctx context.Context, identity, keyid string) json.RawMessage {
	if p.Chain == nil {
		return nil
	}
	grant, err := p.Chain.Grant(ctx, identity, keyid)
	if err != nil {
		return nil
	}
	raw, err := key.MarshalPublic(key.Public{Key: grant.PublicKey, Thumbprint: grant.KeyID})
	if err != nil {
		return nil
	}
	return raw
}

// listed is the key of that thumbprint as the key directory at an address lists it today, nil for none.
func (p *Prover) listed(address, keyid string) json.RawMessage {
	ref := httpsig.AgentRef{Form: httpsig.AgentOrigin, URL: address}
	if u, err := url.Parse(address); err != nil || u.Path != "" && u.Path != "/" {
		ref.Form = httpsig.AgentJWKS
	}
	found, err := p.Directories.Lookup(ref, keyid, time.Now())
	if err != nil {
		return nil
	}
	raw, err := key.MarshalPublic(key.Public{Key: found.Public(), Thumbprint: keyid})
	if err != nil {
		return nil
	}
	return raw
}
