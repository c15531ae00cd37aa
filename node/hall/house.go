package hall

import (
	"log/slog"

	"stoa/storage"
)

// A House is what the rooms of a node have in common.
type House struct {
	Base    string // public address of the node, without a slash at the end
	DB      *storage.DB
	Log     *slog.Logger
	Private bool // addresses on this machine and in private networks are taken: development
}
