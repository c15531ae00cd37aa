package a2aapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestA2A_ThreadLimits: how much may wait is a setting, which the card tells; a refusal says when to come back.
func TestA2A_ThreadLimits(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.OpenThreads, c.Unanswered = 2, 3 })
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	card := h.Ask("GET", "/a2a/asha/agent-card.json", "", "A2A-Version", "1.0").Body.String()
	require.Contains(t, card, `{"limit":2,"of":"openThreads","reason":"TOO_MANY_WAITING"}`)
	require.Contains(t, card, `{"limit":3,"of":"unansweredMessages","reason":"TOO_MANY_WAITING"}`)
	first := me.Write("asha", "1", "Hello", "").Task(t)
	me.Write("asha", "2", "Hello", "").Task(t)
	in := `,"contextId":"` + first.ContextID + `"`
	me.Write("asha", "3", "And?", in).Task(t)
	me.Write("asha", "4", "And?", in).Task(t)
	for of, full := range map[string]nodetest.A2AAnswer{
		"openThreads": me.Write("asha", "5", "Hello", ""), "unansweredMessages": me.Write("asha", "6", "And?", in),
	} {
		code, ours := codeOf(full)
		require.Equal(t, []any{-32000, protocol.Conflict, of}, []any{code, ours, full.Error.Data[0].Metadata["of"]}, "%s", full.Raw)
		require.Contains(t, string(full.Raw), `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}`)
		require.Equal(t, "3600", full.Header.Get("Retry-After"))
	}
	over := restClient(h, me)
	require.ErrorContains(t, must.Err(over.SendMessage(t.Context(), sdkText("Hello"))), "waiting for an answer")
}
