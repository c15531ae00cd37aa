package commit

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
)

// Serves reports whether this process is the only one that serves the database: it was
// opened with Config.Serve and is SQLite.
func (db *DB) Serves() bool { return db.serving != nil }

// beginServing makes this process the only one that serves a SQLite database. It locks
// an empty SQLite file next to the database, and not the database, which other processes
// may open that do not serve it. The system ends the lock with the process, also when it
// is killed.
func (db *DB) beginServing(ctx context.Context, path string) error {
	path += ".lock"
	if err := createFile(path); err != nil {
		return err
	}
	lock, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(0)&_pragma=locking_mode(exclusive)")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	lock.SetMaxOpenConns(1)
	// In this mode the lock of the transaction stays with the connection.
	if _, err = lock.ExecContext(ctx, `BEGIN EXCLUSIVE`); err == nil {
		_, err = lock.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		lock.Close()
		if passing(err) {
			return fmt.Errorf("%w: %s is locked", ErrServed, path)
		}
		return fmt.Errorf("lock %s: %w", path, err)
	}
	db.serving = lock
	return nil
}

func (db *DB) endServing() error {
	if db.serving == nil {
		return nil
	}
	return db.serving.Close()
}
