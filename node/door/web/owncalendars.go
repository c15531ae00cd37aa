package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The owner's page of calendars: the calendar servers that a person's profile is connected to, and the
// address of the feed that calendar programs read.

func (s *Web) fillCalendars(r *http.Request, o *ownMeetings) error {
	if err := s.invokeSignedIn(r, protocol.ListCalendars.Operation, map[string]any{"handle": o.Handle}, &o.Calendars); err != nil {
		return err
	}
	if slices.ContainsFunc(o.Calendars.Items, asking) && o.Done != "" { // soon after the form, before something else is typed
		o.Refresh, o.Done = 3, english("The node asks the server. The result shows here in a moment.")
	} else if slices.ContainsFunc(o.Calendars.Items, func(a protocol.CalendarAccount) bool { return a.LastError != nil }) &&
		(o.Done == doneWords["connect_calendar"] || o.Done == doneWords["check_calendar"]) {
		o.Done = "" // the error says it
	}
	return nil
}

// asking reports whether the answer of a calendar server is a matter of seconds.
func asking(a protocol.CalendarAccount) bool { return a.Checking && a.LastError == nil }

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

func feedLabel(o *ownMeetings) string {
	if o.Calendars.FeedAt == nil {
		return english("Make an address")
	}
	return english("Make another address")
}

func feedForm(do, handle, label string) templ.Component {
	return posted("", "", "/account/meetings#feed", ownKeys(do, handle, ""), once(), quietly(label))
}

// calendarAct is a form with one button.
func calendarAct(do, handle, id, label string) templ.Component {
	return posted("", "", meetingsPath, ownKeys(do, handle, id), quietly(label))
}

// chooseForm is the choice of the calendars that are read and written.
func chooseForm(f *sent, handle string, a protocol.CalendarAccount) templ.Component {
	at, found := "choose_calendars-"+a.ID, [][2]string{}
	for _, c := range a.Calendars {
		found = append(found, [2]string{c.URL, calendarName(c)})
	}
	t := choiceTable.change("reads", func(c control) control { return c.from(found) }).change("writes", func(c control) control {
		return c.from(append([][2]string{{"", english("none of this server")}}, found...))
	})
	return posted("form", at, meetingsPath, ownKeys("choose_calendars", handle, a.ID), t.fields(f, at, t.shows(a)), sends("Save the choice"))
}

func passwordForm(f *sent, handle string, a protocol.CalendarAccount) templ.Component {
	return posted("form", "", meetingsPath, ownKeys("connect_calendar", handle, a.ID), hidden("address", a.Address, "user", a.User),
		ask(protocol.ConnectCalendar.Operation, f, "connect_calendar-"+a.ID, nil, calendarPassword...), sends("Save the password"))
}

// feedBody shows a new address when the page cannot be read.
func feedBody(f *protocol.MeetingFeed) templ.Component {
	return all{title("The address of your meetings"), feedNote(f), ahead(meetingsPath+"/calendars", "Your calendars")}
}

func connectForm(f *sent, handle string) templ.Component {
	return posted("form", "connect_calendar", meetingsPath, ownKeys("connect_calendar", handle, ""), once(),
		loginTable.fields(f, "connect_calendar", nil), whichAddress(), sends("Connect"))
}

// feedNote shows the address of a new feed.
func feedNote(f *protocol.MeetingFeed) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		if f == nil {
			return templ.NopComponent
		}
		return inside(`div class="done" role="status"`, inside("p", bold("The address of your meetings.",
			tr(ctx, "Copy it now: it is shown only once. Anyone who has it reads your meetings; a former address has ended."))),
			copyable(f.URL), ahead(webcal(f.URL), "Open it in the calendar program of this device"))
	})
}
