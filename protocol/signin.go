package protocol

import "time"

// Bounds of how an account signs in.
const (
	MaxPasskeys   = 20
	RecoveryCodes = 10 // that are made at once
)

// A Passkey is one passkey of an account.
type Passkey struct {
	ID         string     `json:"id" pattern:"^psk_"`
	Name       string     `json:"name"`
	Domain     string     `json:"domain" doc:"Domain name that it is for. It signs in at no other."`
	BackedUp   bool       `json:"backedUp" doc:"A copy of it is kept outside its device, by what its maker says."`
	Suspect    bool       `json:"suspect" doc:"Its counter went back, so that there may be a copy. It signs nobody in any more: remove it."`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
}

// An EthereumOwner is an identity by whose owner's Ethereum account an account signs in.
type EthereumOwner struct {
	Handle  string `json:"handle" doc:"The profile that is enrolled to the identity."`
	ERC8004 string `json:"erc8004"`
	Owner   string `json:"owner" doc:"Address of the owner when the profile was enrolled. Whoever owns the identity now signs in, if it is still that one."`
}

// SignInMethods are the ways in which an account signs in.
type SignInMethods struct {
	Passkeys            []Passkey       `json:"passkeys" doc:"Newest first, 20 at most."`
	PasskeyDomain       *string         `json:"passkeyDomain" doc:"Domain name that new passkeys are for; null when the node's address has none, so that there are no passkeys."`
	RecoveryCodes       int             `json:"recoveryCodes" doc:"Recovery codes that were not used."`
	RecoveryCodesMadeAt *time.Time      `json:"recoveryCodesMadeAt"`
	Mail                *string         `json:"mail" doc:"Address that sign-in links go to; null for none."`
	MailOffered         bool            `json:"mailOffered" doc:"This node sends mail."`
	Ethereum            []EthereumOwner `json:"ethereum" doc:"Identities whose owner may sign in."`
	Wallet              *string         `json:"wallet" doc:"Ethereum account that signs in, in lower case, whatever it owns; null for none."`
	SignedInAt          *time.Time      `json:"signedInAt" doc:"When the session of this request began; null for a token."`
	Recent              bool            `json:"recent" doc:"It began within the last 15 minutes, as changes of passkeys, recovery codes and the mail address need."`
}

var GetSignInMethods = declare[None, SignInMethods](Operation{
	Name: "get_sign_in_methods", Title: "How the account signs in",
	Summary: "The passkeys of the account, how many recovery codes are left, and the other ways to sign in.",
	HTTP:    Route{"GET", "/api/owner/sign-in", 200}, Doors: HTTP, For: Owners, Access: Session, Scope: ScopeAccount, ReadOnly: true,
	Codes: []Code{Forbidden}, Example: None{},
})

const needsRecent = "Needs a browser that signed in within the last 15 minutes, else sign-in-again; a token cannot do it. " +
	"The owner is told by mail."

// PasskeyOptions are what a browser needs to make a passkey (PublicKeyCredentialCreationOptions of WebAuthn).
type PasskeyOptions struct {
	Challenge  string   `json:"challenge" doc:"Its UTF-8 bytes are the challenge. Valid for ten minutes, once, for this session."`
	Domain     string   `json:"domain" doc:"rp.id"`
	Site       string   `json:"site" doc:"rp.name"`
	User       string   `json:"user" doc:"Its UTF-8 bytes are user.id."`
	Name       string   `json:"name" doc:"user.name and user.displayName"`
	Algorithms []int    `json:"algorithms" doc:"pubKeyCredParams, preferred first (COSE)."`
	Exclude    []string `json:"exclude" doc:"excludeCredentials, base64url: the passkeys that the account has."`
}

var GetPasskeyOptions = declare[None, PasskeyOptions](Operation{
	Name: "get_passkey_options", Title: "Begin to add a passkey",
	Summary:     "What a browser needs to make a passkey for the account. Nothing is stored.",
	Description: needsRecent,
	HTTP:        Route{"GET", "/api/owner/passkeys/options", 200}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount,
	ReadOnly: true, Codes: []Code{Forbidden, SignInAgain, Conflict}, Example: None{},
})

// A NewPasskey is what a browser made of the options.
type NewPasskey struct {
	Name        string   `json:"name" line:"true" minLength:"1" maxLength:"60" doc:"A name by which you recognise it."`
	Credential  string   `json:"credential" minLength:"16" maxLength:"1400" shape:"base64url" doc:"id of the credential."`
	ClientData  string   `json:"clientData" minLength:"1" maxLength:"4000" shape:"base64url" doc:"response.clientDataJSON"`
	Attestation string   `json:"attestation" minLength:"1" maxLength:"12000" shape:"base64url" doc:"response.attestationObject"`
	Transports  []string `json:"transports,omitempty" maxItems:"8" maxLength:"20" shape:"name" doc:"response.getTransports()"`
}

var AddPasskey = declare[NewPasskey, Passkey](Operation{
	Name: "add_passkey", Title: "Add a passkey",
	Summary:     "Adds a passkey that a browser made of get_passkey_options. From then on it signs in to the account.",
	Description: "The browser must have verified the person, by a finger, a face or a PIN. " + needsRecent,
	HTTP:        Route{"POST", "/api/owner/passkeys", 201}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount,
	Codes:   []Code{Forbidden, SignInAgain, Conflict, Gone},
	Example: NewPasskey{Name: "My phone", Credential: "q1w2e3r4t5y6u7i8o9p0a1", ClientData: "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0", Attestation: "o2NmbXRkbm9uZQ"},
})

// A PasskeyRef names one passkey.
type PasskeyRef struct {
	ID string `json:"id" shape:"passkey-id" doc:"Id of the passkey."`
}

var RemoveWallet = declare[None, None](Operation{
	Name: "remove_wallet", Title: "Remove the Ethereum account",
	Summary: "The Ethereum account with which the account was made signs in no more.", Description: needsRecent,
	HTTP: Route{"DELETE", "/api/owner/wallet", 204}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount,
	Codes: []Code{Forbidden, SignInAgain, NotFound}, Example: None{},
})

var DeletePasskey = declare[PasskeyRef, None](Operation{
	Name: "delete_passkey", Title: "Remove a passkey",
	Summary:     "Removes a passkey. It signs in no more; sessions that it began stay.",
	Description: needsRecent,
	HTTP:        Route{"DELETE", "/api/owner/passkeys/{id}", 204}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount,
	Codes: []Code{Forbidden, SignInAgain, NotFound}, Example: PasskeyRef{ID: "psk_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})

// MadeCodes are new recovery codes.
type MadeCodes struct {
	Codes []string `json:"codes" doc:"Ten codes. Each signs in once. They are shown only once; the node stores only their hashes."`
}

var MakeRecoveryCodes = declare[None, MadeCodes](Operation{
	Name: "make_recovery_codes", Title: "Make recovery codes",
	Summary:     "Makes ten recovery codes, each of which signs in once. Codes that were made before end.",
	Description: needsRecent,
	HTTP:        Route{"POST", "/api/owner/recovery-codes", 201}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount, OneTime: true,
	Codes: []Code{Forbidden, SignInAgain}, Example: None{},
})

var EndOtherSessions = declare[None, SignedOut](Operation{
	Name: "end_other_sessions", Title: "End all other sessions",
	Summary: "Signs out every browser but the one that asks; for a token, every browser.",
	HTTP:    Route{"DELETE", "/api/owner/sessions", 200}, Doors: HTTP, For: Owners, Access: Session, Scope: ScopeAccount, Inward: true,
	Codes: []Code{Forbidden}, Example: None{},
})
