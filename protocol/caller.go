package protocol

import (
	"encoding/json"
	"time"
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

// AnyProof admits whoever shows anything at all: reading is open, writing costs
// at least a proof of work (spec §5).
const AnyProof Access = Proof | Session | Signed | Operator

// KnownAuthor admits only writers who can be recognised again.
const KnownAuthor Access = Session | Signed | Operator

// A Caller is who is asking, as far as the node could find out. It is made by
// identity.Gate and never taken from context.
type Caller struct {
	Standing Standing
	Network  string // keyed hash of the client's network, for limits and distinct reporters; never an address
	Agent    string // chain identity, lower case, when the signature was checked against the chain
	Handle   string // the profile of this node that the caller writes as, if any
	Name     string // display name of that profile
	Account  string // the owner's account, with Session
	KeyID    string // RFC 7638 thumbprint of the key that signed
	Spend    []Spend

	// Evidence is the signed request, kept so that others can check the author
	// again (httpsig.Evidence as JSON); nil unless Standing is Signed.
	Evidence json.RawMessage
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
	Verified bool    `json:"verified" doc:"This node checked the author's own key."`
	Method   Method  `json:"method" enum:"signature,session,federation,pow"`
	KeyID    *string `json:"keyid" doc:"RFC 7638 thumbprint of the author's key."`
}
