package directory

import (
	"net/netip"
	"net/url"
	"strings"

	"stoa/identity/httpsig"
	"stoa/protocol/netx"
)

// source is where an entry of the cache is fetched from.
type source struct {
	name string // cache key, see Record.Name
	url  string // with lower-case scheme and host, and without the default port
	host string // without port: fetches are counted by it
	card bool   // the URL is that of a client metadata document, which contains or links the set
	meta bool   // the URL is that of a document with issuer and jwks_uri
	kids bool   // keys are found by their kid, not by their thumbprint
}

// They cannot be confused with a URL, which begins with https.
const (
	cardPrefix = "cimd:"
	metaPrefix = "meta:"
)

// sourceOf returns where the key set of an agent is. The verifier has accepted the reference; what
// a fetch must never do is checked again here, next to the fetch.
func sourceOf(ref httpsig.AgentRef, loopback bool) (source, *Failure) {
	if ref.Form == httpsig.AgentMetadata {
		s, f := newSource(ref.URL, false, loopback)
		s.meta, s.name = true, metaPrefix+s.url
		return s, f
	}
	raw, card := ref.KeySetURL(), ref.Form == httpsig.AgentCard
	if card {
		raw = ref.URL
	}
	if raw == "" {
		return source{}, &Failure{Code: httpsig.CodeAgentMissing, Detail: "the signature covers no Signature-Agent"}
	}
	return newSource(raw, card, loopback)
}

// newSource checks the form of a URL that a stranger chose. The client that dials checks the
// resolved address and the port.
func newSource(raw string, card, loopback bool) (source, *Failure) {
	bad := func(why string) (source, *Failure) {
		return source{}, &Failure{Code: httpsig.CodeAgentMalformed, Detail: "URL of the key directory: " + why}
	}
	if len(raw) > httpsig.MaxAgentURL+len(httpsig.DirectoryPath) {
		return bad("at most 512 bytes")
	}
	for i := 0; i < len(raw); i++ {
		if c := raw[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}#", c) >= 0 {
			return bad("character or fragment")
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return bad("not an absolute URL")
	}
	host := strings.ToLower(u.Hostname())
	local := loopback && netx.IsLoopback(host)
	switch {
	case u.User != nil:
		return bad("userinfo")
	case u.Scheme != "https" && !(local && u.Scheme == "http"): // url.Parse has lowered it
		return bad("https only")
	case !local && isLiteral(host):
		return source{}, &Failure{Code: httpsig.CodeDirectoryAddressRefused, Detail: "URL of the key directory: IP literal"}
	}
	// Path and query are kept as written: normalising them could request something else.
	_, rest, _ := strings.Cut(raw, "://")
	tail := ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		tail = rest[i:]
	}
	s := source{url: u.Scheme + "://" + httpsig.NewTarget(u.Scheme, u.Host).Authority + tail, host: host, card: card}
	s.name = s.url
	if card {
		s.name = cardPrefix + s.url
	}
	return s, nil
}

// sourceOfName returns the source of a stored record.
func sourceOfName(name string, loopback bool) (source, *Failure) {
	raw, card := strings.CutPrefix(name, cardPrefix)
	return newSource(raw, card, loopback)
}

// wellKnown reports whether the URL is the well-known path of its origin, where stricter rules
// apply.
func (s source) wellKnown() bool {
	_, rest, _ := strings.Cut(s.url, "://")
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return false
	}
	path, _, _ := strings.Cut(rest[i:], "?")
	return path == httpsig.DirectoryPath
}

// isLiteral also recognises forms that some resolvers read as IPv4: 127.1, 2130706433, 0x7f.1.
func isLiteral(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}
