package reputation_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage/storagetest"
)

// sold sells the identity of rao, whose business stays here, to the owner of mehta: the catalog and the receipts stay
// with the profile, and the reviews are a former owner's: in no sum, on this node and on one that starts later.
// Buying it back brings none of them back.
func (m *market) sold(shop erc8004.ID, token, otherToken string) {
	t, ctx := m.T, m.T.Context()
	m.Ask("PUT", "/api/owner/merchant/items/thali", `{"name":"Thali","price":{"currency":"INR","amount":"180"}}`, "Authorization", token).Is(200)
	receipts := func(token string) (page protocol.Page[protocol.OrderReceipt]) {
		a := m.Ask("GET", "/api/owner/order-receipts?limit=100", "", "Authorization", token).Is(200)
		a.Into(&page)
		return page
	}
	var paid []string
	for id, r := range m.reviews("rao") {
		if r.Reason == protocol.ByPayment {
			paid = append(paid, id)
		}
	}
	old := m.receipt(token, "R-8", 1)
	list := m.reviews("rao")
	payment := m.pay(9, addressOf(m.Chain, 5), 1e9) // to the seller's wallet
	unread := m.file(shop, 2, 100, fmt.Sprintf(`,"orderReceipt":%q`, m.receipt(token, "R-7", 2).Receipt))
	last := m.give(shop, 2, 100, dataURI(unread), erc8004.FeedbackHash(unread))
	before := receipts(token)
	enrol := func(handle string, from, to int) {
		m.Chain.Must(m.Chain.Registrar(from).Transfer(ctx, shop.AgentID, addressOf(m.Chain, to)))
		pair := nodetest.NewPair(t)
		m.Chain.Publish(to, to, shop, pair)
		m.Chain.Do("final")
		require.NoError(t, m.Admin().EnrolIdentity(ctx, handle, shop.String(), pair.Thumbprint()), "the former enrolment ends with it")
	}
	enrol("mehta", 0, 6)

	p := nodetest.As[protocol.Merchant](m.Ask("GET", "/api/public/merchants/rao", ""))
	require.Nil(t, p.Reputation)
	require.Len(t, p.Items, 1)
	require.Empty(t, m.reviews("rao"))
	require.Equal(t, before, receipts(token))
	require.Equal(t, 404, m.Ask("POST", "/api/owner/order-receipts/"+old.ID+"/revoke", `{}`, "Authorization", otherToken).Code)
	former := func(handle string, counts int) {
		t.Helper()
		require.Equal(t, counts, m.reputed(handle).Reviews)
		require.NoError(t, m.DB.Check(ctx))
		now := m.reviews(handle)
		for id, r := range list {
			want := r.Reason
			if r.Counts || want == protocol.ReceiptShop {
				want = protocol.FormerOwner
			}
			require.Equal(t, want, now[id].Reason)
		}
	}
	former("mehta", 0) // before anything more is read
	require.Empty(t, m.Told("review"))
	m.index()
	former("mehta", 0)
	require.Equal(t, protocol.FormerOwner, m.reviews("mehta")[last.TxHash.Hex()].Reason, "given before the sale and read after it")
	for _, listed := range []bool{false, true} {
		m.PutProfile(fmt.Appendf(nil, `{"handle":"mehta","name":"Mehta","kind":"business","listed":%t}`, listed))
	}
	require.Empty(t, m.Told("review"), "what was told names the seller")

	// Who has a receipt of the buyer's shop reviews it; one of the seller, or a payment to him, proves nothing here.
	made := map[string]protocol.ReviewReason{}
	give := func(account int, value int64, more string, why protocol.ReviewReason) {
		file := m.file(shop, account, value, more)
		made[m.give(shop, account, value, dataURI(file), erc8004.FeedbackHash(file)).TxHash.Hex()] = why
	}
	by := func(r protocol.OrderReceipt) string { return fmt.Sprintf(`,"orderReceipt":%q`, r.Receipt) }
	give(1, 40, by(old), protocol.ReceiptShop)
	give(1, 80, by(m.receipt(otherToken, "M-2", 1)), protocol.ByProvider)
	give(9, 90, payment, protocol.FormerOwner)
	a := m.Ask("POST", "/api/owner/order-receipts", fmt.Sprintf(`{"order":"R-9","client":%q,"total":{"currency":"INR","amount":"180"},"paidAt":%q}`,
		m.Chain.Accounts[1].Address, time.Now().UTC().Format(time.RFC3339)), "Authorization", token)
	require.Contains(t, a.Body.String(), `"agent":null`)
	m.Chain.Do("final")
	m.index()
	former("mehta", 1)
	for id, why := range made {
		require.Equal(t, why, m.reviews("mehta")[id].Reason)
	}
	require.Equal(t, []string{"review Mehta"}, m.Told("review"))
	m.startLate(shop, paid)

	maps.Copy(list, m.reviews("mehta"))
	enrol("rao", 6, 0)
	former("rao", 0)
	m.index()
	former("rao", 0)
	give(1, 100, by(old), protocol.ByProvider)
	m.Chain.Do("final")
	m.index()
	former("rao", 1)
}

// startLate starts a node after the sale: the buyer's profile there has none of the reviews that were paid to the seller.
func (m *market) startLate(shop erc8004.ID, paid []string) {
	h := nodetest.New(m.T, func(c *node.Config) {
		c.AllowPrivatePeers, c.Chain = true, m.Config.Chain
		if m.DB.Engine() == "postgres" {
			c.Database = storagetest.PostgresURL(m.T)
		}
	})
	h.Reputation.Pace, h.Reputation.Pauses = 0, nil
	there := &market{Stage: &nodetest.Stage{House: h, Chain: m.Chain}}
	h.Business("mehta-too", "")
	pair := nodetest.NewPair(m.T)
	m.Chain.Publish(6, 6, shop, pair)
	m.Chain.Do("final")
	require.NoError(m.T, h.Admin().EnrolIdentity(m.T.Context(), "mehta-too", shop.String(), pair.Thumbprint()))
	m.index(h)
	require.Equal(m.T, 0, there.reputed("mehta-too").Reviews)
	require.Len(m.T, paid, 2)
	for _, id := range paid {
		require.Equal(m.T, protocol.FormerOwner, there.reviews("mehta-too")[id].Reason, "they count as payments otherwise")
	}
	require.Empty(m.T, h.Told("review"))
}
