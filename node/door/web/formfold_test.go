package web_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestForms_Folded: a form of many fields shows the few that are changed most; the others are folded, unless one of them holds
// something else than its default, or is refused.
func TestForms_Folded(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Hosted("asha")
	h.TakeBids("asha")
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	cookie, bearer := "stoa_session="+h.SignIn(link), "Bearer "+h.OwnerToken("asha")
	// folds returns the summaries of the folds of a form that are closed, and of those that are open, and how many numbers it shows.
	folds := func(body, form string) (closed, open []string, numbers int) {
		t.Helper()
		p := nodetest.ParsePage(t, "/account", body)
		p.WellFormed()
		root := p.Find("form", "id", form)
		require.NotNil(t, root)
		for n := range root.Descendants() {
			switch {
			case n.Data == "summary" && nodetest.Has(n.Parent, "open"):
				open = append(open, nodetest.TextOf(n))
			case n.Data == "summary":
				closed = append(closed, nodetest.TextOf(n))
			case n.Data == "input" && (nodetest.Attr(n, "inputmode") == "numeric" || nodetest.Attr(n, "inputmode") == "decimal") && !shut(n):
				numbers++
			}
		}
		return closed, open, numbers
	}
	page := func(path string) string {
		return h.Ask("GET", path, "", "Accept", "text/html", "Cookie", cookie).Is(200).Body.String()
	}
	send := func(do string, form url.Values) string {
		form.Set("do", do)
		form.Set("handle", "asha")
		return h.SendForm("/account/attention", form, "Cookie", cookie).Is(422).Body.String()
	}
	step, times := "Categories, step and highest bid", "Displaced bids, answers in time and reported payments"

	closed, open, numbers := folds(page("/account/attention?handle=asha"), "put_attention_board-asha")
	require.Equal(t, []string{step, times}, closed)
	require.Empty(t, open)
	require.Equal(t, 3, numbers)
	h.Ask("PUT", "/api/owner/attention", `{"handle":"asha","floor":"1000","protectHours":48}`, "Authorization", bearer).Is(200)
	closed, open, _ = folds(page("/account/attention?handle=asha"), "put_attention_board-asha")
	require.Equal(t, []string{step}, closed, "the step of 50 rupees follows from the floor")
	require.Equal(t, []string{times}, open)
	h.Ask("PUT", "/api/owner/attention", `{"handle":"asha","floor":"1000","step":"75","autoApprove":false}`, "Authorization", bearer).Is(200)
	closed, open, _ = folds(page("/account/attention?handle=asha"), "put_attention_board-asha")
	require.Equal(t, [][]string{{times}, {step}}, [][]string{closed, open})
	closed, open, _ = folds(send("put_attention_board", url.Values{"floor": {"100"}, "claimHours": {"100"}}), "put_attention_board-asha")
	require.Equal(t, [][]string{{step}, {times}}, [][]string{closed, open}, "a fault is in it")

	rest := []string{"What you meet people for, and questions to them", "Time zone, other dates and journeys", "Notice, limits, pauses and other times"}
	closed, open, numbers = folds(page("/account/meetings/settings?handle=asha"), "put_meeting_settings")
	require.Equal(t, rest, closed)
	require.Empty(t, open)
	require.Zero(t, numbers)
	h.Ask("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true,"durations":[20],"reminders":false,"timezone":"Europe/Berlin"}`,
		"Authorization", bearer).Is(200)
	closed, open, _ = folds(page("/account/meetings/settings?handle=asha"), "put_meeting_settings")
	require.Equal(t, [][]string{rest[:1], rest[1:]}, [][]string{closed, open})

	closed, _, _ = folds(page("/account/notices?handle=asha"), "put_notify-asha")
	require.Equal(t, []string{"Which events you are told about"}, closed)
	h.Ask("PUT", "/api/owner/notify", `{"handle":"asha","events":["thread.begun"]}`, "Authorization", bearer).Is(200)
	_, open, _ = folds(page("/account/notices?handle=asha"), "put_notify-asha")
	require.Len(t, open, 1)
}

// shut reports whether a closed fold is around an element.
func shut(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == "details" && !nodetest.Has(p, "open") {
			return true
		}
	}
	return false
}
