package pay

import (
	"strconv"
	"strings"
)

// MaxRef is the longest reference that every provider takes.
const MaxRef = 40

// Ref returns the reference of the n-th attempt, from 1, to make a link for a bid: <bid>-<n>. A
// provider takes each reference once, so an attempt after a closed link needs another one.
func Ref(bid string, n int) string { return bid + "-" + strconv.Itoa(n) }

// ParseRef returns the bid and the number of the attempt that a reference was made for.
func ParseRef(ref string) (bid string, n int, ok bool) {
	at := strings.LastIndexByte(ref, '-')
	if at < 1 || len(ref) > MaxRef {
		return "", 0, false
	}
	n, err := strconv.Atoi(ref[at+1:])
	if err != nil || n < 1 || Ref(ref[:at], n) != ref { // +1 and 01 are other spellings
		return "", 0, false
	}
	return ref[:at], n, true
}

func validRef(s string) bool {
	if s == "" || len(s) > MaxRef {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// alnum reports whether c is an ASCII letter or digit.
func alnum(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// Plain returns the ASCII letters and digits of s in upper case, for fields that take no others.
func Plain(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if alnum(s[i]) {
			b.WriteByte(s[i])
		}
	}
	return strings.ToUpper(b.String())
}
