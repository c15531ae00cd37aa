package protocol

import "time"

// An EnrolmentEnd says why a profile is no longer enrolled to a chain identity.
type EnrolmentEnd string

const (
	EndedByOwner    EnrolmentEnd = "owner"    // the token has a new owner
	EndedByWallet   EnrolmentEnd = "wallet"   // the agentWallet was changed or removed
	EndedByKey      EnrolmentEnd = "key"      // the chain names no key that could be used for the profile
	EndedByBlock    EnrolmentEnd = "block"    // a reorganisation replaced the block of the enrolment
	EndedByRegistry EnrolmentEnd = "registry" // the registry has no such agent
	EndedByBinding  EnrolmentEnd = "binding"  // the agent follows another token (ERC-8217)
	EndedByAnother  EnrolmentEnd = "replaced" // the profile was enrolled to another identity
	EndedByDrop     EnrolmentEnd = "dropped"  // the owner or the operator removed it
)

// Text returns the reason as a sentence without its full stop.
func (e EnrolmentEnd) Text() string {
	switch e {
	case EndedByOwner:
		return "the token has a new owner"
	case EndedByWallet:
		return "the agent's wallet on chain was changed"
	case EndedByKey:
		return "its key is no longer valid on chain, and no other key has replaced it"
	case EndedByBlock:
		return "the chain no longer has the block at which it was enrolled"
	case EndedByRegistry:
		return "the registry no longer has this agent"
	case EndedByBinding:
		return "the agent now follows another token"
	case EndedByAnother:
		return "the profile was enrolled to another identity"
	}
	return "it was removed from the profile"
}

// An IdentityEnd says how the last enrolment of a profile ended.
type IdentityEnd struct {
	ERC8004 string       `json:"erc8004" doc:"The chain identity that the profile was enrolled to."`
	Reason  EnrolmentEnd `json:"reason" enum:"owner,wallet,key,block,registry,binding,replaced,dropped"`
	Detail  string       `json:"detail" doc:"The reason as a sentence."`
	At      time.Time    `json:"at"`
}

// An IdentityStatus is what the node has stored about a profile's on-chain identity.
type IdentityStatus struct {
	Identity
	KeyID      *string      `json:"keyid" doc:"RFC 7638 thumbprint of the key for the identity; null without an identity."`
	Owner      *string      `json:"owner" doc:"Owner of the token when the profile was enrolled; null when the node has not asked the chain yet."`
	Wallet     *string      `json:"wallet" doc:"agentWallet at that time; null for none."`
	Block      *int64       `json:"block" doc:"Newest final block at that time."`
	EnrolledAt *time.Time   `json:"enrolledAt"`
	Ended      *IdentityEnd `json:"ended,omitempty" doc:"How the last enrolment ended; absent if none has ended, or there is a newer one."`

	Document *DocumentReading `json:"document,omitempty" doc:"How its registration document was read; absent before the first time."`
}

// A DocumentReading is the last reading of the registration document of an identity, from which its links are.
type DocumentReading struct {
	ReadAt time.Time `json:"readAt"`
	Fault  string    `json:"fault,omitempty" doc:"Why it, or a domain, is not used."`
}

var GetIdentity = declare[OwnInput, IdentityStatus](Operation{
	Name: "get_identity", Title: "Get the identity's status",
	Summary: "The on-chain identity that a profile of yours is enrolled to and its key, or why the enrolment has ended.",
	Description: "A signature under the identity is checked against the chain each time; this is what the node has on file. " +
		"The enrolment ends when the owner or wallet changes, the key is revoked, or its block is lost.",
	HTTP: Route{"GET", "/api/owner/identity", 200}, For: Owners, Scope: ScopeKeys, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var DropIdentity = declare[OwnInput, None](Operation{
	Name: "drop_identity", Title: "Remove the identity",
	Summary:     "Removes the on-chain identity from a profile of yours, with every key that depends on it.",
	Description: "Do this before you sell the token. It writes nothing to the chain. connect_identity enrols the profile again.",
	HTTP:        Route{"DELETE", "/api/owner/identity", 204}, For: Owners, Scope: ScopeKeys, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

// An IdentityLink names a profile and the chain identity that it is to be enrolled to.
type IdentityLink struct {
	Owned
	ERC8004 string `json:"erc8004" pattern:"^eip155:[1-9][0-9]{0,18}:0x[0-9a-fA-F]{40}:(0|[1-9][0-9]{0,77})$" doc:"eip155:<chainId>:<registry>:<agentId>"`
}

var ConnectIdentity = declare[IdentityLink, IdentityStatus](Operation{
	Name: "connect_identity", Title: "Connect an identity",
	Summary: "Enrols a profile of yours to an on-chain identity whose owner has named, on chain, a key that this node keeps for the profile.",
	Description: "The key record on chain (stoa identity keys) is signed by the identity's owner or agentWallet, and must be final: it is their consent. " +
		"The profile must have no other identity. " + needsRecent,
	HTTP: Route{"PUT", "/api/owner/identity", 200}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeKeys,
	Codes:   []Code{Forbidden, SignInAgain, Conflict, IdentityUnverified, ChainUnavailable},
	Example: IdentityLink{Owned{"asha"}, "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7"},
})
