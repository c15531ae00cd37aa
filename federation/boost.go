package federation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Limits of a stretch.
const (
	perClaim   = 20 // entries for one fediverse inbox per claim
	maxStretch = 1000
	stretchAge = time.Minute
)

// deliverEntries delivers the missing entries to a fediverse inbox, one after the
// other: a Delete must not overtake its post.
func (f *Federation) deliverEntries(ctx context.Context, o storage.Outlet) error {
	leave := f.prepare(ctx, true)
	s, err := f.stretchAfter(ctx, o)
	leave()
	if err != nil {
		return err
	}
	cursor := o.Cursor
	for _, e := range s.entries {
		if cursor > o.Cursor && nearDeadline(ctx) { // of a slow inbox: the next claim delivers the rest
			return f.advance(ctx, o, cursor)
		}
		leave := f.prepare(ctx, true)
		actor, body, err := f.fediverseActivity(ctx, o.Inbox, e)
		leave()
		if err != nil {
			return err
		}
		if body != nil {
			res := f.sendEntry(ctx, actor, o.Inbox, e, body)
			if !res.done() && !res.permanent() {
				if cursor > o.Cursor {
					if err := f.advance(ctx, o, cursor); err != nil {
						return err
					}
					o.Failures = 0
				}
				return f.deliveryFailed(ctx, o, res)
			}
		}
		cursor = e.Seq
	}
	return f.advance(ctx, o, s.last)
}

// A stretch is what inboxes that have the same entries of a log get next.
type stretch struct {
	entries []storage.LogEntry
	last    int64 // where their cursor is afterwards
}

// stretchAfter returns the next entries for an outlet: perClaim of them, or, when more are
// missing, those of maxStretch without the replies that a later reply of the same thread
// follows. Boosting the newest makes a server fetch the thread, and a burst of answers does
// not fill the timelines of everyone. A stretch of that length is the same for every inbox,
// and made once.
func (f *Federation) stretchAfter(ctx context.Context, o storage.Outlet) (s *stretch, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		entries, err := tx.Logs().After(ctx, o.Board, o.Cursor, perClaim+1)
		if err != nil {
			return err
		}
		if len(entries) <= perClaim || o.Board != f.site.Board() {
			s = newStretch(o.Cursor, entries)
			return nil
		}
		_, head, err := tx.Logs().Head(ctx, o.Board)
		if err != nil {
			return err
		}
		name := fmt.Sprint(o.Cursor, " ", head)
		known, ok := f.stretches.Get(name, f.now())
		if ok {
			s = known
			return nil
		}
		if entries, err = tx.Logs().After(ctx, o.Board, o.Cursor, maxStretch); err != nil {
			return err
		}
		last := entries[len(entries)-1].Seq
		if entries, err = gather(ctx, tx, entries); err != nil {
			return err
		}
		if s = newStretch(last, entries); len(entries) <= perClaim {
			s.last = last
		}
		f.stretches.Put(name, s, len(s.entries)<<8, f.now().Add(stretchAge))
		return nil
	})
	return s, err
}

// newStretch is of the first entries, at most perClaim; of none it ends where the outlet is.
func newStretch(cursor int64, entries []storage.LogEntry) *stretch {
	entries = entries[:min(len(entries), perClaim)]
	if n := len(entries); n > 0 {
		cursor = entries[n-1].Seq
	}
	return &stretch{entries, cursor}
}

// gather leaves out the entries that show a reply which a later one of its thread follows.
func gather(ctx context.Context, tx *storage.Tx, entries []storage.LogEntry) (rest []storage.LogEntry, err error) {
	followed := map[string]bool{}
	for _, e := range slices.Backward(entries) {
		if e.Kind == storage.LogCreate || e.Kind == storage.LogRestore {
			p, err := tx.Posts().ByID(ctx, e.ObjectID)
			if absent(err) != nil {
				return nil, err
			}
			if err == nil && p.Root != nil && p.State == protocol.Visible && !p.Unlisted {
				if followed[*p.Root] {
					continue
				}
				followed[*p.Root] = true
			}
		}
		rest = append(rest, e)
	}
	slices.Reverse(rest)
	return rest, nil
}

// fediverseActivity is the activity of a log entry for followers that do not read the
// log: a post is boosted by the board, its change and its deletion come from its
// author, hiding undoes the boost, and an agent tells of its profile. An unlisted post is not boosted.
// Posts of visitors are not sent, but servers that fetched one by its address are told when it is hidden or deleted.
func (f *Federation) fediverseActivity(ctx context.Context, inbox string, e storage.LogEntry) (actor string, body []byte, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if strings.HasPrefix(e.ObjectID, storage.LogAgent) && e.Board != f.site.Board() {
			actor = e.Board
			body, err = f.agentUpdate(ctx, tx, e)
			return err
		}
		p, err := tx.Posts().ByID(ctx, e.ObjectID)
		if err != nil {
			return absent(err)
		}
		if e.Board != f.site.Board() {
			actor = f.site.Author(p)
			body, err = f.submissionActivity(ctx, tx, p, &submitArgs{Kind: e.Kind, At: e.At.UnixMilli()})
			return err
		}
		if told, err := f.toldByAuthor(ctx, tx, inbox, p, e.At); err != nil || told {
			return err
		}
		if p.Author.Method == protocol.ByProof {
			actor = f.site.Author(p)
			body, err = f.withdrawal(p, e)
			return err
		}
		actor = f.site.Board()
		var o activity.Object
		switch {
		case p.Unlisted:
			return nil // a boost would show it to more people than its author did
		case (e.Kind == storage.LogCreate || e.Kind == storage.LogRestore) && p.State == protocol.Visible:
			o = f.site.Boost(p.URI, e.Seq, e.At)
		case e.Kind == storage.LogUpdate && p.Node == nil && p.State == protocol.Visible && !e.Redacted:
			actor = f.site.Author(p)
			body, err = f.updateOf(ctx, tx, p)
			return err
		case e.Kind == storage.LogDelete && p.Node == nil:
			actor = f.site.Author(p)
			body, err = f.prove(f.site.Delete(p, e.At), actor, e.At)
			return err
		case e.Kind == storage.LogDelete || e.Kind == storage.LogHide:
			boost, err := tx.Logs().LastBoost(ctx, e.Board, e.ObjectID, e.Seq)
			if err != nil || boost.Seq == 0 {
				return err
			}
			o = f.site.Unboost(p.URI, e.Seq, boost.Seq, e.At)
		default:
			return nil
		}
		body, err = o.Bytes()
		return err
	})
	return actor, body, err
}

// withdrawal is the activity that says that a visitor's post is deleted or hidden,
// nil if it is neither.
func (f *Federation) withdrawal(p *protocol.StoredPost, e storage.LogEntry) ([]byte, error) {
	if p.State == protocol.Visible || e.Kind != storage.LogDelete && e.Kind != storage.LogHide {
		return nil, nil
	}
	o := f.site.Delete(p, e.At)
	if e.Kind == storage.LogHide {
		o["id"] = activity.HideID(p.URI, e.At)
	}
	return f.prove(o, f.site.Author(p), e.At)
}
