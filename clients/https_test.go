package clients

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// An authority is Pebble, the ACME server for tests of the authors of Let's Encrypt. It resolves every name to this machine.
type authority struct {
	directory, roots string // URL; file with the root of its own address
	ca               *x509.CertPool
	orders           atomic.Int64 // that were finalized
}

// pool is the certificates of PEM.
func pool(t *testing.T, raw []byte) *x509.CertPool {
	p := x509.NewCertPool()
	require.True(t, p.AppendCertsFromPEM(raw))
	return p
}

// newAuthority runs one that issues certificates for so many seconds, and looks for the proofs at two ports.
func newAuthority(t *testing.T, httpPort, tlsPort, seconds int) *authority {
	os.Setenv("PEBBLE_VA_NOSLEEP", "1")
	quiet := log.New(io.Discard, "", 0)
	resolver := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	dns := must.Get(challtestsrv.New(challtestsrv.Config{Log: quiet, DNSAddrs: []string{resolver}}))(t)
	dns.SetDefaultDNSIPv4("127.0.0.1")
	dns.SetDefaultDNSIPv6("")
	go dns.Run()
	t.Cleanup(dns.Shutdown)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "short", ValidityPeriod: uint64(seconds)}})
	front := wfe.New(quiet, store, va.New(quiet, httpPort, tlsPort, false, resolver, store), issuer, []string{"pebble.example"}, false, false, 1, 1)
	a := &authority{ca: pool(t, issuer.GetRootCert(0).PEM())}
	handler := front.Handler()
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/finalize-order/") {
			a.orders.Add(1)
		}
		handler.ServeHTTP(w, r)
	})
	cert, raw := selfSigned(t, "127.0.0.1")
	l := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}}))(t)
	server := &http.Server{Handler: counted, ErrorLog: quiet}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	a.directory = "https://" + l.Addr().String() + wfe.DirectoryPath
	a.roots = filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t, os.WriteFile(a.roots, raw, 0o600))
	return a
}

// selfSigned makes a certificate for an address.
func selfSigned(t *testing.T, address string) (tls.Certificate, []byte) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), crand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(rand.Int64()), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	if ip := net.ParseIP(address); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{address}
	}
	der := must.Get(x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func freePort(t *testing.T) int {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// balanced leads each connection to any of some addresses, as a balancer of TCP does, and returns its own.
func balanced(t *testing.T, to []string) (port int) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to[rand.IntN(len(to))])
				if err != nil {
					return
				}
				defer out.Close()
				go io.Copy(out, in)
				io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// A site is some processes of a node that serve HTTPS by themselves, behind balancers.
type site struct {
	t           *testing.T
	authority   *authority
	plain, safe []string // addresses of the processes
	http, https int      // ports of the balancers
}

const siteName = "stoa.example"

// newSite runs them; before may change how. An authority that does not reach the HTTPS addresses has to use the others.
func newSite(t *testing.T, seconds, processes int, reached bool, before func(*node.Config)) *site {
	s := &site{t: t}
	for range processes {
		s.plain = append(s.plain, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
		s.safe = append(s.safe, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	s.http, s.https = balanced(t, s.plain), balanced(t, s.safe)
	tlsPort := s.https
	if !reached {
		tlsPort = freePort(t)
	}
	s.authority = newAuthority(t, s.http, tlsPort, seconds)
	var nodes []*node.Node
	data := t.TempDir()
	for i := range processes {
		c := node.Config{Listen: s.safe[i], HTTPListen: s.plain[i], Domains: []string{siteName, "www." + siteName}, ACMEDirectory: s.authority.directory,
			ACMERoots: s.authority.roots, Data: data, AllowPrivatePeers: true, NoProbes: true, Version: "test"}
		before(&c)
		n := must.Get(node.New(t.Context(), c, slog.New(slog.DiscardHandler)))(t)
		require.Equal(t, "https://"+siteName, n.Base)
		nodes = append(nodes, n)
	}
	for _, n := range nodes { // all of them listen
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			require.NoError(t, <-done)
		})
	}
	return s
}

// get asks a process, named by its address, "" for any, and returns the certificate that it answered with.
func (s *site) get(process, name string) (*http.Response, *x509.Certificate, error) {
	if process == "" {
		process = fmt.Sprintf("127.0.0.1:%d", s.https)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: s.authority.ca},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, process)
		}}}
	res, err := client.Get("https://" + name + "/")
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res, res.TLS.PeerCertificates[0], err
}

// certified waits until every process answers with a certificate other than that one.
func (s *site) certified(than *x509.Certificate) (cert *x509.Certificate) {
	s.t.Helper()
	for _, process := range s.safe {
		require.Eventually(s.t, func() bool {
			res, got, err := s.get(process, siteName)
			if err != nil || than != nil && got.SerialNumber.Cmp(than.SerialNumber) == 0 {
				return false
			}
			require.Equal(s.t, 200, res.StatusCode)
			require.Equal(s.t, 2, res.ProtoMajor)
			cert = got
			return true
		}, 2*time.Minute, 100*time.Millisecond)
	}
	return cert
}

// TestHTTPS_Pebble: a node gets its certificate by itself, once for all of its processes, whichever of them the authority asks, and
// renews it before it ends.
func TestHTTPS_Pebble(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		processes := 1
		if c.URL != "" {
			processes = 4
		}
		s := newSite(t, 12, processes, true, func(n *node.Config) { n.Database = c.URL })
		first := s.certified(nil)
		require.Equal(t, []string{siteName, "www." + siteName}, first.DNSNames)
		require.EqualValues(t, 1, s.authority.orders.Load(), "one order for all processes")
		_, _, err := s.get("", "other.example")
		require.Error(t, err)
		s.certified(first)
		require.LessOrEqual(t, s.authority.orders.Load(), int64(4), "about one order for each life")

		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		plain := fmt.Sprintf("http://127.0.0.1:%d", s.http)
		res := must.Get(client.Get(plain + "/board?kind=offer"))(t)
		res.Body.Close()
		require.Equal(t, 301, res.StatusCode)
		require.Equal(t, "https://"+siteName+"/board?kind=offer", res.Header.Get("Location"))
		res = must.Get(client.Post(plain+"/api/public/board", "application/json", strings.NewReader("{}")))(t)
		res.Body.Close()
		require.Equal(t, 403, res.StatusCode)
		res = must.Get(client.Get(plain + "/.well-known/acme-challenge/none"))(t)
		res.Body.Close()
		require.Equal(t, 404, res.StatusCode)
	})
}

// TestHTTPS_Plain: where the authority does not reach the HTTPS address, the second try proves the name on the other one.
func TestHTTPS_Plain(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3600, 1, false, func(c *node.Config) {
		db := must.Get(storage.Open(t.Context(), storage.Config{Path: filepath.Join(c.Data, "stoa.db")}))(t)
		require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Certificates().Put(ctx, storage.Certificate{Name: siteName, Sealed: []byte{}, Failures: 1})
		}))
		require.NoError(t, db.Close())
	})
	require.Equal(t, siteName, s.certified(nil).DNSNames[0])
}
