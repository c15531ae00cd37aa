package web

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The page of a link in a notice to a person about a meeting request.

const decisionPath = "/meeting-decision"

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
	s.writeLink(w, r, 0, decisionPath, tr(r.Context(), "Meet %s?", l.Request.Requester), decisionBody(l, with.TimeZone, ticket))
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
	s.writeLink(w, r, 0, decisionPath, title, decisionDone(title, m, with.TimeZone))
}

// failDecision answers for a link that decides nothing: it says why, and leads to the person's own page.
func (s *Web) failDecision(w http.ResponseWriter, r *http.Request, err error) {
	e := protocol.AsError(err)
	title := map[protocol.Code]string{protocol.Gone: english("This link has ended"), protocol.Conflict: english("Nothing was decided")}[e.Code]
	if title == "" {
		s.failSecret(w, r, err)
		return
	}
	title = tr(r.Context(), title)
	s.writeLink(w, r, e.Code.Status(), decisionPath, title, linkEnded(title, refusalText(r.Context(), e), signInLink("/account/meetings", "Your meetings")))
}

// decisionLabels are the buttons of the page, by what they do.
var decisionLabels = map[protocol.MeetingDecides]button{
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

func decisionDone(title string, m protocol.OwnMeeting, zone string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return all{
			linkTitle(title),
			timeCard(clocks(ctx, timeOf(m), zone, deref(m.TimeZone))),
			when(m.Note != "", in(`p role="status" class="card" lang=""`, m.Note)),
			requesterSaid(m),
			signInLink("/account/meetings/"+m.ID, "The meeting"),
		}
	})
}

// warningList says what is to be known about the time of a request.
func warningList(warnings []protocol.MeetingWarning) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return when(len(warnings) > 0, inside(`ul class="known fair" aria-label="`+templ.EscapeString(tr(ctx, "To be known"))+`"`,
			forEach(warnings, func(x protocol.MeetingWarning) templ.Component { return sayIn("li", warningWords[x]) })))
	})
}
