package node

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"stoa/protocol"
)

// clientAddr returns the address that a request came from. X-Forwarded-For is read
// from the right, and only while each hop is a trusted proxy: a client can write
// anything to the left of that.
func clientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	addr := remoteAddr(r)
	if len(trusted) == 0 {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(addr, trusted); i-- {
		next, err := hop(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = next
	}
	return addr
}

// remoteAddr is the address at the other end of the connection.
func remoteAddr(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// givenID is the X-Request-Id that a trusted proxy gave to a request, "" where none did.
func givenID(r *http.Request, trusted []netip.Prefix) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || !protocol.GoodRequestID(id) || !within(remoteAddr(r), trusted) {
		return ""
	}
	return id
}

// hop parses an address as proxies write it: bare, in brackets, or with a port.
func hop(text string) (netip.Addr, error) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr(), nil
	}
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
	}
	return netip.ParseAddr(text)
}

func within(addr netip.Addr, nets []netip.Prefix) bool {
	addr = addr.Unmap()
	for _, n := range nets {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}
