package clients

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol/must"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// A machine is a root file system that has the program, in which it runs as a user of its own, and a person before a browser.
type machine struct {
	t                    *testing.T
	dir                  string
	authority            *authority
	plain, safe, private int                          // ports
	command              func(words string) *exec.Cmd // in the file system
	settings             []string                     // of the environment, that make the node listen on the ports and order from the authority
}

// machineAt has an authority for the file system that a variable of the environment names; .ci/debian makes it.
func machineAt(t *testing.T, env string) *machine {
	m := &machine{t: t, dir: os.Getenv(env), plain: freePort(t), safe: freePort(t), private: freePort(t)}
	if m.dir == "" {
		t.Skipf("%s names no root file system: nothing was installed (.ci/debian makes one)", env)
	}
	m.authority = newAuthority(t, m.plain, m.safe, 3600)
	m.settings = []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "STOA_ACME_DIRECTORY=" + m.authority.directory,
		fmt.Sprintf("STOA_LISTEN=127.0.0.1:%d", m.safe), fmt.Sprintf("STOA_HTTP_LISTEN=127.0.0.1:%d", m.plain),
		fmt.Sprintf("STOA_OPERATOR_LISTEN=127.0.0.1:%d", m.private),
	}
	return m
}

// in is a command of the host with the settings.
func (m *machine) in(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = m.settings
	return c
}

// runs runs a command to its end and returns what it said.
func (m *machine) runs(c *exec.Cmd) string {
	m.t.Helper()
	out, err := c.CombinedOutput()
	require.NoError(m.t, err, "%s\n%s", c, out)
	return string(out)
}

// serves starts the node and returns the link that it prints for the first operator. It is stopped as systemd does.
func (m *machine) serves(words string) (link string) {
	m.t.Helper()
	c := m.command(words)
	out := must.Get(c.StdoutPipe())(m.t)
	c.Stderr = os.Stderr
	require.NoError(m.t, c.Start())
	m.t.Cleanup(func() {
		require.NoError(m.t, c.Process.Signal(syscall.SIGTERM))
		require.NoError(m.t, c.Wait())
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), siteURL+"/operator?ticket=") {
			go io.Copy(io.Discard, out)
			return lines.Text()
		}
	}
	m.t.Fatalf("the node ended before it printed a link: %v", lines.Err())
	return ""
}

// certified waits for the node's page over HTTPS, with a certificate of the authority, and returns what a browser needs to trust its issuer.
func (m *machine) certified() (issuer string) {
	m.t.Helper()
	s := &site{t: m.t, authority: m.authority, safe: []string{fmt.Sprintf("127.0.0.1:%d", m.safe)}}
	s.certified(nil)
	var res *http.Response
	require.Eventually(m.t, func() (served bool) {
		var err error
		res, _, err = s.get(s.safe[0], siteName)
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	sum := sha256.Sum256(res.TLS.PeerCertificates[1].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// person opens a browser that makes passkeys.
func (m *machine) person(issuer string) *nodetest.Tab {
	b := nodetest.OpenBrowser(m.t, siteURL, chromedp.Flag("ignore-certificate-errors-spki-list", issuer),
		chromedp.Flag("host-resolver-rules", fmt.Sprintf("MAP %s:443 127.0.0.1:%d, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", siteName, m.safe)))
	must.Get(chromedp.Call(b.Ctx, webauthn.Enable, webauthn.EnableParams{}))(m.t)
	must.Get(chromedp.Call(b.Ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true,
	}}))(m.t)
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
	m.settings = append(m.settings, "STOA_DATA=/var/lib/stoa", "TMPDIR=/var/lib/stoa", "STOA_DOMAIN="+siteName, "STOA_ALLOW_PRIVATE_PEERS=true")
	m.command = func(words string) *exec.Cmd {
		return m.in("unshare", "--mount", "sh", "-c", `set -e
			mount --bind "$0" "$0"
			mount --bind "$0/var/lib/stoa" "$0/var/lib/stoa"
			mount -o remount,bind,ro "$0"
			exec chroot --userspec=65532:65532 "$0" /usr/bin/stoa `+words, m.dir)
	}
	m.opens(m.serves("serve"))
	require.Contains(t, m.runs(m.command("health")), "ready")
	t.Logf("root file system → page, operator, shop, answer: %s", time.Since(begin).Round(time.Second))
}
