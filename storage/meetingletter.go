package storage

import (
	"context"
	"time"
)

const letterByID = `SELECT sealed FROM meeting_letter WHERE id = ?`

// Letter returns the letter that PutLetter stored under an id; ErrNotFound when there is none.
func (ms Meetings) Letter(ctx context.Context, id string) ([]byte, error) {
	return find[[]byte](ctx, ms.tx, letterByID, id)
}

// PutLetter stores a letter for the attempts to send it, until a time. One that is stored under the id
// stays as it is.
func (ms Meetings) PutLetter(ctx context.Context, id string, sealed []byte, until time.Time) error {
	return ms.tx.exec(ctx, `INSERT INTO meeting_letter (id, sealed, ends_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`, id, sealed, millis(until))
}

// DropLetter deletes a letter that is sent, or is not to be sent any more.
func (ms Meetings) DropLetter(ctx context.Context, id string) error {
	return ms.tx.exec(ctx, `DELETE FROM meeting_letter WHERE id = ?`, id)
}
