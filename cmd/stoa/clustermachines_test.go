package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// enclosedEnv is set in the process that has a network, mounts and process ids of its own.
const enclosedEnv = "STOA_TEST_ENCLOSED"

// patroniEnv and haproxyEnv name the environment variables with the paths of Patroni and HAProxy.
const (
	patroniEnv = "STOA_TEST_PATRONI"
	haproxyEnv = "STOA_TEST_HAPROXY"
)

// enclosed runs a test again in namespaces of its own, where it is root and the machine is empty; all that it starts and makes there
// ends with it. It reports whether this is that run.
func enclosed(t *testing.T) bool {
	t.Helper()
	if os.Getenv(enclosedEnv) != "" {
		require.NoError(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		require.NoError(t, syscall.Mount("proc", "/proc", "proc", 0, ""))
		shell(t, "ip link set lo up")
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, for namespaces")
	}
	runtime.LockOSThread() // the end of this thread would end the process
	defer runtime.UnlockOSThread()
	// The first process there is a shell, which waits for the orphans too, as PostgreSQL's are.
	c := exec.Command("sh", "-c", `"$0" "$@" & wait $!`, os.Args[0], "-test.v", "-test.timeout=0", "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), enclosedEnv+"=1", BinEnv+"="+bin(t))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return false
}

func shell(t testing.TB, script string) {
	t.Helper()
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	require.NoError(t, err, "%s: %s", script, out)
}

// A machine has an address, a disk and processes of its own.
type machine struct {
	t       testing.TB
	name    string
	address string
	dir     string // of its files
	holder  int    // the process that keeps its namespaces
	said    map[string]*tail
}

// A site is three machines with etcd, Patroni, PostgreSQL and PgBouncer as the files of docs/deploy/cluster have it, and HAProxy on a
// fourth, which is this one.
type site struct {
	t        testing.TB
	machines []*machine
}

const (
	diskSize = 768 << 20
	machines = 3
)

// deployed writes a file of docs/deploy/cluster with replacements, of which each must be in it.
func deployed(t testing.TB, name, to string, replaced ...string) {
	t.Helper()
	text := string(must.Get(os.ReadFile("../../docs/deploy/cluster/" + name))(t))
	for pair := range slices.Chunk(replaced, 2) {
		require.Contains(t, text, pair[0], "%s no longer has what the test replaces", name)
	}
	require.NoError(t, os.WriteFile(to, []byte(strings.NewReplacer(replaced...).Replace(text)), 0o644))
}

// own matches the lines of a file that differ between the machines.
var own = regexp.MustCompile(`(?m)^.*# own$`)

func newSite(t testing.TB, first, second string) *site {
	t.Helper()
	require.NotEmpty(t, storagetest.Binaries(), "the programs of PostgreSQL's server are missing: install the package postgresql")
	shell(t, `ip link add machines type bridge && ip addr add 10.0.0.1/24 dev machines && ip link set machines up
		mkdir -p /run/postgresql /var/lib/etcd /var/lib/postgresql`)
	s := &site{t: t}
	for i := range machines {
		s.machines = append(s.machines, newMachine(t, i))
	}
	for _, m := range s.machines {
		m.start("etcd", "patroni", "pgbouncer")
	}
	c := exec.Command(os.Getenv(haproxyEnv), "-db", "-f", haproxyFile(t, first, second))
	said := new(tail)
	c.Stdout, c.Stderr = said, said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("HAProxy: %s", said)
		}
	})
	return s
}

// haproxyFile is the file for HAProxy before two processes of a node at these addresses. It takes requests without TLS.
func haproxyFile(t testing.TB, first, second string) string {
	t.Helper()
	dir := public(t.TempDir())
	deployed(t, "503.http", filepath.Join(dir, "503.http"))
	file := filepath.Join(dir, "haproxy.cfg")
	deployed(t, "haproxy.cfg", file, "    log /dev/log local0\n    user haproxy\n    group haproxy\n", "",
		"    bind :443 ssl crt /etc/haproxy/stoa.example.pem alpn h2,http/1.1\n    http-request redirect scheme https code 301 unless { ssl_fc }\n", "",
		"/etc/haproxy", dir, "10.0.0.21:8080", first, "10.0.0.22:8080", second)
	return file
}

// public lets every user read a directory.
func public(dir string) string {
	for at := dir; at != "/" && at != "/tmp"; at = filepath.Dir(at) {
		os.Chmod(at, 0o755)
	}
	return dir
}

func newMachine(t testing.TB, i int) *machine {
	t.Helper()
	m := &machine{t: t, name: fmt.Sprint("db", i+1), address: fmt.Sprint("10.0.0.", 11+i), dir: public(t.TempDir()), said: map[string]*tail{}}
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	require.NoError(t, holder.Start())
	m.holder = holder.Process.Pid
	shell(t, fmt.Sprintf(`ip link add %[1]s type veth peer name eth0 netns %[2]d && ip link set %[1]s master machines up
		nsenter -t %[2]d -n -m -u sh -ec 'hostname %[1]s; ip link set lo up; ip addr add %[3]s/24 dev eth0; ip link set eth0 up
			mount -t tmpfs -o size=%[4]d,mode=755 tmpfs /var/lib/postgresql; mount -t tmpfs -o size=256m tmpfs /var/lib/etcd
			mount -t tmpfs tmpfs /run/postgresql; chown postgres: /var/lib/postgresql /var/lib/etcd /run/postgresql'`,
		m.name, m.holder, m.address, diskSize))
	for _, name := range []string{"etcd.yml", "patroni.yml"} {
		at := filepath.Join(m.dir, name)
		deployed(t, name, at)
		text := own.ReplaceAllStringFunc(string(must.Get(os.ReadFile(at))(t)), func(line string) string {
			return strings.NewReplacer("db1", m.name, "10.0.0.11", m.address).Replace(line)
		})
		text = strings.Replace(text, "/usr/lib/postgresql/15/bin", storagetest.Binaries(), 1)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	deployed(t, "pgbouncer.ini", filepath.Join(m.dir, "pgbouncer.ini"), "/etc/pgbouncer", m.dir)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "userlist.txt"), []byte(`"stoa" "change-stoa"`), 0o644))
	t.Cleanup(func() {
		for name, said := range m.said {
			if t.Failed() {
				t.Logf("%s of %s: %s", name, m.name, said)
			}
		}
	})
	return m
}

// start starts programs of the machine, which it runs as the user of PostgreSQL.
func (m *machine) start(names ...string) {
	m.t.Helper()
	programs := map[string][]string{
		"etcd":      {"etcd", "--config-file", filepath.Join(m.dir, "etcd.yml")},
		"patroni":   {os.Getenv(patroniEnv), filepath.Join(m.dir, "patroni.yml")},
		"pgbouncer": {os.Getenv(storagetest.PoolerEnv), filepath.Join(m.dir, "pgbouncer.ini")},
	}
	for _, name := range names {
		// etcd's log of each request would be most of the output.
		c := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.holder), "-n", "-m", "-u", "setpriv", "--reuid=postgres", "--regid=postgres",
			"--clear-groups", "env", "-u", "NOTIFY_SOCKET", "HOME=/var/lib/postgresql", "ETCD_LOG_LEVEL=error"}, programs[name]...)...)
		if m.said[name] == nil {
			m.said[name] = new(tail)
		}
		c.Dir, c.Stdout, c.Stderr = "/", m.said[name], m.said[name]
		require.NoError(m.t, c.Start())
		go c.Wait()
	}
}

// processes are those of the machine, all or those of one program.
func (m *machine) processes(program string) (pids []int) {
	network := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/ns/net", m.holder)))(m.t)
	for _, e := range must.Get(os.ReadDir("/proc"))(m.t) {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == m.holder {
			continue
		}
		of, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if of == network && cmp.Or(program, strings.TrimSpace(string(name))) == strings.TrimSpace(string(name)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends the processes of a program, or of the whole machine, at once.
func (m *machine) kill(program string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		pids := m.processes(program)
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	}, time.Minute, 10*time.Millisecond, "%s of %s does not end", program, m.name)
}

// link connects the machine to the others and to the node, or cuts it off.
func (m *machine) link(up bool) {
	m.t.Helper()
	state := map[bool]string{true: "up", false: "down"}[up]
	shell(m.t, "ip link set "+m.name+" "+state)
}

// fill uses up the disk of PostgreSQL, whose next file of the log then does not fit.
func (m *machine) fill() {
	m.t.Helper()
	m.within("dd if=/dev/zero of=/var/lib/postgresql/full bs=1M 2>/dev/null || true")
}

// within runs a command on the machine.
func (m *machine) within(script string) {
	m.t.Helper()
	shell(m.t, fmt.Sprintf("nsenter -t %d -n -m -u sh -ec '%s'", m.holder, script))
}

// A member is one machine of a cluster as Patroni tells it.
type member struct {
	Name, Role, State string
	Timeline          int
	Lag               any
}

// members asks the machines for the cluster, until one answers.
func (s *site) members() (all []member) {
	for _, m := range s.machines {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r := must.Get(http.NewRequestWithContext(ctx, "GET", "http://"+m.address+":8008/cluster", nil))(s.t)
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			var of struct{ Members []member }
			err = json.NewDecoder(res.Body).Decode(&of)
			res.Body.Close()
			all = of.Members
		}
		cancel()
		if err == nil && len(all) > 0 {
			return all
		}
	}
	return nil
}

// whole waits until every machine has its part and a standby is synchronous, and returns the leader and that standby.
func (s *site) whole() (leader, standby *machine) {
	s.t.Helper()
	var all []member
	if !waits(func() bool {
		all = s.members()
		leader, standby = nil, nil
		running := 0
		for _, of := range all {
			i := slices.IndexFunc(s.machines, func(m *machine) bool { return m.name == of.Name })
			switch {
			case i < 0:
				continue
			case of.Role == "leader" && of.State == "running":
				leader = s.machines[i]
			case of.Role == "sync_standby" && slices.Contains([]string{"running", "streaming"}, of.State):
				standby = s.machines[i]
			}
			if slices.Contains([]string{"running", "streaming"}, of.State) && of.Timeline == all[0].Timeline {
				running++
			}
		}
		return leader != nil && standby != nil && running == machines
	}) {
		s.t.Fatalf("the cluster is not whole: %v", all)
	}
	return leader, standby
}

// led waits for a leader that is as wanted.
func (s *site) led(is func(*machine) bool) {
	s.t.Helper()
	if !waits(func() bool {
		for _, m := range s.machines {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r := must.Get(http.NewRequestWithContext(ctx, "GET", "http://"+m.address+":8008/primary", nil))(s.t)
			res, err := http.DefaultClient.Do(r)
			cancel()
			if err == nil {
				res.Body.Close()
			}
			if err == nil && res.StatusCode == http.StatusOK && is(m) {
				return true
			}
		}
		return false
	}) {
		s.t.Fatalf("no machine becomes the leader: %v", s.members())
	}
}

// waits waits for what takes minutes on a busy machine.
func waits(is func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// psql runs statements on the primary, as the walk of docs/CLUSTER.md does.
func (m *machine) psql(statements string) {
	m.t.Helper()
	c := exec.Command("nsenter", "-t", strconv.Itoa(m.holder), "-n", "-m", "-u", "setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
		filepath.Join(storagetest.Binaries(), "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "/run/postgresql")
	c.Stdin = bytes.NewReader([]byte(statements))
	out, err := c.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}
