package commit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes a copy of a SQLite database, as of one moment, to a new file,
// while the node runs. On PostgreSQL it is an error: pg_dump does this.
func (db *DB) Backup(ctx context.Context, path string) error {
	if db.engine != SQLite {
		return errors.New("storage: back up a PostgreSQL database with pg_dump")
	}
	// VACUUM INTO follows the umask; the copy holds secrets too.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	own, err := db.openOwn("")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer own.Close()
	if _, err := own.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return fmt.Errorf("backup: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// EmptyLog empties the write-ahead log of a SQLite database, and reports false when a reader or a write still needs it.
func (db *DB) EmptyLog(ctx context.Context) (empty bool, err error) {
	own, err := db.openOwn("&_pragma=busy_timeout(50)") // writes wait as long
	if err != nil {
		return false, fmt.Errorf("empty the log: %w", err)
	}
	defer own.Close()
	var busy, frames, moved int
	if err := own.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		if passing(err) {
			return false, nil
		}
		return false, fmt.Errorf("empty the log: %w", err)
	}
	return busy == 0, nil
}

// openOwn opens the SQLite database beside the connections of reads and writes.
func (db *DB) openOwn(more string) (*sql.DB, error) {
	source, err := filepath.Abs(db.config.Path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", sqliteDSN(source, more))
}

// CountSQLite counts the rows of every table of a SQLite file that no process has open, and says up to which migration it is.
func CountSQLite(ctx context.Context, path string) (rows map[string]int64, schema int64, err error) {
	source, err := filepath.Abs(path)
	if err != nil {
		return nil, 0, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: source}).EscapedPath()+"?mode=ro&immutable=1&_pragma=trusted_schema(0)")
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&schema); err != nil {
		return nil, 0, err
	}
	// Those of a text index have no rows of their own.
	names, err := db.QueryContext(ctx, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'`)
	if err != nil {
		return nil, 0, err
	}
	defer names.Close()
	rows = map[string]int64{}
	for names.Next() {
		var name string
		if err := names.Scan(&name); err != nil {
			return nil, 0, err
		}
		rows[name] = 0
	}
	for name := range rows {
		var n int64
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM "`+name+`"`).Scan(&n); err != nil {
			return nil, 0, err
		}
		rows[name] = n
	}
	return rows, schema, names.Err()
}
