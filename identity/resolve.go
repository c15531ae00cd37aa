package identity

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"strings"

	"stoa/identity/httpsig"
	"stoa/protocol"
)

// principal is what the gate learns about a signer.
type principal struct {
	erc8004, owner, handle, name, language string
	state                                  protocol.ProfileState
	wallet                                 string           // with erc8004
	public                                 crypto.PublicKey // with erc8004
	claimed                                string           // name that its key directory gives itself
	proof                                  protocol.AuthorProof
	delegated                              bool // an account has delegated the identity to the key
	alone                                  bool // a key without identity, which proves only that the author is the same
}

// resolver finds the key of a signature: for a claimed chain identity only on the chain; otherwise
// among the keys of hosted profiles, and then in the key directory that Signature-Agent names.
type resolver struct {
	g       *Gate
	network string              // of the client, see Evidence
	op      *protocol.Operation // nil where nobody may be an account alone
	proof   bool                // a proof of work was sent, and has not been checked
}

func (r resolver) Resolve(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	g := r.g
	if account, ok := q.Params.Account(); ok {
		return r.account(ctx, q, account)
	}
	if q.Identity != "" {
		return r.chain(ctx, q)
	}
	hosted, ok, err := g.Directory.KeyByThumbprint(ctx, q.Params.KeyID)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	if ok {
		return httpsig.Resolved{Key: hosted.Key, Principal: principal{
			erc8004: hosted.ERC8004, owner: hosted.Owner, handle: hosted.Handle, name: hosted.Name, language: hosted.Language, state: hosted.State,
			proof: protocol.AuthorProof{Level: protocol.ByProfileKey},
		}}, nil
	}
	if g.Directories != nil && q.Agent.URL != "" {
		k, name, err := g.Directories.Await(ctx, r.network, q.Agent, q.Params.KeyID, q.Now)
		if err != nil {
			return httpsig.Resolved{}, err
		}
		who := principal{claimed: name, proof: protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &q.Agent.URL}}
		hosted, ok, err := g.Directory.DirectoryAgent(ctx, q.Agent.URL)
		if err != nil {
			return httpsig.Resolved{}, err
		}
		if ok {
			who.handle, who.name, who.language, who.state = hosted.Handle, hosted.Name, hosted.Language, hosted.State
		}
		return httpsig.Resolved{Key: k, Principal: who}, nil
	}
	if q.Published.URL != "" {
		return r.published(ctx, q)
	}
	if q.Inline != nil {
		return httpsig.Resolved{Key: q.Inline, Principal: principal{alone: true}}, r.payable("a key in Signature-Key by itself identifies nobody here")
	}
	return httpsig.Resolved{}, &httpsig.Error{Code: httpsig.CodeKeyUnknown, Detail: foreignKey(q.Params.KeyID)}
}

// published finds a key that a host publishes by the place that the request itself names (Signature-Key, scheme jwks_uri). It is fetched as key
// directories are, and identifies as little as a key in the request: the same key is the same pseudonym.
func (r resolver) published(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	if err := r.payable("a key in Signature-Key by itself identifies nobody here"); err != nil {
		return httpsig.Resolved{}, err
	}
	if r.g.Directories == nil {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	k, _, err := r.g.Directories.Await(ctx, r.network, q.Published, q.Kid, q.Now)
	return httpsig.Resolved{Key: k, Principal: principal{alone: true}}, err
}

// payable refuses a key that identifies nobody, unless the operation accepts a proof of work and one was sent.
func (r resolver) payable(nobody string) error {
	nobody += ": send Agent-Identity, covered by the signature, with an ERC-8004 identity that it controls"
	switch {
	case r.op == nil || r.op.Access&protocol.Proof == 0:
		return protocol.Errorf(protocol.KeyUnknown, "%s", nobody)
	case !r.proof:
		return protocol.Errorf(protocol.PowRequired, "%s; or solve the challenge too", nobody)
	}
	return nil
}

// account resolves a signature of an Ethereum account: as the owner or the agent wallet of the chain identity that it claims in
// Agent-Identity, or that it has signed in as (X-SIWA-Receipt). An account that claims none costs nothing to make, so that it identifies
// nobody; the gate asks for a proof of work too.
func (r resolver) account(ctx context.Context, q httpsig.KeyRequest, account httpsig.Account) (httpsig.Resolved, error) {
	claimed := q.Identity
	if claimed == "" && q.Receipt != "" {
		grant, ok := r.g.grant(q.Receipt)
		if !ok || grant.Account != account.Address {
			return httpsig.Resolved{}, protocol.Errorf(protocol.Unauthorized,
				"the receipt in X-SIWA-Receipt is not of this node, has expired, or is of another account; sign in again at %s/siwa/nonce", r.g.base())
		}
		claimed = grant.Identity
	}
	switch {
	case claimed == "":
		return r.alone(ctx, account)
	case r.g.Chain == nil:
		return httpsig.Resolved{}, protocol.Errorf(protocol.IdentityUnverified, "this node is not connected to a chain, so it cannot verify %s", claimed)
	}
	found, level, err := r.g.Chain.AccountKey(ctx, r.network, claimed, account)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	return httpsig.Resolved{Key: found.Key, Principal: principal{erc8004: found.Identity, owner: found.Owner, wallet: found.Wallet,
		proof: protocol.AuthorProof{Level: level, Block: new(int64(found.Block)), BlockHash: &found.BlockHash}}}, nil
}

// alone resolves a signature of an account that claims no identity, before anything is paid for it.
func (r resolver) alone(ctx context.Context, account httpsig.Account) (httpsig.Resolved, error) {
	const nobody = "an Ethereum account by itself identifies nobody here"
	if r.g.Chain == nil {
		return httpsig.Resolved{}, protocol.Errorf(protocol.KeyUnknown, nobody+", as the node is not connected to a chain")
	}
	if err := r.payable(nobody); err != nil {
		return httpsig.Resolved{}, err
	}
	k, err := r.g.Chain.Account(ctx, r.network, account)
	return httpsig.Resolved{Key: k, Principal: principal{alone: true}}, err
}

func (r resolver) chain(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	if r.g.Chain == nil {
		return httpsig.Resolved{}, protocol.Errorf(protocol.IdentityUnverified, "this node is not connected to a chain, so it cannot verify %s", q.Identity)
	}
	found, err := r.g.Chain.MessageKey(ctx, r.network, q.Identity, q.Params.KeyID)
	if err != nil {
		if protocol.CodeOf(err) == protocol.KeyUnknown {
			return r.delegated(ctx, q, err)
		}
		return httpsig.Resolved{}, err
	}
	who := principal{erc8004: found.Identity, owner: found.Owner, wallet: found.Wallet, public: found.Key.Public(),
		proof: protocol.AuthorProof{Level: protocol.ByChainKey, Block: new(int64(found.Block)), BlockHash: &found.BlockHash}}
	hosted, ok, err := r.g.Directory.HostedAgent(ctx, found, q.Params.KeyID)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	if ok {
		who.handle, who.name, who.language, who.state = hosted.Handle, hosted.Name, hosted.Language, hosted.State
	}
	return httpsig.Resolved{Key: found.Key, Principal: who}, nil
}

// delegated resolves a key that the chain does not name, by the account that delegated to it; unknown is the error without one.
func (r resolver) delegated(ctx context.Context, q httpsig.KeyRequest, unknown error) (httpsig.Resolved, error) {
	k, by, ok, err := r.g.Directory.DelegatedKey(ctx, strings.ToLower(q.Identity), q.Params.KeyID)
	if err != nil || !ok {
		return httpsig.Resolved{}, cmp.Or(err, unknown)
	}
	found, level, err := r.g.Chain.AccountKey(ctx, r.network, q.Identity, by)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	return httpsig.Resolved{Key: k, Principal: principal{erc8004: found.Identity, owner: found.Owner, wallet: found.Wallet, public: k.Public(), delegated: true,
		proof: protocol.AuthorProof{Level: level, Block: new(int64(found.Block)), BlockHash: &found.BlockHash}}}, nil
}

// signatureError converts an httpsig error to the public code. A *protocol.Error from the chain is
// returned unchanged.
func signatureError(err error) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	e, ok := errors.AsType[*httpsig.Error](err)
	if !ok {
		return err
	}
	code := protocol.SignatureInvalid
	switch e.Code {
	case httpsig.CodeHostUnknown:
		code = protocol.Misdirected
	case httpsig.CodeExpired, httpsig.CodeNotYetValid:
		code = protocol.SignatureExpired
	case httpsig.CodeReplayed:
		code = protocol.SignatureReplayed
	case httpsig.CodeKeyUnavailable:
		return err
	default:
		if e.Outcome() == httpsig.OutcomeUnverified {
			code = protocol.KeyUnknown
		}
	}
	detail := string(e.Code)
	switch {
	case e.Code == httpsig.CodeKeyUnknown && e.Detail == "":
		detail += ": no registered key has this keyid; for a key on a chain, send Agent-Identity, covered by the signature"
	case e.Code == httpsig.CodeNoAcceptableSignature:
		detail += ": no signature has the tag web-bot-auth, or is one of ERC-8128; /skill/signing.md says how to sign"
	case e.Detail != "":
		detail += ": " + e.Detail
	}
	return &protocol.Error{Code: code, Detail: detail, Signature: e.SignatureError(), Err: err}
}
