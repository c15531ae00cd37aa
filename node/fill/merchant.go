package fill

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"stoa/protocol"
)

var (
	// Cities in the order of how often they occur.
	Cities = strings.Fields("Bengaluru Mumbai Delhi Chennai Jaipur Kolkata Kochi Pune Hyderabad Berlin Tokyo Kathmandu Singapore Paris")
	days   = strings.Fields("monday tuesday wednesday thursday friday saturday sunday")
)

// merchant is the record of a business: what it sells, where, and when. One in
// fifty is open at night.
func (w *writer) merchant(r *rand.Rand, n int) protocol.MerchantDraft {
	m := protocol.MerchantDraft{Category: trades[n/3%len(trades)], City: Cities[min(int(r.ExpFloat64()*3), len(Cities)-1)]}
	opens, closes := fmt.Sprintf("%02d:%02d", 6+r.IntN(5), 15*r.IntN(4)), fmt.Sprintf("%02d:%02d", 17+r.IntN(6), 15*r.IntN(4))
	if r.IntN(50) == 0 {
		opens, closes = "21:00", "04:30"
	}
	for _, day := range days[:5+r.IntN(3)] {
		m.Hours = append(m.Hours, protocol.DayHours{Day: day, Opens: opens, Closes: closes})
	}
	for i := range 1 + r.IntN(8) {
		m.Items = append(m.Items, protocol.ItemDraft{SKU: fmt.Sprintf("item-%d", i+1), Name: w.line(r, 2, 4), Description: w.text(r, 5, 20), Tags: w.some(r, 2),
			Price: &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(fmt.Sprintf("%d.%02d", 10+r.IntN(5000), r.IntN(100)))}})
	}
	return m
}
