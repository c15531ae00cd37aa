package storage_test

import (
	"context"
	"errors"
	"testing"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// skewOrders fills a database with the receipts of a shop that has as many as are kept, and of many
// others.
func skewOrders(t *testing.T, fill func(full int, insert string, args ...any)) {
	t.Helper()
	const insert = `INSERT INTO order_receipt (id, handle, n, order_id, agent, client, buyer, currency, minor, paid_at, issued_at, reason, token, doc)
		WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	const rest = `'R-' || CAST(n AS TEXT), 'eip155:1:0x1:1', '', '', 'INR', 18000, 1, 1, '', 'x', '{}' FROM series`
	fill(protocol.MaxOrderReceipts, insert+`SELECT 'rcpt_a' || CAST(n AS TEXT), 'sells', n, `+rest)
	fill(200_000, insert+`SELECT 'rcpt_b' || CAST(n AS TEXT), 'h' || CAST(n AS TEXT), 1, `+rest)
}

// grownOrders are the statements of a receipt.
func grownOrders(ctx context.Context, tx *storage.Tx) []call {
	return []call{
		{"receipts of a shop", looks, func() error {
			all, err := tx.OrderReceipts().List(ctx, "sells", "", 20, "")
			one, e := tx.OrderReceipts().List(ctx, "sells", "R-7", 20, "")
			return found(len(all.Items)*len(one.Items), errors.Join(err, e))
		}},
		{"receipt by its id", looks, func() error { return must.Err(tx.OrderReceipts().ByID(ctx, "rcpt_a7")) }},
		{"issue a receipt", undone, func() error {
			r := storage.StoredReceipt{ID: "rcpt_x", Handle: "sells", Order: "new", Currency: "INR", Minor: 1, PaidAt: start, IssuedAt: start, Token: "x"}
			return tx.OrderReceipts().Insert(ctx, r, protocol.MaxOrderReceipts)
		}},
		{"revoke a receipt", undone, func() error {
			return tx.OrderReceipts().Put(ctx, storage.StoredReceipt{ID: "rcpt_a7", RevokedAt: &start})
		}},
	}
}
