package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/proof"
	"stoa/identity/session"
	"stoa/protocol"
)

// Evidence is everything that a door passes on to identify the caller. The zero value is an
// anonymous caller.
type Evidence struct {
	Request  *http.Request // as received, for its signature; nil for doors without HTTP
	Body     []byte        // the bytes as received
	Proof    []byte        // a solved proof of work: JSON or base64
	Session  string        // secret of a browser's session, when the door has checked that the request is from a page of this node
	ActAs    string        // handle of the profile to write as, for an owner with several
	Network  string        // keyed hash of the client's network, see Networks
	Visitor  string        // the browser's visitor cookie, when a page of this node sent it
	Operator bool          // the node's operator, on the command line; set by no network door
}

// A Hosted is a profile of this node, as far as the gate needs it.
type Hosted struct {
	Handle  string
	Name    string
	ERC8004 string      // chain identity in lower case, "" when there is none
	Owner   string      // of its token, by the enrolment; "" when that does not say
	Key     httpsig.Key // with KeyByThumbprint: the key

	Language string // the first of its languages, "" when it names none

	State protocol.ProfileState // "" shown
}

// A Credential is what an API token or a browser's session gives access to.
type Credential struct {
	ID       string // of the token or session
	Account  string
	Operator bool             // the account is an operator's
	Scopes   []protocol.Scope // of a token, never nil; nil for a session
	Profiles []Hosted         // that it may act as, sorted by handle
	Resource string           // address at which a token is good, "" for everywhere (RFC 8707)
}

// Directory looks up the profiles of this node. ok is false when there is no such thing; an error
// means that the lookup failed.
type Directory interface {
	// KeyByThumbprint finds a registered key of a hosted profile that is not retired.
	KeyByThumbprint(ctx context.Context, thumbprint string) (h Hosted, ok bool, err error)
	// DirectoryAgent finds the profile for which the keys of the key directory at an address speak.
	DirectoryAgent(ctx context.Context, address string) (h Hosted, ok bool, err error)
	// HostedAgent finds the profile that is enrolled to a chain identity, if the key with that
	// thumbprint is its key and owner and wallet are those of the enrolment.
	HostedAgent(ctx context.Context, k ChainKey, thumbprint string) (h Hosted, ok bool, err error)
	// DelegatedKey finds a key to which an account has delegated a chain identity. Whether the account still controls it is for the caller to check.
	DelegatedKey(ctx context.Context, erc8004, thumbprint string) (key httpsig.Key, by httpsig.Account, ok bool, err error)
	// KeyUsed notes that a key of a hosted profile, or a delegated one of a chain identity, has signed a request.
	KeyUsed(ctx context.Context, erc8004, thumbprint string)
	// TokenBySecret finds an unrevoked API token by its secret text.
	TokenBySecret(ctx context.Context, secret string) (c Credential, ok bool, err error)
	// SessionBySecret finds an active session by its secret text.
	SessionBySecret(ctx context.Context, secret string) (c Credential, ok bool, err error)
}

// Chain resolves the message key of a chain identity. Its errors are *protocol.Error: key-unknown,
// identity-unverified, chain-unavailable, and rate-limited when the network ([Evidence]) asked
// about too many new identities.
type Chain interface {
	MessageKey(ctx context.Context, network, erc8004, thumbprint string) (ChainKey, error)
	// AccountKey is MessageKey for an Ethereum account, which signs by ERC-8128; the level is owner or wallet.
	AccountKey(ctx context.Context, network, erc8004 string, account httpsig.Account) (ChainKey, protocol.ProofLevel, error)
	// Account is the key of an Ethereum account that claims no identity.
	Account(ctx context.Context, network string, account httpsig.Account) (httpsig.Key, error)
}

// A ChainKey is a key that the chain grants to an identity.
type ChainKey struct {
	Identity      string // canonical, lower case
	Owner, Wallet string // in lower case; Wallet "" for none
	Key           httpsig.Key
	Block         uint64
	BlockHash     string
}

// Directories resolves keys of foreign Web Bot Auth key directories. It fetches in the background;
// few requests of a client network wait for that, and only briefly. The name is what the directory
// calls itself, "" for none.
type Directories interface {
	Await(ctx context.Context, network string, ref httpsig.AgentRef, thumbprint string, now time.Time) (k httpsig.Key, name string, err error)
}

// A Gate admits callers. Target is the node's configured address. Chain and Directories may be
// nil.
type Gate struct {
	Target      httpsig.Target
	Directory   Directory
	Chain       Chain
	Directories Directories
	Proofs      *proof.Issuer
	SignIn      *SignIn // nil for a gate that nobody signs in to
	Now         func() time.Time
	// AllowLoopback allows Signature-Agent addresses of this machine: development only.
	AllowLoopback bool
}

// Admit determines the caller and whether it may call the operation. Errors are *protocol.Error;
// those of a proof of work carry a fresh challenge.
func (g *Gate) Admit(ctx context.Context, ev Evidence, op *protocol.Operation) (protocol.Caller, error) {
	ctx = g.paying(ctx, ev, op)
	c := protocol.Caller{Network: ev.Network}
	var who Credential
	var signedIn bool
	var err error
	secret := bearer(ev.Request)
	readToken := strings.HasPrefix(secret, protocol.ReadTokenPrefix)
	if ambient(ev, op) {
		if who, signedIn, err = g.Directory.SessionBySecret(ctx, ev.Session); err != nil {
			return protocol.Caller{}, err
		}
	}
	switch {
	case ev.Operator:
		c.Standing = protocol.Operator
	case SignedRequest(ev.Request):
		if c, err = g.signature(ctx, ev, op); openRead(op) && notForUs(err) {
			c, err = protocol.Caller{Network: ev.Network}, nil
		}
	case readToken && op.Secret == "":
		err = protocol.Errorf(protocol.Unauthorized, "this is the read token of a thread; it gives access to that thread only")
	case strings.HasPrefix(secret, session.GrantPrefix):
		c, err = g.granted(ctx, ev, secret)
	case secret != "" && !readToken:
		c, err = g.token(ctx, ev, op)
	case hasSignInWithX(ev.Request) && !openRead(op):
		c, err = g.withX(ctx, ev, op)
	case signedIn:
		c, err = owner(ev, op, who)
	case len(ev.Proof) > 0 && op.Access&protocol.Proof != 0:
		c, err = g.proof(ctx, ev, op)
	}
	if err != nil {
		return protocol.Caller{}, g.withChallenge(err, ev, op)
	}
	if op.Access != protocol.Anonymous && op.Access&c.Standing == 0 {
		return protocol.Caller{}, g.missing(ev, op)
	}
	if readToken {
		c.ReadToken = secret
	}
	if op.Visitor && ev.Visitor != "" {
		hash := protocol.SecretHash(ev.Visitor)
		c.Visitor = string(hash[:])
	}
	if op.Scope != "" && !c.May(op.Scope) {
		err := protocol.Errorf(protocol.Forbidden, "this token does not allow %s; make one with the scope %s", op.Name, op.Scope)
		err.Scope = op.Scope
		return protocol.Caller{}, err
	}
	return c, nil
}

// openRead reports whether an operation is a read that needs nothing of its caller.
func openRead(op *protocol.Operation) bool {
	return op.ReadOnly && op.Access == protocol.Anonymous && op.Secret == ""
}

// notForUs reports whether a signature failed because it has no tag, or another one than this
// node's, or its key is unknown here: clients of other schemes sign every request. On an open read it
// counts as none (contract §2). One that is broken or forged does not.
func notForUs(err error) bool {
	return errors.Is(err, httpsig.CodeNoAcceptableSignature) || err != nil && protocol.CodeOf(err) == protocol.KeyUnknown
}

// SignedRequest reports whether the request carries any part of a signature, so that one that was partly
// stripped is refused and not treated as anonymous.
func SignedRequest(r *http.Request) bool {
	return r != nil && (r.Header["Signature-Input"] != nil || r.Header["Signature"] != nil)
}

func bearer(r *http.Request) string {
	if r == nil {
		return ""
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// ambient reports whether to use the browser's session: it is there, no other evidence was sent,
// and the answer may depend on it. The answer of an open read is the same for everyone and is
// cached.
func ambient(ev Evidence, op *protocol.Operation) bool {
	return ev.Session != "" && !ev.Operator && !SignedRequest(ev.Request) && bearer(ev.Request) == "" && !hasSignInWithX(ev.Request) &&
		(op.Access != protocol.Anonymous || op.NoStore || !op.ReadOnly)
}

// paying lets the read of a new chain identity be paid for by a proof of work that came with the request.
func (g *Gate) paying(ctx context.Context, ev Evidence, op *protocol.Operation) context.Context {
	if len(ev.Proof) == 0 || g.Proofs == nil {
		return ctx
	}
	return erc8004.WithPayment(ctx, func(ctx context.Context) error { return g.Proofs.Use(ctx, ev.Proof, op.Purpose, ev.Network) })
}

func (g *Gate) token(ctx context.Context, ev Evidence, op *protocol.Operation) (protocol.Caller, error) {
	t, ok, err := g.Directory.TokenBySecret(ctx, bearer(ev.Request))
	if err != nil {
		return protocol.Caller{}, err
	}
	if !ok {
		return protocol.Caller{}, g.unread(protocol.Errorf(protocol.Unauthorized, "the bearer token is not from this node, has expired or was revoked"), ev.Request)
	}
	if t.Resource != "" && t.Resource != g.base() && t.Resource != g.base()+ev.Request.URL.Path {
		return protocol.Caller{}, protocol.Errorf(protocol.Unauthorized, "this token is good at %s only", t.Resource)
	}
	return owner(ev, op, t)
}

// owner returns the caller for a token or session. It writes as one of the account's profiles: the
// one that is named, otherwise the only one. Operator standing is given only for operators'
// operations, and to a token only with that scope; elsewhere an operator is an ordinary owner, so
// that nothing is written or shown differently by accident.
func owner(ev Evidence, op *protocol.Operation, who Credential) (protocol.Caller, error) {
	c := protocol.Caller{Standing: protocol.Session, Network: ev.Network, Account: who.Account, Secret: who.ID, Scopes: who.Scopes}
	if op.For == protocol.Operators {
		if who.Operator && c.May(protocol.ScopeOperator) {
			c.Standing = protocol.Operator
			return c, nil
		}
		return c, protocol.Errorf(protocol.Forbidden, "only an operator may do this: it needs an operator's account, and a token with the scope %s",
			protocol.ScopeOperator)
	}
	actAs := protocol.CleanHandle(ev.ActAs)
	for _, p := range who.Profiles {
		c.Handles = append(c.Handles, p.Handle)
		c.Hide(p.Handle, p.State)
		if p.Handle == actAs || actAs == "" && len(who.Profiles) == 1 {
			c.Handle, c.Name, c.Agent, c.Owner, c.Language = p.Handle, p.Name, p.ERC8004, p.Owner, p.Language
		}
	}
	switch {
	case c.Handle != "" || actAs == "" && (op.For != protocol.Everybody || op.ReadOnly || op.Unprofiled):
		return c, nil
	case actAs != "":
		return c, protocol.Errorf(protocol.Forbidden, "the profile in Act-As is not one of your profiles")
	case len(c.Handles) == 0:
		return c, protocol.Errorf(protocol.Forbidden, "you have no profile on this node to write as")
	}
	return c, protocol.Errorf(protocol.Forbidden, "name the profile that writes in the header Act-As: %s", strings.Join(c.Handles, ", "))
}

func (g *Gate) proof(ctx context.Context, ev Evidence, op *protocol.Operation) (protocol.Caller, error) {
	spend, solved, err := g.Proofs.Check(ctx, ev.Proof, op.Purpose, ev.Network)
	if err != nil {
		return protocol.Caller{}, err
	}
	return protocol.Caller{Standing: protocol.Proof, Network: ev.Network, Spend: []protocol.Spend{spend}, Solved: solved,
		Above: g.Proofs.Above(solved)}, nil
}

func (g *Gate) signature(ctx context.Context, ev Evidence, op *protocol.Operation) (protocol.Caller, error) {
	m, err := httpsig.FromRequest(ev.Request, g.Target)
	if err != nil {
		return protocol.Caller{}, signatureError(err)
	}
	whole := httpsig.WritePolicy()
	policy := whole
	// A request that needs the caller's standing must be signed as completely as a write. Any
	// other read may be signed with less, which identifies the caller and authorises nothing.
	if openRead(op) {
		policy = httpsig.ReadPolicy()
	}
	res, err := g.verifier(resolver{g, ev.Network, op, len(ev.Proof) > 0}).Verify(ctx, &m, ev.Body, policy)
	if err != nil {
		return protocol.Caller{}, signatureError(err)
	}
	who := res.Principal.(principal)
	if who.alone {
		return g.alone(ctx, ev, op, res)
	}
	if who.handle != "" || who.delegated {
		g.Directory.KeyUsed(ctx, who.erc8004, res.Thumbprint)
	}
	c := protocol.Caller{
		Standing: protocol.Signed, Network: ev.Network, KeyID: res.Thumbprint,
		Agent: who.erc8004, Owner: who.owner, Wallet: who.wallet, Key: who.public,
		Handle: who.handle, Name: who.name, ClaimedName: who.claimed, Language: who.language, Proof: who.proof,
		Partial: policy != whole && !res.Meets(whole, &m, ev.Body),
	}
	c.Hide(who.handle, who.state)
	if !op.ReadOnly {
		c.Spend = []protocol.Spend{{Key: res.NonceKey, Until: res.NonceUntil, Code: protocol.SignatureReplayed}}
		// Only the A2A door accepts longer bodies. They are no evidence for others, nor is a request that brings its own key.
		if len(ev.Body) <= httpsig.MaxEvidenceBody && !res.Inline {
			if c.Evidence, err = capture(&m, ev.Body, res); err != nil {
				return protocol.Caller{}, signatureError(err)
			}
		}
	}
	return c, nil
}

// alone admits an Ethereum account, or a key that the request itself gives, that claims no identity. Such a key costs nothing to make, so the
// caller needs a proof of work and is limited by its network, as without a signature. It is named, so that readers see which texts have the
// same author.
func (g *Gate) alone(ctx context.Context, ev Evidence, op *protocol.Operation, res *httpsig.Result) (protocol.Caller, error) {
	c, err := g.proof(ctx, ev, op)
	if err != nil {
		return c, err
	}
	c.KeyID, c.Proof = res.Thumbprint, protocol.AuthorProof{Level: protocol.BySameKey}
	c.Spend = append(c.Spend, protocol.Spend{Key: res.NonceKey, Until: res.NonceUntil, Code: protocol.SignatureReplayed})
	return c, nil
}

// capture returns the signed request in the form that others can verify.
func capture(m *httpsig.Message, body []byte, res *httpsig.Result) (json.RawMessage, error) {
	e, err := httpsig.Capture(m, body, res)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

func (g *Gate) verifier(keys resolver) *httpsig.Verifier {
	return &httpsig.Verifier{Keys: keys, Now: g.Now, AllowLoopback: g.AllowLoopback}
}

func (g *Gate) missing(ev Evidence, op *protocol.Operation) error {
	return g.withChallenge(g.unread(wanting(op), ev.Request), ev, op)
}

// wanting says what an operation needs of its caller.
func wanting(op *protocol.Operation) *protocol.Error {
	switch {
	case op.For == protocol.Operators:
		return protocol.Errorf(protocol.Unauthorized, "send an API token of an operator's account, with the scope %s, as Authorization: Bearer",
			protocol.ScopeOperator)
	case op.Access&(protocol.Signed|protocol.Session) == protocol.Session:
		return protocol.Errorf(protocol.Unauthorized, "send an API token of the account as Authorization: Bearer, or sign in at /sign-in")
	case op.Access&protocol.Proof == 0:
		return protocol.Errorf(protocol.Unauthorized, "sign the request with a registered key, or send an API token as Authorization: Bearer")
	}
	return protocol.Errorf(protocol.PowRequired, "solve the challenge and send it as the member pow (or the Proof-Of-Work header), or sign the request")
}

// withChallenge adds a fresh challenge to an error that a new proof would fix, which saves the
// client a round trip (contract §3).
func (g *Gate) withChallenge(err error, ev Evidence, op *protocol.Operation) error {
	e, ok := errors.AsType[*protocol.Error](err)
	if spent, short := errors.AsType[*erc8004.BudgetError](err); ok && short && (spent.Payable || spent.Payment != nil) {
		e.Challenge = g.Proofs.Issue(cmp.Or(op.Purpose, proof.AnyPurpose), ev.Network)
	}
	if !ok || op.Access&protocol.Proof == 0 {
		return err
	}
	switch e.Code {
	case protocol.PowRequired, protocol.PowInvalid, protocol.PowExpired, protocol.PowSpent:
		e.Challenge = g.Proofs.IssueAbove(op.Purpose, ev.Network, e.Steps)
	}
	return e
}

// Refresh completes an error from inside the transaction, where a proof or a nonce turned out to
// be spent: with a fresh challenge, or with the Signature-Error of a replay.
func (g *Gate) Refresh(err error, ev Evidence, op *protocol.Operation) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Code == protocol.SignatureReplayed && e.Signature == "" {
		e.Signature = (&httpsig.Error{Code: httpsig.CodeReplayed}).SignatureError()
	}
	return g.withChallenge(err, ev, op)
}

// Harder returns the error for a caller whose proof does not pay for its text, with a challenge
// that will.
func (g *Gate) Harder(c protocol.Caller, op *protocol.Operation, text *proof.Text) error {
	e := protocol.Errorf(protocol.PowRequired,
		"similar texts were sent recently, so this one costs more; solve the challenge in this answer and send the same request again")
	e.Challenge = g.Proofs.Harder(c.Solved, op.Purpose, c.Network, text)
	return e
}
