package storage

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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// An engine is a database program. The differences between the two are in this file
// and in the statements that use it.
type engine string

const (
	engineSQLite   engine = "sqlite"
	enginePostgres engine = "postgres"
)

func (e engine) begin() string {
	if e == engineSQLite {
		return "BEGIN IMMEDIATE" // a deferred one fails at once when it must become a write
	}
	return "BEGIN ISOLATION LEVEL READ COMMITTED"
}

func (e engine) beginRead() string {
	if e == engineSQLite {
		return "BEGIN"
	}
	return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
}

// rebind replaces ? with the engine's placeholders. Statements of this package
// contain no question mark that is not a placeholder.
func (e engine) rebind(query string) string {
	if e == engineSQLite || !strings.Contains(query, "?") {
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

// forUpdate locks the rows of a SELECT; SQLite has one writer and needs no lock.
func (e engine) forUpdate() string {
	if e == enginePostgres {
		return " FOR UPDATE"
	}
	return ""
}

// skipLocked locks the rows of a SELECT that no other transaction has locked.
func (e engine) skipLocked(of string) string {
	if e == enginePostgres {
		return " FOR UPDATE OF " + of + " SKIP LOCKED"
	}
	return ""
}

// lockName makes other transactions that lock the same name wait for the end of
// this one; SQLite has one writer and needs no lock. A batch that fails with a
// deadlock is run again.
func (tx *Tx) lockName(ctx context.Context, name string) error {
	if tx.db.engine != enginePostgres {
		return nil
	}
	_, err := tx.write(ctx, `SELECT pg_advisory_xact_lock(hashtextextended(?, 0))`, name)
	return err
}

// tryLockName locks the same name as lockName, or reports at once that another
// transaction has it.
func (tx *Tx) tryLockName(ctx context.Context, name string) (bool, error) {
	if tx.db.engine != enginePostgres {
		return false, nil
	}
	var locked bool
	err := tx.row(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))`, name).Scan(&locked)
	return !locked, err
}

// marks are n placeholders.
func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

func toAny(texts []string) []any {
	all := make([]any, len(texts))
	for i, s := range texts {
		all[i] = s
	}
	return all
}

// conflicts reports whether a unique constraint refused a row.
func conflicts(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505"
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
	"&_pragma=foreign_keys(1)&_pragma=temp_store(memory)&_pragma=cache_size(-16000)" +
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
	// The file holds secrets, so it is created here with its mode: SQLite would follow
	// the umask. An existing file is never opened here: closing a descriptor of it
	// would drop the locks of this process.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
	} else if !os.IsExist(err) {
		return fmt.Errorf("database file: %w", err)
	}
	db.engine = engineSQLite
	writer, err := sql.Open("sqlite", sqliteDSN(path, "&_txlock=immediate"))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	writer.SetMaxOpenConns(1)
	db.main = bun.NewDB(writer, sqlitedialect.New())
	reader, err := sql.Open("sqlite", sqliteDSN(path, "&_pragma=query_only(1)"))
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", path, err), writer.Close())
	}
	n := max(4, 2*runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(n)
	reader.SetMaxIdleConns(n)
	db.readers = newPool(bun.NewDB(reader, sqlitedialect.New()), db.engine, n, true)
	return nil
}

func (db *DB) openPostgres(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(db.config.URL)
	if err != nil {
		return fmt.Errorf("database URL: %w", err)
	}
	// One round trip and no named statements: every text is new under bun, and a
	// transaction pooler does not keep names.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	db.engine = enginePostgres
	pool := stdlib.OpenDB(*cfg)
	n := max(8, 4*runtime.GOMAXPROCS(0))
	pool.SetMaxOpenConns(n + postgresWriters + 1) // one numbers
	pool.SetMaxIdleConns(n + postgresWriters + 1)
	db.main = bun.NewDB(pool, pgdialect.New())
	db.readers = newPool(db.main, db.engine, n, false)
	var encoding string
	if err := pool.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return errors.Join(fmt.Errorf("connect to the database: %w", err), pool.Close())
	}
	if encoding != "UTF8" {
		return errors.Join(fmt.Errorf("database encoding is %s; make it with ENCODING 'UTF8'", encoding), pool.Close())
	}
	return nil
}
