package directory

import (
	"net/netip"
	"net/url"
	"strings"

	"stoa/identity/httpsig"
	"stoa/netx"
)

// source is what one entry of the cache is fetched from.
type source struct {
	name string // cache key, see Record.Name
	url  string // with lower-case scheme and host, and without the default port
	host string // without port: what fetches are counted by
	card bool   // the URL is a client metadata document, which holds or names the set
}

const cardPrefix = "cimd:" // no URL begins with it: they are https

// sourceOf finds where the key set of an agent is. The reference has passed the
// verifier; what a fetch must not do is checked again here, because this is the
// place that fetches.
func sourceOf(ref httpsig.AgentRef, loopback bool) (source, *Failure) {
	raw, card := ref.KeySetURL(), ref.Form == httpsig.AgentCard
	if card {
		raw = ref.URL
	}
	if raw == "" {
		return source{}, &Failure{Code: httpsig.CodeAgentMissing, Detail: "the signature covers no Signature-Agent"}
	}
	return newSource(raw, card, loopback)
}

// newSource checks the spelling of a URL that a stranger chose. The address it
// resolves to and its port are judged by the client that dials.
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
	// Path and query stay as written: normalising them could ask for something else.
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

// sourceOfName is the source of a kept record.
func sourceOfName(name string, loopback bool) (source, *Failure) {
	raw, card := strings.CutPrefix(name, cardPrefix)
	return newSource(raw, card, loopback)
}

// wellKnown reports whether the URL is the well-known path of its origin, where
// the rules are stricter.
func (s source) wellKnown() bool {
	_, rest, _ := strings.Cut(s.url, "://")
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return false
	}
	path, _, _ := strings.Cut(rest[i:], "?")
	return path == httpsig.DirectoryPath
}

// isLiteral also catches the spellings that some resolvers read as IPv4: 127.1,
// 2130706433, 0x7f.1.
func isLiteral(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}
