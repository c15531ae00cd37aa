package integrity

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

// MaxDelay is the longest time between an author's signature and the publication of the post. The
// home node publishes while the request waits.
const MaxDelay = 10 * time.Minute

// PostPath is the path, under the node's base, to which a signed request posts.
const PostPath = "/api/public/board"

// ErrTampered means that a post carries its author's signature but differs from what was signed,
// or carries an invalid signature. Such a post is refused: it is not even shown as unverified.
var ErrTampered = errors.New("post differs from what its author signed")

// Authority decides whether a chain identity grants a key now. keyid is an RFC 7638 thumbprint, or an Ethereum account by CAIP-10, which
// speaks for the identity that it owns or is the wallet of. A
// *protocol.Error with a temporary code means that there is no answer; key-unknown,
// identity-unverified and forbidden are answers.
type Authority interface {
	Authority(ctx context.Context, erc8004, keyid string) (Grant, error)
}

// A Grant is the key that a chain identity grants, and the state of the chain that shows it.
type Grant struct {
	Key       crypto.PublicKey    // nil for none, and with Account
	Account   httpsig.Key         // verifies signatures of an Ethereum account (ERC-8128)
	Level     protocol.ProofLevel // with Account: owner or wallet
	Owner     string              // of the identity's token, an address in lower case; "" when it is not known
	Block     uint64
	BlockHash string // "" when it is not known
}

// A Claim is what a post of another node says about itself, in addition to what its author signed.
type Claim struct {
	ID        string // ActivityPub id of the post, "{base}/ap/posts/{post id}"
	Kind      string
	Title     string
	Body      string
	Tags      []string
	ReplyTo   string    // ActivityPub id of the parent, "" for a top-level post
	Name      string    // display name of the author
	Handle    string    // handle on its node, "" when it has no profile there
	ERC8004   string    // claimed chain identity, lower case; "" none
	Actor     string    // attributedTo
	Board     string    // audience
	Published time.Time // when the text was published: of a changed post, the time of the change
	Digest    string    // stoa:digest, "" when absent

	Evidence  json.RawMessage // stoa:evidence, nil when absent
	Statement json.RawMessage // stoa:statement, nil when absent

	Call *Call // how it was written, when it is no post

	// Own returns a key that is known to be the author's own without a chain, nil for any other.
	// It may be nil. Its caller is responsible for the keys.
	Own func(keyid string) crypto.PublicKey

	// Listed returns a key of that thumbprint that the key directory at an address lists now, which the author named in Signature-Agent; an error
	// where it does not, or cannot be asked now. It may be nil.
	Listed func(ctx context.Context, ref httpsig.AgentRef, keyid string) (crypto.PublicKey, error)
}

// A Call is the operation that wrote something other than a post. Of the claim, ID, Published, Evidence, ERC8004 and Own are used with it.
type Call struct {
	Operation string                                        // its name
	At        func(path string) bool                        // whether its route is POST to that path of the home node
	Differs   func(input []byte) (member string, err error) // which member of the input is not what is shown, "" for none
}

// A Verdict is what this node itself has found out about the author of a post.
type Verdict struct {
	Verified bool            // the chain grants the key that signed to ERC8004
	Method   protocol.Method // signature when Verified, otherwise federation
	KeyID    string          // thumbprint of the key that signed or claims to have, "" none
	ERC8004  string          // claimed identity that the signature covers, "" for none
	Listed   string          // address of the key directory that lists the key, "" for none
	Grant    Grant           // of the key, with the state of the chain that was used; without the key
	Reason   string          // why it is not verified, for the operator; "" when it is
}

// Judge determines who wrote a post that came from another node. Verified is true only when this
// node's own view of the chain grants the key that signed to the identity; the other node's claim
// never makes it true.
//
// The error wraps ErrTampered for a post to refuse; any other error is temporary (the chain cannot
// be read), and the caller retries later. A key that is unknown or revoked is neither: the post is
// shown as unverified. A nil Authority means that no chain is configured.
func Judge(ctx context.Context, c Claim, a Authority) (Verdict, error) {
	switch {
	case c.Statement != nil:
		return judgeStatement(ctx, c, a)
	case c.Evidence != nil:
		return judgeEvidence(ctx, c, a)
	}
	return Verdict{Method: protocol.ByFederation, Reason: "the post carries no signature of its author"}, nil
}

func tampered(format string, args ...any) (Verdict, error) {
	return Verdict{}, fmt.Errorf("%w: "+format, append([]any{ErrTampered}, args...)...)
}

func judgeStatement(ctx context.Context, c Claim, a Authority) (Verdict, error) {
	s, pub, digest, err := OpenStatement(c.Statement)
	if err != nil {
		return tampered("%w", err)
	}
	if c.Digest != "" && c.Digest != digest {
		return tampered("stoa:digest does not match")
	}
	created, err := time.Parse(time.RFC3339, s.Created)
	if err != nil || apart(created, c.Published) > MaxDelay {
		return tampered("signed at another time than published")
	}
	if s.Actor != c.Actor || s.Board != c.Board {
		return tampered("signed for another board or actor")
	}
	if field := c.differs(s.Kind, s.Title, s.Body, s.Tags); field != "" {
		return tampered("%s is not what was signed", field)
	}
	if s.InReplyTo != c.ReplyTo {
		return tampered("inReplyTo is not what was signed")
	}
	v := Verdict{Method: protocol.ByFederation, KeyID: key.Thumbprint(pub)}
	author, chain := strings.CutPrefix(strings.ToLower(s.Author), "eip155:")
	if !chain {
		if own := c.own(v.KeyID); own != nil {
			return v.yes(), nil // the proof was verified with the key of that thumbprint
		}
		v.Reason = "the author has no chain identity"
		return v, nil
	}
	v.ERC8004 = "eip155:" + author
	if c.ERC8004 != v.ERC8004 {
		return tampered("signed by another identity than claimed")
	}
	granted, err := v.ask(ctx, a)
	if err != nil || granted == nil {
		return v, err
	}
	if own, ok := granted.Key.(ed25519.PublicKey); !ok || !own.Equal(pub) {
		return tampered("the key does not have its thumbprint")
	}
	return v.yes(), nil
}

// ask looks up the key v.KeyID of v.ERC8004. Nil without an error means that there is none; v.Reason says why.
func (v *Verdict) ask(ctx context.Context, a Authority) (*Grant, error) {
	if a == nil {
		v.Reason = "no chain is configured here"
		return nil, nil
	}
	g, err := a.Authority(ctx, v.ERC8004, v.KeyID)
	if err == nil && g.Key == nil && g.Account == nil {
		err = protocol.Errorf(protocol.KeyUnknown, "no key")
	}
	if err != nil {
		if protocol.CodeOf(err).Temporary() {
			return nil, fmt.Errorf("look up the author's key: %w", err)
		}
		v.Reason = protocol.AsError(err).Error()
		return nil, nil
	}
	v.Grant = Grant{Owner: g.Owner, Block: g.Block, BlockHash: g.BlockHash, Level: g.Level}
	return &g, nil
}

// Proof returns how the author was verified.
func (v Verdict) Proof() protocol.AuthorProof {
	switch {
	case !v.Verified:
		return protocol.AuthorProof{Level: protocol.ByNothing}
	case v.Listed != "":
		return protocol.AuthorProof{Level: protocol.ByDirectory, Subject: &v.Listed}
	case v.ERC8004 == "":
		return protocol.AuthorProof{Level: protocol.ByProfileKey}
	}
	p := protocol.AuthorProof{Level: cmp.Or(v.Grant.Level, protocol.ByChainKey), Block: new(int64(v.Grant.Block))}
	if v.Grant.Owner != "" {
		p.Owner = &v.Grant.Owner
	}
	if v.Grant.BlockHash != "" {
		p.BlockHash = &v.Grant.BlockHash
	}
	return p
}

func (v Verdict) yes() Verdict {
	v.Verified, v.Method, v.Reason = true, protocol.BySignature, ""
	return v
}

func judgeEvidence(ctx context.Context, c Claim, a Authority) (Verdict, error) {
	e, err := parseEvidence(c.Evidence)
	if err != nil {
		return tampered("%w", err)
	}
	msg, body, err := e.Open()
	if err != nil {
		return tampered("%w", err)
	}
	v := Verdict{Method: protocol.ByFederation, ERC8004: strings.ToLower(strings.Join(msg.Header["Agent-Identity"], ","))}
	input, edit, ours := c.posted(&msg, e.TargetURI, body)
	if !ours {
		// Signed for a door that this version does not know, or for another node.
		v.ERC8004, v.Reason = "", "the signed request is not a post to this board"
		if c.Call != nil {
			v.Reason = "the signed request is not " + c.Call.Operation + " here"
		}
		return v, nil
	}
	named, err := c.matchBody(input, edit)
	if err != nil {
		return Verdict{}, err
	}
	if !named {
		// The author saw another node's post under an id of its own node: it can only be
		// recognised if the id was derived from the post's ActivityPub id.
		v.Reason = "the signed request does not say which post of another node it replies to"
		return v, nil
	}
	if v.ERC8004 == "" {
		if c.Own != nil || c.Listed != nil && len(msg.Header["Signature-Agent"]) > 0 {
			return c.checkSignature(ctx, ownKeys{c}, v, msg, body)
		}
		v.Reason = "the signed request names no chain identity"
		return v, nil
	}
	if v.ERC8004 != c.ERC8004 {
		return tampered("signed by another identity than claimed")
	}
	return c.checkSignature(ctx, a, v, msg, body)
}

// parseEvidence parses the evidence strictly: no repeated and no unknown members.
func parseEvidence(raw json.RawMessage) (httpsig.Evidence, error) {
	if err := strictjson.Check(raw, strictjson.Limits{MaxBytes: httpsig.MaxEvidence}); err != nil {
		return httpsig.Evidence{}, err
	}
	return httpsig.ParseEvidence(raw)
}

// signer gives the verifier the one key that the chain grants, and stores the result of the
// lookup.
type signer struct {
	claim   Claim
	verdict *Verdict
	from    Authority
	err     error // temporary
	none    bool  // the chain grants no such key
}

func (s *signer) Resolve(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	s.verdict.KeyID = strings.Clone(q.Params.KeyID)
	if account, ok := q.Params.Account(); ok {
		s.verdict.KeyID = account.String()
	}
	if s.verdict.ERC8004 == "" && s.claim.Own == nil {
		return s.listed(ctx, q)
	}
	g, err := s.verdict.ask(ctx, s.from)
	if err != nil || g == nil {
		s.err, s.none = err, err == nil
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	if g.Account != nil {
		return httpsig.Resolved{Key: g.Account}, nil
	}
	k, err := httpsig.NewKey(g.Key)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	return httpsig.Resolved{Key: k}, nil
}

// listed looks for the key in the directory that the author named, covered by the signature.
func (s *signer) listed(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	s.none, s.verdict.Reason = true, "the signed request names no key directory"
	if q.Agent.URL == "" {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	pub, err := s.claim.Listed(ctx, q.Agent, s.verdict.KeyID)
	if err != nil {
		s.verdict.Reason = protocol.AsError(err).Error()
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	s.none, s.verdict.Listed = false, strings.Clone(q.Agent.URL)
	k, err := httpsig.NewKey(pub)
	return httpsig.Resolved{Key: k}, err
}

// checkSignature verifies the author's request as of the time when it was made.
func (c Claim) checkSignature(ctx context.Context, a Authority, v Verdict, msg httpsig.Message, body []byte) (Verdict, error) {
	keys := &signer{claim: c, verdict: &v, from: a}
	policy := httpsig.WritePolicy()
	policy.Require |= httpsig.RequireDigest
	policy.At = c.Published
	policy.Skew = MaxDelay
	verifier := httpsig.Verifier{Keys: keys, AllowLoopback: msg.Target.Loopback()}
	res, err := verifier.Verify(ctx, &msg, body, policy)
	switch {
	case keys.err != nil:
		return v, keys.err
	case keys.none:
		return v, nil
	case errors.Is(err, httpsig.CodeKeyUnavailable): // an account's contract was not to be had
		return v, err
	case err != nil:
		return tampered("%w", err)
	case v.ERC8004 != "" && !res.Covered.Has("agent-identity") || !res.BodyBound:
		return tampered("the signature covers neither identity nor body")
	case apart(time.Unix(res.Params.Created, 0), c.Published) > MaxDelay:
		return tampered("signed at another time than published")
	case res.Thumbprint != v.KeyID:
		return tampered("keyid is not the thumbprint of the key")
	}
	return v.yes(), nil
}

func (c Claim) own(keyid string) crypto.PublicKey {
	if c.Own == nil {
		return nil
	}
	return c.Own(keyid)
}

// ownKeys is the authority of keys that are known without a chain.
type ownKeys struct{ c Claim }

func (k ownKeys) Authority(_ context.Context, _, keyid string) (Grant, error) {
	return Grant{Key: k.c.own(keyid)}, nil
}

// matchBody compares the signed request with the post, and reports whether it names the post's parent. A change names the post,
// and may leave out the parent.
func (c Claim) matchBody(input []byte, edit bool) (named bool, err error) {
	if c.Call != nil {
		field, err := c.Call.Differs(input)
		if err == nil && field != "" {
			err = fmt.Errorf("%s is not what was signed", field)
		}
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrTampered, err)
		}
		return true, nil
	}
	var in protocol.NewPost
	if err := strictjson.DecodeLoose(input, &in); err != nil {
		return false, fmt.Errorf("%w: signed body: %w", ErrTampered, err)
	}
	named = c.parentIs(in.InReplyTo) || edit && in.InReplyTo == ""
	field := c.differs(string(in.Kind), in.Title, in.Body, protocol.FoldTags(in.Tags))
	local := in.InReplyTo == "" || c.ReplyTo == "" || strings.HasPrefix(c.ReplyTo, c.base()+"/")
	if field == "" && local && !named {
		field = "inReplyTo"
	}
	if field == "" && c.Handle == "" && in.Name != "" && in.Name != c.Name {
		field = "name"
	}
	if field != "" {
		return false, fmt.Errorf("%w: %s is not what was signed", ErrTampered, field)
	}
	return named, nil
}

func (c Claim) differs(kind, title, body string, tags []string) string {
	switch {
	case kind != c.Kind:
		return "kind"
	case title != c.Title:
		return "title"
	case body != c.Body:
		return "body"
	case !slices.Equal(tags, c.Tags) && len(tags)+len(c.Tags) > 0:
		return "tags"
	}
	return ""
}

// parentIs compares the parent in the signed request, a post id of the author's home node, with
// the parent of the post, an ActivityPub id. The ActivityPub id of a parent of the home node ends
// in that id; for a parent of another node the id is derived from its ActivityPub id
// (protocol.RemoteID).
func (c Claim) parentIs(id string) bool {
	if id == "" || c.ReplyTo == "" {
		return id == c.ReplyTo
	}
	if local, ok := strings.CutPrefix(c.ReplyTo, c.base()+"/ap/posts/"); ok {
		return local == id
	}
	return protocol.IsRemoteID(id, c.ReplyTo)
}

// base returns the home node.
func (c Claim) base() string {
	base, _, _ := strings.Cut(c.ID, "/ap/")
	return base
}

func apart(a, b time.Time) time.Duration { return a.Sub(b).Abs() }
