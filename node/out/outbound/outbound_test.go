package outbound

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"stoa/protocol/must"
)

// serve starts a TLS server with HTTP/2 on loopback and returns a client that
// may reach it.
func serve(t *testing.T, h http.HandlerFunc, o Options) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	o.AllowPrivate = true
	o.RootCAs = x509.NewCertPool()
	o.RootCAs.AddCert(s.Certificate())
	c := New(o)
	t.Cleanup(func() { c.CloseIdleConnections(); s.Close() })
	return s, c
}

func refused(t *testing.T, err error) *Refused {
	t.Helper()
	r, ok := errors.AsType[*Refused](err)
	require.True(t, ok, "want a Refused, got %v", err)
	return r
}

func TestNew_RefusesWithoutDialling(t *testing.T) {
	t.Parallel()
	c := New(Options{Resolver: answers(t, "127.0.0.1")})
	for address, why := range map[string]string{
		"https://127.0.0.1/":               "loopback",
		"https://[::1]/":                   "non-global IPv6",
		"https://[::ffff:169.254.169.254]": "link-local",
		"https://[fe80::1%25lo]/":          "scoped",
		"https://intranet.example/":        "loopback",
		"https://1.1.1.1:22/":              "port 22",
		"https://1.1.1.1:0/":               "port 0",
		"http://1.1.1.1/":                  "want https",
		"ftp://1.1.1.1/":                   "want https",
		"file:///etc/passwd":               "no host",
		"https://user:secret@1.1.1.1/":     "user name",
		"https://localhost/":               "refused", // from the hosts file
	} {
		_, err := c.Get(address)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "secret")
		require.Contains(t, refused(t, err).Error(), why, address)
	}
}

func TestNew_SpeaksHTTP2AndNamesItself(t *testing.T) {
	t.Parallel()
	s, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto+" "+r.UserAgent())
	}, Options{UserAgent: "stoa/1.0 (+https://n1.example)"})
	resp := must.Get(c.Get(s.URL))(t)
	defer resp.Body.Close()
	got := must.Get(io.ReadAll(resp.Body))(t)
	require.Equal(t, "HTTP/2.0 stoa/1.0 (+https://n1.example)", string(got))
}

func TestNew_IgnoresProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	require.Nil(t, New(Options{}).Transport.(*guard).secure.Proxy)
}

// answers is a name server that gives the next address at each question for an
// IPv4 address, or the next ones where a space parts them, and nothing for IPv6.
func answers(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	conn := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { conn.Close() })
	var asked atomic.Int64
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				i := min(int(asked.Add(1)), len(addrs)) - 1
				for addr := range strings.FieldsSeq(addrs[i]) {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
					})
				}
			}
			if raw, err := m.Pack(); err == nil {
				conn.WriteTo(raw, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestNew_DNSAnswerThatSwitches(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s, _ := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) }, Options{})
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c := New(Options{AllowPrivate: true, RootCAs: pool, Resolver: answers(t, "127.0.0.1", "169.254.169.254")})
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	u.Host = "example.com:" + u.Port() // the test certificate's name

	resp := must.Get(c.Get(u.String()))(t)
	resp.Body.Close()
	c.CloseIdleConnections() // the next request has to connect again
	_, err = c.Get(u.String())
	require.Contains(t, refused(t, err).Target, "169.254.169.254")
	require.EqualValues(t, 1, hits.Load())
}

// TestNew_NameOfSeveralAddresses: of a name that also leads where nobody may go,
// the addresses that are fine are connected to and the others never.
func TestNew_NameOfSeveralAddresses(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	s, _ := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) }, Options{})
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	u.Host = "example.com:" + u.Port()
	for i, both := range []string{"169.254.169.254 127.0.0.1", "127.0.0.1 169.254.169.254"} {
		c := New(Options{AllowPrivate: true, RootCAs: pool, Resolver: answers(t, both)})
		resp, err := c.Post(u.String(), "application/json", strings.NewReader("{}"))
		require.NoError(t, err, both)
		resp.Body.Close()
		require.EqualValues(t, i+1, hits.Load())
		c.CloseIdleConnections()
	}
	_, err = New(Options{Resolver: answers(t, "10.0.0.7 127.0.0.1 169.254.169.254")}).Get("https://intranet.example/")
	refused(t, err)
}

func TestNew_PublicNameWithPrivateAddress(t *testing.T) {
	t.Parallel()
	c := New(Options{Resolver: answers(t, "10.0.0.7")})
	_, err := c.Get("https://intranet.example/")
	require.Equal(t, &Refused{Target: "10.0.0.7:443", Reason: "private address"}, refused(t, err))
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var sawSignature atomic.Bool
	s, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Signature") != "" && r.URL.Path != "/signed" || r.Referer() != "" {
			sawSignature.Store(true)
		}
		to := map[string]string{
			"/metadata": "https://169.254.169.254/latest/meta-data/",
			"/plain":    "http://" + r.Host + "/end",
			"/1":        "/2", "/2": "/3", "/3": "/end",
			"/loop": "/loop", "/signed": "/end",
		}[r.URL.Path]
		if to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}, Options{})

	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("Signature", "sig1=:AA==:")
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	_, err := get("/metadata")
	require.Contains(t, refused(t, err).Error(), "link-local")
	_, err = get("/plain")
	require.Contains(t, refused(t, err).Error(), "redirect from https to http")
	_, err = get("/loop")
	require.ErrorIs(t, err, errRedirects)

	sawSignature.Store(false)
	resp := must.Get(get("/signed"))(t)
	require.Equal(t, "/end", resp.Request.URL.Path)
	require.False(t, sawSignature.Load(), "a signature must not travel to another target")

	resp = must.Get(c.Get(s.URL + "/1"))(t)
	resp.Body.Close()
	require.Equal(t, "/end", resp.Request.URL.Path)

	resp = must.Get(c.Post(s.URL+"/1", "application/json", strings.NewReader("{}")))(t)
	resp.Body.Close()
	require.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode, "a POST is not sent elsewhere")
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	s, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			io.WriteString(w, strings.Repeat("x", 1000))
		case "/announced":
			w.Header().Set("Content-Length", "1001")
			io.WriteString(w, strings.Repeat("x", 1001))
		case "/streamed":
			io.WriteString(w, strings.Repeat("x", 1000))
			w.(http.Flusher).Flush()
			io.WriteString(w, "x")
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 10<<20))
			z.Close()
		}
	}, Options{MaxBody: 1000})

	read := func(method, path string) ([]byte, error) {
		req, err := http.NewRequest(method, s.URL+path, nil)
		require.NoError(t, err)
		resp, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return io.ReadAll(resp.Body)
	}
	got, err := read(http.MethodGet, "/exact")
	require.NoError(t, err)
	require.Len(t, got, 1000)
	_, err = read(http.MethodHead, "/announced")
	require.NoError(t, err, "a HEAD answer has no body")
	for _, path := range []string{"/announced", "/streamed", "/bomb"} {
		got, err := read(http.MethodGet, path)
		require.ErrorIs(t, err, ErrBodyTooLarge, path)
		require.LessOrEqual(t, len(got), 1000, path)
	}
}

func TestSlowBodyAndLongHeader(t *testing.T) {
	t.Parallel()
	s, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/header" {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
			return
		}
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the rest never comes
	}, Options{Timeout: 300 * time.Millisecond})
	_, err := c.Get(s.URL + "/header")
	require.Error(t, err)
	resp := must.Get(c.Get(s.URL + "/slow"))(t)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
