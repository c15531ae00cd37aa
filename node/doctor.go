package node

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"stoa/federation"
	"stoa/identity/erc8004"
	"stoa/identity/sshsig"
	"stoa/node/out/mail"
	"stoa/node/out/outbound"
	"stoa/node/room/credential"
	"stoa/node/room/operate"
	"stoa/node/work/doctor"
	"stoa/protocol"
	"stoa/protocol/sorting"
	"stoa/storage"
)

// doctor returns what examines a node of this configuration; without a database what can be seen without one.
func (c Config) doctor(base string) *doctor.Doctor {
	o := outboundOptions(c, base)
	o.RootCAs = c.roots()
	d := &doctor.Doctor{Base: base, TLS: c.https(), Version: c.Version, Options: o, Dirs: c.dirs(), MasterKey: c.masterKey()}
	if u, err := url.Parse(base); err == nil {
		d.Names = []string{u.Hostname()}
	}
	for _, name := range c.Domains {
		if !slices.Contains(d.Names, name) {
			d.Names = append(d.Names, name)
		}
	}
	if c.Releases != "" {
		d.Releases.Address = c.Releases
		d.Releases.Key, _ = sshsig.ParseKey(c.ReleaseKey) // it was checked with the settings
	}
	if e, err := c.traceExporter(base); e != nil {
		e.Log = slog.New(slog.DiscardHandler)
		d.Traces = e.Probe
	} else if err != nil {
		d.Traces = func(context.Context) error { return err }
	}
	if c.SMTP != "" {
		d.Mail = func(ctx context.Context, lookup func(context.Context, string) ([]string, error)) ([]mail.Record, error) {
			return c.CheckMail(ctx, lookup)
		}
	}
	for _, s := range c.Chain {
		if chain, err := erc8004.ParseChain(s); err == nil {
			for _, address := range chain.RPC {
				if u, err := url.Parse(address); err == nil { // without the path, which often holds a secret
					d.Dated = append(d.Dated, u.Scheme+"://"+u.Host+"/")
				}
			}
		}
	}
	if len(c.Domains) > 0 {
		d.Dated = append(d.Dated, c.ACMEDirectory)
	}
	return d
}

// roots are those of the system and of the operator's own authority; nil for the system's.
func (c Config) roots() *x509.CertPool {
	raw, err := os.ReadFile(c.ACMERoots)
	if c.ACMERoots == "" || err != nil {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(raw)
	return pool
}

// opened gives a doctor what it needs of an open database.
func opened(ctx context.Context, d *doctor.Doctor, db *storage.DB, keys *credential.Keyring, chain *credential.Chain, f *federation.Federation) (err error) {
	d.DB, d.Ask = db, f.AskReach
	d.Peers = func(ctx context.Context) ([]string, error) { return peersOf(ctx, db, d.Base) }
	d.Backup = func(ctx context.Context) (doctor.Backup, error) { return lastBackup(ctx, db) }
	if chain != nil {
		d.Chain = chain.Reader
	}
	d.Secret, err = keys.Random(ctx, credential.SecretDoctor)
	return err
}

// dirs are those that the node writes to.
func (c Config) dirs() []string {
	if c.BackupDir == "" || strings.Contains(c.BackupDir, "://") {
		return []string{c.Data}
	}
	return []string{c.Data, c.BackupDir}
}

// lastBackup is what is known of the last copy of the database.
func lastBackup(ctx context.Context, db *storage.DB) (b doctor.Backup, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Settings().Backup(ctx)
		b = doctor.Backup{At: s.MadeAt, Tried: s.CheckedAt, Failed: s.LastError, Daily: !s.NextAt.IsZero()}
		return err
	})
	return b, err
}

// peersOf returns the base addresses of the nodes that this one follows, those that were reached last first, and then of those that follow it.
func peersOf(ctx context.Context, db *storage.DB, base string) (peers []string, err error) {
	add := func(address string) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return
		}
		if peer := u.Scheme + "://" + u.Host; !slices.Contains(peers, peer) {
			peers = append(peers, peer)
		}
	}
	return peers, db.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		followed, err := tx.Subscriptions().List(ctx)
		if err != nil {
			return err
		}
		sorting.Stable(followed, func(a, b storage.Subscription) int { return b.OKAt.Compare(a.OKAt) })
		for _, s := range followed {
			if s.State == storage.SubscriptionAccepted {
				add(s.Board)
			}
		}
		outlets, err := tx.Outlets().List(ctx, protocol.BoardID(base), protocol.MaxLimit, "")
		for _, o := range outlets.Items {
			if o.Stoa && o.State == storage.OutletActive {
				add(o.Inbox)
			}
		}
		return err
	})
}

// openDoctor makes what examines the node.
func (n *Node) openDoctor(ctx context.Context) error {
	n.doctor = n.Config.doctor(n.Base)
	return opened(ctx, n.doctor, n.DB, n.Keys, n.Chain, n.federation)
}

// reach connects to a port of another node, for it.
func (n *Node) reach(ctx context.Context, network, host string, port uint16) error {
	o := outboundOptions(n.Config, n.Base)
	o.Ports = []uint16{443, 80}
	return outbound.Reach(ctx, o, network, host, port)
}

// An Examination is one from outside of the node's process.
type Examination struct {
	Config
	Resolver string // host:port of a DNS server; "" for those of the system
	Log      *slog.Logger
}

// Look examines the node of the settings, running or not, and stores what it found for Health if the database opens.
func (e Examination) Look(ctx context.Context) (protocol.CheckUp, error) {
	if err := e.Validate(); err != nil {
		return protocol.CheckUp{}, err
	}
	db, keys, err := e.open(ctx)
	base := e.base(e.Listen)
	if db != nil {
		defer db.Close()
		var stored string
		stored, err = storedBase(ctx, db)
		base = cmp.Or(stored, base)
	}
	d := e.doctor(base)
	if e.Resolver != "" {
		d.Options.Resolver = resolverAt(e.Resolver)
	}
	quiet := slog.New(slog.DiscardHandler)
	chain, wrong := credential.NewChain(e.Chain, e.Dev, db, quiet)
	if wrong != nil {
		return protocol.CheckUp{}, fmt.Errorf("%w: %w", ErrConfig, wrong)
	}
	if chain != nil {
		d.Chain = chain.Reader
	}
	if err == nil {
		err = e.of(ctx, d, db, keys, chain)
	}
	if err != nil {
		d.Broken, d.DB = err, nil
	}
	found := d.Look(ctx)
	if d.DB == nil {
		return found, nil
	}
	return found, db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return operate.KeepCheckUp(ctx, tx, found) })
}

// open opens the database of a node that was started before.
func (e Examination) open(ctx context.Context) (*storage.DB, *credential.Keyring, error) {
	if file := e.sqlite(); file != "" {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("%s does not exist: name the directory with --data, or start the node first", file)
		}
	}
	return openStore(ctx, e.Config, e.Log, false)
}

// of gives a doctor the database, and a way to ask peers.
func (e Examination) of(ctx context.Context, d *doctor.Doctor, db *storage.DB, keys *credential.Keyring, chain *credential.Chain) error {
	u, err := url.Parse(d.Base)
	if err != nil {
		return err
	}
	f, err := federation.New(federation.Config{
		Base: u, DB: db, Client: outbound.New(d.Options), Keys: federation.Keys{RSA: keys.RSA, Ed25519: keys.Ed}, Receiver: receiver{},
		Software: "stoa", Version: e.Version, AllowPrivate: e.private(),
	})
	if err != nil {
		return err
	}
	return opened(ctx, d, db, keys, chain, f)
}

// KeyCopied compares the text of a copy of the master key with the key, and notes that there is one.
func (e Examination) KeyCopied(ctx context.Context, text []byte) error {
	db, _, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return doctor.KeyCopied(ctx, db, e.masterKey(), text)
}

// NoCopy returns an error when a file is the master key itself.
func (e Examination) NoCopy(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if own, err := os.Stat(e.masterKey()); err == nil && os.SameFile(info, own) {
		return fmt.Errorf("%w: %s is the master key itself, not a copy of it", ErrConfig, file)
	}
	return nil
}

// resolverAt asks one DNS server.
func resolverAt(server string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, server)
	}}
}

// doctorPage answers the doctor's requests with what reached the node; to others there is nothing.
func (n *Node) doctorPage(missing func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return doctor.Handler(n.doctor.Secret, n.Config.Version, trusted(n.Config), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		missing(w, r, protocol.Errorf(protocol.NotFound, "there is nothing at this path"))
	}))
}
