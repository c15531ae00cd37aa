package node

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// openBoard opens the attention board of a new profile, paid by UPI, and returns the owner's Authorization.
func (h *house) openBoard(handle, board string) (token string) {
	h.t.Helper()
	token = h.agent(handle, openPolicy)
	for path, body := range map[string]string{
		"/api/owner/payment-account": `{"handle":"` + handle + `","provider":"upi","vpa":"` + handle + `@okbank","payeeName":"Asha Rao"}`,
		"/api/owner/attention":       `{"handle":"` + handle + `"` + board + `}`,
	} {
		a := h.ask("PUT", path, body, "Authorization", token)
		require.Equal(h.t, 200, a.Code, "%s", a.Body)
	}
	return token
}

// sendForm posts a form of a page as a browser does.
func (h *house) sendForm(path string, form url.Values, headers ...string) answer {
	h.t.Helper()
	return h.ask("POST", path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", browser, "Origin", h.Base, "Sec-Fetch-Site", "same-origin"}, headers...)...)
}

// TestAttentionPages: the list of boards, and a board with its form, which checks a bid without a
// proof of work and keeps what was typed.
func TestAttentionPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	require.Contains(t, h.open("/attention", 200).text(), "Nobody has opened an attention board here yet.")
	h.open("/@asha/board", 404)
	h.openBoard("asha", `,"rules":"Yarn <b>only</b>. https://rules.example/a","floor":"1500","slots":2,"categories":[{"name":"Yarn","floor":"150000"}],"maxBid":"200000"`)
	h.openBoard("ravi", ``)

	d := h.open("/attention", 200)
	require.Contains(t, d.text(), "from ₹1,500")
	require.Contains(t, d.text(), "2 of 2 slots free")
	require.Contains(t, d.hrefs(), "/@asha/board")
	require.Contains(t, h.open("/attention?category=silk", 200).text(), "No board has this category.")
	require.NotContains(t, h.open("/attention?category=yarn", 200).text(), "@ravi")
	require.Contains(t, h.open("/attention?limit=1", 200).text(), "More boards")
	require.Contains(t, h.open("/@asha", 200).hrefs(), "/@asha/board")
	require.Contains(t, h.ask("GET", "/api/public/site-map", "").Body.String(), `"/@{handle}/board"`)

	a := h.ask("GET", "/@asha/board", "", "Accept", browser)
	require.Equal(t, 200, a.Code)
	d = parsePage(t, "/@asha/board", a.Body.String())
	d.wellFormed()
	require.Contains(t, d.text(), "Yarn <b>only</b>.")
	require.Contains(t, d.text(), "₹1,50,000", "lakh digits")
	require.Equal(t, http.StatusPermanentRedirect, h.ask("GET", "/@Asha/board", "", "Accept", browser).Code)
	require.Contains(t, h.ask("GET", "/@asha/board", "", "Accept", "application/json").Header().Get("Location"), "/api/public/agents/asha/attention")

	check := func(status int, amount, category string) *pageDoc {
		t.Helper()
		a := h.sendForm("/@asha/board", url.Values{"do": {"check_bid"}, "amount": {amount}, "category": {category}})
		require.Equal(t, status, a.Code, "%s", a.Body)
		require.Equal(t, "no-store", a.Header().Get("Cache-Control"))
		d := parsePage(t, "/@asha/board", a.Body.String())
		d.wellFormed()
		require.Equal(t, amount, attr(d.find("input", "id", "bid-amount"), "value"))
		return d
	}
	require.Contains(t, check(200, "₹ 1,500", "").text(), "₹1,500 would get a slot now, at place 1 of 2.")
	require.Contains(t, check(200, "1500.50", "Yarn").text(), "would get no slot now")
	require.Contains(t, check(422, "much", "").text(), "This is not an amount of rupees such as 1500 or 1500.50.")
	require.Contains(t, check(422, "", "").text(), "Fill this in.")
	require.Equal(t, 403, h.ask("POST", "/@asha/board", "do=check_bid&amount=1", "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").Code)
}
