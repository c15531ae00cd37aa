package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// formValues are what a browser would send of a form of the page that nobody touched.
func formValues(d *nodetest.Page, id string) url.Values {
	d.T.Helper()
	form := d.Find("form", "id", id)
	require.NotNil(d.T, form, "%s has no form %s", d.Path, id)
	return nodetest.ValuesOf(form)
}

// own opens a page of the account that is signed in by the cookie.
func ownPage(h *nodetest.House, cookie, path string) *nodetest.Page {
	h.T.Helper()
	a := h.Ask("GET", path, "", "Accept", nodetest.Accept, "Cookie", "stoa_session="+cookie)
	require.Equal(h.T, 200, a.Code, "%s: %s", path, a.Body)
	return nodetest.ParsePage(h.T, path, a.Body.String())
}

// TestForms_Versions: a form that replaces something and was shown before a change in another tab is refused
// with what is stored now beside what was typed, and replaces it when it is sent once more. A change of something else
// that the same operation reads does not stand in the way. The ETag of HTTP does the same.
func TestForms_Versions(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.OpenBoard("asha", `,"rules":"Yarn only.","floor":"1500"`)
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "asha@example.org", "asha")
	cookie, token := h.SignIn(link), "Bearer "+h.OwnerToken("asha")
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
			first := h.Ask("GET", x.api, "", "Authorization", token)
			tag := first.Header().Get("ETag")
			require.NotEmpty(t, tag, "its answer has a version: %s", first.Body)
			shown := ownPage(h, cookie, x.page)
			one, action := formValues(shown, id), nodetest.Attr(shown.Find("form", "id", id), "action")
			other := formValues(ownPage(h, cookie, x.page), id)
			require.NotEmpty(t, one.Get("version"))

			one.Set(x.field, x.first)
			require.Equal(t, http.StatusSeeOther, h.SendForm(action, one, "Cookie", "stoa_session="+cookie).Code)
			other.Set(x.field, x.second)
			a := h.SendForm(action, other, "Cookie", "stoa_session="+cookie)
			require.Equal(t, http.StatusPreconditionFailed, a.Code, "%s", a.Body)
			d := nodetest.ParsePage(t, x.page, a.Body.String())
			d.WellFormed()
			require.Contains(t, d.Text(), "This was changed in the meantime")
			require.Equal(t, 1, strings.Count(d.Text(), "Stored now:"), "only where it differs")
			require.Contains(t, d.Text(), x.first)
			again := formValues(d, id)
			require.Equal(t, x.second, again.Get(x.field), "what was typed is kept")

			read := func() string { return h.Ask("GET", x.api, "", "Authorization", token).Body.String() }
			require.Contains(t, read(), x.first)
			saved := h.SendForm(action, again, "Cookie", "stoa_session="+cookie)
			require.Equal(t, http.StatusSeeOther, saved.Code, "%s", saved.Body)
			require.Contains(t, ownPage(h, cookie, saved.Header().Get("Location")).Text(), x.says)
			require.Contains(t, read(), x.second)

			body := map[string]string{
				"put_meeting_settings": `{"handle":"asha","acceptingMeetingRequests":true}`, "put_attention_board": `{"handle":"asha"}`,
				"put_payment_account": `{"handle":"asha","provider":"upi","vpa":"asha@okbank"}`,
			}[x.form]
			require.Equal(t, http.StatusPreconditionFailed, h.Ask("PUT", x.api, body, "Authorization", token, "If-Match", tag).Code)
			require.Contains(t, read(), x.second)
			now := h.Ask("GET", x.api, "", "Authorization", token).Header().Get("ETag")
			require.Equal(t, 200, h.Ask("PUT", x.api, body, "Authorization", token, "If-Match", now).Code)
			require.NotContains(t, read(), x.second)
		})
	}
}
