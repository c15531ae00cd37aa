package storage

import (
	"context"
	"strings"
	"time"
)

// How lanes work.
//
// A job without a lane may run as soon as it is due. One job of a lane holds the
// lane (table lane) from the moment it is claimed until it is done or buried, also
// while it waits for a retry. A claim reads the jobs that are due and not blocked,
// in the order of their times. Those whose lane is held by another job become
// blocked, once, and are not read again until the lane is free and they are the
// oldest in it. So the cost of a claim depends neither on jobs that are not due nor
// on those that queue in a lane.
//
// Only claims block and unblock, and on PostgreSQL one process claims at a time.
// Enqueue does not touch lanes: two writers never wait for each other because of a
// lane.

// Limits of one claim.
const (
	claimLook   = 64 // jobs, or freed lanes, read by one statement
	claimRounds = 8  // such reads, while most of the jobs found become blocked
)

// claiming is the name that a claim locks.
const claiming = "stoa claim jobs"

const dueJobs = `SELECT j.id, j.lane, l.name IS NOT NULL AS held, l.job AS holder FROM job j LEFT JOIN lane l ON l.name = j.lane
	WHERE j.blocked = 0 AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT ?`

const freeLanes = `SELECT l.name, (SELECT min(k.id) FROM job k WHERE k.lane = l.name AND k.blocked = 1) AS next
	FROM lane l WHERE l.job IS NULL LIMIT ?`

// nextInLane is the oldest blocked job of the lane that a job holds.
const nextInLane = `SELECT min(k.id) FROM job k WHERE k.lane = (SELECT name FROM lane WHERE job = ?) AND k.blocked = 1`

// A candidate is a job that is due and not blocked.
type candidate struct {
	ID     int64
	Lane   *string
	Held   bool   // the lane has a row
	Holder *int64 // the job that holds it; nil if it is free for the oldest blocked one
}

// ClaimJobs leases up to n due jobs to the owner, at most one per lane, and counts
// the attempt. If an owner does not finish, retry or bury a job before its lease
// ends, another may run it too. busy reports that another process is claiming:
// there may be more jobs in some milliseconds.
func (db *DB) ClaimJobs(ctx context.Context, owner string, n int, lease time.Duration) (jobs []Job, busy bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
		jobs, busy = nil, false
		if n <= 0 {
			return nil
		}
		if busy, err = tx.tryLockName(ctx, claiming); busy || err != nil {
			return err
		}
		jobs, err = tx.Jobs().claim(ctx, owner, n, lease)
		return err
	})
	return jobs, busy, err
}

func (js Jobs) claim(ctx context.Context, owner string, n int, lease time.Duration) ([]Job, error) {
	if err := js.freeLanes(ctx); err != nil {
		return nil, err
	}
	chosen, lanes, err := js.choose(ctx, n)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	if len(lanes) > 0 {
		if _, err := js.tx.write(ctx, `INSERT INTO lane (name, job) VALUES (?, ?)`+strings.Repeat(", (?, ?)", len(lanes)/2-1), lanes...); err != nil {
			return nil, err
		}
	}
	return js.lease(ctx, owner, lease, chosen)
}

// choose finds up to n jobs that can run now, and blocks those whose lane is
// taken. lanes are the names and holders of the lanes that it takes.
func (js Jobs) choose(ctx context.Context, n int) (chosen, lanes []any, err error) {
	taken := map[string]bool{}
	for range claimRounds {
		found, err := list[candidate](ctx, js.tx, dueJobs, millis(js.tx.Now), max(n, claimLook))
		if err != nil {
			return nil, nil, err
		}
		chosen, lanes = chosen[:0], lanes[:0]
		clear(taken)
		var blocked []any
		for _, c := range found {
			mine := c.Holder != nil && *c.Holder == c.ID
			switch {
			case c.Lane != nil && (taken[*c.Lane] || c.Held && !mine):
				blocked = append(blocked, c.ID)
			case len(chosen) < n:
				chosen = append(chosen, c.ID)
				if c.Lane != nil && !mine {
					taken[*c.Lane] = true
					lanes = append(lanes, *c.Lane, c.ID)
				}
			}
		}
		if len(blocked) > 0 {
			if _, err := js.tx.write(ctx, `UPDATE job SET blocked = 1 WHERE id IN (`+marks(len(blocked))+`)`, blocked...); err != nil {
				return nil, nil, err
			}
		}
		if len(chosen) == n || len(blocked) == 0 || len(found) < claimLook {
			break
		}
	}
	return chosen, lanes, nil
}

// freeLanes gives lanes whose job has ended to their oldest blocked job, and
// deletes those in which none waits.
func (js Jobs) freeLanes(ctx context.Context) error {
	type freed struct {
		Name string
		Next *int64
	}
	free, err := list[freed](ctx, js.tx, freeLanes+js.tx.db.engine.SkipLocked("l"), claimLook)
	if err != nil {
		return err
	}
	var names, empty, next []any
	for _, l := range free {
		if l.Next == nil {
			empty = append(empty, l.Name)
		} else {
			names, next = append(names, l.Name), append(next, *l.Next)
		}
	}
	if err == nil && len(empty) > 0 {
		_, err = js.tx.write(ctx, `DELETE FROM lane WHERE name IN (`+marks(len(empty))+`)`, empty...)
	}
	if err == nil && len(next) > 0 {
		_, err = js.tx.write(ctx, `UPDATE lane SET job = (SELECT min(k.id) FROM job k WHERE k.lane = lane.name AND k.blocked = 1)
			WHERE name IN (`+marks(len(names))+`)`, names...)
	}
	if err == nil && len(next) > 0 {
		_, err = js.tx.write(ctx, `UPDATE job SET blocked = 0 WHERE id IN (`+marks(len(next))+`)`, next...)
	}
	return err
}

// lease leases jobs to an owner, in the order of their times; jobs that ended
// since they were chosen, by an owner whose lease had expired, are unchanged.
func (js Jobs) lease(ctx context.Context, owner string, lease time.Duration, ids []any) ([]Job, error) {
	if _, err := js.tx.write(ctx, `UPDATE job SET owner = ?, attempt = attempt + 1, blocked = 0
		WHERE state = 'waiting' AND id IN (`+marks(len(ids))+`)`, append([]any{owner}, ids...)...); err != nil {
		return nil, err
	}
	jobs, err := list[Job](ctx, js.tx, jobTable.from+`WHERE state = 'waiting' AND id IN (`+marks(len(ids))+`) ORDER BY run_at, id`, ids...)
	if err != nil {
		return nil, err
	}
	ends := js.tx.Now.Add(lease)
	for i := range jobs {
		jobs[i].RunAt = ends
	}
	_, err = js.tx.write(ctx, `UPDATE job SET run_at = ? WHERE state = 'waiting' AND id IN (`+marks(len(ids))+`)`, append([]any{millis(ends)}, ids...)...)
	return jobs, err
}

// Next marks a job done like Finish and leases the next one of its lane, which
// it blocked, to the same owner: nil if there is none. So a lane is worked off
// with one commit per job.
func (js Jobs) Next(ctx context.Context, id int64, owner string, lease time.Duration) (*Job, error) {
	var next *int64
	if err := js.tx.row(ctx, nextInLane, id).Scan(&next); err != nil {
		return nil, err
	}
	if next == nil {
		return nil, js.Finish(ctx, id)
	}
	if n, err := js.end(ctx, id, JobDone, nil); err != nil || n == 0 {
		return nil, err
	}
	jobs, err := js.lease(ctx, owner, lease, []any{*next})
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 { // dropped meanwhile
		return nil, js.leaveLane(ctx, id)
	}
	_, err = js.tx.write(ctx, `UPDATE lane SET job = ? WHERE job = ?`, *next, id)
	return &jobs[0], err
}

// end ends a waiting job with a state and, if it is not nil, the text of an
// error. The job still holds its lane.
func (js Jobs) end(ctx context.Context, id int64, state JobState, errText *string) (int64, error) {
	return js.tx.write(ctx, `UPDATE job SET state = ?, blocked = NULL, owner = NULL, done_at = ?, last_error = COALESCE(?, last_error) WHERE id = ?
		AND state = 'waiting'`,
		string(state), millis(js.tx.Now), errText, id)
}

// leaveLane frees the lane that a job holds.
func (js Jobs) leaveLane(ctx context.Context, id int64) error {
	n, err := js.tx.write(ctx, `UPDATE lane SET job = NULL WHERE job = ?`, id)
	if n > 0 {
		js.tx.wake(TopicJobs)
	}
	return err
}
