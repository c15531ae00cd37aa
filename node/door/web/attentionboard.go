package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"stoa/protocol"
)

func (s *Web) attentionBoard(r *http.Request) (view, error) {
	if err := bare(r); err != nil {
		return view{}, err
	}
	b, err := read(s, r, protocol.ReadAttentionBoard, map[string]any{"handle": r.PathValue("handle")})
	if err != nil {
		return view{}, err
	}
	return view{
		Title: tr(r.Context(), "Attention of %s", b.Name), Description: tr(r.Context(),
			"Rules, live bids and the price of a slot on the attention board of %s.", b.Name),
		Data: b, Body: attentionBoardPage(b, nil),
	}, nil
}

func priceWords(ctx context.Context, b protocol.AttentionBoard) string {
	switch {
	case !b.Accepting:
		return tr(ctx, "This board takes no bids now.")
	case b.Basis == protocol.BasisFree:
		return tr(ctx, "or more gets a free slot now.")
	case b.Basis == protocol.BasisDisplace:
		return tr(ctx, "or more gets a slot now: it takes the place of the lowest live bid.")
	}
	return tr(ctx, "No slot can be had now.")
}

func payWords(ctx context.Context, b protocol.AttentionBoard) string {
	switch {
	case b.Paid == nil:
		return tr(ctx, "the owner has no payment account now")
	case *b.Paid == string(protocol.PaySandbox):
		return tr(ctx, "TEST: no money moves")
	}
	return tr(ctx, "by %s, to the owner directly", payName(*b.Paid))
}

func outbidWords(ctx context.Context, b protocol.AttentionBoard) string {
	text := tr(ctx, "by at least %s more", rupees(b.Step))
	if b.ProtectHours > 0 {
		text = tr(ctx, "by at least %s more, after %s", rupees(b.Step), tr(ctx, "%d hours", b.ProtectHours))
	}
	text += "; " + tr(ctx, "the unused part of the time is refunded")
	if b.FullRefundHours > 0 {
		text += "; " + tr(ctx, "within %s everything", tr(ctx, "%d hours", b.FullRefundHours))
	}
	return text
}

func answerWords(ctx context.Context, b protocol.AttentionBoard) string {
	if days := tr(ctx, "%d days", *b.RespondWithinDays); b.RefundIfNoReply {
		return tr(ctx, "within %s, or everything is refunded", days)
	} else {
		return tr(ctx, "within %s", days)
	}
}

// rupees returns an amount of rupees with lakh grouping.
func rupees(m protocol.Money) string {
	paise, fault := protocol.Decimal(m.Amount).Paise()
	if fault != nil {
		return strings.TrimSpace(m.Currency + " " + m.Amount)
	}
	return protocol.FormatRupees(paise)
}

// left returns a duration in words, rounded up to minutes.
func left(ctx context.Context, d time.Duration) string {
	return tr(ctx, "%d minutes", max(1, int((d+time.Minute-1)/time.Minute)))
}
