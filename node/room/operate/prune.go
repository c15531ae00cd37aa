// Package operate is the room of the operators' work on the node itself, and of the
// jobs that maintain its database.
package operate

import (
	"context"
	"errors"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

const (
	pruneEvery   = time.Hour
	scrubEvery   = 24 * time.Hour
	partsAtOnce  = 30 * time.Second
	keepJobs     = 14 * 24 * time.Hour // finished and dead jobs, for the operator's questions
	keepRemote   = 60 * 24 * time.Hour // fetched actors and keys
	keepRanks    = 6 * time.Hour       // versions of the directory's lists, for walks under way
	keepWriters  = 30 * 24 * time.Hour // from which network an anonymous post came, as a keyed hash
	keepImports  = 24 * time.Hour      // results of imports, and archives whose import never began
	keepActivity = 7 * 24 * time.Hour  // processed activities, so that a repeat is known

	keepCallbacks = 90 * 24 * time.Hour  // deliveries of replies that are over, which the owner may replay
	keepBids      = 30 * 24 * time.Hour  // bids and orders that were never paid
	keepBuyers    = 365 * 24 * time.Hour // who bought, of orders that are over
	keepMeetings  = 365 * 24 * time.Hour // meeting requests that are over
	keepMailboxes = 365 * 24 * time.Hour // mailboxes that were asked to confirm one
	keepPayEvents = 180 * 24 * time.Hour // events of payment providers that were applied
	keepTokens    = 90 * 24 * time.Hour  // tokens that were revoked or ran out, for the owner's list
	keepTold      = 90 * 24 * time.Hour  // what the audit log notes of other nodes
	keepAudit     = 730 * 24 * time.Hour // and of operators and owners
)

// Upkeep is the jobs that maintain the database.
type Upkeep struct {
	DB         *storage.DB
	PartsAfter int    // months after which what is long of posts moves into files; 0: never
	Owner      string // of leases: this process
}

// Enqueue queues the first of each.
func (u Upkeep) Enqueue(ctx context.Context, tx *storage.Tx) error {
	return errors.Join(enqueuePrune(ctx, tx), enqueueScrub(ctx, tx), enqueueParts(ctx, tx, scrubEvery), enqueueHours(ctx, tx),
		enqueueExamine(ctx, tx, examineFirst))
}

func enqueuePrune(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.PruneJob, Lane: string(storage.PruneJob), Dedupe: string(storage.PruneJob), RunAt: tx.Now.Add(pruneEvery)})
}

func enqueueScrub(ctx context.Context, tx *storage.Tx) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.ScrubJob, Lane: string(storage.ScrubJob), Dedupe: string(storage.ScrubJob), RunAt: tx.Now.Add(scrubEvery)})
}

// Scrub is the handler of ScrubJob.
func (u Upkeep) Scrub(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	return enqueueScrub, u.DB.Scrub(ctx)
}

func enqueueParts(ctx context.Context, tx *storage.Tx, wait time.Duration) error {
	return tx.Enqueue(ctx, storage.Job{Kind: storage.PartsJob, Lane: string(storage.PartsJob), Dedupe: string(storage.PartsJob), RunAt: tx.Now.Add(wait)})
}

// Parts is the handler of PartsJob. Moving years of posts takes many short runs.
func (u Upkeep) Parts(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	wait := scrubEvery
	more, err := u.DB.EraseParts(ctx, u.Owner, partsAtOnce)
	if err == nil && !more && u.PartsAfter > 0 {
		more, err = u.DB.DetachOld(ctx, u.PartsAfter, u.Owner, partsAtOnce)
	}
	if more {
		wait = 0
	}
	if errors.Is(err, storage.ErrPartsBusy) { // an operator moves some by hand, or a backup is made
		wait, err = pruneEvery, nil
	}
	return func(ctx context.Context, tx *storage.Tx) error { return enqueueParts(ctx, tx, wait) }, err
}

// A step deletes a bounded number of rows and returns how many.
type step func(context.Context, *storage.Tx) (int, error)

// older is a step that deletes the rows from before a time ago, by a method of their subject.
func older[S any](of func(*storage.Tx) S, prune func(S, context.Context, time.Time) (int, error), kept time.Duration) step {
	return func(ctx context.Context, tx *storage.Tx) (int, error) { return prune(of(tx), ctx, tx.Now.Add(-kept)) }
}

func steps() []step {
	return []step{
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.PruneExpired(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Pictures().Prune(ctx) },
		older((*storage.Tx).Jobs, storage.Jobs.Prune, keepJobs),
		older((*storage.Tx).Inbox, storage.Inbox.Prune, keepActivity),
		older((*storage.Tx).News, storage.News.Prune, protocol.NewsKept),
		older((*storage.Tx).Callbacks, storage.Callbacks.Prune, keepCallbacks),
		older((*storage.Tx).Bids, storage.Bids.Prune, keepBids),
		older((*storage.Tx).Orders, storage.Orders.Prune, keepBids),
		older((*storage.Tx).Orders, storage.Orders.ForgetBuyers, keepBuyers),
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Meetings().ForgetMail(ctx) },
		older((*storage.Tx).Meetings, storage.Meetings.Prune, keepMeetings),
		older((*storage.Tx).Meetings, storage.Meetings.PruneMailboxes, keepMailboxes),
		older((*storage.Tx).Payments, storage.Payments.PruneEvents, keepPayEvents),
		older((*storage.Tx).Tokens, storage.Tokens.Prune, keepTokens),
		func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.AuditLog().Prune(ctx, tx.Now.Add(-keepTold), tx.Now.Add(-keepAudit))
		},
		older((*storage.Tx).Peers, storage.Peers.PruneSchemes, keepRemote),
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Probes().ForgetSightings(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Blocks().Prune(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Requests().PruneUsage(ctx) },
		older((*storage.Tx).Traffic, storage.Traffic.Prune, storage.TrafficKept),
		older((*storage.Tx).Posts, storage.Posts.PruneWriters, keepWriters),
		older((*storage.Tx).Profiles, storage.Profiles.PruneRanks, keepRanks),
		older((*storage.Tx).Imports, storage.Imports.Prune, keepImports),
		older((*storage.Tx).Peers, storage.Peers.PruneFetched, keepRemote),
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.RemoteAgents().Prune(ctx) },
		func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.ARDSources().Prune(ctx) },
	}
}

// Prune deletes in small parts, each in a separate transaction, so that no write
// waits for it.
func (u Upkeep) Prune(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	for after, more := []byte(nil), true; more; more = after != nil {
		var last []byte
		if err := u.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			last, _, err = tx.Requests().PruneSpent(ctx, after)
			return err
		}); err != nil {
			return nil, err
		}
		after = last
	}
	for _, some := range steps() {
		if err := u.pruneAll(ctx, some); err != nil {
			return nil, err
		}
	}
	if err := u.tidyItems(ctx); err != nil {
		return nil, err
	}
	// An hour adds at most what the budget of chain reads, and proofs of work, allow.
	for _, of := range []storage.Stock{storage.StockIssued, storage.StockBids, storage.StockMeetings, storage.StockMailboxes, storage.StockStopped,
		storage.StockProofs, storage.StockDelegated, storage.StockMoves, storage.StockDocuments,
		storage.StockTwins} {
		if _, err := u.DB.Evict(ctx, of, storage.Caps[of]); err != nil {
			return nil, err
		}
	}
	return enqueuePrune, nil
}

// pruneAll repeats a step until it deletes nothing.
func (u Upkeep) pruneAll(ctx context.Context, some step) error {
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
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().AdoptReplies(ctx, string(j.Args)) }, nil
}

// tidyItems ends imports of catalogs whose process ended, and deletes what they prepared.
func (u Upkeep) tidyItems(ctx context.Context) error {
	var handles []string
	err := u.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		handles, err = tx.Items().StaleImports(ctx)
		return err
	})
	for _, handle := range handles {
		err = errors.Join(err, u.DB.TidyItems(ctx, handle),
			u.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error { return tx.Items().EndImport(ctx, handle) }))
	}
	return err
}

// ShopWords computes what a merchant with a large catalog is found by
// (storage.ShopWordsJob), on a snapshot. It deletes what an import left first.
func (u Upkeep) ShopWords(ctx context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	handle, words := string(j.Args), ""
	err := u.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		words, err = tx.Items().ShopWords(ctx, handle)
		return err
	})
	if err == nil {
		err = u.DB.TidyItems(ctx, handle)
	}
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Items().PutShopWords(ctx, handle, words) }, err
}

// DropItems deletes more of the items of a deleted profile (storage.DropItemsJob).
func (u Upkeep) DropItems(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	seq, err := strconv.ParseInt(string(j.Args), 10, 64)
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Items().DropAll(ctx, seq) }, err
}

// DropThreads deletes more of what a deleted profile left (storage.DropJob).
func (u Upkeep) DropThreads(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Threads().DropAll(ctx, string(j.Args)) }, nil
}
