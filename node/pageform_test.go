package node

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"stoa/protocol"
)

// formValues are what a browser would send of a form of the page that nobody touched.
func (d *pageDoc) formValues(id string) url.Values {
	d.t.Helper()
	form := d.find("form", "id", id)
	require.NotNil(d.t, form, "%s has no form %s", d.path, id)
	return valuesOf(form)
}

func valuesOf(form *html.Node) url.Values {
	sent := url.Values{}
	for n := range form.Descendants() {
		name := attr(n, "name")
		switch {
		case name == "":
		case n.Data == "textarea":
			sent.Add(name, strings.TrimPrefix(textOf(n), "\n"))
		case n.Data == "select":
			for o := range n.Descendants() {
				if o.Data == "option" && (has(o, "selected") || sent[name] == nil) {
					sent.Set(name, attr(o, "value"))
				}
			}
		case n.Data == "input" && (attr(n, "type") != "checkbox" && attr(n, "type") != "radio" || has(n, "checked")):
			sent.Add(name, attr(n, "value"))
		}
	}
	return sent
}

// own opens a page of the account that is signed in by the cookie.
func (h *house) own(cookie, path string) *pageDoc {
	h.t.Helper()
	a := h.ask("GET", path, "", "Accept", browser, "Cookie", "stoa_session="+cookie)
	require.Equal(h.t, 200, a.Code, "%s: %s", path, a.Body)
	return parsePage(h.t, path, a.Body.String())
}

// TestForms_Versions: a form that replaces something and was shown before a change in another tab is refused
// with what is stored now beside what was typed, and replaces it when it is sent once more. A change of something else
// that the same operation reads does not stand in the way. The ETag of HTTP does the same.
func TestForms_Versions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.openBoard("asha", `,"rules":"Yarn only.","floor":"1500"`)
	_, link, err := h.Admin().OpenAccount(t.Context(), "Asha", protocol.RoleOwner, "asha@example.org", []string{"asha"})
	require.NoError(t, err)
	cookie, token := h.signIn(link), "Bearer "+h.ownerToken("asha")
	for _, x := range []struct {
		page, form, api            string
		field, first, second, says string
	}{
		{"/account/meetings/settings", "put_meeting_settings", "/api/owner/meeting-settings", "policy", "About yarn.", "About cloth.", "The settings were saved."},
		{"/account/attention", "put_attention_board", "/api/owner/attention", "rules", "No yarn.", "Only cloth.", "The board was saved."},
		{"/account/attention", "put_payment_account", "/api/owner/payment-account", "payeeName", "Asha R", "A. Rao", "The payment account was saved."},
	} {
		t.Run(x.form, func(t *testing.T) {
			id := x.form
			if strings.HasPrefix(x.page, "/account/attention") {
				id += "-asha"
			}
			first := h.ask("GET", x.api, "", "Authorization", token)
			tag := first.Header().Get("ETag")
			require.NotEmpty(t, tag, "its answer has a version: %s", first.Body)
			shown := h.own(cookie, x.page)
			one, action := shown.formValues(id), attr(shown.find("form", "id", id), "action")
			other := h.own(cookie, x.page).formValues(id)
			require.NotEmpty(t, one.Get("version"))

			one.Set(x.field, x.first)
			require.Equal(t, http.StatusSeeOther, h.sendForm(action, one, "Cookie", "stoa_session="+cookie).Code)
			other.Set(x.field, x.second)
			a := h.sendForm(action, other, "Cookie", "stoa_session="+cookie)
			require.Equal(t, http.StatusPreconditionFailed, a.Code, "%s", a.Body)
			d := parsePage(t, x.page, a.Body.String())
			d.wellFormed()
			require.Contains(t, d.text(), "This was changed in the meantime")
			require.Equal(t, 1, strings.Count(d.text(), "Stored now:"), "only where it differs")
			require.Contains(t, d.text(), x.first)
			again := d.formValues(id)
			require.Equal(t, x.second, again.Get(x.field), "what was typed is kept")

			read := func() string { return h.ask("GET", x.api, "", "Authorization", token).Body.String() }
			require.Contains(t, read(), x.first)
			saved := h.sendForm(action, again, "Cookie", "stoa_session="+cookie)
			require.Equal(t, http.StatusSeeOther, saved.Code, "%s", saved.Body)
			require.Contains(t, h.own(cookie, saved.Header().Get("Location")).text(), x.says)
			require.Contains(t, read(), x.second)

			body := map[string]string{
				"put_meeting_settings": `{"handle":"asha","acceptingMeetingRequests":true}`, "put_attention_board": `{"handle":"asha"}`,
				"put_payment_account": `{"handle":"asha","provider":"upi","vpa":"asha@okbank"}`,
			}[x.form]
			require.Equal(t, http.StatusPreconditionFailed, h.ask("PUT", x.api, body, "Authorization", token, "If-Match", tag).Code)
			require.Contains(t, read(), x.second)
			now := h.ask("GET", x.api, "", "Authorization", token).Header().Get("ETag")
			require.Equal(t, 200, h.ask("PUT", x.api, body, "Authorization", token, "If-Match", now).Code)
			require.NotContains(t, read(), x.second)
		})
	}
}
