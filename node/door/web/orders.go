package web

import (
	"context"
	"net/url"
	"time"

	"stoa/protocol"
)

// The page of a shop's order receipts: to issue, list, copy and revoke them.

// orderInput converts the amount and the day of the form for a receipt: of today it is paid now, of
// another day at noon, universal time.
func orderInput(form url.Values, args map[string]any, now time.Time) {
	if amount := form.Get("amount"); amount != "" {
		args["total"] = map[string]any{"currency": protocol.Rupee, "amount": plainAmount(protocol.Rupee, amount)}
	}
	if t, err := time.Parse(time.DateOnly, form.Get("paidAt")); err == nil {
		paid := t.Add(12 * time.Hour)
		if paid.After(now) && !t.After(now.In(protocol.India)) {
			paid = now
		}
		args["paidAt"] = paid.UTC().Format(time.RFC3339)
	}
}

// receiptStatus is a line about a receipt.
func receiptStatus(ctx context.Context, r protocol.OrderReceipt) string {
	switch {
	case r.RevokedAt != nil:
		return tr(ctx, "revoked")
	case r.Reviewable:
		return tr(ctx, "the buyer can review it")
	case r.Client == nil:
		return tr(ctx, "no account: it cannot be reviewed")
	}
	return tr(ctx, "the shop has no identity: it cannot be reviewed")
}
