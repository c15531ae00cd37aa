package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

const meetingLinkPath = "/meeting-link"

// meetingLinkPage shows what the link of a mail about a meeting would do. Mail scanners open it, so
// nothing is done. It is not the page of the request: the mail may have come to a stranger, who sees
// nothing that the requester wrote.
func (s *Web) meetingLinkPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	var l protocol.MeetingLink
	if err := s.invokeOpen(r, protocol.ReadMeetingLink.Operation, map[string]any{"ticket": ticket}, &l); err != nil {
		s.failSecret(w, r, err)
		return
	}
	s.writeLink(w, r, 0, meetingLinkPath, meetingLinkTitle(r.Context(), l), meetingLinkBody(l, ticket))
}

func (s *Web) meetingLinkForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	var done protocol.MeetingLinkDone
	if err == nil {
		args := map[string]any{"ticket": r.PostForm.Get("ticket"), "do": r.PostForm.Get("do")}
		if id := r.PostForm.Get("id"); id != "" {
			args["id"] = id
		}
		err = s.invokeOpen(r, protocol.UseMeetingLink.Operation, args, &done)
	}
	if err != nil {
		s.failSecret(w, r, err)
		return
	}
	if done.URL != nil { // the page of the request, which whoever reads the mailbox may see from now on
		redirect(w, r, *done.URL)
		return
	}
	title := tr(r.Context(), "You get no more mail about meetings from this node.")
	s.writeLink(w, r, 0, meetingLinkPath, title, linkTitle(title))
}

func meetingLinkTitle(ctx context.Context, l protocol.MeetingLink) string {
	if len(l.Requests) == 0 {
		return tr(ctx, "No more mail about meetings?")
	}
	return tr(ctx, "Did you ask for this meeting?")
}

// meetingLinkButtons are the buttons of the page, by what they do.
var meetingLinkButtons = map[protocol.MeetingLinkDo]button{
	protocol.MeetingLinkConfirm: {english("Yes, send the request"), ""}, protocol.MeetingLinkStop: {english("No more such mail to me"), "quiet"},
}

func meetingLinkButton(do protocol.MeetingLinkDo, ticket, id string) templ.Component {
	keys := hidden("ticket", ticket)
	if id != "" {
		keys = append(keys, "id", id)
	}
	return linkForm(meetingLinkPath, string(do)+id, keys, []protocol.MeetingLinkDo{do}, meetingLinkButtons, templ.NopComponent)
}

// meetingTime returns the time of a request in the zone of the requester, or in UTC.
func meetingTime(ctx context.Context, l protocol.MeetingLinkRequest) string {
	at := l.StartsAt.UTC()
	if zone, ok := protocol.Zone(l.TimeZone); ok {
		at = l.StartsAt.In(zone)
	}
	return words.Of(ctx).Time(at, "Monday, 2 January 2006, 15:04 MST")
}
