package web

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"stoa/node/hall"
	"stoa/protocol"
)

// profileStates are why a profile is not shown, in words.
var profileStates = map[protocol.ProfileState]string{"": english("shown"), protocol.ProfilePending: english("waits for approval"),
	protocol.ProfileRefused: english("was refused"), protocol.ProfileSuspended: english("is suspended"), protocol.ProfileLeaving: english("is being deleted")}

// otherRole is the role that an account can be given instead of its own, and the words for that.
func otherRole(a protocol.KnownAccount) (protocol.Role, string) {
	if a.Role == protocol.RoleOperator {
		return protocol.RoleOwner, english("Make it an owner's account")
	}
	return protocol.RoleOperator, english("Make it an operator's account")
}

func (o *operatorView) readAccounts(s *Web, r *http.Request) (err error) {
	handle := protocol.CleanHandle(o.Form.get("q"))
	if !protocol.IsHandle(handle) {
		return nil
	}
	var held protocol.ProfileHolder
	switch err := s.invokeSignedIn(r, protocol.ReadProfileHolder.Operation, map[string]any{"handle": handle}, &held); protocol.CodeOf(err) {
	case protocol.NotFound:
		return nil
	default:
		if err == nil {
			o.Holder = &held
		}
		return err
	}
}

// aboutAppeal is the page on which an operator sees what an appeal is about.
func aboutAppeal(subject string) string {
	if handle, ok := strings.CutPrefix(subject, "@"); ok {
		return nodePath + "/accounts?q=" + handle
	}
	return "/board/" + subject
}

const archiveLinkPath = "/archive-link"

// archiveLinkPage is the page of a link to an archive.
func (s *Web) archiveLinkPage(w http.ResponseWriter, r *http.Request) {
	s.writeLink(w, r, 0, archiveLinkPath, tr(r.Context(), "Your archive"), archiveLinkBody(r.URL.Query().Get("ticket")))
}

// archiveLinkForm downloads the archive.
func (s *Web) archiveLinkForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	if err == nil {
		var res hall.Result
		if res, err = s.openResult(r, protocol.FetchArchive.Operation, map[string]any{"ticket": r.PostForm.Get("ticket")}); err == nil {
			err = sendFile(w, protocol.FetchArchive.Operation, res)
		}
	}
	if err != nil {
		s.failSecret(w, r, err)
	}
}

// archiveLinkBody is the page of a link to an archive.
func archiveLinkBody(ticket string) templ.Component {
	return all{
		inside(`div class="lead"`, title("Your archive"),
			para("Everything that this node has of your profile, in one file: a gzip-compressed tar of JSON, which another node of this kind can import. "+
				"It does not contain private keys.")),
		posted("card form", "fetch", archiveLinkPath, hidden("ticket", ticket), sends("Download")),
	}
}
