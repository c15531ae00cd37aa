package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stoa/protocol"
)

// The owner's page of calendars: the calendar servers that a person's profile is connected to, and the
// address of the feed that calendar programs read.

// calendarForms are the operations that the page has forms for, with what is said when one is done.
var calendarForms = map[*protocol.Operation]string{
	protocol.ConnectCalendar.Operation:    english("The server is connected."),
	protocol.CheckCalendar.Operation:      english("The server has answered."),
	protocol.ChooseCalendars.Operation:    english("The choice was saved."),
	protocol.DisconnectCalendar.Operation: english("The server is disconnected, and its password deleted."),
	protocol.MakeMeetingFeed.Operation:    "",
	protocol.DeleteMeetingFeed.Operation:  english("The address shows nothing any more."),
}

var calendarsTitle = english("Calendars")

func (s *Web) fillCalendars(r *http.Request, o *ownMeetings) error {
	if err := s.person(r, o); err != nil {
		return err
	}
	if err := s.invokeSignedIn(r, protocol.ListCalendars.Operation, map[string]any{"handle": o.Handle}, &o.Calendars); err != nil {
		return err
	}
	if slices.ContainsFunc(o.Calendars.Items, asking) && o.Done != "" { // soon after the form, before something else is typed
		o.Refresh, o.Done = 3, english("The node asks the server. The result shows here in a moment.")
	} else if slices.ContainsFunc(o.Calendars.Items, func(a protocol.CalendarAccount) bool { return a.LastError != nil }) &&
		(o.Done == calendarForms[protocol.ConnectCalendar.Operation] || o.Done == calendarForms[protocol.CheckCalendar.Operation]) {
		o.Done = "" // the error says it
	}
	return nil
}

// asking reports whether the answer of a calendar server is a matter of seconds.
func asking(a protocol.CalendarAccount) bool { return a.Checking && a.LastError == nil }

// calendarForm does what a form of the page is for, and shows the address of a new feed, which is shown only
// once.
func (s *Web) calendarForm(w http.ResponseWriter, r *http.Request, op *protocol.Operation) error {
	args := inputOf(op, r.PostForm)
	if op == protocol.MakeMeetingFeed.Operation {
		o := &ownMeetings{Feed: &protocol.MeetingFeed{}}
		if err := s.invokeSignedIn(r, op, args, o.Feed); err != nil {
			return err
		}
		s.showOwnMeetings(w, r, o, calendarsTitle, (*Web).fillCalendars, calendarsBody)
		return nil
	}
	if err := s.invokeSignedIn(r, op, args, nil); err != nil {
		return err
	}
	redirect(w, r, "/account/meetings/calendars?"+url.Values{"handle": {r.PostForm.Get("handle")}, "done": {op.Name}}.Encode())
	return nil
}

// calendarMark says whether a calendar server does what it is asked.
func calendarMark(ctx context.Context, a protocol.CalendarAccount) mark {
	switch {
	case a.LastError != nil:
		return mark{Word: tr(ctx, "does not work"), Class: "fair"}
	case a.Checking:
		return mark{Word: tr(ctx, "is asked now"), Class: "poor"}
	}
	return mark{Word: tr(ctx, "works"), Class: "good"}
}

// calendarName returns what a found calendar is called, the end of its address if it has no name.
func calendarName(f protocol.FoundCalendar) string {
	if f.Name != "" {
		return f.Name
	}
	parts := strings.Split(strings.Trim(f.URL, "/"), "/")
	return parts[len(parts)-1]
}

// webcal returns an address by which a calendar program is opened.
func webcal(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		return "webcal://" + rest
	}
	return address
}
