package commit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// An Engine is a database program. The differences between the two are in this file
// and in the statements that use it.
type Engine string

const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

func (e Engine) begin() string {
	if e == SQLite {
		return "BEGIN IMMEDIATE" // a deferred one fails at once when it must become a write
	}
	return "BEGIN ISOLATION LEVEL READ COMMITTED"
}

func (e Engine) beginRead() string {
	if e == SQLite {
		return "BEGIN"
	}
	return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

// rebind replaces ? with the engine's placeholders. Statements contain no question
// mark that is not a placeholder.
func (e Engine) rebind(query string) string {
	if e == SQLite || !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// ForUpdate locks the rows of a SELECT; SQLite has one writer and needs no lock.
func (e Engine) ForUpdate() string {
	if e == Postgres {
		return " FOR UPDATE"
	}
	return ""
}

// SkipLocked locks the rows of a SELECT that no other transaction has locked.
func (e Engine) SkipLocked(of string) string {
	if e == Postgres {
		return " FOR UPDATE OF " + of + " SKIP LOCKED"
	}
	return ""
}

// Conflicts reports whether a unique constraint refused a row.
func Conflicts(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505"
}

// answered reports whether an error is an answer of PostgreSQL, and not of a lost
// connection.
func answered(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}

// passing reports whether the same transaction may succeed when it is run again.
func passing(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()&0xff == sqlite3.SQLITE_BUSY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}

const sqlitePragmas = "_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)" +
	"&_pragma=foreign_keys(1)&_pragma=secure_delete(1)&_pragma=temp_store(memory)&_pragma=cache_size(-16000)" +
	"&_pragma=trusted_schema(0)&_pragma=journal_size_limit(67108864)" +
	"&_pragma=wal_autocheckpoint(4000)&_defensive=1"

func sqliteDSN(path, more string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + sqlitePragmas + more
}

func (db *DB) openSQLite(ctx context.Context) error {
	path, err := filepath.Abs(db.config.Path)
	if err != nil {
		return fmt.Errorf("database path: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("database directory: %w", err)
	}
	if db.config.Serve {
		if err := db.beginServing(ctx, path); err != nil {
			return err
		}
	}
	if err := createFile(path); err != nil {
		return errors.Join(err, db.endServing())
	}
	db.engine = SQLite
	writer, err := sql.Open("sqlite", sqliteDSN(path, "&_txlock=immediate"))
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", path, err), db.endServing())
	}
	writer.SetMaxOpenConns(1)
	db.main = bun.NewDB(writer, sqlitedialect.New())
	reader, err := sql.Open("sqlite", sqliteDSN(path, "&_pragma=query_only(1)"))
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", path, err), writer.Close(), db.endServing())
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(n)
	reader.SetMaxIdleConns(n)
	db.readers = newPool(bun.NewDB(reader, sqlitedialect.New()), db.engine, n, true)
	return nil
}

// createFile creates the file of a SQLite database where none is. It holds secrets, so it
// is created with its mode: SQLite would follow the umask. An existing file is never opened
// here: closing a descriptor of it would drop the locks of this process.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !os.IsExist(err) {
		return fmt.Errorf("database file: %w", err)
	}
	return nil
}

func (db *DB) openPostgres(ctx context.Context) error {
	var err error
	if db.reach, _, err = newReach(db.config.URL, true); err != nil {
		return err
	}
	db.engine = Postgres
	pool := db.reach.open()
	n := max(8, 4*runtime.GOMAXPROCS(0))
	pool.SetMaxOpenConns(n + 3) // one writes, two run what is outside of transactions
	pool.SetMaxIdleConns(n + 3)
	db.main = bun.NewDB(pool, pgdialect.New())
	db.readers = newPool(db.main, db.engine, n, false)
	if err := db.waitForServer(ctx, pool); err != nil {
		return errors.Join(err, pool.Close())
	}
	var encoding string
	if err := pool.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return errors.Join(fmt.Errorf("connect to the database: %w", err), pool.Close())
	}
	if encoding != "UTF8" {
		return errors.Join(fmt.Errorf("database encoding is %s; make it with ENCODING 'UTF8'", encoding), pool.Close())
	}
	c, err := pool.Conn(ctx)
	if err == nil {
		db.direct, err = Direct(ctx, c)
		db.reach.direct.Store(db.direct)
		c.Close()
	}
	if err == nil {
		err = db.openReplicas(n)
	}
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	return nil
}

// Direct reports whether a connection is to PostgreSQL itself: a pooler gives its clients
// other numbers than those of the processes that serve them. One that does not keep a
// transaction on one connection is refused.
func Direct(ctx context.Context, c *sql.Conn) (is bool, err error) {
	if _, err := c.ExecContext(ctx, `BEGIN`); err != nil {
		return false, fmt.Errorf("begin a transaction (of PgBouncer, pool_mode must be transaction or session): %w", err)
	}
	var pid uint32
	if err := c.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return false, err
	}
	if _, err := c.ExecContext(ctx, `ROLLBACK`); err != nil {
		return false, err
	}
	err = c.Raw(func(raw any) error {
		is = raw.(*stdlib.Conn).Conn().PgConn().PID() == pid
		return nil
	})
	return is, err
}
