// Package netx holds what every part of the node needs to know of the network:
// which addresses are public, who has registered a name, when to try again, and
// how many requests a client may make. It does no I/O.
package netx

import (
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// special are the ranges that are not the public internet (IANA special-purpose
// address registries, RFC 6890 and its updates). IPv6 outside 2000::/3 is
// refused without a row here.
var special = []struct {
	prefix netip.Prefix
	name   string
}{
	row("0.0.0.0/8", "this network"),
	row("10.0.0.0/8", "private"),
	row("100.64.0.0/10", "carrier-grade NAT"),
	row("127.0.0.0/8", "loopback"),
	row("169.254.0.0/16", "link-local"),
	row("172.16.0.0/12", "private"),
	row("192.0.0.0/24", "protocol assignments"),
	row("192.0.2.0/24", "documentation"),
	row("192.31.196.0/24", "AS112"),
	row("192.52.193.0/24", "AMT relay"),
	row("192.88.99.0/24", "6to4 relay"),
	row("192.168.0.0/16", "private"),
	row("192.175.48.0/24", "AS112"),
	row("198.18.0.0/15", "benchmarking"),
	row("198.51.100.0/24", "documentation"),
	row("203.0.113.0/24", "documentation"),
	row("224.0.0.0/4", "multicast"),
	row("240.0.0.0/4", "reserved"),
	row("2001::/23", "protocol assignments, Teredo and ORCHID"),
	row("2001:db8::/32", "documentation"),
	row("2002::/16", "6to4"),
	row("2620:4f:8000::/48", "AS112"),
	row("3fff::/20", "documentation"),
}

func row(prefix, name string) struct {
	prefix netip.Prefix
	name   string
} {
	return struct {
		prefix netip.Prefix
		name   string
	}{netip.MustParsePrefix(prefix), name}
}

var globalIPv6 = netip.MustParsePrefix("2000::/3")

// NotPublic names why an address is not one of the public internet, "" if it is.
// The address has been unmapped.
func NotPublic(a netip.Addr) string {
	if a.Zone() != "" {
		return "scoped"
	}
	for i := range special {
		if special[i].prefix.Contains(a) {
			return special[i].name
		}
	}
	// Loopback, unspecified, IPv4-compatible, NAT64 (64:ff9b::/96 and
	// 64:ff9b:1::/48), discard (100::/64), SRv6 (5f00::/16), unique local,
	// link-local, site-local and multicast are all outside of it.
	if a.Is6() && !globalIPv6.Contains(a) {
		return "non-global IPv6"
	}
	if !a.IsGlobalUnicast() {
		return "non-global"
	}
	return ""
}

// privateDomains are names that lead to nowhere on the public internet (RFC 6761,
// RFC 6762, RFC 8375, and the one that ICANN reserves for private use).
var privateDomains = []string{"localhost", "local", "internal", "home.arpa", "invalid", "onion"}

// HostFault says what keeps the host of an address from being one of the
// public internet, as far as its spelling shows; "" when nothing does. What a name
// leads to shows when it is connected to.
func HostFault(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		if why := NotPublic(ip.Unmap()); why != "" {
			return "must lead to a public address"
		}
		return ""
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	// A name that ends in a number is an IPv4 address to some readers, in
	// whatever spelling: 127.1, 2130706433, 0x7f000001 (WHATWG URL §3.5).
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "must name a host, or an address in its usual form"
	}
	for _, d := range privateDomains {
		if name == d || strings.HasSuffix(name, "."+d) {
			return "must lead to a public host"
		}
	}
	if len(labels) == 1 {
		return "must name a host with its domain"
	}
	return ""
}

// IsLoopback reports whether a host, without port and brackets, is this machine:
// a loopback address, localhost or a name below it (RFC 6761 §6.3).
func IsLoopback(host string) bool {
	const local = "localhost"
	if n := len(host) - len(local); n >= 0 && strings.EqualFold(host[n:], local) && (n == 0 || host[n-1] == '.') {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Registrable returns the domain that was registered for a host, which
// may have a port (public suffix list), or the network of an address: an IPv6 /56,
// which one customer has. Loopback addresses differ by port.
func Registrable(host string) string {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		switch ip = ip.Unmap(); {
		case ip.IsLoopback():
			return host
		case ip.Is6():
			network, _ := ip.WithZone("").Prefix(56)
			return network.String()
		}
		return ip.String()
	}
	name = strings.TrimSuffix(name, ".")
	if d, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return d
	}
	return name
}
