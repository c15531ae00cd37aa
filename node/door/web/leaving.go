package web

import (
	"strings"

	"stoa/protocol"
)

// The pages where an owner deletes a profile or closes the account.

const leavePath = "/account/leave"

// waitWords say what is settled first.
var waitWords = map[protocol.LeaveReason]string{
	protocol.LeaveBids:     english("Bids on the attention board that are not over: %s."),
	protocol.LeaveRefunds:  english("Refunds that you have not made yet: %s."),
	protocol.LeaveMeetings: english("Meetings that are agreed: %s."),
}

// departure returns the deletion under way of the page's profile, or of the account; nil for none.
func (a *account) departure() *protocol.Departure {
	for i, d := range a.Account.Leaving {
		if d.Handle == nil && a.Handle == "" || d.Handle != nil && *d.Handle == a.Handle {
			return &a.Account.Leaving[i]
		}
	}
	return nil
}

// leavingHandle returns a profile that leaves, "" for none.
func (a *account) leavingHandle() string {
	for _, d := range a.Account.Leaving {
		if d.Handle != nil {
			return *d.Handle
		}
	}
	return ""
}

// named are the handle of the page's profile, or those of the account.
func (a *account) named() []string {
	if a.Handle != "" {
		return []string{a.Handle}
	}
	return a.Account.Handles
}

func joined(handles []string) string { return strings.Join(handles, ", @") }
