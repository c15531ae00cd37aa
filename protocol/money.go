package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in answers: a decimal string, so that no reader loses a digit (contract §1).
// It is stored as integer minor units.
type Money struct {
	Currency string `json:"currency" shape:"currency" example:"INR"`
	Amount   string `json:"amount" shape:"decimal" maxLength:"20" example:"1500.00"`
}

// MoneyDraft is an amount in inputs: a decimal string or a JSON number.
type MoneyDraft struct {
	Currency string  `json:"currency" shape:"currency" example:"INR" doc:"ISO 4217."`
	Amount   Decimal `json:"amount" decimal:"true" doc:"Such as 120.50, as text or a number."`
}

// A Decimal is the digits of an amount as they are in a JSON string or number.
type Decimal string

// UnmarshalJSON accepts a JSON string or number.
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(d))
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	*d = Decimal(n)
	return nil
}

// Rupee is the currency of bids (spec §2.12).
const Rupee = "INR"

// Paise returns an amount of rupees in paise, by arithmetic on its digits. The fault is relative to
// the object that has the amount as its member amount.
func (d Decimal) Paise() (int64, *Fault) { return MoneyDraft{Rupee, d}.Minor() }

// FormatRupees returns an amount for people: a sign when it is negative, lakh grouping, and two
// decimals unless it is whole rupees, such as ₹1,00,000 or ₹1,500.50.
func FormatRupees(paise int64) string {
	sign, abs := "", uint64(paise)
	if paise < 0 {
		sign, abs = "-", -abs
	}
	rupees := strconv.FormatUint(abs/100, 10)
	for i := len(rupees) - 3; i > 0; i -= 2 { // one group of three, then groups of two
		rupees = rupees[:i] + "," + rupees[i:]
	}
	if rest := abs % 100; rest != 0 {
		rupees += fmt.Sprintf(".%02d", rest)
	}
	return sign + "₹" + rupees
}

// MaxMinor bounds an amount in minor units: ten thousand million rupees.
const MaxMinor = 1_000_000_000_000

// minorDigits returns how many decimals a currency has (ISO 4217).
func minorDigits(currency string) int {
	switch currency {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	}
	return 2
}

const (
	unknownCurrency = "not a currency of ISO 4217 such as INR"
	notDecimal      = "is not a decimal amount such as 120.50"
)

// Minor returns the amount in minor units. The error is a fault of one member, relative to the
// money.
func (m MoneyDraft) Minor() (int64, *Fault) {
	if !IsCurrency(m.Currency) {
		return 0, &Fault{"/currency", "unknown-currency", unknownCurrency}
	}
	digits := minorDigits(m.Currency)
	whole, fraction, point := strings.Cut(string(m.Amount), ".")
	bad := whole == "" || point && fraction == "" || len(whole) > 15 || !onlyDigits(whole) || !onlyDigits(fraction)
	if bad {
		return 0, &Fault{"/amount", "wrong-shape", notDecimal}
	}
	if len(strings.TrimRight(fraction, "0")) > digits {
		return 0, &Fault{"/amount", "wrong-shape", fmt.Sprintf("%s has at most %d decimals", m.Currency, digits)}
	}
	fraction = (strings.TrimRight(fraction, "0") + "0000")[:digits]
	minor, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil || minor > MaxMinor {
		return 0, &Fault{"/amount", "out-of-range", "at most " + MoneyOf(m.Currency, MaxMinor).Amount}
	}
	return minor, nil
}

// MoneyOf returns an amount of minor units, which must not be negative.
func MoneyOf(currency string, minor int64) Money {
	digits := minorDigits(currency)
	s := fmt.Sprintf("%0*d", digits+1, minor)
	if digits > 0 {
		s = s[:len(s)-digits] + "." + s[len(s)-digits:]
	}
	return Money{currency, s}
}

func onlyDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
