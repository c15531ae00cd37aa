package web

import (
	"context"
	"net/url"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page where an account invites others to join.

const invitationsPath = "/account/invitations"

func invitationForm(f *sent) templ.Component {
	return posted("card form", "create_invitation", "/account", subtitle("A new invitation"), hidden("do", "create_invitation"), once(),
		ask(protocol.CreateInvitation.Operation, f, "create_invitation", nil, line("note", "For whom; only you see it")), sends("Make the link"))
}

// invitedBody shows a new invitation when the page cannot be read.
func invitedBody(i *protocol.Invited) templ.Component {
	return all{title("Invitations"), invitedNote(i), ahead("/account", "Your account")}
}

// invitesLeft says how many more the account may make, nil for any number.
func invitesLeft(left *int) templ.Component {
	switch {
	case left == nil:
		return templ.NopComponent
	case *left == 0:
		return para("You cannot invite anybody now: the operator decides how many an account may within 30 days.")
	case *left == 1:
		return para("You may invite one more within 30 days.")
	}
	return para("You may invite %d more within 30 days.", *left)
}

// invitedNote shows the link of a new invitation.
func invitedNote(i *protocol.Invited) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		if i == nil {
			return templ.NopComponent
		}
		return inside(`div class="done" role="status"`, inside("p", bold("Your invitation.",
			tr(ctx, "Copy the link now: it is shown only once. Whoever opens it first joins by it, until %s.", stamp(ctx, i.ExpiresAt)))),
			copyable(i.URL), inside("p", linkAs("", "mailto:?"+mailQuery(tr(ctx, "An invitation"), i.URL), "Write a mail with it")))
	})
}

// mailQuery is the part of an address of mail that begins a letter (RFC 6068): a space is not a plus sign there.
func mailQuery(subject, body string) string {
	return "subject=" + url.PathEscape(subject) + "&body=" + url.QueryEscape(body)
}
