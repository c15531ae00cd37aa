package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"stoa/protocol"
)

// NoticeJob is the kind of job that carries a notice to its owner.
const NoticeJob = "notice"

// Notify tells the owner of a profile of something, by the ways the owner has
// chosen, if this transaction commits.
func (tx *Tx) Notify(ctx context.Context, n protocol.Notice) error {
	n.At = tx.Now
	args, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode notice: %w", err)
	}
	return tx.Enqueue(ctx, Job{Kind: NoticeJob, Lane: NoticeJob + ":" + n.Handle, Args: args})
}
