package operate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"stoa/node/room/moderation"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Follow makes the running node follow a board.
func Follow(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PeerAddress) (protocol.None, error) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return protocol.None{}, protocol.Errorf(protocol.InvalidRequest, "%q is not an address such as https://n1.example", in.URL)
	}
	if _, err := tx.Jobs().DropNamed(ctx, storage.FollowJob, followName(in.URL)); err != nil { // the operator wants it tried now
		return protocol.None{}, err
	}
	if err := enqueueFollow(ctx, tx, moderation.FollowArgs{URL: in.URL, Since: tx.Now}, 0, ""); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "peer follow", in.URL, "")
}

func followName(address string) string { return string(storage.FollowJob) + " " + address }

func enqueueFollow(ctx context.Context, tx *storage.Tx, in moderation.FollowArgs, wait time.Duration, last string) error {
	args, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{
		Kind: storage.FollowJob, Lane: followName(in.URL), Args: args, Dedupe: followName(in.URL), RunAt: tx.Now.Add(wait), LastError: last,
	})
}

// Unfollow makes the running node stop following a board, and notify it. Received
// posts are kept.
func Unfollow(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PeerAddress) (protocol.None, error) {
	args, err := json.Marshal(in)
	if err != nil {
		return protocol.None{}, err
	}
	if n, err := tx.Jobs().DropNamed(ctx, storage.FollowJob, followName(in.URL)); err != nil || n > 0 { // of an address that is not followed yet
		return protocol.None{}, errors.Join(err, tx.Audit(ctx, c.Actor(), "peer unfollow", in.URL, ""))
	}
	s, err := tx.Subscriptions().ByBoard(ctx, in.URL)
	if err != nil {
		return protocol.None{}, storage.IfMissing(err, protocol.Errorf(protocol.NotFound, "this node does not follow %s", in.URL))
	}
	if err := tx.Enqueue(ctx,
		storage.Job{Kind: storage.UnfollowJob, Lane: "host:" + s.Host, Args: args, Dedupe: string(storage.UnfollowJob) + " " + in.URL},
	); err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "peer unfollow", in.URL, "")
}

// Peers tries peers of the node at Base.
type Peers struct{ Base string }

// Retry makes a peer that fails due now: a followed board, a follow that was not answered, or an inbox.
func (p Peers) Retry(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PeerAddress) (protocol.None, error) {
	due, err := p.hasten(ctx, tx, in.URL)
	if err == nil && !due {
		err = protocol.Errorf(protocol.NotFound, "there is no peer at %s, or it is being tried now; list_peers names them", in.URL)
	}
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "peer retry", in.URL, "")
}

// forgetWithin is how old the posts are at most that a log which fell back may have lost.
const forgetWithin = 7 * 24 * time.Hour

// Reread has the log of a followed board read from its beginning.
func (Peers) Reread(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.PeerReread) (protocol.None, error) {
	since := tx.Now.Add(-forgetWithin)
	conflict, err := tx.Subscriptions().Conflict(ctx, in.URL)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return protocol.None{}, err
	}
	var entry struct {
		Published time.Time `json:"published"`
	}
	if err == nil && conflict.Kind == storage.ConflictFork && json.Unmarshal(conflict.OursDoc, &entry) == nil && entry.Published.After(since) {
		since = entry.Published.Add(-time.Minute)
	}
	ok, err := tx.Subscriptions().Reread(ctx, in.URL)
	if err == nil && !ok {
		err = protocol.Errorf(protocol.NotFound, "this node does not follow %s, or was not accepted; list_peers names the boards", in.URL)
	}
	if err != nil {
		return protocol.None{}, err
	}
	how := ""
	if in.Forget {
		how = "forget since " + since.UTC().Format(time.RFC3339)
		if err := tx.Subscriptions().EnqueueForget(ctx, storage.ForgetArgs{Board: in.URL, Since: since}); err != nil {
			return protocol.None{}, err
		}
	}
	return protocol.None{}, tx.Audit(ctx, c.Actor(), "peer reread", in.URL, how)
}

// Conflict reads the evidence that the log of a followed board contradicts itself.
func (Peers) Conflict(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.PeerAddress) (protocol.ConflictEvidence, error) {
	c, err := tx.Subscriptions().Conflict(ctx, in.URL)
	if err != nil {
		return protocol.ConflictEvidence{}, storage.IfMissing(err,
			protocol.Errorf(protocol.NotFound, "no conflict of %s is known; list_peers names the boards", in.URL))
	}
	return protocol.ConflictEvidence{
		Conflict: moderation.ConflictOf(*c), OursDocument: string(c.OursDoc), TheirsDocument: string(c.TheirsDoc), Untrusted: true,
	}, nil
}

func (p Peers) hasten(ctx context.Context, tx *storage.Tx, address string) (bool, error) {
	if due, err := tx.Subscriptions().Hasten(ctx, address); due || err != nil {
		return due, err
	}
	dropped, err := tx.Jobs().DropNamed(ctx, storage.FollowJob, followName(address))
	if err != nil {
		return false, err
	}
	_, err = tx.Subscriptions().ByBoard(ctx, address) // a follow that was sent and has no answer, or was refused
	if err == nil || dropped > 0 && errors.Is(err, storage.ErrNotFound) {
		return true, enqueueFollow(ctx, tx, moderation.FollowArgs{URL: address, Since: tx.Now}, 0, "")
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	o, err := tx.Outlets().ByInbox(ctx, protocol.BoardID(p.Base), address)
	if err != nil {
		return false, storage.IfMissing(err, nil)
	}
	return true, tx.Outlets().WakeHost(ctx, o.Host)
}

// FollowJobs are the jobs that follow and unfollow for operators.
type FollowJobs struct {
	Follow, Unfollow func(ctx context.Context, address string) error
	Log              *slog.Logger
}

// followPauses are the pauses of a follow whose node does not answer; afterwards it
// is retried once an hour, until followFor is over.
var followPauses = []time.Duration{
	5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
	30 * time.Minute, time.Hour,
}

const followFor = 24 * time.Hour

// Job is the handler of storage.FollowJob. A node that is not a stoa node with a
// board is a final error; one that does not answer is retried for a day.
func (f FollowJobs) Job(ctx context.Context, j storage.Job, args moderation.FollowArgs) (func(context.Context, *storage.Tx) error, error) {
	cause := f.Follow(ctx, args.URL)
	if cause == nil {
		return nil, nil
	}
	if e, ok := errors.AsType[*protocol.Error](cause); ok && !e.Code.Temporary() {
		return nil, cause // buried, with a word in the log
	}
	wait := netx.Jitter(followPauses[min(args.Tries, len(followPauses)-1)])
	args.Tries++
	if !args.Since.IsZero() && time.Since(args.Since)+wait > followFor {
		return nil, protocol.Errorf(protocol.Gone, "given up after a day and %d tries: %w", args.Tries, cause)
	}
	f.Log.Warn("follow failed and is tried again", "address", args.URL, "tries", args.Tries, "in", wait.Round(time.Second), "err", cause)
	return func(ctx context.Context, tx *storage.Tx) error {
		if args.Since.IsZero() { // queued by a version that did not say
			args.Since = tx.Now
		}
		return enqueueFollow(ctx, tx, args, wait, cause.Error())
	}, nil
}

// EndJob is the handler of UnfollowJob.
func (f FollowJobs) EndJob(ctx context.Context, j storage.Job, args protocol.PeerAddress) (func(context.Context, *storage.Tx) error, error) {
	if err := f.Unfollow(ctx, args.URL); !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	return nil, nil
}
