package ucpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/storage"
)

// sameEverywhere reads catalog search, shop and reviews over HTTP, as a tool and as a data part of A2A, at the node's endpoint and
// at the shop's, and the catalog by both bindings of UCP. Each gives the same, and the page of each shows it.
func sameEverywhere(t *testing.T, h *nodetest.House) {
	const identity = "eip155:1:0x00000000000000000000000000000000000000aa:1"
	require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		p := must.Get(tx.Profiles().ForUpdate(ctx, "chai"))(t)
		p.ERC8004 = identity
		must.Get(tx.Profiles().Put(ctx, p))(t)
		require.NoError(t, tx.Feedbacks().Add(ctx, identity, protocol.ByPayment, 1, 9000))
		for i, state := range []storage.FeedbackState{storage.FeedbackCounted, storage.FeedbackUncounted} {
			must.Get(tx.Feedbacks().Insert(ctx, storage.Feedback{ID: protocol.NewID(protocol.ReviewID, tx.Now), Agent: identity,
				Client: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", Index: uint64(i), Place: int64(i), At: tx.Now, State: state, Reason: protocol.ByPayment,
				Rating: 9000, Doc: storage.FeedbackDoc{Text: "Strong tea.", Tx: fmt.Sprintf("0x%064d", i)}}))(t)
		}
		return nil
	}))
	me, n := h.Agents(1)[0], 0
	dataPart := func(endpoint, op, input string) string {
		t.Helper()
		n++
		a := me.Do(endpoint, "SendMessage", fmt.Sprintf(`{"message":{"messageId":"same-%d","role":"ROLE_USER","parts":[{"data":{"operation":%q,"input":%s}}]}}`,
			n, op, input))
		require.Nil(t, a.Error, "%s", a.Raw)
		sent := must.JSON[a2a.SendResult](a.Result)(t)
		return string(sent.Message.Parts[0].Data)
	}
	for _, c := range []struct{ op, input, ofShop, path, page, text string }{
		{"list_items", `{"q":"kettle"}`, "", "/api/public/items?q=kettle", "/@chai", "Kettle"},
		{"list_items", `{"handle":"chai","maxPrice":"30"}`, `{"maxPrice":"30"}`, "/api/public/items?handle=chai&maxPrice=30", "/@chai", "Masala tea"},
		{"get_merchant", `{"handle":"chai"}`, `{}`, "/api/public/merchants/chai", "/@chai", "Masala tea"},
		{"list_reviews", `{"handle":"chai"}`, `{}`, "/api/public/agents/chai/reviews", "/@chai/reviews", "Strong tea."},
		{"list_reviews", `{"handle":"chai","uncounted":true}`, `{"uncounted":true}`, "/api/public/agents/chai/reviews?uncounted=true",
			"/@chai/reviews?uncounted=true", "Strong tea."},
	} {
		want := h.Ask("GET", c.path, "").Body.String()
		require.Contains(t, want, c.text)
		require.JSONEq(t, want, string(h.Tool(c.op, c.input).Structured), c.path)
		require.JSONEq(t, want, dataPart("/a2a", c.op, c.input), c.path)
		if c.ofShop != "" {
			require.JSONEq(t, want, dataPart("/a2a/chai", c.op, c.ofShop), c.path)
		}
		require.Contains(t, h.Ask("GET", c.page, "", "Accept", "text/html").Body.String(), c.text)
	}

	// The bindings of UCP give the same products, which are those of list_items.
	var overREST, overMCP struct {
		Products []json.RawMessage `json:"products"`
	}
	for _, search := range []string{`{"query":"kettle"}`, `{"filters":{"price":{"max":3000}},"context":{"currency":"INR"}}`} {
		h.Ask("POST", protocol.UCPPath+"/catalog/search", search).Into(&overREST)
		a := h.RPCAt(protocol.UCPMCPPath, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_catalog","arguments":{"catalog":`+search+`}}}`)
		require.Nil(t, a.Error, "%s", a.Body)
		var result struct {
			Structured json.RawMessage `json:"structuredContent"`
		}
		require.NoError(t, json.Unmarshal(a.Result, &result))
		require.NoError(t, json.Unmarshal(result.Structured, &overMCP))
		require.NotEmpty(t, overREST.Products)
		require.Equal(t, overREST, overMCP, search)
	}
}
