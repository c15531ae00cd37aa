package a2aapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// old calls a method of 0.3 as an agent, without a version.
func old(a *nodetest.Agent, method, params string) nodetest.A2AAnswer {
	a.H.T.Helper()
	return a.Do("/a2a/asha", method, params, "A2A-Version", "")
}

func said03(id, text, extra string) string {
	return fmt.Sprintf(`{"message":{"kind":"message","messageId":%q,"role":"user","parts":[{"kind":"text","text":%q}]%s}}`, id, text, extra)
}

// TestA2A_Legacy: version 0.3 at the same address: its names, kinds, states and errors, and one task in both versions.
func TestA2A_Legacy(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		me := h.Agents(1)[0]
		sent := old(me, "message/send", said03("m-1", "Do you deliver?", ""))
		require.Equal(t, "0.3", sent.Header.Get("A2A-Version"))
		var task struct {
			Kind, ID, ContextID string
			Status              struct{ State, Timestamp string }
			History             []struct {
				Kind, Role, MessageID string
				Parts                 []struct{ Kind, Text string }
			}
			Artifacts []struct{ Parts []struct{ Kind, Text string } }
		}
		read := func(a nodetest.A2AAnswer) {
			t.Helper()
			require.Nil(t, a.Error, "%s", a.Raw)
			require.NoError(t, json.Unmarshal(a.Result, &task))
			require.Equal(t, "task", task.Kind)
			require.NotContains(t, string(a.Result), "TASK_STATE")
			require.NotContains(t, string(a.Result), "ROLE_")
		}
		read(sent)
		require.Equal(t, "submitted", task.Status.State)
		require.Equal(t, "user", task.History[0].Role)
		require.Equal(t, "message", task.History[0].Kind)
		require.Equal(t, "text", task.History[0].Parts[0].Kind)
		read(old(me, "message/send", said03("m-2", "To Jaipur?", fmt.Sprintf(`,"taskId":%q,"contextId":%q`, task.ID, task.ContextID))))
		require.Len(t, task.History, 2)
		answeredTask(h, task.ContextID, "Yes.")
		read(old(me, "tasks/get", fmt.Sprintf(`{"id":%q,"historyLength":1}`, task.ID)))
		require.Equal(t, "completed", task.Status.State)
		require.Len(t, task.History, 1)
		require.Equal(t, "agent", task.History[0].Role)
		require.Equal(t, "Yes.", task.Artifacts[0].Parts[0].Text)
		require.Equal(t, a2a.Completed, me.GetTask("asha", task.ID).Task(t).Status.State, "the task in 1.0")
		made := me.Write("asha", "m-3", "In 1.0", "").Task(t)
		read(old(me, "tasks/get", fmt.Sprintf(`{"id":%q}`, made.ID)))
		require.Equal(t, made.ID, task.ID)

		direct := old(me, "message/send",
			`{"message":{"kind":"message","messageId":"d","role":"user","parts":[{"kind":"data","data":{"operation":"get_agent_profile"}}]}}`)
		require.Contains(t, string(direct.Result), `"kind":"message"`)
		require.Contains(t, string(direct.Result), `"parts":[{"kind":"data","data":{`)

		for name, tt := range map[string]struct {
			method, params string
			code           int
		}{
			"no message":      {"message/send", `{}`, -32602},
			"a name of 1.0":   {"tasks/list", `{}`, -32601},
			"no such task":    {"tasks/get", `{"id":"t-1"}`, -32001},
			"no id":           {"tasks/get", `{}`, -32602},
			"cancel nothing":  {"tasks/cancel", `{"id":"t-1"}`, -32001},
			"over":            {"message/send", said03("m-4", "x", fmt.Sprintf(`,"taskId":%q`, "task_01k9y3v6k8e5w9q2x4z7c1m0ad_1")), -32001},
			"unknown kind":    {"message/send", strings.Replace(said03("m-5", "x", ""), `"kind":"text"`, `"kind":"video"`, 1), -32602},
			"role of 1.0":     {"message/send", strings.Replace(said03("m-6", "x", ""), `"user"`, `"ROLE_USER"`, 1), -32602},
			"negative length": {"tasks/get", `{"id":"t-1","historyLength":-1}`, -32602},
		} {
			a := old(me, tt.method, tt.params)
			code, _ := codeOf(a)
			require.Equal(t, tt.code, code, "%s: %s", name, a.Raw)
			require.NotEmpty(t, a.Error.Data[0].Reason, name)
		}
	})
}

// TestA2A_CombinedCard: who names no version gets the members of 0.3 beside those of 1.0; who asks for 1.0 none.
func TestA2A_CombinedCard(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, served("any"))
	h.PutOpen("asha", nil)
	for path, endpoint := range map[string]string{"/a2a/asha/agent-card.json": "/a2a/asha", "/.well-known/agent-card.json": "/a2a"} {
		card := must.JSON[map[string]any](h.Ask("GET", path, "").Is(200).Body.Bytes())(t)
		require.Equal(t, h.Base+endpoint, card["url"])
		require.Equal(t, "0.3.0", card["protocolVersion"])
		require.Equal(t, "JSONRPC", card["preferredTransport"])
		require.Equal(t, []any{map[string]any{"url": h.Base + endpoint, "transport": "JSONRPC"}}, card["additionalInterfaces"])
		schemes := card["securitySchemes"].(map[string]any)
		require.Equal(t, "apiKey", schemes["proofOfWork"].(map[string]any)["type"])
		require.Equal(t, "http", schemes["bearer"].(map[string]any)["type"])
		require.Contains(t, card["security"], map[string]any{"proofOfWork": []any{"agent"}})
		for _, version := range []string{"0.3", "0.3.0"} {
			require.Equal(t, h.Ask("GET", path, "").Body.String(), h.Ask("GET", path, "", "A2A-Version", version).Body.String())
		}
		pure := must.Get(json.Marshal(nodetest.As[map[string]any](h.Ask("GET", path, "", "A2A-Version", "1.0"))))(t)
		for _, member := range []string{`"url":"` + h.Base + endpoint + `","version"`, `"preferredTransport"`,
			`"additionalInterfaces"`, `"type":"apiKey"`, `"security":`} {
			require.NotContains(t, string(pure), member)
		}
	}
}
