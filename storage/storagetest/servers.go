package storagetest

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Server is a PostgreSQL server of a test's own, on loopback, with an empty database stoa of the role stoa. It may be killed,
// frozen, and made a primary; its data is in memory where that is possible.
type Server struct {
	Address string // host:port

	t       testing.TB
	dir     string
	mu      sync.Mutex // guards command
	command *exec.Cmd
	log     bytes.Buffer
}

// Binaries is the directory of the programs of the newest PostgreSQL server, "" where there is none.
var Binaries = sync.OnceValue(func() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(dirs)
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir
		}
	}
	return ""
})

// Primary starts a server that takes writes. The test is skipped where PostgresEnv is empty, as all of PostgreSQL.
func Primary(t testing.TB) *Server {
	t.Helper()
	if os.Getenv(PostgresEnv) == "" {
		t.Skip("needs " + PostgresEnv)
	}
	if Binaries() == "" {
		t.Fatal("the programs of PostgreSQL's server are missing: install the package postgresql")
	}
	s := newServer(t)
	s.run("initdb", "-D", s.dir, "-U", "stoa", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	s.Start()
	db := s.Open("postgres")
	if _, err := db.Exec(`CREATE DATABASE stoa`); err != nil {
		t.Fatal(err)
	}
	return s
}

// Standby starts a server that follows this one. With synchronous, nothing is committed from then on that it does not have.
func (s *Server) Standby(synchronous bool) *Server {
	s.t.Helper()
	to := newServer(s.t)
	host, port, _ := net.SplitHostPort(s.Address)
	to.run("pg_basebackup", "-D", to.dir, "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-d", fmt.Sprintf("host=%s port=%s user=stoa application_name=standby", host, port))
	to.Start()
	if synchronous {
		s.Exec(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
		s.Exec(`SELECT pg_reload_conf()`)
		db := s.Open("stoa")
		to.until("it is a synchronous standby", func() bool {
			var n int
			return db.QueryRow(`SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`).Scan(&n) == nil && n == 1
		})
	}
	return to
}

func newServer(t testing.TB) *Server {
	t.Helper()
	base := "/dev/shm"
	var fs syscall.Statfs_t
	if err := syscall.Statfs(base, &fs); err != nil || uint64(fs.Bavail)*uint64(fs.Bsize) < 2<<30 {
		base = "/tmp" // where the server's user may go
	}
	dir, err := os.MkdirTemp(base, "stoa-pg-")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Server{t: t, dir: filepath.Join(dir, "data"), Address: l.Addr().String()}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("PostgreSQL on %s:\n%s", s.Address, tailOf(s.log.Bytes()))
		}
		os.RemoveAll(dir)
	})
	if c := asUser(); c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func tailOf(log []byte) []byte { return log[max(0, len(log)-4000):] }

// asUser is whom the server runs as: it refuses to run as root.
func asUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
}

func (s *Server) program(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(Binaries(), name), args...)
	c.Dir = filepath.Dir(s.dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: asUser()}
	return c
}

func (s *Server) run(name string, args ...string) {
	s.t.Helper()
	if out, err := s.program(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, tailOf(out))
	}
}

// Start starts the server, with its data as it is, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.Address)
	c := s.program("postgres", "-D", s.dir, "-k", filepath.Dir(s.dir), "-c", "listen_addresses=127.0.0.1", "-p", port,
		"-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=120", "-c", "hot_standby_feedback=on")
	c.Stdout, c.Stderr = &s.log, &s.log
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.command = c
	s.mu.Unlock()
	db := s.Open("postgres")
	s.until("it takes connections", func() bool { return db.Ping() == nil })
}

func (s *Server) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("PostgreSQL on %s does not come to this: %s", s.Address, what)
		}
	}
}

// URL is the address of the database stoa on servers, of which the one is used that takes writes.
func URL(servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Address)
	}
	return "postgres://stoa@" + strings.Join(hosts, ",") + "/stoa?sslmode=disable&target_session_attrs=read-write"
}

// URL is the address of the database stoa on the server, whether it takes writes or not.
func (s *Server) URL() string { return "postgres://stoa@" + s.Address + "/stoa?sslmode=disable" }

// Open opens a database of the server, whether it takes writes or not, until the end of the test.
func (s *Server) Open(database string) *sql.DB {
	s.t.Helper()
	db, err := sql.Open("pgx", "postgres://stoa@"+s.Address+"/"+database+"?sslmode=disable&connect_timeout=5")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	return db
}

// Exec runs a statement in the database stoa.
func (s *Server) Exec(query string) {
	s.t.Helper()
	db := s.Open("stoa")
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		s.t.Fatal(err)
	}
}

// Promote makes a standby take writes.
func (s *Server) Promote() {
	s.t.Helper()
	s.run("pg_ctl", "promote", "-w", "-D", s.dir)
}

// Kill ends every process of the server at once, as a power cut does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		return
	}
	s.signal(syscall.SIGKILL)
	s.command.Wait()
	s.command = nil
}

// Freeze stops every process of the server: it keeps its connections and does not answer. Thaw continues them.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }
func (s *Server) Thaw()   { s.signal(syscall.SIGCONT) }

// signal sends a signal to the first process of the server and to those that it started.
func (s *Server) signal(what syscall.Signal) {
	first := s.command.Process.Pid
	others, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	if err != nil {
		s.t.Error(err)
	}
	for _, field := range append([]string{strconv.Itoa(first)}, strings.Fields(string(others))...) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(pid, what)
		}
	}
}
