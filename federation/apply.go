package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/protocol/activity"
	"stoa/protocol/netx"
	"stoa/storage"
)

// maxAhead is the largest distance between our cursor and a pushed sequence number.
// A larger one is a mistake or a forgery; the heartbeat reads the true head.
const maxAhead = 100_000

// patience is the number of failed walks after which an entry of a third node is
// skipped, so that one dead node cannot stop a board forever.
const patience = 5

// errMoved is returned when another worker has advanced the cursor.
var errMoved = errors.New("the cursor has moved")

// handleAnnounce handles a pushed entry of the log of a board that this node
// follows. The next entry is applied at once; a gap, another epoch, or an entry
// that cannot be decided now queues a walk of the log.
func (f *Federation) handleAnnounce(ctx context.Context, in *incoming) (after, error) {
	s, err := f.following(ctx, in.actor)
	if err != nil || s == nil {
		return nil, err
	}
	seq, announced := *in.act.Seq, announcedBy(&in.act)
	hash := activity.EntryHash(&in.act, &announced.act)
	if string(in.act.Epoch) == s.Epoch && (s.conflict || s.repeats(seq, hash)) {
		return nil, nil
	}
	walk := func(ctx context.Context, tx *storage.Tx) error { return f.enqueuePull(ctx, tx, s.Board) }
	if string(in.act.Epoch) != s.Epoch || seq != s.LastSeq+1 || len(s.taken) >= maxTaken {
		if seq-s.LastSeq <= maxAhead {
			f.noteAnnounced(s.Board, seq)
		}
		return walk, nil
	}
	apply, err := f.readEntry(ctx, &s.Subscription, &in.act, announced, nil)
	if err != nil {
		f.observe("push", in.host, err)
		return walk, nil // the walk decides whether to wait or to skip
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		moved, err := tx.Subscriptions().Advance(ctx, s.Board, s.Epoch, seq-1, seq)
		if err != nil {
			return err
		}
		if !moved {
			return walk(ctx, tx)
		}
		if err := tx.Subscriptions().Take(ctx, s.Board, storage.Taken{Seq: seq, Hash: hash, Entry: in.raw}); err != nil {
			return err
		}
		if err := tx.Subscriptions().Soon(ctx, s.Board, tx.Now.Add(netx.Jitter(compareAfter))); err != nil {
			return err
		}
		return apply(ctx, tx)
	}, nil
}

// repeats reports whether a pushed entry is one that was taken: it is the same one, as far as this
// node can tell. One of a lower number that is not known any more is read again with the log.
func (s *followed) repeats(seq int64, hash string) bool {
	for _, t := range s.taken {
		if t.Seq == seq {
			return t.Hash == hash
		}
	}
	return seq <= s.LastSeq && len(s.taken) == 0
}

// noteAnnounced records the highest sequence number that was announced, so that a running
// walk continues up to it.
func (f *Federation) noteAnnounced(board string, seq int64) {
	for {
		old, loaded := f.wanted.LoadOrStore(board, seq)
		if !loaded || old.(int64) >= seq || f.wanted.CompareAndSwap(board, old, seq) {
			return
		}
	}
}

// noEffect is the effect of an entry that is skipped.
func noEffect(context.Context, *storage.Tx) error { return nil }

// An announcement is the activity that an entry of a log announces, and the post in
// it, if they can be read.
type announcement struct {
	act             activity.Activity
	note            activity.Note // of a Create or Update
	stoa            bool          // note is a post of a stoa node
	actErr, noteErr error         // the error of reading act or note
}

func announcedBy(e *activity.Activity) *announcement {
	a := &announcement{}
	if !e.Embedded() {
		a.actErr = activity.ErrShape
	} else if a.actErr = strictjson.DecodeChecked(e.Object, &a.act); a.actErr == nil && a.act.Type.Is("Create", "Update") {
		a.noteErr = strictjson.DecodeChecked(a.act.Object, &a.note)
		a.stoa = a.noteErr == nil && a.note.IsStoa(a.act.Context)
	}
	return a
}

// selfContained reports whether the activity can be read without the database: a
// Delete, a bid, and a Create or Update by a stoa node. A reply of the fediverse needs its parent, a
// Remove or Add its post.
func (a *announcement) selfContained() bool {
	if a.actErr != nil || a.act.Type.Is("Delete", "Offer", "Undo") {
		return true
	}
	return a.stoa
}

// readEntry reads one entry of a followed board's log, does every lookup that it
// needs, and returns its effect. raw is the entry as received, whose proof by the
// board is verified; nil if the entry is known to be the board's. Invalid content
// has no effect and the log continues; an error means that the entry is retried.
func (f *Federation) readEntry(ctx context.Context, s *storage.Subscription, e *activity.Activity, a *announcement, raw json.RawMessage) (after, error) {
	if e.Type.Is("Tombstone") {
		return noEffect, nil
	}
	if e.Actor.One() != s.Board || !e.Type.Is("Announce") || !e.Embedded() {
		return f.skipEntry(s, fmt.Errorf("%w: not an entry of this board", activity.ErrShape))
	}
	if raw != nil {
		if err := f.verifyProof(ctx, raw, s.Board); err != nil {
			return nil, fmt.Errorf("proof of the board: %w", err) // changed in transit
		}
	}
	if a.actErr != nil {
		return f.skipEntry(s, a.actErr)
	}
	var effect after
	var err error
	switch inner := &a.act; {
	case inner.Type.Is("Create", "Update"):
		effect, err = f.readPost(ctx, s, a, e.Object)
	case inner.Type.Is("Delete"):
		effect, err = f.readDelete(ctx, s, inner, e.Object)
	case inner.Type.Is("Remove", "Add") && inner.Actor.One() == s.Board:
		effect, err = f.readModeration(ctx, s, inner)
	case inner.Type.Is("Offer") && !inner.Embedded():
		effect = f.readOfferAgain(s, inner)
	case inner.Type.Is("Offer"):
		effect, err = f.readOffer(ctx, s, inner)
	case inner.Type.Is("Undo"):
		effect, err = f.readUndo(s, inner)
	default:
		return noEffect, nil
	}
	switch {
	case err == nil:
		return effect, nil
	case isRefused(err), errors.Is(err, errGone), errors.Is(err, errNotFound):
		return f.skipEntry(s, err)
	}
	return nil, err
}

// skipEntry records why an entry is skipped.
func (f *Federation) skipEntry(s *storage.Subscription, err error) (after, error) {
	f.observe("kept-out", s.Host, err)
	f.log.Warn("log entry kept out", "host", s.Host, "board", s.Board, "err", err)
	reason := clipError(err)
	return func(ctx context.Context, tx *storage.Tx) error {
		if err := f.grow(ctx, tx, storage.StockTold); err != nil {
			return err
		}
		return tx.Audit(ctx, s.Board, "kept-out", s.Host, reason)
	}, nil
}

// readPost reads a post of the board, new or changed. The log is sufficient for a post of the
// board's own node; a reply of a third node needs that node's proof or is fetched
// from there.
func (f *Federation) readPost(ctx context.Context, s *storage.Subscription, a *announcement, raw json.RawMessage) (after, error) {
	act := &a.act
	actor := act.Actor.One()
	if f.isLocal(actor) {
		return noEffect, nil // our own reply has arrived in their log
	}
	if a.noteErr != nil {
		return nil, fmt.Errorf("%w: %w", activity.ErrShape, a.noteErr)
	}
	n := &a.note
	note, object := n, act.Object
	if n.AttributedTo.One() != actor || !f.sameOrigin(string(n.ID), actor) || !act.Embedded() {
		return nil, fmt.Errorf("%w: the post is not its actor's own", errIdentity)
	}
	boards := sameNode(actor, s.Board)
	if !boards || !a.stoa { // otherwise examine checks the host
		if err := f.admits(ctx, hostOf(actor)); err != nil { // CVE-2026-23961: the inner author counts
			return nil, err
		}
	}
	if !boards {
		fetched, raw, err := f.verifyOrigin(ctx, s, act, raw)
		if err != nil {
			return nil, err
		}
		if fetched != nil {
			note, object = fetched, raw
		}
	}
	if !note.IsStoa(act.Context) {
		parent, err := f.storedPost(ctx, note.InReplyTo.One())
		if err != nil || len(note.InReplyTo) > 0 && (parent == nil || parent.Board != s.Board) {
			return noEffect, err
		}
		p, err := f.readReply(ctx, note, parent)
		if err != nil {
			return nil, err
		}
		p.Board = s.Board
		return func(ctx context.Context, tx *storage.Tx) error {
			_, err := f.take(ctx, tx, p, act.Type.Is("Update"))
			return err
		}, nil
	}
	p, err := f.examine(ctx, note, object)
	if err != nil {
		return nil, err
	}
	if p.Board != s.Board {
		return nil, fmt.Errorf("%w: a post of another board", errIdentity)
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := f.take(ctx, tx, p, act.Type.Is("Update"))
		return err
	}, nil
}

// verifyOrigin checks that a third node published what a board announces of it: by the
// node's proof on the activity, otherwise by fetching the post from the node.
func (f *Federation) verifyOrigin(
	ctx context.Context, s *storage.Subscription, act *activity.Activity, raw json.RawMessage,
) (*activity.Note, json.RawMessage, error) {
	err := f.verifyProof(ctx, raw, act.Actor.One())
	if err == nil {
		return nil, nil, nil
	}
	if !errors.Is(err, integrity.ErrNoProof) && !errors.Is(err, integrity.ErrProof) {
		return nil, nil, f.finalAfterRetries(s, err)
	}
	n, fetched, ferr := f.fetchNote(ctx, act.ObjectID())
	if ferr != nil {
		return nil, nil, f.finalAfterRetries(s, ferr)
	}
	if n.AttributedTo.One() != act.Actor.One() {
		return nil, nil, fmt.Errorf("%w: its origin names another author", errIdentity)
	}
	return n, fetched, nil
}

// finalAfterRetries makes an error final once the board's log has waited for the entry
// often enough.
func (f *Federation) finalAfterRetries(s *storage.Subscription, err error) error {
	if s.Failures >= patience && !isRefused(err) {
		return fmt.Errorf("%w: %w", errIdentity, err)
	}
	return err
}

// readDelete reads the deletion of a post by its author. The board's announcement
// is sufficient for posts of the board's own node; a third node's needs its proof.
func (f *Federation) readDelete(ctx context.Context, s *storage.Subscription, act *activity.Activity, raw json.RawMessage) (after, error) {
	actor, uri := act.Actor.One(), act.ObjectID()
	if f.isLocal(actor) || uri == "" || !f.sameOrigin(uri, actor) {
		return noEffect, nil
	}
	if !sameNode(actor, s.Board) {
		if err := f.verifyProof(ctx, raw, actor); err != nil {
			// Without a proof, the origin is asked whether the post is gone.
			if _, _, ferr := f.fetchNote(ctx, uri); ferr == nil {
				return nil, fmt.Errorf("%w: its origin still has the post", errIdentity)
			} else if !errors.Is(ferr, errGone) && !errors.Is(ferr, errNotFound) {
				return nil, f.finalAfterRetries(s, ferr)
			}
		}
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		_, err := f.erase(ctx, tx, uri, actor)
		return err
	}, nil
}

// readModeration reads that the board hid or restored a post. A restored post that
// was hidden when this node read its entry is fetched now.
func (f *Federation) readModeration(ctx context.Context, s *storage.Subscription, act *activity.Activity) (after, error) {
	uri := act.ObjectID()
	held, err := f.storedPost(ctx, uri)
	if err != nil {
		return nil, err
	}
	if held != nil && (held.Board != s.Board || held.Node == nil) {
		return noEffect, nil
	}
	if act.Type.Is("Remove") {
		return func(ctx context.Context, tx *storage.Tx) error { return f.c.Receiver.HidePost(ctx, tx, uri) }, nil
	}
	if held != nil {
		return func(ctx context.Context, tx *storage.Tx) error { return f.c.Receiver.RestorePost(ctx, tx, uri) }, nil
	}
	n, raw, err := f.fetchNote(ctx, uri)
	if err != nil {
		return nil, f.finalAfterRetries(s, err)
	}
	if !n.IsStoa(nil) || n.Audience.One() != s.Board {
		return noEffect, nil
	}
	p, err := f.examine(ctx, n, raw)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *storage.Tx) error { _, err := f.receive(ctx, tx, p); return err }, nil
}
