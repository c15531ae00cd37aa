package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/sorting"
	"stoa/protocol/trace"
)

// A JobHandler does one job. It makes outside calls first; the function that it returns runs in the
// transaction that marks the job done. A *protocol.Error that is not temporary ends the job for
// good; any other error is retried.
type JobHandler = func(ctx context.Context, j Job) (after func(ctx context.Context, tx *Tx) error, err error)

// A Job is work to do after a commit, at least once.
type Job struct {
	ID        int64 `db:",auto"`
	Kind      JobKind
	Lane      string `db:",null"` // at most one job of a lane runs at a time, oldest first; "" has no such limit
	Args      []byte
	RunAt     time.Time // not before; zero means now. While the job is leased, the end of the lease
	Attempt   int       // 1 on the first run
	Request   string    // id of the request that caused it; "" for none
	Trace     []byte    // the span of that request, as [trace.Context.Bytes]; nil for none
	LastError string
	Dedupe    string `db:",null"` // unique among waiting jobs; "" for none
	State     JobState
	DoneAt    *time.Time // when it was done or buried
}

// Decode reads the arguments of the job.
func (j *Job) Decode(into any) error {
	if err := json.Unmarshal(j.Args, into); err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "arguments of the job: %w", err)
	}
	return nil
}

// HandlerOf is the handler of jobs whose arguments are the JSON of a T. A job with other arguments ends for good.
func HandlerOf[T any](do func(ctx context.Context, j Job, args T) (func(context.Context, *Tx) error, error)) JobHandler {
	return func(ctx context.Context, j Job) (after func(context.Context, *Tx) error, err error) {
		var args T
		if err := j.Decode(&args); err != nil {
			return nil, err
		}
		return do(ctx, j, args)
	}
}

// A JobState is the state of a job.
type JobState string

const (
	JobWaiting JobState = "waiting" // to be run, or running under a lease
	JobDone    JobState = "done"
	JobDead    JobState = "dead" // given up; LastError says why
)

// A JobStat counts the jobs of one kind and state.
type JobStat struct {
	Kind   JobKind
	State  JobState
	Count  int
	Oldest time.Time // smallest RunAt
}

var jobTable = tableOf[Job]("job")

// Enqueue adds jobs, which run only if this transaction commits. Only Kind, Lane,
// Args, RunAt, Dedupe and LastError (for a job that continues another's work) are
// used. A job is not added while one with the same Dedupe is waiting.
func (tx *Tx) Enqueue(ctx context.Context, jobs ...Job) error {
	if len(jobs) == 0 {
		return nil
	}
	const row = `(?, NULLIF(?, ''), ?, 'waiting', 0, ?, NULLIF(?, ''), ?, ?, ?)`
	args := make([]any, 0, 8*len(jobs))
	for _, j := range jobs {
		if j.RunAt.IsZero() {
			j.RunAt = tx.Now
		}
		if j.Args == nil {
			j.Args = []byte{}
		}
		args = append(args, string(j.Kind), j.Lane, j.Args, millis(j.RunAt), j.Dedupe, storable(j.LastError), protocol.RequestID(ctx), blob(trace.Cause(ctx).Bytes()))
	}
	n, err := tx.write(ctx, `INSERT INTO job (kind, lane, args, state, blocked, run_at, dedupe, last_error, request, trace) VALUES `+
		row+strings.Repeat(", "+row, len(jobs)-1)+` ON CONFLICT DO NOTHING`, args...)
	if n > 0 {
		tx.wake(TopicJobs)
	}
	return err
}

// storable is the text of an error as the column accepts it: parts of it may come from
// others, and PostgreSQL refuses NUL and invalid UTF-8.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "")
	}
	return text
}

const maxErrorText = 2000 // bytes

// Jobs reads and writes jobs; [Tx.Enqueue] adds one.
type Jobs struct{ tx *Tx }

func (tx *Tx) Jobs() Jobs { return Jobs{tx} }

// Finish marks a job done and leaves its lane; a job that is not waiting is
// unchanged.
func (js Jobs) Finish(ctx context.Context, id int64) error {
	if n, err := js.end(ctx, id, JobDone, nil); err != nil || n == 0 {
		return err
	}
	return js.leaveLane(ctx, id)
}

// RetryJob ends the lease of a job and schedules it again after a pause, with the
// error of the attempt.
func (db *DB) RetryJob(ctx context.Context, id int64, after time.Duration, errText string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `UPDATE job SET owner = NULL, run_at = ?, last_error = ? WHERE id = ? AND state = 'waiting'`, millis(tx.Now.Add(after)),
			storable(errText), id)
		return err
	})
}

// Bury marks a job dead and leaves its lane. It is listed, with the reason,
// until pruned.
func (js Jobs) Bury(ctx context.Context, id int64, errText string) error {
	errText = storable(errText)
	if n, err := js.end(ctx, id, JobDead, &errText); err != nil || n == 0 {
		return err
	}
	return js.leaveLane(ctx, id)
}

// RenewJobs lets the leases that the owner has of these jobs end that much later than now. Jobs that ended, or that another owner has, are unchanged.
func (db *DB) RenewJobs(ctx context.Context, owner string, ids []int64, lease time.Duration) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		args := []any{millis(tx.Now.Add(lease)), owner}
		for _, id := range ids {
			args = append(args, id)
		}
		_, err := tx.write(ctx, `UPDATE job SET run_at = ? WHERE owner = ? AND id IN (`+marks(len(ids))+`)`, args...)
		return err
	})
}

// ReleaseJobs ends every lease of the owner: its jobs are due at once, and the
// attempt does not count. For a process that stops.
func (db *DB) ReleaseJobs(ctx context.Context, owner string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.write(ctx, `UPDATE job SET owner = NULL, run_at = ?, attempt = attempt - 1 WHERE owner = ?`, millis(tx.Now), owner)
		return err
	})
}

// List returns the jobs of a state, newest first. With a kind, those that wait come in
// the order in which they are due, others the last due first.
func (js Jobs) List(ctx context.Context, state JobState, kind JobKind, limit int, after string) (protocol.Page[Job], error) {
	limit = bounded(limit)
	if kind != "" {
		return js.listKind(ctx, state, kind, limit, after)
	}
	listing := "jobs-" + string(state)
	before, err := position(listing, after, math.MaxInt64)
	if err != nil {
		return protocol.Page[Job]{}, err
	}
	jobs, err := list[Job](ctx, js.tx, jobTable.from+`WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?`, string(state), before, limit+1)
	return page(jobs, limit, listing, func(j Job) string { return number(j.ID) }), err
}

var (
	jobsDueFirst = jobTable.from + `WHERE state = ? AND kind = ? AND (run_at, id) > (?, ?) ORDER BY run_at, id LIMIT ?`
	jobsDueLast  = jobTable.from + `WHERE state = ? AND kind = ? AND (run_at, id) < (?, ?) ORDER BY run_at DESC, id DESC LIMIT ?`
)

func (js Jobs) listKind(ctx context.Context, state JobState, kind JobKind, limit int, after string) (protocol.Page[Job], error) {
	listing := "jobs-" + string(state) + "-" + string(kind)
	p, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return protocol.Page[Job]{}, err
	}
	query, at, id := jobsDueFirst, int64(math.MinInt64), int64(0)
	if state != JobWaiting {
		query, at = jobsDueLast, math.MaxInt64
	}
	if p != "" {
		if _, err := fmt.Sscanf(p, "%d-%d", &at, &id); err != nil {
			return protocol.Page[Job]{}, protocol.Errorf(protocol.InvalidCursor, "after is not a next value of this listing; leave it out to start anew")
		}
	}
	jobs, err := list[Job](ctx, js.tx, query, string(state), string(kind), at, id, limit+1)
	return page(jobs, limit, listing, func(j Job) string { return number(millis(j.RunAt)) + "-" + number(j.ID) }), err
}

var (
	jobsWaiting = jobTable.from + `WHERE state = 'waiting' AND dedupe IS NOT NULL AND dedupe >= ? AND dedupe < ? LIMIT 1000`
	jobsDead    = jobTable.from + `WHERE state = 'dead' AND kind = ? ORDER BY id DESC LIMIT 100`
)

// Named returns the waiting jobs of a kind whose Dedupe begins with the kind and a
// space, at most 1000, by Dedupe, and the newest dead ones of the kind, at most 100.
func (js Jobs) Named(ctx context.Context, kind JobKind) ([]Job, error) {
	waiting, err := list[Job](ctx, js.tx, jobsWaiting, string(kind)+" ", string(kind)+"!") // ! is the character after the space
	if err != nil {
		return nil, err
	}
	sorting.Stable(waiting, func(a, b Job) int { return strings.Compare(a.Dedupe, b.Dedupe) })
	dead, err := list[Job](ctx, js.tx, jobsDead, string(kind))
	return append(waiting, dead...), err
}

const kindDue = `SELECT 1 FROM job WHERE state = 'waiting' AND kind = ? AND run_at <= ? LIMIT 1`

// Due reports whether a job of a kind is due, or running.
func (js Jobs) Due(ctx context.Context, kind JobKind) (bool, error) {
	return js.tx.exists(ctx, kindDue, string(kind), millis(js.tx.Now))
}

const laneFull = `SELECT count(*) FROM (SELECT 1 FROM job WHERE lane = ? AND blocked IS NOT NULL ORDER BY blocked, id LIMIT ?) r`

// LaneFull reports whether at least most jobs of a lane are waiting.
func (js Jobs) LaneFull(ctx context.Context, lane string, most int) (bool, error) {
	var n int
	err := js.tx.row(ctx, laneFull, lane, most).Scan(&n)
	return n >= most, err
}

// DropNamed deletes the jobs with that Dedupe: the waiting one, which leaves its
// lane, unless it is running; and dead ones of the kind. It returns how many.
func (js Jobs) DropNamed(ctx context.Context, kind JobKind, dedupe string) (int, error) {
	if err := js.tx.lockName(ctx, claiming); err != nil { // no claim gives it a lane meanwhile
		return 0, err
	}
	waiting, err := list[int64](ctx, js.tx, `DELETE FROM job WHERE dedupe = ? AND state = 'waiting' AND dedupe IS NOT NULL AND owner IS NULL RETURNING id`, dedupe)
	if err != nil {
		return 0, err
	}
	for _, id := range waiting {
		if err := js.leaveLane(ctx, id); err != nil {
			return 0, err
		}
	}
	dead, err := js.tx.write(ctx, `DELETE FROM job WHERE state = 'dead' AND kind = ? AND dedupe = ?`, string(kind), dedupe)
	return len(waiting) + int(dead), err
}

// Requeue makes a dead job wait again, from its first attempt; ErrNotFound when it
// is not dead, ErrExists when a job with its Dedupe is waiting.
func (js Jobs) Requeue(ctx context.Context, id int64) error {
	var twins int
	if err := js.tx.row(ctx,
		`SELECT count(*) FROM job d JOIN job w ON w.dedupe = d.dedupe AND w.state = 'waiting' WHERE d.id = ? AND d.state = 'dead'`, id,
	).Scan(&twins); err != nil {
		return err
	}
	if twins > 0 {
		return ErrExists
	}
	n, err := js.tx.write(ctx, `UPDATE job SET state = 'waiting', blocked = 0, attempt = 0, run_at = ?, done_at = NULL WHERE id = ? AND state = 'dead'`,
		millis(js.tx.Now), id)
	if n > 0 {
		js.tx.wake(TopicJobs)
	}
	return one(n, err)
}

// Drop deletes a dead job and returns it; ErrNotFound when it is not dead.
func (js Jobs) Drop(ctx context.Context, id int64) (Job, error) {
	if err := js.tx.dirty(); err != nil {
		return Job{}, err
	}
	return find[Job](ctx, js.tx, `DELETE FROM job WHERE id = ? AND state = 'dead' RETURNING `+jobTable.columns, id)
}

// Prune deletes jobs that were done or buried before a time, at most a thousand per
// call, and returns how many.
func (js Jobs) Prune(ctx context.Context, before time.Time) (int, error) {
	return js.tx.deleteSome(ctx, "job", "id", `state <> 'waiting' AND done_at < ? ORDER BY done_at LIMIT 1000`, millis(before))
}

// Jobs are counted kind by kind through an index, up to mostCounted.
const (
	nextKind    = `SELECT kind FROM job WHERE state = ? AND kind > ? ORDER BY kind LIMIT 1`
	countKind   = `SELECT count(*), min(run_at) FROM (SELECT run_at FROM job WHERE state = ? AND kind = ? ORDER BY run_at LIMIT ?) r`
	mostCounted = 10_000
)

// Stats counts jobs by kind and state, up to 10,000 of each.
func (js Jobs) Stats(ctx context.Context) ([]JobStat, error) {
	stats := []JobStat{}
	for _, state := range []JobState{JobDead, JobDone, JobWaiting} {
		for kind := JobKind(""); ; {
			err := js.tx.row(ctx, nextKind, string(state), string(kind)).Scan(&kind)
			if err == ErrNotFound {
				break
			}
			if err != nil {
				return nil, err
			}
			st, oldest := JobStat{Kind: kind, State: state}, int64(0)
			if err := js.tx.row(ctx, countKind, string(state), string(kind), mostCounted).Scan(&st.Count, &oldest); err != nil {
				return nil, err
			}
			st.Oldest = moment(oldest)
			stats = append(stats, st)
		}
	}
	return stats, nil
}
