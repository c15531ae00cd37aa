package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Replace replaces the SQLite database of a stopped node with a backup, which write
// writes to a file next to it. That is opened, inspected and checked, and only then moved into
// place; the previous file is kept under a name with the time, which is returned, "" for none.
func Replace(ctx context.Context, target string, write func(fresh string) error, inspect func(*DB) error) (old string, err error) {
	if err := unused(ctx, target); err != nil {
		return "", err
	}
	fresh := target + ".restoring"
	RemoveSQLite(fresh)
	defer RemoveSQLite(fresh)
	if err := write(fresh); err != nil {
		return "", err
	}
	db, err := Open(ctx, Config{Path: fresh, NoCopy: true})
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("this is not a backup of a node: %w", err)
	}
	if err := errors.Join(inspect(db), db.Check(ctx), db.Close()); err != nil {
		return "", err
	}
	suffix := "." + time.Now().UTC().Format("20060102T150405Z") + ".old"
	for _, part := range []string{"", "-wal", "-shm"} {
		switch err := os.Rename(target+part, target+part+suffix); {
		case err == nil && part == "":
			old = target + suffix
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return old, err
		}
	}
	return old, os.Rename(fresh, target)
}

// unused checks that no process has the database open, by taking an exclusive lock
// on the file.
func unused(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(500)&_pragma=locking_mode(exclusive)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `BEGIN EXCLUSIVE`); err != nil {
		return fmt.Errorf("%s is in use: stop the node first (%w)", path, err)
	}
	_, err = db.ExecContext(ctx, `ROLLBACK`)
	return err
}

// CopyFile writes a new file, to the disk.
func CopyFile(to string, in io.Reader) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}
