package web

import (
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page where an account invites others to join.

const invitationsPath = "/account/invitations"

func (a *account) readInvitations(s *Web, r *http.Request) error {
	a.Policy = s.Accounts.Registrations()
	args := map[string]any{}
	if after := r.URL.Query().Get("after"); after != "" {
		args["after"] = after
	}
	err := s.invokeSignedIn(r, protocol.ListInvitations.Operation, args, &a.Invitations)
	if a.Invitations.Next != nil {
		a.More = invitationsPath + "?" + query("after", *a.Invitations.Next)
	}
	return err
}

func invitationForm(f *sent) templ.Component {
	return posted("card form", "create_invitation", "/account", subtitle("A new invitation"), hidden("do", "create_invitation"), once(),
		ask(protocol.CreateInvitation.Operation, f, "create_invitation", nil, line("note", "For whom; only you see it")), sends("Make the link"))
}

// invitedBody shows a new invitation when the page cannot be read.
func invitedBody(i *protocol.Invited) templ.Component {
	return all{title("Invitations"), invitedNote(i), ahead("/account", "Your account")}
}
