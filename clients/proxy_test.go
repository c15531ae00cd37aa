package clients

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// A proxied node is reached through a proxy of Debian with its file in docs/deploy.
type proxied struct {
	t          *testing.T
	port, bare int // HTTPS and HTTP of the proxy
	roots      *x509.CertPool
}

// proxies are how each program is run in the foreground with a file of docs/deploy, of which the addresses of the file are replaced.
var proxies = map[string]struct {
	file, env string
	change    func(dir string, p *proxied) []string // what is replaced
	command   func(file string) []string
}{
	"nginx": {
		"nginx.conf", "STOA_TEST_NGINX",
		func(dir string, p *proxied) []string {
			return []string{
				"listen 80;", fmt.Sprintf("listen 127.0.0.1:%d;", p.bare), "listen 443 ", fmt.Sprintf("listen 127.0.0.1:%d ", p.port),
				"    listen [::]:80;\n", "", "    listen [::]:443 ssl http2;\n", "",
				"/etc/ssl/stoa.example.pem", filepath.Join(dir, "both.pem"), "/etc/ssl/private/stoa.example.key", filepath.Join(dir, "both.pem"),
			}
		},
		func(file string) []string { return []string{"-e", "stderr", "-p", filepath.Dir(file), "-c", file} },
	},
	"caddy": {
		"Caddyfile", "STOA_TEST_CADDY",
		func(dir string, p *proxied) []string {
			both := filepath.Join(dir, "both.pem")
			return []string{"stoa.example {", fmt.Sprintf("{\n\tadmin off\n\tauto_https disable_certs\n\thttp_port %d\n\thttps_port %d\n}\n"+
				"stoa.example {\n\tbind 127.0.0.1\n\ttls %s %s", p.bare, p.port, both, both)}
		},
		func(file string) []string { return []string{"run", "--adapter", "caddyfile", "--config", file} },
	},
	"haproxy": {
		"haproxy.cfg", "STOA_TEST_HAPROXY",
		func(dir string, p *proxied) []string {
			return []string{
				"bind :80", fmt.Sprintf("bind 127.0.0.1:%d", p.bare), "bind :443", fmt.Sprintf("bind 127.0.0.1:%d", p.port),
				"/etc/haproxy/stoa.example.pem", filepath.Join(dir, "both.pem"), "    log /dev/log local0\n    user haproxy\n    group haproxy\n", "",
			}
		},
		func(file string) []string { return []string{"-db", "-f", file} },
	},
}

// nginxMain is what nginx.conf of Debian is to a site. Its user is who runs the test, since no other enters the directory of it.
const nginxMain = `user root; daemon off; pid nginx.pid; events {} http { access_log off; client_body_temp_path body; proxy_temp_path proxy;
fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
%s}`

// startProxy runs a proxy before an address until the test ends.
func startProxy(t *testing.T, name, upstream string) *proxied {
	t.Helper()
	of := proxies[name]
	program := os.Getenv(of.env)
	if program == "" {
		t.Skipf("%s names no %s: the file %s was not tried (make test installs it)", of.env, name, of.file)
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	cert, raw := selfSigned(t, siteName)
	p := &proxied{t: t, port: freePort(t), bare: freePort(t), roots: pool(t, raw)}
	secret := must.Get(x509.MarshalPKCS8PrivateKey(cert.PrivateKey))(t)
	both := append(raw, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "both.pem"), both, 0o600))
	text := string(must.Get(os.ReadFile(filepath.Join("../docs/deploy", of.file)))(t))
	replaced := append(of.change(dir, p), "127.0.0.1:8080", upstream)
	for pair := range slices.Chunk(replaced, 2) {
		require.Contains(t, text, pair[0], "%s no longer has what the test replaces", of.file)
	}
	text = strings.NewReplacer(replaced...).Replace(text)
	if name == "nginx" {
		text = fmt.Sprintf(nginxMain, text)
	}
	file := filepath.Join(dir, of.file)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	c := exec.Command(program, of.command(file)...)
	var said bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &said, &said
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		<-ended
	})
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err == nil {
			conn.Close()
			return p
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", name, err, said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// from is a client that speaks HTTP/2 from an address of this machine that is no trusted proxy.
func (p *proxied) from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: p.roots},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			port := p.port
			if strings.HasSuffix(to, ":80") {
				port = p.bare
			}
			return dialer.DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
		}}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

const siteURL = "https://" + siteName

// request makes one whose path and query are sent as they are written.
func (p *proxied) request(method, target string, body []byte, headers ...string) *http.Request {
	r := must.Get(http.NewRequestWithContext(p.t.Context(), method, siteURL+target, bytes.NewReader(body)))(p.t)
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	require.Equal(p.t, target, r.URL.RequestURI())
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return r
}

// signed signs a request.
func (p *proxied) signed(r *http.Request, pair key.Pair, body []byte) *http.Request {
	r.RequestURI = r.URL.RequestURI()
	require.NoError(p.t, httpsig.SignRequest(r, must.Get(httpsig.ParseTarget(siteURL))(p.t), body, httpsig.SignOptions{Key: pair.Signer()}))
	r.RequestURI = ""
	return r
}

// do sends a request and returns the body of the answer, which has a status.
func (p *proxied) do(c *http.Client, r *http.Request, status int) string {
	p.t.Helper()
	res := must.Get(c.Do(r))(p.t)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(p.t)
	require.Equal(p.t, status, res.StatusCode, "%s", raw)
	require.Equal(p.t, 2, res.ProtoMajor)
	return string(raw)
}

// TestProxies runs the proxies of Debian with the files of docs/deploy before a node: signed requests verify, the client's address is
// the one that it has, streams flow and large files pass.
func TestProxies(t *testing.T) {
	t.Parallel()
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := nodetest.Start(t, func(c *node.Config) {
				c.Dev, c.BaseURL, c.TrustedProxies = false, siteURL, []string{"127.0.0.1/32"} // the clients are at other addresses of loopback
				c.AllowPrivatePeers, c.NoProbes, c.WriteRate = true, true, 0.001
			})
			p := startProxy(t, name, strings.TrimPrefix(h.URL, "http://"))
			pair := h.Hosted("asha")
			p.unchanged(name, pair)
			p.streams(pair)
			p.addresses()
			p.large(h.Business("shop", ""))

			res := must.Get(p.from("127.0.0.5").Get("http://" + siteName + "/board?kind=offer"))(t)
			res.Body.Close()
			require.Contains(t, []int{301, 308}, res.StatusCode)
			require.Equal(t, siteURL+"/board?kind=offer", res.Header.Get("Location"))
		})
	}
}

// unchanged sends signed requests to a server that shows what arrives: path and query in every form, and the host.
func (p *proxied) unchanged(name string, pair key.Pair) {
	seen := make(chan *http.Request, 1)
	echo := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			seen <- r
		}
	}))
	p.t.Cleanup(echo.Close)
	through := startProxy(p.t, name, strings.TrimPrefix(echo.URL, "http://"))
	client := through.from("127.0.0.5")
	for _, target := range []string{
		"/a//b/%2F%2f/c%20d;e=1,f/~%7E/@x:y/%E0%A4%95/", "/a/./b/../c?x=%2F%2f//..&y=a+b%20c&y=&=;&z='(!*)'", "/?",
		"/" + strings.Repeat("p%2F", 2000), "/s?" + strings.Repeat("q=%2F&", 1400),
	} {
		r := through.signed(through.request("GET", target, nil), pair, nil)
		through.do(client, r, 200)
		got := <-seen
		require.Equal(p.t, target, got.RequestURI)
		require.Equal(p.t, siteName, got.Host)
		for _, field := range []string{"Signature", "Signature-Input"} {
			require.Equal(p.t, r.Header.Values(field), got.Header.Values(field))
		}
		require.Equal(p.t, []string{"127.0.0.5"}, got.Header.Values("X-Forwarded-For"))
	}
}

// streams reads the feed while something is posted, until the heartbeat after the longest silence.
func (p *proxied) streams(pair key.Pair) {
	client := p.from("127.0.0.5")
	res := must.Get(client.Do(p.request("GET", "/api/public/feed/stream", nil)))(p.t)
	defer res.Body.Close()
	require.Equal(p.t, 200, res.StatusCode)
	body := []byte(`{"kind":"offer","title":"Looms","body":"हथकरघा के दो करघे."}`)
	r := p.signed(p.request("POST", "/api/public/board", body, "Content-Type", "application/json"), pair, body)
	require.Contains(p.t, p.do(client, r, 201), `"profile-key"`)
	lines := bufio.NewScanner(res.Body)
	until := func(prefix string) {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return
			}
		}
		p.t.Fatalf("the stream ended before %q: %v", prefix, lines.Err())
	}
	until("event: board_post")
	until(":")
}

// addresses uses up what each may write, which is one request: what a client writes into X-Forwarded-For changes nothing.
func (p *proxied) addresses() {
	post := func(from, claims string, status int) {
		p.t.Helper()
		r := p.request("POST", "/api/public/board", []byte("{}"), "Content-Type", "application/json")
		if claims != "" {
			r.Header.Set("X-Forwarded-For", claims)
		}
		p.do(p.from(from), r, status)
	}
	post("127.0.0.7", "", 422)
	for _, claims := range []string{"", "127.0.0.8", "127.0.0.8, 127.0.0.1"} {
		post("127.0.0.7", claims, 429)
	}
	post("127.0.0.8", "127.0.0.7", 422)
	post("127.0.0.9", "127.0.0.7, 127.0.0.1", 422)
}

// large sends a catalog and a picture of several MB, and what is too large anywhere else.
func (p *proxied) large(token string) {
	var catalog bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&catalog, `{"sku":"s%d","name":"Cloth","description":%q}`+"\n", i, strings.Repeat("cotton, ", 120))
	}
	said := p.do(p.from("127.0.0.10"), p.request("POST", "/api/owner/merchant/items/import?dryRun=true", catalog.Bytes(), "Content-Type", "application/jsonl",
		"Authorization", "Bearer "+token), 200)
	require.Contains(p.t, said, `"added":4000`)
	said = p.do(p.from("127.0.0.12"), p.request("PUT", "/api/owner/picture", make([]byte, protocol.MaxPictureUpload), "Content-Type", "image/png",
		"Authorization", "Bearer "+token), 422)
	require.Contains(p.t, said, "picture")
	p.do(p.from("127.0.0.11"), p.request("POST", "/api/public/board", catalog.Bytes(), "Content-Type", "application/json"), 413)
}
