package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"stoa/protocol"
)

const noticeWanted = `SELECT 1 FROM notify WHERE handle = ? AND (mail <> '' OR webhook <> '')
	UNION ALL SELECT 1 FROM account_profile p JOIN device d ON d.reader = p.account WHERE p.handle = ? LIMIT 1`

// Notify notifies the owner of a profile, by the ways the owner has chosen, if this
// transaction commits. An owner who has chosen none costs no job, and repeated
// events are combined into one notice until it is sent.
func (tx *Tx) Notify(ctx context.Context, n protocol.Notice) error {
	if wanted, err := tx.exists(ctx, noticeWanted, n.Handle, n.Handle); err != nil || !wanted {
		return err
	}
	return tx.notify(ctx, n)
}

// NotifyAtMost is Notify for what others cause at will: what counts such notices to the profile, of which there are most in a day.
// A further one is dropped.
func (tx *Tx) NotifyAtMost(ctx context.Context, n protocol.Notice, what Crowd, most int) error {
	if wanted, err := tx.exists(ctx, noticeWanted, n.Handle, n.Handle); err != nil || !wanted {
		return err
	}
	sent, err := tx.Crowds().Since(ctx, n.Handle, what, CrowdFor)
	if err != nil || sent >= most {
		return err
	}
	if err := tx.Crowds().Add(ctx, n.Handle, what, 1); err != nil {
		return err
	}
	return tx.notify(ctx, n)
}

func (tx *Tx) notify(ctx context.Context, n protocol.Notice) error {
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
