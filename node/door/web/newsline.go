package web

import (
	"context"
	"slices"
	"strings"

	"stoa/node/door/web/words"
	"stoa/protocol"
)

// newsLine returns what a feed item says, in the reader's language. Rooms write it in English, with names and titles that people
// chose; a line in another form, as other nodes may send, is returned as it is.
func newsLine(ctx context.Context, item protocol.FeedItem) (line string) {
	if words.Of(ctx) == words.English() {
		return item.Summary
	}
	name, title := item.Actor.Name, item.Subject.Title
	said, ok := strings.CutPrefix(item.Summary, name+" ")
	switch item.Type {
	case protocol.FeedBoardPost:
		kind, rest, _ := strings.Cut(item.Summary, ": ")
		if rest == title && slices.Contains(protocol.PostKinds, protocol.PostKind(strings.ToLower(kind))) {
			line = word(ctx, strings.ToLower(kind)) + ": " + title
		}
	case protocol.FeedMerchantJoined:
		if headline, joined := strings.CutPrefix(said, "joined."); ok && joined {
			line = tr(ctx, "%s joined.", name) + headline
		}
	case protocol.FeedListing:
		if ok {
			line = listingLine(ctx, name, title, strings.TrimSuffix(said, "."))
		}
	case protocol.FeedReview:
		stars, with, found := strings.Cut(strings.TrimPrefix(said, "has a review of "), " of 5, ")
		switch {
		case ok && found && with == "with a receipt of the shop.":
			line = tr(ctx, "%s has a review of %s of 5, with a receipt of the shop.", name, stars)
		case ok && found && with == "from a paid order, by the payment provider's report.":
			line = tr(ctx, "%s has a review of %s of 5, from a paid order, by the payment provider's report.", name, stars)
		case ok && found && with == "from a paid order, as buyer and shop confirm.":
			line = tr(ctx, "%s has a review of %s of 5, from a paid order, as buyer and shop confirm.", name, stars)
		case ok && found:
			line = tr(ctx, "%s has a review of %s of 5, with a payment on the chain.", name, stars)
		}
	case protocol.FeedAttentionBid:
		sum, at, found := strings.Cut(strings.TrimPrefix(said, "bids "), " for the attention of ")
		if currency, number, paid := strings.Cut(sum, " "); ok && found && paid {
			line = tr(ctx, "%s bids %s for the attention of %s.", name, money(currency, number), strings.TrimSuffix(at, "."))
		}
	}
	if line == "" {
		return item.Summary
	}
	return line
}

// listingLine is newsLine of what a shop says of an item: that it is new, or costs less.
func listingLine(ctx context.Context, name, title, said string) string {
	if rest, ok := strings.CutPrefix(said, "lowered the price of "+title+" to "); ok {
		if now := strings.Fields(rest); len(now) == 4 && now[2] == "from" {
			return tr(ctx, "%s lowered the price of %s from %s to %s", name, title, money(now[0], now[3]), money(now[0], now[1]))
		}
	}
	rest, ok := strings.CutPrefix(said, "offers "+title)
	if !ok {
		return ""
	}
	if now := strings.Fields(strings.TrimPrefix(rest, ", ")); len(now) == 2 {
		return tr(ctx, "%s offers %s for %s", name, title, money(now[0], now[1]))
	}
	if rest != "" {
		return ""
	}
	return tr(ctx, "%s offers %s##feed", name, title)
}
