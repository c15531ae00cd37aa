package protocol

import (
	"strings"
)

// Dialling are the country code of a country and what is dialled before a number within it (ITU-T E.164, national numbering plans), for
// countries in which that is one digit or nothing. Numbers of other countries are taken with their country code only.
var dialling = map[string]struct{ code, trunk string }{
	"IN": {"91", "0"}, "BD": {"880", "0"}, "LK": {"94", "0"}, "NP": {"977", "0"}, "PK": {"92", "0"}, "AE": {"971", "0"}, "GB": {"44", "0"},
	"DE": {"49", "0"}, "FR": {"33", "0"}, "NL": {"31", "0"}, "AU": {"61", "0"}, "US": {"1", "1"}, "CA": {"1", "1"}, "SG": {"65", ""},
}

// ReadPhone reads a telephone number as people write it, with spaces, dashes, brackets and digits of any script. The number is that of
// E.164, such as +918055501234, when it has a country code or country, a code of ISO 3166-1, is known here; otherwise, and for short and
// toll-free numbers, it is as it is written. What is no number is returned for the operation to refuse.
func ReadPhone(country, text string) string {
	s := strings.TrimSpace(FoldDigits(text))
	digits, ok := phoneDigits(strings.Replace(s, "(0)", "", 1))
	if !ok {
		return s
	}
	d, known := dialling[country]
	switch {
	case strings.HasPrefix(digits, "+"):
		digits = digits[1:]
	case strings.HasPrefix(digits, "00"):
		digits = digits[2:]
	case !known, country == "IN" && (strings.HasPrefix(digits, "1800") || strings.HasPrefix(digits, "1860")):
		return s
	case country == "IN" && len(digits) == 12 && strings.HasPrefix(digits, d.code):
	default:
		if digits = strings.TrimPrefix(digits, d.trunk); len(digits) < 6 || country == "IN" && len(digits) != 10 {
			return s
		}
		digits = d.code + digits
	}
	if rest, ok := strings.CutPrefix(digits, "910"); ok && len(rest) == 10 { // the 0 is dialled within India only
		digits = "91" + rest
	}
	if len(digits) < 7 || len(digits) > 15 {
		return s
	}
	return "+" + digits
}

// phoneDigits returns the digits of a number, with a + before them if it has one; ok is false when it has other signs than people write
// in numbers.
func phoneDigits(s string) (digits string, ok bool) {
	var b strings.Builder
	for i, r := range strings.TrimPrefix(s, "tel:") {
		switch {
		case r >= '0' && r <= '9', r == '+' && i == 0:
			b.WriteRune(r)
		case !strings.ContainsRune(" -()./\u00a0\u2010\u2011\u2012\u2013\u2014", r):
			return "", false
		}
	}
	return b.String(), b.Len() > 0
}

// ShowPhone returns a number for people: one of India in two groups of five, others as they are.
func ShowPhone(number string) string {
	if rest, ok := strings.CutPrefix(number, "+91"); ok && len(rest) == 10 && onlyDigits(rest) {
		return "+91 " + rest[:5] + " " + rest[5:]
	}
	return number
}
