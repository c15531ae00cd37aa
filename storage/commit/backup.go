package commit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
