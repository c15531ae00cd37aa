package hall

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A House is what the rooms of a node have in common.
type House struct {
	Base string // public address of the node, without a slash at the end
	DB   *storage.DB
	Log  *slog.Logger
	// Words returns the texts of letters in a language, by its code; in English for an unknown one.
	Words   func(language string) Words
	Private bool // addresses of this machine and of private networks are accepted: development
}

// Words are texts in one language. A key is the English text.
type Words interface {
	Text(key string, args ...any) string
	// Time formats a time by a layout of time.Format.
	Time(t time.Time, layout string) string
}

// Key marks a text of a letter that is translated elsewhere, from a table.
func Key(key string) string { return key }

// Own returns the profile that the caller acts as. In a writing transaction its row is locked.
func Own(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	p, err := tx.Profiles().ForUpdate(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(handle)
	}
	return p, err
}
