package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// builds is where the programs of a test run stand, "" while none is built.
var builds string

// BinEnv names the directory with the programs that make built; make test sets it.
const BinEnv = "STOA_TEST_BIN"

// binaries builds both programs once, where make has not: the tests below run the real ones.
var binaries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "stoa-test-")
	if err != nil {
		return "", err
	}
	builds = dir
	for _, build := range []struct{ dir, out, pkg string }{
		{".", "stoa", "."}, {"../devchain", "stoa-devchain", "."},
	} {
		command := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, build.out), build.pkg)
		command.Dir = build.dir
		command.Env = append(os.Environ(), "CGO_ENABLED=0") // what make compiled serves
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", build.out, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if builds != "" {
		os.RemoveAll(builds)
	}
	os.Exit(code)
}

// mostBinary is the size of the stripped program, in bytes.
const mostBinary = 48_000_000

// TestBinary_Size: a call of a method by a name that is computed (reflect.Value.MethodByName, text/template) adds several megabytes,
// because the linker then keeps every exported method of every type that is reached.
func TestBinary_Size(t *testing.T) {
	t.Parallel()
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("the limit is that of linux/amd64")
	}
	info := must.Get(os.Stat(filepath.Join(bin(t), "stoa")))(t)
	t.Logf("%d bytes of %d", info.Size(), mostBinary)
	require.LessOrEqual(t, info.Size(), int64(mostBinary),
		"go build -ldflags=-dumpdep ./cmd/stoa 2>&1 | grep ReflectMethod names such calls; go tool nm -size -sort size what is large")
}

// soon bounds waits that end within a tenth of a second on an idle machine; the
// figures are in docs/PERFORMANCE.md. A machine with ten times as much to do as it has
// cores needs seconds.
const soon = time.Minute

func bin(t testing.TB) string {
	t.Helper()
	return must.Get(binaries())(t)
}

var (
	portsMu sync.Mutex
	claims  []net.Listener // what keeps the ports that freePorts returned
)

// freePorts finds a base port with room for n nodes of the dev command, none of
// which it returned before, here or to another run of the tests: the last port of
// each ten stays in use. A node that is killed finds its port free when it is
// started again, because the system takes the ports of outgoing connections from
// 32768 on (ip_local_port_range).
func freePorts(t testing.TB, n int) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 100 {
		base := 20000 + rand.IntN(1270)*10
		if kept, ok := claim(base, n); ok {
			claims = append(claims, kept...)
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

// claim keeps n times ten ports, if the first two of each ten are free.
func claim(base, n int) (kept []net.Listener, ok bool) {
	free := func(port int) net.Listener {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil
		}
		return l
	}
	for at := base; at < base+10*n; at += 10 {
		last, first, second := free(at+9), free(at), free(at+1)
		for _, l := range []net.Listener{first, second} {
			if l != nil {
				l.Close()
			}
		}
		if last != nil {
			kept = append(kept, last)
		}
		if last == nil || first == nil || second == nil {
			for _, l := range kept {
				l.Close()
			}
			return nil, false
		}
	}
	return kept, true
}

// localWorld is a running `stoa dev --json`.
type localWorld struct {
	devWorld
	t       testing.TB
	command *exec.Cmd
	log     tail
}

func startWorld(t testing.TB, data string, port int) *localWorld {
	t.Helper()
	w := &localWorld{t: t}
	w.command = exec.Command(filepath.Join(bin(t), "stoa"), "dev", "--json", "--data", data, "--port", fmt.Sprint(port))
	stdout := must.Get(w.command.StdoutPipe())(t)
	w.command.Stderr = &w.log
	require.NoError(t, w.command.Start())
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Logf("the world's log ends with:\n%s", &w.log)
		}
	})
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- s
	}()
	select {
	case s := <-line:
		require.NoError(t, json.Unmarshal([]byte(s), &w.devWorld), "%s", &w.log)
	case <-time.After(2 * time.Minute):
		t.Fatalf("the world did not start:\n%s", &w.log)
	}
	return w
}

func (w *localWorld) stop() {
	if w.command.ProcessState != nil {
		return
	}
	w.command.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { w.command.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		w.command.Process.Kill()
		<-done
		w.t.Errorf("the world did not end within a minute of SIGTERM:\n%s", &w.log)
	}
}

func (w *localWorld) agent(handle string) devAgent {
	w.t.Helper()
	for _, a := range w.Agents {
		if a.Handle == handle {
			return a
		}
	}
	w.t.Fatalf("no agent %s", handle)
	return devAgent{}
}

// as is a client of node i that signs as an agent.
func (w *localWorld) as(i int, handle string) *client.Client {
	w.t.Helper()
	a := w.agent(handle)
	raw := must.Get(os.ReadFile(*a.Key))(w.t)
	pair := must.Get(key.ParsePair(raw))(w.t)
	o := client.Options{Key: pair}
	if a.ERC8004 != nil {
		o.AgentID = *a.ERC8004
	}
	return must.Get(client.New(w.Nodes[i].URL, o))(w.t)
}

func (w *localWorld) anonymous(i int) *client.Client {
	w.t.Helper()
	return must.Get(client.New(w.Nodes[i].URL, client.Options{}))(w.t)
}

// registrar writes to the chain as the owner of the seeded identity.
func (w *localWorld) registrar() (*erc8004.Registrar, *registryAccount) {
	w.t.Helper()
	file := filepath.Join(filepath.Dir(w.Nodes[0].Data), "wallet")
	f := onChainFlags{Chain: fmt.Sprintf("%d=%s,%s", w.Chain.ChainID, w.Chain.RPC, w.Chain.IdentityRegistry), Wallet: file}
	o := must.Get(f.open(io.Discard))(w.t)
	return o.registrar, o
}

func post(t testing.TB, c *client.Client, in protocol.NewPost) protocol.Post {
	t.Helper()
	return must.Get(tryPost(c, in))(t)
}

func tryPost(c *client.Client, in protocol.NewPost) (protocol.Post, error) {
	args := map[string]any{"kind": string(in.Kind), "title": in.Title, "body": in.Body}
	if in.Name != "" {
		args["name"] = in.Name
	}
	if in.InReplyTo != "" {
		args["inReplyTo"] = in.InReplyTo
	}
	if in.Tags != nil {
		args["tags"] = in.Tags
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := c.Call(ctx, "post_to_board", args)
	if err != nil {
		return protocol.Post{}, err
	}
	var p protocol.Post
	return p, json.Unmarshal(res.Body, &p)
}

// get fetches a URL and decodes it into a T; it gives the status too.
func get[T any](t testing.TB, url string) (T, int) {
	t.Helper()
	res := must.Get(http.Get(url))(t)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(t)
	var v T
	if res.StatusCode == http.StatusOK {
		require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	}
	return v, res.StatusCode
}

func board(t testing.TB, node, query string) []protocol.Post {
	t.Helper()
	page, status := get[protocol.Page[protocol.Post]](t, node+"/api/public/board?limit=100"+query)
	require.Equal(t, 200, status)
	return page.Items
}

func findURI(posts []protocol.Post, uri string) *protocol.Post {
	for i := range posts {
		if posts[i].URI == uri {
			return &posts[i]
		}
	}
	return nil
}

// arrives waits until a post is on a node's board.
func arrives(t testing.TB, node, uri string, within time.Duration) protocol.Post {
	t.Helper()
	var found *protocol.Post
	require.Eventually(t, func() bool {
		found = findURI(board(t, node, ""), uri)
		return found != nil
	}, within, 20*time.Millisecond, "%s never came to %s", uri, node)
	return *found
}

// stoa runs the real program and returns its output and exit status.
func stoa(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.Command(filepath.Join(bin(t), "stoa"), args...)
	command.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}
