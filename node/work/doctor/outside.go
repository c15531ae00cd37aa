package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/netx"
)

// maxAddresses is how many addresses of a name are connected to.
const maxAddresses = 8

// dns looks the names of the node up, and connects to each of their addresses.
func (d *Doctor) dns(ctx context.Context, _ *found) []protocol.Check {
	if d.public() == nil {
		return []protocol.Check{protocol.Unseen("dns", onLoopback)}
	}
	var all []protocol.Check
	var seen []string
	for _, name := range d.Names {
		c := d.name(ctx, name)
		if c.Verdict == protocol.CheckOK {
			seen = append(seen, c.Seen)
			continue
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		all = []protocol.Check{protocol.Passed("dns", strings.Join(seen, "; "))}
	}
	return all
}

func (d *Doctor) name(ctx context.Context, name string) protocol.Check {
	addresses, err := d.resolver().LookupNetIP(ctx, "ip", name)
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return protocol.Found("dns-missing", name+": no address in the DNS")
	}
	if err != nil {
		return protocol.Found("dns-silent", err.Error())
	}
	var texts []string
	for i, a := range addresses {
		addresses[i] = a.Unmap()
		texts = append(texts, addresses[i].String())
	}
	seen := name + ": " + strings.Join(texts, ", ")
	if !d.Options.AllowPrivate {
		for _, a := range addresses {
			if why := netx.NotPublic(a); why != "" {
				return protocol.Found("dns-private", fmt.Sprintf("%s (a %s address: from the DNS, or /etc/hosts of this machine)", seen, why))
			}
		}
	}
	if closed := d.closed(ctx, addresses[:min(len(addresses), maxAddresses)]); len(closed) > 0 {
		return protocol.Found("dns-closed", name+": "+strings.Join(closed, ", "))
	}
	return protocol.Passed("dns", seen)
}

// closed connects to addresses, and says which of them do not answer: those of this machine, and, while another one answers, the rest, unless
// this machine has no way there.
func (d *Doctor) closed(ctx context.Context, addresses []netip.Addr) (closed []string) {
	errs := make([]error, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		wg.Go(func() { errs[i] = outbound.Reach(ctx, d.own(), network, a.String(), d.port()) })
	}
	wg.Wait()
	answers := slices.Contains(errs, nil)
	mine := ownAddresses()
	for i, err := range errs {
		away := errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)
		if err != nil && (mine[addresses[i]] || answers && !away) {
			closed = append(closed, fmt.Sprintf("%s port %d (%s)", addresses[i], d.port(), last(err)))
		}
	}
	return closed
}

// last is the innermost word of a network error.
func last(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// ownAddresses are those of this machine.
func ownAddresses() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	all, _ := net.InterfaceAddrs() // none: then no address counts as this machine's
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().Unmap()] = true
		}
	}
	return own
}

// A reached is what a peer says of the node.
type reached struct {
	peer string
	err  error // it did not look
	protocol.Sight
}

// ports asks peers whether they reach the public address.
func (d *Doctor) ports(ctx context.Context, f *found) []protocol.Check {
	if u := d.public(); u == nil && !d.Options.AllowPrivate {
		return []protocol.Check{protocol.Unseen("ports", onLoopback)}
	}
	if len(f.peers) == 0 || d.Ask == nil {
		return []protocol.Check{protocol.Found("ports-unasked", "the node follows no other node, and none follows it")}
	}
	all := make([]reached, len(f.peers))
	var wg sync.WaitGroup
	for i, peer := range f.peers {
		all[i].peer = peer
		wg.Go(func() { all[i].Sight, all[i].err = d.Ask(ctx, peer) })
	}
	wg.Wait()
	f.reach = all
	return d.portsSeen(all)
}

func (d *Doctor) portsSeen(all []reached) []protocol.Check {
	var yes, no, plain int
	var texts, broken []string
	for _, r := range all {
		switch {
		case r.err != nil:
			texts = append(texts, host(r.peer)+" did not look: "+cause(r.err))
			continue
		case r.Document == protocol.SightOK:
			yes++
		default:
			no++
		}
		if r.Plain4 == protocol.SightOK || r.Plain6 == protocol.SightOK {
			plain++
		}
		if r.Document == protocol.SightOK && (r.IPv6 == protocol.SightRefused || r.IPv6 == protocol.SightTimeout) {
			broken = append(broken, "IPv6 as "+host(r.peer)+" sees it: "+r.IPv6)
		}
		texts = append(texts, fmt.Sprintf("%s: %s (IPv4 %s, IPv6 %s; port 80 %s, %s)", host(r.peer), r.Document, r.IPv4, r.IPv6, r.Plain4, r.Plain6))
	}
	seen := strings.Join(texts, "; ")
	var checks []protocol.Check
	switch {
	case yes+no == 0:
		checks = append(checks, protocol.Found("ports-unasked", seen))
	case yes == 0:
		checks = append(checks, protocol.Found("ports-closed", seen))
	case no > 0:
		checks = append(checks, protocol.Found("ports-differ", seen))
	case d.TLS && plain == 0:
		checks = append(checks, protocol.Found("ports-plain", seen))
	default:
		checks = append(checks, protocol.Passed("ports", seen))
	}
	if len(broken) > 0 {
		checks = append(checks, protocol.Found("dns-closed", strings.Join(broken, "; ")))
	}
	return checks
}

const (
	clockWrong  = 30 * time.Second // as far as signatures may be off
	clockDrifts = 5 * time.Second
)

// clock compares the clock with the dates of answers of others, and with the database's.
func (d *Doctor) clock(ctx context.Context, f *found) []protocol.Check {
	var all []protocol.Check
	off, asked, errs := d.offsets(ctx, f)
	if c, ok := d.databaseClock(ctx); ok {
		all = append(all, c)
	}
	if len(off) == 0 {
		return append(all, protocol.Found("clock-unasked", strings.Join(errs, "; ")))
	}
	slices.Sort(off)
	median := off[len(off)/2]
	seen := fmt.Sprintf("%s, by the dates of %s", offset(median), strings.Join(asked, ", "))
	switch {
	case median.Abs() >= clockWrong && len(off) > 1:
		return append(all, protocol.Found("clock-wrong", seen))
	case median.Abs() >= clockDrifts:
		return append(all, protocol.Found("clock-drifts", seen))
	case len(all) > 0:
		return all
	}
	return []protocol.Check{protocol.Passed("clock", seen)}
}

func offset(d time.Duration) string {
	if d.Abs() < 2*time.Second { // dates are in whole seconds
		return "less than 2 s"
	}
	if d > 0 {
		return fmt.Sprintf("%d s behind", d/time.Second)
	}
	return fmt.Sprintf("%d s ahead", -d/time.Second)
}
