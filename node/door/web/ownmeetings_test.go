package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/out/calendar/calendartest"
	"stoa/protocol"
	"stoa/protocol/must"
)

var decisionInMail = regexp.MustCompile(`http\S*/meeting-decision\?ticket=(stoa_read_[A-Za-z0-9_-]+)`)

func meetingState(d *nodetest.Doors, id string) protocol.MeetingState {
	d.T.Helper()
	var m protocol.OwnMeeting
	d.Good("GET", "/api/owner/meetings/"+id, "", d.Token, &m)
	return m.State
}

// TestMeetingDecision: the mail and the webhook about a request carry a link by which the person decides
// without signing in: looking does nothing, it works once, and one that has ended says what happened.
func TestMeetingDecision(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, d, box := nodetest.MeetingHouse(t, ``, change)
		h.Meeting.Mail = nodetest.NoMeetingMail
		got := make(chan protocol.NoticeDocument, 9)
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n protocol.NoticeDocument
			if r.Header.Get("Signature") == "" || json.NewDecoder(r.Body).Decode(&n) != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			got <- n
		}))
		t.Cleanup(hook.Close)
		address := func(mail string) {
			d.Good("PUT", "/api/owner/notify", `{"mail":"`+mail+`","webhook":"`+hook.URL+`","events":["meeting.requested"]}`, d.Token, nil)
			d.Good("POST", "/api/owner/notify/confirm", `{"code":"`+nodetest.CodeInMail.FindString(box.Next(t, h).Text)+`"}`, d.Token, nil)
		}
		address("asha@example.org")
		day := time.Now().Add(72 * time.Hour).Truncate(time.Hour)
		n := 0
		ask := func() (made protocol.MeetingReceipt, mailed string, hooked protocol.NoticeDocument) {
			n++
			made = d.Asked(fmt.Sprintf("ravi%d@example.org", n), day.Add(time.Duration(n)*time.Hour))
			text := box.Next(t, h).Text
			require.Contains(t, text, h.Base+"/account/meetings/"+made.Request.ID)
			ticket := decisionInMail.FindStringSubmatch(text)
			require.NotNil(t, ticket, text)
			select {
			case hooked = <-got:
			case <-time.After(time.Minute):
				t.Fatal("the webhook was not called")
			}
			require.Equal(t, made.Request.ID, hooked.Subject)
			return made, ticket[1], hooked
		}
		show := func(ticket string, status int) string {
			a := h.Ask("GET", "/meeting-decision?ticket="+ticket, "", "Accept", nodetest.Accept)
			require.Equal(t, status, a.Code, "%s", a.Body)
			require.Equal(t, []string{"no-store", "no-referrer"}, []string{a.Header().Get("Cache-Control"), a.Header().Get("Referrer-Policy")})
			p := nodetest.ParsePage(t, "/meeting-decision", a.Body.String())
			p.WellFormed()
			return p.Text()
		}
		use := func(ticket, do string) nodetest.Answer {
			return h.SendForm("/meeting-decision", url.Values{"ticket": {ticket}, "do": {do}})
		}

		made, mailed, hooked := ask()
		for range 2 { // looking uses nothing up
			shown := show(mailed, 200)
			require.Contains(t, shown, "Meet Ravi <i>?")
			require.Contains(t, shown, "Yarn <b>")
			require.Contains(t, shown, "ravi1@example.org")
			require.Contains(t, shown, " IST")
			l := nodetest.As[protocol.DecisionLink](h.Ask("GET", "/api/owner/meeting-decision", "", "Authorization", "Bearer "+hooked.Link.Ticket))
			require.Equal(t, made.Request.ID, l.Request.ID)
			require.Equal(t, []protocol.MeetingDecides{"approve", "decline"}, l.Do)
		}
		require.NotEqual(t, mailed, hooked.Link.Ticket, "each is for its address")
		require.Equal(t, []string{"approve", "decline"}, hooked.Link.Do)
		require.Equal(t, []string{h.Base + "/meeting-decision?ticket=" + hooked.Link.Ticket, h.Base + "/api/owner/meeting-decision"},
			[]string{hooked.Link.URL, hooked.Link.API})
		require.Equal(t, protocol.MeetingSubmitted, meetingState(d, made.Request.ID))
		require.Equal(t, 422, use(mailed, "propose").Code)
		require.Equal(t, 403, h.Ask("POST", "/meeting-decision", "ticket="+mailed+"&do=approve", "Content-Type", "application/x-www-form-urlencoded",
			"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
		done := use(mailed, "approve")
		require.Equal(t, 200, done.Code, "%s", done.Body)
		require.Contains(t, done.Body.String(), "You have approved the meeting.")
		require.Equal(t, protocol.MeetingApproved, meetingState(d, made.Request.ID))
		for _, ticket := range []string{mailed, hooked.Link.Ticket} {
			require.Equal(t, 410, use(ticket, "decline").Code, "once, whichever link")
			require.Contains(t, show(ticket, 410), "the request is approved since")
		}

		_, mailed, hooked = ask()
		require.Equal(t, 200, h.Ask("POST", "/api/owner/meeting-decision", `{"do":"decline"}`, "Authorization", "Bearer "+hooked.Link.Ticket).Code, "a program")
		require.Contains(t, show(mailed, 410), "the request is declined since")

		clash := d.Asked("clash@example.org", day.Add(time.Hour)) // at the time of the approved one
		ticket := decisionInMail.FindStringSubmatch(box.Next(t, h).Text)[1]
		<-got
		require.Contains(t, show(ticket, 200), "You have something else at that time")
		refused := use(ticket, "approve")
		require.Equal(t, 409, refused.Code)
		require.Contains(t, refused.Body.String(), "has another meeting at")
		require.Contains(t, show(ticket, 200), "Decline", "it can still be declined")

		other, mailed, _ := ask()
		foreign := strings.Replace(mailed, strings.TrimPrefix(other.Request.ID, "mtg_"), strings.TrimPrefix(clash.Request.ID, "mtg_"), 1)
		for what, forged := range map[string]string{"another request": foreign, "cut": mailed[:len(mailed)-1], "short": "stoa_read_p", "none": "nonsense"} {
			require.Equal(t, 410, use(forged, "approve").Code, what)
		}
		require.Equal(t, 401, h.Ask("GET", "/api/owner/meeting-decision", "").Code)
		require.Equal(t, 422, h.Ask("GET", "/api/owner/meeting-decision?ticket="+mailed, "").Code, "in no address of the API")
		address("new@example.org")
		require.Equal(t, 410, use(mailed, "approve").Code, "who reads the former address decides no more")
		require.Equal(t, protocol.MeetingSubmitted, meetingState(d, other.Request.ID))
	})
}

// TestMeetingBlocks: a person refuses further requests of a mailbox or of a domain, and takes them again;
// and takes requests only of agents that sign for the domain of their mail address.
func TestMeetingBlocks(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, d, _ := nodetest.MeetingHouse(t, ``, change)
		h.Meeting.Mail = nodetest.NoMeetingMail
		at := time.Now().Add(72 * time.Hour).Truncate(time.Hour)
		ask := func(mail string) nodetest.Answer {
			return h.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(`{"requester":"R","email":%q,"purpose":"p","durationMin":30,"startsAt":%q}`,
				mail, nodetest.MachineZ(at)), "Proof-Of-Work", h.Proof("meeting"))
		}
		decline := func(mail, block string) {
			t.Helper()
			made := d.Asked(mail, at)
			d.Good("POST", "/api/owner/meetings/"+made.Request.ID+"/decline", `{"block":"`+block+`"}`, d.Token, nil)
		}
		blocks := func() (all protocol.Page[protocol.BlockedWriter]) {
			d.Good("GET", "/api/owner/blocked-writers", "", d.Token, &all)
			return all
		}
		decline("none@mail.spam.example", "none")
		require.Empty(t, blocks().Items)
		decline("Kim+a@spam.example", "mailbox")
		require.Equal(t, protocol.ContactRefused, ask("kim+b@SPAM.example").Problem().Code)
		decline("other@spam.example", "domain")
		for _, mail := range []string{"third@spam.example", "fourth@mail.spam.example"} {
			require.Equal(t, protocol.ContactRefused, ask(mail).Problem().Code, mail)
		}
		all := blocks()
		require.Len(t, all.Items, 2)
		require.Equal(t, []any{protocol.ByDomain, "spam.example", protocol.ByMailbox, "k…@spam.example"},
			[]any{all.Items[0].KnownBy, all.Items[0].Note, all.Items[1].KnownBy, all.Items[1].Note})
		decline("ravi@notspam.example", "none")
		d.Good("DELETE", "/api/owner/blocked-writers/"+all.Items[0].ID, "", d.Token, nil)
		decline("fourth@mail.spam.example", "none")
		require.Equal(t, protocol.ContactRefused, ask("kim@spam.example").Problem().Code, "the mailbox is still refused")

		d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"requireVerifiedDomain":true}`, d.Token, nil)
		require.Contains(t, h.Ask("GET", "/api/public/agents/asha/meetings", "").Body.String(), `"requiresVerifiedDomain":true`)
		require.Equal(t, protocol.ContactRefused, ask("ravi@example.org").Problem().Code)
		a := h.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(`{"requester":"R","email":"r@example.org","purpose":"p","durationMin":30,"startsAt":%q}`,
			nodetest.MachineZ(at)))
		require.Equal(t, protocol.ContactRefused, a.Problem().Code, "no proof of work is asked for in vain")
		require.NoError(t, h.DB.Check(t.Context()))
	})
}

// TestOwnMeetings_Agenda: the meetings of some days, page by page, in the order of their times.
func TestOwnMeetings_Agenda(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h, d, _ := nodetest.MeetingHouse(t, ``, change)
		h.Meeting.Mail = nodetest.NoMeetingMail
		day := time.Now().UTC().Add(96 * time.Hour).Truncate(24 * time.Hour)
		var want []string
		for n, hour := range []int{15, 9, 12} {
			want = append(want, d.Asked(fmt.Sprintf("r%d@example.org", n), day.Add(time.Duration(hour)*time.Hour)).Request.ID)
		}
		want = []string{want[1], want[2], want[0]}
		d.Good("POST", "/api/owner/meetings/"+want[0]+"/approve", `{}`, d.Token, nil)
		d.Good("POST", "/api/owner/meetings/"+d.Asked("no@example.org", day.Add(10*time.Hour)).Request.ID+"/decline", `{}`, d.Token, nil)
		var ids []string
		after := ""
		for range 9 {
			var p protocol.Page[protocol.OwnMeeting]
			d.Good("GET", "/api/owner/meetings?limit=1&from="+nodetest.MachineZ(day)+"&to="+nodetest.MachineZ(day.Add(24*time.Hour))+after, "", d.Token, &p)
			for _, m := range p.Items {
				ids = append(ids, m.ID)
			}
			if p.Next == nil {
				break
			}
			after = "&after=" + *p.Next
		}
		require.Equal(t, want, ids)
		for query, fault := range map[string]string{
			"to=" + nodetest.MachineZ(day): "/from", "from=" + nodetest.MachineZ(day) + "&state=approved": "/state",
			"from=" + nodetest.MachineZ(day) + "&to=" + nodetest.MachineZ(day.Add(32*24*time.Hour)): "/to",
		} {
			a := h.Ask("GET", "/api/owner/meetings?"+query, "", "Authorization", "Bearer "+d.Token)
			require.Equal(t, []string{fault}, nodetest.Pointers(a.Problem().Errors), query)
		}
	})
}

// TestBrowser_OwnMeetings: the owner opens meeting requests with the settings form, approves one by the page
// and one by a mailed link, proposes, moves, declines with a block, and reads the week.
func TestBrowser_OwnMeetings(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h, d, box := nodetest.MeetingHouse(t, ``, func(c *node.Config) {
		c.BaseURL, c.AllowPrivatePeers = "http://"+server.Listener.Addr().String(), true
	})
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	h.Meeting.Mail = nodetest.NoMeetingMail
	acc, signIn := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	d.Token = h.OwnerToken("asha")
	b := nodetest.OpenBrowser(t, h.Base)
	b.Screen(390, 844)
	b.Load(chromedp.Navigate(signIn))
	require.Equal(t, 200, b.Send("form:has([name=ticket])"))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`.index a[href^="/account/meetings"]`))))
	require.Equal(t, 200, b.Open("/account/meetings/settings"))
	require.Equal(t, "10:00–18:00", value(b, "#put_meeting_settings-hours-monday"))
	const form = "#put_meeting_settings"
	require.Equal(t, 422, b.Send(form, "hours-tuesday", "11-13, 12:00–14:00", "durations", "30, 500", "dateOverrides", "2026-12-25 closed\nsoon",
		"maxPerDay", "many", "travel", "2027-01-02 to 2027-01-05 Mars/Base", "timezone", "IST"))
	for field, says := range map[string]string{
		"hours-tuesday": "“12:00–14:00”: overlaps another window of the day.", "durations": "“500” is not a number of minutes from 5 to 240.",
		"dateOverrides": "“soon” is not a date such as 2026-12-25 closed", "maxPerDay": "This is not a whole number from 1 to 100.",
		"travel": "Mars/Base” is not a journey such as", "timezone": "This is not a time zone such as Asia/Kolkata.",
	} {
		require.Contains(t, b.Text("#n-put_meeting_settings-"+field), says, field)
	}
	require.Equal(t, "11-13, 12:00–14:00", value(b, form+"-hours-tuesday"), "what was typed is kept")
	b.Picture("own-settings-fault")
	require.Equal(t, 200, b.Send(form, "acceptingMeetingRequests", "true", "showSlots", "true", "timezone", "Asia/Kolkata",
		"hours-tuesday", "11-13, 14:00 to 16:00", "hours-saturday", "", "durations", "30, 60", "dateOverrides", "2026-12-25 closed\n2026-12-26 10:00–12:00", "travel",
		"2027-01-02 to 2027-01-05 Europe/Berlin", "maxPerDay", "6", "location", "https://meet.example/{slug}", "policy", "Weaving."), b.Text("main"))
	require.Equal(t, "The settings were saved.", b.Text(".done"))
	require.Equal(t, "11:00–13:00, 14:00–16:00", value(b, form+"-hours-tuesday"))
	require.Equal(t, "2026-12-25 closed\n2026-12-26 10:00–12:00", value(b, form+"-dateOverrides"))
	b.Picture("own-settings")
	var s protocol.MeetingSettings
	d.Good("GET", "/api/owner/meeting-settings?handle=asha", "", d.Token, &s)
	require.Equal(t, []any{6, 2, true, "Europe/Berlin"}, []any{s.MaxPerDay, len(s.DateOverrides), s.ShowSlots, s.Travel[0].TimeZone})

	india, _ := protocol.Zone("Asia/Kolkata")
	monday := time.Now().In(india)
	for monday = monday.AddDate(0, 0, 2); monday.Weekday() != time.Monday; {
		monday = monday.AddDate(0, 0, 1)
	}
	at := func(days, hour int) time.Time {
		return time.Date(monday.Year(), monday.Month(), monday.Day()+days, hour, 0, 0, 0, india)
	}
	first, night := d.Asked("first@example.org", at(0, 11)), d.Asked("night@example.org", at(1, 3))
	late := d.Asked("late@example.org", at(2, 15))
	require.Equal(t, 200, b.Open("/account/meetings"))
	require.Equal(t, 3, nodetest.Look[int](b, `document.querySelectorAll("#todo ~ .list article").length`))
	b.Picture("own-meetings")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[href="/account/meetings/`+night.Request.ID+`"]`))))
	require.Contains(t, b.Text("main"), "It is outside your hours.")
	require.Contains(t, b.Text("main"), "03:00 to 03:30 IST")
	require.Regexp(t, `\d\d:30 to \d\d:00 CES?T`, b.Text("main"), "on the requester's clock too")
	b.Picture("own-meeting")
	nodetest.Look[bool](b, `document.querySelectorAll("details").forEach(d => { d.open = true }), true`)
	require.Equal(t, 422, b.Send("#propose_meeting_times", "date-2", "2026-01-01", "time-2", "11:00", "answer", "At night I sleep."))
	require.Contains(t, b.Text("#n-propose_meeting_times-times-2"), "Must be from 15 minutes to 90 days ahead", "at the row that was typed")
	require.Equal(t, "At night I sleep.", value(b, "#propose_meeting_times-answer"))
	require.Equal(t, 200, b.Send("#propose_meeting_times", "date-1", at(1, 0).Format(time.DateOnly), "time-1", "12:00", "date-2", at(4, 0).Format(time.DateOnly),
		"time-2", "17:00"), b.Text("main"))
	require.Contains(t, b.Text(".done"), "The times are proposed.")
	require.Contains(t, b.Text("main"), "12:00 to 12:30 IST")

	require.Equal(t, 200, b.Open("/account/meetings/"+first.Request.ID))
	require.Equal(t, 200, b.Send("#approve_meeting", "answer", "See you."))
	require.Contains(t, b.Text(".done"), "The meeting is approved.")
	require.Contains(t, b.Text("main"), "https://meet.example/stoa-")
	nodetest.Look[bool](b, `document.querySelectorAll("details").forEach(d => { d.open = true }), true`)
	require.Equal(t, at(0, 11).Format(time.DateOnly), value(b, "#move_meeting-date"))
	require.Equal(t, 200, b.Send("#move_meeting", "time", "16:30", "durationMin", "60"), b.Text("main"))
	require.Contains(t, b.Text("main"), "16:30 to 17:30 IST")
	b.Picture("own-approved")

	d.Good("PUT", "/api/owner/notify", `{"mail":"asha@example.org","events":["meeting.requested"]}`, d.Token, nil)
	d.Good("POST", "/api/owner/notify/confirm", `{"code":"`+nodetest.CodeInMail.FindString(box.Next(t, h).Text)+`"}`, d.Token, nil)
	linked := d.Asked("linked@example.org", at(4, 11))
	phone := nodetest.OpenBrowser(t, h.Base)
	phone.Screen(390, 844)
	require.Equal(t, 200, phone.Load(chromedp.Navigate(decisionInMail.FindString(box.Next(t, h).Text))))
	phone.Picture("decision")
	require.Equal(t, 200, phone.Load(chromedp.Click(chromedp.CSS(`[value=approve]`))), phone.Text("main"))
	require.Equal(t, "You have approved the meeting.", phone.Text("h1"))
	require.Equal(t, protocol.MeetingApproved, meetingState(d, linked.Request.ID))
	phone.Picture("decision-done")

	require.Equal(t, 200, b.Open("/account/meetings/"+d.Asked("gone@spam.example", at(3, 12)).Request.ID))
	require.Equal(t, 200, b.Send("#decline_meeting", "block", "domain"), b.Text("main"))
	require.Equal(t, 200, b.Open("/account/meetings/settings"))
	require.Contains(t, b.Text("#blocked ~ .rows"), "Everybody at spam.example")
	require.Equal(t, 200, b.Send(`form:has([value=unblock_writer])`))
	require.Contains(t, b.Text("main"), "Nobody's.")

	require.Equal(t, 200, b.Open("/account/meetings/week?from="+at(3, 0).Format(time.DateOnly)))
	days := nodetest.Look[[]string](b, `[...document.querySelectorAll(".week > li")].map(li => li.innerText)`)
	require.Len(t, days, 7)
	require.Contains(t, days[0], "16:30–17:30")
	require.Contains(t, days[0], "10:00–18:00", "the hours")
	require.Contains(t, days[1], "12:00–12:30", "a proposed time")
	require.NotContains(t, days[1], "03:00", "the requested time is not kept")
	require.Contains(t, days[2], "15:00–15:30")
	require.Contains(t, days[2], "waits for a decision")
	require.NotContains(t, days[3], "12:00", "declined")
	require.Contains(t, days[4], "11:00–11:30")
	require.Contains(t, days[4], "17:00–17:30")
	require.LessOrEqual(t, nodetest.Look[int](b, "document.documentElement.scrollWidth"), 390, "nothing is wider than a phone")
	b.Picture("week")
	printed(b, "week")
	require.Equal(t, protocol.MeetingSubmitted, meetingState(d, late.Request.ID))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[rel=next]`))))
	require.Equal(t, 404, b.Open("/account/meetings/mtg_nothing"))

	connectsCalendar(b, h)
	must.Get(h.Admin().SignOut(t.Context(), acc.ID))(t)
	require.Equal(t, 200, b.Open("/account/meetings"))
	require.Equal(t, "Sign in", b.Text("h1"))
}

// connectsCalendar walks the page of calendars: a server that is not there, a wrong password and the right one, a
// calendar that the node makes, on which the approved meetings are, the feed, and the end of it all.
func connectsCalendar(b *nodetest.Tab, h *nodetest.House) {
	t := b.T
	server := calendartest.Radicale(t)
	require.Equal(t, 200, b.Open("/account/meetings"))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[href^="/account/meetings/calendars"]`))))
	b.Picture("calendars-none")
	require.Equal(t, 422, b.Send("#connect_calendar", "address", server, "user", "a:b", "password", "x"), b.Text("main"))
	require.Equal(t, server, value(b, "#connect_calendar-address"))
	require.Contains(t, b.Text("#n-connect_calendar-user"), "This is not a user name without a colon.")
	require.Empty(t, value(b, "#connect_calendar-password"), "a password is not sent back")
	b.Picture("calendars-fault")
	require.Equal(t, 200, b.Send("#connect_calendar", "address", server, "user", calendartest.User, "password", "wrong"), b.Text("main"))
	answered := func(says string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return b.Open("/account/meetings/calendars?done=check_calendar") == 200 && strings.Contains(b.Text("main"), says)
		},
			time.Minute, 50*time.Millisecond, says)
	}
	answered("does not accept the user name or the password")
	b.Picture("calendars-wrong")
	nodetest.Look[bool](b, `document.querySelectorAll("details").forEach(d => { d.open = true }), true`)
	require.Equal(t, 200, b.Send("article form:has([type=password])", "password", calendartest.Password), b.Text("main"))
	answered("The server has answered.")
	require.Equal(t, "works", b.Text("article .mark"))
	require.Contains(t, b.Text("article form"), "Work")
	require.Equal(t, 200, b.Send("article form:has([name=create])", "create", "Meetings of mine"), b.Text("main"))
	answered("The server has answered.")
	require.Regexp(t, `^Meetings of mine$`, nodetest.Look[string](b, `document.querySelector("article select").selectedOptions[0].text`))
	require.Eventually(t, func() bool { return len(calendartest.Objects(t, server, calendartest.Collection)) == 2 }, time.Minute, 50*time.Millisecond,
		"the approved meetings are on the calendar that was there")
	answered("busy times read")
	b.Picture("calendars")

	feed := func(form string) string {
		t.Helper()
		require.Equal(t, 200, b.Send(form), b.Text("main"))
		return nodetest.Look[string](b, `document.querySelector(".done code").textContent`)
	}
	const make = "form:has([value=make_meeting_feed])"
	first := feed(make)
	b.Picture("calendars-feed")
	second := feed(make)
	get := func(address string) int { return h.Ask("GET", strings.TrimPrefix(address, h.Base), "").Code }
	require.Equal(t, []int{404, 200}, []int{get(first), get(second)}, "one address")
	require.Equal(t, 200, b.Send("form:has([value=delete_meeting_feed])"), b.Text("main"))
	require.Contains(t, b.Text(".done"), "The address shows nothing any more.")
	require.Equal(t, 404, get(second))
	nodetest.Look[bool](b, `document.querySelectorAll("details").forEach(d => { d.open = true }), true`)
	require.Equal(t, 200, b.Send("form:has([value=disconnect_calendar])"), b.Text("main"))
	require.Contains(t, b.Text(".done"), "disconnected")
	require.Zero(t, nodetest.Look[int](b, `document.querySelectorAll("article").length`))
}
