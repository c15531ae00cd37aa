package strictjson

import (
	"strconv"
	"strings"
)

// Whole returns a document that passed Check with every whole number written only in digits: 20.0
// and 2e1 become 20. For JSON Schema they are integers (draft 2020-12, validation §6.1.1), for a
// Go decoder of integers they are not. Other numbers, and those of more than 16 digits, are
// unchanged. A document without any is returned as it is.
func Whole(raw []byte) []byte {
	var out []byte // nil until something was changed
	copied := 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i < len(raw) && strings.IndexByte("+-.0123456789Ee", raw[i]) >= 0 {
				i++
			}
			if n, ok := digitsOf(string(raw[start:i])); ok {
				out = append(append(out, raw[copied:start]...), n...)
				copied = i
			}
		default:
			i++
		}
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}

// digitsOf returns a whole number with a fraction or an exponent without them.
func digitsOf(number string) (string, bool) {
	if !strings.ContainsAny(number, ".eE") {
		return "", false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(exponent)
	if err != nil && exponent != "" {
		return "", false // an exponent that no machine holds
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n -= len(fraction)
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	short := strings.TrimRight(digits, "0")
	n += len(digits) - len(short)
	if n < 0 || n > 16-len(short) {
		return "", false
	}
	return sign + short + strings.Repeat("0", n), true
}
