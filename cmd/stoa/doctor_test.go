package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A ward is a node behind a TLS proxy under a name of its own, each part of which a test can break.
type ward struct {
	t    *testing.T
	base string
	data string
	node *node.Node
	stop func()

	mu    sync.Mutex // guards all below
	proxy string     // how the proxy errs; "" not at all
	cert  *tls.Certificate
	zone  map[string][]string // "A stoa.test" → its records

	roots *authority
	dns   string // address of the DNS server
	args  []string
}

const wardName = "stoa.test"

func newWard(t *testing.T) *ward {
	w := &ward{t: t, data: t.TempDir(), roots: newAuthority(t), zone: map[string][]string{
		"A " + wardName: {"127.0.0.1"}, "TXT " + wardName: {"v=spf1 a:mail.stoa.test -all"}, "TXT _dmarc." + wardName: {"v=DMARC1; p=reject"},
	}}
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(w.pass))
	proxy.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.cert, nil
	}}
	_, port, _ := net.SplitHostPort(proxy.Listener.Addr().String())
	w.base = "https://" + wardName + ":" + port
	w.certify(wardName, 90*24*time.Hour)
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0)
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	w.serveDNS()
	w.args = []string{"--data", w.data, "--base-url", w.base, "--acme-roots", w.roots.file, "--resolver", w.dns, "--allow-private-peers", "--json"}
	w.start("127.0.0.0/8", buildVersion())
	t.Cleanup(func() { w.stop() })
	return w
}

// start runs the node, with the proxies that it trusts.
func (w *ward) start(trusted, version string) {
	ctx, stop := context.WithCancel(context.Background())
	w.node = must.Get(node.New(ctx, nodetest.Config(w.t, func(c *node.Config) {
		c.Data, c.BaseURL, c.Dev, c.AllowPrivatePeers, c.TrustedProxies, c.Version = w.data, w.base, false, true, []string{trusted}, version
	}), slog.New(slog.DiscardHandler)))(w.t)
	done := make(chan error, 1)
	n := w.node
	go func() { done <- n.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		stop()
		require.NoError(w.t, <-done)
	})
}

// set changes how something errs.
func (w *ward) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// pass is the proxy.
func (w *ward) pass(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	err, to := w.proxy, w.node.URL
	w.mu.Unlock()
	if err == "other" {
		http.Error(rw, "It works!", http.StatusOK)
		return
	}
	target, _ := url.Parse(to)
	(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
		switch err {
		case "host":
			p.Out.Host = target.Host
		case "silent":
			p.Out.Header.Del("X-Forwarded-For")
		case "passes":
		case "path":
			p.Out.URL.RawQuery = ""
		default:
			p.SetXForwarded()
		}
	}}).ServeHTTP(rw, r)
}

// certify has the proxy show a certificate that is valid for as long.
func (w *ward) certify(name string, left time.Duration) {
	cert := w.roots.issue(w.t, name, left)
	w.set(func() { w.cert = &cert })
}

// serveDNS answers from the zone.
func (w *ward) serveDNS() {
	conn := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(w.t)
	w.t.Cleanup(func() { conn.Close() })
	w.dns = conn.LocalAddr().String()
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			if answer, err := w.resolve(m).Pack(); err == nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
}

func (w *ward) resolve(m dnsmessage.Message) *dnsmessage.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	known := false
	for key := range w.zone {
		known = known || strings.HasSuffix(key, " "+name)
	}
	out := &dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
	if !known {
		out.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range w.zone[strings.TrimPrefix(q.Type.String(), "Type")+" "+name] {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}}
		switch q.Type {
		case dnsmessage.TypeA:
			r.Body = &dnsmessage.AResource{A: netip.MustParseAddr(text).As4()}
		case dnsmessage.TypeAAAA:
			r.Body = &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(text).As16()}
		case dnsmessage.TypeTXT:
			var parts []string
			for ; len(text) > 255; text = text[255:] {
				parts = append(parts, text[:255])
			}
			r.Body = &dnsmessage.TXTResource{TXT: append(parts, text)}
		}
		out.Answers = append(out.Answers, r)
	}
	return out
}

// look runs stoa doctor, and returns what it found by code, and its exit status. Checks without a code are there by their name.
func (w *ward) look(more ...string) (found map[string]protocol.Check, code int) {
	w.t.Helper()
	out, errs, code := typed(w.t, "", append(append([]string{"doctor"}, w.args...), more...)...)
	var all protocol.CheckUp
	require.NoError(w.t, json.Unmarshal([]byte(out), &all), "%s%s", out, errs)
	found = map[string]protocol.Check{}
	for _, c := range all.Items {
		name := c.Code
		if name == "" {
			name = c.Name
		}
		found[name] = c
	}
	return found, code
}

// An authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{key: must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t), file: filepath.Join(t.TempDir(), "roots.pem")}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der := must.Get(x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key))(t)
	require.NoError(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

func (a *authority) issue(t *testing.T, name string, left time.Duration) tls.Certificate {
	own := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(left - 90*24*time.Hour), NotAfter: time.Now().Add(left),
		DNSNames: []string{name}}
	der := must.Get(x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, a.key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
}

// TestDoctor: a node that is in order passes, and each fault made on purpose is named, with its mend.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	_, _, code := typed(t, "", "admin", "mail", "key", filepath.Join(w.data, "dkim.pem"))
	require.Equal(t, exitDone, code)
	mail := []string{"--smtp", "mail.stoa.test:587", "--mail-from", "stoa@stoa.test", "--dkim-key", filepath.Join(w.data, "dkim.pem"),
		"--dkim-selector", "s1"}
	line := w.dkimLine(mail)
	w.set(func() { w.zone["TXT s1._domainkey."+wardName] = []string{line} })

	found, code := w.look(mail...)
	require.Equal(t, exitFailed, code, "without a backup")
	for _, name := range []string{"backup-none", "key-uncopied"} {
		require.NotEmpty(t, found[name].Mend, "%s: %v", name, found)
	}
	_, errs, code := typed(t, "", "admin", "backup", filepath.Join(t.TempDir(), "copy.db"), "--data", w.data)
	require.Equal(t, exitDone, code, errs)
	w.keyCopies()
	found, code = w.look(mail...)
	require.Equal(t, exitDone, code, "%v", found)
	for _, name := range []string{"database", "address", "dns", "certificate", "host", "forwarded", "mail", "disk", "master-key", "versions"} {
		require.Equal(t, protocol.CheckOK, found[name].Verdict, "%s: %v", name, found)
	}

	proxy := func(how string) func() { return func() { w.set(func() { w.proxy = how }) } }
	zone := func(name string, records ...string) func() {
		return func() { w.set(func() { w.zone[name] = records }) }
	}
	dated := w.wrongClocks()
	for _, tt := range []struct {
		code, seen string
		fault      func()
		mend       func()
		args       []string
	}{
		{code: "host-changed", seen: "the node got", fault: proxy("host"), mend: proxy("")},
		{code: "host-changed", seen: "/ap/doctor/", fault: proxy("path"), mend: proxy("")},
		{code: "forwarded-missing", seen: "from 127.0.0.1", fault: proxy("silent"), mend: proxy("")},
		{code: "forwarded-passed", seen: "192.0.2.1", fault: proxy("passes"), mend: proxy("")},
		{code: "address-other", seen: "status 200", fault: proxy("other"), mend: proxy("")},
		{code: "dns-missing", seen: wardName, fault: zone("A " + wardName), mend: zone("A "+wardName, "127.0.0.1")},
		{code: "dns-closed", seen: "::1 port", fault: zone("AAAA "+wardName, "::1"), mend: zone("AAAA " + wardName)},
		{code: "dns-private", seen: "loopback", args: []string{"--allow-private-peers=false"}},
		{code: "certificate-expires", seen: "3 days", fault: func() { w.certify(wardName, 4*24*time.Hour-time.Hour) }},
		{code: "certificate-invalid", seen: "other.test", fault: func() { w.certify("other.test", 90*24*time.Hour) },
			mend: func() { w.set(func() { w.cert = nil }) }},
		{code: "certificate-invalid", seen: "tls:", mend: func() { w.certify(wardName, 90*24*time.Hour) }},
		{code: "mail-spf", seen: "no such record", fault: zone("TXT " + wardName), mend: zone("TXT "+wardName, "v=spf1 mx -all")},
		{code: "mail-dkim", seen: "another key", fault: zone("TXT s1._domainkey."+wardName, "v=DKIM1; k=rsa; p=AAAA"),
			mend: zone("TXT s1._domainkey."+wardName, line)},
		{code: "mail-dmarc", seen: "no p=", fault: zone("TXT _dmarc."+wardName, "v=DMARC1; x=1"), mend: zone("TXT _dmarc."+wardName, "v=DMARC1; p=none")},
		{code: "clock-wrong", seen: "behind", args: dated},
		{code: "chain-silent", seen: "chain 1", args: dated},
		{code: "backup-old", seen: "9 days ago", fault: func() { w.backupOf(9) }, mend: func() { w.backupOf(0) }},
		{code: "forwarded-untrusted", seen: "127.0.0.1", fault: func() { w.restart("10.0.0.0/8", buildVersion()) }},
		{code: "versions-restart", seen: "0.0.1", fault: func() { w.restart("127.0.0.0/8", "0.0.1") }},
		{code: "address-silent", seen: "502", fault: func() { w.stop() }},
		{code: "database-closed", seen: "does not exist", args: []string{"--data", filepath.Join(w.data, "nowhere")}},
	} {
		if tt.fault != nil {
			tt.fault()
		}
		found, code := w.look(append(mail, tt.args...)...)
		c, named := found[tt.code]
		require.True(t, named, "%s: %v", tt.code, found)
		require.Contains(t, c.Seen, tt.seen, tt.code)
		require.NotEmpty(t, c.Mend)
		if c.Verdict == protocol.CheckFault {
			require.Equal(t, exitFailed, code, tt.code)
		}
		if tt.mend != nil {
			tt.mend()
		}
	}
	out, _, _ := typed(t, "", append([]string{"doctor"}, slices.DeleteFunc(slices.Clone(w.args), func(s string) bool { return s == "--json" })...)...)
	require.Regexp(t, `(?m)^fault +address +The public address does not answer\.$`, out)
	require.Contains(t, out, "→ Start stoa serve")
}

// dkimLine is the value of the record that mail check wants.
func (w *ward) dkimLine(mail []string) string {
	out, _, _ := typed(w.t, "", append([]string{"admin", "mail", "check", "--json"}, mail...)...)
	var records struct {
		Items []struct{ Purpose, Line string }
	}
	require.NoError(w.t, json.Unmarshal([]byte(out), &records), out)
	for _, r := range records.Items {
		if r.Purpose == "DKIM" {
			_, value, _ := strings.Cut(r.Line, `"`)
			return strings.ReplaceAll(strings.TrimSuffix(value, `"`), `" "`, "")
		}
	}
	w.t.Fatal(out)
	return ""
}

// keyCopies: what is not a copy of the key is refused, and a copy is noted.
func (w *ward) keyCopies() {
	master := filepath.Join(w.data, "master.key")
	other := filepath.Join(w.t.TempDir(), "other.key")
	must.Get(key.LoadOrCreateMaster(other))(w.t)
	raw := must.Get(os.ReadFile(master))(w.t)
	for _, tt := range []struct{ file, stdin, says string }{
		{master, "", "itself"}, {other, "", "another key"}, {"-", "secret", "no master key"},
	} {
		out, errs, code := typed(w.t, tt.stdin, "doctor", "--data", w.data, "--base-url", w.base, "--key-copied", tt.file)
		require.NotEqual(w.t, exitDone, code)
		require.Contains(w.t, errs, tt.says)
		require.NotContains(w.t, out+errs, strings.TrimSpace(string(raw)))
	}
	out, errs, code := typed(w.t, string(raw), "doctor", "--data", w.data, "--base-url", w.base, "--key-copied", "-")
	require.Equal(w.t, exitDone, code, errs)
	require.NotContains(w.t, out+errs, strings.TrimSpace(string(raw)))
}

// wrongClocks are settings with two chain endpoints that answer nothing but with a date an hour ahead.
func (w *ward) wrongClocks() []string {
	ahead := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			http.Error(rw, "no", http.StatusNotFound)
		}))
		w.t.Cleanup(s.Close)
		return s.URL
	}
	return []string{"--chain", "1=" + ahead() + "|" + ahead() + ",0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
}

// backupOf makes the last backup one of so many days ago.
func (w *ward) backupOf(days int) {
	require.NoError(w.t, w.node.DB.Write(w.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		return tx.Settings().Put(ctx, "backup", tx.Now.AddDate(0, 0, -days).Format(time.RFC3339))
	}))
}

func (w *ward) restart(trusted, version string) {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(trusted, version)
}
