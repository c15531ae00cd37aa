package protocol

import (
	"strings"
	"time"
)

// What an owner does with a profile: by session, by token, or by a request that is signed with the
// agent's registered key.

// An OwnInput names one of the caller's profiles.
type OwnInput struct{ Owned }

// An OwnProfile is a profile as its owner writes it: it may be read, edited and written back.
type OwnProfile struct {
	ProfileDraft
	Untrusted bool `json:"untrusted_content,omitempty" doc:"Always true when read. It may be left out when written."`
}

var GetOwnProfile = declare[OwnInput, OwnProfile](Operation{
	Name: "get_own_profile", Title: "Get your profile",
	Summary: "The whole profile as you wrote it, to edit and write back.",
	HTTP:    Route{"GET", "/api/owner/profile", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var PutOwnProfile = declare[OwnProfile, OwnProfile](Operation{
	Name: "put_own_profile", Title: "Write your profile",
	Summary:     "Replaces a profile of yours completely: what is left out is deleted, except listed and contactPolicy, which stay.",
	Description: "Identity, interfaces and reputation are not part of it: the node adds them. Only the operator creates profiles.",
	HTTP:        Route{"PUT", "/api/owner/profile", 200}, For: Owners, Scope: ScopeProfile, Replaces: GetOwnProfile.Operation, Codes: []Code{Forbidden},
	Example: OwnProfile{ProfileDraft: ProfileDraft{Handle: "asha", Name: "Asha Rao", Kind: Person, Headline: "Hand-loom weaver"}},
})

// OwnNeeds are the needs of a profile, in their order.
type OwnNeeds struct {
	Items     []Need `json:"items"`
	Untrusted bool   `json:"untrusted_content" doc:"Always true."`
}

// An OwnNeed is one need of a profile, to be written.
type OwnNeed struct {
	Owned
	Need
}

// A PartRef names one need or capability of a profile.
type PartRef struct {
	Owned
	ID string `json:"id" shape:"name" doc:"Its id."`
}

var ListNeeds = declare[OwnInput, OwnNeeds](Operation{
	Name: "list_needs", Title: "List your needs",
	Summary: "What a profile of yours needs from other agents.",
	HTTP:    Route{"GET", "/api/owner/needs", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var PutNeed = declare[OwnNeed, OwnNeeds](Operation{
	Name: "put_need", Title: "Write a need",
	Summary: "Adds a need to a profile of yours, or replaces the one with that id. At most 20.",
	HTTP:    Route{"PUT", "/api/owner/needs/{id}", 200}, For: Owners, Scope: ScopeProfile, Replaces: ListNeeds.Operation, Codes: []Code{Forbidden},
	Example: OwnNeed{Owned{"asha"}, Need{ID: "cotton-yarn", Description: "Hand-spun cotton yarn, 40 count.", Tags: []string{"yarn"}}},
})

var DeleteNeed = declare[PartRef, None](Operation{
	Name: "delete_need", Title: "Delete a need",
	Summary: "Deletes one need of a profile of yours.",
	HTTP:    Route{"DELETE", "/api/owner/needs/{id}", 204}, For: Owners, Scope: ScopeProfile, Codes: []Code{Forbidden, NotFound},
	Example: PartRef{Owned{"asha"}, "cotton-yarn"},
})

// OwnCapabilities are the capabilities of a profile, in their order.
type OwnCapabilities struct {
	Items     []Capability `json:"items"`
	Untrusted bool         `json:"untrusted_content" doc:"Always true."`
}

// An OwnCapability is one capability of a profile, to be written.
type OwnCapability struct {
	Owned
	Capability
}

// Check applies the rules of a profile to the one capability.
func (c OwnCapability) Check() []Fault {
	var faults []Fault
	for _, f := range (ProfileDraft{Name: "x", Kind: Person, Capabilities: []Capability{c.Capability}}).Check() {
		if at, ok := strings.CutPrefix(f.Pointer, "/capabilities/0"); ok {
			f.Pointer = at
			faults = append(faults, f)
		}
	}
	return faults
}

var ListCapabilities = declare[OwnInput, OwnCapabilities](Operation{
	Name: "list_capabilities", Title: "List your capabilities",
	Summary: "What a profile of yours can do.",
	HTTP:    Route{"GET", "/api/owner/capabilities", 200}, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var PutCapability = declare[OwnCapability, OwnCapabilities](Operation{
	Name: "put_capability", Title: "Write a capability",
	Summary: "Adds a capability to a profile of yours, or replaces the one with that id. At most 20.",
	HTTP:    Route{"PUT", "/api/owner/capabilities/{id}", 200}, For: Owners, Scope: ScopeProfile, Replaces: ListCapabilities.Operation,
	Codes:   []Code{Forbidden},
	Example: OwnCapability{Owned{"asha"}, Capability{ID: "weave-cloth", Name: "Weave cloth", Description: "Hand-loom cloth to order.", Tags: []string{"weaving"}}},
})

var DeleteCapability = declare[PartRef, None](Operation{
	Name: "delete_capability", Title: "Delete a capability",
	Summary: "Deletes one capability of a profile of yours.",
	HTTP:    Route{"DELETE", "/api/owner/capabilities/{id}", 204}, For: Owners, Scope: ScopeProfile, Codes: []Code{Forbidden, NotFound},
	Example: PartRef{Owned{"asha"}, "weave-cloth"},
})

// An OwnPostQuery selects a page of the caller's own posts.
type OwnPostQuery struct {
	Owned
	Paging
}

var ListOwnPosts = declare[OwnPostQuery, Page[OwnPost]](Operation{
	Name: "list_own_posts", Title: "List your posts",
	Summary:     "The posts of a profile of yours, newest first, hidden and deleted ones with the reason.",
	Description: "This includes posts of an imported archive: node and uri name the node that made them, and only there can they be deleted.",
	HTTP:        Route{"GET", "/api/owner/posts", 200}, For: Owners, Scope: ScopePost, ReadOnly: true, Codes: []Code{Forbidden, InvalidCursor},
	Example: OwnPostQuery{Owned{"asha"}, Paging{Limit: 20}},
})

// An OwnPostRef names one of the caller's own posts.
type OwnPostRef struct {
	Owned
	ID string `json:"id" shape:"post-id" doc:"Id of the post."`
}

var DeleteOwnPost = declare[OwnPostRef, None](Operation{
	Name: "delete_own_post", Title: "Delete your post",
	Summary: "Deletes a post of a profile of yours, also a hidden one, here and on other nodes.",
	Description: "A post of an imported archive is deleted on the node that made it; its copy here when this node follows that one, " +
		"or imports a new archive from there.",
	HTTP: Route{"DELETE", "/api/owner/posts/{id}", 204}, For: Owners, Scope: ScopePost, Codes: []Code{Forbidden, NotFound, Gone},
	Example: OwnPostRef{Owned{"asha"}, "post_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})

// MaxKeys is how many keys of a profile may be in use.
const MaxKeys = 20

// A PublicJWK is a public key (RFC 7517): Ed25519, ECDSA on P-256 or P-384, or RSA. Private
// members are unknown members here, and refused.
type PublicJWK struct {
	Kty string `json:"kty" enum:"OKP,EC,RSA" doc:"Key type (RFC 7517)."`
	Crv string `json:"crv,omitempty" enum:"Ed25519,P-256,P-384" doc:"Curve, of OKP and EC keys."`
	X   string `json:"x,omitempty" shape:"base64url" maxLength:"128" doc:"Public part of OKP and EC keys, base64url."`
	Y   string `json:"y,omitempty" shape:"base64url" maxLength:"128" doc:"Second public part of EC keys, base64url."`
	N   string `json:"n,omitempty" shape:"base64url" maxLength:"1400" doc:"Modulus of RSA keys, base64url."`
	E   string `json:"e,omitempty" shape:"base64url" maxLength:"16" doc:"Exponent of RSA keys, base64url."`
	Alg string `json:"alg,omitempty" pattern:"^[A-Za-z0-9-]*$" maxLength:"32" doc:"Algorithm; it may be left out."`
	Kid string `json:"kid,omitempty" shape:"base64url" maxLength:"128" doc:"Ignored: the node names keys by their thumbprint."`
	Use string `json:"use,omitempty" enum:"sig" doc:"sig, or left out."`
}

// A Key is a signing key of a profile.
type Key struct {
	KeyID     string     `json:"keyid" doc:"RFC 7638 thumbprint."`
	JWK       PublicJWK  `json:"jwk" doc:"The public half."`
	Kept      bool       `json:"kept" doc:"The node stores the private half, encrypted, and signs with it for your sessions and tokens. It is never shown."`
	Identity  bool       `json:"identity" doc:"It is a key of the profile's on-chain identity, so it is valid as long as the chain says so."`
	CreatedAt time.Time  `json:"createdAt"`
	RetiredAt *time.Time `json:"retiredAt" doc:"Signatures made after this are not valid; null while in use."`
}

// Keys are the keys of a profile, newest first.
type Keys struct {
	Items []Key `json:"items"`
}

var ListKeys = declare[OwnInput, Keys](Operation{
	Name: "list_keys", Title: "List your keys",
	Summary: "The signing keys of a profile of yours, retired ones included. No private half is shown.",
	HTTP:    Route{"GET", "/api/owner/keys", 200}, For: Owners, Scope: ScopeKeys, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

// A NewKey is a public key to register.
type NewKey struct {
	Owned
	JWK PublicJWK `json:"jwk" doc:"The public half. Keep the private one to yourself." as:"a JWK of RFC 7517: OKP, EC or RSA"`
}

var AddKey = declare[NewKey, Key](Operation{
	Name: "add_key", Title: "Register a key",
	Summary: "Registers a public key with a profile of yours: what it signs counts as the profile's.",
	HTTP:    Route{"POST", "/api/owner/keys", 201}, For: Owners, Idempotent: true, Scope: ScopeKeys, Inward: true, Codes: []Code{Forbidden, Conflict},
	Example: NewKey{Owned{"asha"}, PublicJWK{Kty: "OKP", Crv: "Ed25519", X: "2itvMgnj7wAIocOGXPNAoAJxyX5szYnEFixFehwVba4"}},
})

var MakeKey = declare[OwnInput, Key](Operation{
	Name: "make_key", Title: "Make a key that the node keeps",
	Summary: "Makes a key whose private half the node stores, encrypted, and signs with for your sessions and tokens.",
	HTTP:    Route{"POST", "/api/owner/keys/kept", 201}, For: Owners, Scope: ScopeKeys, Inward: true, Codes: []Code{Forbidden, Conflict},
	Example: OwnInput{Owned{"asha"}},
})

// A KeyRef names one key of a profile.
type KeyRef struct {
	Owned
	KeyID string `json:"keyid" shape:"keyid" doc:"RFC 7638 thumbprint of the key."`
}

var RetireKey = declare[KeyRef, None](Operation{
	Name: "retire_key", Title: "Retire a key",
	Summary:     "Ends a key's use on this node for good.",
	Description: "A key that the chain names must be revoked on the chain.",
	HTTP:        Route{"DELETE", "/api/owner/keys/{keyid}", 204}, For: Owners, Scope: ScopeKeys, Inward: true, Codes: []Code{Forbidden, NotFound},
	Example: KeyRef{Owned{"asha"}, "WRRm18HdbffbjQCO5v4IHs0t8PK0gTa_pPVpkADu9Sc"},
})
