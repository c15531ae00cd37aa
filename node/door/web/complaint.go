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

// complaintAsked asks the reader of a mailbox whether it is to be told.
func complaintAsked(id, ticket string) templ.Component {
	return all{
		inside(`div class="lead"`, title("A complaint"), para("Somebody complained to the operator of this node and gave your mail address. "+
			"Do you want to be told of the answer there? If it was not you, close this page.")),
		posted("card form", "confirm", "/complaints/"+id, hidden("do", protocol.ConfirmComplaintMail.Name, "ticket", ticket), sends("Yes, tell me")),
	}
}

// complaintFields is the form of a complaint to the operators.
func complaintFields(all *sent) templ.Component {
	op := protocol.FileComplaint.Operation
	f := all.of(op)
	return titled("to-complain", "Complain to the operator", refusedOf(f, op, "complain"),
		visitorForm(f, op, "report", contactPath+"#to-complain", "complain", english("Send the complaint"),
			english("No account is needed. You get a number and a page that shows the state and the answer; nobody else but the operator reads it."),
			ask(op, f, "complain", valued("kind", "unlawful"), line("subject", "What it is about: the address of the post, profile or message, or other"),
				choose("kind", "What is wrong", complaintKinds), box("text", "What happened, and what should be done"), answerTo)))
}

// answerTo is the mail address that is told of the answer.
var answerTo = line("mail", "Your mail address, to be told of the answer").with("type", "email", "autocomplete", "email")

// complaintLocked asks for the read token.
func complaintLocked(id string, tried bool) templ.Component {
	return all{
		inside(`div class="lead"`, title("A complaint"),
			para("This page opens in the browser that sent the complaint, with its read token, or by the link of a mail.")),
		notOpened(tried, english("Check the token.")), opening("/complaints/"+id, "readToken", english("Read token"), english("Show the complaint")),
	}
}
