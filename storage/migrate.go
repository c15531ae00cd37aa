package storage

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations are numbered SQL, one file per engine, forward only. The first makes the tables of 0.1.0; since then files are only
// added.
//
// The program has them packed, as make generate does it.
//
//go:embed migrations.gz
var migrations []byte

// starters is how often a process retries when another one migrates the same SQLite
// file at the same moment.
const starters = 20

// first is the number of the first migration, and unreleased the version of a database of the last program before 0.1.0, whose
// tables are the same.
const first = 110

var unreleased = map[engine]int64{engineSQLite: 101, enginePostgres: 98}

// ErrOlder is wrapped by the error of a database of a program before 0.1.0, but the last of these.
var ErrOlder = errors.New("the database is older than the first release")

// ErrNewer is wrapped by the error of a database that a newer program has migrated.
var ErrNewer = errors.New("the database is newer than this program")

// migrate returns a function that brings the tables to the newest version that the program knows, and logs it for a
// database that had an earlier one; with keep, one of SQLite is copied before. A database with a later version is not changed, and refused
// with [ErrNewer] where its rules are others than the program knows (see serves).
func migrate(keep bool, log *slog.Logger) func(ctx context.Context, e engine, tables *sql.DB) error {
	return func(ctx context.Context, e engine, tables *sql.DB) error {
		provider, err := migrator(e, tables)
		if err == nil {
			err = bringUp(ctx, e, provider, tables, keep, log)
		}
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return nil
	}
}

func migrator(e engine, tables *sql.DB) (*goose.Provider, error) {
	dialect, opts := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if e == enginePostgres {
		dialect, opts = goose.DialectPostgres, append(opts, goose.WithSessionLocker(&migrationLock{tables: tables}))
	}
	dir, err := Migrations(string(e))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, tables, dir, opts...)
}

// A migrationLock lets one process migrate at a time. It is goose's own lock, held by a transaction and not by a session: a pooler may
// end each transaction on another session.
type migrationLock struct {
	tables *sql.DB
	held   *sql.Tx
}

func (l *migrationLock) SessionLock(ctx context.Context, _ *sql.Conn) error {
	for {
		tx, err := l.tables.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		var mine bool
		// Its transaction is idle during the migration. One that waited for the lock would keep a connection of the pooler.
		if _, err = tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err == nil {
			err = tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(lock.DefaultLockID)).Scan(&mine)
		}
		if mine {
			l.held = tx
			return nil
		}
		if err = errors.Join(err, tx.Rollback()); err == nil {
			err = pause(ctx, 100*time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
}

func (l *migrationLock) SessionUnlock(context.Context, *sql.Conn) error { return l.held.Rollback() }

func bringUp(ctx context.Context, e engine, provider *goose.Provider, tables *sql.DB, keep bool, log *slog.Logger) error {
	began, from := time.Now(), int64(0)
	for try := 1; ; try++ {
		found, to, err := provider.GetVersions(ctx)
		if err == nil && found > to {
			if err := serves(ctx, tables, found, to); err != nil {
				return err
			}
			log.Warn("a newer program has migrated the database, and this one can still use it", "found", found, "known", to)
			return nil
		}
		if err == nil && keep && e == engineSQLite && found < to && (found >= first || found == unreleased[e]) {
			if err := copyBefore(ctx, tables, to, log); err != nil {
				return err
			}
		}
		if err == nil && 0 < found && found < first {
			found, err = adopt(ctx, e, tables, found, log)
			if errors.Is(err, ErrOlder) {
				return err
			}
		}
		if err == nil && from == 0 && 0 < found && found < to {
			from = found
			log.Info("migrating the database", "from", from, "to", to)
		}
		if err == nil {
			_, err = provider.Up(ctx)
		}
		if err == nil && from > 0 {
			log.Info("database migrated", "from", from, "to", to, "dur", time.Since(began).Round(time.Millisecond))
		}
		if err == nil || e == enginePostgres || try == starters {
			return err
		}
		// SQLite has no lock between reading the version and the change. Each migration
		// is one transaction, so the second process fails completely and finds nothing
		// left to do when it retries.
		if e := pause(ctx, 50*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
}

// adopt takes over a database from before the first release: it notes that the tables are those of the first migration.
func adopt(ctx context.Context, e engine, tables *sql.DB, found int64, log *slog.Logger) (int64, error) {
	if found != unreleased[e] {
		return 0, fmt.Errorf("%w: its tables have version %d, and this program takes over version %d: start it once with the last program before 0.1.0, "+
			"or write archives of its profiles with the program that made it (stoa admin export) and import them into a new database", ErrOlder, found, unreleased[e])
	}
	res, err := tables.ExecContext(ctx, fmt.Sprintf(`INSERT INTO goose_db_version (version_id, is_applied)
		SELECT %d, TRUE WHERE NOT EXISTS (SELECT 1 FROM goose_db_version WHERE version_id >= %d)`, first, first))
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err == nil && n == 1 { // else another process did
		log.Info("the database is from before the first release and is taken over", "from", found, "to", first)
	}
	return first, nil
}

// Migrations are the files for an engine, "sqlite" or "postgres".
func Migrations(engine string) (fs.FS, error) {
	r, err := gzip.NewReader(bytes.NewReader(migrations))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(r)
	files := sqlFiles{}
	for part := range strings.SplitSeq(string(raw), packedFile) {
		name, text, _ := strings.Cut(part, "\n")
		if name, ok := strings.CutPrefix(name, "storage/migrations/"+engine+"/"); ok {
			files[name] = text
		}
	}
	return files, err
}

// packedFile begins a line with the path of a file, whose text follows.
const packedFile = "-- file: "

// sqlFiles is a folder of files in memory.
type sqlFiles map[string]string

// Open opens a file.
func (s sqlFiles) Open(name string) (fs.File, error) {
	text, ok := s[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &sqlFile{strings.NewReader(text), name}, nil
}

// ReadDir lists the files, by name.
func (s sqlFiles) ReadDir(string) (all []fs.DirEntry, err error) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fs.FileInfoToDirEntry(&sqlFile{strings.NewReader(s[name]), name}))
	}
	return all, nil
}

// An sqlFile is one of them, and what is known of it.
type sqlFile struct {
	*strings.Reader
	name string
}

func (f *sqlFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *sqlFile) Close() error               { return nil }
func (f *sqlFile) Name() string               { return f.name }
func (f *sqlFile) Mode() fs.FileMode          { return 0o444 }
func (f *sqlFile) ModTime() time.Time         { return time.Time{} }
func (f *sqlFile) IsDir() bool                { return false }
func (f *sqlFile) Sys() any                   { return nil }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
