package federation

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"stoa/protocol/activity"
	"stoa/storage"
)

// headAge is how long a signed head of our log is served.
const headAge = time.Minute

// signedHead is the head of our log with the board's proof: what the last entry is, as
// of now. It is nil for an empty log, and when the hash of the last entry is not known.
func (f *Federation) signedHead(ctx context.Context, tx *storage.Tx, epoch string, head int64) (json.RawMessage, error) {
	name := "head " + epoch + "/" + strconv.FormatInt(head, 10)
	if known, ok := f.entries.Get(name, f.now()); ok {
		return known, nil
	}
	last, err := tx.Logs().After(ctx, f.site.Board(), head-1, 1)
	if err != nil || len(last) == 0 || head == 0 {
		return nil, err
	}
	raw, _, err := f.entry(ctx, tx, epoch, last[0])
	if err != nil {
		return nil, err
	}
	hash := hashOf(raw)
	if hash == "" {
		return nil, nil
	}
	now := f.now()
	raw, err = f.prove(f.site.Head(epoch, head, hash, now), f.site.Board(), now)
	if err == nil {
		f.entries.Put(name, raw, len(raw), now.Add(headAge))
	}
	return raw, err
}

// hashOf is the hash of an entry as served, "" when it has none.
func hashOf(raw []byte) string {
	var e activity.Activity
	if fetchLimits.DecodeLoose(raw, &e) != nil {
		return ""
	}
	return activity.EntryHash(&e, &announcedBy(&e).act)
}

// erasedHash is the hash of an entry of our log whose object is no longer shown, "" when the
// object is not stored any more.
func (f *Federation) erasedHash(ctx context.Context, tx *storage.Tx, epoch string, e storage.LogEntry) (string, error) {
	p, err := f.postOf(ctx, tx, e)
	return f.hashEntry(epoch, e, p), err
}

// A logHead is the signed head of a followed log.
type logHead struct {
	raw  json.RawMessage
	seq  int64
	hash string
	at   time.Time
}

// readHead reads the signed head of a page and checks its proof; nil for a page without
// one, as nodes of version 0.1.0 serve it.
func (f *Federation) readHead(ctx context.Context, s *storage.Subscription, page *logPage) (*logHead, error) {
	if present(page.SignedHead) == nil {
		return nil, nil
	}
	h, err := decodeHead(page.SignedHead)
	if err != nil {
		return nil, err
	}
	if h.Type.Is(activity.HeadType) && h.Actor.One() == s.Board && h.Epoch == page.Epoch && h.Seq != nil && *h.Seq == *page.Head &&
		activity.IsEntryHash(string(h.Hash)) {
		err = f.verifyProof(ctx, page.SignedHead, s.Board)
	} else {
		err = errors.New("it is not the head of this page")
	}
	if err != nil {
		return nil, err
	}
	return &logHead{raw: page.SignedHead, seq: *h.Seq, hash: string(h.Hash), at: h.Published.Time}, nil
}

// decodeHead decodes a signed head of at most 4 KiB.
func decodeHead(raw json.RawMessage) (*activity.Activity, error) {
	var h activity.Activity
	if len(raw) > 4<<10 {
		return nil, activity.ErrShape
	}
	return &h, fetchLimits.DecodeLoose(raw, &h)
}
