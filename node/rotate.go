package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"stoa/identity/key"
	"stoa/node/room/credential"
	"stoa/storage"
)

// A MasterRotation is what a rotation of the master key has done.
type MasterRotation struct {
	Sealed int    `json:"sealed"` // secrets that this run sealed with the next key; one that continued another run has done a part of them
	Of     int    `json:"of"`     // rows that were looked at
	File   string `json:"file"`
	Former string `json:"former"` // where the former key is kept
}

// RotateMaster gives a stopped node another master key, or goes on with that: the next key is in a file beside the present one
// until everything is sealed with it. A node that is started in between opens both.
func RotateMaster(ctx context.Context, c Config, log *slog.Logger) (out MasterRotation, err error) {
	out.File = c.masterKey()
	err = storage.Alone(ctx, storage.Config{Path: c.sqlite(), URL: c.Database, Log: log, Parts: c.parts()}, func(db *storage.DB) error {
		rotation, err := key.RotateMaster(out.File)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", ErrConfig, credential.MissingMaster(out.File))
		}
		if err != nil {
			return err
		}
		if out.Sealed, out.Of, err = db.Reseal(ctx, rotation.Again); err != nil {
			return fmt.Errorf("seal anew: %w (is this the master key that sealed the database?)", err)
		}
		left, _, err := db.Reseal(ctx, rotation.Again)
		if err == nil && left > 0 {
			err = errors.New("something was sealed with the former key meanwhile: run it again")
		}
		if err != nil {
			return err
		}
		out.Former, err = rotation.Done(time.Now())
		return err
	})
	return out, moveFault(err)
}
