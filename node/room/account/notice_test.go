package account_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestNotices: an address is confirmed before anything goes there, a notice goes
// by mail and webhook and holds one line of the other side, and sign-in links go
// to the address of an account alone.
func TestNotices(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, testNotices)
}

func testNotices(t *testing.T, change func(*node.Config)) {
	h := nodetest.New(t, change)
	box := &nodetest.Postbox{}
	h.Accounts.Mail = box
	h.Hosted("asha")
	auth := []string{"Authorization", "Bearer " + h.OwnerToken("asha")}
	hooks := make(chan string, 4)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Signature") != "" {
			hooks <- string(body)
		}
	}))
	t.Cleanup(hook.Close)
	ctx := t.Context()
	h.Work()

	var s protocol.NotifySettings
	put := h.Ask("PUT", "/api/owner/notify", `{"mail":"Asha@Example.org","webhook":"`+hook.URL+`/n","events":["post.hidden"]}`, auth...).Is(200)
	put.Into(&s)
	require.Equal(t, "asha@example.org", *s.Mail)
	require.False(t, s.MailConfirmed)
	asked := box.Next(t, h)
	require.Equal(t, "asha@example.org", asked.To)
	code := regexp.MustCompile(`(?m)^[A-Za-z0-9_-]{32}$`).FindString(asked.Text)
	require.NotEmpty(t, code)
	require.Equal(t, 200, h.Ask("POST", "/api/owner/notify/confirm", `{"code":"`+code+`"}`, auth...).Code)
	require.Equal(t, 410, h.Ask("POST", "/api/owner/notify/confirm", `{"code":"`+code+`"}`, auth...).Code, "once")

	notify := func(e protocol.NoticeEvent, title string) {
		require.NoError(t, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Notify(ctx, protocol.Notice{Handle: "asha", Event: e, Subject: "post_01k9y3v6k8e5w9q2x4z7c1m0ad", Title: title})
		}))
	}
	notify(protocol.PostReported, "not wanted")
	notify(protocol.PostHidden, "Go to https://evil.example\nSubject: x")
	told := box.Next(t, h)
	require.Equal(t, "A post of @asha was hidden", told.Subject)
	require.Contains(t, told.Text, "    | Go to https:// evil.exampleSubject: x\n", "one line, marked, no link")
	require.NotContains(t, told.Text, "ticket")
	select {
	case body := <-hooks:
		require.Contains(t, body, `"event":"post.hidden"`)
		require.Contains(t, body, `"untrusted_content":true`)
	case <-time.After(time.Minute):
		t.Fatal("the webhook was not called")
	}

	h.OpenAccount("Ravi", protocol.RoleOwner, "ravi@example.org")
	form := func(mail string) string {
		a := h.Ask("POST", "/sign-in", "mail="+mail, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html").Is(200)
		return a.Body.String()
	}
	mask := regexp.MustCompile(`request <code>[^<]*`)
	require.Equal(t, mask.ReplaceAllString(form("stranger@example.org"), ""), mask.ReplaceAllString(form("ravi@example.org"), ""),
		"nobody learns who has an account")
	link := box.Next(t, h)
	require.Equal(t, "ravi@example.org", link.To)
	ticket := regexp.MustCompile(`/sign-in\?ticket=([A-Za-z0-9_-]{32})`).FindStringSubmatch(link.Text)
	require.NotNil(t, ticket)
	for range 2 { // looking spends nothing
		require.Equal(t, 200, h.Ask("GET", ticket[0], "", "Accept", "text/html").Code)
	}
	spend := func(headers ...string) nodetest.Answer {
		return h.Ask("POST", "/sign-in", "ticket="+ticket[1], append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"},
			headers...)...)
	}
	require.Equal(t, 403, spend("Sec-Fetch-Site", "cross-site").Code)
	in := spend("Sec-Fetch-Site", "same-origin")
	require.Equal(t, 303, in.Code)
	require.Contains(t, in.Header().Get("Set-Cookie"), "HttpOnly; SameSite=Lax")
	require.Equal(t, 410, spend().Code)
	cookie := in.Result().Cookies()[0]
	page := h.Ask("GET", "/account", "", "Cookie", cookie.Name+"="+cookie.Value, "Accept", "text/html").Is(200)
	require.Equal(t, "no-store", page.Header().Get("Cache-Control"))
	nodetest.ParsePage(t, "/account", page.Body.String()).WellFormed()
}

// TestLetters_OneWaits: a server that wants to be asked again for one address, or
// a webhook that is down, holds up nobody else's.
func TestLetters_OneWaits(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		box := &nodetest.Postbox{Greylists: "grey@example.org"}
		h.Accounts.Mail = box
		down := make(chan string, 64)
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			down <- string(raw)
			if r.URL.Path == "/down" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(hook.Close)
		for handle, s := range map[string]storage.NotifySettings{
			"grey": {Mail: "grey@example.org", Confirmed: true, Webhook: hook.URL + "/down"},
			"asha": {Mail: "asha@example.org", Confirmed: true, Webhook: hook.URL + "/up"},
		} {
			h.Hosted(handle)
			h.OpenAccount(handle, protocol.RoleOwner, s.Mail, handle)
			s.Handle = handle
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return tx.Profiles().PutNotifySettings(ctx, s)
			}))
		}
		for _, handle := range []string{"grey", "asha"} {
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if err := h.Accounts.AskLink(ctx, tx, handle+"@example.org", ""); err != nil {
					return err
				}
				return tx.Notify(ctx, protocol.Notice{Handle: handle, Event: protocol.PostHidden, Subject: "post_01k9y3v6k8e5w9q2x4z7c1m0ad", Title: "t"})
			}))
		}
		h.Work()
		for range 2 { // the link and the notice
			require.Equal(t, "asha@example.org", box.Next(t, h).To)
		}
		for range 2 {
			select {
			case body := <-down:
				require.NotContains(t, body, `"try"`, "how often it was tried is the node's own business")
			case <-time.After(time.Minute):
				t.Fatal("a webhook was not called")
			}
		}
		require.Eventually(t, func() bool {
			kept := map[storage.JobKind]bool{}
			require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
				for _, j := range jobs.Items {
					kept[j.Kind] = kept[j.Kind] || strings.Contains(string(j.Args), `"try":`)
				}
				return err
			}))
			return kept[storage.SignInJob] && kept[storage.MailJob] && kept[storage.WebhookJob]
		}, time.Minute, 20*time.Millisecond, "what was not taken is tried again")
	})
}
