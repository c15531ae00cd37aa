package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestGone_Hidden: what a profile wrote to others reads as removed to them, in every list, page and archive, from the moment when it is hidden, and
// its own owner reads it as it was. When that is undone everything reads as before, but for the news of its bids.
func TestGone_Hidden(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		g := newGoner(t, change)
		g.writes()
		ravi, asha := []string{"Authorization", g.ravi}, []string{"Authorization", "Bearer " + g.token, "Act-As", "asha"}
		bids := nodetest.As[protocol.Page[protocol.OwnBid]](g.does("GET", "/api/owner/bids", "", ravi...))
		g.does("POST", "/api/owner/bids/"+bids.Items[0].ID+"/confirm", `{"utr":"`+nodetest.NewUTR()+`"}`, ravi...)
		g.does("POST", "/api/owner/bids/"+bids.Items[0].ID+"/approve", `{}`, ravi...)
		threads := nodetest.As[protocol.Page[protocol.Thread]](g.does("GET", "/api/owner/threads", "", ravi...))
		meetings := nodetest.As[protocol.Page[protocol.OwnMeeting]](g.does("GET", "/api/owner/meetings", "", ravi...))
		mine := threads.Items[slices.IndexFunc(threads.Items, func(x protocol.Thread) bool { return x.Handle == "ravi" })].ThreadID
		paths := map[string]string{
			"/api/owner/threads": "zzqmsecond", "/api/owner/threads/" + mine: "zzqmmessage", "/api/public/since?limit=100": "zzqmmessage",
			"/api/owner/bids": "zzqmbid", "/api/owner/bids/" + bids.Items[0].ID: "zzqmbidurl", "/api/public/agents/ravi/attention": "zzqmbid",
			"/api/owner/meetings": "zzqmpurpose", "/api/owner/meetings/" + meetings.Items[0].ID: "zzqmrequester",
		}
		reads := func(path string, headers []string) []string {
			return marks(g.does("GET", path, "", headers...).Body.String())
		}
		for path, word := range paths {
			require.Eventually(t, func() bool { return slices.Contains(reads(path, ravi), word) }, time.Minute, time.Millisecond, path) // news get a number
		}
		before := marks(g.archived("ravi", ravi...))
		require.Subset(t, before, []string{"zzqmmessage", "zzqmsecond", "zzqmbid", "zzqmpurpose"})

		d := nodetest.As[protocol.Departure](g.does("DELETE", "/api/owner/profile", `{"handle":"asha"}`, asha...))
		require.Equal(t, protocol.LeaveHidden, d.State, fmt.Sprint(d.Waits))
		receipt := func(word string) bool { return word == "zzqmname" } // receipts for money stay as they are
		for path := range paths {
			require.Empty(t, slices.DeleteFunc(reads(path, ravi), receipt), path)
		}
		require.NotContains(t, marks(g.does("GET", "/api/public/feed?limit=100", "", ravi...).Body.String()), "zzqmbid")
		require.Empty(t, slices.DeleteFunc(marks(g.archived("ravi", ravi...)), receipt))
		require.Contains(t, reads("/api/public/threads/"+mine, asha), "zzqmsecond", "its own owner reads it")
		page := nodetest.As[protocol.Conversation](g.does("GET", "/api/owner/threads/"+mine, "", ravi...))
		require.Equal(t, protocol.WithdrawnText, page.Messages.Items[0].Text)
		require.Equal(t, "An answer of ravi", page.Messages.Items[1].Text)

		g.does("POST", "/api/owner/profile/restore", `{"handle":"asha"}`, asha...)
		for path, word := range paths {
			require.Contains(t, reads(path, ravi), word, path)
		}
		require.Equal(t, before, marks(g.archived("ravi", ravi...)))
	})
}
