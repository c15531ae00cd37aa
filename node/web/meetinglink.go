package web

import (
	"net/http"

	"stoa/protocol"
)

// meetingLinkPage shows what the link of a mail about a meeting would do. Mail scanners open it, so
// nothing is done.
func (s *Web) meetingLinkPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	var l protocol.MeetingLink
	if err := s.invokeOpen(r, protocol.ReadMeetingLink.Operation, map[string]any{"ticket": ticket}, &l); err != nil {
		s.failSecret(w, r, err)
		return
	}
	s.writePrivate(w, r, 0, view{Title: meetingLinkTitle(l), Path: "/meeting-link", Secret: true, Body: meetingLinkBody(l, ticket)})
}

func (s *Web) meetingLinkForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	var done protocol.MeetingLinkDone
	if err == nil {
		err = s.invokeOpen(r, protocol.UseMeetingLink.Operation, map[string]any{"ticket": r.PostForm.Get("ticket"), "do": r.PostForm.Get("do")}, &done)
	}
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	title := meetingLinkDone[done.Done]
	s.writePrivate(w, r, 0, view{Title: title, Path: "/meeting-link", Secret: true, Body: meetingLinkResult(title, done.URL)})
}

// meetingLinkDone says what a link has done.
var meetingLinkDone = map[protocol.MeetingLinkDo]string{
	protocol.MeetingLinkConfirm: "Your request is on its way. You get a mail when it is decided.",
	protocol.MeetingLinkStop:    "You get no more mail about meetings from this node.",
}

func meetingLinkTitle(l protocol.MeetingLink) string {
	if l.Handle == "" {
		return "No more mail about meetings?"
	}
	return "Did you ask for this meeting?"
}
