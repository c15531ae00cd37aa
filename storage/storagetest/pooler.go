package storagetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// PoolerEnv names the environment variable with the path of PgBouncer. PooledEnv, where it is not empty, makes every test's database
// on PostgreSQL one that is reached through it, in transaction mode.
const (
	PoolerEnv = "STOA_TEST_PGBOUNCER"
	PooledEnv = "STOA_TEST_POOLED"
)

// Pooler starts PgBouncer before the databases of a server, of which through is one, and returns the host and port where it takes
// connections. mode is its pool_mode. The test is skipped where PoolerEnv is empty.
func Pooler(t testing.TB, through, mode string) (address string, end func()) {
	t.Helper()
	program := os.Getenv(PoolerEnv)
	if program == "" {
		t.Skip("needs " + PoolerEnv)
	}
	c, err := pgconn.ParseConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "stoa-pooler-") // where its user may go
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=%s port=%d user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 12
max_client_conn = 2000
server_login_retry = 1
`, c.Host, c.Port, c.User, port, mode), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.Command("sh", "-c", `"$0" "$1" & read end; kill -9 $!; wait`, program, file) // it ends with this process
	command.SysProcAttr = &syscall.SysProcAttr{Credential: asUser()}
	command.Stdout, command.Stderr = &log, &log
	life, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		life.Close()
		command.Wait()
		os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("PgBouncer on %s:\n%s", address, tailOf(log.Bytes()))
		}
	})
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address, end
		}
		if time.Now().After(limit) {
			end()
			t.Fatalf("PgBouncer does not start: %s", &log)
		}
	}
}

var shared struct {
	sync.Mutex
	address string // of the pooler for all tests of this process, which ends with it
	end     func()
}

// pooled is the address of a test's database through the pooler, if PooledEnv asks for that.
func pooled(t testing.TB, url string) string {
	t.Helper()
	if os.Getenv(PooledEnv) == "" {
		return url
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.address == "" {
		shared.address, shared.end = Pooler(t, url, "transaction")
	}
	return Through(t, url, shared.address)
}

// Through is the address of a database through a pooler or proxy before its server.
func Through(t testing.TB, url string, addresses ...string) string {
	t.Helper()
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://" + c.User + "@" + strings.Join(addresses, ",") + "/" + c.Database + "?sslmode=disable&default_query_exec_mode=exec"
}

// SkipPooled skips a test that does on a connection of its own what no pooler allows.
func SkipPooled(t testing.TB) {
	t.Helper()
	if os.Getenv(PooledEnv) != "" {
		t.Skip("not through a pooler")
	}
}
