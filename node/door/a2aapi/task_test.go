package a2aapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// assistant answers threads of asha by HTTP, as an owner's program does.
func assistant(h *nodetest.House) (answer func(threadID, members string)) {
	token := h.TokenOf("asha", "test")
	return func(threadID, members string) {
		h.T.Helper()
		h.Ask("POST", "/api/owner/threads/"+threadID+"/messages", "{"+members+"}", "Authorization", "Bearer "+token).Is(201)
	}
}

// TestA2A_Assistant: an owner's program says that it works, brings artifacts, asks, refuses and answers; the caller sees each as A2A has it.
func TestA2A_Assistant(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		me, answer := h.Agents(1)[0], assistant(h)
		task := me.Write("asha", "m-1", "Forty chairs by March?", "").Task(t)
		token := h.TokenOf("asha", "test")
		var inbox protocol.Page[protocol.Thread]
		h.Ask("GET", "/api/owner/threads", "", "Authorization", "Bearer "+token).Is(200).Into(&inbox)
		require.Equal(t, &protocol.ThreadTask{ID: task.ID, MessageID: "m-1", State: protocol.ExchangeOpen}, inbox.Items[0].Task, "the inbox has both ids")

		now := func() a2a.Task { return me.GetTask("asha", task.ID).Task(t) }
		answer(task.ContextID, `"message":"I am looking.","as":"progress"`)
		require.Equal(t, a2a.Working, now().Status.State)
		require.Equal(t, "I am looking.", *now().Status.Message.Parts[0].Text)
		answer(task.ContextID, `"message":"A sketch.","as":"progress","attachment":{"name":"sketch","url":"https://a.example/s.png","mediaType":"image/png"}`)
		answer(task.ContextID, `"message":"The price.","as":"progress","attachment":{"name":"price","data":{"amount":90000,"currency":"INR"}}`)
		answer(task.ContextID, `"message":"Of which wood?","as":"question"`)
		asked := now()
		require.Equal(t, a2a.InputRequired, asked.Status.State)
		require.Equal(t, "Of which wood?", *asked.Status.Message.Parts[0].Text)
		require.Len(t, asked.Artifacts, 2)
		require.Equal(t, "https://a.example/s.png", asked.Artifacts[0].Parts[1].URL)
		require.JSONEq(t, `{"amount":90000,"currency":"INR"}`, string(asked.Artifacts[1].Parts[1].Data))
		again := me.Write("asha", "m-2", "Oak.", fmt.Sprintf(`,"taskId":%q`, task.ID)).Task(t)
		require.Equal(t, task.ID, again.ID, "the answer to a question belongs to the task")
		require.Equal(t, a2a.Working, again.Status.State)
		answer(task.ContextID, `"message":"Then 95,000.","attachment":{"name":"quote.txt","bytes":"OTUsMDAw","mediaType":"text/plain"}`)
		done := now()
		require.Equal(t, a2a.Completed, done.Status.State)
		require.Len(t, done.History, 7)
		require.Equal(t, "95,000", string(done.Artifacts[2].Parts[1].Raw))
		next := me.Write("asha", "m-3", "Tables?", fmt.Sprintf(`,"contextId":%q`, task.ContextID)).Task(t)
		require.NotEqual(t, task.ID, next.ID)
		answer(next.ContextID, `"message":"We make none.","as":"refusal"`)
		refused := me.GetTask("asha", next.ID).Task(t)
		require.Equal(t, a2a.Rejected, refused.Status.State)
		require.Equal(t, "We make none.", *refused.Status.Message.Parts[0].Text)
		require.Len(t, now().History, 7, "the first is as it was")

		for name, members := range map[string]string{
			"two contents": `"message":"x","attachment":{"url":"https://a.example/","bytes":"eA=="}`, "no content": `"message":"x","attachment":{}`,
			"plain http": `"message":"x","attachment":{"url":"http://a.example/"}`, "no base64": `"message":"x","attachment":{"bytes":"?"}`,
			"unknown": `"message":"x","as":"rumour"`, "long": `"message":"x","attachment":{"data":"` + strings.Repeat("y", 17<<10) + `"}`,
		} {
			a := h.Ask("POST", "/api/owner/threads/"+task.ContextID+"/messages", "{"+members+"}", "Authorization", "Bearer "+token)
			require.Equal(t, 422, a.Code, "%s: %s", name, a.Body)
		}
	})
}

// TestA2A_Cancel: who wrote cancels what waits; twice is once, and what is over stays.
func TestA2A_Cancel(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		all := h.Agents(2)
		me, other := all[0], all[1]
		task := me.Write("asha", "m-1", "Hello", "").Task(t)
		cancel := func(a *nodetest.Agent) nodetest.A2AAnswer {
			return a.Do("/a2a/asha", "CancelTask", fmt.Sprintf(`{"id":%q}`, task.ID))
		}
		code, _ := codeOf(cancel(other))
		require.Equal(t, -32001, code)
		require.Equal(t, a2a.Canceled, cancel(me).Task(t).Status.State)
		require.Equal(t, a2a.Canceled, cancel(me).Task(t).Status.State)
		require.Equal(t, a2a.Canceled, me.GetTask("asha", task.ID).Task(t).Status.State)
		code, _ = codeOf(me.Write("asha", "m-2", "And?", fmt.Sprintf(`,"taskId":%q`, task.ID)))
		require.Equal(t, -32004, code)
		var inbox protocol.Page[protocol.Thread]
		h.Ask("GET", "/api/owner/threads", "", "Authorization", "Bearer "+h.TokenOf("asha", "test")).Into(&inbox)
		require.Equal(t, protocol.ThreadClosed, inbox.Items[0].State)
		require.Equal(t, protocol.ExchangeCanceled, inbox.Items[0].Task.State)
	})
}

// TestA2A_List: a caller's tasks with an agent, by state, context and time, in pages.
func TestA2A_List(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, served("any"))
		h.PutOpen("asha", nil)
		all := h.Agents(2)
		me, other := all[0], all[1]
		list := func(params string) (l a2a.TaskList, raw string) {
			t.Helper()
			a := me.Do("/a2a/asha", "ListTasks", params)
			require.Nil(t, a.Error, "%s", a.Raw)
			require.NoError(t, json.Unmarshal(a.Result, &l))
			return l, string(a.Result)
		}
		_, empty := list(`{}`)
		require.JSONEq(t, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`, empty)
		var tasks []a2a.Task
		for i := range 5 {
			tasks = append(tasks, me.Write("asha", fmt.Sprint("m-", i), "Hello", "").Task(t))
			nodetest.Tick()
		}
		other.Write("asha", "o", "Hello", "")
		answeredTask(h, tasks[1].ContextID, "Yes.")
		first, raw := list(`{"pageSize":2,"status":"UNRECOGNIZED"}`)
		require.Equal(t, 5, first.TotalSize)
		require.Equal(t, []string{tasks[1].ID, tasks[4].ID}, []string{first.Tasks[0].ID, first.Tasks[1].ID}, "what changed last is first")
		require.NotContains(t, raw, "artifacts")
		require.NotContains(t, raw, "history")
		var rest []string
		for token := first.NextPageToken; token != ""; {
			page, _ := list(fmt.Sprintf(`{"pageSize":2,"pageToken":%q}`, token))
			for _, task := range page.Tasks {
				rest = append(rest, task.ID)
			}
			token = page.NextPageToken
		}
		require.Equal(t, []string{tasks[3].ID, tasks[2].ID, tasks[0].ID}, rest)
		full, _ := list(`{"status":"TASK_STATE_COMPLETED","includeArtifacts":true,"historyLength":5}`)
		require.Len(t, full.Tasks, 1)
		require.Len(t, full.Tasks[0].Artifacts, 1)
		require.Len(t, full.Tasks[0].History, 2)
		of, _ := list(fmt.Sprintf(`{"context_id":%q,"status":1}`, tasks[2].ContextID))
		require.Len(t, of.Tasks, 1)
		require.Contains(t, string(other.Do("/a2a/asha", "ListTasks", fmt.Sprintf(`{"contextId":%q}`, tasks[2].ContextID)).Result), `"totalSize":0`)
		since, _ := list(fmt.Sprintf(`{"statusTimestampAfter":%q}`, full.Tasks[0].Status.Timestamp))
		require.Equal(t, 1, since.TotalSize, "of that time or later")
		none, _ := list(`{"status":"TASK_STATE_AUTH_REQUIRED"}`)
		require.Empty(t, none.Tasks)

		guest := plain(h, "/a2a/asha", "SendMessage", said("g", hi, ""), "Proof-Of-Work", h.Proof("contact")).Task(t)
		mine := plain(h, "/a2a/asha", "ListTasks", `{}`, "Authorization", "Bearer "+readTokenOf(guest))
		require.Contains(t, string(mine.Result), `"totalSize":1`, "a guest sees the thread of the token")
		require.Contains(t, string(mine.Result), guest.ID)
		for name, params := range map[string]string{
			"size": `{"pageSize":0}`, "large": `{"pageSize":101}`, "token": `{"pageToken":"x"}`, "state": `{"status":"DONE"}`, "time": `{"statusTimestampAfter":"now"}`,
			"other filter": fmt.Sprintf(`{"pageToken":%q,"status":1}`, first.NextPageToken), "length": `{"historyLength":-1}`,
		} {
			code, _ := codeOf(me.Do("/a2a/asha", "ListTasks", params))
			require.Equal(t, -32602, code, name)
		}
	})
}

// A streamed is an open stream.
type streamed struct {
	t    *testing.T
	body *bufio.Scanner
	stop func()
}

// opens opens a stream with a read token.
func opens(h *nodetest.House, method, params, token string) *streamed {
	h.T.Helper()
	ctx, cancel := context.WithCancel(h.T.Context())
	r := must.Get(http.NewRequestWithContext(ctx, "POST", h.Base+"/a2a/asha",
		strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s","method":%q,"params":%s}`, method, params))))(h.T)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Proof-Of-Work", h.Proof("contact"))
	res := must.Get(http.DefaultClient.Do(r))(h.T)
	require.Equal(h.T, "text/event-stream", res.Header.Get("Content-Type"))
	h.T.Cleanup(func() { cancel(); res.Body.Close() })
	return &streamed{h.T.(*testing.T), bufio.NewScanner(res.Body), cancel}
}

// next is the next event, nil at the end.
func (s *streamed) next() *a2a.StreamResponse {
	s.t.Helper()
	for s.body.Scan() {
		line, is := strings.CutPrefix(s.body.Text(), "data: ")
		if !is {
			continue
		}
		var answer struct {
			ID     string
			Result a2a.StreamResponse
		}
		require.NoError(s.t, json.Unmarshal([]byte(line), &answer), line)
		require.Equal(s.t, "s", answer.ID)
		return &answer.Result
	}
	return nil
}

// TestA2A_Streams: a message and a subscription are told what changes, on every process, and end with the task.
func TestA2A_Streams(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change, served("any"))
		h.PutOpen("asha", nil)
		answer := assistant(h)
		sent := opens(h, "SendStreamingMessage", said("m", hi, ""), "")
		task := *sent.next().Task
		require.Equal(t, a2a.Submitted, task.Status.State)
		token := readTokenOf(task)
		require.NotEmpty(t, token)
		about := fmt.Sprintf(`{"id":%q}`, task.ID)
		also := opens(h, "SubscribeToTask", about, token)
		require.Equal(t, task.ID, also.next().Task.ID)
		answer(task.ContextID, `"message":"Working on it.","as":"progress","attachment":{"data":1}`)
		for _, s := range []*streamed{sent, also} {
			require.JSONEq(t, `1`, string(s.next().ArtifactUpdate.Artifact.Parts[1].Data))
			status := s.next().StatusUpdate
			require.Equal(t, []any{task.ID, task.ContextID, a2a.Working}, []any{status.TaskID, status.ContextID, status.Status.State})
		}
		answer(task.ContextID, `"message":"To which town?","as":"question"`)
		require.Equal(t, a2a.InputRequired, sent.next().StatusUpdate.Status.State)
		require.Nil(t, sent.next(), "it is the caller's turn")
		require.Equal(t, a2a.InputRequired, also.next().StatusUpdate.Status.State)
		require.Nil(t, also.next())
		waiting := opens(h, "SubscribeToTask", about, token)
		require.Equal(t, a2a.InputRequired, waiting.next().Task.Status.State, "a task that waits can be followed")
		answer(task.ContextID, `"message":"To Jaipur and Ajmer."`)
		require.Equal(t, "reply", waiting.next().ArtifactUpdate.Artifact.Name)
		require.Equal(t, a2a.Completed, waiting.next().StatusUpdate.Status.State)
		require.Nil(t, waiting.next())
		over := plain(h, "/a2a/asha", "SubscribeToTask", about, "Authorization", "Bearer "+token)
		code, _ := codeOf(over)
		require.Equal(t, -32004, code, "what is over")
		code, _ = codeOf(plain(h, "/a2a/asha", "SubscribeToTask", `{"id":"task_01k9y3v6k8e5w9q2x4z7c1m0ad_1"}`, "Authorization", "Bearer "+token))
		require.Equal(t, -32001, code)
		require.Eventually(t, func() bool { return h.Contact.Hub.Count() == 0 }, time.Minute, time.Millisecond, "places are free again")

		direct := opens(h, "SendStreamingMessage", said("d", `{"data":{"operation":"get_agent_profile"}}`, ""), "")
		require.NotNil(t, direct.next().Message)
		require.Nil(t, direct.next())
		second := opens(h, "SendStreamingMessage", said("n", hi, ""), "")
		other := *second.next().Task
		open := []*streamed{second}
		for range 9 {
			s := opens(h, "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, other.ID), readTokenOf(other))
			s.next()
			open = append(open, s)
		}
		full := plain(h, "/a2a/asha", "SubscribeToTask", fmt.Sprintf(`{"id":%q}`, other.ID), "Authorization", "Bearer "+readTokenOf(other))
		code, ours := codeOf(full)
		require.Equal(t, []any{503, -32000, protocol.Overloaded, "30"}, []any{full.Status, code, ours, full.Header.Get("Retry-After")})
		require.Contains(t, string(full.Raw), "google.rpc.RetryInfo")
		for _, s := range open {
			s.stop()
		}
	})
}

// TestA2A_Blocking: a message waits until it is answered, as long as the node waits, unless its sender asks otherwise.
func TestA2A_Blocking(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.A2AWait = 20 })
		h.PutOpen("asha", nil)
		me, answer := h.Agents(1)[0], assistant(h)
		for text, want := range map[string]a2a.State{`"message":"Yes."`: a2a.Completed, `"message":"Which?","as":"question"`: a2a.InputRequired} {
			done := make(chan a2a.Task, 1)
			go func() { done <- me.Write("asha", text, "Hello", "").Task(t) }()
			var inbox protocol.Page[protocol.Thread]
			require.Eventually(t, func() bool {
				h.Ask("GET", "/api/owner/threads?state=open", "", "Authorization", "Bearer "+h.TokenOf("asha", "test")).Into(&inbox)
				return len(inbox.Items) == 1
			}, time.Minute, time.Millisecond)
			require.Eventually(t, func() bool { return h.Contact.Hub.Count() == 1 }, time.Minute, time.Millisecond)
			select {
			case task := <-done:
				t.Fatalf("it did not wait: %v", task)
			default:
			}
			answer(inbox.Items[0].ThreadID, text)
			require.Equal(t, want, (<-done).Status.State)
		}
		began := time.Now()
		immediately := me.Do("/a2a/asha", "SendMessage",
			`{"configuration":{"returnImmediately":true},"message":{"messageId":"i","role":"ROLE_USER","parts":[{"text":"Hello"}]}}`)
		require.Equal(t, a2a.Submitted, immediately.Task(t).Status.State)
		legacy := old(me, "message/send", `{"configuration":{"blocking":false},`+said03("j", "Hello", "")[1:])
		require.Contains(t, string(legacy.Result), `"state":"submitted"`)
		require.Less(t, time.Since(began), 20*time.Second, "as long as one waits otherwise")
	})
}
