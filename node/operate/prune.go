// Package operate is the room of the operators' work on the node itself, and of the
// jobs that maintain its database.
package operate

import (
	"context"
	"errors"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	pruneEvery   = time.Hour
	keepJobs     = 14 * 24 * time.Hour // finished and dead jobs, for the operator's questions
	keepRemote   = 60 * 24 * time.Hour // fetched actors and keys
	keepRanks    = 6 * time.Hour       // versions of the directory's lists, for walks under way
	keepWriters  = 30 * 24 * time.Hour // from which network an anonymous post came, as a keyed hash
	keepImports  = 24 * time.Hour      // results of imports, and archives whose import never began
	keepActivity = 7 * 24 * time.Hour  // processed activities, so that a repeat is known

	keepCallbacks = 90 * 24 * time.Hour  // deliveries of replies that are over, which the owner may replay
	keepTokens    = 90 * 24 * time.Hour  // tokens that were revoked or ran out, for the owner's list
	keepTold      = 90 * 24 * time.Hour  // what the audit log notes of other nodes
	keepAudit     = 730 * 24 * time.Hour // and of operators and owners
)

// Upkeep is the jobs that maintain the database.
type Upkeep struct{ DB *storage.DB }

// Enqueue queues the first of each.
func (u Upkeep) Enqueue(ctx context.Context, tx *storage.Tx) error {
	return errors.Join(enqueuePrune(ctx, tx), enqueueHours(ctx, tx))
}

func enqueuePrune(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.PruneJob, Lane: string(storage.PruneJob), Dedupe: string(storage.PruneJob), RunAt: tx.Now.Add(pruneEvery)})
}

// Prune deletes in small parts, each in a separate transaction, so that no write
// waits for it.
func (u Upkeep) Prune(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	for after, more := []byte(nil), true; more; more = after != nil {
		var last []byte
		if err := u.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			last, _, err = tx.PruneSpent(ctx, after)
			return err
		}); err != nil {
			return nil, err
		}
		after = last
	}
	for _, some := range []func(context.Context, *storage.Tx) (int, error){
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneSignatures(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneReceipts(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneSessions(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneJobs(ctx, tx.Now.Add(-keepJobs))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.DropKept(ctx, tx.Now.Add(-keepActivity))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneTombstones(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneNews(ctx, tx.Now.Add(-protocol.NewsKept))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneCallbacks(ctx, tx.Now.Add(-keepCallbacks))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneTokens(ctx, tx.Now.Add(-keepTokens))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneAudit(ctx, tx.Now.Add(-keepTold), tx.Now.Add(-keepAudit))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.DropSchemes(ctx, tx.Now.Add(-keepRemote))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.ForgetSightings(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneBlocks(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneUsage(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneWriters(ctx, tx.Now.Add(-keepWriters))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneRanks(ctx, tx.Now.Add(-keepRanks))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.PruneImports(ctx, tx.Now.Add(-keepImports))
		},
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.DropRemote(ctx, tx.Now.Add(-keepRemote))
		},
	} {
		if err := u.pruneAll(ctx, some); err != nil {
			return nil, err
		}
	}
	// An hour adds at most what the budget of chain reads allows.
	if _, err := u.DB.Evict(ctx, storage.StockIssued, storage.Caps[storage.StockIssued]); err != nil {
		return nil, err
	}
	return enqueuePrune, nil
}

// pruneAll repeats a bounded step until it deletes nothing.
func (u Upkeep) pruneAll(ctx context.Context, some func(context.Context, *storage.Tx) (int, error)) error {
	for {
		var gone int
		err := u.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			gone, err = some(ctx, tx)
			return err
		})
		if err != nil || gone == 0 {
			return err
		}
	}
}

// Adopt joins replies to a post that arrived after them (storage.AdoptJob).
func (u Upkeep) Adopt(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error { return tx.AdoptReplies(ctx, string(j.Args)) }, nil
}

// DropThreads deletes more of what a deleted profile left (storage.DropJob).
func (u Upkeep) DropThreads(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error { return tx.DropThreads(ctx, string(j.Args)) }, nil
}
