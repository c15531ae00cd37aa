package protocol

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// vpaPattern is the form of a virtual payment address of UPI, such as asha@okbank.
const vpaPattern = `^[A-Za-z0-9._-]{2,256}@[A-Za-z][A-Za-z0-9]{1,63}$`

// utrPattern is the form of the bank's reference of a UPI payment (UTR, also called RRN).
const utrPattern = `^[0-9]{12}$`

var (
	vpaForm = regexp.MustCompile(vpaPattern)
	utrForm = regexp.MustCompile(utrPattern)
)

// IsVPA reports whether s has the form of a virtual payment address. Whether a bank knows it shows
// only when somebody pays.
func IsVPA(s string) bool { return vpaForm.MatchString(s) }

// IsUTR reports whether s has the form of a bank's reference, and is not one digit twelve times,
// which is what people type who have none.
func IsUTR(s string) bool {
	return utrForm.MatchString(s) && strings.Trim(s, s[:1]) != ""
}

// FoldUTR removes the white space that banks and people write into a reference.
func FoldUTR(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

var (
	groupedUTR = regexp.MustCompile(`[0-9]{4}(?:[ -][0-9]{4})+`)
	digitRun   = regexp.MustCompile(`[0-9]+`)
)

// FindUTR returns the reference in a text, such as the whole message of a bank, and how many different ones it has; utr is empty
// unless that is one. A reference is 12 digits in a row, or in groups of four. Telephone numbers with the code of India, and numbers of
// accounts of which a part is masked, are none when there is another.
func FindUTR(text string) (utr string, found int) {
	text = FoldDigits(text)
	if whole := FoldUTR(text); utrForm.MatchString(whole) {
		return whole, 1
	}
	text = groupedUTR.ReplaceAllStringFunc(text, func(group string) string {
		if joined := strings.NewReplacer(" ", "", "-", "").Replace(group); len(joined) == 12 {
			return joined
		}
		return group
	})
	var sure, others []string
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, at := range digitRun.FindAllStringIndex(text, -1) {
		run, before, after := text[at[0]:at[1]], text[:at[0]], text[at[1]:]
		switch {
		case len(run) != 12 || fraction(after):
		case run[:2] == "91" && run[2] >= '6', strings.HasSuffix(before, "+"), strings.HasSuffix(before, "*"),
			len(before) > 1 && strings.EqualFold(before[len(before)-2:], "xx"):
			others = add(others, run)
		default:
			sure = add(sure, run)
		}
	}
	if len(sure) == 0 {
		sure = others
	}
	if len(sure) != 1 {
		return "", len(sure)
	}
	return sure[0], 1
}

// fraction reports whether a text begins with the decimals of an amount.
func fraction(s string) bool { return len(s) > 1 && s[0] == '.' && s[1] >= '0' && s[1] <= '9' }
