package web

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The pages where an owner deletes a profile or closes the account.

const leavePath = "/account/leave"

// waitWords say what is settled first.
var waitWords = map[protocol.LeaveReason]string{
	protocol.LeaveBids:     english("Bids on the attention board that are not over: %s."),
	protocol.LeaveOrders:   english("Orders of the shop that are not over: %s."),
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

const undoPath = "/undo"

// undoPage is the page of the link that undoes a deletion.
func (s *Web) undoPage(w http.ResponseWriter, r *http.Request) {
	s.writeLink(w, r, 0, undoPath, tr(r.Context(), "Undo the deletion?"), undoBody(r.URL.Query().Get("ticket")))
}

// undoForm undoes it.
func (s *Web) undoForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	if err == nil {
		err = s.invokeOpen(r, protocol.UndoDeletion.Operation, map[string]any{"ticket": r.PostForm.Get("ticket")}, nil)
	}
	title := tr(r.Context(), "Everything is back.")
	switch {
	case protocol.CodeOf(err) == protocol.Gone || protocol.CodeOf(err) == protocol.Unauthorized:
		title = tr(r.Context(), "This link has ended.")
		why := tr(r.Context(), "The deletion was undone before, or its seven days are over.")
		s.writeLink(w, r, protocol.CodeOf(err).Status(), undoPath, title, linkEnded(title, why, signInLink("/account", "Your account")))
	case err != nil:
		s.failSecret(w, r, err)
	default:
		s.writeLink(w, r, 0, undoPath, title, all{linkTitle(title), sayIn("p", "It takes a moment until all posts are shown."),
			signInLink("/account", "Your account")})
	}
}

func joined(handles []string) string { return strings.Join(handles, ", @") }

// undoBody is the page of a link that undoes a deletion. Opening it does nothing: programs that read mail open links too.
func undoBody(ticket string) templ.Component {
	return all{
		inside(`div class="lead"`, title("Undo the deletion?"),
			para("Everything that was hidden is shown again, as it was, and what you wrote to others has its text again.")),
		posted("form", "undo", undoPath, hidden("ticket", ticket), sends("Undo it and keep everything")),
	}
}

// first offers the archive.
func first(a *account) templ.Component {
	return titled("export-title", "Download everything first",
		para("One file with the profile, its posts, conversations, items and settings. Another node can read it."),
		exportForm(a.sent("export_archive", a.Sent.named(), ""), a.named()))
}
