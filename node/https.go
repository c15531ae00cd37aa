package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"stoa/node/out/outbound"
	"stoa/node/work/certificate"
	"stoa/protocol"
)

// A certifier has the certificate that the node serves HTTPS with.
type certifier interface {
	TLS() *tls.Config
	// Plain is what the address without TLS serves.
	Plain(base string) http.Handler
	Run(ctx context.Context) error
	// State says until when the certificate is valid, and why the last try to get one failed.
	State(ctx context.Context) (notAfter time.Time, failed string)
}

const (
	plainAddress = "127.0.0.1:8080" // of a node behind a proxy, the default
	tlsAddress   = ":443"           // of one that serves HTTPS by itself
)

// https reports whether the node serves HTTPS by itself.
func (c Config) https() bool { return len(c.Domains) > 0 || c.TLSCert != "" }

// address is where the node listens.
func (c Config) address() string {
	if c.https() && c.Listen == plainAddress {
		return tlsAddress
	}
	return c.Listen
}

// Addresses are those that the public reaches: where the node listens, and with HTTPS where it does without.
func (c Config) Addresses() []string {
	if c.https() && c.HTTPListen != "" {
		return []string{c.address(), c.HTTPListen}
	}
	return []string{c.address()}
}

// httpsFaults reports the faults of how the node serves HTTPS.
func (c Config) httpsFaults(bad func(format string, args ...any)) {
	for _, name := range c.Domains {
		if !dnsName(name) {
			bad("domain: %q is not the name of a host, such as stoa.example", name)
		}
	}
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		bad("tls-cert: name the file of the key too, with tls-key, or neither")
	case c.TLSCert != "" && len(c.Domains) > 0:
		bad("domain: has a certificate made; with tls-cert set base-url instead")
	case c.Dev && c.https():
		bad("domain: a development node serves without TLS")
	case len(c.Domains) > 0 && !strings.HasPrefix(c.ACMEDirectory, "https://"):
		bad("acme-directory: %q is not an https URL", c.ACMEDirectory)
	}
	if c.https() && c.HTTPListen != "" {
		if _, _, err := net.SplitHostPort(c.HTTPListen); err != nil {
			bad("http-listen: %q is not host:port", c.HTTPListen)
		}
	}
}

// dnsName reports whether an authority may certify a name: one of a host with a domain, no IP address, without a port.
func dnsName(name string) bool {
	return protocol.IsHost(name) && strings.Contains(name, ".") && !strings.Contains(name, ":") && net.ParseIP(name) == nil
}

// listenPlain opens the address without TLS, and says what HTTPS is served with.
func (n *Node) listenPlain() (err error) {
	c := n.Config
	if !c.https() {
		return nil
	}
	n.URL = "https" + strings.TrimPrefix(n.URL, "http")
	if n.certifier, err = n.certificates(); err == nil && c.HTTPListen != "" {
		n.plain, err = n.sockets.listen("http-listen", c.HTTPListen)
	}
	return err
}

// listen listens on the address of a setting, by the supervisor's socket where there is one.
func (s sockets) listen(setting, address string) (net.Listener, error) {
	if l := s.take(setting, address); l != nil {
		return l, nil
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: let systemd open the port (stoa setup writes the unit), give the program CAP_NET_BIND_SERVICE, or choose a port above 1023", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, setting, err)
	}
	return l, nil
}

func (n *Node) certificates() (certifier, error) {
	c := n.Config
	if c.TLSCert != "" {
		f := &certificate.Files{Cert: c.TLSCert, Key: c.TLSKey, Log: n.log}
		if err := f.Load(); err != nil {
			return nil, fmt.Errorf("%w: tls-cert: %w", ErrConfig, err)
		}
		return f, nil
	}
	o := outboundOptions(c, n.Base)
	if c.ACMERoots != "" {
		roots, err := readRoots(c.ACMERoots)
		if err != nil {
			return nil, fmt.Errorf("%w: acme-roots: %w", ErrConfig, err)
		}
		o.AllowPrivate, o.RootCAs = true, roots
	}
	mail, is := strings.CutPrefix(c.Contact, "mailto:")
	if !is {
		mail = ""
	}
	return &certificate.ACME{
		Names: c.Domains, Directory: c.ACMEDirectory, Contact: cmp.Or(c.ACMEContact, mail), Client: outbound.New(o), Owner: owner(), DB: n.DB, Seal: n.Keys,
		Log: n.log,
	}, nil
}

// readRoots reads the certificates of a PEM file.
func readRoots(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(raw) {
		return nil, errors.New("there is no certificate in " + file)
	}
	return roots, nil
}

// serveHTTPS makes the server serve HTTPS where the node does so by itself, and runs what that needs.
func (n *Node) serveHTTPS(ctx context.Context, server *http.Server, start func(func() error)) (closePlain func()) {
	if n.certifier == nil {
		start(func() error { return serve(server, n.listener) })
		return func() {}
	}
	server.TLSConfig = n.certifier.TLS()
	server.ErrorLog = log.New(io.Discard, "", 0) // whoever connects chooses what would be in it
	start(func() error { return orderly(server.ServeTLS(n.listener, "", "")) })
	start(func() error { return n.certifier.Run(ctx) })
	if n.plain == nil {
		return func() {}
	}
	plain := newServer(n.certifier.Plain(n.Base))
	start(func() error { return serve(plain, n.plain) })
	return func() { plain.Close() }
}
