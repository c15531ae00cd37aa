package storage

import (
	"context"
	"fmt"

	"stoa/storage/commit"
)

// Limits of what Threads.DropAll deletes in one transaction: threads, their messages (or
// those of one thread), and rows of each other table.
const (
	dropThreadsAtOnce  = 100
	dropMessagesAtOnce = 1000
	dropRowsAtOnce     = 1000
)

// DropAll deletes threads, callbacks, blocks and news of a deleted profile, and its
// handle in threads that it began with others: the next owner of the handle must not
// read them. A job continues when they are too many for one transaction. It does
// nothing when the handle has a profile.
func (ts Threads) DropAll(ctx context.Context, handle string) error {
	if err := ts.tx.dirty(); err != nil {
		return err
	}
	if _, err := ts.tx.Profiles().lock(ctx, handle); err != ErrNotFound {
		return err
	}
	if complete, err := ts.dropSome(ctx, handle); err != nil || complete {
		return err
	}
	return ts.tx.Enqueue(ctx, Job{Kind: DropJob, Lane: string(DropJob), Dedupe: string(DropJob) + " " + handle, Args: []byte(handle)})
}

// freeHandle deletes what a deleted profile left under a handle, which a new one is
// about to take, or is overloaded when a job has not deleted enough of it yet.
func (ts Threads) freeHandle(ctx context.Context, handle string) error {
	complete, err := ts.dropSome(ctx, handle)
	if err == nil && !complete {
		err = commit.Overloaded("the threads of the handle's previous profile are still being deleted; try again in a moment", nil)
	}
	return err
}

// What a profile leaves, in an order that an index has.
const (
	oldestThreads = `SELECT id, messages FROM thread WHERE handle = ? ORDER BY id || '' LIMIT ?`
	leftCallbacks = `handle = ? ORDER BY id || '' LIMIT ?`
	leftMeetings  = `handle = ? ORDER BY id LIMIT ?`
	leftBlocks    = `handle = ? ORDER BY id || '' LIMIT ?`
	leftNames     = `handle = ? ORDER BY name LIMIT ?`
	leftNews      = `reader = ? ORDER BY n LIMIT ?`
	disownThreads = `UPDATE thread SET writer_handle = NULL WHERE id IN (SELECT id FROM thread WHERE writer_handle = ? LIMIT ?)`
)

func (ts Threads) dropSome(ctx context.Context, handle string) (complete bool, err error) {
	if complete, err = ts.dropOldest(ctx, handle); err != nil || !complete {
		return false, err
	}
	for _, left := range []struct{ table, key, found, of string }{
		{"callback", "id", leftCallbacks, handle},
		{"meeting", "id", leftMeetings, handle},
		{"contact_block", "id", leftBlocks, handle},
		{"contact_block_name", "handle, name, block_id", leftNames, handle},
		{"news", "reader, n", leftNews, "handle:" + handle},
	} {
		n, err := ts.tx.deleteSome(ctx, left.table, left.key, left.found, left.of, dropRowsAtOnce)
		if err != nil || n == dropRowsAtOnce {
			return false, err
		}
	}
	n, err := ts.tx.write(ctx, disownThreads, handle, dropRowsAtOnce)
	return n < dropRowsAtOnce, err
}

// dropOldest deletes the oldest threads with an agent.
func (ts Threads) dropOldest(ctx context.Context, handle string) (complete bool, err error) {
	rows, err := ts.tx.query(ctx, oldestThreads, handle, dropThreadsAtOnce)
	complete = true
	var ids []any
	messages, found := 0, 0
	_, err = collect(rows, err, func(s scanner) (none struct{}, err error) {
		var id string
		var n int
		err = s.Scan(&id, &n)
		found++
		if messages += n; messages <= dropMessagesAtOnce || len(ids) == 0 {
			ids = append(ids, id)
		}
		return none, err
	})
	if err != nil || len(ids) == 0 {
		return true, err
	}
	for _, table := range []string{"client_message WHERE thread_id", "exchange_part WHERE thread_id", "exchange WHERE thread_id", "exchange_push WHERE thread_id",
		"remote_message WHERE thread_id", "remote_thread WHERE thread_id",
		"thread_message WHERE thread_id", "thread WHERE id"} {
		if _, err := ts.tx.write(ctx, `DELETE FROM `+table+` IN (`+marks(len(ids))+`)`, ids...); err != nil {
			return false, fmt.Errorf("delete threads: %w", err)
		}
	}
	return len(ids) == found && found < dropThreadsAtOnce, nil
}
