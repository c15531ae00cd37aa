package protocol

import (
	"encoding/json"
	"time"
)

// A SignInText has the members of a text to sign in as an agent that are the node's.
type SignInText struct {
	Domain         string    `json:"domain"`
	URI            string    `json:"uri" format:"uri"`
	Version        string    `json:"version" enum:"1"`
	Statement      string    `json:"statement"`
	Nonce          string    `json:"nonce" doc:"Good once."`
	IssuedAt       time.Time `json:"issuedAt"`
	ExpirationTime time.Time `json:"expirationTime"`
	Chains         []string  `json:"chains" doc:"That the node reads, such as eip155:8453."`
}

// GetSignInText begins the sign-in of an agent by its Ethereum account (EIP-4361, SIWA, CAIP-122): what a text to sign has to say at this
// node. The agent adds its account and, as a resource, its ERC-8004 identity.
var GetSignInText = declare[None, SignInText](Operation{
	Name: "get_sign_in_text", Title: "Begin to sign in as an agent by its Ethereum account",
	Summary: "What a text to sign (EIP-4361, or SIWA) has to say at this node.", ReadOnly: true, NoStore: true, Example: None{},
})

// Limits of delegation.
const (
	MaxDelegation    = 30 * 24 * time.Hour
	MaxDelegatedKeys = 10 // of one identity; the newest stay
)

// KeyResource begins the resource of a signed text that names a key by its thumbprint (RFC 9278).
const KeyResource = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"

// A SignedText is a text that an Ethereum account has signed to sign in.
type SignedText struct {
	Message   string `json:"message" minLength:"1" maxLength:"4096" doc:"The text, byte for byte."`
	Signature string `json:"signature" minLength:"4" maxLength:"4096" pattern:"^0x[0-9A-Fa-f]+$"`

	JWK json.RawMessage `json:"jwk,omitempty" doc:"An Ed25519 key that the text names as a resource, urn:ietf:params:oauth:jwk-thumbprint:sha-256:<thumbprint>: it may sign for the identity here until the text's Expiration Time, 30 days at most."`
}

// An AgentToken admits an agent for 15 minutes.
type AgentToken struct {
	Token     string     `json:"token" doc:"For Authorization: Bearer; the receipt of SIWA."`
	ExpiresAt time.Time  `json:"expiresAt"`
	Identity  string     `json:"identity"`
	Account   string     `json:"account" doc:"By CAIP-10."`
	Level     ProofLevel `json:"level" enum:"owner,wallet"`
	KeyID     string     `json:"keyid,omitempty" doc:"The key that may sign from now on."`
	KeyEndsAt *time.Time `json:"keyEndsAt,omitempty"`
}

// SignInAgent gives a token of 15 minutes to the owner or the agent wallet of an ERC-8004 identity that has signed such a text. The token
// ends when the account controls the identity no more. Errors: invalid-request, gone, signature-invalid, key-unknown,
// identity-unverified, chain-unavailable.
var SignInAgent = declare[SignedText, AgentToken](Operation{
	Name: "sign_in_agent", Title: "Sign in as an agent", Summary: "A token for the owner or the agent wallet of an ERC-8004 identity.",
	OneTime: true, Example: SignedText{Message: "node.example wants you to sign in with your Ethereum account:\n0x…", Signature: "0x00"},
})

// Undelegated says how many keys sign no more.
type Undelegated struct {
	Ended int `json:"ended" minimum:"0"`
}

// EndDelegation ends every delegated key of the caller's identity. Errors: unauthorized for a caller that is not its owner or wallet.
var EndDelegation = declare[None, Undelegated](Operation{
	Name: "end_delegation", Title: "End delegated keys", Summary: "No delegated key signs for the identity any more.", Access: Signed, Example: None{},
})
