package outbound

import (
	"net/netip"
	"slices"
	"strings"

	"stoa/protocol/netx"
)

// A Refused is a request that the client did not make because of its target. It is final: the same
// request would be refused again.
type Refused struct {
	Target string // address, or URL without password
	Reason string
	// Form is set when the URL was refused for its form (scheme, port, user) before anything was
	// looked up: it reveals nothing about the target.
	Form bool
}

func (e *Refused) Error() string { return "outbound: refused " + e.Target + ": " + e.Reason }

// Final reports that the same request would be refused again.
func (e *Refused) Final() bool { return true }

// metadataIPv6 is the unique local address of a cloud's metadata service, which serves the
// machine's credentials.
var metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")

// rules are the addresses that a transport may connect to.
type rules struct {
	public  bool     // public addresses, on these ports
	ports   []uint16 //
	private bool     // loopback and private addresses, on any port
}

// check is called with the address that the socket is about to connect to.
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
	if why := netx.NotPublic(addr); why != "" {
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
