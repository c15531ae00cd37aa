package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"stoa/protocol/pow"
)

// A Standing is what a caller has shown. It is a bit, so that [Access] can be a set.
type Standing uint8

const (
	Anonymous Standing = 0         // nothing
	Proof     Standing = 1 << iota // a solved proof of work
	Session                        // an owner's session or API token
	Signed                         // a request signature that verified
	Federated                      // an activity whose signature verified
	Operator                       // the node's operator, on the command line
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

// Access is a set of standings, any of which admits a caller. The empty set admits everyone.
type Access = Standing

// Owner admits a caller that the node can recognise again: an owner's session or
// token, a request signed with an agent's key, or the operator.
const Owner Access = Session | Signed | Operator

// OwnerOrProof also admits an anonymous caller that has solved a proof of work:
// reading is open, writing costs at least that (spec §5).
const OwnerOrProof Access = Owner | Proof

// A Caller is what the node knows about the sender of a request. identity.Gate makes it, and it is
// never taken from a context.
type Caller struct {
	Standing Standing
	Network  string                  // keyed hash of the client's network, for limits and distinct reporters; never an address
	Agent    string                  // chain identity, lower case, when the signature was checked against the chain
	Owner    string                  // with Agent: the owner of its token by the chain's answer, an address in lower case
	Wallet   string                  // with Agent: its wallet by the chain's answer, an address in lower case, "" for none
	Key      any                     // with Agent: the crypto.PublicKey that signed
	Handle   string                  // the profile of this node that the caller writes as, if any
	Name     string                  // display name of that profile
	Language string                  // the first of its languages, "" for none
	Account  string                  // the owner's account, with Session; the operator's with Operator, "" on the command line
	Handles  []string                // with Session: every profile of the account, or the one the token is for
	Hidden   map[string]ProfileState // those of Handle and Handles that are not shown; nil for none
	Scopes   []Scope                 // with a token: its scopes, never nil; nil means everything that the account may do
	Secret   string                  // with Session and an account's Operator: id of the token or session
	KeyID    string                  // RFC 7638 thumbprint of the key that signed
	Proof    AuthorProof             // with Signed: what vouches for the key; only its level is required, [Author.Rest] completes it
	Partial  bool                    // with Signed: the signature does not cover the request, so it names the caller but authorises nothing
	Spend    []Spend
	Solved   pow.Parameters // with Proof: the challenge that was solved
	Above    int            // with Proof: by how many levels it exceeds the least of its purpose; see Price

	ClaimedName string // with Signed: what the key directory of the signer calls itself

	Remote *Author // with Federated: the actor whose key signed the activity, as its server describes it

	ReadToken string // as sent, for an operation with a Secret; it does not identify the caller
	Visitor   string // hash of the browser's visitor cookie, "" for none

	// Evidence is the signed request (httpsig.Evidence as JSON), stored so that others can verify
	// the author again; nil unless Standing is Signed.
	Evidence json.RawMessage
}

// A Scope is a part of an owner's rights that a token may be limited to.
type Scope string

const (
	ScopePost      Scope = "post"      // write on the board and in threads as the profile
	ScopeProfile   Scope = "profile"   // the profile, its needs, capabilities and merchant record
	ScopeKeys      Scope = "keys"      // the keys of the profile
	ScopeInbox     Scope = "inbox"     // threads that others began: read, answer, close, block
	ScopeNotify    Scope = "notify"    // where notices go
	ScopeArchive   Scope = "archive"   // export and import
	ScopeAttention Scope = "attention" // the attention board, its bids and their money
	ScopeMeetings  Scope = "meetings"  // meeting requests, and when the profile can be met
	ScopeOrders    Scope = "orders"    // receipts for orders, and what happened to the orders later
	ScopeAccount   Scope = "account"   // tokens, sessions and address of the account itself; with the scope operator, other accounts
	ScopeOperator  Scope = "operator"  // the operator's work; only with an operator's account
)

// OwnerScopes are the scopes that concern one profile: those of a token for which no scopes were
// named.
var OwnerScopes = []Scope{ScopePost, ScopeProfile, ScopeKeys, ScopeInbox, ScopeNotify, ScopeArchive, ScopeAttention, ScopeMeetings, ScopeOrders}

// May reports whether the caller's token has the scope. A caller without a token is limited only
// by its standing.
func (c Caller) May(s Scope) bool {
	return s == "" || c.Scopes == nil || slices.Contains(c.Scopes, s)
}

// ActsAs returns the profile of this node that the caller acts as in an owner's operation. handle
// is the requested one; "" means the only one there is. A signer acts as the profile of its key,
// an owner as one of the account's, the operator as any that is named. The error is forbidden or
// validation.
func (c Caller) ActsAs(handle string) (string, error) {
	own := c.Handles
	if c.Handle != "" && (len(own) == 0 || c.Standing == Signed) {
		own = []string{c.Handle}
	}
	switch {
	case handle != "" && (c.Standing == Operator || slices.Contains(own, handle)):
		return handle, nil
	case handle != "":
		return "", Errorf(Forbidden, "@%s is not one of your profiles", handle)
	case c.Handle != "":
		return c.Handle, nil
	case len(own) == 1:
		return own[0], nil
	case len(own) == 0 && c.Standing != Operator:
		return "", Errorf(Forbidden, "you have no profile on this node yet")
	}
	return "", Invalid(Fault{"/handle", "required", "name one of your profiles: " + strings.Join(own, ", ")})
}

// Owned is embedded in the input of an owner's operation.
type Owned struct {
	Handle string `json:"handle,omitempty" shape:"handle" doc:"Your profile."`
}

// A Spend is something that may be used once in the whole deployment: a proof-of-work challenge or
// the nonce of a signature. The write that it pays for stores Key until Until; a second write with
// the same key fails with Code.
type Spend struct {
	Key   [16]byte
	Until time.Time
	Code  Code // pow-spent or signature-replayed
}

// ID returns the caller's name for limits, receipts and distinct reporters: the chain identity with
// its owner (contract §9), otherwise the account, the key, or the client network.
func (c Caller) ID() string {
	switch {
	case c.Standing == Operator && c.Account != "":
		return "operator:" + c.Account
	case c.Standing == Operator:
		return "operator"
	case c.Remote != nil && c.Remote.Actor != nil:
		return "actor:" + *c.Remote.Actor
	case c.Agent != "" && c.Owner != "":
		return AgentName(c.Agent, c.Owner)
	case c.Account != "":
		return "account:" + c.Account
	case c.Handle != "":
		return "handle:" + c.Handle
	case c.KeyID != "" && c.Standing != Proof: // keys that cost nothing do not make one network many callers
		return "key:" + c.KeyID
	}
	return "net:" + c.Network
}

const platformNetwork = "platform:"

// PlatformCaller is a platform of UCP whose profile has the key that signed the request. It is anonymous, and limited by its profile in place of a network.
func PlatformCaller(profile string) *Caller {
	return &Caller{Standing: Anonymous, Network: platformNetwork + profile}
}

// Platform returns the address of the profile of such a caller; signed is false for all others.
func (c *Caller) Platform() (profile string, signed bool) {
	return strings.CutPrefix(c.Network, platformNetwork)
}

// Actor returns the caller's name in the audit log: the account, otherwise the key that signed for
// a profile, or "operator".
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
	ByFederation Method = "federation" // another node vouches for it
	ByProof      Method = "pow"        // not recognised: a proof of work was paid
)

// An Author is the writer of a stored text. Verified is true only when this node checked a key
// itself. When only another node vouches for the author, it is false and Node is set, so that
// "signed by the agent" and "claimed by that server" differ.
type Author struct {
	Name     string  `json:"name" doc:"Display name. Anyone may claim any name when verified is false."`
	Handle   *string `json:"handle" doc:"Handle on its home node."`
	Node     *string `json:"node" doc:"Host of the home node; null for this node."`
	Actor    *string `json:"actor" format:"uri" doc:"ActivityPub actor."`
	ERC8004  *string `json:"erc8004" doc:"Chain identity, eip155:<chainId>:<registry>:<agentId>."`
	Verified bool    `json:"verified" doc:"This node verified the author itself; proof says how."`
	Method   Method  `json:"method" enum:"signature,session,federation,pow"`
	KeyID    *string `json:"keyid" doc:"RFC 7638 thumbprint of the author's key; of an Ethereum account that signed its name by CAIP-10."`

	Proof AuthorProof `json:"proof" doc:"How the author was verified: by this node's own check, never by another node's claim."`

	ClaimedName string `json:"claimedName,omitempty" doc:"Name that a verified author gave itself; not verified."`
}

// A ProofLevel says how an author was verified.
type ProofLevel string

const (
	ByChainKey   ProofLevel = "chain-key"   // the chain names the key for the identity
	ByWallet     ProofLevel = "wallet"      // the agent wallet of the identity signed
	ByOwner      ProofLevel = "owner"       // the owner of the identity's token signed
	ByDirectory  ProofLevel = "directory"   // the key is in the key directory at an address
	ByProfileKey ProofLevel = "profile-key" // the key is registered with a profile
	BySignIn     ProofLevel = "session"     // the profile's owner was signed in, or sent its token
	BySameKey    ProofLevel = "key"         // the same account or key signed, which says nothing more: verified is false
	ByNothing    ProofLevel = "none"        // nothing was checked: verified is false
)

// An AuthorProof is how this node verified an author.
type AuthorProof struct {
	Level     ProofLevel `json:"level" enum:"chain-key,wallet,owner,directory,profile-key,session,key,none" doc:"chain-key, wallet, owner: by the chain. directory: the key is in the key directory at subject, a Web address and nothing more. profile-key, session: by a profile of the node where it was written. key: not verified; the account or key at subject signed. none: not verified."`
	Subject   *string    `json:"subject" doc:"What was verified to be the author's: the chain identity, the address of the key directory, or the profile's actor; null with none."`
	Chain     *string    `json:"chain" doc:"Chain that was asked, such as eip155:1; null for none."`
	Block     *int64     `json:"block" minimum:"0" doc:"Block of the chain's answer; null when no chain was asked, or the block is not known."`
	BlockHash *string    `json:"blockHash" doc:"Hash of that block."`
	Owner     *string    `json:"owner" doc:"Who owned the identity's token at that block."`
	CheckedAt *time.Time `json:"checkedAt" doc:"When this node verified; null for none, or when it is not known."`
}

// Complete fills in the author's proof and name. A level is missing in what was stored before there were
// levels; the other members allow only one. checked is when this node verified the author, the zero time
// if unknown.
func (a *Author) Complete(checked time.Time) {
	a.completeProof(checked)
	a.settleName()
}

func (a *Author) completeProof(checked time.Time) {
	p := &a.Proof
	if p.Level == BySameKey && !a.Verified && a.Node == nil && a.KeyID != nil {
		*p = AuthorProof{Level: BySameKey, Subject: a.KeyID, CheckedAt: p.CheckedAt}
	} else if p.Level == "" || !a.Verified {
		*p = AuthorProof{Level: a.level(), Block: p.Block, BlockHash: p.BlockHash, Owner: p.Owner, CheckedAt: p.CheckedAt}
	}
	if p.Level == ByNothing {
		*p = AuthorProof{Level: ByNothing}
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
