package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node/out/mail"
	"stoa/node/room/credential"
	"stoa/node/work/certificate"
	"stoa/storage"
)

// A Finding is what a look at one part of the configuration found.
type Finding struct {
	Check string `json:"check"` // the setting, or the part of the node
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // what to do where it is not OK
}

// findings collects what Check finds.
type findings []Finding

func (f *findings) ok(check, format string, args ...any) {
	*f = append(*f, Finding{Check: check, OK: true, Found: fmt.Sprintf(format, args...)})
}

func (f *findings) bad(check string, found any, mend string) {
	*f = append(*f, Finding{Check: check, Found: fmt.Sprint(found), Mend: mend})
}

// Check tries all settings together as a start would, changes nothing, and reports every fault at once.
func (c Config) Check(ctx context.Context) []Finding {
	f := &findings{}
	for _, err := range c.Faults() {
		name, what, _ := strings.Cut(err.Error(), ": ")
		f.bad(name, what, "correct it in the file, the flag or the environment variable of that name (stoa serve --help)")
	}
	if len(*f) == 0 {
		f.ok("settings", "they fit together; the public address is %s", c.base(c.Listen))
	}
	c.checkFiles(f)
	c.checkStore(ctx, f)
	c.checkPorts(ctx, f)
	c.checkChains(ctx, f)
	c.checkMail(ctx, f)
	return *f
}

// checkFiles reads the files that settings name, but for those of mail and the master key.
func (c Config) checkFiles(f *findings) {
	if c.TLSCert != "" && c.TLSKey != "" {
		pair := &certificate.Files{Cert: c.TLSCert, Key: c.TLSKey}
		if err := pair.Load(); err != nil {
			f.bad("tls-cert", err, "name a PEM file of the certificate with its chain, and one of the key that belongs to it, which the node's user may read")
		} else {
			c.checkCertificate(f, pair)
		}
	}
	if c.ACMERoots != "" {
		if _, err := readRoots(c.ACMERoots); err != nil {
			f.bad("acme-roots", err, "name a PEM file of the roots of your authority")
		} else {
			f.ok("acme-roots", "read from %s", c.ACMERoots)
		}
	}
	if c.Texts != "" {
		if texts, err := readTexts(c.Texts); err != nil {
			f.bad("texts", strings.TrimPrefix(err.Error(), "texts: "), "correct the directory, or leave texts empty")
		} else {
			f.ok("texts", "%d pages have a text of yours", len(texts))
		}
	}
}

func (c Config) checkCertificate(f *findings, pair *certificate.Files) {
	leaf, _ := pair.TLS().GetCertificate(nil)
	base, err := url.Parse(c.base(c.Listen))
	if err == nil {
		err = leaf.Leaf.VerifyHostname(base.Hostname())
	}
	until := leaf.Leaf.NotAfter
	switch {
	case err != nil:
		f.bad("tls-cert", err, "get a certificate for the host of base-url")
	case until.Before(time.Now()):
		f.bad("tls-cert", "it ended on "+until.Format(time.RFC3339), "renew it; with domain in place of tls-cert the node does so itself")
	default:
		f.ok("tls-cert", "for %s until %s", base.Hostname(), until.Format(time.DateOnly))
	}
}

// checkStore looks at the database, whose node it is, and whether the master key is the one that sealed its secrets.
func (c Config) checkStore(ctx context.Context, f *findings) {
	where := cmp.Or(c.sqlite(), "PostgreSQL")
	in, err := storage.Inspect(ctx, storage.Config{Path: c.sqlite(), URL: c.Database}, credential.FirstSecret)
	switch {
	case errors.Is(err, storage.ErrNewer):
		f.bad("database", err, "start the program that migrated it, or a later one")
	case errors.Is(err, storage.ErrMoved), errors.Is(err, storage.ErrMoving):
		f.bad("database", err, "serve the database that it was moved to, or end the move (docs/MOVE.md)")
	case errors.Is(err, storage.ErrOlder):
		f.bad("database", err, "start it once with the last program before 0.1.0")
	case err != nil && c.Database != "":
		f.bad("database", err, "see that the server runs and that role, password and database of the URL are there: stoa needs a UTF-8 database of its own")
	case err != nil:
		f.bad("database", fmt.Sprintf("%s: %v", where, err), "see who owns the file, and whether it is whole; stoa admin restore puts a backup in its place")
	case in.Version > in.Newest:
		f.ok("database", "%s has version %d, of a newer program; this one, which knows %d, can use it", where, in.Version, in.Newest)
	case !in.There:
		f.ok("database", "%s is empty: the first start makes the tables", where)
	case in.Version < in.Newest:
		f.ok("database", "%s has version %d: the next start migrates it to %d; back it up before", where, in.Version, in.Newest)
	default:
		f.ok("database", "%s has version %d, that of this program", where, in.Version)
	}
	if base := c.base(c.Listen); in.Base == "" || in.Base == base {
		f.ok("base-url", "%s", base)
	} else if in.Posts {
		f.bad("base-url", fmt.Sprintf("%s, and the database belongs to %s, under which posts have gone out", base, in.Base),
			"set "+in.Base+", or name another data directory or database")
	} else {
		f.ok("base-url", "%s; the next start gives the database, which was made for %s and has no posts, this address", base, in.Base)
	}
	c.checkMaster(f, in.Sealed)
}

func (c Config) checkMaster(f *findings, sealed []byte) {
	file := c.masterKey()
	sealer, err := key.LoadMaster(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && sealed == nil:
		f.ok("master-key", "the first start makes %s; keep a copy elsewhere", file)
	case errors.Is(err, fs.ErrNotExist):
		f.bad("master-key", "there is no "+file+", and the secrets in the database are sealed with one", "put it back from where you keep it, with mode 0600")
	case err != nil:
		f.bad("master-key", strings.TrimPrefix(err.Error(), "master key "), "give the node's user the file, with mode 0600, as it was")
	case sealed != nil && !credential.Fits(sealer, sealed):
		f.bad("master-key", file+" is not the key that sealed the secrets in the database", "put back the one that did, or name the database of this one")
	default:
		f.ok("master-key", "%s is read%s", file, map[bool]string{true: ", and opens the secrets in the database"}[sealed != nil])
	}
}

// checkPorts sees whether the node could listen, or does.
func (c Config) checkPorts(ctx context.Context, f *findings) {
	check := func(setting, address string, ours func(*http.Client, string) bool) {
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			l.Close()
			f.ok(setting, "%s is free", address)
		case errors.Is(err, fs.ErrPermission):
			f.bad(setting, err, "let systemd open the port (stoa setup writes the unit), give the program CAP_NET_BIND_SERVICE, or choose a port above 1023")
		case errors.Is(err, syscall.EADDRINUSE) && ours(c.probe(ctx, address)):
			f.ok(setting, "this node listens on %s already", address)
		case errors.Is(err, syscall.EADDRINUSE):
			f.bad(setting, err, "stop the program that has it (ss -ltnp names it), or choose another address")
		default:
			f.bad(setting, err, "name an address of this machine, such as :443 or 127.0.0.1:8080")
		}
	}
	base := c.base(c.address())
	check("listen", c.address(), func(client *http.Client, host string) bool {
		scheme := "http"
		if c.https() {
			scheme = "https"
		}
		return bytes.Contains(read(client, scheme+"://"+host+"/.well-known/nodeinfo"), []byte(base+"/"))
	})
	if c.https() && c.HTTPListen != "" {
		check("http-listen", c.HTTPListen, func(client *http.Client, host string) bool {
			res, err := client.Get("http://" + host + "/.well-known/nodeinfo")
			if err != nil {
				return false
			}
			defer res.Body.Close()
			return strings.HasPrefix(res.Header.Get("Location"), base+"/")
		})
	}
	if c.OperatorListen != "" {
		check("operator-listen", c.OperatorListen, func(client *http.Client, host string) bool {
			return bytes.Contains(read(client, "http://127.0.0.1/metrics"), []byte("stoa_"))
		})
	}
}

// probe returns a client whose connections all go to an address of this machine, and the host that it asks for. What it gets decides nothing but what
// is said: no certificate is checked.
func (c Config) probe(ctx context.Context, address string) (*http.Client, string) {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	name := net.JoinHostPort(host, port)
	if u, err := url.Parse(c.base(address)); err == nil {
		name = u.Host
	}
	return &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(_ context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
			}}}, name
}

// read returns the beginning of what an address serves, nil for nothing.
func read(client *http.Client, address string) []byte {
	res, err := client.Get(address)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return raw
}

// checkChains asks the endpoints of the chains.
func (c Config) checkChains(ctx context.Context, f *findings) {
	chain, err := credential.NewChain(c.Chain, c.Dev, nil, slog.New(slog.DiscardHandler))
	if err != nil || chain == nil {
		return // the fault of the setting is said
	}
	err = chain.Reader.Check(ctx)
	wrong, setting := errors.AsType[*erc8004.SettingError](err)
	switch {
	case setting:
		f.bad("chain", wrong, "correct the number of the chain, the endpoint or the address of the registry")
	case err != nil:
		f.bad("chain", err, "see that the endpoint runs and takes requests of this machine; the node starts without, and verifies no identity until it answers")
	default:
		f.ok("chain", "endpoints answer for %d, with the registries", len(chain.Reader.States()))
	}
}

// checkMail signs in to the mail server, and sends nothing.
func (c Config) checkMail(ctx context.Context, f *findings) {
	if c.SMTP == "" {
		return
	}
	s, err := c.sender()
	if err != nil {
		f.bad("dkim-key", strings.TrimPrefix(err.Error(), ErrConfig.Error()+": dkim-key: "), "name a PEM file of the key; stoa admin mail key makes one")
		return
	}
	if s.Password, err = mail.ReadPassword(c.SMTPPassword); err != nil {
		f.bad("smtp-password", err, "name a file with the password that the node's user may read")
		return
	}
	if u, err := url.Parse(c.base(c.Listen)); err == nil {
		s.Host = u.Hostname()
	}
	if err := s.Check(ctx); err != nil {
		f.bad("smtp", fmt.Sprintf("%s: %v", c.SMTP, err), "see that it takes submissions there (587 with starttls, 465 with tls), and user and password")
		return
	}
	f.ok("smtp", "%s answers%s", c.SMTP, map[bool]string{true: " and knows " + c.SMTPUser}[c.SMTPUser != ""])
}
