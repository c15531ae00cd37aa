package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// forwarded are what a program writes that only forwards texts.
func forwarded(h *nodetest.House) map[string]string {
	token := h.OpenBoard("asha", "")
	h.Ask("PUT", "/api/owner/meeting-settings", `{"handle":"asha","acceptingMeetingRequests":true}`, "Authorization", token).Is(200)
	at := time.Now().Add(72 * time.Hour).UTC().Truncate(24 * time.Hour).Add(9 * time.Hour).Format(time.RFC3339)
	return map[string]string{
		"post_to_board":     `{"kind":"question","title":"Who makes paper?","body":"Two hundred sheets <b>by hand</b>."}`,
		"contact_agent":     `{"handle":"asha","kind":"question","message":"Do you make paper?"}`,
		"bid_for_attention": `{"handle":"asha","amount":"1500","message":"Paper from Jaipur","name":"Meera"}`,
		"request_meeting": fmt.Sprintf(`{"handle":"asha","requester":"Meera","email":"meera@example.org","purpose":"Paper","durationMin":30,"startsAt":%q,
			"timezone":"Asia/Kolkata"}`, at),
	}
}

// A refusal is what a program reads that wrote without a proof.
type refusal struct{ Tell, Code, Confirm, ConfirmURL, ConfirmID string }

// calls calls a tool as a program does, and reads its text.
func calls(h *nodetest.House, name, args, confirmID string) (text string, failed bool, r refusal) {
	h.T.Helper()
	if confirmID != "" {
		args = strings.TrimSuffix(args, "}") + `,"confirmId":"` + confirmID + `"}`
	}
	a := h.Tool(name, args)
	_ = json.Unmarshal([]byte(a.Content[0].Text), &r)
	return a.Content[0].Text, a.IsError, r
}

// TestBrowser_Confirm: a program that only forwards texts posts, writes to an agent, bids and asks for a meeting, with two calls each and one
// press of a person in Chromium.
func TestBrowser_Confirm(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, func(c *node.Config) { c.Dev = true })
	b := nodetest.OpenBrowser(t, h.Base)
	do(b, chromedp.EmulateViewport(390, 844))
	for name, args := range forwarded(h) {
		text, failed, r := calls(h, name, args, "")
		require.True(t, failed, name)
		require.Equal(t, "pow-required", r.Code, "%s: %s", name, text)
		require.True(t, strings.HasPrefix(text, `{"tell":"Give this link to the person: `+h.Base+"/confirm/"), text)
		_, failed, again := calls(h, name, args, r.ConfirmID)
		require.True(t, failed)
		require.Equal(t, refusal{r.Tell, "pow-required", "waiting", r.ConfirmURL, r.ConfirmID}, again)

		require.Equal(t, 200, b.Load(chromedp.Navigate(r.ConfirmURL)))
		sound(b, "confirm-"+name)
		require.Contains(t, b.Text("main"), "Nothing is sent before you press")
		if name == "post_to_board" {
			require.Contains(t, b.Text("main"), "Two hundred sheets <b>by hand</b>.", "the whole text, and no markup of its author")
		}
		require.Equal(t, 200, b.Send("#confirm"), name)
		require.Contains(t, b.Text("main"), "Done", name)
		text, failed, _ = calls(h, name, args, r.ConfirmID)
		require.False(t, failed, "%s: %s", name, text)
		require.Equal(t, 200, b.Load(chromedp.Navigate(r.ConfirmURL)))
		require.Contains(t, b.Text("main"), "Done", "a second look does nothing")
	}
	var board protocol.Page[protocol.Post]
	h.Ask("GET", "/api/public/board", "").Is(200).Into(&board)
	require.Len(t, board.Items, 1, "once")
}

// TestConfirm: what a program may learn of a write that waits, and who may press.
func TestConfirm(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.Hosted("asha")
		const path, post = "/api/public/board", `{"kind":"question","title":"Who?","body":"Who makes paper?"}`
		with := func(id string) string { return strings.TrimSuffix(post, "}") + `,"confirmId":"` + id + `"}` }
		asks := func() (r refusal) {
			h.Ask("POST", path, post).Is(401).Into(&r)
			require.Equal(t, "waiting", r.Confirm)
			return r
		}
		press := func(link string, form url.Values, headers ...string) nodetest.Answer {
			return h.SendForm(strings.TrimPrefix(link, h.Base), form, headers...)
		}
		r := asks()
		page := h.Ask("GET", strings.TrimPrefix(r.ConfirmURL, h.Base), "", "Accept", nodetest.Accept).Is(200)
		require.Equal(t, "noindex", page.Header().Get("X-Robots-Tag"))
		require.Contains(t, page.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Equal(t, "waiting", nodetest.As[refusal](h.Ask("POST", path, with(r.ConfirmID)).Is(401)).Confirm, "looking at it does nothing")
		require.Equal(t, protocol.Gone, h.Ask("POST", path, with("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")).Problem().Code)
		require.Equal(t, protocol.Gone, h.Ask("POST", path, with(r.ConfirmURL[len(h.Base)+len(hall.ConfirmPath):])).Problem().Code, "the link is not the id")
		h.Ask("GET", hall.ConfirmPath+r.ConfirmID, "", "Accept", nodetest.Accept).Is(404)
		other := strings.Replace(with(r.ConfirmID), "Who?", "What?", 1)
		require.Equal(t, protocol.Conflict, h.Ask("POST", path, other).Problem().Code, "what is confirmed is what was shown")
		require.Equal(t, 401, press(r.ConfirmURL, url.Values{"do": {"post_to_board"}}).Code, "without a proof nothing is sent")
		require.Equal(t, 403, h.Ask("POST", strings.TrimPrefix(r.ConfirmURL, h.Base), "do=post_to_board", "Content-Type", "application/x-www-form-urlencoded",
			"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)

		proof := url.Values{"do": {"post_to_board"}, "altcha": {h.Proof("board")}}
		require.Contains(t, press(r.ConfirmURL, proof).Is(200).Body.String(), "Done")
		require.Contains(t, press(r.ConfirmURL, proof).Is(200).Body.String(), "Done", "pressed twice")
		made := nodetest.As[protocol.MadePost](h.Ask("POST", path, with(r.ConfirmID)).Is(201))
		require.NotEmpty(t, made.DeleteToken)
		require.False(t, made.Author.Verified)

		r = asks()
		require.Contains(t, press(r.ConfirmURL, url.Values{"do": {"refuse"}}).Is(200).Body.String(), "Refused")
		require.Equal(t, protocol.Forbidden, h.Ask("POST", path, with(r.ConfirmID)).Problem().Code)
		require.Contains(t, press(r.ConfirmURL, url.Values{"do": {"post_to_board"}, "altcha": {h.Proof("board")}}).Is(200).Body.String(), "Refused")

		_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
		r = asks()
		press(r.ConfirmURL, url.Values{"do": {"post_to_board"}}, "Cookie", "stoa_session="+h.SignIn(link)).Is(200)
		made = nodetest.As[protocol.MadePost](h.Ask("POST", path, with(r.ConfirmID)).Is(201))
		require.Equal(t, "asha", *made.Author.Handle, "who is signed in sends it as his, without a proof")

		for range 120 { // of one network
			asks()
		}
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			require.LessOrEqual(t, must.Get(tx.Drafts().Count(ctx, 1000))(t), 100)
			return nil
		}))
	})
}
