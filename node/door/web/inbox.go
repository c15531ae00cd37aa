package web

import (
	"context"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"stoa/protocol"
)

func (s *Web) inboxPage(w http.ResponseWriter, r *http.Request) {
	s.inbox(w, r, protocol.ListThreads.Operation, func(f *form, who protocol.Account) (view, error) {
		if f.get("handle") == "" && len(who.Handles) > 0 {
			f.values.Set("handle", who.Handles[0])
			f.args["handle"] = who.Handles[0]
		}
		var page protocol.Page[protocol.Thread]
		if len(who.Handles) > 0 {
			if err := s.invokeSignedIn(r, protocol.ListThreads.Operation, f.args, &page); err != nil {
				return view{}, err
			}
		}
		return view{Title: tr(r.Context(), "Inbox"), Of: f.get("handle"), Body: inboxBody(f, who, page.Items, f.next("/account/threads", page.Next))}, nil
	})
}

func (s *Web) inboxThread(w http.ResponseWriter, r *http.Request) {
	s.showInbox(w, r, nil, inboxSaid{})
}

// An inboxSaid says what the form of a thread did.
type inboxSaid struct {
	done    string
	blocked string // the id of a block that can be lifted, "" for none
}

// inboxDone says what the form of a thread did.
var inboxDone = map[string]string{
	protocol.AnswerThread.Name: english("Your answer is sent."), protocol.CloseThread.Name: english("The conversation is closed."),
	protocol.BlockWriter.Name:   english("The writer is blocked."),
	protocol.UnblockWriter.Name: english("The writer may write again."),
}

// inboxForms are what the forms of a thread do.
var inboxForms = []*protocol.Operation{
	protocol.AnswerThread.Operation, protocol.CloseThread.Operation, protocol.BlockWriter.Operation, protocol.UnblockWriter.Operation,
}

// inboxForm answers a thread, closes it, blocks its writer, or lifts that block.
func (s *Web) inboxForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	f := newSent(r.PostForm)
	args := f.args("message", "note")
	args["threadId"] = r.PathValue("id")
	if f.do == protocol.UnblockWriter.Name {
		args = f.args("id")
	}
	said := inboxSaid{done: inboxDone[f.do]}
	err := error(protocol.Errorf(protocol.InvalidRequest, "there is no such form here"))
	for _, op := range []*protocol.Operation{protocol.AnswerThread.Operation, protocol.CloseThread.Operation, protocol.UnblockWriter.Operation} {
		if f.do == op.Name {
			err = s.invokeSignedIn(r, op, args, nil)
		}
	}
	if f.do == protocol.BlockWriter.Name {
		var made protocol.BlockedWriter
		err = s.invokeSignedIn(r, protocol.BlockWriter.Operation, args, &made)
		said.blocked = made.ID
	}
	if err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		if protocol.CodeOf(err) == protocol.Unauthorized {
			s.refusedPage(w, r, f)
			return
		}
		s.showInbox(w, r, f, inboxSaid{})
		return
	}
	s.showInbox(w, r, nil, said)
}

// showInbox writes the page of a thread: with the form that was refused, or what one did.
func (s *Web) showInbox(w http.ResponseWriter, r *http.Request, sent *sent, said inboxSaid) {
	id := r.PathValue("id")
	s.inbox(w, r, protocol.GetThread.Operation, func(f *form, _ protocol.Account) (view, error) {
		if !protocol.IsID(protocol.ThreadID, id) {
			return view{}, protocol.Errorf(protocol.NotFound, "there is no thread with that id")
		}
		f.args["threadId"] = id
		var found protocol.Conversation
		if err := s.invokeSignedIn(r, protocol.GetThread.Operation, f.args, &found); err != nil {
			return view{}, err
		}
		if found.New > 0 { // what the page shows is read; if this fails, it stays marked as new
			_ = s.invokeSignedIn(r, protocol.MarkThreadRead.Operation, map[string]any{"threadId": id}, nil)
		}
		return view{Title: tr(r.Context(), "A conversation with %s", "@"+found.Handle), Of: found.Handle, Status: sent.status(), Live: true,
			Body: threadBody(f, sent, found, f.next("/account/threads/"+id, found.Messages.Next), said)}, nil
	})
}

// inbox shows the page that build makes for the signed-in user; others are redirected to the
// sign-in page.
func (s *Web) inbox(w http.ResponseWriter, r *http.Request, op *protocol.Operation, build func(*form, protocol.Account) (view, error)) {
	var who protocol.Account
	err := s.invokeSignedIn(r, protocol.GetAccount.Operation, protocol.None{}, &who)
	if protocol.CodeOf(err) == protocol.Unauthorized {
		toSignIn(w, r)
		return
	}
	var v view
	if err == nil {
		var f *form
		if f, err = s.form(r, op); err == nil {
			v, err = build(f, who)
		}
	}
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Path = "/account"
	s.writePrivate(w, r, v.Status, v)
}

// threadStates are the filters of an inbox with their labels.
var threadStates = [][2]string{
	{"", english("All")}, {string(protocol.ThreadOpen), english("Waiting for an answer")}, {string(protocol.ThreadAnswered), english("Answered")},
	{string(protocol.ThreadClosed), english("Closed##conversations")},
}

// handleCrumbs lead to a page for each profile.
func handleCrumbs(path string, handles []string, here string) (links []templ.Component) {
	for _, h := range handles {
		links = append(links, profileCrumb(path+"?"+query("handle", h), h, h == here))
	}
	return links
}

// otherCrumbs lead to a page for the other profiles.
func otherCrumbs(path string, handles []string, here string) []templ.Component {
	return handleCrumbs(path, slices.DeleteFunc(slices.Clone(handles), func(h string) bool { return h == here }), here)
}

// choiceCrumbs select a part of a list: values with the keys of their words.
func choiceCrumbs(ctx context.Context, options [][2]string, chosen string, to func(value string) string) (links []templ.Component) {
	for _, o := range options {
		links = append(links, crumb{to(o[0]), tr(ctx, o[1]), o[0] == chosen})
	}
	return links
}

func threadState(t protocol.Thread) templ.Component {
	switch t.State {
	case protocol.ThreadOpen:
		return worded("fair", "waits for an answer")
	case protocol.ThreadAnswered:
		return worded("good", "answered")
	}
	return worded("poor", "closed##a conversation")
}

// returnMark marks a thread that may ask for a return, and says who decides.
func returnMark(t protocol.Thread) templ.Component {
	if t.Return == nil {
		return templ.NopComponent
	}
	decides := spanned("you decide")
	if above := t.Return.AgentDecides; above != nil {
		decides = spanned("above %s you decide", called(*above))
	}
	return all{worded("fair", "may be a return"), decides}
}
