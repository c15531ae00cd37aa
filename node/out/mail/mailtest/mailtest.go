// Package mailtest runs the mail server Exim for tests, with a configuration of its own on a port of
// this machine. The server delivers what is not for the node into files.
package mailtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Server is a mail server of this machine. It knows everybody, but nobody called unknown, stranger
// (550), later (450), or gone, which the next server says.
type Server struct {
	Addr   string // host:port of SMTP
	Socket string // of the LMTP receiver to which it hands over what is for node.example; Let opens it

	letters string // folder of what it has delivered
	group   int
}

// Start starts a server, and skips the test where there is none, or it may not be started. It ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	program := os.Getenv("STOA_TEST_EXIM")
	if program == "" || os.Getuid() != 0 {
		t.Skip("STOA_TEST_EXIM=$(.ci/exim) names an Exim, which only root may start")
	}
	dir, err := os.MkdirTemp("", "stoa-exim-") // short, since Exim limits lengths of paths, and open to its user
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, 10*time.Second, 20*time.Millisecond, "its last process ends")
	})
	s := &Server{Socket: filepath.Join(dir, "lmtp"), letters: filepath.Join(dir, "letters")}
	for _, d := range []string{s.letters, filepath.Join(dir, "spool"), filepath.Join(dir, "log")} {
		require.NoError(t, os.Mkdir(d, 0o777))
		require.NoError(t, os.Chmod(d, 0o777))
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	daemon, err := user.Lookup("daemon")
	require.NoError(t, err)
	s.group, err = strconv.Atoi(daemon.Gid)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Addr = l.Addr().String()
	require.NoError(t, l.Close())
	_, port, _ := net.SplitHostPort(s.Addr)
	config := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, eximConfig, port, dir, dir, dir, s.Socket, port, s.letters), 0o644))
	c := exec.Command(program, "-bdf", "-q1m", "-C", config)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log", "main"))
			t.Logf("%s", log)
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	return s
}

// Let lets the server use the socket, as a member of its group.
func (s *Server) Let(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Chown(s.Socket, 0, s.group))
}

// Next waits for a letter that was delivered, and returns and removes it.
func (s *Server) Next(t *testing.T) (raw []byte) {
	t.Helper()
	require.Eventually(t, func() bool {
		var ok bool
		raw, ok = s.take()
		return ok
	}, time.Minute, 20*time.Millisecond)
	return raw
}

// Rest returns and removes what was delivered.
func (s *Server) Rest() (all [][]byte) {
	for {
		raw, ok := s.take()
		if !ok {
			return all
		}
		all = append(all, raw)
	}
}

func (s *Server) take() ([]byte, bool) {
	files, _ := filepath.Glob(filepath.Join(s.letters, "q*"))
	if len(files) == 0 {
		return nil, false
	}
	raw, err := os.ReadFile(files[0])
	return raw, err == nil && os.Remove(files[0]) == nil
}

const eximConfig = `
primary_hostname = mail.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = %s
spool_directory = %s/spool
log_file_path = %s/log/%%s
pid_file_path = %s/pid
exim_user = daemon
exim_group = daemon
never_users =
keep_environment =
disable_ipv6 = true
host_lookup =
rfc1413_query_timeout = 0s
dkim_verify_signers =
tls_advertise_hosts =
queue_only = false
bounce_return_size_limit = 10k
acl_smtp_rcpt = check
begin acl
check:
  deny local_parts = unknown
       message = 5.1.1 There is no secret@example.org here
  deny local_parts = stranger
       message = 5.7.1 relaying denied
  deny local_parts = gone
       condition = ${if eq{$sender_helo_name}{mail.example}}
       message = 5.1.1 No such user
  defer local_parts = later
  accept
begin routers
node:
  driver = accept
  domains = node.example
  local_part_suffix = +*
  local_part_suffix_optional
  transport = node
gone:
  driver = accept
  local_parts = gone
  transport = next
all:
  driver = accept
  transport = file
begin transports
node:
  driver = lmtp
  socket = %s
  rcpt_include_affixes
  user = daemon
  group = daemon
next:
  driver = smtp
  hosts = 127.0.0.1
  allow_localhost
  hosts_override
  port = %s
file:
  driver = appendfile
  directory = %s
  maildir_format = false
  user = daemon
  group = daemon
  mode = 0644
  delivery_date_add
  envelope_to_add
  return_path_add
begin retry
* * F,1h,1m
`
