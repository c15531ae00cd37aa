package web

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// The page of a meeting request, for its requester. It also opens with the ticket of a mail about the request,
// which is moved from the address to the cookie.

// meetingRoutes returns the routes of forms and links about meetings. They are not cached and not in the
// site map.
func (s *Web) meetingRoutes() []Route {
	return []Route{
		s.forms("/:at/meet", s.meetForm, protocol.RequestMeeting.Operation),
		{Pattern: "/meeting-link", Handler: http.HandlerFunc(s.meetingLinkPage)},
		s.forms("/meeting-link", s.meetingLinkForm, protocol.UseMeetingLink.Operation),
		{Pattern: "/meeting-decision", Handler: http.HandlerFunc(s.decisionPage)},
		s.forms("/meeting-decision", s.decisionForm, protocol.UseDecisionLink.Operation),
		{Pattern: "/meetings/:id", Handler: http.HandlerFunc(s.meetingPage)},
		s.forms("/meetings/:id", s.meetingForm, protocol.GetMeeting.Operation, protocol.CancelMeeting.Operation, protocol.PickMeetingTime.Operation,
			protocol.AddDevice.Operation),
	}
}

func (s *Web) meetingPage(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if ticket := r.URL.Query().Get("ticket"); ticket != "" {
		if s.invokeOpen(r, protocol.GetMeeting.Operation, map[string]any{"id": id, "statusToken": ticket}, nil) == nil {
			s.open(w, openedMeeting, id, ticket)
		}
		w.Header().Set("Referrer-Policy", "no-referrer")
		redirect(w, r, "/meetings/"+id)
		return
	}
	s.showMeeting(w, r, nil)
}

// meetingForm opens the page with a status token, takes a proposed time, or cancels.
func (s *Web) meetingForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.failSecret(w, r, err)
		return
	}
	id, token := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("statusToken"))
	var err error
	switch r.PostForm.Get("do") {
	case "":
		if err = s.invokeOpen(r, protocol.GetMeeting.Operation, map[string]any{"id": id, "statusToken": token}, nil); err == nil {
			s.open(w, openedMeeting, id, token)
		}
	case protocol.AddDevice.Name:
		if err = s.addDevice(r, openedMeeting); err == nil {
			redirect(w, r, "/meetings/"+id+nowTold)
			return
		}
	case protocol.CancelMeeting.Name:
		err = s.invokeOpen(r, protocol.CancelMeeting.Operation, openedMeeting.args(r), nil)
	case protocol.PickMeetingTime.Name:
		args := openedMeeting.args(r)
		args["startsAt"] = r.PostForm.Get("startsAt")
		err = s.invokeOpen(r, protocol.PickMeetingTime.Operation, args, nil)
	default:
		err = protocol.Errorf(protocol.InvalidRequest, "there is no such form here")
	}
	if err != nil {
		s.showMeeting(w, r, protocol.AsError(err))
		return
	}
	redirect(w, r, "/meetings/"+id)
}

// showMeeting writes the page of a request, with why a form of it was refused; to a browser that may not
// read the request, a page that asks for the token.
func (s *Web) showMeeting(w http.ResponseWriter, r *http.Request, refused *protocol.Error) {
	id, args := r.PathValue("id"), openedMeeting.args(r)
	var m protocol.MeetingRequest
	err := s.invokeOpen(r, protocol.GetMeeting.Operation, args, &m)
	var with protocol.MeetingInfo
	if err == nil {
		with, err = read(s, r, protocol.GetMeetingInfo, map[string]any{"handle": m.Handle})
	}
	code := protocol.CodeOf(err)
	status := 0
	if refused != nil {
		status = refused.Code.Status()
	}
	var body templ.Component
	switch {
	case err == nil:
		token, _ := args["statusToken"].(string)
		body = meetingBody(meetingView{m, with, s.Base + "/meetings/" + id + "#" + token, refused, s.tells(r)})
	case locked(protocol.MeetingID, id, code):
		status, body = code.Status(), meetingLocked(id, refused != nil)
	default:
		s.failSecret(w, r, err)
		return
	}
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	s.writePrivate(w, r, status, view{Title: tr(r.Context(), "Your meeting request"), Path: "/meetings/{id}", Secret: true, Helps: true, Push: true, Body: body})
}

// A meetingView is what the page shows.
type meetingView struct {
	protocol.MeetingRequest
	With    protocol.MeetingInfo // the person
	Address string               // opens the page elsewhere
	Refused *protocol.Error      // why a form was refused; nil for none
	Tells   notifying
}

// clocks returns a time on the clocks of both sides, the requester's first; once when they are the same.
func (v meetingView) clocks(ctx context.Context, t protocol.MeetingTime) []string {
	return clocks(ctx, t, deref(v.TimeZone), v.With.TimeZone)
}

// clocks returns a time on the clocks of some zones, each once; "" is no zone.
func clocks(ctx context.Context, t protocol.MeetingTime, zones ...string) (lines []string) {
	for _, zone := range zones {
		if zone == "" {
			continue
		}
		line := between(ctx, t, zone)
		if len(lines) == 0 || line != lines[0] {
			lines = append(lines, line)
		}
	}
	return lines
}

// words say to the requester where the request is.
func (v meetingView) words(ctx context.Context) string {
	who := "@" + v.Handle
	switch v.State {
	case protocol.MeetingUnconfirmed:
		return cmp.Or(detail(ctx, v.Note), v.Note)
	case protocol.MeetingSubmitted:
		return tr(ctx, "%s has the request and decides. Nothing is on a calendar before.", who)
	case protocol.MeetingProposed:
		return tr(ctx, "%s cannot meet you then, and proposes other times. Take one, or withdraw the request.", who)
	case protocol.MeetingApproved:
		return tr(ctx, "%s has approved: the meeting takes place.", who)
	case protocol.MeetingDeclined:
		return tr(ctx, "%s has declined the request.", who)
	case protocol.MeetingWithdrawn:
		return tr(ctx, "You have withdrawn the request.")
	case protocol.MeetingExpired:
		return tr(ctx, "Nobody decided in time. Ask again for another time.")
	case protocol.MeetingCancelled:
		return tr(ctx, "The meeting was cancelled.")
	case protocol.MeetingNoShow:
		return tr(ctx, "%s says that you did not come.", who)
	}
	return tr(ctx, "The meeting is over.")
}

// meetingMark names a state.
func meetingMark(ctx context.Context, state protocol.MeetingState) mark {
	m := mark{Word: tr(ctx, meetingStates[state]), Class: "poor"}
	switch {
	case state == protocol.MeetingApproved || state == protocol.MeetingDone:
		m.Class = "good"
	case state.Waits():
		m.Class = "fair"
	}
	return m
}

var meetingStates = map[protocol.MeetingState]string{
	protocol.MeetingUnconfirmed: english("to be confirmed by mail"),
	protocol.MeetingSubmitted:   english("waits for a decision"),
	protocol.MeetingProposed:    english("other times proposed"),
	protocol.MeetingApproved:    english("approved"), protocol.MeetingDeclined: english("declined"),
	protocol.MeetingWithdrawn: english("withdrawn"), protocol.MeetingExpired: english("expired"),
	protocol.MeetingCancelled: english("cancelled"), protocol.MeetingDone: english("over"), protocol.MeetingNoShow: english("not attended"),
}

func meetingClass(state protocol.MeetingState) string {
	if state == protocol.MeetingApproved {
		return "done"
	}
	return "card"
}

// hour formats a moment on the clock of the first zone that is given.
func hour(ctx context.Context, t time.Time, zones ...string) string {
	at := t.In(zoneNamed(cmp.Or(zones...)))
	return words.Of(ctx).Time(at, "2 January 2006, 15:04") + " " + zoneWords(at)
}

func timeCard(lines []string) templ.Component {
	return inside(`div class="card"`, timeLines(lines))
}

// meetingLocked asks for the status token.
func meetingLocked(id string, tried bool) templ.Component {
	return all{
		inside(`div class="lead"`, title("A meeting request"),
			para("This page opens in the browser that made the request, by the link of a mail about it, or with its status token.")),
		notOpened(tried, english("Check the token. A request that nobody confirmed is deleted after 24 hours.")),
		opening("/meetings/"+id, "statusToken", english("Status token"), english("Show the request")),
	}
}

// notOpened says that a token did not open a page, and what to do, which is a key; nothing when none was tried.
func notOpened(tried bool, todo string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return when(tried, failed("That did not open it.", tr(ctx, todo)))
	})
}

// timeLines shows a time on the clocks of both sides.
func timeLines(lines []string) (shown all) {
	for i, line := range lines {
		shown = append(shown, in(`p class="`+either(i == 0, "until", "hint")+`"`, line))
	}
	return shown
}

// placeText shows where a meeting is, as a link if it is one.
func placeText(place string) templ.Component { return inside(`bdi lang=""`, externalLink(place)) }
