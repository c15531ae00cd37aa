package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// steppedEnv names a build of the program whose wall clock a signal sets an hour ahead; "" where there is none.
const steppedEnv = "STOA_TEST_STEPPED"

// TestCluster is the cluster of docs/CLUSTER.md under load, while one part after the other fails: the machine of the primary, a process
// of the node, the primary's PgBouncer, a member of etcd, the network of the primary's machine, its disk, and the clock of a process.
// Each time writes continue by themselves. Every request is answered in time, and never with 500; what was acknowledged is there, once.
func TestCluster(t *testing.T) {
	if os.Getenv("STOA_TEST_ROUNDS") != "all" {
		return // make soak sets it
	}
	if os.Getenv(enclosedEnv) == "" {
		t.Setenv(steppedEnv, stepped(t))
	}
	if !enclosed(t) {
		return
	}
	port := freePorts(t, 2)
	s := newSite(t, fmt.Sprint("127.0.0.1:", port), fmt.Sprint("127.0.0.1:", port+10))
	leader, _ := s.whole()
	leader.psql("CREATE ROLE stoa LOGIN PASSWORD 'change-stoa';\nCREATE DATABASE stoa OWNER stoa;")
	const of = "postgres://stoa:change-stoa@127.0.0.1:%d/stoa?sslmode=disable&default_query_exec_mode=exec"
	l, end := newLoadOn(t, port, fmt.Sprintf(of, 5000), "--database-replica", fmt.Sprintf(of, 5001))
	l.pause = time.Second
	l.saw.next = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:80")
	}}
	var astray atomic.Bool // the clock of a process is or was: it refuses signatures, and for a minute who sent many of them
	l.again = func(code protocol.Code) bool { return astray.Load() && code != "" }
	l.start()
	l.more(3)

	all := []string{posts, bids, meetings}
	fails := func(what string, do func()) {
		t.Helper()
		l.mu.Lock()
		first := len(l.times)
		l.mu.Unlock()
		began := time.Now()
		do()
		l.moreOf(3, all...)
		t.Logf("%s: %s without a write, in %s", what, l.outage(first).Round(time.Millisecond), time.Since(began).Round(time.Second))
	}
	another := func(than *machine) { t.Helper(); s.led(func(m *machine) bool { return m != than }) }

	leader, _ = s.whole()
	fails("the machine of the primary loses its power", func() { leader.kill(""); another(leader) })
	leader.start("etcd", "patroni", "pgbouncer")

	fails("a process of the node is killed", func() { l.nodes[1].kill() })
	if program := os.Getenv(steppedEnv); program != "" {
		l.nodes[1].program = program
	}
	l.nodes[1].start()

	leader, _ = s.whole()
	fails("the primary's PgBouncer is killed", func() { leader.kill("pgbouncer"); time.Sleep(2 * time.Second); leader.start("pgbouncer") })
	fails("the etcd next to the primary is killed", func() { leader.kill("etcd") })
	leader.start("etcd")

	leader, _ = s.whole()
	fails("the machine of the primary is cut off", func() { leader.link(false); another(leader) })
	leader.link(true)

	leader, _ = s.whole()
	fails("the disk of the primary is full", func() { // PostgreSQL goes on until the log has no room; then another machine takes over
		leader.fill()
		l.refuses()
		leader.within("rm /var/lib/postgresql/full")
	})
	s.whole()

	if l.nodes[1].program == os.Getenv(steppedEnv) {
		fails("the clock of a process is an hour ahead", func() {
			astray.Store(true)
			require.NoError(t, l.nodes[1].command.Process.Signal(syscall.SIGUSR1))
		})
		all = []string{posts, meetings} // a slot whose bid was dated an hour ahead is taken until then
		fails("and right again", func() { require.NoError(t, l.nodes[1].command.Process.Signal(syscall.SIGUSR2)) })
		l.nodes[1].kill() // it still limits who sent it signatures that it refused
		l.nodes[1].start()
	}

	l.streamed()
	end()
	must.Get(l.plain.Exec(`UPDATE job SET run_at = 0 WHERE state = 'waiting' AND (kind = 'refund-bid' OR owner > '' AND run_at > $1)`,
		time.Now().Add(30*time.Minute).UnixMilli()))(t) // as an hour does, also for what the process had begun whose clock was ahead
	t.Logf("answers %v, the longest after %s; acknowledged: %d posts, %d bids paid, %d meetings", l.saw.statuses,
		l.saw.longest.Round(time.Millisecond), len(l.done[posts]), len(l.done[bids]), len(l.done[meetings]))
	require.Less(t, l.saw.longest, answerLimit)
	l.holds()
}

// TestCluster_HAProxy: HAProxy takes the file, wherever TestCluster is not run.
func TestCluster_HAProxy(t *testing.T) {
	t.Parallel()
	program := os.Getenv(haproxyEnv)
	if program == "" {
		t.Skipf("%s names no HAProxy (make test installs it)", haproxyEnv)
	}
	out, err := exec.Command(program, "-c", "-f", haproxyFile(t, "127.0.0.1:8080", "127.0.0.1:8090")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// stepped builds the program with testdata/clock, "" where it is not written for the processor.
func stepped(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		return ""
	}
	here, dir := must.Get(os.Getwd())(t), t.TempDir()
	overlay := must.Get(json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "clockstep.go"):      filepath.Join(here, "testdata/clock/clock.go"),
		filepath.Join(here, "clockstep_amd64.s"): filepath.Join(here, "testdata/clock/clock_amd64.s"),
	}}))(t)
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "stoa")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	c := exec.Command("go", "build", "-trimpath", "-overlay", file, "-ldflags", "-s -w -checklinkname=0", "-o", program, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
