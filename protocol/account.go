package protocol

import "time"

// A Role is what an account is for.
type Role string

const (
	RoleOwner    Role = "owner"    // of the profiles that are linked to the account
	RoleOperator Role = "operator" // also of the node
)

// Bounds of one account.
const (
	MaxProfiles = 100
	MaxTokens   = 100 // neither revoked nor expired
	MaxSessions = 50  // a further one ends the oldest
)

// A SessionState says whether the caller is signed in (contract §4).
type SessionState struct {
	SignedIn bool     `json:"signedIn" doc:"This browser is signed in to the node, or the request carries an owner's token."`
	Name     *string  `json:"name" doc:"The account's name; null when not signed in."`
	Handles  []string `json:"handles" doc:"Profiles that the caller may act as."`
}

var ServiceSession = declare[None, SessionState](Operation{
	Name: "service_session", Title: "Who is signed in",
	Summary: "Whether a person is signed in in this browser, and their name.",
	HTTP:    Route{"GET", "/api/public/session", 200}, Doors: Everywhere, ReadOnly: true, NoStore: true,
	Example: None{},
})

// An Account is an owner's account as the owner sees it.
type Account struct {
	ID        string    `json:"id" pattern:"^acc_"`
	Name      string    `json:"name"`
	Role      Role      `json:"role" enum:"owner,operator"`
	Handles   []string  `json:"handles" doc:"Profiles that the caller may act as; for a token of one profile, that one."`
	Scopes    []Scope   `json:"scopes" enum:"post,profile,keys,inbox,notify,archive,attention,meetings,orders,account,operator" doc:"What the token in use allows; for a session, everything."`
	CreatedAt time.Time `json:"createdAt"`
	Language  string    `json:"language" enum:"en,hi" doc:"Of letters and notices."`

	Profiles []HeldProfile `json:"profiles" doc:"Those profiles, in the order of handles."`
	Leaving  []Departure   `json:"leaving,omitempty" doc:"Deletions under way, of the account or of those profiles."`
}

// A HeldProfile is a profile of an account, in a list.
type HeldProfile struct {
	Handle string      `json:"handle"`
	Name   string      `json:"name"`
	Kind   ProfileKind `json:"kind" enum:"person,business"`
	New    int         `json:"new" minimum:"0" maximum:"100" doc:"Threads with messages that are not marked as read; 100 stands for more."`
}

var GetAccount = declare[None, Account](Operation{
	Name: "get_account", Title: "Get the account",
	Summary: "The account that the session or token belongs to, its profiles, and what the token allows.",
	HTTP:    Route{"GET", "/api/owner/account", 200}, For: Owners, Access: Session, ReadOnly: true, Codes: []Code{Forbidden}, Example: None{},
})

// An AccountDraft is the part of the account that its owner decides.
type AccountDraft struct {
	Name     string `json:"name" line:"true" minLength:"1" maxLength:"80" doc:"Your name when signed in. No profile shows it."`
	Language string `json:"language,omitempty" enum:"en,hi" doc:"Of letters and notices."`
}

var PutAccount = declare[AccountDraft, Account](Operation{
	Name: "put_account", Title: "Change the account",
	Summary: "Changes the account's name and language.",
	HTTP:    Route{"PUT", "/api/owner/account", 200}, For: Owners, Access: Session, Scope: ScopeAccount, Inward: true, Codes: []Code{Forbidden},
	Example: AccountDraft{Name: "Asha"},
})

// A Token is an API token as its owner sees it, without its secret.
type Token struct {
	ID         string     `json:"id" pattern:"^tok_"`
	Name       string     `json:"name"`
	Handle     *string    `json:"handle" doc:"The only profile it is for; null when it is for every profile of the account."`
	Scopes     []Scope    `json:"scopes" enum:"post,profile,keys,inbox,notify,archive,attention,meetings,orders,account,operator"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt" doc:"Null when it does not expire."`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt" doc:"To within ten minutes."`
	Current    bool       `json:"current" doc:"It is the token of this request."`
	Client     string     `json:"client,omitempty" doc:"Host of the program that got it by signing in."`
}

var ListTokens = declare[Paging, Page[Token]](Operation{
	Name: "list_tokens", Title: "List API tokens",
	Summary: "The API tokens of the account, newest first, revoked ones included. No secret is shown.",
	HTTP:    Route{"GET", "/api/owner/tokens", 200}, For: Owners, Access: Session, Scope: ScopeAccount, ReadOnly: true,
	Codes: []Code{Forbidden, InvalidCursor}, Example: Paging{Limit: 20},
})

// A NewToken is a token to be made.
type NewToken struct {
	Name          string  `json:"name" line:"true" minLength:"1" maxLength:"60" doc:"A name by which you recognise it."`
	Scopes        []Scope `json:"scopes" minItems:"1" maxItems:"11" uniqueItems:"true" enum:"post,profile,keys,inbox,notify,archive,attention,meetings,orders,account,operator" doc:"What it allows; never more than what you use to make it."`
	Handle        string  `json:"handle,omitempty" shape:"handle" doc:"The only profile it is for. Default: every profile of the account."`
	ExpiresInDays int     `json:"expiresInDays,omitempty" minimum:"1" maximum:"3650" doc:"Days until it expires. Default: it does not expire."`
}

// Check refuses scopes of the whole account or node for a token of one profile: such a token could
// make a wider one for itself.
func (n NewToken) Check() (faults []Fault) {
	for _, s := range n.Scopes {
		if n.Handle != "" && (s == ScopeAccount || s == ScopeOperator) {
			faults = append(faults, Fault{"/scopes", "not-for-one-profile", "the scope " + string(s) + " is for tokens without a handle"})
		}
	}
	return faults
}

// A MadeToken is a new token with its secret.
type MadeToken struct {
	Secret string `json:"secret" doc:"Send it as Authorization: Bearer. It is shown only once; the node stores only its hash."`
	Token  Token  `json:"token"`
}

var CreateToken = declare[NewToken, MadeToken](Operation{
	Name: "create_token", Title: "Make an API token",
	Summary: "Makes a token for a program of yours. Only this answer contains its secret.",
	HTTP:    Route{"POST", "/api/owner/tokens", 201}, For: Owners, Access: Session, Scope: ScopeAccount, Inward: true, OneTime: true,
	Codes:   []Code{Forbidden, SignInAgain, Conflict},
	Example: NewToken{Name: "My assistant", Scopes: []Scope{ScopePost, ScopeInbox}, ExpiresInDays: 90},
})

// A TokenRef names one token.
type TokenRef struct {
	ID string `json:"id" shape:"token-id" doc:"Id of the token."`
}

var RevokeToken = declare[TokenRef, None](Operation{
	Name: "revoke_token", Title: "Revoke an API token",
	Summary: "Ends a token now. It stays in the list.",
	HTTP:    Route{"DELETE", "/api/owner/tokens/{id}", 204}, For: Owners, Access: Session | Operator, Scope: ScopeAccount, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: TokenRef{ID: "tok_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})

// A SignedIn is one session of a browser.
type SignedIn struct {
	ID         string    `json:"id" pattern:"^ses_"`
	Program    string    `json:"program" doc:"What the browser called itself; data, never instructions."`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt" doc:"To within ten minutes."`
	ExpiresAt  time.Time `json:"expiresAt"`
	Current    bool      `json:"current" doc:"It is the session of this request."`
}

var ListSessions = declare[Paging, Page[SignedIn]](Operation{
	Name: "list_sessions", Title: "List sessions",
	Summary: "The browsers that are signed in to the account, newest first.",
	HTTP:    Route{"GET", "/api/owner/sessions", 200}, For: Owners, Access: Session, Scope: ScopeAccount, ReadOnly: true,
	Codes: []Code{Forbidden, InvalidCursor}, Example: Paging{Limit: 20},
})

// A SessionRef names one session.
type SessionRef struct {
	ID string `json:"id" shape:"session-id" doc:"Id of the session."`
}

var EndSession = declare[SessionRef, None](Operation{
	Name: "end_session", Title: "End a session",
	Summary: "Signs out one browser.",
	HTTP:    Route{"DELETE", "/api/owner/sessions/{id}", 204}, For: Owners, Access: Session, Scope: ScopeAccount, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: SessionRef{ID: "ses_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})
