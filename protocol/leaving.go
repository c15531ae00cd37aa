package protocol

import "time"

// UndoFor is how long a deletion can be undone after what is deleted was hidden.
const UndoFor = 7 * 24 * time.Hour

// A LeaveReason is what is settled before something is deleted.
type LeaveReason string

const (
	LeaveBids     LeaveReason = "bids"     // on the profile's attention board, unpaid or live
	LeaveOrders   LeaveReason = "orders"   // of the profile's shop, unpaid or not handed over
	LeaveRefunds  LeaveReason = "refunds"  // that the owner of the board or shop has not made
	LeaveMeetings LeaveReason = "meetings" // that are agreed and not over
)

// A LeaveWait is what is settled first.
type LeaveWait struct {
	What  LeaveReason `json:"what" enum:"bids,orders,refunds,meetings"`
	Count int         `json:"count" minimum:"1"`
	Until *time.Time  `json:"until" doc:"When the last is over by itself."`
}

// A LeaveState says how far a deletion is.
type LeaveState string

const (
	LeaveSettling LeaveState = "settling" // nothing new is taken
	LeaveHidden   LeaveState = "hidden"   // and can be undone
	LeaveErasing  LeaveState = "erasing"
)

// A Departure is a deletion under way.
type Departure struct {
	Handle  *string     `json:"handle" doc:"Null for the account."`
	State   LeaveState  `json:"state" enum:"settling,hidden,erasing"`
	Waits   []LeaveWait `json:"waits"`
	AskedAt time.Time   `json:"askedAt"`
	GoneAt  *time.Time  `json:"goneAt" doc:"Until when it can be undone."`
}

var DeleteProfile = declare[OwnInput, Departure](Operation{
	Name: "delete_profile", Title: "Delete your profile",
	Summary:     "Hides a profile of yours; after 7 days, in which restore_profile undoes it, it and what it wrote are deleted, here and at other nodes.",
	Description: "Money and agreed meetings are settled first. Repeat it to see how far it is.",
	HTTP:        Route{"DELETE", "/api/owner/profile", 200}, For: Owners, Scope: ScopeProfile, Codes: []Code{Forbidden},
	Example: OwnInput{Owned{"asha"}},
})

var RestoreProfile = declare[OwnInput, None](Operation{
	Name: "restore_profile", Title: "Undo a deletion",
	Summary: "Undoes delete_profile.",
	HTTP:    Route{"POST", "/api/owner/profile/restore", 204}, For: Owners, Scope: ScopeProfile, Idempotent: true, Codes: []Code{Forbidden, Conflict},
	Example: OwnInput{Owned{"asha"}},
})

var CloseAccount = declare[None, Departure](Operation{
	Name: "close_account", Title: "Close your account",
	Summary: "Closes your account and deletes its profiles. Every browser is signed out, tokens end; signing in again within 7 days undoes it.",
	Description: "Needs a browser that signed in within the last 15 minutes. Money and agreed meetings of its profiles are settled first; " +
		"until then the account stays signed in.",
	HTTP: Route{"DELETE", "/api/owner/account", 200}, Doors: HTTP, For: Owners, Access: Session, Browser: true, Scope: ScopeAccount,
	Codes:   []Code{Forbidden, SignInAgain},
	Example: None{},
})

// An UndoTicket is the end of a link that undoes a deletion.
type UndoTicket struct {
	Ticket string `json:"ticket,omitempty" maxLength:"200" doc:"What the address has after ticket=; over HTTP send it as Authorization: Bearer."`
}

var UndoDeletion = declare[UndoTicket, None](Operation{
	Name: "undo_deletion", Title: "Undo a deletion by its link",
	Summary: "Undoes delete_profile or close_account, by the link of the mail that announces it. It works once, within the 7 days.",
	HTTP:    Route{"POST", "/api/owner/undo-deletion", 204}, Doors: HTTP, For: Owners, Secret: "ticket", Inward: true,
	Codes: []Code{Unauthorized, Gone}, Example: UndoTicket{},
})
