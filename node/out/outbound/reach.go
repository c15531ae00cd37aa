package outbound

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Reach connects to a port of a host, closes the connection, and returns why it could not. Network is tcp4 or tcp6. Of o are taken
// AllowPrivate, Ports, Resolver and Timeout: it refuses the addresses and ports that a client with these options refuses.
func Reach(ctx context.Context, o Options, network, host string, port uint16) error {
	r := rules{ports: o.Ports, private: o.AllowPrivate, public: true}
	if len(r.ports) == 0 {
		r.ports = []uint16{443}
	}
	d := net.Dialer{
		Timeout: min(dialTimeout, max(o.Timeout, time.Second)), Resolver: o.Resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return r.check(network, address)
		},
	}
	conn, err := d.DialContext(ctx, network, net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	return conn.Close()
}
