package web

import (
	"net/http"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// The pages on which the author of a hidden post, or the owner of a suspended profile, appeals. They are below the page of the post, whose
// cookie shows who wrote an anonymous one, and of the profile.

const (
	postAppeal    = "/board/{id}/appeal"
	profileAppeal = "/@{handle}/appeal"
)

// appealRoutes returns the routes of these pages. They are not cached and not in the site map.
func (s *Web) appealRoutes() []Route {
	return []Route{
		{Pattern: "/board/:id/appeal", Handler: http.HandlerFunc(s.appealPage)}, s.forms("/board/:id/appeal", s.appealForm, protocol.FileComplaint.Operation),
		{Pattern: "/:at/appeal", Handler: http.HandlerFunc(s.appealPage)}, s.forms("/:at/appeal", s.appealForm, protocol.FileComplaint.Operation),
	}
}

// appealPath is the path of the page of a request.
func appealPath(r *http.Request) string {
	if r.PathValue("id") != "" {
		return postAppeal
	}
	return profileAppeal
}

// appealPage asks for an appeal.
func (s *Web) appealPage(w http.ResponseWriter, r *http.Request) {
	v, err := s.appealWith(r, nil)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.writePrivate(w, r, 0, v)
}

// appealWith is the page with the form that was refused; f is nil for none.
func (s *Web) appealWith(r *http.Request, f *sent) (view, error) {
	path := appealPath(r)
	if err := (page{path: path}).parameters(r); err != nil {
		return view{}, err
	}
	at, why := "/@"+r.PathValue("handle"), ""
	if id := r.PathValue("id"); id != "" {
		at = "/board/" + id
		var found protocol.PostWithReplies
		err := s.invokeForm(r, protocol.GetBoardPost.Operation, map[string]any{"id": id}, &found)
		switch {
		case protocol.CodeOf(err) == protocol.Gone:
			why = protocol.AsError(err).Detail
		case err != nil:
			return view{}, err
		case found.Reason != nil:
			why = *found.Reason
		}
	}
	return view{Title: tr(r.Context(), "Appeal"), Path: path, Helps: true, Body: appealBody(at, why, f)}, nil
}

// appealForm files an appeal and leads to its page.
func (s *Web) appealForm(w http.ResponseWriter, r *http.Request) {
	path := appealPath(r)
	f, err := s.sentForm(w, r, path)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	args := f.args("text", "mail")
	args["kind"], args["subject"], args["language"] = protocol.Appeal, "@"+r.PathValue("handle"), words.Of(r.Context()).Code
	if id := r.PathValue("id"); id != "" {
		args["subject"] = id
		if c, err := r.Cookie(openedPost.cookie); err == nil {
			args[openedPost.open] = c.Value
		}
	}
	var filed protocol.ComplaintReceipt
	if err := s.invokeForm(r, protocol.FileComplaint.Operation, args, &filed); err != nil {
		s.showAgain(w, r, path, f, err, s.appealWith)
		return
	}
	s.open(w, openedComplaint, filed.ID, filed.ReadToken)
	redirect(w, r, "/complaints/"+filed.ID)
}

// appealBody is the page of an appeal about what is at a path; why is the reason, "" where the page of the account shows it.
func appealBody(at, why string, from *sent) templ.Component {
	op := protocol.FileComplaint.Operation
	f := from.of(op)
	return all{
		inside(`div class="lead"`, title("Appeal"), para("Did you write what was hidden, or is the suspended profile yours? Say once why it should be "+
			"shown again. The operator of this node decides, and you read the answer on the next page."), when(why != "", inside("p", ownWords(why)))),
		refusedOf(f, op, "appeal"),
		visitorForm(f, op, "report", at+"/appeal", "appeal", english("Send the appeal"), "",
			ask(op, f, "appeal", nil, box("text", "Why it should be shown again"), answerTo)),
	}
}
