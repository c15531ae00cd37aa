package protocol

import (
	"regexp"
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
