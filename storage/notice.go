package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/protocol"
)

const noticeWanted = `SELECT 1 FROM notify WHERE handle = ? AND (mail <> '' OR webhook <> '')
	UNION ALL SELECT 1 FROM account_profile p JOIN device d ON d.reader = p.account WHERE p.handle = ? LIMIT 1`

// Notify notifies the owner of a profile, by the ways the owner has chosen, if this
// transaction commits. An owner who has chosen none costs no job, and repeated
// events are combined into one notice until it is sent.
func (tx *Tx) Notify(ctx context.Context, n protocol.Notice) error {
	var one int
	switch err := tx.row(ctx, noticeWanted, n.Handle, n.Handle).Scan(&one); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	n.At = tx.Now
	args, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode notice: %w", err)
	}
	return tx.Enqueue(ctx, Job{Kind: NoticeJob, Lane: string(NoticeJob) + ":" + n.Handle, Args: args, Dedupe: NoticeKey(NoticeJob, n)})
}

// NoticeKey identifies the subject of a notice among the waiting jobs of a kind.
func NoticeKey(kind JobKind, n protocol.Notice) string {
	return string(kind) + " " + n.Handle + " " + string(n.Event) + " " + n.Subject
}
