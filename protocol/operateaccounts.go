package protocol

import "time"

// What operators do about accounts and profiles: they find them, see who holds what, and suspend a profile.

// An AccountQuery finds accounts.
type AccountQuery struct {
	Q string `json:"q,omitempty" maxLength:"254" doc:"A handle, a mail address, an id, or a part of a name."`
	Paging
}

// SetRole makes an account an owner's or an operator's.
var SetRole = declare[RoleChange, None](Operation{
	Name: "set_role", Title: "Set the role of an account", Summary: "Makes an account an owner's or an operator's.", Description: needsAccountScope,
	HTTP: Route{"PUT", "/api/operator/accounts/{account}/role", 204}, For: Operators, Scope: ScopeAccount, Codes: []Code{NotFound, Conflict},
	Example: RoleChange{exampleAccount, RoleOwner},
})

// SignOut ends every session of an account, and its sign-in links.
var SignOut = declare[SignOutDraft, SignedOut](Operation{
	Name: "sign_out", Title: "Sign an account out",
	Summary:     "Ends every session of an account and its sign-in links; with forget, its passkeys, recovery codes and Ethereum account too.",
	Description: needsAccountScope,
	HTTP:        Route{"POST", "/api/operator/accounts/{account}/sign-out", 200}, For: Operators, Scope: ScopeAccount, Codes: []Code{NotFound},
	Example: SignOutDraft{AccountRef: exampleAccount},
})

// A ProfileHolder says who holds a profile.
type ProfileHolder struct {
	Handle    string        `json:"handle"`
	Name      string        `json:"name"`
	Kind      ProfileKind   `json:"kind" enum:"person,business"`
	State     ProfileState  `json:"state" enum:",pending,refused,suspended,leaving" doc:"Empty for a profile that is shown."`
	Reason    string        `json:"reason" doc:"Why it is in its state; empty for none."`
	Since     *time.Time    `json:"since" doc:"When it got its state; null for a profile that is shown."`
	Account   *KnownAccount `json:"account" doc:"The account that it belongs to; null for none."`
	Keys      []string      `json:"keys" doc:"Thumbprints of the keys that sign for it."`
	ERC8004   *string       `json:"erc8004" doc:"Its chain identity; null for none."`
	Untrusted bool          `json:"untrusted_content" doc:"Always true."`
}

var ReadProfileHolder = declare[HandleInput, ProfileHolder](Operation{
	Name: "read_profile_holder", Title: "Read who holds a profile",
	Summary: "The account, the keys and the chain identity that hold a profile, and whether it is shown.",
	HTTP:    Route{"GET", "/api/operator/profiles/{handle}", 200}, For: Operators, Scope: ScopeAccount, ReadOnly: true, Codes: []Code{NotFound},
	Example: HandleInput{Handle: "asha"},
})

// A Suspension hides a profile.
type Suspension struct {
	Handle string `json:"handle" shape:"handle" doc:"The profile."`
	Reason string `json:"reason" minLength:"1" maxLength:"300" doc:"Its owner and the moderation log show it."`
}

var SuspendProfile = declare[Suspension, None](Operation{
	Name: "suspend_profile", Title: "Suspend a profile",
	Summary: "Hides a profile with all that it wrote, until it is shown again. Its owner reads why.",
	HTTP:    Route{"POST", "/api/operator/profiles/{handle}/suspend", 204}, For: Operators, Codes: []Code{NotFound, Conflict},
	Example: Suspension{"asha", "sells what is forbidden"},
})

var LiftSuspension = declare[HandleInput, None](Operation{
	Name: "lift_suspension", Title: "Show a suspended profile again",
	Summary: "Ends the suspension of a profile.",
	HTTP:    Route{"POST", "/api/operator/profiles/{handle}/lift", 204}, For: Operators, Codes: []Code{NotFound, Conflict},
	Example: HandleInput{Handle: "asha"},
})
