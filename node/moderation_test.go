package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// jobsWaiting is the gauge of what waits for a decision.
func jobsWaiting(h *nodetest.House) (n int) {
	_, line, found := strings.Cut(h.Metrics(), "\nstoa_review_posts ")
	require.True(h.T, found)
	_, err := fmt.Sscan(line, &n)
	require.NoError(h.T, err)
	return n
}

// TestModeration_Reports is the way of a post through reports (contract §4): five
// distinct reporters hide it, an operator sees why and restores it, the same
// reporters change nothing, five others hide it again.
func TestModeration_Reports(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		pair := h.Hosted("asha")
		p := nodetest.As[protocol.Post](h.Signed(pair, nodetest.GoodPost, nil).Is(201))
		page := "/api/public/board/" + p.ID
		queue := func(state string) (items []protocol.ReviewItem) {
			var page protocol.Page[protocol.ReviewItem]
			o.Do(200, "GET", "/api/operator/queue?state="+state, nil, &page)
			return page.Items
		}
		state := func(want int) { t.Helper(); require.Equal(t, want, h.Ask("GET", page, "").Code) }

		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Profiles().PutNotifySettings(ctx, storage.NotifySettings{Handle: "asha", Webhook: "https://asha.example/notices"})
		}))
		require.Empty(t, queue("reported"))
		for i := range 4 {
			h.Report(fmt.Sprint("203.0.113.", i), p.ID)
			h.Report(fmt.Sprint("203.0.113.", i), p.ID)
		}
		state(200)
		require.Len(t, queue("reported"), 1)
		require.Equal(t, 4, queue("reported")[0].Open)
		require.Empty(t, queue("hidden"))
		require.NotEmpty(t, h.Told("board_post"))
		h.Report("203.0.113.4", p.ID)
		state(410)
		require.Empty(t, h.Told("board_post"))
		require.Empty(t, queue("reported"))
		hidden := queue("hidden")
		require.Len(t, hidden, 1)
		require.Equal(t, protocol.Hidden, hidden[0].State)
		require.Equal(t, "five distinct reports", hidden[0].Reason)
		require.Len(t, hidden[0].Reports, 5)
		require.Equal(t, "spam", hidden[0].Reports[0].Reason)
		require.True(t, hidden[0].Untrusted)
		require.Equal(t, hidden, queue("waiting"), "no operator has looked yet")
		require.Equal(t, 1, jobsWaiting(h))

		decide := "/api/operator/posts/" + p.ID
		var standing protocol.PostStanding
		o.Do(200, "POST", decide+"/restore", map[string]string{"reason": "It is no spam.", "note": "asked asha"}, &standing)
		require.Equal(t, protocol.Visible, standing.State)
		state(200)
		o.Do(409, "POST", decide+"/restore", map[string]string{}, nil)
		nodetest.Tick()
		for i := range 5 {
			h.Report(fmt.Sprint("203.0.113.", i), p.ID)
		}
		state(200)
		require.Empty(t, queue("reported"), "who reported before is not heard again")
		require.Empty(t, queue("waiting"))
		for i := range 4 {
			h.Report(fmt.Sprint("198.51.100.", i), p.ID)
		}
		state(200)
		require.Equal(t, 4, queue("reported")[0].Open)
		require.Len(t, queue("reported")[0].Reports, 9)
		require.Equal(t, "asked asha", queue("reported")[0].Notes[0].Text)
		o.Do(200, "POST", decide+"/dismiss", map[string]string{"reason": "looked at"}, nil)
		require.Empty(t, queue("reported"))
		o.Do(409, "POST", decide+"/dismiss", map[string]string{}, nil)
		o.Do(200, "POST", decide+"/reopen", map[string]string{}, &standing)
		require.Equal(t, protocol.Visible, standing.State)
		o.Do(409, "POST", decide+"/reopen", map[string]string{}, nil)
		require.Len(t, queue("waiting&cause=reports"), 1)
		require.Equal(t, 4, queue("waiting")[0].Open, "those from before the restoration stay decided")
		o.Do(200, "POST", decide+"/dismiss", map[string]string{"reason": "looked at"}, nil)
		o.Do(200, "POST", decide+"/reopen", map[string]string{}, &standing)
		require.Equal(t, 4, queue("waiting")[0].Open, "again")
		require.Empty(t, queue("waiting&cause=flags"))
		o.Do(200, "POST", decide+"/dismiss", map[string]string{}, nil)
		for i := range 5 {
			state(200)
			h.Report(fmt.Sprint("192.0.2.", i), p.ID)
		}
		state(410)
		require.Len(t, queue("waiting"), 1)
		o.Do(200, "POST", decide+"/hide", map[string]string{"reason": "spam"}, &standing)
		require.Equal(t, protocol.PostStanding{ID: p.ID, State: protocol.Hidden, Reason: "operator: spam"}, standing, "what reports hid stays hidden")
		require.Empty(t, queue("waiting"))
		require.Zero(t, jobsWaiting(h))
		require.Equal(t, "operator: spam", queue("hidden")[0].Reason)
		o.Do(409, "POST", decide+"/hide", map[string]string{}, nil)
		state(410)
		o.Do(200, "POST", decide+"/delete", map[string]string{"reason": "law"}, &standing)
		require.Equal(t, protocol.Deleted, standing.State)
		o.Do(410, "POST", decide+"/restore", map[string]string{}, nil)
		o.Do(410, "POST", decide+"/hide", map[string]string{}, nil)
		o.Do(404, "POST", "/api/operator/posts/post_01k9y3v6k8e5w9q2x4z7c1m0ad/hide", map[string]string{}, nil)

		log := nodetest.As[protocol.Page[protocol.ModerationEntry]](h.Ask("GET", "/api/public/moderation-log", ""))
		var done []string
		for _, e := range log.Items {
			require.Equal(t, p.ID, *e.Subject)
			done = append(done, string(e.Action)+": "+e.Reason)
		}
		require.Equal(t, []string{"delete: law", "hide: five distinct reports", "dismiss: ", "dismiss: looked at", "dismiss: looked at",
			"restore: It is no spam.", "hide: five distinct reports"}, done)

		var audit protocol.Page[protocol.AuditEntry]
		o.Do(200, "GET", "/api/operator/audit?limit=2", nil, &audit)
		require.Equal(t, "post delete", audit.Items[0].Action)
		require.Equal(t, o.Account, audit.Items[0].Actor)
		require.NotNil(t, audit.Next)
		o.Do(200, "GET", "/api/operator/audit?limit=2&after="+*audit.Next, nil, &audit)
		require.Len(t, audit.Items, 2)

		var told []protocol.NoticeEvent
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, "", 100, "")
			for _, j := range jobs.Items {
				var n protocol.Notice
				if j.Kind == storage.NoticeJob && json.Unmarshal(j.Args, &n) == nil {
					require.Equal(t, "asha", n.Handle)
					told = append(told, n.Event)
				}
			}
			return err
		}))
		require.ElementsMatch(t, []protocol.NoticeEvent{protocol.PostReported, protocol.PostHidden}, told, "what waits is told once")
	})
}

// TestModeration_Blocks refuses each kind of writer and admits it again. The
// block is seen by the other process of the deployment too.
func TestModeration_Blocks(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		two := h.Second(change)
		o := h.Operator()
		pair := h.Hosted("asha")
		token := h.TokenOf("asha", "t")
		anonymous := func(at *nodetest.House, address string) nodetest.Answer {
			return at.From(address, "POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", at.Proof("board"))
		}
		signed := func(at *nodetest.House) nodetest.Answer { return at.Signed(pair, nodetest.GoodPost, nil) }
		bearer := func(at *nodetest.House) nodetest.Answer {
			return at.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+token)
		}
		post := nodetest.As[protocol.Post](anonymous(h, "203.0.113.9"))
		mine := nodetest.As[protocol.Post](signed(h))

		tests := []struct {
			name    string
			block   map[string]any
			kind    protocol.BlockKind
			refused func(*nodetest.House) nodetest.Answer
			admits  func(*nodetest.House) nodetest.Answer
		}{
			{"whoever wrote an anonymous post", map[string]any{"post": post.ID}, protocol.BlockNetwork,
				func(at *nodetest.House) nodetest.Answer { return anonymous(at, "203.0.113.9") },
				func(at *nodetest.House) nodetest.Answer { return anonymous(at, "203.0.113.10") }},
			{"whoever wrote a signed post", map[string]any{"post": mine.ID}, protocol.BlockHandle,
				bearer, func(at *nodetest.House) nodetest.Answer { return anonymous(at, "203.0.113.9") }},
			{"the key of a post", map[string]any{"post": mine.ID, "kind": "key"}, protocol.BlockKey, signed, bearer},
			{"a handle", map[string]any{"kind": "handle", "value": "@Asha"}, protocol.BlockHandle,
				signed, func(at *nodetest.House) nodetest.Answer { return anonymous(at, "203.0.113.9") }},
		}
		for _, tt := range tests {
			tt.block["reason"], tt.block["hours"] = "spam in every thread", 24
			var b protocol.Block
			o.Do(201, "POST", "/api/operator/blocks", tt.block, &b)
			require.Equal(t, tt.kind, b.Kind, tt.name)
			for i, at := range []*nodetest.House{h, two} {
				var a nodetest.Answer
				require.Eventually(t, func() bool { a = tt.refused(at); return a.Code == 403 }, time.Minute, 50*time.Millisecond, "%s at process %d", tt.name, i)
				require.Equal(t, protocol.Forbidden, a.Problem().Code)
				require.Contains(t, a.Body.String(), "spam in every thread")
				require.Equal(t, 201, tt.admits(at).Code, tt.name)
				require.Equal(t, 200, at.From("203.0.113.9", "GET", "/api/public/board", "").Code, "reading is open")
			}
			o.Do(204, "DELETE", "/api/operator/blocks/"+b.ID, nil, nil)
			require.Equal(t, 201, tt.refused(h).Code, "%s: lifted, here at once", tt.name)
			require.Eventually(t, func() bool { return tt.refused(two).Code == 201 }, time.Minute, 50*time.Millisecond, tt.name)
			o.Do(404, "DELETE", "/api/operator/blocks/"+b.ID, nil, nil)
		}

		log := nodetest.As[protocol.Page[protocol.ModerationEntry]](h.Ask("GET", "/api/public/moderation-log?limit=100", ""))
		for _, e := range log.Items {
			if e.Kind == "network" || e.Kind == "key" {
				require.Nil(t, e.Subject, "the public is not told whose")
			}
		}
		require.Len(t, log.Items, 2*len(tests))
	})
}

func TestModeration_BlockInputs(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	o := h.Operator()
	post := h.Post("Lamps")
	bad := []map[string]any{
		{}, {"kind": "host"}, {"value": "x"}, {"kind": "host", "value": "http://a"}, {"kind": "host", "value": "a/b"}, {"kind": "key", "value": "short"},
		{"kind": "agent", "value": "eip155:1:0x1:1"}, {"kind": "network", "value": "203.0.113.0/24"}, {"kind": "network", "value": "0.0.0.0/0"},
		{"kind": "network", "value": "2001:db8::/32"}, {"kind": "network", "value": "fe80::1%eth0"}, {"kind": "handle", "value": "a_b"},
		{"kind": "actor", "value": "javascript:x"}, {"kind": "actor", "value": "https://u@a.example/x"}, {"post": post.ID, "value": "x"},
		{"kind": "host", "value": "a.example", "hours": 0}, {"kind": "host", "value": "a.example", "hours": 1e6}, {"kind": "person", "value": "x"},
	}
	for _, in := range bad {
		o.Do(422, "POST", "/api/operator/blocks", in, nil)
	}
	base, err := url.Parse(h.Base)
	require.NoError(t, err)
	for _, own := range []map[string]any{
		{"kind": "host", "value": base.Host}, {"kind": "host", "value": strings.ToUpper(base.Hostname())}, {"kind": "actor", "value": h.Base + "/ap/agents/asha"},
	} {
		o.Do(422, "POST", "/api/operator/blocks", own, nil)
	}
	require.Error(t, h.Admin().SetHostPolicy(t.Context(), base.Host, "reject", ""))
	require.Error(t, h.Admin().SetHostPolicy(t.Context(), "not a host", "silence", ""))
	require.Error(t, h.Admin().SetHostPolicy(t.Context(), "spam.example", "silence", "a\u202eb"))
	o.Do(404, "POST", "/api/operator/blocks", map[string]any{"post": post.ID, "kind": "agent"}, nil)
	for i := range 5 {
		o.Do(201, "POST", "/api/operator/blocks", map[string]any{"kind": "host", "value": fmt.Sprintf("h%d.example", i)}, nil)
	}
	o.Do(201, "POST", "/api/operator/blocks", map[string]any{"kind": "host", "value": "H4.EXAMPLE."}, nil)
	o.Do(201, "POST", "/api/operator/blocks", map[string]any{"kind": "agent", "value": "eip155:1:0xABCDEFabcdef00000000000000000000000000AB:7"}, nil)
	var all []protocol.Block
	for after := ""; ; {
		var page protocol.Page[protocol.Block]
		o.Do(200, "GET", "/api/operator/blocks?limit=2&kind=host&after="+after, nil, &page)
		all = append(all, page.Items...)
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	require.Len(t, all, 5, "the same host once")
}

// TestModeration_BlockAddress blocks a network by an address in it, as a proxy's
// log has it: the address is kept nowhere. An operator who does it from there
// can lift it again.
func TestModeration_BlockAddress(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	o := h.Operator()
	post := func(address string) int {
		return h.From(address, "POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Code
	}
	for _, tt := range []struct{ name, value, in, out string }{
		{"IPv4", "203.0.113.7", "203.0.113.7", "203.0.113.8"},
		{"IPv4 as prefix", "203.0.113.9/32", "203.0.113.9", "203.0.113.8"},
		{"IPv6", "2001:db8:0:ff::1", "[2001:db8:0:f1::2]", "[2001:db8:0:100::1]"},
		{"IPv6 as prefix", "2001:db8:7::/56", "[2001:db8:7:ff::1]", "[2001:db8:7:100::1]"},
		{"the operator's own", "192.0.2.1", "192.0.2.1", "192.0.2.2"}, // of httptest
	} {
		var b protocol.Block
		o.Do(201, "POST", "/api/operator/blocks", map[string]any{"kind": "network", "value": tt.value}, &b)
		require.NotContains(t, b.Value, ".", tt.name)
		require.NotContains(t, b.Value, ":", tt.name)
		require.Equal(t, 403, post(tt.in), tt.name)
		require.Equal(t, 201, post(tt.out), tt.name)
		o.Do(204, "DELETE", "/api/operator/blocks/"+b.ID, nil, nil)
		require.Equal(t, 201, post(tt.in), "%s: lifted", tt.name)
	}
	var audit protocol.Page[protocol.AuditEntry]
	o.Do(200, "GET", "/api/operator/audit?limit=100", nil, &audit)
	for _, e := range audit.Items {
		require.NotContains(t, e.Subject+e.Detail, "203.0.113", "no address is kept")
	}
}

// TestModeration_Limits changes rates and the level of proofs while two processes
// run, and takes them back.
func TestModeration_Limits(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		serious := func(c *node.Config) { c.Dev = false }
		h := nodetest.New(t, change, serious)
		two := h.Second(change, serious)
		o := h.Operator()
		level := func(at *nodetest.House) int {
			var c struct{ Hint struct{ Level int } }
			at.Ask("GET", "/api/public/pow?purpose=board", "").Into(&c)
			return c.Hint.Level
		}
		quota := func(at *nodetest.House) string {
			return at.Ask("GET", "/api/public/about", "").Header().Get("RateLimit-Policy")
		}
		require.Equal(t, 2, level(h))
		require.Equal(t, `"network";q=200`, quota(h))
		var v protocol.LimitsView
		o.Do(200, "GET", "/api/operator/limits", nil, &v)
		require.Equal(t, protocol.LimitsView{ReadRate: 50, WriteRate: 5, IdentityRate: 10}, v)

		for _, bad := range []map[string]any{{}, {"proofLevel": 8}, {"proofLevel": -1}, {"readRate": 0}, {"writeRate": 2e6}, {"readRate": "many"}} {
			o.Do(422, "PUT", "/api/operator/limits", bad, nil)
		}
		o.Do(200, "PUT", "/api/operator/limits", map[string]any{"proofLevel": 5}, nil)
		o.Do(200, "PUT", "/api/operator/limits", map[string]any{"readRate": 25}, &v)
		require.Equal(t, 5, v.ProofLevel)
		require.Equal(t, 25.0, v.ReadRate)
		require.Equal(t, 5.0, v.WriteRate)
		for _, at := range []*nodetest.House{h, two} {
			require.Eventually(t, func() bool { return level(at) == 5 && quota(at) == `"network";q=100` }, time.Minute, 50*time.Millisecond)
		}
		var reset protocol.LimitsView
		o.Do(200, "DELETE", "/api/operator/limits", nil, &reset)
		require.Equal(t, protocol.LimitsView{ReadRate: 50, WriteRate: 5, IdentityRate: 10}, reset)
		for _, at := range []*nodetest.House{h, two} {
			require.Eventually(t, func() bool { return level(at) == 2 && quota(at) == `"network";q=200` }, time.Minute, 50*time.Millisecond)
		}
	})
}

func TestModeration_NotesAndStatistics(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		o := h.Operator()
		for i := range 3 {
			o.Do(201, "POST", "/api/operator/notes", map[string]string{"subject": "spam.example", "text": fmt.Sprint("note ", i)}, nil)
		}
		o.Do(201, "POST", "/api/operator/notes", map[string]string{"subject": "asha", "text": "friendly"}, nil)
		o.Do(422, "POST", "/api/operator/notes", map[string]string{"subject": " ", "text": "x"}, nil)
		var notes protocol.Page[protocol.ModerationNote]
		o.Do(200, "GET", "/api/operator/notes?subject=spam.example", nil, &notes)
		require.Len(t, notes.Items, 3)
		require.Equal(t, o.Account, notes.Items[0].Actor)
		o.Do(204, "DELETE", "/api/operator/notes/"+notes.Items[0].ID, nil, nil)
		o.Do(404, "DELETE", "/api/operator/notes/"+notes.Items[0].ID, nil, nil)
		o.Do(200, "GET", "/api/operator/notes", nil, &notes)
		require.Len(t, notes.Items, 3)

		h.Hosted("asha")
		kept, hidden, gone := h.Post("Kept"), h.Post("Hidden"), h.Post("Gone")
		h.Report("203.0.113.1", kept.ID)
		o.Do(200, "POST", "/api/operator/posts/"+hidden.ID+"/hide", map[string]string{}, nil)
		o.Do(200, "POST", "/api/operator/posts/"+gone.ID+"/delete", map[string]string{}, nil)
		var s protocol.Statistics
		o.Do(200, "GET", "/api/operator/statistics", nil, &s)
		require.Equal(t, protocol.PostCounts{Visible: 1, Here: 1, Hidden: 1, Deleted: 1}, s.Posts)
		require.Equal(t, 1, s.Profiles)
		require.Equal(t, 1, s.Review)
		require.Len(t, s.Days, 30)
		require.Equal(t, time.Now().UTC().Format(time.DateOnly), s.Days[0].Day)
		require.Equal(t, 1, s.Days[0].Posts)
		require.Equal(t, 1, s.Days[0].Reports)
		require.Equal(t, 1, s.Days[0].Profiles)
		require.NotEmpty(t, s.Jobs)
	})
}
