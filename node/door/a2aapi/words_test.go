package a2aapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// TestA2A_Limits: a limit that was reached has its own reason, and the card says
// both before.
func TestA2A_Limits(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	all := h.Agents(2)
	card := h.Ask("GET", "/a2a/asha/agent-card.json", "").Body.String()
	refused := func(a nodetest.A2AAnswer, reason, of string, most int) {
		t.Helper()
		code, ours := codeOf(a)
		require.Equal(t, -32000, code, "%s", a.Raw)
		require.Equal(t, protocol.Conflict, ours)
		info := a.Error.Data[0]
		require.Equal(t, []string{reason, "stoa"}, []string{info.Reason, info.Domain})
		require.Equal(t, map[string]string{"limit": fmt.Sprint(most), "of": of}, info.Metadata)
		require.NotContains(t, string(a.Raw), "Idempotency-Key", "the advice is about this")
		require.Contains(t, card, fmt.Sprintf(`{"limit":%d,"of":%q,"reason":%q}`, most, of, reason))
	}
	for i := range protocol.MaxOpenThreads {
		require.Nil(t, all[0].Write("asha", fmt.Sprint("m-", i), fmt.Sprint("Hello ", i), "").Error)
	}
	refused(all[0].Write("asha", "m-last", "And one more", ""), protocol.TooManyWaiting, "openThreads", protocol.MaxOpenThreads)
	task := all[1].Write("asha", "n-0", "Hello", "").Task(t)
	for i := range protocol.MaxUnanswered - 1 {
		require.Nil(t, all[1].Write("asha", fmt.Sprint("n-", i+1), "And", fmt.Sprintf(`,"contextId":%q`, task.ContextID)).Error)
	}
	refused(all[1].Write("asha", "n-last", "And", fmt.Sprintf(`,"contextId":%q`, task.ContextID)), protocol.TooManyWaiting, "unansweredMessages",
		protocol.MaxUnanswered)
}

// TestA2A_Members: what the node adds to the protocol's objects is named by an
// extension, and nothing is written in snake case but what owners and operations
// wrote (A2A 1.0 §5.5).
func TestA2A_Members(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(at, e)
			}
		case map[string]any:
			for name, e := range v {
				require.NotContains(t, name, "_", at)
				if name != "data" { // the result of an operation has its own names
					walk(at+"/"+name, e)
				}
			}
		}
	}
	task := me.Write("asha", "m-1", "Hello", "")
	answeredTask(h, task.Task(t).ContextID, "Hello back")
	read := `{"operation":"read_board","input":{"limit":%d}}`
	called := me.Do("/a2a", "SendMessage", fmt.Sprintf(`{"message":{"messageId":"idem-1","role":"ROLE_USER","parts":[{"data":`+read+`}]}}`, 1))
	for _, a := range []nodetest.A2AAnswer{task, me.GetTask("asha", task.Task(t).ID), called} {
		require.Nil(t, a.Error, "%s", a.Raw)
		result := must.JSON[any](a.Result)(t)
		walk("", result)
		require.Contains(t, string(a.Raw), `"metadata":{"urn:stoa:a2a:profile:v1/untrustedContent":true}`)
	}

	// The answer to a used message id with another input is another message.
	id := func(a nodetest.A2AAnswer) string {
		r := must.JSON[a2a.SendResult](a.Result)(t)
		require.NotNil(t, r.Message, "%s", a.Raw)
		return r.Message.MessageID
	}
	ask := func(limit int) string {
		return id(me.Do("/a2a", "SendMessage", fmt.Sprintf(`{"message":{"messageId":"idem-1","role":"ROLE_USER","parts":[{"data":`+read+`}]}}`, limit)))
	}
	require.Equal(t, id(called), ask(1), "the same again")
	require.NotEqual(t, id(called), ask(2))
}

// TestA2A_Faults: what is wrong with an input is told as over HTTP, and of the
// protocol's own members with a pointer into the parameters.
func TestA2A_Faults(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	overHTTP := h.Ask("GET", "/api/public/board?limit=0&kind=rumour", "").Problem().Errors
	require.Len(t, overHTTP, 2)
	last := func(a nodetest.A2AAnswer) []protocol.Fault {
		t.Helper()
		require.NotNil(t, a.Error)
		return a.Error.Data[len(a.Error.Data)-1].Errors
	}
	a := me.Do("/a2a", "SendMessage",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"operation":"read_board","input":{"limit":0,"kind":"rumour"}}}]}}`)
	require.ElementsMatch(t, overHTTP, last(a), "%s", a.Raw)
	for body, want := range map[string]string{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"` + strings.Repeat("x", 2001) + `"}]}}`: "/message/parts too-long",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{"urn:stoa:a2a:contact:v1":{"kind":"gossip"}}}}`: "/message/metadata/" +
			"urn:stoa:a2a:contact:v1/kind not-allowed",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"operation":"read_board","input":[]}}]}}`: "/message/parts/0/data/input invalid",
		`{"message":{"messageId":"m","role":"ROLE_NOBODY","parts":[{"text":"x"}]}}`:                                 "/message/role invalid",
	} {
		a := me.Do("/a2a/asha", "SendMessage", body)
		var got []string
		for _, f := range last(a) {
			got = append(got, f.Pointer+" "+string(f.Code))
		}
		require.Contains(t, got, want, "%s", a.Raw)
	}
}
