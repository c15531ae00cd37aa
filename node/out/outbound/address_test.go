package outbound

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// stranger is what a client for strangers may reach; lan what AllowPrivate adds.
var (
	stranger = rules{public: true, ports: []uint16{443}}
	lan      = rules{public: true, ports: []uint16{443}, private: true}
	plain    = rules{private: true}
)

func TestCheck_RefusesEverySpecialRange(t *testing.T) {
	t.Parallel()
	// One address, or the first and last, of each range; the same again in the
	// forms that a resolver may give.
	for _, address := range []string{
		"0.0.0.0", "0.255.255.255",
		"10.0.0.0", "10.255.255.255",
		"100.64.0.0", "100.127.255.255", "100.100.100.200",
		"127.0.0.1", "127.255.255.255",
		"169.254.0.0", "169.254.169.254", "169.254.170.2",
		"172.16.0.0", "172.31.255.255",
		"192.0.0.0", "192.0.0.192", "192.0.0.255",
		"192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
		"192.168.0.0", "192.168.255.255", "192.175.48.1",
		"198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1",
		"224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.255",
		"::", "::1", "::7f00:1", // IPv4-compatible 127.0.0.1
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", // NAT64 of loopback, metadata, private
		"100::1", "100:0:0:1::1", // discard-only, dummy
		"2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", // Teredo
		"2001:10::1", "2001:20::1", "2001:1ff:ffff::1", // ORCHID and the rest of 2001::/23
		"2001:db8::1", "3fff::1", "3fff:fff::1",
		"2002::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", // 6to4 of loopback and metadata
		"2620:4f:8000::1",
		"5f00::1", "4000::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "ff0e::1",
	} {
		forms := []string{address}
		if a := netip.MustParseAddr(address); a.Is4() {
			forms = append(forms, "::ffff:"+address)
		}
		for _, form := range forms {
			err := stranger.check("tcp", "["+form+"]:443")
			if netip.MustParseAddr(form).Is4() {
				err = stranger.check("tcp4", form+":443")
			}
			_, ok := errors.AsType[*Refused](err)
			require.True(t, ok, "%s: %v", form, err)
		}
	}
}

func TestCheck_AdmitsPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"1.1.1.1:443", "9.255.255.255:443", "11.0.0.0:443", "100.63.255.255:443", "100.128.0.0:443", "126.255.255.255:443",
		"128.0.0.1:443", "169.253.255.255:443", "172.15.255.255:443", "172.32.0.0:443", "192.0.1.0:443", "192.167.255.255:443",
		"198.17.255.255:443", "198.20.0.0:443", "223.255.255.255:443", "[::ffff:1.1.1.1]:443",
		"[2001:200::1]:443", "[2001:4860:4860::8888]:443", "[2003::1]:443", "[2606:4700::1111]:443", "[3ffe::1]:443",
	} {
		require.NoError(t, stranger.check("tcp", address), address)
	}
}

func TestCheck_Rules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		rules            rules
		network, address string
		admitted         bool
	}{
		{"public, other port", stranger, "tcp", "1.1.1.1:22", false},
		{"public, port 80", stranger, "tcp", "1.1.1.1:80", false},
		{"public, port of the options", rules{public: true, ports: []uint16{8443}}, "tcp", "1.1.1.1:8443", true},
		{"unix socket", stranger, "unix", "/run/docker.sock", false},
		{"datagram", stranger, "udp4", "1.1.1.1:443", false},
		{"not resolved", stranger, "tcp", "example.com:443", false},
		{"loopback, private allowed", lan, "tcp", "127.0.0.1:8080", true},
		{"loopback v6, private allowed", lan, "tcp6", "[::1]:1", true},
		{"private, private allowed", lan, "tcp", "192.168.1.4:443", true},
		{"unique local, private allowed", lan, "tcp", "[fd12::1]:443", true},
		{"mapped loopback, private allowed", lan, "tcp", "[::ffff:127.0.0.1]:443", true},
		{"metadata, private allowed", lan, "tcp", "169.254.169.254:80", false},
		{"metadata v6, private allowed", lan, "tcp", "[fd00:ec2::254]:80", false},
		{"NAT64 of loopback, private allowed", lan, "tcp", "[64:ff9b::7f00:1]:443", false},
		{"public on other port, private allowed", lan, "tcp", "1.1.1.1:8080", false},
		{"plain http to loopback", plain, "tcp", "127.0.0.1:8080", true},
		{"plain http to public", plain, "tcp", "1.1.1.1:80", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.rules.check(c.network, c.address)
			if c.admitted {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "outbound: refused "+c.address)
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ name, address string }{
		{"IPv4", "93.184.216.34:443"}, {"IPv6", "[2606:4700::1111]:443"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := stranger.check("tcp", c.address); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
