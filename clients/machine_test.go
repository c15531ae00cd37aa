package clients

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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

func TestMain(m *testing.M) { nodetest.Main(m) }

// A machine is a root file system that has the program, in which it runs as a user of its own, and people before browsers.
type machine struct {
	t         *testing.T
	dir       string
	authority *authority
	safe      string      // the node's HTTPS address
	settings  [][2]string // that make it listen on free ports and order from the authority
}

// machineAt has an authority for the file system that a variable of the environment names; .ci/debian makes it.
func machineAt(t *testing.T, env string) *machine {
	dir, plain, safe := os.Getenv(env), freePort(t), freePort(t)
	if dir == "" {
		t.Skipf("%s names no root file system: nothing was installed (.ci/debian makes one)", env)
	}
	m := &machine{t: t, dir: dir, authority: newAuthority(t, plain, safe, 3600), safe: fmt.Sprintf("127.0.0.1:%d", safe)}
	m.settings = [][2]string{
		{"domain", siteName}, {"acme-directory", m.authority.directory}, {"listen", m.safe},
		{"http-listen", fmt.Sprintf("127.0.0.1:%d", plain)}, {"operator-listen", fmt.Sprintf("127.0.0.1:%d", freePort(t))},
	}
	return m
}

// runs runs a command to its end and returns what it said.
func (m *machine) runs(c *exec.Cmd) string {
	m.t.Helper()
	out, err := c.CombinedOutput()
	require.NoError(m.t, err, "%s\n%s", c, out)
	return string(out)
}

// starts runs the node until the end of the test, and then stops it as systemd does.
func (m *machine) starts(c *exec.Cmd) (says *bufio.Scanner) {
	m.t.Helper()
	out := must.Get(c.StdoutPipe())(m.t)
	c.Stderr = os.Stderr
	require.NoError(m.t, c.Start())
	m.t.Cleanup(func() {
		if c.ProcessState == nil {
			m.stops(c)
		}
	})
	return bufio.NewScanner(out)
}

func (m *machine) stops(c *exec.Cmd) {
	require.NoError(m.t, c.Process.Signal(syscall.SIGTERM))
	require.NoError(m.t, c.Wait())
}

var operatorLink = regexp.MustCompile(siteURL + `/operator\?ticket=\S+`)

// certified waits for the node's page over HTTPS, with a certificate of the authority, and returns what a browser needs to trust its issuer.
func (m *machine) certified() (issuer string) {
	m.t.Helper()
	s := &site{t: m.t, authority: m.authority, safe: []string{m.safe}}
	s.certified(nil)
	var res *http.Response
	require.Eventually(m.t, func() (served bool) {
		var err error
		res, _, err = s.get(m.safe, siteName)
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	sum := sha256.Sum256(res.TLS.PeerCertificates[1].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// person opens a browser that makes passkeys.
func (m *machine) person(issuer string) *nodetest.Tab {
	b := nodetest.OpenBrowser(m.t, siteURL, chromedp.Flag("ignore-certificate-errors-spki-list", issuer),
		chromedp.Flag("host-resolver-rules", fmt.Sprintf("MAP %s:443 %s, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", siteName, m.safe)))
	b.Authenticator()
	return b
}

// opens makes a place of the node in browsers alone: the first operator invites a shop, which opens and answers a message.
func (m *machine) opens(link string) {
	t, issuer := m.t, m.certified()
	operator, owner, visitor := m.person(issuer), m.person(issuer), m.person(issuer)
	require.Equal(t, 200, operator.Open(strings.TrimPrefix(link, siteURL)))
	require.Equal(t, 200, operator.Send(`form[data-by="new-passkey"]`, "name", "Kiran"), operator.Text("main"))
	require.Equal(t, "/account/node", nodetest.Look[string](operator, "location.pathname"))
	require.Equal(t, 200, operator.Open("/account/invitations"))
	require.Equal(t, 200, operator.Send("#create_invitation", "note", "For the shop"))
	invitation := regexp.MustCompile(siteURL + `(/join\?invitation=[A-Za-z0-9_-]{32})`).FindStringSubmatch(operator.Text(".done"))
	require.NotNil(t, invitation, operator.Text("main"))

	require.Equal(t, 200, owner.Open(invitation[1]))
	owner.Fill("#join", "kind", "business", "name", "Rao Tiffins", "handle", "rao-tiffins", "headline", "Office lunch")
	require.Equal(t, 200, owner.Load(chromedp.Click(chromedp.CSS(`#join button[value="passkey"]`))), owner.Text("main"))
	require.Equal(t, 200, owner.Send("#add_passkey", "name", "My phone"), owner.Text("main"))
	require.Equal(t, 200, owner.Open("/account/hours?handle=rao-tiffins"))
	require.Equal(t, 200, owner.Send(`form:has([name="hours-monday"])`, "hours-monday", "9am-9pm"), owner.Text("main"))
	require.Equal(t, 200, owner.Open("/account/items?handle=rao-tiffins&new=1"))
	require.Equal(t, 200, owner.Send(`form:has([name="listAmount"])`, "name", "Thali", "amount", "120"), owner.Text("main"))

	require.Equal(t, 200, visitor.Open("/@rao-tiffins"))
	require.Contains(t, visitor.Text("main"), "Thali")
	require.Equal(t, 200, visitor.Send("#write", "message", "Forty lunches on Monday?", "name", "Meera"))
	thread := nodetest.Look[string](visitor, "location.pathname")
	require.Regexp(t, "^/threads/thr_", thread)
	require.Equal(t, 200, owner.Open("/account"+thread))
	require.Equal(t, 200, owner.Send("#answer", "message", "Yes, at noon."))
	require.Equal(t, 200, visitor.Open(thread))
	require.Contains(t, visitor.Text("main"), "Yes, at noon.")
}

// TestMachine_Container runs the root file system of the container, read-only except for its volume, as its user.
func TestMachine_Container(t *testing.T) {
	m := machineAt(t, "STOA_TEST_ROOTFS")
	begin := time.Now()
	bundle := filepath.Join(m.dir, "etc/ssl/certs/ca-certificates.crt") // where the program looks for the authorities that it trusts
	raw := must.Get(os.ReadFile(bundle))(t)
	require.Greater(t, strings.Count(string(raw), "BEGIN CERTIFICATE"), 100)
	require.NoError(t, os.WriteFile(bundle, append(raw, must.Get(os.ReadFile(m.authority.roots))(t)...), 0o644))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(bundle, raw, 0o644)) })
	inside := func(words string) *exec.Cmd {
		c := exec.Command("unshare", "--mount", "sh", "-c", `set -e
			mount --bind "$0" "$0"
			mount --bind "$0/var/lib/stoa" "$0/var/lib/stoa"
			mount -o remount,bind,ro "$0"
			exec chroot --userspec=65532:65532 "$0" /usr/bin/stoa `+words, m.dir)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "STOA_DATA=/var/lib/stoa", "TMPDIR=/var/lib/stoa", "STOA_ALLOW_PRIVATE_PEERS=true"}
		for _, s := range m.settings {
			c.Env = append(c.Env, "STOA_"+strings.ToUpper(strings.ReplaceAll(s[0], "-", "_"))+"="+s[1])
		}
		return c
	}
	says := m.starts(inside("serve"))
	for says.Scan() && !strings.Contains(says.Text(), "admin account first-operator") {
		require.Empty(t, operatorLink.FindString(says.Text()), "the log of a container has no link")
	}
	go func() {
		for says.Scan() {
		}
	}()
	link := operatorLink.FindString(m.runs(inside("admin account first-operator")))
	require.NotEmpty(t, link)
	m.opens(link)
	require.Contains(t, m.runs(inside("health")), "ready")
	t.Logf("root file system → page, operator, shop, answer: %s", time.Since(begin).Round(time.Second))
}

// TestMachine_Debian installs the package on a bare Debian, sets the node up, and runs what the unit of systemd runs, as its user. After the package is
// removed and purged, the node's data is there.
func TestMachine_Debian(t *testing.T) {
	m := machineAt(t, "STOA_TEST_DEBIAN")
	begin := time.Now()
	shell := func(script string) *exec.Cmd {
		c := exec.Command("unshare", "--mount", "sh", "-ec", `mount -t proc proc "$0/proc"; exec chroot "$0" sh -ec "$1"`, m.dir, script)
		c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
		return c
	}
	require.Contains(t, m.runs(shell("dpkg -i /stoa.deb")), `Run "stoa setup" to begin.`)
	require.Equal(t, "750 stoa stoa\n", m.runs(shell("stat -c '%a %U %G' /var/lib/stoa")))
	roots := filepath.Join(m.dir, "etc/stoa/roots.pem")
	require.NoError(t, os.WriteFile(roots, must.Get(os.ReadFile(m.authority.roots))(t), 0o644))
	setup := "stoa setup --yes --contact ops@stoa.example --acme-roots /etc/stoa/roots.pem"
	for _, s := range m.settings {
		setup += " --" + s[0] + " " + s[1]
	}
	said := m.runs(shell(setup))
	link := operatorLink.FindString(said)
	require.NotEmpty(t, link, said)
	unit := string(must.Get(os.ReadFile(filepath.Join(m.dir, "etc/systemd/system/stoa.service")))(t))
	command := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	require.NotNil(t, command, unit)
	serve := shell("exec setpriv --reuid=stoa --regid=stoa --clear-groups --no-new-privs --bounding-set=-all " + command[1])
	says := m.starts(serve)
	go func() {
		for says.Scan() {
		}
	}()
	m.opens(link)
	require.Contains(t, m.runs(shell("stoa --config /etc/stoa/stoa.toml health")), "ready")
	t.Logf("package → setup, page, operator, shop, answer: %s", time.Since(begin).Round(time.Second))

	require.Contains(t, m.runs(shell("stoa --config /etc/stoa/stoa.toml admin account list")), "Kiran")
	m.stops(serve)
	require.Contains(t, m.runs(shell("dpkg --remove stoa && dpkg --purge stoa")), "is kept in /var/lib/stoa")
	m.runs(shell("test ! -e /etc/stoa && test ! -e /etc/systemd/system/stoa.service && test ! -e /usr/bin/stoa && test -s /var/lib/stoa/stoa.db && id stoa"))
	require.Contains(t, m.runs(shell("dpkg -i /stoa.deb && stoa admin account list --data /var/lib/stoa")), "Kiran")
}
