package reputation

import (
	"fmt"
	"strings"

	"stoa/protocol"
)

// Floors are the least totals of orders whose reviews count, in minor units by currency. There is no rate of
// exchange here: an order in a currency without a floor is worth nothing that the node could tell, and does not
// count. Payments on a chain have no floor: what a token is worth, readers judge by the amount that is shown.
type Floors map[string]int64

// DefaultFloors is the setting review-floor where none is given.
var DefaultFloors = []string{"INR=50"}

// ParseFloors reads settings such as INR=50; none is [DefaultFloors].
func ParseFloors(settings []string) (Floors, error) {
	if len(settings) == 0 {
		settings = DefaultFloors
	}
	all := Floors{}
	for _, s := range settings {
		currency, amount, _ := strings.Cut(s, "=")
		minor, fault := protocol.MoneyDraft{Currency: currency, Amount: protocol.Decimal(amount)}.Minor()
		if fault != nil {
			return nil, fmt.Errorf("%q is not a currency and an amount such as INR=50: %s", s, fault.Detail)
		}
		all[currency] = minor
	}
	return all, nil
}

// against returns why an order is too small, "" for one that is not.
func (fs Floors) against(total protocol.Money) protocol.ReviewReason {
	floor, ok := fs[total.Currency]
	if !ok {
		return protocol.OrderCurrency
	}
	minor, fault := protocol.MoneyDraft{Currency: total.Currency, Amount: protocol.Decimal(total.Amount)}.Minor()
	if fault != nil || minor < floor {
		return protocol.OrderTooSmall
	}
	return ""
}
