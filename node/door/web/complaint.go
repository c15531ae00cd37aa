package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// Complaints to the operators: the form on the page /contact, and the page of a complaint for its author.

const (
	contactPath   = "/contact"
	complaintPath = "/complaints/{id}"
)

var openedComplaint = opened{"stoa_complaint", "/complaints/", "id", "readToken", 400} // longer than a complaint is kept by default

// complaintKinds are what is wrong, in words.
var complaintKinds = [][2]string{{"unlawful", english("It is against the law")}, {"privacy", english("It shows personal data")},
	{"abuse", english("It insults or threatens")}, {"fraud", english("It is a fraud")}, {"copyright", english("It copies somebody's work")},
	{"other", english("Something else")}}

// complaintNames are those, and the kind that has a page of its own.
var complaintNames = append(slices.Clone(complaintKinds), [2]string{protocol.Appeal, english("Appeal")})

var complaintStates = map[protocol.ComplaintState]string{protocol.ComplaintReceived: english("Not read yet"),
	protocol.ComplaintAcknowledged: english("Read, the answer is to come"), protocol.ComplaintResolved: english("Answered")}

// complaintForm takes the form of the page: it files a complaint and leads to its page.
func (s *Web) complaintForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, contactPath)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	args := f.args("subject", "kind", "text", "mail")
	args["language"] = words.Of(r.Context()).Code
	var filed protocol.ComplaintReceipt
	if err := s.invokeForm(r, protocol.FileComplaint.Operation, args, &filed); err != nil {
		s.showAgain(w, r, contactPath, f, err, s.contactWith)
		return
	}
	s.open(w, openedComplaint, filed.ID, filed.ReadToken)
	redirect(w, r, "/complaints/"+filed.ID)
}

// complaintPage shows a complaint to its author; with the ticket of a mail it asks whether the mailbox is to be told.
func (s *Web) complaintPage(w http.ResponseWriter, r *http.Request) {
	var c protocol.Complaint
	id := r.PathValue("id")
	if ticket := r.URL.Query().Get("ticket"); ticket != "" {
		if s.invokeOpen(r, protocol.ReadComplaint.Operation, map[string]any{"id": id, "readToken": ticket}, &c) != nil {
			s.showComplaint(w, r, 0, complaintAsked(id, ticket))
			return
		}
		s.open(w, openedComplaint, id, ticket)
		redirect(w, r, "/complaints/"+id)
		return
	}
	args := openedComplaint.args(r)
	token, _ := args["readToken"].(string)
	err := s.invokeForm(r, protocol.ReadComplaint.Operation, args, &c)
	if err == nil {
		s.showComplaint(w, r, 0, complaintBody(c, token, s.Base))
		return
	}
	if code := protocol.CodeOf(err); locked(protocol.ComplaintID, id, code) {
		s.showComplaint(w, r, code.Status(), complaintLocked(id, false))
		return
	}
	s.failSecret(w, r, err)
}

// complaintPageForm opens the page with a read token, or confirms the mailbox.
func (s *Web) complaintPageForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	id := r.PathValue("id")
	token := strings.TrimSpace(r.PostForm.Get("readToken"))
	if err == nil && r.PostForm.Get("do") == protocol.ConfirmComplaintMail.Name {
		token = r.PostForm.Get("ticket")
		err = s.invokeOpen(r, protocol.ConfirmComplaintMail.Operation, map[string]any{"id": id, "ticket": token}, nil)
	} else if err == nil {
		err = s.invokeOpen(r, protocol.ReadComplaint.Operation, map[string]any{"id": id, "readToken": token}, nil)
	}
	code := protocol.CodeOf(err)
	switch {
	case err == nil:
		s.open(w, openedComplaint, id, token)
		redirect(w, r, "/complaints/"+id)
	case locked(protocol.ComplaintID, id, code):
		s.showComplaint(w, r, code.Status(), complaintLocked(id, true))
	default:
		s.failSecret(w, r, err)
	}
}

func (s *Web) showComplaint(w http.ResponseWriter, r *http.Request, status int, body templ.Component) {
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Your complaint"), Path: complaintPath, Secret: true, Helps: true, Body: body})
}
