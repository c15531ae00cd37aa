package directory_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
)

const fullPerson = `{"handle":"asha","name":"Asha","kind":"person","headline":"Paper","description":"I make paper.",
 "agent":{"name":"A","by":"stoa","product":"stoa","acceptingMeetingRequests":true},
 "capabilities":[{"id":"schedule-meeting","name":"Meet","description":"Ask.","tags":["scheduling"],"input":"what","output":"invite",
 "pricing":{"model":"fixed","currency":"INR","amount":12.5,"note":"per hour"},"endpoint":"https://asha.example/meet"}],
 "needs":[{"id":"rag","description":"Cotton rag.","tags":["paper"]}],"tags":["paper"],"languages":["en","hi"],"regions":["IN","IN-RJ"],
 "timezone":"Asia/Kolkata",
 "contactPolicy":{"outsideAgentsWithIdentity":true,"anonymous":true,"kinds":["question"],"responseTime":"a day"}}`

const fullBusiness = `{"handle":"rao-tiffins","name":"Rao","kind":"business",
 "returns":{"acceptsReturns":true,"windowDays":7,"covers":"all","goodsMustComeBack":false,"supportAgentApprovesUpTo":"₹500","instructions":null,"note":"n"}}`

// TestProfile: every profile, alone and in the list, is valid by the schema that the node serves. Its fields and limits are rows of
// TestSpecification.
func TestProfile(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, raw := range []string{fullPerson, fullBusiness, `{"handle":"bare","name":"Bare","kind":"person"}`} {
		_, created, err := h.Admin().PutProfile(t.Context(), []byte(raw))
		require.NoError(t, err)
		require.True(t, created)
	}
	schema := nodetest.Compile(t, h.Ask("GET", "/schemas/agent-profile.v1.json", "").Is(200).Body.Bytes(), "")
	for _, handle := range []string{"asha", "rao-tiffins", "bare"} {
		a := h.Ask("GET", "/api/public/agents/"+handle, "").Is(200)
		require.Equal(t, "public, max-age=30", a.Header().Get("Cache-Control"))
		nodetest.Valid(t, schema, a.Body.Bytes())
	}
	asha := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/asha", ""))
	require.Len(t, asha.Capabilities, 1)
	require.Equal(t, []any{"schedule-meeting", "Meet", "12.5"}, []any{asha.Capabilities[0].ID, asha.Capabilities[0].Name,
		fmt.Sprint(*asha.Capabilities[0].Pricing.Amount)}, "what the owner wrote")
	found := nodetest.As[protocol.Page[json.RawMessage]](h.Ask("GET", "/api/public/agents?limit=100", ""))
	require.Len(t, found.Items, 3)
	for _, p := range found.Items {
		nodetest.Valid(t, schema, p)
	}
}

func FuzzPutProfile(f *testing.F) {
	f.Add([]byte(fullPerson))
	f.Add([]byte(fullBusiness))
	f.Add([]byte(`{"handle":"a","contactPolicy":[],"identity":{"erc8004":7}}`))
	f.Add([]byte(`{"capabilities":[{"pricing":null}],"needs":[[]]}`))
	h := nodetest.New(f)
	admin := h.Admin()
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := admin.Table.Invoke(t.Context(), hall.Request{Op: protocol.PutProfile.Name, Args: raw, Evidence: identity.Evidence{Operator: true}})
		if err != nil {
			require.NotEqual(t, protocol.Internal, protocol.CodeOf(err), "%s", raw)
		}
	})
}
