package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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
}

// enqueuePull queues a walk of a board's log, unless one is waiting already.
func (f *Federation) enqueuePull(ctx context.Context, tx *storage.Tx, board string) error {
	args, err := json.Marshal(board)
	if err != nil {
		return err
	}
	return tx.Enqueue(ctx, storage.Job{Kind: storage.PullJob, Lane: "pull:" + board, Dedupe: "pull:" + board, Args: args})
}

// pull walks the log of a followed board from our cursor to its head. The
// subscription holds its schedule of retries, so it never fails as a job.
func (f *Federation) pull(ctx context.Context, j storage.Job) (after, error) {
	var board string
	if err := j.Decode(&board); err != nil {
		return nil, err
	}
	until := f.now().Add(pullBudget)
	var more bool
	var head int64
	for {
		s, err := f.subscribed(ctx, board)
		if err != nil || s == nil {
			return nil, err
		}
		done, err := f.pullPage(ctx, s)
		head = s.Head
		if err != nil {
			f.observe("pull", s.Host, err)
			return f.pullFailed(board, head, err), nil
		}
		if done {
			break
		}
		if more = f.now().After(until); more {
			break
		}
	}
	f.observe("pull", hostOf(board), nil)
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil {
			return absent(err)
		}
		next := heartbeat + rand.N(2*heartbeatDrift) - heartbeatDrift
		if v, ok := f.wanted.Load(board); ok && v.(int64) > s.LastSeq || more {
			f.wanted.Delete(board) // once: a number that does not exist must not cause endless walks
			next = 0
		}
		s.Head, s.CheckedAt, s.NextAt, s.Failures, s.LastError = head, tx.Now, tx.Now.Add(next), 0, ""
		return tx.Subscriptions().Put(ctx, *s)
	}, nil
}

func (f *Federation) pullFailed(board string, head int64, cause error) after {
	return func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Subscriptions().ByBoard(ctx, board)
		if err != nil {
			return absent(err)
		}
		pause := netx.Backoff(time.Second, maxPullPause, s.Failures+1)
		s.Failures++
		s.Head, s.CheckedAt, s.NextAt, s.LastError = head, tx.Now, tx.Now.Add(netx.Jitter(pause)), clipError(cause)
		return tx.Subscriptions().Put(ctx, *s)
	}
}

func clipError(err error) string {
	s := err.Error()
	if len(s) > 500 {
		s = s[:500]
	}
	return s
}

// pullPage reads and applies one page, and sets s.Head. done reports that the head is reached.
func (f *Federation) pullPage(ctx context.Context, s *storage.Subscription) (done bool, err error) {
	address := s.LogURL + "?after=" + strconv.FormatInt(s.LastSeq, 10) + "&limit=" + strconv.Itoa(maxLogPage)
	etag := ""
	if s.Epoch != "" {
		etag = logTag(s.Epoch, s.LastSeq)
	}
	raw, err := f.fetch(ctx, address, etag)
	if err != nil || raw == nil {
		return err == nil, err
	}
	var page logPage
	if err := fetchLimits.DecodeLoose(raw, &page); err != nil {
		return false, fmt.Errorf("page of %s: %w", s.LogURL, err)
	}
	if page.PartOf.One() != s.LogURL || page.Head == nil || page.Epoch == "" || len(page.OrderedItems) > maxLogPage {
		return false, fmt.Errorf("page of %s: not a page of this log", s.LogURL)
	}
	if string(page.Epoch) != s.Epoch {
		return false, f.changeEpoch(ctx, s, string(page.Epoch))
	}
	if *page.Head < s.LastSeq {
		return false, fmt.Errorf("log of %s goes back from %d to %d within one epoch", s.Host, s.LastSeq, *page.Head)
	}
	s.Head = *page.Head
	for at := 0; at < len(page.OrderedItems); at += applyTogether {
		chunk := page.OrderedItems[at:min(at+applyTogether, len(page.OrderedItems))]
		n, err := f.applyChunk(ctx, s, chunk)
		if errors.Is(err, errMoved) {
			return false, nil // continue from the other worker's cursor
		}
		if err != nil || n < len(chunk) {
			return false, err
		}
	}
	return len(page.OrderedItems) == 0 || s.LastSeq >= *page.Head, nil
}

// changeEpoch restarts a log from its beginning: its board was restored from a
// backup. Known entries are kept; the walk adds what is missing.
func (f *Federation) changeEpoch(ctx context.Context, s *storage.Subscription, epoch string) error {
	now := f.now()
	if s.Epoch != "" {
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

// applyChunk reads entries with all their lookups, then applies them in one
// transaction that also advances the cursor. If an entry fails, those before it are
// applied. It returns how many were applied, and advances s; fewer than all without
// an error means that the job is short of time.
func (f *Federation) applyChunk(ctx context.Context, s *storage.Subscription, items []json.RawMessage) (applied int, err error) {
	var effects []after
	flush := func() error {
		err := f.commit(ctx, s, effects)
		if err == nil {
			applied, s.LastSeq, effects = applied+len(effects), s.LastSeq+int64(len(effects)), nil
		}
		return err
	}
	for _, raw := range items {
		seq := s.LastSeq + int64(len(effects)) + 1
		var e activity.Activity
		if err := fetchLimits.DecodeLoose(raw, &e); err != nil {
			return 0, errors.Join(fmt.Errorf("log of %s: entry %d: %w", s.Host, seq, err), flush())
		}
		if e.Seq == nil || *e.Seq != seq {
			return 0, errors.Join(fmt.Errorf("log of %s: entry %d is not where it belongs", s.Host, seq), flush())
		}
		// Some entries are read using the database: the entries before them are applied
		// first.
		announced := announcedBy(&e)
		if e.Embedded() && !announced.selfContained() {
			if err := flush(); err != nil {
				return 0, err
			}
		}
		effect, err := f.readEntry(ctx, s, &e, announced, raw)
		if err != nil {
			return 0, errors.Join(err, flush())
		}
		if effects = append(effects, effect); nearDeadline(ctx) {
			break
		}
	}
	err = flush()
	return applied, err
}

// nearDeadline reports whether the job must end soon, so that what it has read is
// applied before it is stopped.
func nearDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < fetchTimeout+5*time.Second
}

func (f *Federation) commit(ctx context.Context, s *storage.Subscription, effects []after) error {
	if len(effects) == 0 {
		return nil
	}
	return f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		moved, err := tx.Subscriptions().Advance(ctx, s.Board, s.Epoch, s.LastSeq, s.LastSeq+int64(len(effects)))
		if err != nil {
			return err
		}
		if !moved {
			return errMoved
		}
		for _, effect := range effects {
			if err := effect(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}
