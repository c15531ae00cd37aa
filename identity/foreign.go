package identity

import (
	"net/http"
	"strings"

	"stoa/protocol"
)

// Clients of other schemes send credentials that this node does not read. A refusal names what it saw, so that their authors do not look for a
// fault in their own code.

// foreignHeaders are the fields of other schemes.
var foreignHeaders = []struct{ field, name string }{
	{"X-Siwa-Receipt", "a receipt of SIWA (X-SIWA-Receipt) without the signature that covers it (ERC-8128)"},
	{"Dpop", "a proof of possession (DPoP, RFC 9449)"},
	{"Signature-Key", "a key (Signature-Key) without a signature that covers it"},
	{"Erc-8128-Delegation", "a delegation (ERC-8395)"},
	{"X-Signature", "a signature in X-Signature"},
	{"X-Ethereum-Signature", "a signature in X-Ethereum-Signature"},
	{"X-Payment", "a payment of x402 (X-PAYMENT)"},
}

// foreign names the credential of another scheme that a request has, "" for none.
func foreign(r *http.Request) string {
	if r == nil {
		return ""
	}
	for _, h := range foreignHeaders {
		if r.Header[h.field] != nil {
			return h.name
		}
	}
	scheme, _, given := strings.Cut(r.Header.Get("Authorization"), " ")
	if given && !strings.EqualFold(scheme, "Bearer") && protocol.OneLine(scheme) == scheme && len(scheme) <= 40 {
		return "Authorization of the scheme " + scheme
	}
	if strings.Count(bearer(r), ".") == 2 {
		return "a JWT as Authorization: Bearer"
	}
	return ""
}

// unread adds to a refusal the credential of another scheme that the request has, and the page that says which ones this node reads.
func (g *Gate) unread(err *protocol.Error, r *http.Request) *protocol.Error {
	if seen := foreign(r); seen != "" {
		err.Detail += "; the request has " + seen + ", which this node does not read: " + g.Target.Scheme + "://" + g.Target.Authority + "/skill/signing.md"
	}
	return err
}

// foreignKey says why the keyid of a signature names no key here, "" where nothing is known of its form.
func foreignKey(keyid string) string {
	switch {
	case strings.HasPrefix(keyid, "did:"):
		return "a keyid that is a DID is not resolved; use the RFC 7638 thumbprint of the key, with Agent-Identity or Signature-Agent covered"
	case strings.HasPrefix(keyid, "https://"), strings.HasPrefix(keyid, "http://"):
		return "a keyid that is an address is for ActivityPub only; use the RFC 7638 thumbprint of the key, with Agent-Identity or Signature-Agent covered"
	case strings.HasPrefix(strings.ToLower(keyid), "eip155:"):
		return "an Ethereum account signs with the tag erc8128 (ERC-8128)"
	}
	return ""
}
