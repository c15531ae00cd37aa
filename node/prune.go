package node

import (
	"context"
	"time"

	"stoa/storage"
)

// pruneKind is the job that takes away what has run out: spent proofs and
// nonces, receipts, finished jobs, processed activities.
const pruneKind = "prune"

const (
	pruneEvery   = time.Hour
	keepJobs     = 14 * 24 * time.Hour // finished and dead jobs, for the operator's questions
	keepActivity = 7 * 24 * time.Hour  // processed activities, so that a repeat is known
)

func enqueuePrune(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: pruneKind, Lane: pruneKind, Dedupe: pruneKind, RunAt: tx.Now.Add(pruneEvery)})
}

func (n *Node) prune(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error {
		for slice := range 256 {
			if _, err := tx.PruneSpent(ctx, byte(slice)); err != nil {
				return err
			}
		}
		if _, err := tx.PruneReceipts(ctx); err != nil {
			return err
		}
		if _, err := tx.PruneJobs(ctx, tx.Now.Add(-keepJobs)); err != nil {
			return err
		}
		if _, err := tx.DropKept(ctx, tx.Now.Add(-keepActivity)); err != nil {
			return err
		}
		return enqueuePrune(ctx, tx)
	}, nil
}
