package protocol

import "time"

// An EnrolmentEnd says why a profile is no longer enrolled to a chain identity.
type EnrolmentEnd string

const (
	EndedByOwner    EnrolmentEnd = "owner"    // the token has another owner
	EndedByWallet   EnrolmentEnd = "wallet"   // the agentWallet is another, or none
	EndedByKey      EnrolmentEnd = "key"      // the chain names no key that could speak for the profile
	EndedByBlock    EnrolmentEnd = "block"    // a reorganisation replaced the block of the enrolment
	EndedByRegistry EnrolmentEnd = "registry" // the registry has no such agent
	EndedByBinding  EnrolmentEnd = "binding"  // the agent follows another token (ERC-8217)
	EndedByAnother  EnrolmentEnd = "replaced" // the profile was enrolled to another identity
	EndedByDrop     EnrolmentEnd = "dropped"  // the owner or the operator dropped it
)

// Text is the reason in a sentence without its full stop.
func (e EnrolmentEnd) Text() string {
	switch e {
	case EndedByOwner:
		return "the token has another owner"
	case EndedByWallet:
		return "the agent's wallet on chain was changed"
	case EndedByKey:
		return "its key has no authority on chain any more, and no other key took its place"
	case EndedByBlock:
		return "the chain no longer has the block at which it was enrolled"
	case EndedByRegistry:
		return "the registry has no such agent any more"
	case EndedByBinding:
		return "the agent now follows another token"
	case EndedByAnother:
		return "the profile was enrolled to another identity"
	}
	return "it was dropped"
}

// An IdentityEnd says how the last enrolment of a profile ended.
type IdentityEnd struct {
	ERC8004 string       `json:"erc8004" doc:"The chain identity that the profile was enrolled to."`
	Reason  EnrolmentEnd `json:"reason" enum:"owner,wallet,key,block,registry,binding,replaced,dropped"`
	Detail  string       `json:"detail" doc:"The reason as a sentence."`
	At      time.Time    `json:"at"`
}

// An IdentityStatus is what the node holds of a profile's on-chain identity.
type IdentityStatus struct {
	Identity
	KeyID      *string      `json:"keyid" doc:"RFC 7638 thumbprint of the key that speaks for the identity; null without an identity."`
	Owner      *string      `json:"owner" doc:"Owner of the token when the profile was enrolled; null when the node has not asked the chain yet."`
	Wallet     *string      `json:"wallet" doc:"agentWallet at that time; null for none."`
	Block      *int64       `json:"block" doc:"Newest final block at that time."`
	EnrolledAt *time.Time   `json:"enrolledAt"`
	Ended      *IdentityEnd `json:"ended,omitempty" doc:"How the last enrolment ended; absent when none did, or another was made since."`
}

var GetIdentity = declare[OwnInput, IdentityStatus](Operation{
	Name: "get_identity", Title: "Get the identity's status",
	Summary:     "Which on-chain identity a profile of yours is enrolled to, and by which key; or why it is no longer.",
	Description: "A signature under the identity is checked against the chain each time; this is what the node has on file. The enrolment ends with another owner or wallet, a revoked key, or the loss of its block.",
	HTTP:        Route{"GET", "/api/owner/identity", 200}, Doors: HTTP | MCP, For: Owners,
	Access: Owner, Scope: ScopeKeys, ReadOnly: true, NoStore: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var DropIdentity = declare[OwnInput, None](Operation{
	Name: "drop_identity", Title: "Drop the identity",
	Summary:     "Take the on-chain identity off a profile of yours, with every key that came by it.",
	Description: "Do it before you sell the token. The chain is not written to. A profile is enrolled again by the operator of the node.",
	HTTP:        Route{"DELETE", "/api/owner/identity", 204}, Doors: HTTP | MCP, For: Owners,
	Access: Owner, Scope: ScopeKeys, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})
