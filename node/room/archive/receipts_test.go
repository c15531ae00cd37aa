package archive

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// shop puts the business rao here, with a receipt for each claims, signed by pair.
func (h *home) shop(pair key.Pair, issued ...protocol.OrderReceiptClaims) {
	h.t.Helper()
	h.write(func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "rao", Name: "Rao", Kind: protocol.Business}})
		for _, c := range issued {
			raw, _ := json.Marshal(c)
			s := storage.StoredReceipt{ID: c.ID, Handle: "rao", Order: c.Order, Buyer: "C-7", Currency: c.Currency, Minor: 18000, PaidAt: time.Unix(c.PaidAt, 0),
				IssuedAt: time.Unix(c.IssuedAt, 0), ReceiptDoc: storage.ReceiptDoc{Lines: []protocol.OrderLine{{ID: "1",
					Item: protocol.OrderItem{ID: "t", Title: "Thali"}, Totals: []protocol.OrderTotal{}, Status: "processing"}}}}
			if err == nil {
				s.Token, err = pair.SignCompact(raw, protocol.OrderReceiptType)
			}
			if err == nil {
				err = tx.OrderReceipts().Insert(ctx, s, protocol.MaxOrderReceipts)
			}
		}
		return err
	})
}

// claims are those of a receipt that a node issued to rao for an order.
func claims(node, order string) protocol.OrderReceiptClaims {
	return protocol.OrderReceiptClaims{Issuer: node, Order: order, Shop: "rao", Client: "eip155:1:0x70997970c51812dc3a010c7d01b50e0d17dc79c8", Amount: "180.00",
		Currency: "INR", PaidAt: 1_790_000_000, IssuedAt: 1_790_000_100, ID: protocol.NewID(protocol.ReceiptID, time.Unix(1_790_000_100, 0))}
}

// receipts lists what rao has, newest first.
func (h *home) receipts() (all []storage.StoredReceipt) {
	h.t.Helper()
	require.NoError(h.t, h.DB.Read(h.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		for after := ""; ; {
			page, err := tx.OrderReceipts().List(ctx, "rao", "", 2, after)
			all = append(all, page.Items...)
			if err != nil || page.Next == nil {
				return err
			}
			after = *page.Next
		}
	}))
	return all
}

func orders(all []storage.StoredReceipt) (names []string) {
	for _, s := range all {
		names = append(names, s.Order)
	}
	return names
}

// TestRead_Receipts moves a shop's receipts to another node, back, and restores them after its profile was deleted.
func TestRead_Receipts(t *testing.T) {
	t.Parallel()
	one := newHome(t, "https://n1.example", nil)
	issued := []protocol.OrderReceiptClaims{claims(one.Base, "R-1"), claims(one.Base, "R-2"), claims(one.Base, "R-3")}
	one.shop(one.Signer, issued...)
	revoked := one.receipts()[1]
	at := time.Unix(1_790_000_200, 0).UTC()
	revoked.RevokedAt, revoked.Reason = &at, "typed wrongly"
	revoked.Adjustments = []protocol.Adjustment{{ID: "a", Type: "refund", OccurredAt: at, Status: "completed"}}
	one.write(func(ctx context.Context, tx *storage.Tx) error { return tx.OrderReceipts().Put(ctx, revoked) })
	raw, was := one.export("rao"), one.receipts()

	two := newHome(t, "https://n2.example", map[string]key.Set{one.Base: keysOf(one)})
	two.shop(two.Signer, claims(two.Base, "N-1"), claims(two.Base, "N-2"))
	for _, want := range []protocol.ImportCount{{New: 3}, {Same: 3}} {
		report := must.Get(two.imports(raw, Order{By: operator}))(t)
		require.Equal(t, want, report.Receipts, "%v", report.Notes)
	}
	got := two.receipts()
	require.Equal(t, []string{"N-2", "N-1", "R-3", "R-2", "R-1"}, orders(got))
	for i, s := range got[2:] {
		require.Equal(t, one.Base, s.Issuer)
		require.NotEqual(t, was[i].ID, s.ID, "no other node chooses an id of this one")
		require.Equal(t, protocol.ForeignReceiptID(one.Base, was[i].ID, s.PaidAt), s.ID)
		require.Equal(t, "C-7", s.Buyer)
		require.Equal(t, "Thali", s.Lines[0].Item.Title)
		require.Equal(t, was[i].RevokedAt, s.RevokedAt)
		require.Equal(t, was[i].Adjustments, s.Adjustments)
		require.EqualValues(t, 18000, s.Minor)
		_, _, err := keysOf(one).VerifyCompact(s.Token, protocol.OrderReceiptType, protocol.MaxReceiptToken, time.Now())
		require.NoError(t, err, "as verifiable as it was")
	}

	// Its own archive gives each node all of them back; of another node's receipts a third has only that node's word.
	back := two.export("rao")
	for _, h := range []*home{one, two} {
		h.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "rao") })
		require.Empty(t, h.receipts())
	}
	report := must.Get(one.imports(raw, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{New: 3}, report.Receipts)
	require.Equal(t, orders(was), orders(one.receipts()))
	require.Equal(t, was[1].ID, one.receipts()[1].ID)
	require.Empty(t, one.receipts()[1].Issuer)
	require.NotNil(t, one.receipts()[1].RevokedAt)
	report = must.Get(two.imports(back, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{New: 5}, report.Receipts, "%v", report.Notes)
	require.Equal(t, orders(got), orders(two.receipts()))
	three := newHome(t, "https://n3.example", map[string]key.Set{one.Base: keysOf(one), two.Base: keysOf(two)})
	report = must.Get(three.imports(back, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{New: 2, LeftOut: 3}, report.Receipts)
	report = must.Get(three.imports(raw, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{New: 3}, report.Receipts, "the archive of their node brings them")
}

// TestRead_ForgedReceipts: no archive makes a receipt that its issuer did not sign, revives one, or gives it
// another shop.
func TestRead_ForgedReceipts(t *testing.T) {
	t.Parallel()
	victim := newHome(t, "https://n1.example", nil)
	genuine := claims(victim.Base, "R-1")
	victim.shop(victim.Signer, genuine)
	here, evilBase := "https://here.example", "https://evil.example"
	other := claims(evilBase, "R-1")
	other.Shop = "mehta"
	for _, tt := range []struct {
		name   string
		claims protocol.OrderReceiptClaims
		signer *key.Pair // nil: the evil node
		left   string
	}{
		{"a receipt of another node, signed by the evil one", claims(victim.Base, "X"), nil, "did not issue them"},
		{"a genuine receipt of another node", genuine, &victim.Signer, "did not issue them"},
		{"a receipt of this node", claims(here, "X"), nil, "did not issue them"},
		{"of another shop", other, nil, "did not issue them"},
		{"its own", claims(evilBase, "R-1"), nil, ""},
	} {
		evil := newHome(t, evilBase, nil)
		signer := &evil.Signer
		if tt.signer != nil {
			signer = tt.signer
		}
		evil.shop(*signer, tt.claims)
		to := newHome(t, here, map[string]key.Set{evilBase: keysOf(evil), victim.Base: keysOf(victim)})
		report, err := to.imports(evil.export("rao"), Order{By: operator})
		require.NoError(t, err, tt.name)
		if tt.left == "" {
			require.Equal(t, protocol.ImportCount{New: 1}, report.Receipts, "%s: %v", tt.name, report.Notes)
			continue
		}
		require.Equal(t, protocol.ImportCount{LeftOut: 1}, report.Receipts, tt.name)
		require.Contains(t, strings.Join(report.Notes, "\n"), tt.left, tt.name)
		require.Empty(t, to.receipts(), tt.name)
	}

	// The node is gone: nothing without the operator's word for the archive, with it what its keys in the archive verify.
	to := newHome(t, here, nil)
	raw := victim.export("rao")
	report := must.Get(to.imports(raw, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{LeftOut: 1}, report.Receipts)
	report = must.Get(to.imports(raw, Order{By: operator, Vouch: true}))(t)
	require.Equal(t, protocol.ImportCount{New: 1}, report.Receipts, "%v", report.Notes)

	// Nobody can write one into an archive of this node, also with the operator's word: only its own key verifies them.
	evil := newHome(t, victim.Base, nil)
	evil.shop(evil.Signer, claims(victim.Base, "X"))
	for _, vouch := range []bool{false, true} {
		report = must.Get(victim.imports(evil.export("rao"), Order{By: operator, Vouch: vouch}))(t)
		require.Equal(t, protocol.ImportCount{LeftOut: 1}, report.Receipts)
	}

	// Claims that no receipt has are refused.
	for name, change := range map[string]func(*protocol.OrderReceiptClaims){
		"no amount":    func(c *protocol.OrderReceiptClaims) { c.Amount = "0" },
		"a long order": func(c *protocol.OrderReceiptClaims) { c.Order = strings.Repeat("x", 81) },
		"another id":   func(c *protocol.OrderReceiptClaims) { c.ID = "rcpt_1" }, "no client": func(c *protocol.OrderReceiptClaims) { c.Client = "<b>" },
		"paid later": func(c *protocol.OrderReceiptClaims) {
			c.PaidAt = c.IssuedAt + int64(protocol.PaidAhead/time.Second) + 1
		},
	} {
		evil := newHome(t, evilBase, nil)
		bad := claims(evilBase, "R-1")
		change(&bad)
		evil.shop(evil.Signer, bad)
		_, err := newHome(t, here, map[string]key.Set{evilBase: keysOf(evil)}).imports(evil.export("rao"), Order{By: operator})
		require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(err), name)
	}
}
