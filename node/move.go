package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"stoa/storage"
)

// movedTo is where a move goes: a postgres:// URL, or a data directory, or file of SQLite.
func movedTo(to string) storage.Config {
	if strings.HasPrefix(to, "postgres://") || strings.HasPrefix(to, "postgresql://") {
		return storage.Config{URL: to}
	}
	if to = strings.TrimPrefix(to, "sqlite:"); filepath.Ext(to) != ".db" {
		to = filepath.Join(to, "stoa.db")
	}
	return storage.Config{Path: to}
}

// Move moves the database of a stopped node to the other engine, or goes on with a move, as storage.Move describes.
func Move(ctx context.Context, c Config, to string, log *slog.Logger, report func(storage.MoveStep)) (storage.MoveReport, error) {
	target := movedTo(to)
	target.Log = log
	out, err := storage.Move(ctx, storage.Config{Path: c.sqlite(), URL: c.Database, Log: log}, target, report)
	return out, moveFault(err)
}

// Unmove makes a database that was moved one that is served again; false when it was not moved.
func Unmove(ctx context.Context, c Config, log *slog.Logger) (bool, error) {
	was, err := storage.Unmove(ctx, storage.Config{Path: c.sqlite(), URL: c.Database, Log: log})
	return was, moveFault(err)
}

// MasterKeyFile is where the master key of a node is, which a move leaves there.
func MasterKeyFile(c Config) string { return c.masterKey() }

// moveFault says what to do about a database that a move keeps.
func moveFault(err error) error {
	switch {
	case errors.Is(err, storage.ErrMoved):
		return fmt.Errorf("%w: %w. Start the node there; or let it be served here again, without what was written there: stoa admin move --undo", ErrConfig, err)
	case errors.Is(err, storage.ErrMoving), errors.Is(err, storage.ErrPooler):
		return fmt.Errorf("%w: %w", ErrConfig, err)
	case errors.Is(err, storage.ErrServed):
		return fmt.Errorf("%w: %w. Stop the node first", ErrConfig, err)
	}
	return err
}
