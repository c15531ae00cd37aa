package protocol

import "slices"

// A MeetingState is the state of a meeting request (contract §5).
type MeetingState string

const (
	MeetingUnconfirmed MeetingState = "unconfirmed" // its mailbox was not confirmed; invisible to the person
	MeetingSubmitted   MeetingState = "submitted"   // waits for the person
	MeetingProposed    MeetingState = "proposed"    // other times wait for the requester
	MeetingApproved    MeetingState = "approved"    // it takes place; a move raises its sequence
	MeetingDeclined    MeetingState = "declined"    // by the person
	MeetingWithdrawn   MeetingState = "withdrawn"   // by the requester, before it was approved
	MeetingExpired     MeetingState = "expired"     // nobody decided in time, or it gave way before its mailbox was confirmed
	MeetingCancelled   MeetingState = "cancelled"   // by either side, after it was approved
	MeetingDone        MeetingState = "done"        // its time is over
	MeetingNoShow      MeetingState = "no_show"     // the requester did not come, says the person
)

// MeetingStates is every state, in the order of a request's life.
var MeetingStates = []MeetingState{MeetingUnconfirmed, MeetingSubmitted, MeetingProposed, MeetingApproved, MeetingDeclined, MeetingWithdrawn,
	MeetingExpired, MeetingCancelled, MeetingDone, MeetingNoShow}

var meetingMoves = map[MeetingState][]MeetingState{
	MeetingUnconfirmed: {MeetingSubmitted, MeetingWithdrawn, MeetingExpired},
	MeetingSubmitted:   {MeetingApproved, MeetingProposed, MeetingDeclined, MeetingWithdrawn, MeetingExpired},
	MeetingProposed:    {MeetingApproved, MeetingDeclined, MeetingWithdrawn, MeetingExpired},
	MeetingApproved:    {MeetingApproved, MeetingCancelled, MeetingDone, MeetingNoShow},
	MeetingDone:        {MeetingNoShow},
}

// May reports whether a request may move from a state to another.
func (s MeetingState) May(to MeetingState) bool { return slices.Contains(meetingMoves[s], to) }

// Waits reports whether a request in the state waits for its requester or for the person.
func (s MeetingState) Waits() bool {
	return s == MeetingUnconfirmed || s == MeetingSubmitted || s == MeetingProposed
}
