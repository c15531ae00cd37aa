package reputation_test

import (
	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// hidesText hides the text of a review of rao as an operator does, and shows it again: nobody reads it meanwhile, it counts
// as before, and log and audit say who did what and why.
func (m *market) hidesText(of protocol.Review) {
	t, o := m.T, m.Operator()
	before := m.reputed("rao")
	read := func() (string, string) {
		return m.Ask("GET", "/api/public/agents/rao/reviews?limit=100", "").Body.String(), m.Ask("GET", "/@rao/reviews", "", "Accept", "text/html").Body.String()
	}
	var s protocol.ReviewStanding
	at := "/api/operator/reviews/" + of.ID
	o.Do(200, "POST", at+"/hide", map[string]string{"reason": "names a person"}, &s)
	require.True(t, s.Hidden)
	require.Equal(t, "rao", *s.Handle)
	data, page := read()
	for _, text := range []string{of.Text, of.Evidence.URI} {
		require.NotContains(t, data, text)
		require.NotContains(t, page, text)
	}
	require.Contains(t, page, "has hidden the text of this review")
	require.Contains(t, data, of.Evidence.Transaction, "anyone can look it up on the chain")
	require.Equal(t, before, m.reputed("rao"))
	m.index()
	require.True(t, m.reviews("rao")[of.Evidence.Transaction].Hidden, "the index does not undo it")

	var list protocol.Page[protocol.HiddenReview]
	o.Do(200, "GET", "/api/operator/reviews", nil, &list)
	require.Len(t, list.Items, 1)
	require.Equal(t, of.Text, list.Items[0].Review.Text)
	require.Equal(t, "names a person", list.Items[0].Reason)
	cookie := "stoa_session=" + m.SignInOperator()
	pressed := func(do string) {
		t.Helper()
		a := m.Ask("POST", "/account/node/reviews", "do="+do+"&id="+of.ID, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html",
			"Sec-Fetch-Site", "same-origin", "Origin", m.Base, "Cookie", cookie).Is(303)
		a = m.Ask("GET", a.Header().Get("Location"), "", "Accept", "text/html", "Cookie", cookie).Is(200)
		require.Contains(t, a.Body.String(), of.ID, "listed, or what undoes it")
	}
	pressed("restore_review")
	o.Do(409, "POST", at+"/restore", map[string]string{}, nil)
	data, _ = read()
	require.Contains(t, data, of.Text)
	pressed("hide_review")
	pressed("restore_review")
	o.Do(404, "POST", "/api/operator/reviews/rev_01k9y3v6k8e5w9q2x4z7c1m0ad/hide", map[string]string{}, nil)
	require.Equal(t, 401, m.Ask("POST", at+"/hide", "{}").Code)

	var log protocol.Page[protocol.ModerationEntry]
	o.Do(200, "GET", "/api/public/moderation-log", nil, &log)
	require.Equal(t, []any{"review", of.ID}, []any{log.Items[0].Kind, *log.Items[0].Subject})
	require.Equal(t, "names a person", log.Items[3].Reason)
	var audit protocol.Page[protocol.AuditEntry]
	o.Do(200, "GET", "/api/operator/audit?action=review+hide", nil, &audit)
	require.Len(t, audit.Items, 2)
	require.Equal(t, o.Account, audit.Items[1].Actor)
}
