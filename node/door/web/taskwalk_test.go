package web_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A walker does a task on a phone, and counts.
type walker struct {
	*nodetest.Tab
	taps, typed, words, loads int
}

// task begins a task at the first page.
func task(b *nodetest.Tab) *walker {
	b.T.Helper()
	require.Equal(b.T, 200, b.Open("/"))
	return &walker{Tab: b, loads: 1}
}

// tap taps an element, after the words from the top of the screen down to it were read.
func (w *walker) tap(selector string) *walker {
	w.T.Helper()
	read := nodetest.Look[int](w.Tab, `(selector => {
		const target = document.querySelector(selector);
		if (!target) return -1;
		window.former = true;
		const top = scrollY, bottom = target.getBoundingClientRect().bottom + scrollY, within = target.closest("main") || document.body;
		const texts = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
		let words = 0;
		while (texts.nextNode()) {
			const parent = texts.currentNode.parentElement, box = parent.getBoundingClientRect();
			const above = box.top + scrollY < bottom && box.bottom + scrollY > top;
			if (above && parent.checkVisibility() && !parent.closest(".unseen, option, noscript"))
				words += texts.currentNode.data.trim().split(/\s+/).filter(Boolean).length;
		}
		return words;
	})(`+nodetest.Quoted(selector)+`)`)
	require.GreaterOrEqual(w.T, read, 0, "%s has no %s", nodetest.Look[string](w.Tab, "location.href"), selector)
	do(w.Tab, chromedp.Click(chromedp.CSS(selector)))
	w.taps++
	w.words += read
	return w
}

// follow taps what leads to another page.
func (w *walker) follow(selector string) *walker {
	w.T.Helper()
	w.tap(selector)
	shows(w.Tab, `!window.former && document.readyState == "complete"`)
	w.loads++
	return w
}

// enter taps a field and types, or picks, a value.
func (w *walker) enter(selector, value string) *walker {
	w.T.Helper()
	w.tap(selector)
	nodetest.Look[bool](w.Tab, `((selector, value) => { document.querySelector(selector).value = value; return true; })(`+
		nodetest.Quoted(selector)+`, `+nodetest.Quoted(value)+`)`)
	w.typed += len([]rune(value))
	return w
}

// seconds estimates how long somebody takes who sees the pages for the first time; docs/WALK.md says how.
func (w *walker) seconds() int {
	return int(float64(w.loads) + 1.75*float64(w.taps) + 0.33*float64(w.typed) + float64(w.words)/4)
}

// TestTasks does what people come for, on a phone and from the first page, and compares the number of taps with docs/WALK.md.
// STOA_TEST_WALK=write writes the table there.
func TestTasks(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.Meeting.Mail = nodetest.NoMeetingMail // the request is not confirmed by mail first
	a := w.Ask("POST", "/api/public/agents/asha/meetings", fmt.Sprintf(
		`{"requester":"Ravi","email":"ravi@example.org","purpose":"Paper for a book","durationMin":30,"startsAt":%q,"timezone":"Asia/Kolkata"}`,
		nextWeekday(time.Now().Add(72*time.Hour)).Format(time.RFC3339)), "Proof-Of-Work", w.Proof("meeting"))
	require.Equal(t, http.StatusCreated, a.Code, "%s", a.Body)
	asked := nodetest.As[protocol.MeetingReceipt](a)
	alwaysOpen(w.House, "rao-tiffins")
	visitor, owner := nodetest.OpenBrowser(t, w.Base), nodetest.OpenBrowser(t, w.Base)
	for _, b := range []*nodetest.Tab{visitor, owner} {
		do(b, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	}
	signedIn(owner, w.cookie)
	owner.Open("/account") // which tells the browser that it is signed in
	var rows []string
	note := func(name string, x *walker) {
		t.Helper()
		rows = append(rows, fmt.Sprintf("| %s | %d | %d |", name, x.taps, x.typed), fmt.Sprint(x.seconds()))
	}

	x := task(visitor).follow(`main a[href="/merchants"]`).enter("#f-q", "tiffin Bengaluru").tap("search summary").tap("[name=openNow]").
		follow("search .narrow button[type=submit]").
		follow(`h2 a[href="/@rao-tiffins"]`).tap(`a[href="#to-write"]`)
	require.Contains(t, visitor.Text("main"), "Bengaluru")
	require.Regexp(t, "(?i)open now", visitor.Text("main"))
	x.enter("#write-message", "What do lunches for 20 people cost, from Monday on?").follow("#write button[type=submit]")
	thread := nodetest.Look[string](visitor, "location.pathname")
	require.Regexp(t, "^/threads/", thread)
	note("Find a tiffin shop in Bengaluru that is open, and ask for a quote", x)

	answer := task(owner).follow(`header a[href="/account"]`).follow(`.index a[href="/account/threads?handle=rao-tiffins"]`).
		follow(`a[href^="/account`+thread+`"]`).enter("#answer-message", "Rs. 120 a lunch.").follow("#answer button[type=submit]")
	require.Contains(t, owner.Text("main"), "Your answer is sent.")

	x = task(visitor).follow(`[data-threads] a`)
	require.Contains(t, visitor.Text("main"), "Rs. 120 a lunch.")
	note("Read the answer the next day, on the same phone", x)

	x = task(visitor).follow(`main a[href="/board#to-post"]`).enter("#post-title", "Who repairs looms?").enter("#post-body", "In Mysuru, this month.").
		follow("#post button[type=submit]")
	require.Equal(t, "Who repairs looms?", visitor.Text("h1"))
	note("Put a question on the board", x)

	x = task(visitor).follow(`.posts article h3 a`).tap("#to-report ~ details summary").follow("#report button[type=submit]")
	require.Equal(t, "Reported", visitor.Text("h1"))
	note("Report a post", x)

	note("Owner: answer a question", answer)

	x = task(owner).follow(`header a[href="/account"]`).follow(`.index a[href="/account/items?handle=rao-tiffins"]`).
		enter("#quick-idli-amount", "45").follow("#quick-idli button[type=submit]")
	require.Equal(t, "45", value(owner, "#quick-idli-amount"))
	note("Owner: change a price", x)

	day := time.Now().AddDate(0, 1, 0).Format(time.DateOnly)
	x = task(owner).follow(`header a[href="/account"]`).follow(`.index a[href="/account/hours?handle=rao-tiffins"]`).
		enter("#close-from", day).enter("#close-why", "Diwali").follow("#close button[type=submit]")
	require.Contains(t, owner.Text("main"), "Diwali")
	note("Owner: close for Diwali", x)

	x = task(owner).follow(`header a[href="/account"]`).follow(`.index a[href^="/account/meetings?handle=asha"]`).
		follow(`a[href="/account/meetings/` + asked.Request.ID + `"]`).follow("#approve_meeting button[type=submit]")
	require.Contains(t, owner.Text("main"), "The meeting is approved.")
	note("Owner: approve a meeting", x)

	box := &nodetest.Postbox{}
	w.Accounts.Mail = box
	w.Work()
	shop := nodetest.OpenBrowser(t, w.Base)
	do(shop, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	x = task(shop).follow(`header a.join`).enter("#join-name", "Meera Sweets").enter("#join-headline", "Sweets by the kilo").
		enter("#join-mail", "meera@example.org").
		follow("#join button[type=submit]").enter("#code", joinDigits.FindString(box.Next(t, w.House).Subject)).follow("main button[type=submit]").
		follow(`.steps a[href^="/account/hours"]`).enter(`[name="hours-every"]`, "9am-9pm").follow(`form:has([name="hours-every"]) button[type=submit]`).
		follow(`a[href="/account/start"]`).follow(`.steps a[href^="/account/items?"]`).enter(`[name="name"]`, "Kaju katli").enter(`[name="amount"]`, "900").
		follow(`form:has([name="listAmount"]) button[type=submit]`)
	require.Contains(t, w.Ask("GET", "/api/public/merchants?q=katli", "").Body.String(), "meera-sweets")
	note("A shop joins, from nothing to its hours and a first item that customers see", x)

	file := nodetest.Source("docs/WALK.md")
	raw := must.Get(os.ReadFile(file))(t)
	head, _, found := strings.Cut(string(raw), "| --- |")
	require.True(t, found)
	table, counted := head+"| --- | ---: | ---: | ---: |\n", ""
	for i := 0; i < len(rows); i += 2 {
		table += rows[i] + " " + rows[i+1] + " |\n"
		counted += rows[i] + "\n"
	}
	t.Log("\n" + table[len(head):])
	if os.Getenv("STOA_TEST_WALK") == "write" {
		require.NoError(t, os.WriteFile(file, []byte(table), 0o644))
		return
	}
	for row := range strings.Lines(counted) { // the seconds are estimates, and differ by the length of dates
		require.Contains(t, string(raw), strings.TrimSpace(row), "STOA_TEST_WALK=write go test ./node -run TestTasks writes the table")
	}
}

// alwaysOpen makes a shop open at every time, so that a test finds it so.
func alwaysOpen(h *nodetest.House, handle string) {
	h.T.Helper()
	stored := nodetest.As[protocol.MerchantRecord](h.Ask("GET", "/api/owner/merchant?handle="+handle, "", "Authorization", "Bearer "+h.OwnerToken(handle)))
	require.NotEmpty(h.T, stored.Record.Hours)
	stored.Record.Hours, stored.Record.ExceptionHours = nil, nil
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		stored.Record.Hours = append(stored.Record.Hours, protocol.DayHours{Day: day, Opens: "00:00", Closes: "24:00"})
	}
	must.Get(h.Admin().PutMerchant(h.T.Context(), handle, nodetest.Encoded(stored.Record)))(h.T)
}

// nextWeekday returns eleven o'clock in India on that day, or on the Monday after it.
func nextWeekday(at time.Time) time.Time {
	at = at.In(protocol.India)
	for at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
		at = at.AddDate(0, 0, 1)
	}
	return time.Date(at.Year(), at.Month(), at.Day(), 11, 0, 0, 0, protocol.India)
}
