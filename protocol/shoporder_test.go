package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestParseBasket: the items of a permalink (UCP dev.ucp.shopping.permalink "Compact Item Path").
func TestParseBasket(t *testing.T) {
	t.Parallel()
	b := must.Get(ParseBasket("var_a:2,item-b.1"))(t)
	require.Equal(t, Basket{[]BasketItem{{"var_a", 2}, {"item-b.1", 1}}}, b)
	require.Equal(t, "var_a:2,item-b.1:1", b.String())
	for _, text := range []string{"", ":1", "a:0", "a:01", "a:+1", "a:-1", "a:1000", "a:x", "a:", "a:1,", ",a:1", "a:1:2"} {
		_, err := ParseBasket(text)
		require.Equal(t, InvalidRequest, CodeOf(err), text)
	}
}

// TestUCPMetaOf_Permalink: the address is in the profile of the current release, where it is one of https.
func TestUCPMetaOf_Permalink(t *testing.T) {
	t.Parallel()
	got := UCPMetaOf("https://n1.example", UCPVersions[0]).Capabilities[UCPPermalink]
	require.Equal(t, map[string]string{"endpoint": "https://n1.example/buy"}, got[0].Config)
	require.NotContains(t, UCPMetaOf("https://n1.example", UCPVersions[1]).Capabilities, UCPPermalink)
	require.NotContains(t, UCPMetaOf("http://127.0.0.1:8080", UCPVersions[0]).Capabilities, UCPPermalink)
}

// TestOrderState: no order goes backwards, and what is refunded stays so.
func TestOrderState(t *testing.T) {
	t.Parallel()
	for _, move := range [][2]OrderState{{OrderPaid, OrderAwaiting}, {OrderFulfilled, OrderPaid}, {OrderIsRefunded, OrderPaid}, {OrderCanceled, OrderAwaiting},
		{OrderAwaiting, OrderFulfilled}, {OrderFulfilled, OrderCanceled}} {
		require.False(t, move[0].May(move[1]), "%v", move)
	}
	require.True(t, OrderCanceled.May(OrderPaid), "a late payment")
}
