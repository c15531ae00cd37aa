package protocol

import (
	"net/mail"
	"strings"
)

// MaxMail is the longest mail address, in bytes (RFC 5321 §4.5.3.1.3).
const MaxMail = 254

// ParseMail parses a bare mail address and returns it in the form in which it is stored and
// compared: ASCII, lower case. Quoted local parts, comments, address literals and anything that
// could begin another header line are refused.
func ParseMail(s string) (string, error) {
	refused := Errorf(Validation, "this is not a mail address such as asha@example.org")
	if len(s) > MaxMail || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, r) }) {
		return "", refused
	}
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" {
		return "", refused
	}
	local, domain, _ := strings.Cut(s, "@")
	if len(local) > 64 || !strings.Contains(domain, ".") && domain != "localhost" {
		return "", refused
	}
	return strings.ToLower(s), nil
}
