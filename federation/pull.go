package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Intervals of reading a board's log without a push, and limits of a walk.
const (
	heartbeat      = 15 * time.Minute
	heartbeatDrift = 5 * time.Minute
	maxPullPause   = 15 * time.Minute
	pullBudget     = 60 * time.Second // of one job; a longer walk continues in the next
	applyTogether  = 50               // entries in one transaction
	epochPause     = time.Hour        // between two accepted changes of epoch
)

// A logPage is one page of another board's log.
type logPage struct {
	Type         activity.Types    `json:"type"`
	PartOf       activity.Refs     `json:"partOf"`
	Epoch        activity.Text     `json:"stoa:epoch"`
	Head         *int64            `json:"stoa:head"`
	OrderedItems []json.RawMessage `json:"orderedItems"`
	SignedHead   json.RawMessage   `json:"stoa:signedHead"`
	Tree         activity.Text     `json:"stoa:tree"`
}

// nextHeartbeat is how long after a walk a log is read again without a push.
func nextHeartbeat() time.Duration { return heartbeat + rand.N(2*heartbeatDrift) - heartbeatDrift }

// pullPause is how long after the n-th failure in a row a log is read again.
func pullPause(n int) time.Duration { return netx.Jitter(netx.Backoff(time.Second, maxPullPause, n)) }

// enqueuePull queues a walk of a board's log, unless one is waiting already.
func (f *Federation) enqueuePull(ctx context.Context, tx *storage.Tx, board string) error {
	args, err := json.Marshal(board)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.PullJob, Lane: storage.WalkName + board, Dedupe: storage.WalkName + board, Args: args})
}

// A followed is a followed board's log as a walk reads it.
type followed struct {
	storage.Subscription
	taken    []storage.Taken       // compared when the log is read next
	conflict bool                  // nothing is taken of it
	tree     *storage.FollowedTree // nil: none was accepted
}

// following returns a followed board; nil when it is not followed.
func (f *Federation) following(ctx context.Context, board string) (*followed, error) {
	var s *followed
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil || found.State != storage.SubscriptionAccepted {
			return absent(err)
		}
		s = &followed{Subscription: *found}
		if s.conflict, err = tx.Subscriptions().HasConflict(ctx, board); err != nil {
			return err
		}
		if s.taken, err = tx.Subscriptions().ListTaken(ctx, board); err != nil {
			return err
		}
		t, err := tx.Subscriptions().Tree(ctx, board)
		if err == nil {
			s.tree = t
		}
		return absent(err)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// A walk reads the log of a followed board from what was taken last to its head.
type walk struct {
	head     int64
	signed   json.RawMessage // the last signed head
	compared int64           // what was taken up to this number is what the log has
	tree     *followedTree   // the tree that it has now; nil: not read yet, or there is none
	proved   int64           // entries up to this number are those of the tree
}

// pull walks the log of a followed board from our cursor to its head. The
// subscription holds its schedule of retries, so it never fails as a job.
func (f *Federation) pull(ctx context.Context, j storage.Job) (after, error) {
	var board string
	if err := j.Decode(&board); err != nil {
		return nil, err
	}
	until := f.now().Add(pullBudget)
	w := &walk{}
	var s *followed
	var more bool
	for {
		var err error
		if s, err = f.following(ctx, board); err != nil || s == nil {
			return nil, err
		}
		done, err := f.pullPage(ctx, s, w)
		if err != nil {
			return f.pullStopped(s, w, err)
		}
		if done {
			break
		}
		if more = f.now().After(until); more {
			break
		}
	}
	f.observe("pull", hostOf(board), nil)
	if w.tree != nil {
		if err := f.compareElsewhere(ctx, board, w.tree); err != nil {
			return f.pullStopped(s, w, err)
		}
	}
	known := max(w.proved, proved(s))
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil {
			return absent(err)
		}
		next := nextHeartbeat()
		if v, ok := f.wanted.Load(board); ok && v.(int64) > s.LastSeq || more {
			f.wanted.Delete(board) // once: a number that does not exist must not cause endless walks
			next = 0
		}
		s.Head, s.CheckedAt, s.NextAt, s.Failures, s.LastError = w.head, tx.Now, tx.Now.Add(next), 0, ""
		if s.OKAt = tx.Now; w.signed != nil {
			s.SignedHead = w.signed
		}
		if w.tree != nil {
			if known < s.LastSeq { // the tree does not have them yet
				s.NextAt = tx.Now.Add(min(next, compareAfter))
			}
			if err := tx.Subscriptions().ProvedTree(ctx, board, s.Epoch, w.proved); err != nil {
				return err
			}
		}
		if err := tx.Subscriptions().Put(ctx, *s); err != nil {
			return err
		}
		return tx.Subscriptions().Compared(ctx, board, w.compared)
	}, nil
}

// pullStopped is the end of a walk by an error.
func (f *Federation) pullStopped(s *followed, w *walk, err error) (after, error) {
	if c, ok := errors.AsType[*conflictError](err); ok {
		return f.noteConflict(s, c)
	}
	f.observe("pull", s.Host, err)
	return f.pullFailed(s.Board, w.head, err), nil
}

func (f *Federation) pullFailed(board string, head int64, cause error) after {
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil {
			return absent(err)
		}
		s.Failures++
		s.Head, s.CheckedAt, s.NextAt, s.LastError = head, tx.Now, tx.Now.Add(pullPause(s.Failures)), clipError(cause)
		return tx.Subscriptions().Put(ctx, *s)
	}
}

// clipError returns the text of an error as it is stored: without what PostgreSQL refuses, since parts of it may be a peer's, and some 500
// bytes at most.
func clipError(err error) string { return protocol.Clip(protocol.CleanText(err.Error()), 500) }

// readPage reads the page of a log after a number.
func (f *Federation) readPage(ctx context.Context, s *followed, after int64) (*logPage, error) {
	raw, err := f.fetch(ctx, s.LogURL+"?after="+strconv.FormatInt(after, 10)+"&limit="+strconv.Itoa(maxLogPage), "")
	if err != nil {
		return nil, err
	}
	var page logPage
	if err := fetchLimits.DecodeLoose(raw, &page); err != nil {
		return nil, fmt.Errorf("page of %s: %w", s.LogURL, err)
	}
	if page.PartOf.One() != s.LogURL || page.Head == nil || page.Epoch == "" || len(page.OrderedItems) > maxLogPage {
		return nil, fmt.Errorf("page of %s: not a page of this log", s.LogURL)
	}
	return &page, nil
}

// pullPage reads one page, compares what was taken of it before, applies the rest, and
// sets the head of the walk. done reports that the head is reached.
func (f *Federation) pullPage(ctx context.Context, s *followed, w *walk) (done bool, err error) {
	from := s.LastSeq
	for _, t := range s.taken {
		if t.Seq > w.compared {
			from = t.Seq - 1
			break
		}
	}
	if s.tree != nil {
		from = min(from, max(s.tree.Proved, w.proved, w.compared))
	}
	page, err := f.readPage(ctx, s, from)
	if err != nil {
		return false, err
	}
	if string(page.Epoch) != s.Epoch {
		return false, f.changeEpoch(ctx, &s.Subscription, string(page.Epoch))
	}
	if s.conflict {
		return false, errConflict
	}
	head, err := f.readHead(ctx, &s.Subscription, page)
	if err != nil {
		return false, fmt.Errorf("signed head of %s: %w", s.LogURL, err)
	}
	if *page.Head < s.LastSeq {
		return false, f.fallback(ctx, s, *page.Head, head)
	}
	if w.head = *page.Head; head != nil {
		w.signed = head.raw
	}
	rest, err := f.compare(ctx, s, page, head, from, w)
	if err != nil {
		return false, err
	}
	if err := f.proveEntries(ctx, s, page, from, w); err != nil {
		return false, err
	}
	ctx = withPolicies(ctx)
	entries, stop := f.readAhead(ctx, s.Subscription, rest)
	defer stop()
	for chunk := range slices.Chunk(entries, applyTogether) {
		n, err := f.applyChunk(ctx, &s.Subscription, chunk)
		if errors.Is(err, errMoved) {
			return false, nil // continue from the other worker's cursor
		}
		if err != nil || n < len(chunk) {
			return false, err
		}
		w.compared = s.LastSeq
	}
	return len(page.OrderedItems) == 0 || s.LastSeq >= *page.Head && w.compared >= s.LastSeq, nil
}

// changeEpoch restarts a log from its beginning: its board was restored from a
// backup. Known entries are kept; the walk adds what is missing.
func (f *Federation) changeEpoch(ctx context.Context, s *storage.Subscription, epoch string) error {
	now := f.now()
	if s.Epoch != "" && s.Epoch != storage.Again {
		if err, lately := f.misses.Get("epoch "+s.Board, now); lately {
			return err
		}
		f.misses.Put("epoch "+s.Board, fmt.Errorf("log of %s changes its epoch too often", s.Host), len(s.Host), now.Add(epochPause))
		f.log.Warn("board begins its log again", "host", s.Host, "board", s.Board)
	}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		moved, err := tx.Subscriptions().Reset(ctx, s.Board, s.Epoch, epoch)
		if err != nil || !moved || s.Epoch == "" {
			return err
		}
		// The backup may be older than our Follow: send it again, under a new id.
		now, err := tx.Subscriptions().ByBoard(ctx, s.Board)
		if err != nil {
			return err
		}
		now.FollowID = f.site.Base + "/ap/follows/" + protocol.NewID(protocol.ActivityID, tx.Now)
		if err := tx.Subscriptions().Put(ctx, *now); err != nil {
			return err
		}
		return f.enqueueFollow(ctx, tx, s.Board, s.Board+"/inbox", now.FollowID)
	})
}

// applyChunk applies entries that are being read, in one transaction that also advances
// the cursor. If an entry fails, those before it are applied. It returns how many were
// applied, and advances s; fewer than all without an error means that the job is short of
// time.
func (f *Federation) applyChunk(ctx context.Context, s *storage.Subscription, chunk []*reading) (applied int, err error) {
	var effects []after
	var last *reading
	flush := func() error {
		err := f.commit(ctx, s, effects, last)
		if err == nil {
			applied, s.LastSeq, effects = applied+len(effects), s.LastSeq+int64(len(effects)), nil
		}
		return err
	}
	for _, r := range chunk {
		<-r.done
		seq := s.LastSeq + int64(len(effects)) + 1
		if r.shape != nil {
			return 0, errors.Join(fmt.Errorf("log of %s: entry %d: %w", s.Host, seq, r.shape), flush())
		}
		if r.entry.Seq == nil || *r.entry.Seq != seq {
			return 0, errors.Join(fmt.Errorf("log of %s: entry %d is not where it belongs", s.Host, seq), flush())
		}
		if !r.selfContained() { // it is read using the database: the entries before it are applied first
			if err := flush(); err != nil {
				return 0, err
			}
			r.effect, r.err = f.readEntry(ctx, s, &r.entry, r.announced, r.raw)
		}
		if r.err != nil {
			return 0, errors.Join(r.err, flush())
		}
		last = r
		if effects = append(effects, r.effect); nearDeadline(ctx) {
			break
		}
	}
	err = flush()
	return applied, err
}

// nearDeadline reports whether a job, or the service of an outlet, must end soon, so that
// what it has done is stored before it is stopped.
func nearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < fetchTimeout+5*time.Second
}

func (f *Federation) commit(ctx context.Context, s *storage.Subscription, effects []after, last *reading) error {
	if len(effects) == 0 {
		return nil
	}
	taken := storage.Taken{Seq: *last.entry.Seq, Hash: activity.EntryHash(&last.entry, &last.announced.act), Entry: last.raw}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		moved, err := tx.Subscriptions().Advance(ctx, s.Board, s.Epoch, s.LastSeq, s.LastSeq+int64(len(effects)))
		if err != nil {
			return err
		}
		if !moved {
			return errMoved
		}
		if err := tx.Subscriptions().Compared(ctx, s.Board, taken.Seq); err != nil { // what was taken before has been compared
			return err
		}
		if err := tx.Subscriptions().Take(ctx, s.Board, taken); err != nil {
			return err
		}
		for _, effect := range effects {
			if err := effect(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}
