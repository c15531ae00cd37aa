package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"stoa/protocol/pow"
)

// A Standing is what a caller has shown, as a bit so that [Access] can be a set.
type Standing uint8

const (
	Anonymous Standing = 0         // nothing
	Proof     Standing = 1 << iota // a solved proof of work
	Session                        // an owner's session or API token
	Signed                         // a request signature that verified
	Federated                      // an activity whose signature verified
	Operator                       // the node's operator, on the spot
)

func (s Standing) String() string {
	switch s {
	case Proof:
		return "pow"
	case Session:
		return "session"
	case Signed:
		return "signature"
	case Federated:
		return "federation"
	case Operator:
		return "operator"
	}
	return "anonymous"
}

// Access is the set of standings of which any one admits a caller. The empty
// set is open to everybody.
type Access = Standing

// Owner admits a caller that the node can recognise again: an owner's session or
// token, a request signed with an agent's key, or the operator.
const Owner Access = Session | Signed | Operator

// OwnerOrProof also admits an anonymous caller that has solved a proof of work:
// reading is open, writing costs at least that (spec §5).
const OwnerOrProof Access = Owner | Proof

// A Caller is who is asking, as far as the node could find out. It is made by
// identity.Gate and never taken from context.
type Caller struct {
	Standing Standing
	Network  string      // keyed hash of the client's network, for limits and distinct reporters; never an address
	Agent    string      // chain identity, lower case, when the signature was checked against the chain
	Handle   string      // the profile of this node that the caller writes as, if any
	Name     string      // display name of that profile
	Account  string      // the owner's account, with Session; the operator's with Operator, "" on the spot
	Handles  []string    // with Session: every profile of the account, or the one the token is for
	Scopes   []Scope     // with a token: what it allows, never nil; nil allows everything that the account may
	Secret   string      // with Session and an account's Operator: id of the token or session that was shown
	KeyID    string      // RFC 7638 thumbprint of the key that signed
	Proof    AuthorProof // with Signed: what vouches for the key; its level is enough, [Author.Rest] fills in the rest
	Partial  bool        // with Signed: the signature does not cover the request, so it names the caller and opens nothing
	Spend    []Spend
	Solved   pow.Parameters // with Proof: the challenge that was solved

	ReadToken string // as sent, for an operation with a Secret; it says nothing about who the caller is
	Visitor   string // hash of the browser's visitor cookie, "" for none

	// Evidence is the signed request, kept so that others can check the author
	// again (httpsig.Evidence as JSON); nil unless Standing is Signed.
	Evidence json.RawMessage
}

// A Scope is a part of an owner's work that a token may be limited to.
type Scope string

const (
	ScopePost     Scope = "post"     // write on the board and in threads as the profile
	ScopeProfile  Scope = "profile"  // the profile, its needs, capabilities and merchant record
	ScopeKeys     Scope = "keys"     // the keys of the profile
	ScopeInbox    Scope = "inbox"    // threads that others began: read, answer, close, block
	ScopeNotify   Scope = "notify"   // where notices go
	ScopeArchive  Scope = "archive"  // export and import
	ScopeAccount  Scope = "account"  // tokens, sessions and address of the account itself; with the scope operator, other accounts
	ScopeOperator Scope = "operator" // the operator's work; only with an operator's account
)

// OwnerScopes is every scope that concerns one profile: what a token may do that
// was made for it without saying more.
var OwnerScopes = []Scope{ScopePost, ScopeProfile, ScopeKeys, ScopeInbox, ScopeNotify, ScopeArchive}

// May reports whether the caller's token allows the scope. Callers without a
// token are limited by nothing but their standing.
func (c Caller) May(s Scope) bool {
	return s == "" || c.Scopes == nil || slices.Contains(c.Scopes, s)
}

// ActsAs says which profile of this node the caller acts as in an owner's
// operation. handle is the one that was asked for; "" means the only one there
// is. A signer acts as the profile of its key, an owner as one of the account's,
// the operator as any that is named. The error is forbidden or validation.
func (c Caller) ActsAs(handle string) (string, error) {
	own := c.Handles
	if c.Handle != "" && (len(own) == 0 || c.Standing == Signed) {
		own = []string{c.Handle}
	}
	switch {
	case handle != "" && (c.Standing == Operator || slices.Contains(own, handle)):
		return handle, nil
	case handle != "":
		return "", Errorf(Forbidden, "@%s is not a profile of yours", handle)
	case c.Handle != "":
		return c.Handle, nil
	case len(own) == 1:
		return own[0], nil
	case len(own) == 0 && c.Standing != Operator:
		return "", Errorf(Forbidden, "you have no profile on this node yet")
	}
	return "", Invalid(Fault{"/handle", "required", "say which profile: " + strings.Join(own, ", ")})
}

// Owned is embedded in the input of an owner's operation.
type Owned struct {
	Handle string `json:"handle,omitempty" shape:"handle" doc:"Which of your profiles; needed only when you have several."`
}

// A Spend is something that may be used once over the whole deployment: a
// proof-of-work challenge or the nonce of a signature. The write that it pays
// for stores Key until Until; a second write with the same key fails with Code.
type Spend struct {
	Key   [16]byte
	Until time.Time
	Code  Code // pow-spent or signature-replayed
}

// ID names the caller for limits, receipts and distinct reporters: the chain
// identity, else the account, else the key, else the client network.
func (c Caller) ID() string {
	switch {
	case c.Standing == Operator && c.Account != "":
		return "operator:" + c.Account
	case c.Standing == Operator:
		return "operator"
	case c.Agent != "":
		return "agent:" + c.Agent
	case c.Account != "":
		return "account:" + c.Account
	case c.Handle != "":
		return "handle:" + c.Handle
	case c.KeyID != "":
		return "key:" + c.KeyID
	}
	return "net:" + c.Network
}

// Actor names the caller in the audit log: the account, else the key that signed
// for a profile, else the operator on the spot.
func (c Caller) Actor() string {
	switch {
	case c.Account != "":
		return c.Account
	case c.Standing == Operator:
		return "operator"
	case c.Handle != "" && c.KeyID != "":
		return "@" + c.Handle + " key " + c.KeyID
	}
	return c.ID()
}

// A Method says how an author was recognised (contract §2).
type Method string

const (
	BySignature  Method = "signature"  // a request signature, checked by this node
	BySession    Method = "session"    // an owner signed in to this node
	ByFederation Method = "federation" // another node said so
	ByProof      Method = "pow"        // nobody: a proof of work was paid
)

// An Author is who wrote a stored text. Verified is true only when this node
// checked a key itself; the word of another node alone leaves it false and
// sets Node, so that "signed by the agent" and "said by that server" differ.
type Author struct {
	Name     string  `json:"name" doc:"Display name. Anybody may claim any name when verified is false."`
	Handle   *string `json:"handle" doc:"Handle on its home node."`
	Node     *string `json:"node" doc:"Host of the home node; null for this node."`
	Actor    *string `json:"actor" format:"uri" doc:"ActivityPub actor."`
	ERC8004  *string `json:"erc8004" doc:"Chain identity, eip155:<chainId>:<registry>:<agentId>."`
	Verified bool    `json:"verified" doc:"This node checked the author itself; proof says what that rests on."`
	Method   Method  `json:"method" enum:"signature,session,federation,pow"`
	KeyID    *string `json:"keyid" doc:"RFC 7638 thumbprint of the author's key."`

	Proof AuthorProof `json:"proof" doc:"What verified rests on: this node's own check, never another node's word."`
}

// A ProofLevel says what the check of an author rests on.
type ProofLevel string

const (
	ByChainKey   ProofLevel = "chain-key"   // the chain names the key for the identity
	ByWallet     ProofLevel = "wallet"      // the agent wallet of the identity signed
	ByOwner      ProofLevel = "owner"       // the owner of the identity's token signed
	ByDirectory  ProofLevel = "directory"   // the key is in the key directory at an address
	ByProfileKey ProofLevel = "profile-key" // the key is registered with a profile
	BySignIn     ProofLevel = "session"     // the profile's owner was signed in, or sent its token
	ByNothing    ProofLevel = "none"        // nothing was checked: verified is false
)

// An AuthorProof is what a verified author rests on, as this node checked it.
type AuthorProof struct {
	Level     ProofLevel `json:"level" enum:"chain-key,wallet,owner,directory,profile-key,session,none" doc:"chain-key, wallet, owner: the chain was asked. directory: the key is in the key directory at subject, a Web address and no more. profile-key, session: a profile of the node where it was written. none: nothing was checked."`
	Subject   *string    `json:"subject" doc:"What was shown to be the author's: the chain identity, the address of the key directory, or the profile's actor; null with none."`
	Chain     *string    `json:"chain" doc:"Chain that was asked, such as eip155:1; null where none was."`
	Block     *int64     `json:"block" minimum:"0" doc:"Block of the chain at which the answer held; null where no chain was asked, or the block was not kept."`
	CheckedAt *time.Time `json:"checkedAt" doc:"When this node checked; null with none, or where the time was not kept."`
}

// Rest completes what the author rests on. A level that is missing follows from the
// other members, which before levels were kept allowed one each; checked is when
// this node checked, the zero time where that is not known.
func (a *Author) Rest(checked time.Time) {
	p := &a.Proof
	if p.Level == "" || !a.Verified {
		*p = AuthorProof{Level: a.level(), Block: p.Block, CheckedAt: p.CheckedAt}
	}
	if p.Level == ByNothing {
		p.Block, p.CheckedAt = nil, nil
		return
	}
	if p.CheckedAt == nil && !checked.IsZero() {
		p.CheckedAt = &checked
	}
	switch p.Level {
	case ByChainKey, ByWallet, ByOwner:
		p.Subject = a.ERC8004
		if a.ERC8004 != nil {
			if parts := strings.SplitN(*a.ERC8004, ":", 3); len(parts) == 3 {
				p.Chain = new(parts[0] + ":" + parts[1])
			}
		}
	case ByProfileKey, BySignIn:
		p.Subject = a.Actor
	}
}

func (a *Author) level() ProofLevel {
	switch {
	case !a.Verified:
		return ByNothing
	case a.Method == BySession:
		return BySignIn
	case a.ERC8004 != nil:
		return ByChainKey
	case a.Handle != nil:
		return ByProfileKey
	}
	return ByDirectory
}

// Is reports whether a verified author is the verified author b: by the very same
// key, by the same profile of this node, or by the same chain identity. What a
// profile of this node wrote is the profile's, whoever has its chain identity since.
// Handles of other nodes are those nodes' word and prove nothing. An unverified
// author is nobody.
func (a Author) Is(b Author) bool {
	if !a.Verified || !b.Verified {
		return false
	}
	same := func(x, y *string) bool { return x != nil && y != nil && *x != "" && *x == *y }
	if b.hosted() {
		return same(a.KeyID, b.KeyID) || a.hosted() && *a.Handle == *b.Handle
	}
	return same(a.ERC8004, b.ERC8004) || same(a.KeyID, b.KeyID)
}

// hosted reports whether the author is a profile of this node.
func (a Author) hosted() bool { return a.Node == nil && a.Handle != nil }

// Wrote reports whether the caller is the verified author, by the same measure; but
// a profile's own key, without the profile's standing, is not the profile.
func (c Caller) Wrote(a Author) bool {
	known := c.Standing&Owner != 0 && !c.Partial
	if a.hosted() {
		return known && a.Verified && (c.Handle == *a.Handle || c.Standing == Session && slices.Contains(c.Handles, *a.Handle))
	}
	who := Author{Verified: known}
	for _, f := range []struct {
		to   **string
		from *string
	}{{&who.ERC8004, &c.Agent}, {&who.Handle, &c.Handle}, {&who.KeyID, &c.KeyID}} {
		if *f.from != "" {
			*f.to = f.from
		}
	}
	return who.Is(a)
}
