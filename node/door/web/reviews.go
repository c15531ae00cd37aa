package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

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
			"Reviews of %s from paid orders, and why each counts.", shop.Name),
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

// reviewVia says where a review was given.
func reviewVia(ctx context.Context, r protocol.Review) string {
	if r.Via == "node" {
		return tr(ctx, "here, on the page of the order; signed by this node")
	}
	return tr(ctx, "on the blockchain")
}

// reviewCounts marks a review that counts, and one that does not.
func reviewCounts(r protocol.Review) templ.Component {
	if r.Counts {
		return worded("good", "counts")
	}
	return worded("poor", "does not count")
}

// reviewWhy is why a review counts, or not.
func reviewWhy(ctx context.Context, r protocol.Review) string {
	return cmp.Or(detail(ctx, r.Why), r.Why)
}

// reviewPaid is what was paid for the order of a review, as its proof says; "" when it does not count.
func reviewPaid(ctx context.Context, r protocol.Review) string {
	switch {
	case r.Order != nil && r.Order.Left != r.Order.Total && r.Order.Left.Currency != "":
		return tr(ctx, "%s, of which %s are left after refunds", money(r.Order.Total.Currency, r.Order.Total.Amount),
			money(r.Order.Left.Currency, r.Order.Left.Amount))
	case r.Order != nil:
		return money(r.Order.Total.Currency, r.Order.Total.Amount)
	case r.Payment != nil && r.Payment.Token != nil:
		return tr(ctx, "%s of the token %s on the chain %s", r.Payment.Amount, *r.Payment.Token, r.Payment.Chain)
	case r.Payment != nil:
		return tr(ctx, "%s in the currency of the chain %s", r.Payment.Amount, r.Payment.Chain)
	}
	return ""
}
