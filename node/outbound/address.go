package outbound

import (
	"net/netip"
	"slices"
	"strings"
)

// A Refused is a request that the client did not make because of where it would
// have gone. It is final: trying again gives the same.
type Refused struct {
	Target string // address, or URL without password
	Reason string
	// Form is set when the URL was refused for how it looks (scheme, port, user),
	// before anything was looked up: it says nothing about who is there.
	Form bool
}

func (e *Refused) Error() string { return "outbound: refused " + e.Target + ": " + e.Reason }

// Final says that the same request would be refused again.
func (e *Refused) Final() bool { return true }

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

var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	// metadataIPv6 is a unique local address at which a cloud keeps its
	// machines' credentials.
	metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")
)

// rules say which addresses a transport may connect to.
type rules struct {
	public  bool     // public addresses, on these ports
	ports   []uint16 //
	private bool     // loopback and private addresses, on any port
}

// check is given what the socket is about to connect to.
func (r rules) check(network, address string) error {
	if !strings.HasPrefix(network, "tcp") {
		return &Refused{Target: address, Reason: "network " + network}
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refused{Target: address, Reason: "not an address"}
	}
	addr := ap.Addr().Unmap() // ::ffff:10.0.0.1 is 10.0.0.1
	if r.private && private(addr) {
		return nil
	}
	if why := notPublic(addr); why != "" {
		return &Refused{Target: address, Reason: why + " address"}
	}
	if !r.public {
		return &Refused{Target: address, Reason: "plain http to a public address"}
	}
	if !slices.Contains(r.ports, ap.Port()) {
		return &Refused{Target: address, Reason: "port"}
	}
	return nil
}

// private reports whether AllowPrivate admits the address.
func private(a netip.Addr) bool {
	return a.Zone() == "" && a != metadataIPv6 && (a.IsLoopback() || a.IsPrivate())
}

// notPublic names why an address is not one of the public internet, "" if it is.
// The address has been unmapped.
func notPublic(a netip.Addr) string {
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
	// link-local, site-local and multicast all lie outside.
	if a.Is6() && !globalIPv6.Contains(a) {
		return "non-global IPv6"
	}
	if !a.IsGlobalUnicast() {
		return "non-global"
	}
	return ""
}
