package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// Under https a cookie that a neighbour under the same domain could have set is
// none of ours.
func TestVisitor_NobodyPlantsOne(t *testing.T) {
	t.Parallel()
	a := &API{Base: "https://n1.example.org"}
	planted := strings.Repeat("p", visitorChars)
	r := httptest.NewRequest("GET", "/api/public/threads/x", nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Cookie", "stoa_visitor="+planted)
	require.Empty(t, a.visitor(r, protocol.CheckConversation.Operation))
	ours := strings.Repeat("o", visitorChars)
	r.Header.Set("Cookie", "stoa_visitor="+planted+"; __Host-stoa_visitor="+ours)
	require.Equal(t, ours, a.visitor(r, protocol.CheckConversation.Operation))
	w := httptest.NewRecorder()
	a.remember(w.Header(), protocol.ContactAgent.Operation, ours)
	require.Regexp(t, `^__Host-stoa_visitor=o+; Path=/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$`, w.Header().Get("Set-Cookie"))
}
