package web

import (
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of a link in a notice to a person about a meeting request. Opening it does nothing, because link
// previews open it too; its buttons do, once.

func (s *Web) decisionPage(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	var l protocol.DecisionLink
	err := s.invokeOpen(r, protocol.ReadDecisionLink.Operation, map[string]any{"ticket": ticket}, &l)
	var with protocol.MeetingInfo
	if err == nil {
		with, err = read(s, r, protocol.GetMeetingInfo, map[string]any{"handle": l.Request.Handle})
	}
	if err != nil {
		s.failDecision(w, r, err)
		return
	}
	s.writeDecision(w, r, 0, tr(r.Context(), "Meet %s?", l.Request.Requester), decisionBody(l, with.TimeZone, ticket))
}

func (s *Web) decisionForm(w http.ResponseWriter, r *http.Request) {
	err := s.parseForm(w, r)
	var m protocol.OwnMeeting
	var with protocol.MeetingInfo
	if err == nil {
		err = s.invokeOpen(r, protocol.UseDecisionLink.Operation, map[string]any{"ticket": r.PostForm.Get("ticket"), "do": r.PostForm.Get("do")}, &m)
	}
	if err == nil {
		with, err = read(s, r, protocol.GetMeetingInfo, map[string]any{"handle": m.Handle})
	}
	if err != nil {
		s.failDecision(w, r, err)
		return
	}
	title := tr(r.Context(), "You have approved the meeting.")
	if m.State == protocol.MeetingDeclined {
		title = tr(r.Context(), "You have declined the meeting.")
	}
	s.writeDecision(w, r, 0, title, decisionDone(title, m, with.TimeZone))
}

// failDecision answers for a link that decides nothing: it says why, and leads to the person's own page.
func (s *Web) failDecision(w http.ResponseWriter, r *http.Request, err error) {
	switch e := protocol.AsError(err); e.Code {
	case protocol.Gone:
		s.writeDecision(w, r, http.StatusGone, tr(r.Context(), "This link has ended"),
			decisionEnded(tr(r.Context(), "This link has ended"), refusalText(r.Context(), e)))
	case protocol.Conflict:
		s.writeDecision(w, r, http.StatusConflict, tr(r.Context(), "Nothing was decided"),
			decisionEnded(tr(r.Context(), "Nothing was decided"), refusalText(r.Context(), e)))
	default:
		s.failSecret(w, r, err)
	}
}

func (s *Web) writeDecision(w http.ResponseWriter, r *http.Request, status int, title string, body templ.Component) {
	s.writePrivate(w, r, status, view{Title: title, Path: "/meeting-decision", Secret: true, Body: body})
}

// decisionLabels are the buttons of the page, by what they do.
var decisionLabels = map[protocol.MeetingDecides]struct{ label, class string }{
	protocol.DecideApprove: {english("Approve"), ""}, protocol.DecideDecline: {english("Decline"), "quiet"},
}

var warningWords = map[protocol.MeetingWarning]string{
	protocol.WarnOutsideHours: english("It is outside your hours."),
	protocol.WarnOverlaps:     english("You have something else at that time, or another request waits for it."),
	protocol.WarnOverlapsBusy: english("A calendar of yours says that you are busy at that time."),
	protocol.WarnBusyStale:    english("A calendar of yours could not be read for a while: you may be busy at that time."),
	protocol.WarnDisposable:   english("The mailbox is of a kind that anyone has for some minutes."),
	protocol.WarnInBuffer:     english("It is too close to something else."), protocol.WarnDayFull: english("That day has as many meetings as you allow."),
	protocol.WarnWeekFull: english("That week has as many meetings as you allow."),
}

func timeOf(m protocol.OwnMeeting) protocol.MeetingTime {
	return protocol.MeetingTime{StartsAt: m.StartsAt, EndsAt: m.EndsAt}
}
