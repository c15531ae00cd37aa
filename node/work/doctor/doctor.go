// Package doctor examines a node: its name, ports, certificate, proxy, clock, chain endpoints, mail, disk, backup, master key and
// versions. What each check is called, how it looks, and what to do about what it finds is in [protocol.CheckKinds] and
// [protocol.Ailments].
//
// It runs in the node, and in stoa doctor next to the node or without one. What only the running node sees, the header fields as its proxy
// sends them, it asks the node for ([Handler]).
package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"stoa/identity/erc8004"
	"stoa/node/out/mail"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

const (
	lookFor  = time.Minute      // an examination
	checkFor = 20 * time.Second // a check
	maxSeen  = 400              // bytes of what a check saw
	maxPeers = 3                // that are asked
)

// A Doctor examines a node. Base, Version and Options are required.
type Doctor struct {
	Base    string   // public address
	Names   []string // that lead to the node, the host of Base first
	TLS     bool     // the node serves HTTPS by itself
	Version string   // of this program

	Database string      // what is known of the database, in words
	DB       *storage.DB // nil when it could not be opened
	Broken   error       // why
	Secret   []byte      // of marks; nil without database
	Options  outbound.Options

	Dated []string // addresses whose answers have a date, in addition to those of peers
	Chain *erc8004.Reader
	Mail  func(ctx context.Context, lookup func(context.Context, string) ([]string, error)) ([]mail.Record, error) // nil: no mail is sent
	Ask   func(ctx context.Context, base string) (protocol.Sight, error)                                           // a peer how it sees this node
	Peers func(ctx context.Context) ([]string, error)                                                              // base addresses, the best first

	Traces func(ctx context.Context) error // asks the collector; nil: none is set

	Dirs      []string // of the data and the backups
	Backup    func(ctx context.Context) (Backup, error)
	MasterKey string // file
	Releases  Releases

	Free func(dir string) (free, size int64, err error) // nil: as the system says
	Now  func() time.Time                               // nil: time.Now
}

// A Backup is what is known of the last copy of the database.
type Backup struct {
	At     time.Time // zero: none is known
	Tried  time.Time // when one was last restored on trial; zero: never
	Daily  bool      // the node makes one each day
	Failed string    // why the last try to make one failed
}

func (d *Doctor) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

func (d *Doctor) resolver() *net.Resolver {
	if d.Options.Resolver != nil {
		return d.Options.Resolver
	}
	return net.DefaultResolver
}

// A found is what the checks know of each other.
type found struct {
	peers []string
	page  *page // nil: the public address did not answer
	reach []reached
}

// Look examines the node. It takes a minute at most.
func (d *Doctor) Look(ctx context.Context) protocol.CheckUp {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	f := found{}
	if d.DB != nil && d.Peers != nil {
		f.peers, _ = d.Peers(ctx) // without them their checks say that nobody was asked
		f.peers = f.peers[:min(len(f.peers), maxPeers)]
	}
	checks := []func(context.Context, *found) []protocol.Check{
		d.database, d.standbys, d.address, d.dns, d.ports, d.clock, d.chains, d.mail, d.disk, d.backup, d.masterKey, d.release, d.traces,
	}
	all := make([][]protocol.Check, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkFor)
			defer cancel()
			all[i] = check(ctx, &f)
		})
	}
	wg.Wait()
	all = append(all, d.versions(ctx, &f))
	var items []protocol.Check
	for _, some := range all {
		for _, c := range some {
			c.Seen = protocol.Clip(protocol.OneLine(c.Seen), maxSeen)
			items = append(items, f.agree(c))
		}
	}
	return protocol.NewCheckUp(d.now(), items)
}

// agree is a check in the light of others: where peers reach the node, what this machine sees of its own name matters less.
func (f *found) agree(c protocol.Check) protocol.Check {
	if c.Code != "address-silent" && c.Code != "dns-private" {
		return c
	}
	for _, r := range f.reach {
		if r.err == nil && r.Document == protocol.SightOK {
			return protocol.Unseen(c.Name, "from this machine: "+c.Seen+"; but "+host(r.peer)+" reaches the node")
		}
	}
	return c
}

func (d *Doctor) database(ctx context.Context, _ *found) []protocol.Check {
	if d.DB == nil {
		return []protocol.Check{protocol.Found("database-closed", fmt.Sprint(d.Broken))}
	}
	var s storage.Server
	err := d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		s, err = tx.Site().Server(ctx)
		return err
	})
	if err != nil {
		return []protocol.Check{protocol.Found("database-closed", err.Error())}
	}
	return []protocol.Check{protocol.Passed("database", fmt.Sprintf("%s %s, tables of version %d", d.DB.Engine(), s.Version, s.Schema))}
}

// behindFor is how old what a standby has replayed last may be.
const behindFor = 10 * time.Second

// standbys asks each one that reads may go to.
func (d *Doctor) standbys(ctx context.Context, _ *found) (all []protocol.Check) {
	if d.DB == nil {
		return nil
	}
	states, _ := d.DB.Replicas(ctx)
	var fine []string
	for _, s := range states {
		seen := fmt.Sprintf("%s: %d bytes, %s behind", s.Host, s.Bytes, s.Lag.Round(time.Millisecond))
		switch {
		case !s.Up:
			all = append(all, protocol.Found("standby-away", s.Host))
		case s.Lag > behindFor:
			all = append(all, protocol.Found("standby-behind", seen))
		default:
			fine = append(fine, seen)
		}
	}
	if len(fine) > 0 {
		all = append(all, protocol.Passed("standbys", strings.Join(fine, "; ")))
	}
	return all
}

// traces asks the collector.
func (d *Doctor) traces(ctx context.Context, _ *found) []protocol.Check {
	if d.Traces == nil {
		return nil
	}
	if err := d.Traces(ctx); err != nil {
		return []protocol.Check{protocol.Found("traces-refused", cause(err))}
	}
	return []protocol.Check{protocol.Passed("traces", "the collector takes them")}
}

// public is what others see of the node: nil for one on loopback.
func (d *Doctor) public() *url.URL {
	u, err := url.Parse(d.Base)
	if err != nil || netx.IsLoopback(u.Hostname()) {
		return nil
	}
	return u
}

const onLoopback = "the node is on loopback, for this machine only"

// host is the host of an address, for texts.
func host(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// own are the options for addresses that the operator set, which may be private.
func (d *Doctor) own() outbound.Options {
	o := d.Options
	o.AllowPrivate, o.Ports = true, []uint16{443, d.port()}
	return o
}

// port is that of the public address.
func (d *Doctor) port() uint16 {
	u, err := url.Parse(d.Base)
	if err != nil {
		return 443
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(n)
	}
	return map[string]uint16{"http": 80, "https": 443}[u.Scheme]
}

// client is one that waits no longer than a check may.
func client(o outbound.Options) *http.Client {
	o.Timeout = checkFor / 2
	return outbound.New(o)
}

// invalid reports whether an error is that of a certificate: one that is not valid, or none.
func invalid(err error) bool {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	e, none := errors.AsType[*net.OpError](err)
	return wrong || none && e.Op == "remote error" // an alert of TLS
}

// cause is an error without the address of the request.
func cause(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return err.Error()
}
