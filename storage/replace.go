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

// Replace replaces the SQLite database of a stopped node with a backup. The backup
// is copied next to it, checked, and only then moved into place; the previous file
// is kept under a name with the time.
func Replace(ctx context.Context, target, backup string) error {
	if err := unused(ctx, target); err != nil {
		return err
	}
	fresh := target + ".restoring"
	if err := copyFile(fresh, backup); err != nil {
		return err
	}
	defer os.Remove(fresh)
	db, err := Open(ctx, Config{Path: fresh, NoCopy: true})
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
		return fmt.Errorf("%s: %w", backup, err)
	}
	if err != nil {
		return fmt.Errorf("%s is not a backup of a node: %w", backup, err)
	}
	if err := errors.Join(db.Check(ctx), db.Close()); err != nil {
		return fmt.Errorf("%s: %w", backup, err)
	}
	suffix := "." + time.Now().UTC().Format("20060102T150405Z") + ".old"
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(target+part, target+part+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(fresh, target)
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

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}
