package node_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestLive: the page of a conversation hears of an answer, on PostgreSQL at another process of the deployment; a
// network has eight such pages, none without the token, and they end with the node.
func TestLive(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		_, one, two, stop := processes(t, change)
		h := one.On(t)
		one.PutOpen("asha", nil)
		token := one.OwnerToken("asha")
		begun := nodetest.As[protocol.ContactReceipt](h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Hello"}`, "Proof-Of-Work", h.Proof("contact")))
		open := func(secret string) (*http.Response, *bufio.Scanner) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "GET", two.URL+"/threads/"+begun.ThreadID+"/live?seen=1-open", nil)
			require.NoError(t, err)
			r.Header.Set("Cookie", "stoa_thread="+secret)
			res, err := http.DefaultTransport.RoundTrip(r)
			require.NoError(t, err)
			t.Cleanup(func() { res.Body.Close() })
			return res, bufio.NewScanner(res.Body)
		}
		next := func(lines *bufio.Scanner) string {
			for lines.Scan() {
				if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
					return id
				}
			}
			return "(the end)"
		}
		refused, _ := open("stoa_read_0000000000000000000000000000000000000000000")
		require.Contains(t, []int{401, 404}, refused.StatusCode)
		require.Zero(t, two.Feed.Pulse.Pages())

		res, lines := open(begun.ReadToken)
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		require.Equal(t, 201, h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/messages", `{"message":"Yes"}`, "Authorization", "Bearer "+token).Code)
		require.Equal(t, "2-answered", next(lines))
		_, late := open(begun.ReadToken)
		require.Equal(t, "2-answered", next(late), "what happened before the stream began")
		for range 6 {
			res, _ := open(begun.ReadToken)
			require.Equal(t, 200, res.StatusCode)
		}
		full, _ := open(begun.ReadToken)
		require.Equal(t, 503, full.StatusCode)
		require.NotEmpty(t, full.Header.Get("Retry-After"))
		res.Body.Close()
		require.Eventually(t, func() bool { return two.Feed.Pulse.Pages() == 7 }, time.Minute, time.Millisecond)

		stop()
		require.Equal(t, "(the end)", next(late))
	})
}
