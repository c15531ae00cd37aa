package node

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

	"stoa/protocol"
)

// meetingHouse is a node that sends mail, with asha, who takes meeting requests by some settings.
func meetingHouse(t *testing.T, settings string, change ...func(*Config)) (*house, *doors, *postbox) {
	t.Helper()
	h := newHouse(t, change...)
	box := &postbox{}
	h.accounts.Mail = box
	h.hosted("asha")
	d := &doors{t: t, house: h, token: h.ownerToken("asha")}
	h.run()
	d.good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true`+settings+`}`, d.token, nil)
	return h, d, box
}

// meetingCookie returns the cookie of a request that an answer sets, as a browser sends it.
func meetingCookie(t *testing.T, a answer) string {
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
func (h *house) openMeet(path string, status int) *pageDoc {
	h.t.Helper()
	a := h.ask("GET", path, "", "Accept", browser)
	require.Equal(h.t, status, a.Code, "%s: %s", path, a.Body)
	p := parsePage(h.t, path, a.Body.String())
	p.wellFormed()
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
	h, d, box := meetingHouse(t, `,"policy":"Yarn <b>only</b>.","questions":["How much?"],"durations":[15,45]`)
	require.Contains(t, h.open("/@asha", 200).hrefs(), "/@asha/meet")
	require.Contains(t, h.ask("GET", "/api/public/agents/asha", "").Body.String(), `"meetingPage":"`+h.Base+`/@asha/meet"`)
	a := h.ask("GET", "/@asha/meet", "", "Accept", browser)
	require.Equal(t, 200, a.Code)
	require.Contains(t, a.Header().Get("Content-Security-Policy"), "; script-src 'self'; worker-src 'self'; connect-src 'self';")
	p := parsePage(t, "/@asha/meet", a.Body.String())
	p.wellFormed()
	for _, said := range []string{"Yarn <b>only</b>.", "How much?", "15 or 45 minutes", "10:00–18:00", "from 15 minutes to 90 days ahead", "Asia/Kolkata (IST)"} {
		require.Contains(t, p.text(), said)
	}
	require.Equal(t, "meeting", attr(p.find("form", "id", "meet"), "data-proof"))
	require.Nil(t, p.find("input", "type", "radio"), "open times are not shown")
	require.Equal(t, "guess", attr(p.find("input", "id", "meet-timezone"), "data-zone"))
	require.Equal(t, http.StatusPermanentRedirect, h.ask("GET", "/@Asha/meet", "", "Accept", browser).Code)
	require.Contains(t, h.ask("GET", "/@asha/meet", "", "Accept", "application/json").Header().Get("Location"), "/api/public/agents/asha/meetings")
	require.Contains(t, h.ask("GET", "/api/public/page?path=/@asha/meet", "").Body.String(), `"kind":"meet"`)
	require.Equal(t, 422, h.ask("GET", "/@asha/meet?colour=red", "", "Accept", browser).Code)

	day := time.Now().In(time.FixedZone("IST", 19800)).Add(72 * time.Hour)
	send := func(status int, fields ...string) (answer, *pageDoc) {
		t.Helper()
		form := url.Values{"requester": {"Ravi <i>"}, "email": {"ravi@example.org"}, "purpose": {"Yarn.\r\nMuch."}, "durationMin": {"45"},
			"timezone": {"Asia/Kolkata"}, "date": {day.Format(time.DateOnly)}, "time": {"11:00"}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		if form.Get("altcha") == "new" {
			form.Set("altcha", h.proof("meeting"))
		}
		a := h.sendForm("/@asha/meet", form)
		require.Equal(t, status, a.Code, "%s", a.Body)
		p := parsePage(t, "/@asha/meet", a.Body.String())
		if status != 303 {
			p.wellFormed()
			require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
			require.Equal(t, "Ravi <i>", attr(p.find("input", "id", "meet-requester"), "value"))
			require.Equal(t, "Yarn.\nMuch.", textOf(p.find("textarea", "name", "purpose")))
			require.Equal(t, form.Get("timezone"), attr(p.find("input", "id", "meet-timezone"), "value"), "what was typed is kept")
			require.Equal(t, "chosen", attr(p.find("input", "id", "meet-timezone"), "data-zone"))
		}
		return a, p
	}
	_, p = send(401)
	require.NotEmpty(t, attr(p.find("form", "id", "meet"), "data-challenge"), "without script: what a proof is needed for")
	for said, fields := range map[string][]string{
		"This is not a mail address such as ravi@example.org.": {"email", "nobody"},
		"This is not a time zone such as Asia/Kolkata.":        {"timezone", "IST"},
		"Must be at least 15 minutes ahead":                    {"date", "2026-01-01"},
		"This is not a date and a time":                        {"time", ""},
		"Fill this in.":                                        {"date", "", "time", ""},
	} {
		_, p = send(422, append(fields, "altcha", "new")...)
		require.Contains(t, p.text(), said, fields)
	}
	require.Equal(t, 403, h.ask("POST", "/@asha/meet", "requester=R", "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example",
		"Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 403, h.ask("POST", "/@asha/meet", "requester=R", "Content-Type", "application/x-www-form-urlencoded", "Origin", "null").Code)
	a, _ = send(303, "altcha", "new")
	at := a.Header().Get("Location")
	require.Regexp(t, `^/meetings/mtg_[0-9a-z]{26}$`, at)
	cookie := meetingCookie(t, a)

	show := func(status int, headers ...string) *pageDoc {
		t.Helper()
		a := h.ask("GET", at, "", append([]string{"Accept", browser}, headers...)...)
		require.Equal(t, status, a.Code, "%s", a.Body)
		require.Equal(t, []string{"no-store", "no-referrer"}, []string{a.Header().Get("Cache-Control"), a.Header().Get("Referrer-Policy")})
		p := parsePage(t, at, a.Body.String())
		p.wellFormed()
		return p
	}
	p = show(200, "Cookie", cookie)
	require.Contains(t, p.text(), "Check your mail")
	require.Contains(t, p.text(), "A mail goes to r…@…")
	require.Contains(t, p.text(), "11:00 to 11:45 IST")
	require.NotContains(t, show(404).text(), "Yarn", "not without its token")
	require.Equal(t, 404, h.sendForm(at, url.Values{"statusToken": {"stoa_read_" + strings.Repeat("x", 43)}}).Code)

	ticket := meetingLinkInMail.FindStringSubmatch(box.next(t, h).Text)[1]
	done := h.sendForm("/meeting-link", url.Values{"ticket": {ticket}, "do": {"confirm"}})
	require.Equal(t, 303, done.Code)
	link := strings.TrimPrefix(done.Header().Get("Location"), h.Base)
	require.Regexp(t, `^/meetings/mtg_\w+\?ticket=stoa_read_v\S+$`, link, "the reader of the mailbox can see the request")
	a = h.ask("GET", link, "", "Accept", browser)
	require.Equal(t, []any{303, at}, []any{a.Code, a.Header().Get("Location")}, "the ticket leaves the address")
	reader := meetingCookie(t, a)
	require.Contains(t, show(200, "Cookie", reader).text(), "@asha has the request and decides.")
	require.Equal(t, 404, h.ask("GET", "/meetings/"+protocol.NewID(protocol.MeetingID, time.Now()), "", "Accept", browser, "Cookie", reader).Code, "no other")
	forged := h.ask("GET", at+"?ticket=stoa_read_v"+strings.Repeat("x", 58), "", "Accept", browser)
	require.Equal(t, 303, forged.Code)
	require.Empty(t, forged.Header().Values("Set-Cookie"))

	id := strings.TrimPrefix(at, "/meetings/")
	times := fmt.Sprintf(`{"times":["%[1]sT12:00","%[1]sT15:30"],"timezone":"Asia/Kolkata","answer":"Not <i>then</i>."}`, day.Format(time.DateOnly))
	d.good("POST", "/api/owner/meetings/"+id+"/propose", times, d.token, nil)
	p = show(200, "Cookie", reader)
	require.Contains(t, p.text(), "Not <i>then</i>.")
	require.Contains(t, p.text(), "12:00 to 12:45 IST")
	pick := func(cookie, start string) answer {
		return h.sendForm(at, url.Values{"do": {"pick_meeting_time"}, "startsAt": {start}}, "Cookie", cookie)
	}
	offered := attr(p.find("input", "name", "startsAt"), "value")
	require.Equal(t, 404, pick("", offered).Code)
	require.Equal(t, 422, pick(reader, "2026-12-01T00:00:00Z").Code, "not one of the times")
	require.Equal(t, 303, pick(reader, offered).Code)
	require.Contains(t, show(200, "Cookie", cookie).text(), "the meeting takes place")
	require.Equal(t, 409, pick(reader, "2026-12-01T00:00:00Z").Code)
	require.Equal(t, 403, h.ask("POST", at, "do=cancel_meeting", "Content-Type", "application/x-www-form-urlencoded", "Cookie", cookie,
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 303, h.sendForm(at, url.Values{"do": {"cancel_meeting"}}, "Cookie", cookie).Code)
	require.Contains(t, show(200, "Cookie", cookie).text(), "The meeting was cancelled.")

	d.good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":false}`, d.token, nil)
	p = h.openMeet("/@asha/meet", 200)
	require.Contains(t, p.text(), "takes no meeting requests now")
	require.Nil(t, p.find("form", "id", "meet"))
	require.NotContains(t, h.open("/@asha", 200).hrefs(), "/@asha/meet")
}

// TestMeetPage_Slots: open times by day, in the zone that the reader chose, and the days after them.
func TestMeetPage_Slots(t *testing.T) {
	t.Parallel()
	h, d, _ := meetingHouse(t, `,"showSlots":true,"durations":[30,60],"maxPerDay":100`+everyHour())
	p := h.openMeet("/@asha/meet", 200)
	require.Equal(t, "guess", attr(p.find("input", "id", "f-timezone"), "data-zone"))
	require.Equal(t, "Asia/Calcutta", attr(p.find("input", "id", "f-timezone"), "data-same"), "what browsers in India call it")
	alias := h.openMeet("/@asha/meet?timezone=Asia/Calcutta", 200)
	require.Equal(t, "Asia/Kolkata", attr(alias.find("input", "id", "f-timezone"), "value"))
	require.NotContains(t, alias.text(), "Below each time is that of")
	berlin := h.openMeet("/@asha/meet?timezone=Europe/Berlin&durationMin=60", 200)
	require.Equal(t, "chosen", attr(berlin.find("input", "id", "f-timezone"), "data-zone"))
	require.Contains(t, berlin.text(), "60 minutes, in Europe/Berlin (CE")
	require.Contains(t, berlin.text(), "Below each time is that of @asha, in Asia/Kolkata (IST).")
	require.GreaterOrEqual(t, len(berlin.all("fieldset")), 7, "six days, this one where an hour of it is left, and another time")
	later := attr(berlin.find("a", "rel", "next nofollow"), "href")
	next := h.openMeet(later, 200)
	require.Contains(t, later, "timezone=Europe%2FBerlin")
	first := attr(next.find("input", "type", "radio"), "value")
	at, err := time.Parse(time.RFC3339, first)
	require.NoError(t, err)
	zone, _ := protocol.Zone("Europe/Berlin")
	require.Equal(t, "00:00", at.In(zone).Format("15:04"), "from a midnight on")
	require.NotContains(t, h.openMeet("/@asha/meet?timezone=Europe/Berlin&durationMin=60", 200).raw, first)
	require.NotNil(t, next.find("a", "rel", "prev nofollow"))
	wrong := h.openMeet("/@asha/meet?timezone=Berlin", 422)
	require.Contains(t, wrong.text(), "Is not an IANA time zone name such as Asia/Kolkata.")
	require.Contains(t, wrong.hrefs(), "/@asha/meet", "start again")
	require.Equal(t, "Berlin", attr(wrong.find("input", "id", "f-timezone"), "value"))

	form := url.Values{"requester": {"Ravi"}, "email": {"ravi@example.org"}, "purpose": {"Yarn."}, "durationMin": {"60"}, "timezone": {"Europe/Berlin"},
		"from": {machineZ(at)}, "startsAt": {first}}
	refused := h.sendForm("/@asha/meet", form)
	require.Equal(t, 401, refused.Code)
	kept := parsePage(t, "/@asha/meet", refused.Body.String())
	kept.wellFormed()
	chosen := slices.IndexFunc(kept.all("input"), func(n *html.Node) bool { return has(n, "checked") })
	require.GreaterOrEqual(t, chosen, 0)
	require.Equal(t, first, attr(kept.all("input")[chosen], "value"), "the chosen time stays chosen")
	form.Set("altcha", h.proof("meeting"))
	require.Equal(t, 303, h.sendForm("/@asha/meet", form).Code)
	form.Set("altcha", h.proof("meeting"))
	form.Set("startsAt", "other")
	require.Contains(t, h.sendForm("/@asha/meet", form).Body.String(), "Fill this in.")
	form.Del("startsAt")
	refusedPage := parsePage(t, "/@asha/meet", h.sendForm("/@asha/meet", form).Body.String())
	picker := refusedPage.find("div", "role", "radiogroup")
	require.Equal(t, "true", attr(picker, "aria-invalid"))
	require.Equal(t, "Choose a time.", textOf(refusedPage.find("p", "id", attr(picker, "aria-describedby"))), "one fault, at the picker")
	for _, n := range refusedPage.all("input") {
		require.False(t, attr(n, "type") == "radio" && has(n, "required"), "a browser complains at each radio button that is folded away")
	}
	d.good("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"showSlots":true,"outsideHours":"refuse"}`, d.token, nil)
	require.NotContains(t, h.openMeet("/@asha/meet", 200).text(), "Another time")
}

func machineZ(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestBrowser_Meet: a visitor whose clock is in Berlin asks for an open time with a proof that the page
// solves, confirms by the mail's link, and takes a proposed time.
func TestBrowser_Meet(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	h, d, box := meetingHouse(t, `,"showSlots":true,"durations":[30,60],"maxPerDay":100,"location":"https://meet.example/{slug}",
		"policy":"Weaving, dyes, looms.","questions":["What do you weave?"]`+everyHour(),
		func(c *Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	t.Cleanup(server.Close)
	b := openBrowser(t, h.Base)
	b.do(devCall(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"}))
	b.screen(390, 844)

	require.Equal(t, 200, b.open("/@asha"))
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS(`a[href="/@asha/meet"]`))))
	b.shows(`location.search.includes("timezone=Europe%2FBerlin") && document.readyState == "complete"`) // the browser's zone
	require.Contains(t, b.text("#meet"), "30 minutes, in Europe/Berlin")
	require.Greater(t, look[int](b, `document.querySelectorAll("datalist option").length`), 300)
	b.picture("meet")
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS(`a[rel~=next]`))))
	require.Equal(t, 200, b.send("search form", "durationMin", "60", "timezone", "Europe/Paris"))
	require.Contains(t, b.text("#meet"), "60 minutes, in Europe/Paris")
	start := b.value("#meet input[type=radio]")
	look[bool](b, `document.querySelector("#meet input[type=radio]").click(), true`)
	require.Equal(t, 422, b.send("#meet", "requester", "Ravi", "email", "ravi@example", "purpose", "Prices of yarn."))
	require.Contains(t, b.text("#n-meet-email"), "This is not a mail address")
	require.Equal(t, start, b.value("#meet input[type=radio]:checked"))
	b.picture("meet-fault")
	require.Equal(t, 200, b.send("#meet", "email", "ravi@example.org"), b.text("main"))
	require.Equal(t, "Check your mail", b.text("h1"))
	b.picture("meeting-unconfirmed")
	page := b.address()
	keep := b.text("#keep ~ pre code")

	require.Equal(t, 200, b.load(chromedp.Navigate(meetingLinkInMail.FindString(box.next(t, h).Text))))
	b.picture("meeting-confirm")
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS(`[value=confirm]`))), b.text("main"))
	require.Equal(t, page, b.address(), "without the ticket")
	require.Contains(t, b.text("[role=status]"), "@asha has the request and decides.")

	at, err := time.Parse(time.RFC3339, start)
	require.NoError(t, err)
	id := strings.TrimPrefix(page, "/meetings/")
	d.good("POST", "/api/owner/meetings/"+id+"/propose", fmt.Sprintf(`{"times":[%q,%q],"answer":"I am at the loom then."}`,
		machineZ(at.Add(2*time.Hour)), machineZ(at.Add(26*time.Hour))), d.token, nil)
	other := openBrowser(t, h.Base)
	other.screen(390, 844)
	require.Equal(t, 404, other.open(page))
	link := regexp.MustCompile(`http\S*/meetings/mtg_\w+\?ticket=stoa_read_v\S+`).FindString(box.next(t, h).Text)
	require.Equal(t, 200, other.load(chromedp.Navigate(link)))
	require.Equal(t, page, other.address())
	require.Contains(t, other.text("main"), "I am at the loom then.")
	other.picture("meeting-proposed")
	require.Equal(t, 200, other.load(chromedp.Click(chromedp.CSS(`#pick ~ .list form button`))), other.text("main"))
	require.Contains(t, other.text("[role=status]"), "the meeting takes place")
	require.Contains(t, other.text("main"), "https://meet.example/stoa-")
	other.picture("meeting-approved")
	require.Equal(t, 200, b.open(page))
	look[bool](b, `document.querySelector("details:has([value=cancel_meeting])").open = true`)
	require.Equal(t, 200, b.load(chromedp.Click(chromedp.CSS(`form:has([value=cancel_meeting]) button`))))
	require.Contains(t, b.text("[role=status]"), "The meeting was cancelled.")

	third := openBrowser(t, h.Base)
	require.NoError(t, chromedp.Do(third.ctx, chromedp.Navigate(keep)))
	third.shows(`document.querySelector("main")?.innerText.includes("Prices of yarn.")`) // by the fragment
	require.Empty(t, look[string](third, "location.hash"))
}
