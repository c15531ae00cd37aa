package credential

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"stoa/identity/attest"
	"stoa/identity/cache"
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
	// Logged shows that the log of the node's board has a post as it is; nil when it does not.
	Logged func(context.Context, *storage.Tx, *protocol.StoredPost) (*attest.Inclusion, error)

	queue chan protocol.AuthorProof // what Run reads the state for
	// passing has states that nothing written rests on, by identity and block: those of profiles, which anyone has read anew every few minutes.
	// They are not stored, so that they displace none that an old post needs.
	passing *cache.Cache[attest.Authority]
}

// Limits of Prover.passing.
const (
	passingBytes = 8 << 20
	passingFor   = 10 * time.Minute
)

// proofQueue is how many states wait to be read; further ones are read when somebody asks.
const proofQueue = 64

// NewProver completes a prover.
func NewProver(p Prover) *Prover {
	p.queue, p.passing = make(chan protocol.AuthorProof, proofQueue), cache.OfBytes[attest.Authority](passingBytes)
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
			if _, err := p.state(ctx, at, true); err != nil && ctx.Err() == nil {
				p.Log.Debug("state of an author not read", "identity", *at.Subject, "err", err)
			}
		}
	}
}

// Post returns the proof document of a post that the caller may show. network is that of who asks: its reads of the chain are counted.
func (p *Prover) Post(ctx context.Context, network, id string) ([]byte, error) {
	var post *protocol.StoredPost
	var logged *attest.Inclusion
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if post, err = tx.Posts().ByID(ctx, id); err == nil {
			logged, err = p.Logged(ctx, tx, post)
		}
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
		Evidence: post.Evidence, Statement: post.Statement, Log: logged,
	}
	if d.Authority, err = p.authority(ctx, network, post.Author, true); err != nil {
		return nil, err
	}
	return attest.Seal(d, p.Base, seen, post.Author.Proof.Level, post.Author.Proof, p.Key)
}

// Bid returns the proof document of a live bid on the board of a profile, as everybody sees it.
func (p *Prover) Bid(ctx context.Context, network, handle string, live protocol.LiveBid) ([]byte, error) {
	var bid *storage.StoredBid
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if bid, err = tx.Bids().ByID(ctx, live.ID); err == nil {
			bid, err = tx.Leavings().Bid(ctx, bid)
		}
		return err
	})
	if err != nil {
		return nil, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "there is no bid with that id"))
	}
	object, err := json.Marshal(attest.Bid{
		Handle: handle, Amount: live.Amount, Message: *live.Message, URL: bid.URL, Category: bid.Category, Author: live.Bidder,
		CreatedAt: bid.BidAt, LiveAt: live.LiveAt, EndsAt: live.EndsAt, Test: live.Test,
	})
	if err != nil {
		return nil, err
	}
	d := attest.Document{
		Subject: attest.Subject{Kind: attest.KindBid, ID: p.Base + "/ap/bids/" + bid.ID, Object: object,
			URL: p.Base + "/api/public/agents/" + handle + "/attention/bids/" + bid.ID},
		Evidence: bid.Evidence,
	}
	if d.Authority, err = p.authority(ctx, network, live.Bidder, true); err != nil {
		return nil, err
	}
	return attest.Seal(d, p.Base, live.LiveAt, live.Bidder.Proof.Level, live.Bidder.Proof, p.Key)
}

// Profile returns the proof document of a profile of this node. Of one with a chain identity it shows that the identity grants the profile's
// key; where the chain cannot be read now, it shows what the node alone says.
func (p *Prover) Profile(ctx context.Context, network string, shown protocol.Profile) ([]byte, error) {
	shown.Reputation, shown.Alive, shown.LastSeenAt = nil, nil, nil
	if shown.Identity != nil {
		plain := *shown.Identity
		plain.AgentLinks = protocol.AgentLinks{}
		shown.Identity = &plain
	}
	seen, o := time.Now(), attest.Profile{}
	if shown.UpdatedAt != nil {
		seen = *shown.UpdatedAt
	}
	d := attest.Document{
		Subject:   attest.Subject{Kind: attest.KindProfile, ID: p.Base + "/ap/agents/" + shown.Handle, URL: p.Base + "/@" + shown.Handle},
		Authority: attest.Authority{Kind: attest.OfNobody},
	}
	author, err := p.enrolled(ctx, network, shown)
	if err == nil && author != nil {
		o.Author, seen = author, *author.Proof.CheckedAt
		d.Authority, err = p.authority(ctx, network, *author, false)
	}
	if err != nil {
		return nil, err
	}
	proof := protocol.AuthorProof{Level: protocol.ByNothing}
	if o.Author != nil {
		proof = o.Author.Proof
	}
	if o.Profile, err = json.Marshal(shown); err == nil {
		d.Subject.Object, err = json.Marshal(o)
	}
	if err != nil {
		return nil, err
	}
	return attest.Seal(d, p.Base, seen, proof.Level, proof, p.Key)
}

// enrolled is who a profile is by its chain identity, which grants its key now; nil when it has none, or none that can be read now.
func (p *Prover) enrolled(ctx context.Context, network string, shown protocol.Profile) (*protocol.Author, error) {
	if p.Chain == nil || shown.Identity == nil || shown.Identity.ERC8004 == nil {
		return nil, nil
	}
	var stored *storage.StoredProfile
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		stored, err = tx.Profiles().ByHandle(ctx, shown.Handle)
		return err
	})
	if err != nil || stored.ERC8004 == "" || stored.KeyHash == "" {
		return nil, storage.IfMissing(err, nil)
	}
	if !p.Chain.Dev {
		ctx = erc8004.WithSource(ctx, network)
	}
	grant, err := p.Chain.Grant(ctx, stored.ERC8004, stored.KeyHash)
	if spent := (*erc8004.BudgetError)(nil); errors.As(err, &spent) {
		return nil, chainError(err)
	}
	if err != nil {
		return nil, nil
	}
	owner, _ := grant.Controllers()
	hash := grant.BlockHash.Hex()
	author := &protocol.Author{
		Name: shown.Name, Handle: &shown.Handle, ERC8004: &stored.ERC8004, KeyID: &stored.KeyHash, Verified: true, Method: protocol.BySignature,
		Proof: protocol.AuthorProof{Level: protocol.ByChainKey, Block: new(int64(grant.Block)), BlockHash: &hash, Owner: &owner},
	}
	author.Complete(time.Now().Truncate(time.Minute))
	return author, nil
}

// Object returns the proof document of something that no author has signed: what the node says of it. At is since when it is as it is;
// zero for now.
func (p *Prover) Object(kind, id, address string, shown json.RawMessage, at time.Time) ([]byte, error) {
	if at.IsZero() {
		at = time.Now()
	}
	d := attest.Document{
		Subject:   attest.Subject{Kind: kind, ID: id, URL: address, Object: shown},
		Authority: attest.Authority{Kind: attest.OfNobody},
	}
	none := protocol.AuthorProof{Level: protocol.ByNothing}
	return attest.Seal(d, p.Base, at, none.Level, none, p.Key)
}

// authority is what shows that the author's key, account or session is the author's.
func (p *Prover) authority(ctx context.Context, network string, a protocol.Author, stored bool) (attest.Authority, error) {
	switch a.Proof.Level {
	case protocol.ByChainKey, protocol.ByOwner, protocol.ByWallet:
		if p.Chain != nil && !p.Chain.Dev {
			ctx = erc8004.WithSource(ctx, network)
		}
		at, err := p.state(ctx, a.Proof, stored)
		if err != nil || a.KeyID == nil {
			return at, err
		}
		_, byAccount := httpsig.ParseAccount(*a.KeyID)
		switch {
		case a.Proof.Level != protocol.ByChainKey && !byAccount:
			err = p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
				delegated, err := tx.DelegatedKeys().Find(ctx, at.Identity, *a.KeyID)
				if err == nil {
					at.Key = json.RawMessage(delegated.PublicJWK)
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
			own, err := tx.Keys().ByThumbprint(ctx, *a.KeyID)
			if err == nil {
				at.Key = own.PublicJWK
			}
			return storage.IfMissing(err, nil)
		})
		return at, err
	case protocol.BySignIn:
		return attest.Authority{Kind: attest.OfSession}, nil
	}
	return attest.Authority{Kind: attest.OfNobody}, nil
}

// state is the state of the chain at the block of an author's proof: as it was stored, or as the chain's endpoint still has it; then it
// is stored, unless nothing written rests on it. An error is a
// *protocol.Error, when the caller's or the chain's reads are used up.
func (p *Prover) state(ctx context.Context, at protocol.AuthorProof, stored bool) (attest.Authority, error) {
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
	if passing, ok := p.passing.Get(id, time.Now()); ok && !stored {
		return passing, nil
	}
	var kept storage.StateProof
	err := p.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		kept, err = tx.Keys().StateProof(ctx, id)
		return err
	})
	if err == nil {
		return a, json.Unmarshal(kept.Doc, &a)
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
	if !stored {
		p.passing.Put(id, a, len(doc), time.Now().Add(passingFor))
		return a, nil
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

// Listed is a key that a key directory lists, for a post of a host (integrity.Claim.Listed). A fetch of the directory is waited for as for a
// request of a network.
func (p *Prover) Listed(ctx context.Context, host string, ref httpsig.AgentRef, keyid string) (crypto.PublicKey, error) {
	k, _, err := p.Directories.Await(ctx, "node "+host, ref, keyid, time.Now())
	if err != nil {
		return nil, err
	}
	return k.Public(), nil
}
