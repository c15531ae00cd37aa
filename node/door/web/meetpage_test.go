package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// meetingCookie returns the cookie of a request that an answer sets, as a browser sends it.
func meetingCookie(t *testing.T, a nodetest.Answer) string {
	t.Helper()
	for _, c := range (&http.Response{Header: a.Header()}).Cookies() {
		if c.Name == "stoa_meeting" {
			return c.Name + "=" + c.Value
		}
	}
	t.Fatal("no cookie")
	return ""
}

// openMeet opens a page that has scripts.
func openMeet(h *nodetest.House, path string, status int) *nodetest.Page {
	h.T.Helper()
	a := h.Ask("GET", path, "", "Accept", nodetest.Accept)
	require.Equal(h.T, status, a.Code, "%s: %s", path, a.Body)
	p := nodetest.ParsePage(h.T, path, a.Body.String())
	p.WellFormed()
	return p
}

// everyHour are usual hours of every day from midnight to midnight.
func everyHour() string {
	var days []string
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		days = append(days, `{"day":"`+day+`","from":"00:00","to":"24:00"}`)
	}
	return `,"usualHours":[` + strings.Join(days, ",") + `]`
}

// TestMeetPage: the page says how a person takes meetings, shows open times only where the person does,
// keeps what was typed, and leads to the page of the request, which needs its token.
func TestMeetPage(t *testing.T) {
	t.Parallel()
	h, d, box := nodetest.MeetingHouse(t, `,"policy":"Yarn <b>only</b>.","questions":["How much?"],"durations":[15,45]`)
	require.Contains(t, hrefs(open(h, "/@asha", 200)), "/@asha/meet")
	require.Contains(t, h.Ask("GET", "/api/public/agents/asha", "").Body.String(), `"meetingPage":"`+h.Base+`/@asha/meet"`)
	a := h.Ask("GET", "/@asha/meet", "", "Accept", nodetest.Accept).Is(200)
	require.Contains(t, a.Header().Get("Content-Security-Policy"), "; script-src 'self'; worker-src 'self'; manifest-src 'self'; connect-src 'self';")
	p := nodetest.ParsePage(t, "/@asha/meet", a.Body.String())
	p.WellFormed()
	for _, said := range []string{"Yarn <b>only</b>.", "How much?", "15 or 45 minutes", "10:00–18:00", "from 15 minutes to 90 days ahead", "Asia/Kolkata (IST)"} {
		require.Contains(t, p.Text(), said)
	}
	require.Equal(t, "meeting", nodetest.Attr(p.Find("form", "id", "meet"), "data-proof"))
	require.Nil(t, p.Find("input", "type", "radio"), "open times are not shown")
	require.Equal(t, "guess", nodetest.Attr(p.Find("input", "id", "meet-timezone"), "data-zone"))
	require.Equal(t, http.StatusPermanentRedirect, h.Ask("GET", "/@Asha/meet", "", "Accept", nodetest.Accept).Code)
	require.Contains(t, h.Ask("GET", "/@asha/meet", "", "Accept", "application/json").Header().Get("Location"), "/api/public/agents/asha/meetings")
	require.Contains(t, h.Ask("GET", "/api/public/page?path=/@asha/meet", "").Body.String(), `"kind":"meet"`)
	require.Equal(t, 422, h.Ask("GET", "/@asha/meet?colour=red", "", "Accept", nodetest.Accept).Code)

	day := time.Now().In(time.FixedZone("IST", 19800)).Add(72 * time.Hour)
	send := func(status int, fields ...string) (nodetest.Answer, *nodetest.Page) {
		t.Helper()
		form := url.Values{"requester": {"Ravi <i>"}, "email": {"ravi@example.org"}, "purpose": {"Yarn.\r\nMuch."}, "durationMin": {"45"},
			"timezone": {"Asia/Kolkata"}, "date": {day.Format(time.DateOnly)}, "time": {"11:00"}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		if form.Get("altcha") == "new" {
			form.Set("altcha", h.Proof("meeting"))
		}
		a := h.SendForm("/@asha/meet", form)
		require.Equal(t, status, a.Code, "%s", a.Body)
		p := nodetest.ParsePage(t, "/@asha/meet", a.Body.String())
		if status != 303 {
			p.WellFormed()
			require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
			require.Equal(t, "Ravi <i>", nodetest.Attr(p.Find("input", "id", "meet-requester"), "value"))
			require.Equal(t, "Yarn.\nMuch.", nodetest.TextOf(p.Find("textarea", "name", "purpose")))
			require.Equal(t, form.Get("timezone"), nodetest.Attr(p.Find("input", "id", "meet-timezone"), "value"), "what was typed is kept")
			require.Equal(t, "chosen", nodetest.Attr(p.Find("input", "id", "meet-timezone"), "data-zone"))
		}
		return a, p
	}
	_, p = send(401)
	require.NotEmpty(t, nodetest.Attr(p.Find("form", "id", "meet"), "data-challenge"), "without script: what a proof is needed for")
	for said, fields := range map[string][]string{
		"This is not a mail address such as ravi@example.org.": {"email", "nobody"},
		"This is not a time zone such as Asia/Kolkata.":        {"timezone", "IST"},
		"Must be at least 15 minutes ahead":                    {"date", "2026-01-01"},
		"This is not a date and a time":                        {"time", ""},
		"Fill this in.":                                        {"date", "", "time", ""},
	} {
		_, p = send(422, append(fields, "altcha", "new")...)
		require.Contains(t, p.Text(), said, fields)
	}
	require.Equal(t, 403, h.Ask("POST", "/@asha/meet", "requester=R", "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example",
		"Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 403, h.Ask("POST", "/@asha/meet", "requester=R", "Content-Type", "application/x-www-form-urlencoded", "Origin", "null").Code)
	a, _ = send(303, "altcha", "new")
	at := a.Header().Get("Location")
	require.Regexp(t, `^/meetings/mtg_[0-9a-z]{26}$`, at)
	cookie := meetingCookie(t, a)

	show := func(status int, headers ...string) *nodetest.Page {
		t.Helper()
		a := h.Ask("GET", at, "", append([]string{"Accept", nodetest.Accept}, headers...)...)
		require.Equal(t, status, a.Code, "%s", a.Body)
		require.Equal(t, []string{"no-store", "no-referrer"}, []string{a.Header().Get("Cache-Control"), a.Header().Get("Referrer-Policy")})
		p := nodetest.ParsePage(t, at, a.Body.String())
		p.WellFormed()
		return p
	}
	p = show(200, "Cookie", cookie)
	require.Contains(t, p.Text(), "Check your mail")
	require.Contains(t, p.Text(), "A mail goes to r…@…")
	require.Contains(t, p.Text(), "11:00 to 11:45 IST")
	require.NotContains(t, show(404).Text(), "Yarn", "not without its token")
	require.Equal(t, 404, h.SendForm(at, url.Values{"statusToken": {"stoa_read_" + strings.Repeat("x", 43)}}).Code)

	ticket := nodetest.MeetingLinkInMail.FindStringSubmatch(box.Next(t, h).Text)[1]
	done := h.SendForm("/meeting-link", url.Values{"ticket": {ticket}, "do": {"confirm"}}).Is(303)
	link := strings.TrimPrefix(done.Header().Get("Location"), h.Base)
	require.Regexp(t, `^/meetings/mtg_\w+\?ticket=stoa_read_v\S+$`, link, "the reader of the mailbox can see the request")
	a = h.Ask("GET", link, "", "Accept", nodetest.Accept)
	require.Equal(t, []any{303, at}, []any{a.Code, a.Header().Get("Location")}, "the ticket leaves the address")
	reader := meetingCookie(t, a)
	require.Contains(t, show(200, "Cookie", reader).Text(), "@asha has the request and decides.")
	other := protocol.NewID(protocol.MeetingID, time.Now())
	require.Equal(t, 404, h.Ask("GET", "/meetings/"+other, "", "Accept", nodetest.Accept, "Cookie", reader).Code, "no other")
	forged := h.Ask("GET", at+"?ticket=stoa_read_v"+strings.Repeat("x", 58), "", "Accept", nodetest.Accept).Is(303)
	require.Empty(t, forged.Header().Values("Set-Cookie"))

	id := strings.TrimPrefix(at, "/meetings/")
	times := fmt.Sprintf(`{"times":["%[1]sT12:00","%[1]sT15:30"],"timezone":"Asia/Kolkata","answer":"Not <i>then</i>."}`, day.Format(time.DateOnly))
	d.Good("POST", "/api/owner/meetings/"+id+"/propose", times, d.Token, nil)
	p = show(200, "Cookie", reader)
	require.Contains(t, p.Text(), "Not <i>then</i>.")
	require.Contains(t, p.Text(), "12:00 to 12:45 IST")
	pick := func(cookie, start string) nodetest.Answer {
		return h.SendForm(at, url.Values{"do": {"pick_meeting_time"}, "startsAt": {start}}, "Cookie", cookie)
	}
	offered := nodetest.Attr(p.Find("input", "name", "startsAt"), "value")
	require.Equal(t, 404, pick("", offered).Code)
	require.Equal(t, 422, pick(reader, "2026-12-01T00:00:00Z").Code, "not one of the times")
	require.Equal(t, 303, pick(reader, offered).Code)
	require.Contains(t, show(200, "Cookie", cookie).Text(), "the meeting takes place")
	require.Equal(t, 409, pick(reader, "2026-12-01T00:00:00Z").Code)
	require.Equal(t, 403, h.Ask("POST", at, "do=cancel_meeting", "Content-Type", "application/x-www-form-urlencoded", "Cookie", cookie,
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 303, h.SendForm(at, url.Values{"do": {"cancel_meeting"}}, "Cookie", cookie).Code)
	require.Contains(t, show(200, "Cookie", cookie).Text(), "The meeting was cancelled.")

	d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":false}`, d.Token, nil)
	p = openMeet(h, "/@asha/meet", 200)
	require.Contains(t, p.Text(), "takes no meeting requests now")
	require.Nil(t, p.Find("form", "id", "meet"))
	require.NotContains(t, hrefs(open(h, "/@asha", 200)), "/@asha/meet")
}

// TestMeetPage_Slots: a calendar of weeks with the open times of each day, in the zone that the reader chose, and the weeks after them.
func TestMeetPage_Slots(t *testing.T) {
	t.Parallel()
	h, d, _ := nodetest.MeetingHouse(t, `,"showSlots":true,"durations":[30,60],"maxPerDay":100`+everyHour())
	p := openMeet(h, "/@asha/meet", 200)
	require.Equal(t, "guess", nodetest.Attr(p.Find("input", "id", "f-timezone"), "data-zone"))
	require.Equal(t, "Asia/Calcutta", nodetest.Attr(p.Find("input", "id", "f-timezone"), "data-same"), "what browsers in India call it")
	alias := openMeet(h, "/@asha/meet?timezone=Asia/Calcutta", 200)
	require.Equal(t, "Asia/Kolkata", nodetest.Attr(alias.Find("input", "id", "f-timezone"), "value"))
	require.NotContains(t, alias.Text(), "Below each time is that of")
	berlin := openMeet(h, "/@asha/meet?timezone=Europe/Berlin&durationMin=60", 200)
	require.Equal(t, "chosen", nodetest.Attr(berlin.Find("input", "id", "f-timezone"), "data-zone"))
	require.Contains(t, berlin.Text(), "60 minutes, in Europe/Berlin (CE")
	require.Contains(t, berlin.Text(), "Below each time is that of @asha, in Asia/Kolkata (IST).")
	require.GreaterOrEqual(t, len(daysOf(berlin)), 15, "a page has more than two weeks")
	require.Len(t, slices.DeleteFunc(daysOf(berlin), func(n *html.Node) bool { return !nodetest.Has(n, "checked") }), 1)
	require.NotEmpty(t, berlin.All("legend"))
	require.Subset(t, []string{"Morning", "Afternoon", "Evening", "Another time"}, textsOf(berlin.All("legend")))
	later := nodetest.Attr(berlin.Find("a", "rel", "next nofollow"), "href")
	next := openMeet(h, later, 200)
	require.Contains(t, later, "timezone=Europe%2FBerlin")
	first := nodetest.Attr(next.Find("input", "name", "startsAt"), "value")
	at := must.Get(time.Parse(time.RFC3339, first))(t)
	zone, _ := protocol.Zone("Europe/Berlin")
	require.Equal(t, "00:00", at.In(zone).Format("15:04"), "from a midnight on")
	require.NotContains(t, openMeet(h, "/@asha/meet?timezone=Europe/Berlin&durationMin=60", 200).Raw, first)
	require.NotNil(t, next.Find("a", "rel", "prev nofollow"))
	wrong := openMeet(h, "/@asha/meet?timezone=Berlin", 422)
	require.Contains(t, wrong.Text(), "Is not an IANA time zone name such as Asia/Kolkata.")
	require.Contains(t, hrefs(wrong), "/@asha/meet", "start again")
	require.Equal(t, "Berlin", nodetest.Attr(wrong.Find("input", "id", "f-timezone"), "value"))

	form := url.Values{"requester": {"Ravi"}, "email": {"ravi@example.org"}, "purpose": {"Yarn."}, "durationMin": {"60"}, "timezone": {"Europe/Berlin"},
		"from": {nodetest.MachineZ(at)}, "startsAt": {first}}
	refused := h.SendForm("/@asha/meet", form).Is(401)
	kept := nodetest.ParsePage(t, "/@asha/meet", refused.Body.String())
	kept.WellFormed()
	var chosen []string
	for _, n := range kept.All("input") {
		if nodetest.Has(n, "checked") {
			chosen = append(chosen, nodetest.Attr(n, "value"))
		}
	}
	require.Equal(t, []string{at.In(zone).Format(time.DateOnly), first}, chosen, "the chosen time stays chosen, and its day open")
	form.Set("altcha", h.Proof("meeting"))
	require.Equal(t, 303, h.SendForm("/@asha/meet", form).Code)
	form.Set("altcha", h.Proof("meeting"))
	form.Set("startsAt", "other")
	require.Contains(t, h.SendForm("/@asha/meet", form).Body.String(), "Fill this in.")
	form.Del("startsAt")
	form.Set("day", at.In(zone).AddDate(0, 0, 2).Format(time.DateOnly))
	refusedPage := nodetest.ParsePage(t, "/@asha/meet", h.SendForm("/@asha/meet", form).Body.String())
	picker := refusedPage.Find("div", "role", "radiogroup")
	require.Equal(t, "true", nodetest.Attr(picker, "aria-invalid"))
	require.Equal(t, "Choose a time.", nodetest.TextOf(refusedPage.Find("p", "id", nodetest.Attr(picker, "aria-describedby"))), "one fault, at the picker")
	for _, n := range daysOf(refusedPage) {
		require.Equal(t, nodetest.Attr(n, "value") == form.Get("day"), nodetest.Has(n, "checked"), "the day stays chosen")
	}
	for _, n := range refusedPage.All("input") {
		require.False(t, nodetest.Attr(n, "type") == "radio" && nodetest.Has(n, "required"), "a browser complains at each radio button that is folded away")
	}
	d.Good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"showSlots":true,"outsideHours":"refuse"}`, d.Token, nil)
	require.NotContains(t, openMeet(h, "/@asha/meet", 200).Text(), "Another time")
}

// daysOf returns the days of the calendar that can be chosen.
func daysOf(p *nodetest.Page) []*html.Node {
	return slices.DeleteFunc(p.All("input"), func(n *html.Node) bool { return nodetest.Attr(n, "name") != "day" })
}

func textsOf(list []*html.Node) (texts []string) {
	for _, n := range list {
		texts = append(texts, nodetest.TextOf(n))
	}
	return texts
}

// TestMeetPage_Calendar: days without an open time cannot be chosen, and more open times than a page has are on the next one.
func TestMeetPage_Calendar(t *testing.T) {
	t.Parallel()
	h, d, _ := nodetest.MeetingHouse(t, `,"showSlots":true,"durations":[30],"maxPerDay":100,"usualHours":[{"day":"tuesday","from":"11:00","to":"18:00"}]`)
	p := openMeet(h, "/@asha/meet", 200)
	for _, n := range daysOf(p) {
		day := must.Get(time.Parse(time.DateOnly, nodetest.Attr(n, "value")))(t)
		require.Equal(t, time.Tuesday, day.Weekday())
	}
	require.NotEmpty(t, daysOf(p))
	closed := 0
	for _, n := range p.All("span") {
		if nodetest.Attr(n, "class") == "day" {
			closed++
		}
	}
	require.Contains(t, []int{28, 35}, closed+len(daysOf(p)), "whole weeks")

	d.Good("PUT", "/api/owner/meeting-settings",
		`{"handle":"asha","acceptingMeetingRequests":true,"showSlots":true,"durations":[15],"maxPerDay":100`+everyHour()+`}`, d.Token, nil)
	seen := map[string]bool{}
	for path := "/@asha/meet"; path != ""; {
		p := openMeet(h, path, 200)
		require.NotEmpty(t, daysOf(p))
		for _, n := range p.All("input") {
			if at := nodetest.Attr(n, "value"); nodetest.Attr(n, "name") == "startsAt" && at != "other" {
				require.False(t, seen[at], "%s is on two pages", at)
				seen[at] = true
			}
		}
		if path = ""; p.Find("a", "rel", "next nofollow") != nil {
			path = nodetest.Attr(p.Find("a", "rel", "next nofollow"), "href")
		}
	}
	require.InDelta(t, 90*96, len(seen), 96, "each quarter of an hour of 90 days")
}

// TestBrowser_Meet: a visitor whose clock is in Berlin asks for an open time with a proof that the page
// solves, confirms by the mail's link, and takes a proposed time.
func TestBrowser_Meet(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h, d, box := nodetest.MeetingHouse(t, `,"showSlots":true,"durations":[30,60],"maxPerDay":100,"location":"https://meet.example/{slug}",
		"policy":"Weaving, dyes, looms.","questions":["What do you weave?"]`+everyHour(),
		func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	b := nodetest.OpenBrowser(t, h.Base)
	do(b, devCall(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"}))
	b.Screen(390, 844)

	require.Equal(t, 200, b.Open("/@asha"))
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[href="/@asha/meet"]`))))
	shows(b, `location.search.includes("timezone=Europe%2FBerlin") && document.readyState == "complete"`) // the browser's zone
	require.Contains(t, b.Text("#meet"), "30 minutes, in Europe/Berlin")
	require.Greater(t, nodetest.Look[int](b, `document.querySelectorAll("datalist option").length`), 300)
	b.Picture("meet")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`a[rel~=next]`))))
	require.Equal(t, 200, b.Send("search form", "durationMin", "60", "timezone", "Europe/Paris"))
	require.Contains(t, b.Text("#meet"), "60 minutes, in Europe/Paris")
	seen := `[...document.querySelectorAll("#meet [name=startsAt]")].filter(e => e.value != "other" && e.checkVisibility()).map(e => e.value)`
	before := nodetest.Look[[]string](b, seen)
	laterDay := nodetest.Look[string](b, `document.querySelectorAll("#meet [name=day]")[2].id`)
	scripts(b, false) // a day and its time are two taps, as they are on a page without script
	do(b, chromedp.Click(chromedp.CSS(`label[for=`+laterDay+`]`)))
	start := nodetest.Look[[]string](b, seen)[0]
	require.NotContains(t, before, start, "the times of the chosen day only")
	do(b, chromedp.Click(chromedp.CSS(`#meet label:has([value="`+start+`"])`)))
	scripts(b, true)
	require.Equal(t, 422, b.Send("#meet", "requester", "Ravi", "email", "ravi@example", "purpose", "Prices of yarn."))
	require.Contains(t, b.Text("#n-meet-email"), "This is not a mail address")
	require.Equal(t, start, value(b, "#meet [name=startsAt]:checked"))
	b.Picture("meet-fault")
	require.Equal(t, 200, b.Send("#meet", "email", "ravi@example.org"), b.Text("main"))
	require.Equal(t, "Check your mail", b.Text("h1"))
	b.Picture("meeting-unconfirmed")
	page := address(b)
	keep := b.Text("#keep ~ pre code")

	require.Equal(t, 200, b.Load(chromedp.Navigate(nodetest.MeetingLinkInMail.FindString(box.Next(t, h).Text))))
	b.Picture("meeting-confirm")
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`[value=confirm]`))), b.Text("main"))
	require.Equal(t, page, address(b), "without the ticket")
	require.Contains(t, b.Text("[role=status]"), "@asha has the request and decides.")

	at := must.Get(time.Parse(time.RFC3339, start))(t)
	id := strings.TrimPrefix(page, "/meetings/")
	d.Good("POST", "/api/owner/meetings/"+id+"/propose", fmt.Sprintf(`{"times":[%q,%q],"answer":"I am at the loom then."}`,
		nodetest.MachineZ(at.Add(2*time.Hour)), nodetest.MachineZ(at.Add(26*time.Hour))), d.Token, nil)
	other := nodetest.OpenBrowser(t, h.Base)
	other.Screen(390, 844)
	require.Equal(t, 404, other.Open(page))
	link := regexp.MustCompile(`http\S*/meetings/mtg_\w+\?ticket=stoa_read_v\S+`).FindString(box.Next(t, h).Text)
	require.Equal(t, 200, other.Load(chromedp.Navigate(link)))
	require.Equal(t, page, address(other))
	require.Contains(t, other.Text("main"), "I am at the loom then.")
	other.Picture("meeting-proposed")
	require.Equal(t, 200, other.Load(chromedp.Click(chromedp.CSS(`#pick ~ .list form button`))), other.Text("main"))
	require.Contains(t, other.Text("[role=status]"), "the meeting takes place")
	require.Contains(t, other.Text("main"), "https://meet.example/stoa-")
	other.Picture("meeting-approved")
	require.Equal(t, 200, b.Open(page))
	nodetest.Look[bool](b, `document.querySelector("details:has([value=cancel_meeting])").open = true`)
	require.Equal(t, 200, b.Load(chromedp.Click(chromedp.CSS(`form:has([value=cancel_meeting]) button`))))
	require.Contains(t, b.Text("[role=status]"), "The meeting was cancelled.")

	third := nodetest.OpenBrowser(t, h.Base)
	require.NoError(t, chromedp.Do(third.Ctx, chromedp.Navigate(keep)))
	shows(third, `document.querySelector("main")?.innerText.includes("Prices of yarn.")`) // by the fragment
	require.Empty(t, nodetest.Look[string](third, "location.hash"))
}
