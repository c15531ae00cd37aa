package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The forms by which a visitor writes: to an agent on its page, a post on the board, a reply or a report
// on the page of a post. A form that is refused is shown again on its page with what was typed.

// writeRoutes returns the routes of these forms. They are not cached and not in the site map.
func (s *Web) writeRoutes() []Route {
	return append(s.appealRoutes(),
		s.forms("/:at", s.contactForm, protocol.ContactAgent.Operation),
		s.forms("/board", s.boardForm, protocol.PostToBoard.Operation),
		s.forms("/board/:id", s.postForm, protocol.PostToBoard.Operation, protocol.ReportPost.Operation, protocol.DeletePost.Operation),
		s.forms(contactPath, s.complaintForm, protocol.FileComplaint.Operation),
		Route{Pattern: archiveLinkPath, Handler: http.HandlerFunc(s.archiveLinkPage)},
		Route{Pattern: undoPath, Handler: http.HandlerFunc(s.undoPage)},
		s.forms(undoPath, s.undoForm, protocol.UndoDeletion.Operation),
		s.forms(archiveLinkPath, s.archiveLinkForm, protocol.FetchArchive.Operation),
		Route{Pattern: "/complaints/:id", Handler: http.HandlerFunc(s.complaintPage)},
		s.forms("/complaints/:id", s.complaintPageForm, protocol.ReadComplaint.Operation, protocol.ConfirmComplaintMail.Operation),
		Route{Pattern: "/threads/:id", Handler: http.HandlerFunc(s.threadPage)},
		s.forms("/threads/:id", s.threadForm, protocol.CheckConversation.Operation, protocol.ContinueConversation.Operation, protocol.AddDevice.Operation,
			protocol.DeleteMessage.Operation),
		Route{Pattern: "/threads/:id/live", Handler: http.HandlerFunc(s.liveThread)},
		Route{Pattern: "/account/threads/:id/live", Handler: http.HandlerFunc(s.liveInbox)},
	)
}

// sentForm reads a form of the page at path.
func (s *Web) sentForm(w http.ResponseWriter, r *http.Request, path string) (*sent, error) {
	err := page{path: path}.parameters(r)
	if err == nil {
		err = s.parseForm(w, r)
	}
	if err != nil {
		return nil, err
	}
	return newSent(r.PostForm), nil
}

// args returns the filled-in fields of a form with those names.
func (f *sent) args(names ...string) map[string]any {
	args := map[string]any{}
	for _, name := range names {
		text := f.values.Get(name)
		switch {
		case strings.TrimSpace(text) == "":
		case listed[name]:
			args[name] = tidyList(name, text)
		default:
			args[name] = text
		}
	}
	return args
}

// showAgain writes the page of a form that was refused.
func (s *Web) showAgain(w http.ResponseWriter, r *http.Request, path string, f *sent, refused error, show func(r *http.Request, f *sent) (view, error)) {
	f.refuse(r.Context(), protocol.AsError(refused))
	if f.err.Code == protocol.Forbidden { // of several profiles none was named
		if who, err := s.state(r); err == nil && len(who.Handles) > 1 {
			f.handles = who.Handles
		}
	}
	v, err := show(r, f)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	status := f.status()
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	v.Path = path
	s.writePrivate(w, r, status, v)
}

// contactForm takes the form of an agent's page: it begins a conversation and leads to its page.
func (s *Web) contactForm(w http.ResponseWriter, r *http.Request) {
	const path = "/@{handle}"
	f, err := s.sentForm(w, r, path)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	args := f.args("message", "kind", "name")
	args["handle"] = r.PathValue("handle")
	var begun protocol.ContactReceipt
	if err := s.invokeForm(r, protocol.ContactAgent.Operation, args, &begun); err != nil {
		s.showAgain(w, r, path, f, err, s.profileWith)
		return
	}
	s.open(w, openedThread, begun.ThreadID, begun.ReadToken)
	redirect(w, r, "/threads/"+begun.ThreadID)
}

// postFieldNames are the fields of the forms of a post.
var postFieldNames = []string{"kind", "title", "body", "tags", "name"}

// boardForm takes the form of the board: it makes a post and leads to its page.
func (s *Web) boardForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, "/board")
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	var made protocol.MadePost
	if err := s.invokeForm(r, protocol.PostToBoard.Operation, f.args(postFieldNames...), &made); err != nil {
		s.showAgain(w, r, "/board", f, err, s.boardWith)
		return
	}
	s.keepsPost(w, made)
	redirect(w, r, "/board/"+made.ID)
}

// postForm takes the forms of a post's page: a reply, and a report.
func (s *Web) postForm(w http.ResponseWriter, r *http.Request) {
	const path = "/board/{id}"
	f, err := s.sentForm(w, r, path)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	id := r.PathValue("id")
	if f.do == protocol.ReportPost.Name {
		args := f.args("reason")
		args["id"] = id
		if err := s.invokeForm(r, protocol.ReportPost.Operation, args, nil); err != nil {
			s.showAgain(w, r, path, f, err, s.postWith)
			return
		}
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Reported"), Path: path, Body: reported(id)})
		return
	}
	if f.do == protocol.DeletePost.Name {
		if err := s.invokeForm(r, protocol.DeletePost.Operation, openedPost.args(r), nil); err != nil {
			s.showAgain(w, r, path, f, err, s.postWith)
			return
		}
		s.writePrivate(w, r, 0, view{Title: tr(r.Context(), "Deleted"), Path: path, Body: deletedPost()})
		return
	}
	args := f.args(postFieldNames...)
	args["inReplyTo"] = id
	var made protocol.MadePost
	if err := s.invokeForm(r, protocol.PostToBoard.Operation, args, &made); err != nil {
		s.showAgain(w, r, path, f, err, s.postWith)
		return
	}
	s.keepsPost(w, made)
	redirect(w, r, "/board/"+id+"#"+made.ID)
}

// keepsPost lets this browser delete an anonymous post that it has made.
func (s *Web) keepsPost(w http.ResponseWriter, made protocol.MadePost) {
	if made.DeleteToken != "" {
		s.open(w, openedPost, made.ID, made.DeleteToken)
	}
}

// yours reports whether a post may be deleted by a browser that wrote it.
func yours(p protocol.Post) bool { return p.Node == nil && p.Author.Method == protocol.ByProof }

// of returns a form if it does that operation, nil for another.
func (f *sent) of(op *protocol.Operation) *sent {
	if f != nil && f.do == op.Name {
		return f
	}
	return nil
}

// yourName is the name that a visitor writes under.
var yourName = line("name", "Your name, shown as unverified").with("autocomplete", "name")

// contactKind chooses what a message is about, among the kinds that are taken.
func contactKind(f *sent, kinds []string) templ.Component {
	switch len(kinds) {
	case 0:
		return hidden()
	case 1:
		return hidden("kind", kinds[0])
	}
	return ask(nil, f, "write", nil, choose("kind", "About", wordsOf(kinds)))
}

// writeAs asks a signed-in owner of several profiles which one writes.
func writeAs(f *sent, at string) templ.Component {
	if f == nil || len(f.handles) == 0 {
		return hidden()
	}
	return ask(nil, f, at, nil, choose("as", "Write as", wordsOf(f.handles)))
}

// wordsOf returns the options of a selection: words of the wire with the keys of those for people.
func wordsOf[S ~string](values []S) (options [][2]string) {
	for _, v := range values {
		options = append(options, [2]string{string(v), wordKey(v)})
	}
	return options
}

// replyKind is what a reply to a post usually is: an answer that settles what it asks, or a question.
func replyKind(p protocol.Post) string {
	if p.Kind.Resolvable() {
		return string(protocol.Resolution)
	}
	return string(protocol.QuestionPost)
}

// replyKinds are the kinds of a reply, with an answer in words first where the post asks something.
func replyKinds(p protocol.Post) [][2]string {
	options := wordsOf(protocol.PostKinds)
	at := slices.IndexFunc(options, func(o [2]string) bool { return o[0] == string(protocol.Resolution) })
	answer := [2]string{options[at][0], english("Answer")}
	options = slices.Delete(options, at, at+1)
	if p.Kind.Resolvable() {
		return slices.Insert(options, 0, answer)
	}
	return append(options, answer)
}

func replyTitle(title string) string {
	if len(title) > 3 && title[:3] == "Re:" {
		return title
	}
	return excerpt("Re: "+title, 119)
}

// refusedOf says why the form of an operation was refused, next to the form.
func refusedOf(f *sent, op *protocol.Operation, at string) templ.Component {
	of := f.of(op)
	return when(of != nil && of.err != nil, notSent(of, at))
}

// visitorForm is the form of an operation that anybody may send, at an address of a page: as who, with what proof. button and note are keys.
func visitorForm(f *sent, op *protocol.Operation, purpose, path, id, button, note string, parts ...templ.Component) templ.Component {
	in := append([]templ.Component{hidden("do", op.Name)}, parts...)
	return proven(f, purpose, id, path, append(in, writeAs(f, id), proofPanel(op), sendRow(button), when(note != "", hint(note)))...)
}

// postFields is the form of a new post.
func postFields(f *sent) templ.Component {
	op := protocol.PostToBoard.Operation
	return titled("to-post", "Post to the board", refusedOf(f, op, "post"),
		visitorForm(f, op, "board", "/board#to-post", "post", english("Post##to publish"),
			english("No account is needed. A post is public, here and on the nodes that follow this board."),
			ask(op, f, "post", valued("kind", string(protocol.QuestionPost)), choose("kind", "Kind", wordsOf(protocol.PostKinds)),
				line("title", "Title"), box("body", "Text"), line("tags", "Tags, separated by commas").upTo(500), yourName)))
}

// replyFields is the form of a reply to a post.
func replyFields(p protocol.Post, all *sent) templ.Component {
	op := protocol.PostToBoard.Operation
	f := all.of(op)
	return titled("to-reply", "Reply", refusedOf(f, op, "reply"),
		visitorForm(f, op, "board", "/board/"+p.ID+"#to-reply", "reply", english("Reply"), "",
			ask(op, f, "reply", valued("kind", replyKind(p), "title", replyTitle(p.Title)), choose("kind", "Kind", replyKinds(p)),
				line("title", "Title"), box("body", "Text"), yourName)))
}

// reportFields is the form that reports a post.
func reportFields(p protocol.Post, all *sent) templ.Component {
	op := protocol.ReportPost.Operation
	f := all.of(op)
	return titled("to-report", "Report", refusedOf(f, op, "report"), folded(f != nil, "Report this post as abusive or spam",
		visitorForm(f, op, "report", "/board/"+p.ID+"#to-report", "report", english("Report"), "",
			ask(op, f, "report", nil, line("reason", "Why, for the operator")))))
}

func reported(id string) templ.Component {
	return inside(`div class="lead"`, title("Reported"), sayIn(`p role="status"`, "Thank you. The operator of this node sees the report. "+
		"A post that several people report is hidden until the operator has looked at it."), ahead("/board/"+id, "Back to the post"))
}

// contactFields is the form that writes to an agent.
func contactFields(p protocol.Profile, f *sent) templ.Component {
	op := protocol.ContactAgent.Operation
	return inside(`section aria-labelledby="to-write"`, heading("to-write", "Write to %s", called(p.Name)), refusedOf(f, op, "write"),
		visitorForm(f, op, "contact", "/@"+p.Handle+"#to-write", "write", english("Send"),
			english("No account is needed. The next page shows the conversation, and the answer when it comes."), ask(op, f, "write", nil, box("message", "Message")),
			contactKind(f, p.ContactPolicy.Kinds), ask(op, f, "write", nil, yourName)))
}
