package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// A meetPage is what the page of meeting requests to a person shows.
type meetPage struct {
	Info protocol.MeetingInfo
	Zone string    // IANA name of the zone that times are shown in
	Set  bool      // the reader chose it; otherwise a script proposes the browser's
	Days []meetDay // of whole weeks, where the person shows open times
	Form *form     // what open times were asked for
	Sent *sent     // the request that was refused; nil for none

	Earlier, Later string // paths of the days before and after; "" for none
}

// A meetDay has the open times of one date in the reader's zone; none for a day that is over, closed or full.
type meetDay struct {
	Date  time.Time
	Parts []dayPart
	Shown bool // its times are shown, until the reader chooses another day
}

// A dayPart are the open times of a part of a day, one or more.
type dayPart struct {
	Name  string
	Times []protocol.MeetingTime
}

const (
	meetWeeks = 4    // on a page, and a fifth where the range of a query has room for it
	meetSlots = 1000 // open times of a page at most: days that are not complete are those of the next page
)

func (s *Web) meet(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.GetMeetingInfo.Operation)
	if err != nil {
		return view{}, err
	}
	m := &meetPage{Form: f}
	if err := s.readMeet(r, m, r.PathValue("handle")); err != nil {
		return view{}, err
	}
	v := s.meetView(r.Context(), m)
	v.Refused, v.Stray = f.err, f.otherFaults("timezone", "durationMin")
	return v, nil
}

func (s *Web) meetView(ctx context.Context, m *meetPage) view {
	return view{
		Title: tr(ctx, "Meet %s", m.Info.Name), Description: tr(ctx, "Ask %s for a meeting: lengths, hours and open times.", m.Info.Name),
		Path: "/@{handle}/meet", Data: m.Info, Zone: m.Info.Accepting, Body: meetBody(m),
	}
}

// readMeet fills the page. When what was asked for is refused, the reason is in the form and the page has
// no open times.
func (s *Web) readMeet(r *http.Request, m *meetPage, handle string) error {
	args := maps.Clone(m.Form.args)
	args["handle"], args["limit"] = handle, meetSlots
	zone, ok := protocol.Zone(m.Form.get("timezone"))
	if !ok {
		zone = protocol.India
	}
	from, err := time.Parse(time.RFC3339, m.Form.get("from"))
	if err != nil {
		from = time.Now()
	}
	first := monday(from.In(zone))
	if args["to"] == nil {
		to := midnight(first, 7*(meetWeeks+1))
		if to.Sub(from) > protocol.MaxSlotRange {
			to = midnight(first, 7*meetWeeks)
		}
		args["to"] = machineTime(to)
	}
	if m.Info, err = read(s, r, protocol.GetMeetingInfo, args); err != nil {
		e := protocol.AsError(err)
		if e.Code != protocol.Validation {
			return err
		}
		m.Form.err = e
		if m.Info, err = read(s, r, protocol.GetMeetingInfo, map[string]any{"handle": handle}); err != nil {
			return err
		}
		m.Info.Slots = nil
	}
	m.Set = ok
	m.Zone = m.Info.TimeZone
	if ok {
		m.Zone = protocol.FoldZone(m.Form.get("timezone"))
	}
	if m.Info.Slots != nil {
		if to, err := time.Parse(time.RFC3339, args["to"].(string)); err == nil {
			m.lay(monday(from.In(zoneNamed(m.Zone))), to)
		}
	}
	return nil
}

// midnight returns the beginning of the day that is so many days after that of t, in its zone.
func midnight(t time.Time, days int) time.Time {
	y, mo, d := t.Date()
	return time.Date(y, mo, d+days, 0, 0, 0, 0, t.Location())
}

// monday returns the beginning of the week of t, in its zone.
func monday(t time.Time) time.Time { return midnight(t, -(int(t.Weekday())+6)%7) }

// lay makes the days from a Monday to a time, and finds the pages before and after.
func (m *meetPage) lay(first, to time.Time) {
	if m.Info.Next != nil { // its day is not complete
		if next, err := time.Parse(time.RFC3339, *m.Info.Next); err == nil {
			to = midnight(next.In(first.Location()), 0)
		}
	}
	open := m.Info.Slots
	for date := first; date.Before(to); date = midnight(date, 1) {
		n := slices.IndexFunc(open, func(t protocol.MeetingTime) bool { return !t.StartsAt.Before(midnight(date, 1)) })
		if n < 0 {
			n = len(open)
		}
		m.Days = append(m.Days, meetDay{Date: date, Parts: partsOf(open[:n], date.Location())})
		open = open[n:]
	}
	if i := m.shown(); i >= 0 {
		m.Days[i].Shown = true
	}
	now := time.Now()
	path := "/@" + m.Info.Handle + "/meet"
	if to.Before(now.AddDate(0, 0, m.Info.MaxDaysAhead)) { // from a midnight on: a day of which a part is here is there too
		m.Later = m.Form.to(path, "from", machineTime(midnight(to.In(first.Location()), 0)))
	}
	if from, err := time.Parse(time.RFC3339, m.Form.get("from")); err == nil && from.After(now) {
		m.Earlier = m.Form.to(path, "from", "")
		if before := midnight(first, -7*meetWeeks); before.After(now) {
			m.Earlier = m.Form.to(path, "from", machineTime(before))
		}
	}
}

// shown returns the index of the day whose times are shown: that of the time or day which a refused form has, else the first
// with open times; -1 for none.
func (m *meetPage) shown() int {
	open := func(d meetDay) bool { return len(d.Parts) > 0 }
	day := m.Sent.text("day", "")
	if at, err := time.Parse(time.RFC3339, m.Sent.text("startsAt", "")); err == nil && len(m.Days) > 0 {
		day = at.In(m.Days[0].Date.Location()).Format(time.DateOnly)
	}
	if i := slices.IndexFunc(m.Days, func(d meetDay) bool { return open(d) && d.Date.Format(time.DateOnly) == day }); i >= 0 {
		return i
	}
	return slices.IndexFunc(m.Days, open)
}

// partsOf divides the open times of a day at 12:00 and 17:00.
func partsOf(times []protocol.MeetingTime, zone *time.Location) (parts []dayPart) {
	for _, t := range times {
		name := english("Morning")
		switch h := t.StartsAt.In(zone).Hour(); {
		case h >= 17:
			name = english("Evening")
		case h >= 12:
			name = english("Afternoon")
		}
		if n := len(parts); n == 0 || parts[n-1].Name != name {
			parts = append(parts, dayPart{Name: name})
		}
		last := &parts[len(parts)-1]
		last.Times = append(last.Times, t)
	}
	return parts
}

// zoneNamed returns a time zone; UTC for a name that IANA does not list.
func zoneNamed(name string) *time.Location {
	if zone, ok := protocol.Zone(name); ok {
		return zone
	}
	return time.UTC
}

// meetFieldNames are the fields of the form that are members of request_meeting.
var meetFieldNames = []string{"requester", "email", "purpose", "timezone"}

// meetForm takes the form of the page: it makes a request and leads to its page.
func (s *Web) meetForm(w http.ResponseWriter, r *http.Request) {
	f, err := s.sentForm(w, r, "/@{handle}/meet")
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	handle := r.PathValue("handle")
	var made protocol.MeetingReceipt
	err = s.invokeForm(r, protocol.RequestMeeting.Operation, meetInput(handle, r.PostForm), &made)
	if err == nil {
		s.open(w, openedMeeting, made.Request.ID, made.StatusToken)
		redirect(w, r, "/meetings/"+made.Request.ID)
		return
	}
	m := &meetPage{Form: &form{values: url.Values{}, args: map[string]any{}}, Sent: f}
	m.Sent.refuse(r.Context(), protocol.AsError(err))
	for _, name := range []string{"from", "timezone", "durationMin"} {
		if text := strings.TrimSpace(r.PostForm.Get(name)); text != "" && m.Sent.fault(name) == "" {
			m.Form.values.Set(name, text)
			m.Form.args[name] = coerce(s.types[protocol.GetMeetingInfo.Name][name], text)
		}
	}
	if err := s.readMeet(r, m, handle); err != nil {
		s.Fail(w, r, err)
		return
	}
	status := m.Sent.err.Code.Status()
	if status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="stoa"`)
	}
	s.writePrivate(w, r, status, s.meetView(r.Context(), m))
}

// meetInput converts the form's fields to the input of request_meeting. The time is an open one, or a date
// and a time of the reader's clock.
func meetInput(handle string, form url.Values) map[string]any {
	args := map[string]any{"handle": handle}
	for _, name := range meetFieldNames {
		if text := form.Get(name); strings.TrimSpace(text) != "" {
			args[name] = text
		}
	}
	if text := strings.TrimSpace(form.Get("durationMin")); text != "" {
		args["durationMin"] = coerce("integer", text)
	}
	if at := startOf(form); at != "" {
		args["startsAt"] = at
	}
	return args
}

// startOf returns the time that a form asks for: an open time, or date and time of day.
func startOf(form url.Values) string {
	if at := form.Get("startsAt"); at != "" && at != "other" {
		return at
	}
	return localTime(form.Get("date"), form.Get("time"))
}

// localTime joins a date and a time of day as browsers send them; "" when both are missing.
func localTime(date, clock string) string {
	date, clock = strings.TrimSpace(date), strings.TrimSpace(clock)
	if date == "" && clock == "" {
		return ""
	}
	return cmp.Or(date, "no date") + "T" + cmp.Or(clock, "no time")
}

// between says when a meeting is, on the clocks of a zone.
func between(ctx context.Context, t protocol.MeetingTime, zone string) string {
	at, end := t.StartsAt.In(zoneNamed(zone)), t.EndsAt.In(zoneNamed(zone))
	return tr(ctx, "%s to %s", words.Of(ctx).Time(at, "Monday, 2 January 2006, 15:04"), end.Format("15:04")+" "+zoneWords(at))
}

// zoneWords returns the name of a zone at a moment, as people write it: IST, or GMT+3 where it has no
// abbreviation.
func zoneWords(at time.Time) string {
	name, offset := at.Zone()
	if name != "" && name[0] != '+' && name[0] != '-' {
		return name
	}
	text := "GMT"
	if offset != 0 {
		sign := "+"
		if offset < 0 {
			sign, offset = "−", -offset
		}
		text += sign + strconv.Itoa(offset/3600)
		if rest := offset % 3600 / 60; rest != 0 {
			text += ":" + strconv.Itoa(rest)
		}
	}
	return text
}

// weekHours returns the usual hours by day, in the order of the week.
func weekHours(ctx context.Context, hours []protocol.MeetingHours) []day {
	var list []protocol.DayHours
	for _, h := range hours {
		list = append(list, protocol.DayHours{Day: h.Day, Opens: h.From, Closes: h.To})
	}
	return slices.DeleteFunc(week(ctx, list), func(d day) bool { return d.Closed })
}

// zoneTyped returns what the field of the time zone has.
func (m *meetPage) zoneTyped() string {
	return protocol.FoldZone(cmp.Or(m.Form.get("timezone"), m.Zone))
}

// zoneState tells the script whether it may propose a zone.
func (m *meetPage) zoneState() string {
	if m.Form.get("timezone") == "" && m.Sent == nil {
		return "guess"
	}
	return "chosen"
}

func lengthOptions(ctx context.Context, lengths []int) (options [][2]string) {
	for _, n := range lengths {
		options = append(options, [2]string{strconv.Itoa(n), tr(ctx, "%d minutes", n)})
	}
	return options
}

// timeNames are the names of the fields of a time: the day, the time of day, and the member whose faults are
// shown.
type timeNames struct{ date, clock, fault string }

// timeFields are the fields of a time on the reader's clock; stored is its zero value for none.
func timeFields(f *sent, at string, n timeNames, date, clock string, stored time.Time) templ.Component {
	pair := part("pair", line(n.date, date).verbatim().upTo(10).with("type", "date", "placeholder", "2026-12-01"),
		line(n.clock, clock).verbatim().upTo(8).with("type", "time", "step", "60", "placeholder", "11:00"), faultOf(n.fault))
	pair.more = f.attributes(at, n.fault, templ.Attributes{"role": "group"})
	return ask(nil, f, at, valued(n.date, formatted(stored, time.DateOnly), n.clock, formatted(stored, "15:04")), pair)
}

// formatted returns a time as text, "" for its zero value.
func formatted(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(layout)
}

// dayAndTime are the fields of the time that a requester asks for.
func dayAndTime(f *sent, at, date, clock string) templ.Component {
	return timeFields(f, at, timeNames{"date", "time", "startsAt"}, date, clock, time.Time{})
}

// length returns the length of the open times that are shown.
func (m *meetPage) length() string {
	if n := m.Form.get("durationMin"); n != "" {
		return n
	}
	return strconv.Itoa(m.Info.Durations[0])
}

// theirs returns the time zone of the person where its clock differs from the reader's now, else nil.
func (m *meetPage) theirs() *time.Location {
	now, zone := time.Now(), zoneNamed(m.Info.TimeZone)
	if now.In(zoneNamed(m.Zone)).Format("15:04 -07") == now.In(zone).Format("15:04 -07") {
		return nil
	}
	return zone
}

// zoneTitle returns the name of a time zone for people: Asia/Kolkata (IST).
func zoneTitle(name string) string {
	return strings.ReplaceAll(name, "_", " ") + " (" + zoneWords(time.Now().In(zoneNamed(name))) + ")"
}

// minutesList returns lengths in words: 15, 30 or 60 minutes.
func minutesList(ctx context.Context, lengths []int) string {
	list := make([]string, len(lengths))
	for i, n := range slices.Sorted(slices.Values(lengths)) {
		list[i] = strconv.Itoa(n)
	}
	if n := len(list); n > 1 {
		return tr(ctx, "%s or %s minutes", strings.Join(list[:n-1], ", "), list[n-1])
	}
	return tr(ctx, "%s minutes", list[0])
}

// span returns a number of minutes in the largest unit that fits.
func span(ctx context.Context, minutes int) string {
	switch {
	case minutes%(24*60) == 0:
		return tr(ctx, "%d days", minutes/(24*60))
	case minutes%60 == 0:
		return tr(ctx, "%d hours", minutes/60)
	}
	return tr(ctx, "%d minutes", minutes)
}

// meetFields is the form of a request.
func meetFields(m *meetPage) templ.Component {
	f, info := m.Sent, m.Info
	return proven(f, "meeting", "meet", "/@"+info.Handle+"/meet#meet", meetTime(m), ask(protocol.RequestMeeting.Operation, f, "meet", nil,
		line("requester", "Your name, shown as unverified").with("autocomplete", "name"),
		line("email", "Your mail address").with("required", "", "type", "email", "autocomplete", "email"), box("purpose", "What it is about")),
		meetQuestions(info), proofPanel(protocol.RequestMeeting.Operation), sendRow("Ask for the meeting"), meetNote(info))
}

func meetNote(info protocol.MeetingInfo) templ.Component {
	return when(info.ConfirmsMail, hint("A mail goes to your address. %s sees the request once you have opened its link, within 24 hours.", "@"+info.Handle))
}

// dateOf is the number of a day, with its month where a month or the page begins.
func dateOf(date time.Time, i int) templ.Component {
	return drawn(func(ctx context.Context) templ.Component {
		return all{
			when(i == 0 || date.Day() == 1, in("small", words.Of(ctx).Time(date, "Jan")).spaced()), put(strconv.Itoa(date.Day())),
		}
	})
}
