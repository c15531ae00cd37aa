// Package storagetest gives tests fresh databases: SQLite always, PostgreSQL
// where a cluster is named. It starts servers only
// for tests that ask for one of their own (Primary).
package storagetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stoa/storage"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// PostgresEnv names the environment variable with the postgres:// URL of a
// cluster in which tests may make and drop databases.
const PostgresEnv = "STOA_TEST_POSTGRES"

// Seed is what random tests begin with: always 1, or the number in STOA_TEST_SEED,
// or where that is "new" another one each time. It is printed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	switch s := os.Getenv("STOA_TEST_SEED"); s {
	case "":
	case "new":
		seed = uint64(time.Now().UnixNano())
	default:
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

// Rounds is how many of the rounds of a random test are run, printed: a quarter, or
// with "all" in STOA_TEST_ROUNDS all of them, as make soak does, with a number that many.
func Rounds(t testing.TB, all int) int {
	t.Helper()
	n := max(1, all/4)
	if text := os.Getenv("STOA_TEST_ROUNDS"); text == "all" {
		n = all
	} else if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("STOA_TEST_ROUNDS is all or a number from 1, not %q", text)
		}
	}
	t.Logf("%d of %d rounds", n, all)
	return n
}

// Open returns a fresh, migrated SQLite database that is closed with the test.
func Open(t testing.TB) *storage.DB { return OpenConfig(t, storage.Config{}) }

// OpenConfig is Open with a clock, a log or a queue length. A path or a URL that is set
// stays; otherwise the file is in the test's directory.
func OpenConfig(t testing.TB, c storage.Config) *storage.DB {
	t.Helper()
	if c.Path == "" && c.URL == "" {
		c.Path = filepath.Join(Dir(t), "stoa.db")
		Migrated(t, c.Path)
	}
	return open(t, c)
}

// Dir is a directory for the data of a node, which is removed with the test: more than once where a connection that was being opened
// while its database was closed (package database/sql does not wait for it) makes a file in it meanwhile.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stoa-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

// Migrated writes a fresh, migrated SQLite database to a path where no file is.
func Migrated(t testing.TB, path string) {
	t.Helper()
	file, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// template migrates once a process and keeps the bytes of the file.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stoa-template")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stoa.db")
	db, err := storage.Open(context.Background(), storage.Config{Path: path})
	if err != nil {
		return nil, err
	}
	// The last connection to close moves the write-ahead log into the file.
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func open(t testing.TB, c storage.Config) *storage.DB {
	t.Helper()
	db, err := storage.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Each runs fn on a fresh SQLite database and, where STOA_TEST_POSTGRES is set,
// on a fresh PostgreSQL database.
func Each(t *testing.T, fn func(t *testing.T, db *storage.DB)) {
	EachConfig(t, func(t *testing.T, c storage.Config) { fn(t, open(t, c)) })
}

// EachConfig is Each for tests that open the database themselves, or twice.
func EachConfig(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(Dir(t), "stoa.db")
		Migrated(t, path)
		fn(t, storage.Config{Path: path})
	})
	if os.Getenv(PostgresEnv) == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, storage.Config{URL: PostgresURL(t), Parts: t.TempDir()})
	})
}

// Any is EachConfig for what the database's engine cannot matter to, because other tests run the same statements on both: SQLite,
// and PostgreSQL too where STOA_TEST_ENGINES is "all", as CI has it.
func Any(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	if os.Getenv("STOA_TEST_ENGINES") == "all" {
		EachConfig(t, fn)
		return
	}
	path := filepath.Join(Dir(t), "stoa.db")
	Migrated(t, path)
	fn(t, storage.Config{Path: path})
}

// PostgresURL makes a fresh, migrated database in the cluster of
// STOA_TEST_POSTGRES, drops it with the test, and returns its address.
func PostgresURL(t testing.TB) string {
	t.Helper()
	name, err := postgresTemplate()
	if err != nil {
		t.Fatal(err)
	}
	return postgres(t, name)
}

// EmptyPostgresURL is PostgresURL for tests of migrations: the database has no
// table yet.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return postgres(t, "template0")
}

func postgres(t testing.TB, template string) string {
	t.Helper()
	u, err := url.Parse(os.Getenv(PostgresEnv))
	if err != nil || u.Scheme == "" {
		t.Fatalf("%s is not a postgres:// URL", PostgresEnv)
	}
	admin, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + random("stoa_test_")
	q := u.Query()
	q.Set("connect_timeout", "60") // seconds: the machine may be busy with other tests
	u.RawQuery = q.Encode()
	if err := create(context.Background(), admin, u.Path[1:], template); err != nil {
		admin.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer admin.Close()
		if _, err := admin.Exec(`DROP DATABASE IF EXISTS ` + u.Path[1:] + ` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	return pooled(t, u.String())
}

// postgresTemplate migrates once a cluster and set of migrations. The database
// stays in the cluster for the next package's tests.
var postgresTemplate = sync.OnceValues(func() (string, error) {
	u, err := url.Parse(os.Getenv(PostgresEnv))
	if err != nil {
		return "", err
	}
	files, err := storage.Migrations("postgres")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	all, err := fs.ReadDir(files, ".")
	for _, f := range all {
		text, failed := fs.ReadFile(files, f.Name())
		fmt.Fprintf(hash, "%s %d\n%s", f.Name(), len(text), text)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return "", err
	}
	name := "stoa_template_" + hex.EncodeToString(hash.Sum(nil)[:8])

	ctx := context.Background()
	admin, err := sql.Open("pgx", u.String())
	if err != nil {
		return "", err
	}
	defer admin.Close()
	// One process makes the template, the others wait for it on the lock, which
	// belongs to this connection.
	conn, err := admin.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock(hashtext('stoa_template'))`); err != nil {
		return "", err
	}
	defer conn.ExecContext(ctx, `SELECT pg_advisory_unlock_all()`)
	var exists bool
	if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil || exists {
		return name, err
	}
	// The name appears only once the tables are complete.
	draft := random("stoa_draft_")
	if err := create(ctx, conn, draft, "template0"); err != nil {
		return "", err
	}
	u.Path = "/" + draft
	db, err := storage.Open(ctx, storage.Config{URL: u.String()})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		conn.ExecContext(ctx, `DROP DATABASE `+draft+` WITH (FORCE)`)
		return "", err
	}
	_, err = conn.ExecContext(ctx, `ALTER DATABASE `+draft+` RENAME TO `+name)
	return name, err
})

// create makes a database as a copy of the template's files. PostgreSQL 15 and newer
// write them to the log too unless told not to, which takes twice as long.
func create(ctx context.Context, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, name, template string) error {
	query := `CREATE DATABASE ` + name + ` ENCODING 'UTF8' TEMPLATE ` + template
	_, err := on.ExecContext(ctx, query+` STRATEGY file_copy`)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == "42601" { // an older server has no such word
		_, err = on.ExecContext(ctx, query)
	}
	return err
}

func random(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// Wire puts a proxy before a database of PostgreSQL and returns the address through
// it. cut ends every connection and refuses new ones, as a server that was stopped
// does, until it is called again.
func Wire(t testing.TB, through string) (address string, cut func(bool)) {
	t.Helper()
	return wire(t, through, func(client net.Conn) io.Reader { return client })
}

// Statements puts such a proxy before a database and counts the statements that pass.
func Statements(t testing.TB, through string) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	address, _ = wire(t, through, func(client net.Conn) io.Reader { return io.TeeReader(client, &messages{asked: asked, left: 4}) })
	return address, asked
}

// messages counts the messages of a client that run a statement: Bind and Query
// (PostgreSQL, "Message Formats"). All but the first begin with a byte that names them.
type messages struct {
	asked *atomic.Int64
	named bool   // the length that is read is that of a message with a name
	head  []byte // of a message: its length
	left  int    // bytes until the next head, or of the head
	body  bool
}

func (m *messages) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := min(m.left, len(p))
		if !m.body {
			m.head = append(m.head, p[:n]...)
		}
		p, m.left = p[n:], m.left-n
		if m.left > 0 {
			break
		}
		if !m.body {
			if m.named && (m.head[0] == 'B' || m.head[0] == 'Q') {
				m.asked.Add(1)
			}
			m.left = int(binary.BigEndian.Uint32(m.head[len(m.head)-4:])) - 4
			m.body, m.head = true, m.head[:0]
		}
		if m.left == 0 {
			m.body, m.named, m.left = false, true, 5
		}
	}
	return all, nil
}

// wire is the proxy; of makes what is read from a client.
func wire(t testing.TB, through string, of func(client net.Conn) io.Reader) (address string, cut func(bool)) {
	t.Helper()
	c, err := pgconn.ParseConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	network, server := pgconn.NetworkAddress(c.Host, c.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards away and open
	away, open := false, map[net.Conn]bool{}
	keep := func(conn net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		open[conn] = true
		return !away
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial(network, server)
			if err != nil || !keep(client) || !keep(behind) {
				client.Close()
				continue
			}
			pipe := func(to net.Conn, from io.Reader) {
				io.Copy(to, from)
				client.Close()
				behind.Close()
			}
			go pipe(client, behind)
			go pipe(behind, of(client))
		}
	}()
	cut = func(down bool) {
		mu.Lock()
		defer mu.Unlock()
		away = down
		for conn := range open {
			conn.Close()
			delete(open, conn)
		}
	}
	t.Cleanup(func() {
		listener.Close()
		cut(true)
	})
	return "postgres://" + c.User + "@" + listener.Addr().String() + "/" + c.Database + "?sslmode=disable", cut
}
