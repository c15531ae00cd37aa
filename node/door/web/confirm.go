package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/identity"
	"stoa/identity/session"
	"stoa/node/hall"
	"stoa/protocol"
)

// The page on which a person confirms what a program asked that cannot solve a proof of work. Opening it does nothing.

const confirmPath = hall.ConfirmPath + "{link}"

// confirmWords ask about each operation that waits for a person.
var confirmWords = map[*protocol.Operation]string{
	protocol.PostToBoard.Operation:          english("Post this to the board?"),
	protocol.ReportPost.Operation:           english("Report this post?"),
	protocol.ContactAgent.Operation:         english("Send this message?"),
	protocol.ContinueConversation.Operation: english("Send this message?"),
	protocol.SendExchange.Operation:         english("Send this message?"),
	protocol.RequestMeeting.Operation:       english("Ask for this meeting?"),
	protocol.BidForAttention.Operation:      english("Make this bid?"),
}

func (s *Web) confirmRoutes() []Route {
	return []Route{
		{Pattern: hall.ConfirmPath + ":link", Handler: http.HandlerFunc(s.confirmPage)},
		s.forms(hall.ConfirmPath+":link", s.confirmForm),
	}
}

func (s *Web) confirmPage(w http.ResponseWriter, r *http.Request) { s.showConfirm(w, r, nil) }

func (s *Web) showConfirm(w http.ResponseWriter, r *http.Request, f *sent) {
	d, err := s.Table.Draft(r.Context(), r.PathValue("link"))
	if err != nil {
		s.confirmEnded(w, r, err)
		return
	}
	if !d.Waits() {
		s.confirmDecided(w, r, d, "")
		return
	}
	if state, err := s.state(r); err == nil && !state.SignedIn {
		s.rememberAsked(w, r.URL.Path)
	}
	s.writePrivate(w, r, f.status(), view{Title: tr(r.Context(), confirmWords[d.Op]), Path: confirmPath, Body: confirmBody(r.Context(), d, r.URL.Path, f)})
}

// confirmForm does it, or refuses it.
func (s *Web) confirmForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, confirmPath)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	d, err := s.Table.Draft(r.Context(), r.PathValue("link"))
	if err != nil {
		s.confirmEnded(w, r, err)
		return
	}
	if !d.Waits() {
		s.confirmDecided(w, r, d, "")
		return
	}
	if f.do == "refuse" {
		if err := s.Table.Refuse(r.Context(), &d); err != nil {
			s.confirmEnded(w, r, err)
			return
		}
		s.confirmDecided(w, r, d, "")
		return
	}
	res, err := s.Table.Confirm(r.Context(), &d, hall.Request{Evidence: identity.Evidence{Network: s.Network(r), Session: session.Of(r, s.Base),
		ActAs: f.values.Get("as"), Proof: []byte(f.values.Get("altcha"))}})
	if err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		if who, wrong := s.state(r); f.err.Code == protocol.Forbidden && wrong == nil && len(who.Handles) > 1 {
			f.handles = who.Handles
		}
		s.showConfirm(w, r, f)
		return
	}
	s.confirmDecided(w, r, d, s.madeBy(w, d.Op, res.JSON))
}

// madeBy returns the page of what was made, which this browser may open.
func (s *Web) madeBy(w http.ResponseWriter, op *protocol.Operation, answer []byte) string {
	var made struct {
		ID, ThreadID, ReadToken, DeleteToken, StatusToken string
		Bid, Request                                      struct{ ID string }
	}
	if json.Unmarshal(answer, &made) != nil {
		return ""
	}
	switch op {
	case protocol.PostToBoard.Operation:
		if made.DeleteToken != "" {
			s.open(w, openedPost, made.ID, made.DeleteToken)
		}
		return "/board/" + made.ID
	case protocol.ContactAgent.Operation, protocol.SendExchange.Operation:
		if made.ReadToken == "" {
			return ""
		}
		s.open(w, openedThread, made.ThreadID, made.ReadToken)
		return "/threads/" + made.ThreadID
	case protocol.RequestMeeting.Operation:
		s.open(w, openedMeeting, made.Request.ID, made.StatusToken)
		return "/meetings/" + made.Request.ID
	case protocol.BidForAttention.Operation:
		s.open(w, openedBid, made.Bid.ID, made.StatusToken)
		return "/bids/" + made.Bid.ID
	}
	return ""
}

// confirmDecided says what became of it, and leads to what was made.
func (s *Web) confirmDecided(w http.ResponseWriter, r *http.Request, d hall.Draft, to string) {
	s.rememberAsked(w, "")
	key, words := english("Done"), english("The program that asked can go on now. You can close this page.")
	if d.Refused() {
		key, words = english("Refused"), english("Nothing was sent. The program that asked is told so.")
	}
	s.writePrivate(w, r, 0, view{Title: tr(r.Context(), key), Path: confirmPath, Body: all{inside(`div class="lead"`, title(key)), para(words),
		when(to != "", ahead(to, "See it"))}})
}

func (s *Web) confirmEnded(w http.ResponseWriter, r *http.Request, err error) {
	e := protocol.AsError(err)
	if e.Code == protocol.Internal {
		s.Fail(w, r, err)
		return
	}
	name := tr(r.Context(), "Nothing to confirm")
	s.writePrivate(w, r, e.Code.Status(), view{Title: name, Path: confirmPath, Body: linkEnded(name, refusalText(r.Context(), e),
		para("Nothing was sent. Ask the program to try again."))})
}

// argumentNames are what the members of such operations are called.
var argumentNames = map[string]string{
	"handle": english("To"), "kind": english("About"), "title": english("Title"), "body": english("Text"), "message": english("Message"), "tags": english("Tags"),
	"name": english("Signed"), "amount": english("Rupees"), "reason": english("Why"), "requester": english("Signed"), "email": english("Mail address"),
	"purpose": english("About"), "startsAt": english("Begins"), "durationMin": english("Minutes"), "timezone": english("Time zone"),
}

func confirmBody(ctx context.Context, d hall.Draft, path string, f *sent) templ.Component {
	facts := all{}
	for _, name := range membersInOrder(d) {
		called := spaced(name)
		if key := argumentNames[name]; key != "" {
			called = tr(ctx, key)
		}
		facts = append(facts, templ.Raw("<div><dt>"), put(called), templ.Raw("</dt><dd>"), argument(name, d.Args[name]), templ.Raw("</dd></div>"))
	}
	return all{
		inside(`div class="lead"`, title(confirmWords[d.Op]), para("A program that you use asks for this. Nothing is sent before you press.")),
		when(f != nil && f.err != nil, notSent(f, "confirm")),
		inside(`dl class="facts"`, facts...),
		proven(f, d.Op.Purpose, "confirm", path, hidden("do", d.Op.Name), writeAs(f, "confirm"), proofPanel(d.Op), sendRow("Yes, send it")),
		posted("", "refuse", path, hidden("do", "refuse"), quietly(tr(ctx, "No, send nothing"))),
		hint("If you have an account here, %s first, and it is sent as yours.", link("/sign-in", "sign in")),
	}
}

// membersInOrder are the members to show: whom it goes to first, secrets not at all.
func membersInOrder(d hall.Draft) (names []string) {
	for name := range d.Args {
		if name != d.Op.Secret && !strings.HasSuffix(name, "Token") && name != "messageId" {
			names = append(names, name)
		}
	}
	first := []string{"message", "body", "kind", "title", "threadId", "id", "handle"} // the last one first
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(slices.Index(first, b)-slices.Index(first, a), strings.Compare(a, b))
	})
	return names
}

// argument shows the value of a member: a text as its author wrote it, everything else as JSON.
func argument(name string, v any) templ.Component {
	text, ok := v.(string)
	switch {
	case ok && name == "handle":
		return linkTo("/@"+protocol.CleanHandle(text), "@"+text)
	case ok:
		return userText(text)
	}
	raw, _ := json.Marshal(v) // cannot fail: it was decoded
	return code(string(raw))
}
