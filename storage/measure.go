package storage

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A measure is a number with its unit, in the unit of its kind: 5 kg, 5kg and 5,000 grams are one.

// formMeasure begins the token of a measure.
const formMeasure = "\ue005"

type unit struct {
	name  string
	times float64
}

var units = func() map[string]unit {
	all := map[string]unit{}
	for name, spelled := range map[string]string{
		"g 1": "g gm gms gr gram grams grm ग्राम", "g 1000": "kg kgs kilo kilos kilogram kilograms किलो किग्रा", "mg 1": "mg",
		"ml 1": "ml mls millilitre milliliter एमएल", "ml 1000": "l lt ltr ltrs litre litres liter liters लीटर",
		"mm 1": "mm", "mm 10": "cm cms", "mm 1000": "m mtr meter meters metre metres मीटर", "mm 25.4": "inch inches",
		"w 1": "w watt watts वाट", "v 1": "volt volts", "gb 1": "gb", "gb 1024": "tb", "mah 1": "mah",
		"pcs 1": "pc pcs piece pieces nos पीस", "pcs 12": "dozen दर्जन", "page 1": "page pages", "sheet 1": "sheet sheets",
	} {
		in, times, _ := strings.Cut(name, " ")
		n, _ := strconv.ParseFloat(times, 64)
		for s := range strings.FieldsSeq(spelled) {
			all[s] = unit{in, n}
		}
	}
	return all
}()

// longestUnit bounds the letters after a number that may be a unit, in bytes.
const longestUnit = 24

// measures finds the measures of a text; rest is the text without them.
func measures(s string, found func(token string)) (rest string) {
	if !strings.ContainsFunc(s, unicode.IsDigit) {
		return s
	}
	var out strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsDigit(r) || i > 0 && inWord(s[:i]) {
			i += size
			continue
		}
		value, end := numberAt(s, i)
		token, after := unitAt(s, end, value)
		if token == "" {
			i = end
			continue
		}
		found(token)
		out.WriteString(s[kept:i])
		out.WriteByte(' ')
		i, kept = after, after
	}
	out.WriteString(s[kept:])
	return out.String()
}

func inWord(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

// numberAt reads a decimal or a fraction, such as 1,000 or 1.5 or 1/2.
func numberAt(s string, i int) (value float64, end int) {
	var digits strings.Builder
	divisor := ""
	for end = i; end < len(s); {
		r, size := utf8.DecodeRuneInString(s[end:])
		next, _ := utf8.DecodeRuneInString(s[min(end+size, len(s)):])
		switch {
		case unicode.IsDigit(r):
			digits.WriteRune('0' + digit(r))
		case r == '.' && unicode.IsDigit(next) && !strings.Contains(digits.String(), "."):
			digits.WriteByte('.')
		case r == ',' && unicode.IsDigit(next):
		case r == '/' && unicode.IsDigit(next) && divisor == "":
			divisor = digits.String()
			digits.Reset()
		default:
			goto done
		}
		end += size
	}
done:
	value, _ = strconv.ParseFloat(digits.String(), 64)
	if divisor != "" {
		above, _ := strconv.ParseFloat(divisor, 64)
		value = above / max(value, 1)
	}
	return value, end
}

// unitAt reads the unit after a number; "" when there is none.
func unitAt(s string, at int, value float64) (token string, end int) {
	if end = at; end < len(s) && (s[end] == ' ' || s[end] == '-') {
		end++
	}
	from := end
	for end < len(s) && end-from <= longestUnit {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		end += size
	}
	if end == from || end < len(s) && s[end] >= '0' && s[end] <= '9' {
		return "", at
	}
	u, ok := units[strings.ToLower(s[from:end])]
	if value *= u.times; !ok || value <= 0 || value > 1e12 {
		return "", at
	}
	return formMeasure + strconv.FormatInt(int64(math.Round(value*10)), 10) + u.name, end
}
