package mcpapi_test

import (
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
	"stoa/protocol/must"
)

type task struct {
	ResultType, TaskID, Status, StatusMessage string
	CreatedAt, LastUpdatedAt                  time.Time
	TTLMs                                     int64 `json:"ttlMs"`
	InputRequests                             struct {
		Confirm struct {
			Method string
			Params struct{ Mode, URL string }
		}
	}
	Result *struct {
		Content    []struct{ Type, Text string }
		Structured json.RawMessage `json:"structuredContent"`
	}
}

// TestTasks: a client that knows tasks gets one for a write without a proof; it follows the draft: what the person did, what the write gave, and that
// it was cancelled. A client that shows links gets the link as a request for input, another in words.
func TestTasks(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		ask := func(capabilities, method, params string, headers ...string) nodetest.RPCAnswer {
			t.Helper()
			body := strings.Replace(nodetest.ModernBody(method, params), `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
			return h.RPCAt(protocol.MCPPath, body, append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
		}
		read := func(a nodetest.RPCAnswer) (got task) {
			t.Helper()
			require.Nil(t, a.Error, "%s", a.Body)
			require.NoError(t, json.Unmarshal(a.Result, &got))
			return got
		}
		const tasks, links = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{"url":{}}}`
		begin := func(capabilities string) task {
			t.Helper()
			got := read(ask(capabilities, "tools/call", `"name":"post_to_board","arguments":`+nodetest.GoodPost, "Mcp-Name", "post_to_board"))
			require.Equal(t, "task", got.ResultType)
			require.NotEmpty(t, got.TaskID)
			require.Positive(t, got.TTLMs)
			return got
		}
		get := func(capabilities, id string) task {
			t.Helper()
			got := read(ask(capabilities, "tasks/get", fmt.Sprintf(`"taskId":%q`, id), "Mcp-Name", id))
			require.Equal(t, "complete", got.ResultType)
			require.Equal(t, id, got.TaskID)
			return got
		}
		press := func(link, what string) {
			t.Helper()
			h.SendForm(strings.TrimPrefix(link, h.Base), url.Values{"do": {what}, "altcha": {h.Proof("board")}}).Is(200)
		}

		made := begin(links)
		require.Equal(t, "input_required", made.Status)
		waits := get(links, made.TaskID)
		require.Equal(t, "url", waits.InputRequests.Confirm.Params.Mode)
		require.Equal(t, "elicitation/create", waits.InputRequests.Confirm.Method)
		require.Equal(t, made.CreatedAt, waits.CreatedAt)
		opened := ask(links, "tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"confirm":{"action":"accept"}}`, made.TaskID))
		require.JSONEq(t, `"complete"`, string(members(t, opened.Result)["resultType"]))
		require.Equal(t, "input_required", get(links, made.TaskID).Status, "that it was opened is no press")
		press(waits.InputRequests.Confirm.Params.URL, "post_to_board")
		done := get(links, made.TaskID)
		require.Equal(t, "completed", done.Status)
		require.JSONEq(t, done.Result.Content[0].Text, string(done.Result.Structured))
		post := must.JSON[protocol.MadePost](done.Result.Structured)(t)
		h.Ask("GET", "/api/public/board/"+post.ID, "").Is(200)
		require.Nil(t, ask(links, "tasks/cancel", fmt.Sprintf(`"taskId":%q`, made.TaskID)).Error)
		require.Equal(t, "completed", get(links, made.TaskID).Status, "what is over stays")

		worded := begin(tasks)
		require.Equal(t, "working", worded.Status)
		require.Contains(t, worded.StatusMessage, h.Base+"/confirm/")
		require.Empty(t, get(tasks, worded.TaskID).InputRequests.Confirm.Method, "the client cannot show it")
		_, link, _ := strings.Cut(worded.StatusMessage, h.Base)
		press(link, "refuse")
		require.Equal(t, "cancelled", get(tasks, worded.TaskID).Status)

		for _, end := range []string{"tasks/cancel", "tasks/update"} {
			made := begin(links)
			link := get(links, made.TaskID).InputRequests.Confirm.Params.URL
			require.Nil(t, ask(links, end, fmt.Sprintf(`"taskId":%q,"inputResponses":{"confirm":{"action":"decline"}}`, made.TaskID)).Error)
			require.Equal(t, "cancelled", get(links, made.TaskID).Status)
			require.NotContains(t, h.Ask("GET", strings.TrimPrefix(link, h.Base), "").Body.String(), `value="post_to_board"`, "the person cannot send it any more")
		}
		_, secret, _ := strings.Cut(made.TaskID, ".")
		for _, id := range []string{"x", made.TaskID + "x", "zzzzzzzzzzzz." + secret, "-1." + secret, ""} {
			for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
				if method != "tasks/get" && id != "x" {
					continue
				}
				a := ask(tasks, method, fmt.Sprintf(`"taskId":%q,"inputResponses":{}`, id))
				require.Equal(t, 400, a.Answer.Code)
				require.Equal(t, -32602, a.Error.Code)
			}
		}
		require.Equal(t, 404, h.ModernAt(protocol.MCPPath, "tasks/list", "").Answer.Code)
		require.Equal(t, protocol.PowRequired, h.Tool("post_to_board", nodetest.GoodPost).Refused.Code, "a client without tasks gets none")
	})
}

func members(t *testing.T, raw []byte) (m map[string]json.RawMessage) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &m))
	return m
}

// TestAwaited: a client that asks again with a token for progress hears that its call waits, and gets the result once the person has pressed. One that
// reads no events is answered at once.
func TestAwaited(t *testing.T) {
	t.Parallel()
	h := nodetest.Start(t)
	var asks struct{ ConfirmURL, ConfirmID string }
	require.NoError(t, json.Unmarshal([]byte(h.Tool("post_to_board", nodetest.GoodPost).Content[0].Text), &asks))
	again := strings.Replace(nodetest.GoodPost, "{", fmt.Sprintf(`{"confirmId":%q,`, asks.ConfirmID), 1)
	body := strings.Replace(nodetest.ModernBody("tools/call", `"name":"post_to_board","arguments":`+again), `"_meta":{`, `"_meta":{"progressToken":"p-1",`, 1)
	head := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "post_to_board"}
	at := h.RPCAt(protocol.MCPPath, body, append(head, "Accept", "application/json")...)
	require.Equal(t, protocol.PowRequired, h.ReadTool(at).Refused.Code)

	form := url.Values{"do": {"post_to_board"}, "altcha": {h.Proof("board")}}
	s, status := hear(t, "POST", h.URL+protocol.MCPPath, body, head...)
	require.Equal(t, 200, status)
	first := s.next()
	require.Equal(t, "notifications/progress", first.Method)
	h.SendForm(strings.TrimPrefix(asks.ConfirmURL, h.Base), form).Is(200)
	last := first
	for last.Method != "" {
		require.Equal(t, "notifications/progress", last.Method)
		last = s.next()
	}
	require.Equal(t, `"q-1"`, string(last.ID))
	require.Equal(t, "complete", last.Result.ResultType)
	require.False(t, last.Result.IsError)
	require.False(t, s.lines.Scan() && s.lines.Text() != "", "it is the last event")
}
