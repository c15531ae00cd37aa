package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A followed log is compared with what was taken of it whenever it is read: the walk
// begins with the last entry taken, and with those that were pushed since. A log that
// contradicts it within one epoch is in conflict: nothing more is taken of it until it
// begins a new epoch, or an operator of this node decides (reread_peer, unfollow_peer).

// Limits of taking pushed entries that the log was not read for.
const (
	maxTaken     = 32          // then the log is read
	compareAfter = time.Minute // the log is read within this time
)

// errConflict is the state of a board whose log is in conflict.
var errConflict = errors.New("its log contradicts what was taken of it; nothing more is taken until it begins a new epoch, " +
	"or an operator decides (peer reread, peer unfollow)")

// A conflictError is a conflict that a walk found.
type conflictError struct{ storage.Conflict }

func (e *conflictError) Error() string {
	if e.Kind == storage.ConflictFallback {
		return fmt.Sprintf("the log ends before entry %d, which was taken", e.Seq)
	}
	if e.Kind == storage.ConflictTree {
		return fmt.Sprintf("the tree of the log contradicts itself, or its entries, at %d", e.Seq)
	}
	return fmt.Sprintf("entry %d is another one than was taken", e.Seq)
}

// compare compares the entries of a page up to our cursor with what was taken of them,
// and returns the others. The last entry of the log must be that of its signed head.
func (f *Federation) compare(
	ctx context.Context, s *followed, page *logPage, head *logHead, from int64, w *walk,
) (rest []json.RawMessage, err error) {
	if n := from + int64(len(page.OrderedItems)); head != nil && n == head.seq && n > 0 && len(page.OrderedItems) > 0 {
		if hash := hashOf(page.OrderedItems[len(page.OrderedItems)-1]); hash != "" && hash != head.hash {
			return nil, fmt.Errorf("log of %s: its signed head has another last entry", s.Host)
		}
	}
	for n, raw := range page.OrderedItems {
		seq := from + int64(n) + 1
		if seq > s.LastSeq {
			return page.OrderedItems[n:], nil
		}
		i := slices.IndexFunc(s.taken, func(t storage.Taken) bool { return t.Seq == seq && t.Hash != "" })
		if i >= 0 {
			if hash := hashOf(raw); hash != "" && hash != s.taken[i].Hash {
				return nil, f.conflicting(ctx, s, storage.ConflictFork, seq, s.taken[i].Hash, hash, raw)
			}
		}
		w.compared = seq
	}
	return nil, nil
}

// fallback is a log that ends before our cursor. A head that was signed before the one
// that was seen last is an old answer, which proves nothing.
func (f *Federation) fallback(ctx context.Context, s *followed, at int64, head *logHead) error {
	theirs, doc := "", []byte(nil)
	if head != nil {
		if seen, err := decodeHead(s.SignedHead); err == nil && !head.at.After(seen.Published.Time) {
			return fmt.Errorf("log of %s: an old answer, with the head %d", s.Host, at)
		}
		theirs, doc = head.hash, head.raw
	}
	ours := ""
	if n := len(s.taken); n > 0 && s.taken[n-1].Seq == s.LastSeq {
		ours = s.taken[n-1].Hash
	}
	return f.conflicting(ctx, s, storage.ConflictFallback, s.LastSeq, ours, theirs, doc)
}

// conflicting makes the conflict of a walk, with the entry that was taken.
func (f *Federation) conflicting(ctx context.Context, s *followed, kind storage.ConflictKind, seq int64, ours, theirs string, doc []byte) error {
	c := &conflictError{storage.Conflict{
		Board: s.Board, Kind: kind, Epoch: s.Epoch, Seq: seq, Ours: ours, Theirs: theirs, TheirsDoc: doc,
	}}
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		c.OursDoc, err = tx.Subscriptions().TakenEntry(ctx, s.Board, seq)
		return absent(err)
	})
	if err != nil {
		return err
	}
	return c
}

// noteConflict stores a conflict with both documents, and tells the board's node.
func (f *Federation) noteConflict(s *followed, c *conflictError) (after, error) {
	f.observe("conflict", s.Host, c)
	f.log.Error("a followed log contradicts what was taken of it", "host", s.Host, "board", s.Board, "kind", c.Kind, "epoch", c.Epoch, "seq", c.Seq,
		"ours", c.Ours, "theirs", c.Theirs)
	return func(ctx context.Context, tx *storage.Tx) error {
		now, err := tx.Subscriptions().ByBoard(ctx, s.Board)
		if err != nil || now.Epoch != c.Epoch {
			return absent(err)
		}
		now.CheckedAt, now.NextAt, now.LastError = tx.Now, tx.Now.Add(heartbeat), errConflict.Error()
		if err := tx.Subscriptions().Put(ctx, *now); err != nil {
			return err
		}
		fresh, err := tx.Subscriptions().NoteConflict(ctx, c.Conflict)
		if err != nil || !fresh {
			return err
		}
		id := f.site.Base + "/ap/reports/" + protocol.NewID(protocol.ActivityID, tx.Now)
		report := f.site.ReportLog(id, s.Board, s.LogURL, string(c.Kind), c.Epoch, c.Seq, c.Ours, c.Theirs, tx.Now)
		body, err := f.prove(report, f.site.Node(), tx.Now)
		if err != nil {
			return err
		}
		return f.enqueueDeliverJob(ctx, tx, deliverArgs{Actor: f.site.Node(), Inbox: s.Board + "/inbox", Body: body})
	}, nil
}

// handleLogReport handles the report of a stoa node that follows our board that our log
// contradicts what it took of it. It is kept for the operator while our log has the
// epoch that it is about.
func (f *Federation) handleLogReport(in *incoming) after {
	var c activity.LogConflict
	known := func(hash activity.Text) bool { return hash == "" || activity.IsEntryHash(string(hash)) }
	if fetchLimits.DecodeLoose(present(in.act.Conflict), &c) != nil || c.Seq == nil || *c.Seq < 1 || !known(c.Ours) || !known(c.Theirs) {
		return nil
	}
	kind := storage.ConflictKind(c.Kind)
	if kind != storage.ConflictFork && kind != storage.ConflictFallback && kind != storage.ConflictTree {
		return nil
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		stoa, err := tx.Outlets().FollowingHost(ctx, f.site.Board(), in.host)
		if err != nil || !stoa {
			return absent(err)
		}
		epoch, _, err := tx.Logs().Head(ctx, f.site.Board())
		if err != nil || epoch != string(c.Epoch) {
			return err
		}
		f.log.Error("a node that follows this one reports that our log contradicts what it took of it", "host", in.host, "kind", kind, "seq", *c.Seq)
		return tx.Logs().Report(ctx, storage.Conflict{
			Board: in.host, Kind: kind, Epoch: epoch, Seq: *c.Seq, Ours: string(c.Ours), Theirs: string(c.Theirs),
		})
	}
}
