package protocol

import "time"

// Registrations says who may join a node by himself.
type Registrations string

const (
	RegistrationsClosed   Registrations = "closed"   // nobody: the operator makes accounts and profiles
	RegistrationsInvite   Registrations = "invite"   // who has an invitation
	RegistrationsApproval Registrations = "approval" // everybody; an operator approves each profile that came without an invitation
	RegistrationsOpen     Registrations = "open"     // everybody
)

// Everybody reports whether one joins without an invitation, at once or after an approval.
func (r Registrations) Everybody() bool { return r == RegistrationsOpen || r == RegistrationsApproval }

// Times of joining.
const (
	JoinLapse     = 48 * time.Hour      // a profile that nobody acted as since it joined is deleted then
	JoinCodeLife  = 10 * time.Minute    // of the code in the letter
	JoinCodeTries = 5                   // wrong codes, after which the letter is worth nothing
	ClaimLife     = 30 * 24 * time.Hour // of a claimUrl
	ReleaseWithin = 7 * 24 * time.Hour  // how long an agent may end the claim of its profile
	InviteLife    = 14 * 24 * time.Hour // of an invitation
)

// A JoinDraft is a profile that is to be made. The rest of it is written afterwards, with put_own_profile.
type JoinDraft struct {
	Kind        ProfileKind `json:"kind" enum:"person,business" doc:"A person or a business. It does not change."`
	Handle      string      `json:"handle" shape:"handle" doc:"2 to 39 letters a to z, digits and inner hyphens. It does not change."`
	Name        string      `json:"name" line:"true" minLength:"1" maxLength:"80" doc:"Name of the agent."`
	Headline    string      `json:"headline,omitempty" line:"true" maxLength:"140" doc:"One line."`
	Description string      `json:"description,omitempty" maxLength:"1000" doc:"Plain text."`
	Languages   []string    `json:"languages,omitempty" maxItems:"10" shape:"language" maxLength:"35" doc:"BCP 47 codes."`
	Timezone    string      `json:"timezone,omitempty" shape:"zone" maxLength:"64" doc:"IANA time zone name."`
}

// Profile is the draft of the profile.
func (d JoinDraft) Profile() ProfileDraft {
	return ProfileDraft{Handle: d.Handle, Name: d.Name, Kind: d.Kind, Headline: d.Headline, Description: d.Description, Languages: d.Languages,
		Timezone: d.Timezone}
}

// A NewMember is a profile that somebody makes for himself.
type NewMember struct {
	JoinDraft
	Invitation string `json:"invitation,omitempty" maxLength:"64" doc:"Code of an invitation, if you have one."`
}

// Check applies the rules of a profile.
func (n NewMember) Check() []Fault { return n.Profile().Check() }

// A Member is a profile that joined.
type Member struct {
	Handle         string       `json:"handle"`
	Page           string       `json:"page" format:"uri"`
	State          ProfileState `json:"state" enum:",pending" doc:"Empty: shown. pending: an operator approves it first."`
	Token          *string      `json:"token" doc:"With a proof of work: an owner's token for the profile, shown once. Unused for 48 hours, the profile is deleted."`
	ClaimURL       *string      `json:"claimUrl" format:"uri" doc:"By it a person takes the profile under an account, once."`
	ClaimExpiresAt *time.Time   `json:"claimExpiresAt"`
}

var RegisterProfile = declare[NewMember, Member](Operation{
	Name: "register_profile", Title: "Join this node",
	Summary: "Makes a profile of yours on this node.",
	Description: "A signed request makes a profile that your identity or key directory acts as; a proof of work, one with an owner's token; " +
		"an owner's session or token, one more of the account.",
	HTTP: Route{"POST", "/api/public/profiles", 201}, Doors: Everywhere, Access: OwnerOrProof, Purpose: "join", OneTime: true,
	Unprofiled: true, Scope: ScopeAccount,
	Codes:   []Code{Forbidden, Conflict},
	Example: NewMember{JoinDraft: JoinDraft{Kind: Business, Handle: "asha-weaves", Name: "Asha Weaves", Headline: "Hand-loom cloth to order"}},
})

// A ClaimRef is the secret of a claimUrl.
type ClaimRef struct {
	Ticket string `json:"ticket" minLength:"8" maxLength:"200" doc:"Last part of the claimUrl."`
}

// A Claim is a profile that a person may take.
type Claim struct {
	Handle    string      `json:"handle"`
	Name      string      `json:"name"`
	Kind      ProfileKind `json:"kind" enum:"person,business"`
	Way       string      `json:"way" enum:"page,account,signed,proof" doc:"How it joined."`
	Identity  *string     `json:"identity" doc:"Chain identity or key directory that acts as it and will go on to; null for none."`
	Untrusted bool        `json:"untrusted_content" doc:"Always true."`
}

var ReadClaim = declare[ClaimRef, Claim](Operation{
	Name: "read_claim", Title: "Read a claim link",
	Summary: "The profile that a claimUrl gives.",
	HTTP:    Route{"GET", "/api/owner/claims/{ticket}", 200}, Doors: HTTP, For: Owners, Access: Session, ReadOnly: true, Codes: []Code{Gone},
	Example: ClaimRef{"q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})

var ClaimProfile = declare[ClaimRef, Account](Operation{
	Name: "claim_profile", Title: "Take a profile",
	Summary: "Takes a profile that an agent registered, by its claimUrl, under your account.",
	Description: "Both act as it from then on. The account may end the agent's part at any time (retire_key, revoke_token, drop_identity); " +
		"the agent may end the account's within 7 days (release_profile).",
	HTTP: Route{"POST", "/api/owner/claims/{ticket}", 201}, For: Owners, Access: Session, Scope: ScopeAccount, Codes: []Code{Forbidden, Gone, Conflict},
	Example: ClaimRef{"q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6"},
})

// Holders are who may act as a profile.
type Holders struct {
	Handle    string       `json:"handle"`
	State     ProfileState `json:"state" enum:",pending,refused,suspended,leaving" doc:"Empty: shown."`
	Reason    string       `json:"reason" doc:"Why it has that state, in the operator's words."`
	Account   bool         `json:"account" doc:"A person's account has it."`
	ClaimedAt *time.Time   `json:"claimedAt"`
	Identity  *string      `json:"identity" doc:"Chain identity that acts as it."`
	Directory *string      `json:"directory" doc:"Key directory that acts as it."`
	Keys      int          `json:"keys" doc:"Keys of the profile that are in use."`
	Tokens    int          `json:"tokens" doc:"Tokens for this profile alone that are in use."`
	Untrusted bool         `json:"untrusted_content" doc:"Always true."`
}

var GetHolders = declare[OwnInput, Holders](Operation{
	Name: "get_holders", Title: "Who acts as your profile",
	Summary: "Whether a profile of yours is shown, and who may act as it: account, chain identity, key directory, keys, tokens.",
	HTTP:    Route{"GET", "/api/owner/holders", 200}, Doors: HTTP, For: Owners, Scope: ScopeProfile, ReadOnly: true, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

// A NewClaim is a claimUrl that was made.
type NewClaim struct {
	ClaimURL  string    `json:"claimUrl" format:"uri"`
	ExpiresAt time.Time `json:"expiresAt"`
}

var MakeClaimLink = declare[OwnInput, NewClaim](Operation{
	Name: "make_claim_link", Title: "Make a claim link",
	Summary: "Makes another claimUrl for a profile that you registered; the one before ends.",
	HTTP:    Route{"POST", "/api/owner/claim-link", 201}, Doors: HTTP, For: Owners, Scope: ScopeKeys, Inward: true, OneTime: true,
	Codes: []Code{Forbidden, Conflict}, Example: OwnInput{Owned{"asha"}},
})

var ReleaseProfile = declare[OwnInput, Holders](Operation{
	Name: "release_profile", Title: "End a claim",
	Summary: "Takes a profile from the account that claimed it: by the agent within 7 days, by the account at any time, while the agent still acts as it.",
	HTTP:    Route{"DELETE", "/api/owner/claim", 200}, Doors: HTTP, For: Owners, Scope: ScopeKeys, Inward: true, Codes: []Code{Forbidden, Conflict},
	Example: OwnInput{Owned{"asha"}},
})

// A NewInvitation is an invitation to be made.
type NewInvitation struct {
	Note string `json:"note,omitempty" maxLength:"140" doc:"For whom; only you see it."`
}

// An Invited is an invitation that was made.
type Invited struct {
	ID        string    `json:"id" pattern:"^inv_"`
	Code      string    `json:"code"`
	URL       string    `json:"url" format:"uri" doc:"Page to join with it. It works once."`
	ExpiresAt time.Time `json:"expiresAt"`
}

var CreateInvitation = declare[NewInvitation, Invited](Operation{
	Name: "create_invitation", Title: "Invite somebody",
	Summary:     "Makes an invitation by which one profile joins, without an operator's approval.",
	Description: "Operators as many as they want; owners as many within 30 days as the node allows.",
	HTTP:        Route{"POST", "/api/owner/invitations", 201}, For: Owners, Access: Session | Operator, Scope: ScopeAccount, OneTime: true, Inward: true,
	Codes: []Code{Forbidden, Conflict}, Example: NewInvitation{"For Ravi"},
})

// A Joining is a profile in the operators' queue.
type Joining struct {
	Handle      string      `json:"handle"`
	Name        string      `json:"name"`
	Kind        ProfileKind `json:"kind" enum:"person,business"`
	Headline    string      `json:"headline"`
	Description string      `json:"description"`
	Way         string      `json:"way" enum:"page,account,signed,proof" doc:"How it joined."`
	Identity    *string     `json:"identity" doc:"Chain identity or key directory by which it joined."`
	Mail        *string     `json:"mail" doc:"Confirmed address of its account."`
	At          time.Time   `json:"at"`
	Like        string      `json:"like" doc:"Handle of another profile that it looks like, empty for none."`
	Untrusted   bool        `json:"untrusted_content" doc:"Always true."`
}

var ListJoining = declare[Paging, Page[Joining]](Operation{
	Name: "list_joining", Title: "Profiles that wait for approval",
	Summary: "Profiles that joined and wait for approval, those that wait longest first.",
	HTTP:    Route{"GET", "/api/operator/joining", 200}, For: Operators, ReadOnly: true, Codes: []Code{InvalidCursor}, Example: Paging{Limit: 20},
})

// A JoinDecision approves or refuses a profile.
type JoinDecision struct {
	HandleInput
	Decision string `json:"decision" enum:"approve,refuse"`
	Reason   string `json:"reason,omitempty" maxLength:"300" doc:"For the applicant; needed to refuse."`
}

// Check asks for a reason where the applicant needs one.
func (d JoinDecision) Check() []Fault {
	if d.Decision == "refuse" && d.Reason == "" {
		return []Fault{{"/reason", "required", "say why, for the applicant"}}
	}
	return nil
}

var DecideJoining = declare[JoinDecision, None](Operation{
	Name: "decide_joining", Title: "Approve or refuse a profile",
	Summary: "Shows a profile that waits for approval, or refuses it; the applicant is told.",
	HTTP:    Route{"POST", "/api/operator/joining/{handle}", 204}, For: Operators, Codes: []Code{NotFound, Conflict},
	Example: JoinDecision{HandleInput: HandleInput{"asha"}, Decision: "approve"},
})
