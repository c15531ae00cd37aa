package protocol

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// What people write in forms and files is read here, into what operations take. The operations take their own formats only.

// FoldDigits replaces the decimal digits of every script by those of ASCII.
func FoldDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII || !unicode.Is(unicode.Nd, r) {
			return r
		}
		for _, x := range unicode.Nd.R16 { // each script has its ten digits in a row (Unicode §4.6)
			if rune(x.Lo) <= r && r <= rune(x.Hi) {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		for _, x := range unicode.Nd.R32 {
			if rune(x.Lo) <= r && r <= rune(x.Hi) {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		return r
	}, text)
}

// AmbiguousCode is the code of the fault of a text that can be read in two ways.
const AmbiguousCode = "ambiguous"

// maxWritten is the longest amount that is read, in bytes.
const maxWritten = 120

// currencySigns are what people write before or after an amount, in lower case, longer ones first.
var currencySigns = map[string][]string{
	Rupee: {"rupees", "rupee", "रुपये", "रुपए", "रुपया", "inr", "rs.", "रु.", "रू.", "₹", "rs", "रु", "रू"},
	"USD": {"usd", "us$", "$"}, "EUR": {"eur", "€"}, "GBP": {"gbp", "£"}, "JPY": {"jpy", "¥"},
}

var (
	plainForm   = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)
	groupedForm = regexp.MustCompile(`^(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,2}(?:,[0-9]{2})*,[0-9]{3})(?:\.[0-9]+)?$`) // of thousands, or of lakhs
	spaceForm   = regexp.MustCompile(`[ \x{a0}\x{2009}\x{202f},]+`)
	// A point before three digits is the decimal sign here, and groups thousands elsewhere; a comma before one or two is the reverse.
	pointForm = regexp.MustCompile(`^([1-9][0-9]{0,2})\.([0-9]{3})$`)
	commaForm = regexp.MustCompile(`^([0-9]{1,15}),([0-9]{1,2})$`)
)

// largeUnits are the words for a lakh and a crore after an amount of rupees, in lower case, with the zeros that they stand for. ड़ is two
// characters in most texts and one in others.
var largeUnits = []struct {
	zeros int
	words []string
}{
	{5, []string{"lakhs", "lakh", "lacs", "lac", "लाख"}},
	{7, []string{"crores", "crore", "करोड\u093c", "करो\u095c", "करोड", "cr.", "cr"}},
}

// ReadAmount reads an amount of a currency as people write it: with the currency's sign or code, digits of any script in groups
// of thousands or lakhs, and /- after it; rupees also in lakhs and crores, such as 1.5 lakh. The fault is relative to the money;
// its code is AmbiguousCode for what is one amount in India and another elsewhere, such as 1.500 and 1,5. Of a currency with three
// decimals 1.500 is no such amount. A blank text is a blank amount.
func ReadAmount(currency, text string) (Decimal, *Fault) {
	s := strings.ToLower(strings.TrimSpace(text))
	if s == "" {
		return "", nil
	}
	wrong := &Fault{"/amount", "wrong-shape", notDecimal}
	if len(s) > maxWritten {
		return "", wrong
	}
	s, zeros := withoutUnit(currency, withoutSigns(currency, FoldDigits(s)))
	s = spaceForm.ReplaceAllString(s, ",")
	switch m := pointForm.FindStringSubmatch(s); {
	case zeros > 0 && (plainForm.MatchString(s) || groupedForm.MatchString(s)):
		return times(strings.ReplaceAll(s, ",", ""), zeros), nil
	case zeros > 0:
		return "", wrong
	case m != nil && minorDigits(currency) < 3:
		return "", twoAmounts(s, m[1]+m[2], m[1]+"."+m[2][:2])
	case plainForm.MatchString(s):
		return Decimal(s), nil
	case groupedForm.MatchString(s):
		return Decimal(strings.ReplaceAll(s, ",", "")), nil
	}
	if m := commaForm.FindStringSubmatch(s); m != nil {
		return "", twoAmounts(s, m[1]+m[2], m[1]+"."+m[2])
	}
	return "", wrong
}

// withoutUnit returns an amount without the word of a large unit after it, and the zeros of that word, 0 for none.
func withoutUnit(currency, s string) (number string, zeros int) {
	for _, u := range largeUnits {
		for _, word := range u.words {
			if rest, ok := strings.CutSuffix(s, word); ok && currency == Rupee {
				return strings.TrimSpace(rest), u.zeros
			}
		}
	}
	return s, 0
}

// times moves the point of a number to the right.
func times(number string, zeros int) Decimal {
	whole, rest, _ := strings.Cut(number, ".")
	rest += strings.Repeat("0", max(0, zeros-len(rest)))
	whole = strings.TrimLeft(whole+rest[:zeros], "0")
	if whole == "" {
		whole = "0"
	}
	if rest = rest[zeros:]; rest != "" {
		whole += "." + rest
	}
	return Decimal(whole)
}

func twoAmounts(text, one, other string) *Fault {
	return &Fault{"/amount", AmbiguousCode, fmt.Sprintf("%s can be read as two amounts: write %s or %s", text, one, other)}
}

// withoutSigns returns an amount without the signs of its currency around it.
func withoutSigns(currency, s string) string {
	signs := currencySigns[currency]
	if signs == nil {
		signs = []string{strings.ToLower(currency)}
	}
	for _, sign := range signs {
		if rest, ok := strings.CutPrefix(s, sign); ok {
			s = strings.TrimSpace(rest)
			break
		}
	}
	for _, end := range []string{"/-", "/="} {
		s = strings.TrimSpace(strings.TrimSuffix(s, end))
	}
	for _, sign := range signs {
		if rest, ok := strings.CutSuffix(s, sign); ok {
			s = strings.TrimSpace(rest)
			break
		}
	}
	return s
}
