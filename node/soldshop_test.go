package node

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/protocol"
)

// sold sells the identity of rao to mehta, who had another. Catalog and receipts stay with the profile of rao; the
// reviews go with the identity, and what the feed told of them ends with the enrolment, for good.
func (m *market) sold(shop erc8004.ID, token, otherToken string) {
	t, ctx := m.t, m.t.Context()
	item := m.ask("PUT", "/api/owner/merchant/items/thali", `{"name":"Thali","price":{"currency":"INR","amount":"180"}}`, "Authorization", token)
	require.Equal(t, 200, item.Code)
	receipts := func(token string) (page protocol.Page[protocol.OrderReceipt]) {
		a := m.ask("GET", "/api/owner/order-receipts?limit=100", "", "Authorization", token)
		require.Equal(t, 200, a.Code, "%s", a.Body)
		a.into(&page)
		return page
	}
	old := m.receipt(token, "R-8", 1)
	before, reputation, list := receipts(token), m.reputed("rao"), m.reviews("rao")
	m.chain.must(m.chain.registrar(0).Transfer(ctx, shop.AgentID, m.chain.address(6)))
	pair := newPair(t)
	m.chain.publish(6, 6, shop, pair)
	m.chain.do("final")
	require.NoError(t, m.Admin().EnrolIdentity(ctx, "mehta", shop.String(), pair.Thumbprint()), "the seller's enrolment ends with it")

	var p protocol.Merchant
	m.ask("GET", "/api/public/merchants/rao", "").into(&p)
	require.Nil(t, p.Reputation)
	require.Len(t, p.Items, 1)
	require.Empty(t, m.reviews("rao"))
	require.Equal(t, before, receipts(token))
	require.Equal(t, 404, m.ask("POST", "/api/owner/order-receipts/"+old.ID+"/revoke", `{}`, "Authorization", otherToken).Code)
	require.Empty(t, m.told("review"))
	now := m.reputed("mehta")
	require.Equal(t, reputation, now)
	require.Equal(t, list, m.reviews("mehta"))
	for _, listed := range []bool{false, true} {
		_, _, err := m.Admin().PutProfile(ctx, fmt.Appendf(nil, `{"handle":"mehta","name":"Mehta","kind":"business","listed":%t}`, listed))
		require.NoError(t, err)
	}
	require.Empty(t, m.told("review"), "what was told names the seller")

	// Who paid the seller before, and who pays the buyer now, reviews the identity; a new receipt of the seller names none.
	for value, receipt := range map[int64]protocol.OrderReceipt{40: old, 80: m.receipt(otherToken, "M-2", 1)} {
		file := m.file(shop, 1, value, fmt.Sprintf(`,"orderReceipt":%q`, receipt.Receipt))
		m.give(shop, 1, value, dataURI(file), erc8004.FeedbackHash(file))
	}
	a := m.ask("POST", "/api/owner/order-receipts", fmt.Sprintf(`{"order":"R-9","client":%q,"total":{"currency":"INR","amount":"180"},"paidAt":%q}`,
		m.chain.Accounts[1].Address, time.Now().UTC().Format(time.RFC3339)), "Authorization", token)
	require.Contains(t, a.Body.String(), `"agent":null`)
	m.chain.do("final")
	m.index()
	require.Equal(t, reputation.Reviews+2, m.reputed("mehta").Reviews)
	require.Equal(t, []string{"review Mehta", "review Mehta"}, m.told("review"))
}
