package protocol

import (
	"net"
	"net/mail"
	"net/netip"
	"strings"

	"stoa/protocol/netx"
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

// PublicMail parses the mail address that a stranger gives. fault says why it is refused, "" when it is
// not: no address, one of this machine or of a private network, one written as numbers, or one at the
// node's own host, so that nobody has the node write to its own users. With private, for development,
// addresses at localhost are taken.
func PublicMail(s, host string, private bool) (address, fault string) {
	address, err := ParseMail(s)
	if err != nil {
		return "", "must be a mail address such as ravi@example.org"
	}
	_, domain, _ := strings.Cut(address, "@")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, numbers := netip.ParseAddr(domain)
	switch {
	case private && domain == "localhost":
	case numbers == nil || netx.HostFault(domain) != "":
		return "", "must be a mail address that can be reached from the public Internet"
	case domain == strings.ToLower(host):
		return "", "must be a mail address elsewhere than at this node"
	}
	return address, ""
}
