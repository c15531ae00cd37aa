package web

import (
	"strings"

	"stoa/protocol"
)

var boardTable = &formTable{op: protocol.PutAttentionBoard.Operation, controls: []control{
	box("rules", "Rules for bidders"), line("floor", "Least bid, in rupees, such as 500 or 1,500"),
	line("slots", "Bids that are live at once"), line("slotDays", "Days that a bid is live"),
	group("What the board does", tickBox("accepting", "Takes bids now"), tickBox("autoApprove", "Shows the text of a paid bid at once")),
	fold("Categories, step and highest bid",
		spelled(box("categories", "Categories, one per line; with a floor above the board's, such as Yarn: 1500").upTo(1200), categoryText, typedCategories),
		line("step", "Step by which a bid must exceed the one that it displaces, in rupees"), line("maxBid", "Highest bid, in rupees")),
	fold("Displaced bids, answers in time and reported payments",
		line("protectHours", "Hours for which a live bid cannot be displaced"),
		line("fullRefundHours", "Hours within which a displaced bid gets everything back"),
		line("respondWithinDays", "Days within which you answer; empty for no promise"),
		tickBox("refundIfNoReply", "Refunds everything if you do not answer in time"),
		line("claimHours", "Hours for which a reported payment waits for you")),
}}

// boardFields is the table of a board, whose step and highest bid follow from its floor when the owner leaves them out.
func boardFields(b protocol.OwnAttentionBoard) *formTable {
	t, _ := protocol.AttentionDraft{Floor: protocol.Decimal(b.Floor.Amount)}.Terms()
	usual := func(minor int64) func(control) control {
		return func(c control) control { return c.usually(protocol.MoneyOf(protocol.Rupee, minor).Amount) }
	}
	return boardTable.change("step", usual(t.Step)).change("maxBid", usual(t.MaxBid))
}

var payTable = &formTable{op: protocol.PutPaymentAccount.Operation, controls: []control{
	choose("provider", "Provider", nil), line("vpa", "UPI: your UPI address, such as asha@okbank").with("autocomplete", "off"),
	line("payeeName", "Name that payers see"),
	fold("Razorpay", line("keyId", "Key id").with("autocomplete", "off"),
		line("keySecret", "Key secret").hiddenText().with("autocomplete", "new-password"),
		spelled(line("webhookSecrets", "Webhook secrets, the newest first, separated by spaces").hiddenText().with("autocomplete", "new-password").upTo(820),
			func([]string) string { return "" }, func(text string) any { return strings.Fields(text) })),
	fold("For receipts", line("legalName", "Legal name"), box("address", "Address"), line("gstin", "GSTIN"),
		line("gstPercent", "GST that your prices include, in percent; empty for none")),
}}

// typedCategories reads categories, one a line, each with its floor after a colon if it has one.
func typedCategories(text string) any {
	var list []map[string]any
	for line := range strings.SplitSeq(text, "\n") {
		name, floor, _ := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		c := map[string]any{"name": name}
		if floor = plainAmount(protocol.Rupee, floor); floor != "" {
			c["floor"] = floor
		}
		list = append(list, c)
	}
	return list
}

func categoryText(list []protocol.CategoryPrice) string {
	lines := make([]string, len(list))
	for i, c := range list {
		lines[i] = c.Name + ": " + c.Floor.Amount
	}
	return strings.Join(lines, "\n")
}
