package storage

import (
	"context"
	"time"
)

const letterByID = `SELECT sealed FROM meeting_letter WHERE id = ?`

// Letter returns the letter that PutLetter stored under an id; ErrNotFound when there is none.
func (ms Meetings) Letter(ctx context.Context, id string) (sealed []byte, err error) {
	err = ms.tx.row(ctx, letterByID, id).Scan(&sealed)
	return sealed, err
}

// PutLetter stores a letter for the attempts to send it, until a time. One that is stored under the id
// stays as it is.
func (ms Meetings) PutLetter(ctx context.Context, id string, sealed []byte, until time.Time) error {
	_, err := ms.tx.write(ctx, `INSERT INTO meeting_letter (id, sealed, ends_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`, id, sealed, millis(until))
	return err
}

// DropLetter deletes a letter that is sent, or is not to be sent any more.
func (ms Meetings) DropLetter(ctx context.Context, id string) error {
	_, err := ms.tx.write(ctx, `DELETE FROM meeting_letter WHERE id = ?`, id)
	return err
}
