package fill

import (
	"fmt"
	"math/rand/v2"

	"stoa/protocol"
)

// Categories and Cities are those of merchants, in the order of how often they
// occur.
var (
	Categories = []string{"restaurant", "grocery", "paper", "textiles", "repair", "books", "pharmacy", "printing", "furniture", "music", "nursery", "observatory"}
	Cities     = []string{"Bengaluru", "Mumbai", "Delhi", "Chennai", "Jaipur", "Kolkata", "Pune", "Kochi", "Berlin", "Mysuru", "Pondicherry", "Leh"}
)

var days = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// merchant is the record of a business: where it is, when it is open, what it
// sells.
func (w *writer) merchant(n int) *protocol.MerchantDraft {
	r := w.of(3, n)
	d := &protocol.MerchantDraft{
		Category: often(r, Categories), City: often(r, Cities), Phone: "+91 80 5550 0100",
	}
	if r.IntN(10) > 0 {
		opens, closes := fmt.Sprintf("%02d:00", 7+r.IntN(4)), fmt.Sprintf("%02d:30", 17+r.IntN(6))
		if r.IntN(10) == 0 { // past midnight
			opens, closes = "19:00", "03:00"
		}
		for _, day := range days[:6+r.IntN(2)] {
			d.Hours = append(d.Hours, protocol.DayHours{Day: day, Opens: opens, Closes: closes})
		}
	}
	for i := range r.IntN(5) {
		d.Items = append(d.Items, protocol.ItemDraft{SKU: fmt.Sprintf("s%d", i+1), Name: w.drawSentence(r, names), Category: d.Category,
			Price: &protocol.MoneyDraft{Currency: "INR", Amount: protocol.Decimal(fmt.Sprintf("%d.%02d", 10+r.IntN(5000), r.IntN(100)))}})
	}
	return d
}

// often draws one of a list whose first is the most frequent.
func often(r *rand.Rand, list []string) string {
	return list[min(int(r.ExpFloat64()*float64(len(list))/5), len(list)-1)]
}
