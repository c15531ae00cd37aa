package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// TestRead_Orders moves a shop with orders in each state to another node: the archive has who bought and what was paid, and nothing that opens
// an order; the other node takes the terms, closed, no payment account and no order, and says so.
func TestRead_Orders(t *testing.T) {
	t.Parallel()
	one := newHome(t, "https://n1.example", nil)
	one.Buyer = func(x *storage.StoredOrder) (protocol.OrderBuyer, error) {
		return protocol.OrderBuyer{Name: string(x.Sealed), Mail: "meera@example.org"}, nil
	}
	one.shop(one.Signer)
	token := protocol.SecretHash("stoa_read_1")
	one.write(func(ctx context.Context, tx *storage.Tx) error {
		account := &storage.PaymentAccount{Handle: "rao", Provider: protocol.PayUPI, PaymentAccountDoc: storage.PaymentAccountDoc{VPA: "rao@okbank"}}
		require.NoError(t, tx.PaymentAccounts().Put(ctx, account))
		till := &storage.Till{Handle: "rao", Open: true, Terms: protocol.TillDraft{Open: true, Pickup: true, Note: "Ring twice."}}
		require.NoError(t, tx.Tills().Put(ctx, till))
		states := []protocol.OrderState{protocol.OrderAwaiting, protocol.OrderPaid, protocol.OrderFulfilled, protocol.OrderCanceled, protocol.OrderIsRefunded}
		for n, state := range states {
			x := &storage.StoredOrder{ID: protocol.NewID(protocol.OrderID, tx.Now), Till: till.ID, State: state, Paise: 80_00, Buyer: "net:192.0.2.0/24",
				Paid: state != protocol.OrderAwaiting, Account: account.ID, TokenHash: token, MadeAt: tx.Now, MovedAt: tx.Now, Moves: 1, Sealed: []byte("Meera"),
				OrderDoc: storage.OrderDoc{Handle: "rao", Shop: "Rao", Way: protocol.ByPickup, Pay: protocol.PayNow, Link: storage.PayLink{URL: "https://pay.example/l/1"},
					Lines: []protocol.OrderLine{{ID: "1", Item: protocol.OrderItem{ID: "v", Title: "Thali", Price: 80_00},
						Totals: []protocol.OrderTotal{}, Status: "processing"}},
					Totals: []protocol.OrderTotal{{Type: "total", Amount: 80_00}}, Events: []protocol.OrderEvent{{What: "made", At: tx.Now}}}}
			x.TokenHash[0] += byte(n)
			require.NoError(t, tx.Orders().Insert(ctx, x))
			if x.Paid {
				require.NoError(t, tx.Payments().Insert(ctx, &storage.StoredPayment{Book: till.ID, Subject: x.ID, Account: account.ID, Provider: protocol.PayUPI,
					Payee: "rao@okbank", PaymentID: "utr:" + x.ID, Paise: 80_00, PaidAt: tx.Now}))
			}
		}
		return nil
	})
	raw := one.export("rao")
	all := string(must.Get(io.ReadAll(must.Get(gzip.NewReader(bytes.NewReader(raw)))(t)))(t))
	require.Contains(t, all, "2 of the orders in orders.ndjson are not over")
	require.Equal(t, 5, strings.Count(all, `"buyer":{"name":"Meera","mail":"meera@example.org"}`))
	for _, hidden := range []string{hex.EncodeToString(token[1:]), "pay.example", "192.0.2.0"} {
		require.NotContains(t, all, hidden)
	}

	two := newHome(t, "https://n2.example", map[string]key.Set{one.Base: keysOf(one)})
	for range 2 {
		report := must.Get(two.imports(raw, Order{By: operator}))(t)
		require.Equal(t, protocol.ImportCount{LeftOut: 5}, report.Orders)
		require.Contains(t, strings.Join(report.Notes, "\n"), "orders that are not over were left out too: go on with them on n1.example")
	}
	two.write(func(ctx context.Context, tx *storage.Tx) error {
		till := must.Get(tx.Tills().ByHandle(ctx, "rao"))(t)
		require.False(t, till.Open)
		require.Equal(t, protocol.TillDraft{Owned: protocol.Owned{Handle: "rao"}, Pickup: true, Note: "Ring twice."}, till.Terms)
		require.Empty(t, must.Get(tx.PaymentAccounts().OfProfile(ctx, "rao"))(t), "a file does not say where money goes")
		return nil
	})
	report := must.Get(one.imports(raw, Order{By: operator}))(t)
	require.Equal(t, protocol.ImportCount{Same: 5}, report.Orders)
	report = must.Get(two.imports(raw, Order{By: operator, Vouch: true}))(t)
	require.Contains(t, strings.Join(report.Notes, "\n"), "₹80 was paid for it and not sent back")
}

// TestRead_OrderForm: an order that is not of the form is refused, and so is one of a person.
func TestRead_OrderForm(t *testing.T) {
	t.Parallel()
	h := newHome(t, "https://n2.example", nil)
	business := strings.Replace(personFile, `"person"`, `"business"`, 1)
	good := `{"id":"` + protocol.NewID(protocol.OrderID, time.Now()) + `","state":"paid","claimed":false,"paise":1,"test":false,"lines":[],"totals":[],` +
		`"way":"pickup","pay":"now","buyer":{"name":"Meera","mail":"meera@example.org"},"madeAt":"2026-01-01T00:00:00Z","events":[],"payments":[],"refunds":[]}`
	rooms := `{"orders":{"draft":{"pickup":true},"updatedAt":"2026-01-01T00:00:00Z"}}`
	for name, tt := range map[string]struct {
		profile, old, with, rooms string
		good                      bool
	}{
		"good":               {profile: business, good: true},
		"with terms":         {profile: business, rooms: rooms, good: true},
		"another state":      {profile: business, old: `"paid"`, with: `"gone"`},
		"no money":           {profile: business, old: `"paise":1`, with: `"paise":0`},
		"an unknown member":  {profile: business, old: `"test"`, with: `"token":"x","test"`},
		"terms of a person":  {profile: personFile, rooms: rooms},
		"terms of another":   {profile: business, rooms: strings.Replace(rooms, `"pickup"`, `"handle":"ravi","pickup"`, 1)},
		"meetings of a shop": {profile: business, rooms: `{"meetings":{"open":true,"rules":{"policy":"x"},"updatedAt":"2026-01-01T00:00:00Z"}}`},
	} {
		parts := []part{{name: profileFile, body: tt.profile}}
		if tt.rooms != "" {
			parts = append(parts, part{name: roomsFile, body: tt.rooms})
		}
		body := good
		if tt.old != "" {
			body = strings.Replace(body, tt.old, tt.with, 1)
		}
		parts = append(parts, part{name: ordersFile, body: body + "\n"})
		_, err := h.imports(packed(t, parts, nil), Order{By: operator, ImportRequest: protocol.ImportRequest{DryRun: true}})
		if tt.good {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(err), "%s: %v", name, err)
		}
	}
}
