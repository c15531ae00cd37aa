package storage

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations are numbered SQL, one file per engine, forward only.
//
//go:embed migrations
var migrations embed.FS

// starters is how often a process retries when another one migrates the same SQLite
// file at the same moment.
const starters = 20

func migrate(ctx context.Context, e engine, tables *sql.DB) error {
	dialect, opts := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if e == enginePostgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		dialect, opts = goose.DialectPostgres, append(opts, goose.WithSessionLocker(locker))
	}
	dir, err := Migrations(string(e))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(dialect, tables, dir, opts...)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for try := 1; ; try++ {
		_, err = provider.Up(ctx)
		if err == nil || e == enginePostgres || try == starters {
			break
		}
		// SQLite has no lock between reading the version and the change. Each migration
		// is one transaction, so the second process fails completely and finds nothing
		// left to do when it retries.
		if e := pause(ctx, 50*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Migrations are the files for an engine, "sqlite" or "postgres".
func Migrations(engine string) (fs.FS, error) { return fs.Sub(migrations, "migrations/"+engine) }

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
