package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// SystemdEnv names systemd-analyze; make test sets it.
const SystemdEnv = "STOA_TEST_SYSTEMD"

// localhostCertificate writes a certificate of localhost and its key.
func localhostCertificate(t *testing.T, dir string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	cert, key, roots = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()
	require.NoError(t, os.WriteFile(cert, raw, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(private))(t)}), 0o600))
	require.True(t, roots.AppendCertsFromPEM(raw))
	return cert, key, roots
}

// activated is a command that gets listening sockets as systemd gives them.
func activated(names string, command []string, sockets ...net.Listener) *exec.Cmd {
	c := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, command...)...)
	c.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", len(sockets)), "LISTEN_FDNAMES="+names)
	for _, l := range sockets {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			panic(err)
		}
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	return c
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)

// TestSetup: flags, then the command line of the unit with sockets as systemd gives them, then the link in a browser: an operator, by passkey.
func TestSetup(t *testing.T) {
	t.Parallel()
	root, port := t.TempDir(), freePorts(t, 1)
	cert, key, roots := localhostCertificate(t, root)
	base := fmt.Sprintf("https://localhost:%d", port)
	flags := []string{"setup", "--yes", "--root", root, "--base-url", base, "--tls-cert", cert, "--tls-key", key, "--name", "Our place",
		"--contact", "security@stoa.example", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--http-listen", fmt.Sprintf("127.0.0.1:%d", port+1),
		"--operator-listen="}
	out, errs, code := stoa(t, "", flags...)
	require.Zero(t, code, out+errs)
	require.NotContains(t, out, "FAULT")
	link := regexp.MustCompile(regexp.QuoteMeta(base) + `/operator\?ticket=\S+`).FindString(out)
	require.NotEmpty(t, link, out)
	config := filepath.Join(root, "etc/stoa/stoa.toml")
	require.Equal(t, fs.FileMode(0o640), must.Get(os.Stat(config))(t).Mode())
	units := filepath.Join(root, "etc/systemd/system")
	require.Contains(t, string(must.Get(os.ReadFile(filepath.Join(units, "stoa.socket")))(t)),
		fmt.Sprintf("ListenStream=127.0.0.1:%d\nListenStream=127.0.0.1:%d\n", port, port+1))
	command := execStart.FindStringSubmatch(string(must.Get(os.ReadFile(filepath.Join(units, "stoa.service")))(t)))[1]
	require.Contains(t, out, "\n  "+command+"\n", "what a machine without systemd runs")

	public := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)))(t)
	plain := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1)))(t)
	run := activated("", strings.Fields(command), public, plain)
	var log tail
	run.Stdout, run.Stderr = &log, &log
	require.NoError(t, run.Start())
	t.Cleanup(func() { run.Process.Kill(); run.Wait() })
	for _, f := range run.ExtraFiles {
		require.NoError(t, f.Close())
	}
	require.NoError(t, public.Close(), "from here on the process alone has the sockets")
	require.NoError(t, plain.Close())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(base + "/") // a connection waits until the process takes it
	require.NoError(t, err, log.String())
	res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
	res = must.Get(client.Get(fmt.Sprintf("http://localhost:%d/board", port+1)))(t)
	res.Body.Close()
	require.Equal(t, base+"/board", res.Header.Get("Location"))
	require.Contains(t, log.String(), "no operator yet: stoa admin account first-operator", "its log has no link")
	out, errs, code = stoa(t, "", "--config", config, "serve", "--check")
	require.Zero(t, code, out+errs)
	require.Equal(t, 2, strings.Count(out, "this node listens on"), out)

	require.Eventually(t, func() bool { // the first of each day
		return len(must.Get(filepath.Glob(filepath.Join(root, "var/lib/stoa/backups/localhost*.tar.gz")))(t)) == 1
	}, time.Minute, 20*time.Millisecond, "%s", &log)
	b := nodetest.OpenBrowser(t, base, chromedp.IgnoreCertErrors)
	b.Authenticator()
	require.Equal(t, 200, b.Load(chromedp.Navigate(link)))
	require.Eventually(t, func() bool { return nodetest.Look[bool](b, `!document.querySelector("form[data-by]").hidden`) }, time.Minute, 20*time.Millisecond)
	require.Equal(t, 200, b.Send("form[data-by]", "name", "Kiran"), b.Text("main"))
	require.Equal(t, "/account/node", nodetest.Look[string](b, "location.pathname"))
	require.Contains(t, b.Text(".done"), "You are the operator")
	out, _, code = stoa(t, "", "--config", config, "admin", "--json", "account", "list")
	require.Zero(t, code)
	require.Contains(t, out, `"role": "operator"`)

	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	require.NoError(t, run.Wait(), log.String())
	out, errs, code = stoa(t, "", flags...)
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "has an operator")
	require.NotContains(t, out, "would change", "the same settings again")
	out, errs, code = stoa(t, "", append(flags, "--name", "Other place")...)
	require.Equal(t, 2, code)
	require.Contains(t, out, `+ name = "Other place"`)
	require.Contains(t, errs, "--force")
	require.Contains(t, string(must.Get(os.ReadFile(config))(t)), `name = "Our place"`)
	_, _, code = stoa(t, "", append(flags, "--name", "Other place", "--force")...)
	require.Zero(t, code)
	require.Contains(t, string(must.Get(os.ReadFile(config))(t)), `name = "Other place"`)
}

// TestSetup_Asks: a wrong answer is asked for again, an empty one is the usual; the password is in a file of its own.
func TestSetup_Asks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	answers := []string{"y", "no name", "stoa.example", "", "me@stoa.example", "mysql://x", "", "", "mail.example.org", "127.0.0.1:1", "", "stoa", "its secret"}
	out, errs, code := stoa(t, strings.Join(answers, "\n")+"\n", "setup", "--root", root, "--smtp-security", "none", "--operator-listen=")
	require.Equal(t, 2, code, "no mail server is there")
	require.Contains(t, out, "FAULT smtp")
	require.Contains(t, errs, "the files are written")
	config := string(must.Get(os.ReadFile(filepath.Join(root, "etc/stoa/stoa.toml")))(t))
	for _, line := range []string{`base-url = "https://stoa.example"`, `name = "stoa.example"`, `contact = "mailto:me@stoa.example"`, `#database = ""`,
		`#chain = []`, `smtp = "127.0.0.1:1"`, `mail-from = "stoa@stoa.example"`, `smtp-user = "stoa"`,
		`trusted-proxies = ["127.0.0.0/8","::1/128"]`, `#listen = "127.0.0.1:8080"`} {
		require.Contains(t, config, "\n"+line+"\n")
	}
	require.Equal(t, "its secret\n", string(must.Get(os.ReadFile(filepath.Join(root, "etc/stoa/smtp-password")))(t)))
	require.Contains(t, string(must.Get(os.ReadFile(filepath.Join(root, "etc/systemd/system/stoa.socket")))(t)), "ListenStream=127.0.0.1:8080\n\n")

	_, errs, code = stoa(t, "n\n", "setup", "--root", t.TempDir())
	require.Equal(t, 2, code)
	require.Contains(t, errs, "the answers end here")
	for _, bad := range [][]string{{"--root", t.TempDir() + "/a b", "--domain", "stoa.example"}, {"--domain", "127.0.0.1"}, {},
		{"--domain", "stoa.example", "--contact", "no where"}, {"--domain", "stoa.example", "--user", "a;b"}, {"--domain", "stoa.example", "--data", "/x%n"}} {
		root := t.TempDir()
		_, errs, code = stoa(t, "", append([]string{"setup", "--yes", "--root", root}, bad...)...)
		require.Equal(t, 2, code, "%q %s", bad, errs)
		require.Empty(t, must.Get(os.ReadDir(root))(t))
	}
}

// TestSetup_Units: systemd takes the units, and rates their exposure at 2.5 of 10 at most.
func TestSetup_Units(t *testing.T) {
	t.Parallel()
	analyze := os.Getenv(SystemdEnv)
	if analyze == "" {
		analyze, _ = exec.LookPath("systemd-analyze")
	}
	if analyze == "" {
		t.Skipf("%s names no systemd-analyze and there is none: the units were not judged (make test installs it)", SystemdEnv)
	}
	root := t.TempDir()
	stoa(t, "", "setup", "--yes", "--root", root, "--domain", "stoa.example") // its checks need ports that the machine may not have free
	dir := filepath.Join(root, "etc/systemd/system")
	units := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	require.Len(t, units, 2)
	require.Contains(t, string(must.Get(os.ReadFile(filepath.Join(dir, "stoa.socket")))(t)), "ListenStream=443\nListenStream=80\n")
	judge := func(args ...string) {
		t.Helper()
		command := exec.Command(analyze, args...)
		command.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "Unknown", "a setting that systemd does not know")
	}
	judge(append([]string{"verify", "--man=no"}, units...)...)
	for _, unit := range units {
		if filepath.Ext(unit) == ".service" {
			judge("security", "--offline=true", "--threshold=25", "--no-pager", unit)
		}
	}
}

// TestServe_Sockets: a socket is taken by its name too; one that is for nothing, and what is none, is refused.
func TestServe_Sockets(t *testing.T) {
	t.Parallel()
	listener := func() net.Listener { return must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) }
	command := func() []string {
		return []string{filepath.Join(bin(t), "stoa"), "serve", "--data", t.TempDir(), "--operator-listen=", "--base-url", "http://localhost:1"}
	}
	refused := func(want string, c *exec.Cmd) {
		t.Helper()
		out, err := c.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, c.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), want)
	}
	one, other := listener(), listener()
	refused("no setting listens there", activated("listen:spare", command(), one, other))
	file := activated("listen", command(), one)
	file.ExtraFiles = []*os.File{must.Get(os.Open(os.DevNull))(t)}
	refused("none to listen on", file)
	number := activated("listen", command(), one)
	number.Env = append(number.Env, "LISTEN_FDS=many")
	refused("no number of sockets", number)

	run := activated("listen", command(), one)
	var log tail
	run.Stderr = &log
	require.NoError(t, run.Start())
	res, err := http.Get("http://" + one.Addr().String() + "/healthz")
	require.NoError(t, err, log.String())
	res.Body.Close()
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	require.NoError(t, run.Wait(), log.String())
}
