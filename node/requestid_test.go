package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// Every log line of an operation has the id that its answer has in Request-Id, and that an error shows.
func TestRequestID_Log(t *testing.T) {
	t.Parallel()
	log := new(lines)
	n := nodetest.Open(t, nodetest.Config(t), slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	n.Hosted("asha")
	token := n.TokenOf("asha", "test")

	get := func(path string, headers ...string) func(*nodetest.House) nodetest.Answer {
		return func(h *nodetest.House) nodetest.Answer { return h.Ask("GET", path, "", headers...) }
	}
	page := func(path string) func(*nodetest.House) nodetest.Answer { return get(path, "Accept", nodetest.Accept) }
	form := func(path, field, value string) func(*nodetest.House) nodetest.Answer {
		return func(h *nodetest.House) nodetest.Answer { return h.SendForm(path, url.Values{field: {value}}) }
	}
	tool := func(name, args string) func(*nodetest.House) nodetest.Answer {
		return func(h *nodetest.House) nodetest.Answer {
			return h.Modern("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, args), "Mcp-Name", name).Answer
		}
	}
	now := time.Now()
	for name, c := range map[string]struct {
		ask   func(h *nodetest.House) nodetest.Answer
		shown bool // the answer shows the id
	}{
		"http read":         {get("/api/public/board?kind=offer"), false},
		"http refusal":      {get("/api/public/board?limit=1000"), true},
		"http page as data": {get("/api/public/page?path=/people"), false},
		"http owner":        {get("/api/owner/profile", "Authorization", "Bearer "+token), false},
		"mcp read":          {tool("read_board", `{"kind":"offer"}`), false},
		"mcp refusal":       {tool("read_board", `{"limit":1000}`), true},
		"mcp write":         {tool("post_to_board", nodetest.GoodPost), true},
		"ucp": {func(h *nodetest.House) nodetest.Answer {
			return h.Ask("POST", "/api/ucp/catalog/search", `{"query":"rice"}`)
		}, false},
		"card":                   {get("/a2a/asha/agent-card.json"), false},
		"feed for readers":       {get("/board.atom"), false},
		"page":                   {page("/people"), false},
		"page of an agent":       {page("/@asha"), false},
		"page that is not there": {page("/board/" + protocol.NewID(protocol.PostID, now)), true},
		"page of a bid":          {page("/bids/" + protocol.NewID(protocol.BidID, now)), false},
		"page of a conversation": {page("/threads/" + protocol.NewID(protocol.ThreadID, now)), false},
		"page of the account":    {get("/account", "Accept", nodetest.Accept, "Cookie", "stoa_session=nothing"), false},
		"form":                   {form("/board", "title", "x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			log.reset()
			w := c.ask(n.On(t))
			id := w.Header().Get("Request-Id")
			require.NotEmpty(t, id)
			if c.shown {
				require.Contains(t, w.Body.String(), id)
			}
			seen := 0
			for line := range bytes.Lines([]byte(log.string())) {
				var l struct{ Msg, Rid, Op, Door string }
				require.NoError(t, json.Unmarshal(line, &l))
				if l.Msg == "operation" {
					seen++
					require.Equal(t, id, l.Rid, "%s by door %s", l.Op, l.Door)
				}
			}
			require.NotZero(t, seen, "%d %s", w.Code, w.Body)
		})
	}
}
