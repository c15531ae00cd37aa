package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"stoa/protocol"
)

func (s *Web) reviews(r *http.Request) (view, error) {
	f, err := s.form(r, protocol.ListReviews.Operation)
	if err != nil {
		return view{}, err
	}
	handle := r.PathValue("handle")
	f.args["handle"] = handle
	shop, err := read(s, r, protocol.GetMerchant, map[string]any{"handle": handle})
	if err != nil {
		return view{}, err
	}
	found, err := list(s, r, protocol.ListReviews, f)
	if err != nil {
		return view{}, err
	}
	path := "/@" + shop.Handle + "/reviews"
	next := f.next(path, found.Next)
	return view{
		Title: tr(r.Context(), "Reviews of %s", shop.Name), Description: tr(r.Context(),
			"Reviews of %s on a chain, with a receipt of the shop or a payment to it, and why each counts.", shop.Name),
		Next: next, Refused: f.err, Stray: f.otherFaults(), Data: found, Body: reviewsPage(f, shop, path, found.Items, next),
	}, nil
}

// starsWords is a rating in words, such as 4.5 of 5.
func starsWords(ctx context.Context, r protocol.Review) string {
	if r.Stars == nil {
		return tr(ctx, "no rating")
	}
	return tr(ctx, "%s of 5", strconv.FormatFloat(*r.Stars, 'f', 1, 64))
}

// reviewWhy is why a review counts, or not.
func reviewWhy(ctx context.Context, r protocol.Review) string {
	return cmp.Or(detail(ctx, r.Why), r.Why)
}

// reviewPaid is what was paid for the order of a review, as its proof says; "" when it does not count.
func reviewPaid(ctx context.Context, r protocol.Review) string {
	switch {
	case r.Order != nil:
		return tr(ctx, "%s, as the receipt of the business says", money(r.Order.Total.Currency, r.Order.Total.Amount))
	case r.Payment != nil && r.Payment.Token != nil:
		return tr(ctx, "%s of the token %s on the chain %s", r.Payment.Amount, *r.Payment.Token, r.Payment.Chain)
	case r.Payment != nil:
		return tr(ctx, "%s in the currency of the chain %s", r.Payment.Amount, r.Payment.Chain)
	}
	return ""
}
