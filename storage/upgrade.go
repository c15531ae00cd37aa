package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"stoa/storage/commit"
)

// serves reports whether this program can use tables that a newer one has migrated: each migration that an older program would not
// bear writes its number into the table compatible.
func serves(ctx context.Context, tables rower, found, to int64) error {
	var since int64
	if err := tables.QueryRowContext(ctx, `SELECT max(since) FROM compatible`).Scan(&since); err != nil || since > to {
		return fmt.Errorf("%w: its tables have version %d, and this program knows versions up to %d: start the program that migrated it, or a later one; "+
			"to go back, restore a backup from before the upgrade", ErrNewer, found, to)
	}
	return nil
}

// A rower is a database, or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// copied is the file that a SQLite database is copied to before it is migrated to a version.
func copied(path string, to int64) string { return fmt.Sprintf("%s.before-%d", path, to) }

// copyBefore copies a SQLite database before it is migrated, and removes copies from before earlier migrations. A copy that is there
// is older than what a migration that was cut off has changed, and stays.
func copyBefore(ctx context.Context, tables *sql.DB, to int64, log *slog.Logger) error {
	path, err := sqliteFile(ctx, tables)
	if err != nil || path == "" {
		return err
	}
	file := copied(path, to)
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		return nil
	}
	log.Info("copying the database before it is migrated", "file", file)
	if err := vacuumInto(ctx, tables, file); err != nil {
		return fmt.Errorf("copy the database before it is migrated: %w; make room beside it, or set no-migration-copy where you have a backup", err)
	}
	earlier, err := filepath.Glob(path + ".before-*")
	for _, name := range earlier {
		if name != file && !strings.Contains(name, partSuffix) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// partSuffix is in the names of copies that are not whole yet, of this process or another one.
const partSuffix = ".part-"

// vacuumInto writes a copy to a file, which is there when it is whole.
func vacuumInto(ctx context.Context, tables *sql.DB, file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+partSuffix+"*") // with mode 0600, which the copy keeps
	if err != nil {
		return err
	}
	part := f.Name()
	err = f.Close()
	if err == nil {
		_, err = tables.ExecContext(ctx, `VACUUM INTO ?`, part)
	}
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

func sqliteFile(ctx context.Context, tables *sql.DB) (path string, err error) {
	err = tables.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	return path, err
}

// A Migration is what brought the tables of a database to the version of this program.
type Migration struct {
	From  int64           `json:"from"`
	To    int64           `json:"to"`
	Steps []MigrationStep `json:"steps"`
	Took  time.Duration   `json:"-"` // with the indexes and the check after it
}

// A MigrationStep is one of its files.
type MigrationStep struct {
	File string        `json:"file"`
	Took time.Duration `json:"-"`
}

// TryMigration migrates a copy of a database, checks it and removes it. The database is not changed. On PostgreSQL the server makes
// the copy, which it does only while nothing else is connected to the database.
func TryMigration(ctx context.Context, c Config) (m Migration, err error) {
	trial, remove, err := trialCopy(ctx, c)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	began := time.Now()
	if m, err = migrateCopy(ctx, trial); err != nil {
		return m, err
	}
	db, err := Open(ctx, trial)
	if err == nil {
		err = errors.Join(db.Check(ctx), db.Close())
	}
	m.Took = time.Since(began)
	return m, err
}

// trialCopy makes a copy of a database, and returns what opens and what removes it.
func trialCopy(ctx context.Context, c Config) (Config, func() error, error) {
	if c.URL != "" {
		return trialDatabase(ctx, c)
	}
	if _, err := os.Stat(c.Path); err != nil {
		return c, nil, err
	}
	tables, err := sql.Open("sqlite", "file:"+(&url.URL{Path: c.Path}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return c, nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(c.Path), "trial-*")
	trial := Config{Path: filepath.Join(dir, "stoa.db"), Log: c.Log}
	if err == nil {
		err = vacuumInto(ctx, tables, trial.Path)
	}
	if err = errors.Join(err, tables.Close()); err != nil {
		return c, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return trial, func() error { return os.RemoveAll(dir) }, nil
}

// trialDatabase is trialCopy on PostgreSQL.
func trialDatabase(ctx context.Context, c Config) (Config, func() error, error) {
	server, err := sql.Open("pgx", c.URL)
	if err != nil {
		return c, nil, err
	}
	from, err := ownServer(ctx, server)
	if err := errors.Join(err, server.Close()); err != nil {
		return c, nil, err
	}
	name := fmt.Sprintf("%s_trial_%d", from, time.Now().Unix())
	other, err := inDatabase(c.URL, "postgres")
	if err != nil {
		return c, nil, err
	}
	if server, err = sql.Open("pgx", other); err != nil {
		return c, nil, err
	}
	if _, err := server.ExecContext(ctx, `CREATE DATABASE `+quoted(name)+` TEMPLATE `+quoted(from)); err != nil {
		return c, nil, errors.Join(fmt.Errorf("copy the database: %w; stop the processes of the node, or restore a dump of it "+
			"into a database of its own and migrate that one", err), server.Close())
	}
	trial := Config{Log: c.Log}
	trial.URL, err = inDatabase(c.URL, name)
	return trial, func() error {
		_, err := server.ExecContext(context.WithoutCancel(ctx), `DROP DATABASE `+quoted(name)+` WITH (FORCE)`)
		return errors.Join(err, server.Close())
	}, err
}

// ownServer is the name of the database; ErrPooler where that is not asked of the server itself.
func ownServer(ctx context.Context, server *sql.DB) (name string, err error) {
	c, err := server.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if direct, err := commit.Direct(ctx, c); err != nil || !direct {
		return "", errors.Join(err, ErrPooler)
	}
	err = c.QueryRowContext(ctx, `SELECT current_database()`).Scan(&name)
	return name, err
}

// inDatabase is a postgres:// URL with another database.
func inDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// migrateCopy migrates a database step by step.
func migrateCopy(ctx context.Context, c Config) (m Migration, err error) {
	e, driver, source := engineSQLite, "sqlite", "file:"+(&url.URL{Path: c.Path}).EscapedPath()
	if c.URL != "" {
		e, driver, source = enginePostgres, "pgx", c.URL
	}
	tables, err := sql.Open(driver, source)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, tables.Close()) }()
	provider, err := migrator(e, tables)
	if err != nil {
		return m, err
	}
	if m.From, m.To, err = provider.GetVersions(ctx); err != nil {
		return m, err
	}
	if m.From > m.To {
		return m, serves(ctx, tables, m.From, m.To)
	}
	if 0 < m.From && m.From < first {
		if _, err = adopt(ctx, e, tables, m.From, slog.New(slog.DiscardHandler)); err != nil {
			return m, err
		}
	}
	results, err := provider.Up(ctx)
	m.Steps = []MigrationStep{}
	for _, r := range results {
		m.Steps = append(m.Steps, step(r))
	}
	return m, err
}

func step(r *goose.MigrationResult) MigrationStep {
	return MigrationStep{filepath.Base(r.Source.Path), r.Duration}
}
