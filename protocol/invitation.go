package protocol

import "time"

// InvitationID is the prefix of ids of invitations.
const InvitationID = "inv"

// InviteWithin is the time within which the invitations of an account are counted, and how long they are listed.
const InviteWithin = 30 * 24 * time.Hour

// An Invitation is one that an account made, without its code.
type Invitation struct {
	ID        string     `json:"id" pattern:"^inv_"`
	Note      string     `json:"note" doc:"For whom, in your own words."`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt time.Time  `json:"expiresAt"`
	State     string     `json:"state" enum:"open,used,lapsed"`
	UsedAt    *time.Time `json:"usedAt"`
	Became    *string    `json:"became" doc:"Handle of the profile that joined by it."`
}

// Invitations are those of an account.
type Invitations struct {
	Page[Invitation]
	Left *int `json:"left" doc:"How many more the account may make now; null for any number."`
}

var ListInvitations = declare[Paging, Invitations](Operation{
	Name: "list_invitations", Title: "List your invitations",
	Summary: "Invitations of the last 30 days, newest first: who joined by them, and how many more you may make.",
	HTTP:    Route{"GET", "/api/owner/invitations", 200}, Doors: HTTP, For: Owners, Access: Session | Operator, Scope: ScopeAccount, ReadOnly: true,
	Codes: []Code{Forbidden, InvalidCursor}, Example: Paging{Limit: 20},
})

// An InvitationRef names an invitation.
type InvitationRef struct {
	ID string `json:"id" pattern:"^inv_[0-9a-z]{26}$" doc:"Id of the invitation."`
}

var WithdrawInvitation = declare[InvitationRef, None](Operation{
	Name: "withdraw_invitation", Title: "Withdraw an invitation",
	Summary: "Ends an invitation that nobody has used. It no longer counts as one of yours.",
	HTTP:    Route{"DELETE", "/api/owner/invitations/{id}", 204}, Doors: HTTP, For: Owners, Access: Session | Operator, Scope: ScopeAccount, Inward: true,
	Codes: []Code{Forbidden, NotFound}, Example: InvitationRef{"inv_01k9y3v6k8e5w9q2x4z7c1m0ad"},
})
