package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// Handles are the handles that profiles have and had.
type Handles struct{ tx *Tx }

func (tx *Tx) Handles() Handles { return Handles{tx} }

// take records that a profile has a handle.
func (hs Handles) take(ctx context.Context, handle string) error {
	return hs.tx.exec(ctx, `INSERT INTO handle (handle, skeleton, taken_at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET taken_at = excluded.taken_at, gone_at = NULL`, handle, protocol.HandleSkeleton(handle), millis(hs.tx.Now))
}

// Free gives a handle back that nobody ever acted as.
func (hs Handles) Free(ctx context.Context, handle string) error {
	return hs.tx.exec(ctx, `DELETE FROM handle WHERE handle = ? AND gone_at IS NOT NULL`, handle)
}

// leave records that the profile of a handle is deleted. Nobody else takes the handle: it is in the addresses of actors, and
// on receipts.
func (hs Handles) leave(ctx context.Context, handle string) error {
	return hs.tx.exec(ctx, `UPDATE handle SET gone_at = ? WHERE handle = ?`, millis(hs.tx.Now), handle)
}

const likeHandle = `SELECT handle FROM handle WHERE skeleton = ? ORDER BY handle LIMIT 1`

// Gone returns when the profile of a handle was deleted; ErrNotFound when it was not.
func (hs Handles) Gone(ctx context.Context, handle string) (time.Time, error) {
	at, err := find[int64](ctx, hs.tx, `SELECT gone_at FROM handle WHERE handle = ? AND gone_at IS NOT NULL`, handle)
	return moment(at), err
}

// Like returns a handle, of a profile that is or was, that is equal to the given one or looks like it; ErrNotFound when there is none.
func (hs Handles) Like(ctx context.Context, handle string) (string, error) {
	return find[string](ctx, hs.tx, likeHandle, protocol.HandleSkeleton(handle))
}
