package a2aapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestA2A_Exchange walks a contact thread as tasks: a task is one exchange, the
// thread is its context.
func TestA2A_Exchange(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		all := h.Agents(2)
		me, other := all[0], all[1]

		first := me.Write("asha", "m-1", "Can you quote for 40 chairs?", `,"metadata":{"urn:stoa:a2a:contact:v1":{"kind":"quote_request"}}`)
		require.Equal(t, "1.0", first.Header.Get("A2A-Version"))
		task := first.Task(t)
		require.Equal(t, a2a.Submitted, task.Status.State)
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, task.Status.Timestamp)
		require.Equal(t, []a2a.Message{{
			MessageID: "m-1", ContextID: task.ContextID, TaskID: task.ID, Role: a2a.RoleUser, Parts: []a2a.Part{a2a.TextPart("Can you quote for 40 chairs?")},
		}}, task.History)
		var thread protocol.Conversation
		signedRead(t, me, "/api/public/threads/"+task.ContextID, &thread)
		require.Equal(t, protocol.QuoteRequest, thread.Kind)
		require.Equal(t, me.ID, *thread.Writer.ERC8004)
		require.True(t, thread.Writer.Verified)

		second := me.Write("asha", "m-2", "Of oak.", fmt.Sprintf(`,"taskId":%q`, task.ID)).Task(t)
		require.Equal(t, task.ID, second.ID, "what is added to a task that waits belongs to it")
		require.Len(t, second.History, 2)
		require.Equal(t, task.ID, me.Write("asha", "m-3", "By March.", fmt.Sprintf(`,"contextId":%q`, task.ContextID)).Task(t).ID)

		answeredTask(h, task.ContextID, "Gladly: 90,000.")
		answeredTask(h, task.ContextID, "With cushions.")
		done := me.GetTask("asha", task.ID).Task(t)
		require.Equal(t, a2a.Completed, done.Status.State)
		require.Len(t, done.History, 5)
		require.Len(t, done.Artifacts, 2)
		require.Equal(t, "Gladly: 90,000.", *done.Artifacts[0].Parts[0].Text)
		require.Equal(t, a2a.RoleAgent, done.History[3].Role)
		for n, want := range map[int]int{0: 0, 2: 2, 50: 5} {
			got := me.Do("/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q,"historyLength":%d}`, task.ID, n)).Task(t)
			require.Len(t, got.History, want)
			require.Len(t, got.Artifacts, 2)
		}

		over := me.Write("asha", "m-4", "And tables?", fmt.Sprintf(`,"taskId":%q`, task.ID))
		code, _ := codeOf(over)
		require.Equal(t, -32004, code, "a task that is over takes nothing more")
		next := me.Write("asha", "m-4", "And tables?", fmt.Sprintf(`,"contextId":%q,"referenceTaskIds":[%q]`, task.ContextID, task.ID)).Task(t)
		require.NotEqual(t, task.ID, next.ID)
		require.Equal(t, task.ContextID, next.ContextID)
		require.Len(t, next.History, 1)
		require.Len(t, me.GetTask("asha", task.ID).Task(t).History, 5, "the first is as it was")

		code, ours := codeOf(me.Do("/a2a/asha", "CancelTask", fmt.Sprintf(`{"id":%q}`, task.ID)))
		require.Equal(t, -32002, code, "what is over")
		require.Equal(t, protocol.Conflict, ours)
		closeThread := func(by string) {
			changeThread(h, task.ContextID, func(_ context.Context, tx *storage.Tx, s *storage.StoredThread) error {
				now := tx.Now
				s.State, s.ClosedAt, s.ClosedBy = protocol.ThreadClosed, &now, by
				return nil
			})
		}
		closeThread("owner")
		require.Equal(t, a2a.Rejected, me.GetTask("asha", next.ID).Task(t).Status.State)
		require.Equal(t, a2a.Completed, me.GetTask("asha", task.ID).Task(t).Status.State)
		closeThread("silence")
		require.Equal(t, a2a.Failed, me.GetTask("asha", next.ID).Task(t).Status.State)
		code, _ = codeOf(me.Write("asha", "m-5", "Hello?", fmt.Sprintf(`,"contextId":%q`, task.ContextID)))
		require.Equal(t, -32004, code)

		unknown := strings.Replace(task.ID, task.ID[5:10], "01k9y", 1)
		for name, answer := range map[string]nodetest.A2AAnswer{
			"of another agent":        other.GetTask("asha", task.ID),
			"at another endpoint":     me.GetTask("vikram", task.ID),
			"that never was":          me.GetTask("asha", unknown),
			"inside an exchange":      me.GetTask("asha", strings.TrimSuffix(task.ID, "1")+"2"),
			"an answer":               me.GetTask("asha", strings.TrimSuffix(task.ID, "1")+"4"),
			"beyond the end":          me.GetTask("asha", strings.TrimSuffix(task.ID, "1")+"500"),
			"no id of ours":           me.GetTask("asha", "t-1"),
			"canceled by another":     other.Do("/a2a/asha", "CancelTask", fmt.Sprintf(`{"id":%q}`, task.ID)),
			"written to by another":   other.Write("asha", "x", "x", fmt.Sprintf(`,"taskId":%q`, task.ID)),
			"written to, of no shape": me.Write("asha", "x", "x", `,"taskId":"t-1"`),
		} {
			code, ours := codeOf(answer)
			require.Equal(t, -32001, code, name)
			require.Equal(t, protocol.NotFound, ours, name)
			require.Equal(t, "TASK_NOT_FOUND", answer.Error.Data[0].Reason)
			require.Equal(t, 200, answer.Status)
		}
		for name, answer := range map[string]nodetest.A2AAnswer{
			"context of another":  other.Write("asha", "y", "x", fmt.Sprintf(`,"contextId":%q`, task.ContextID)),
			"context of no shape": me.Write("asha", "y", "x", `,"contextId":"c"`),
		} {
			code, _ := codeOf(answer)
			require.Equal(t, -32602, code, name)
			require.Equal(t, "message.contextId", answer.Error.Data[1].Violations[0].Field)
		}
		fresh := me.Write("asha", "m-6", "Another matter.", "").Task(t)
		mixed := me.Write("asha", "m-7", "x", fmt.Sprintf(`,"taskId":%q,"contextId":%q`, fresh.ID, task.ContextID))
		code, _ = codeOf(mixed)
		require.Equal(t, -32602, code)
		require.Equal(t, "message.contextId", mixed.Error.Data[1].Violations[0].Field)
	})
}

// signedRead reads as an agent.
func signedRead(t *testing.T, a *nodetest.Agent, path string, into any) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", a.H.Base+path, http.NoBody))(t)
	res := must.Get(a.RoundTrip(r))(t)
	require.Equal(t, 200, res.StatusCode)
	require.NoError(t, json.NewDecoder(res.Body).Decode(into))
}

// TestA2A_Repeated: a message that comes again is not written again.
func TestA2A_Repeated(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	h.PutOpen("vikram", func(d *protocol.ProfileDraft) { d.Handle = "vikram" })
	all := h.Agents(2)
	me, other := all[0], all[1]
	first := me.Write("asha", "1", "Hello", "").Task(t)
	answeredTask(h, first.ContextID, "Yes?")
	again := me.Write("asha", "1", "Hello", "")
	require.Equal(t, "true", again.Header.Get("Idempotency-Replayed"))
	require.Equal(t, first.ID, again.Task(t).ID)
	require.Equal(t, a2a.Completed, again.Task(t).Status.State, "the task as it is now")
	require.Len(t, again.Task(t).History, 2)

	changed := me.Write("asha", "1", "Hello!", "")
	code, _ := codeOf(changed)
	require.Equal(t, -32602, code)
	require.Equal(t, "MESSAGE_ID_REUSED", changed.Error.Data[0].Reason)
	require.NotEqual(t, first.ContextID, other.Write("asha", "1", "Hello", "").Task(t).ContextID, "ids are each caller's own")
	require.NotEqual(t, first.ContextID, me.Write("vikram", "1", "Hello", "").Task(t).ContextID, "and each agent's own")

	h.Business("rao", `,"returns":{"acceptsReturns":true}`)
	must.Get(h.Admin().PutMerchant(t.Context(), "rao", []byte(nodetest.GoodMerchant)))(t)
	near := me.Do("/a2a", "SendMessage", `{"message":{"messageId":"n","role":"ROLE_USER","parts":[{"data":{"operation":"list_merchants","input":`+
		`{"near":"12.9,77.501","radius":200,"minPrice":85,"maxPrice":"85.50","acceptsReturns":true}}}]}}`)
	require.Contains(t, string(near.Raw), `"distance":109`)

	post := `{"message":{"messageId":"p","role":"ROLE_USER","parts":[{"data":{"operation":"post_to_board","input":{"kind":"offer","title":"Looms",` +
		`"body":"Two looms."}}}]}}`
	one, two := me.Do("/a2a", "SendMessage", post), me.Do("/a2a", "SendMessage", post)
	require.Nil(t, one.Error, "%s", one.Raw)
	require.JSONEq(t, string(one.Result), string(two.Result), "the same answer, under the same id")
	page := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board", ""))
	require.Len(t, page.Items, 1)
	require.Equal(t, me.ID, *page.Items[0].Author.ERC8004)
	byKey := me.Do("/a2a", "SendMessage", post, "Idempotency-Key", "another")
	require.NotEqual(t, string(one.Result), string(byKey.Result), "the header replaces the message's id")
}

// TestA2A_Policy: the agent's contact policy decides, and says so.
func TestA2A_Policy(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", func(d *protocol.ProfileDraft) { d.ContactPolicy.OutsideAgentsWithIdentity = false })
	h.PutOpen("vikram", func(d *protocol.ProfileDraft) { d.Handle = "vikram" })
	me := h.Agents(1)[0]
	var asha, vikram protocol.Profile
	h.Ask("GET", "/api/public/agents/asha", "").Into(&asha)
	h.Ask("GET", "/api/public/agents/vikram", "").Into(&vikram)
	require.Nil(t, asha.Interfaces.A2A)
	require.Equal(t, h.Base+"/a2a/vikram", *vikram.Interfaces.A2A)
	require.Equal(t, 200, h.Ask("GET", "/a2a/asha/agent-card.json", "").Code, "the card can be read all the same")

	for name, answer := range map[string]nodetest.A2AAnswer{
		"no outside agents": me.Write("asha", "1", "Hello", ""),
		"kind":              me.Write("vikram", "2", "Help", `,"metadata":{"urn:stoa:a2a:contact:v1":{"kind":"support"}}`),
	} {
		code, ours := codeOf(answer)
		require.Equal(t, -31403, code, name)
		require.Equal(t, protocol.ContactRefused, ours, name)
		require.Equal(t, 200, answer.Status, "clients drop the body of another status")
	}
	code, ours := codeOf(me.Write("nobody", "3", "Hello", ""))
	require.Equal(t, -32602, code)
	require.Equal(t, protocol.NotFound, ours)
}

// TestA2A_Client drives the door with another implementation of the protocol.
func TestA2A_Client(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	c := must.Get(a2aclient.NewFromEndpoints(t.Context(),
		[]*sdk.AgentInterface{sdk.NewAgentInterface(h.Base+"/a2a/asha", sdk.TransportProtocolJSONRPC)},
		a2aclient.WithJSONRPCTransport(&http.Client{Transport: me})))(t)
	res, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Do you deliver to Jaipur?"))})
	require.NoError(t, err)
	task, ok := res.(*sdk.Task)
	require.True(t, ok, "%T", res)
	require.Equal(t, sdk.TaskStateSubmitted, task.Status.State)
	require.Len(t, task.History, 1)
	answeredTask(h, task.ContextID, "To Jaipur and Ajmer.")
	task = must.Get(c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: task.ID}))(t)
	require.Equal(t, sdk.TaskStateCompleted, task.Status.State)
	require.Equal(t, "To Jaipur and Ajmer.", task.Artifacts[0].Parts[0].Text())
	require.NotNil(t, task.Status.Timestamp)

	require.ErrorIs(t, must.Err(c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: "t-1"})), sdk.ErrTaskNotFound)
	require.ErrorIs(t, must.Err(c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: task.ID})), sdk.ErrTaskNotCancelable)
	require.Len(t, must.Get(c.ListTasks(t.Context(), &sdk.ListTasksRequest{}))(t).Tasks, 1)
	made := must.Get(c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: task.ID, URL: "https://a.example/", Token: "t-1"}))(t)
	require.Equal(t, made, must.Get(c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: task.ID, ID: made.ID}))(t))
	require.Len(t, must.Get(c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: task.ID}))(t), 1)
	require.NoError(t, c.DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: made.ID}))
	require.Empty(t, must.Get(c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: task.ID}))(t))
	res = must.Get(c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser,
		sdk.NewDataPart(map[string]any{"operation": "get_agent_profile", "input": map[string]any{}}))}))(t)
	message, ok := res.(*sdk.Message)
	require.True(t, ok, "%T", res)
	require.Equal(t, "asha", message.Parts[0].Data().(map[string]any)["handle"])
}
