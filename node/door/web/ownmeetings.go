package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"stoa/protocol"
	"stoa/protocol/sorting"
)

// The owner's pages of meetings: the requests to a person, one request with what can be done, a week, and
// the settings. Their forms do operations of the owner, as those of the account page.

const meetingsPath = "/account/meetings"

// An ownMeetings is what the pages show.
type ownMeetings struct {
	Handles  []string // of the account
	Handle   string
	Settings protocol.MeetingSettings
	Turned   protocol.TurnedAway
	State    protocol.MeetingState // of the requests that are shown
	Waiting  []protocol.OwnMeeting // for the owner
	All      []protocol.OwnMeeting
	Next     string // path of the next page
	One      protocol.OwnMeeting
	Week     []weekDay
	Monday   time.Time
	Blocked  []protocol.BlockedWriter // by meeting requests

	Calendars protocol.CalendarAccounts
	Feed      *protocol.MeetingFeed // a new one, whose address is shown only once
	Refresh   int                   // seconds after which the page is loaded again, 0 for never

	Sent *sent // the form that was refused; nil for none
	Done string
}

// sent returns the refused form if it is the named one, otherwise nil.
func (o *ownMeetings) sent(do string) *sent {
	if f := o.Sent; f != nil && f.do == do {
		return f
	}
	return nil
}

// sentFor returns the refused form if it is the named one about an id, otherwise nil.
func (o *ownMeetings) sentFor(do, id string) *sent {
	if f := o.sent(do); f != nil && f.id == id {
		return f
	}
	return nil
}

// zone returns the name of the person's time zone.
func (o *ownMeetings) zone() string { return o.Settings.TimeZone }

// to returns the path of a page of the same person.
func (o *ownMeetings) to(path string, more ...string) string {
	q := url.Values{"handle": {o.Handle}}
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			q.Set(more[i], more[i+1])
		}
	}
	return "/account/meetings" + path + "?" + q.Encode()
}

// ofMeetings reads what a page of meetings shows.
func ofMeetings(fill func(*Web, *http.Request, *ownMeetings) error) []func(*account, *Web, *http.Request) error {
	return []func(*account, *Web, *http.Request) error{func(a *account, s *Web, r *http.Request) error {
		o := &ownMeetings{Handles: a.handles(), Handle: a.Handle, Feed: a.Feed, Sent: a.Sent, Done: a.Done}
		for _, read := range []func(*Web, *http.Request, *ownMeetings) error{(*Web).fillSettings, fill} {
			if err := read(s, r, o); err != nil {
				return err
			}
		}
		a.Meetings, a.Handle = o, o.Handle
		return nil
	}}
}

func (s *Web) fillSettings(r *http.Request, o *ownMeetings) error {
	return s.invokeSignedIn(r, protocol.GetMeetingSettings.Operation, map[string]any{"handle": o.Handle}, &o.Settings)
}

// meetingsPage is the body of such a page.
func meetingsPage(body func(*ownMeetings) templ.Component) func(*account) templ.Component {
	return func(a *account) templ.Component { return body(a.Meetings) }
}

// meetings lists requests.
func (s *Web) meetings(r *http.Request, o *ownMeetings, more map[string]any) (p protocol.Page[protocol.OwnMeeting], err error) {
	more["handle"] = o.Handle
	err = s.invokeSignedIn(r, protocol.ListMeetings.Operation, more, &p)
	return p, err
}

func (s *Web) fillMeetings(r *http.Request, o *ownMeetings) error {
	if err := s.invokeSignedIn(r, protocol.GetTurnedAway.Operation, map[string]any{"handle": o.Handle}, &o.Turned); err != nil {
		return err
	}
	waiting, err := s.meetings(r, o, map[string]any{"state": protocol.MeetingSubmitted, "limit": protocol.MaxLimit})
	if err != nil {
		return err
	}
	o.Waiting, o.State = waiting.Items, protocol.MeetingState(r.URL.Query().Get("state"))
	asked := map[string]any{}
	for _, name := range []string{"state", "after"} {
		if v := r.URL.Query().Get(name); v != "" {
			asked[name] = v
		}
	}
	all, err := s.meetings(r, o, asked)
	if err != nil {
		return err
	}
	o.All = all.Items
	if all.Next != nil {
		o.Next = o.to("", "state", string(o.State), "after", *all.Next)
	}
	return nil
}

func (s *Web) fillMeeting(r *http.Request, o *ownMeetings) error {
	id := r.PathValue("id")
	if id == "" {
		id = r.PostForm.Get("id")
	}
	if !protocol.IsID(protocol.MeetingID, id) {
		return protocol.Errorf(protocol.NotFound, "there is no meeting request with that id")
	}
	if err := s.invokeSignedIn(r, protocol.GetOwnMeeting.Operation, map[string]any{"id": id}, &o.One); err != nil {
		return err
	}
	o.Handle = o.One.Handle
	return s.fillSettings(r, o)
}

func (s *Web) fillMeetingSettings(r *http.Request, o *ownMeetings) error {
	args := map[string]any{"handle": o.Handle, "limit": protocol.MaxLimit}
	for range maxTokenPages {
		var found protocol.Page[protocol.BlockedWriter]
		if err := s.invokeSignedIn(r, protocol.ListBlockedWriters.Operation, args, &found); err != nil {
			return err
		}
		for _, b := range found.Items {
			if b.KnownBy == protocol.ByMailbox || b.KnownBy == protocol.ByDomain {
				o.Blocked = append(o.Blocked, b)
			}
		}
		if found.Next == nil {
			break
		}
		args["after"] = *found.Next
	}
	return nil
}

// timeRows returns the numbers of the proposed times that a form has.
func timeRows(form url.Values) (rows []string) {
	for n := range protocol.MaxProposedTimes {
		if row := strconv.Itoa(n + 1); localTime(form.Get("date-"+row), form.Get("time-"+row)) != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// A weekDay is one day of a week.
type weekDay struct {
	Date  time.Time
	Hours string // usual ones; "" for none
	Items []weekItem
}

// A weekItem is a meeting, or a time that is proposed.
type weekItem struct {
	protocol.OwnMeeting
	At protocol.MeetingTime
}

func (s *Web) fillWeek(r *http.Request, o *ownMeetings) error {
	zone := zoneNamed(o.zone())
	day, err := time.ParseInLocation(time.DateOnly, r.URL.Query().Get("from"), zone)
	if err != nil {
		day = time.Now().In(zone)
	}
	o.Monday = midnight(day, -(int(day.Weekday())+6)%7)
	o.Week = weekOf(o.Monday, o.Settings.MeetingRules)
	var items []weekItem
	asked := map[string]any{"from": machineTime(o.Monday), "to": machineTime(midnight(o.Monday, 7)), "limit": protocol.MaxLimit}
	for range maxTokenPages {
		found, err := s.meetings(r, o, asked)
		if err != nil {
			return err
		}
		for _, m := range found.Items {
			items = append(items, weekItem{m, timeOf(m)})
		}
		if found.Next == nil {
			break
		}
		asked["after"] = *found.Next
	}
	proposed, err := s.meetings(r, o, map[string]any{"state": protocol.MeetingProposed, "limit": protocol.MaxLimit})
	if err != nil {
		return err
	}
	for _, m := range proposed.Items {
		for _, t := range m.Proposals {
			items = append(items, weekItem{m, t})
		}
	}
	sorting.Stable(items, func(a, b weekItem) int { return a.At.StartsAt.Compare(b.At.StartsAt) })
	for _, x := range items {
		for i := range o.Week {
			if x.At.StartsAt.In(zone).Format(time.DateOnly) == o.Week[i].Date.Format(time.DateOnly) {
				o.Week[i].Items = append(o.Week[i].Items, x)
			}
		}
	}
	return nil
}

// weekOf returns the days of a week with their hours.
func weekOf(monday time.Time, rules protocol.MeetingRules) (days []weekDay) {
	usual := map[string]string{}
	for _, d := range weekHours(context.Background(), rules.UsualHours) {
		usual[d.Name] = d.Hours
	}
	for n := range 7 {
		d := weekDay{Date: midnight(monday, n)}
		d.Hours = usual[d.Date.Weekday().String()]
		for _, o := range rules.DateOverrides {
			if o.Date == d.Date.Format(time.DateOnly) {
				d.Hours = windowText(o.Windows)
			}
		}
		days = append(days, d)
	}
	return days
}

// meetingsNav leads between the pages of a person's meetings.
func meetingsNav(o *ownMeetings, here string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return crumbs("Breadcrumb", append([]templ.Component{back(), crumb{o.to(""), tr(ctx, "Requests"), here == ""},
			crumb{o.to("/week"), tr(ctx, "Week"), here == "week"}, crumb{o.to("/settings"), tr(ctx, "Settings"), here == "settings"},
			crumb{o.to("/calendars"), tr(ctx, "Calendars"), here == "calendars"}}, otherCrumbs(meetingsPath, o.Handles, o.Handle)...)...)
	})
}

// meetingsNote says what was done, or why nothing was.
func meetingsNote(o *ownMeetings) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return all{
			when(o.Done != "", in(`p class="done" role="status"`, tr(ctx, o.Done))),
			ownAlert(o.Sent, o.to("/settings")),
		}
	})
}

func moveForm(f *sent, m protocol.OwnMeeting, zone string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		at := protocol.MoveMeeting.Name
		return posted("form", at, meetingsPath, hidden("do", at, "id", m.ID, "timezone", f.text("timezone", zone)),
			timeFields(f, at, timeNames{"date", "time", "startsAt"}, tr(ctx, "Day"), tr(ctx, "Time##of a day"), m.StartsAt.In(zoneNamed(zone))),
			ask(protocol.MoveMeeting.Operation, f, at, url.Values{"durationMin": {strconv.Itoa(m.DurationMin)}}, line("durationMin", "Minutes")),
			hint("On the clock of %s.", zoneTitle(f.text("timezone", zone))), ask(protocol.MoveMeeting.Operation, f, at, nil, answerLine), sends("Move the meeting"))
	})
}

func declineForm(f *sent, id, mail string) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		at := protocol.DeclineMeeting.Name
		return posted("form", at, meetingsPath, ownKeys(at, "", id), ask(protocol.DeclineMeeting.Operation, f, at, url.Values{"block": {"none"}}, answerLine,
			choose("block", "Further requests", blockOptions(ctx, mail)).worded()), sends("Decline"))
	})
}

// onCalendar says whether a meeting is on the person's calendar.
func onCalendar(c protocol.MeetingCalendar) templ.Component {
	var shown all
	switch c.State {
	case protocol.CalendarPending:
		shown = all{hint("It is about to be written to your calendar.")}
	case protocol.CalendarWritten:
		shown = all{hint("It is on your calendar %s.", called(deref(c.Calendar)))}
	case protocol.CalendarRemoved:
		shown = all{hint("It was deleted from your calendar.")}
	case protocol.CalendarFailed:
		shown = all{hint("It could not be written to your calendar.")}
	}
	if c.Reason != nil {
		shown = append(shown, inside(`p class="hint"`, ownWords(*c.Reason)))
	}
	return shown
}
