package feed

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"stoa/protocol"
	"stoa/storage"
)

// Poll returns what happened to the caller since a cursor (contract §4). Where nothing did, as the storage often knows without a
// question to the database, the answer is the same as the last time, except once a day: its ETag is good until then.
func (f *Feed) Poll(ctx context.Context, c protocol.Caller, in protocol.SinceQuery) (d protocol.Digest, err error) {
	if names := namesOf(c); in.ReadToken == "" && c.ReadToken == "" && len(names) > 0 {
		if after, err := storage.ParseNewsCursor(in.After); err == nil && f.DB.Quiet(ctx, names, after) {
			return digest(after), nil
		}
	}
	err = f.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		d, err = f.News(ctx, tx, c, in)
		return err
	})
	return d, err
}

// digest is that of a caller for whom nothing is new.
func digest(next int64) protocol.Digest {
	return protocol.Digest{
		Replies: []protocol.Post{}, Messages: []protocol.ThreadNews{}, Threads: []protocol.Move{}, Bids: []protocol.Move{}, Requests: []protocol.Move{},
		Next: storage.NewsCursor(next),
	}
}

// News is Poll in a transaction.
func (f *Feed) News(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.SinceQuery) (protocol.Digest, error) {
	names, err := readers(ctx, tx, c, cmp.Or(in.ReadToken, c.ReadToken))
	if err != nil {
		return protocol.Digest{}, err
	}
	after, err := storage.ParseNewsCursor(in.After)
	if err != nil {
		return protocol.Digest{}, err
	}
	items, upTo, more, err := tx.News().After(ctx, names, after, in.Size())
	if err != nil {
		return protocol.Digest{}, err
	}
	marked, err := tx.News().Marked(ctx)
	switch {
	case err != nil:
		return protocol.Digest{}, err
	case len(items) == 0 && in.After != "" && after >= marked:
		return digest(after), nil
	}
	d := digest(upTo)
	d.More = more
	if in.After != "" && after < marked { // nothing is missed without a cursor, and later news are all kept
		forgotten, err := tx.News().Forgotten(ctx)
		if err != nil {
			return protocol.Digest{}, err
		}
		d.Missed = after < forgotten
	}
	for _, i := range items {
		if err := f.addItem(ctx, tx, c, &d, i); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return protocol.Digest{}, err
		}
	}
	return d, nil
}

// readers returns the names under which the caller's news are stored. A read token counts alone
// when it is sent, as it does when a thread is read.
func readers(ctx context.Context, tx *storage.Tx, c protocol.Caller, token string) ([]string, error) {
	if token != "" {
		hash := protocol.SecretHash(token)
		id, err := tx.Threads().IDByToken(ctx, hash)
		if errors.Is(err, storage.ErrNotFound) {
			bid, err := tx.Bids().ByToken(ctx, hash)
			if errors.Is(err, storage.ErrNotFound) {
				return meetingReader(ctx, tx, hash)
			}
			return []string{storage.BidReader(bid.ID)}, err
		}
		return []string{storage.ThreadReader(id)}, err
	}
	names := namesOf(c)
	if len(names) == 0 {
		return nil, protocol.Errorf(protocol.Unauthorized, "sign the request, or send an owner's API token or a thread's read token as Authorization: Bearer")
	}
	return names, nil
}

// namesOf are the names of a caller who sends no token of one thing.
func namesOf(c protocol.Caller) []string {
	names := c.Names()
	if c.Visitor != "" {
		names = append(names, storage.VisitorReader(c.Visitor))
	}
	return names
}

// meetingReader returns the name under which the holder of a meeting request's status token reads news.
func meetingReader(ctx context.Context, tx *storage.Tx, hash [32]byte) ([]string, error) {
	r, err := tx.Meetings().ByToken(ctx, hash)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.Errorf(protocol.Unauthorized, "this read token opens no thread, no bid and no meeting request")
	}
	return []string{storage.MeetingReader(r.ID)}, err
}

// addItem adds one item to the digest. It returns ErrNotFound when the subject no longer exists.
func (f *Feed) addItem(ctx context.Context, tx *storage.Tx, c protocol.Caller, d *protocol.Digest, i storage.NewsItem) error {
	switch i.Kind {
	case storage.NewsReply:
		p, err := tx.Posts().ByID(ctx, i.Ref)
		if err != nil || p.State != protocol.Visible {
			return err
		}
		p.URL = f.Base + "/board/" + p.ID
		d.Replies = append(d.Replies, p.Post)
	case storage.NewsInbox:
		if !c.May(protocol.ScopeInbox) { // the token may not read the inbox
			return nil
		}
		return addMessage(ctx, tx, d, i.Ref, protocol.AgentSide)
	case storage.NewsAnswer:
		if !c.May(protocol.ScopePost) { // the token may not read the threads that the profile began
			return nil
		}
		return addMessage(ctx, tx, d, i.Ref, protocol.WriterSide)
	case storage.NewsLapsed:
		if !c.May(protocol.ScopeInbox) {
			return nil
		}
		return addClosed(ctx, tx, d, i.Ref)
	case storage.NewsBid, storage.NewsBidHere:
		if needs := map[string]protocol.Scope{storage.NewsBid: protocol.ScopePost, storage.NewsBidHere: protocol.ScopeAttention}[i.Kind]; !c.May(needs) {
			return nil
		}
		return addBid(ctx, tx, d, i.Ref)
	case storage.NewsMeeting, storage.NewsMeetingHere:
		if needs := map[string]protocol.Scope{storage.NewsMeeting: protocol.ScopePost, storage.NewsMeetingHere: protocol.ScopeMeetings}[i.Kind]; !c.May(needs) {
			return nil
		}
		return addMeeting(ctx, tx, d, i.Ref)
	case storage.NewsClosed:
		if !c.May(protocol.ScopePost) {
			return nil
		}
		return addClosed(ctx, tx, d, i.Ref)
	}
	return nil
}

// addClosed adds a closed thread, once even for a caller on both sides of it.
func addClosed(ctx context.Context, tx *storage.Tx, d *protocol.Digest, threadID string) error {
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil || t.ClosedAt == nil || slices.ContainsFunc(d.Threads, func(m protocol.Move) bool { return m.ID == t.ID }) {
		return err
	}
	d.Threads = append(d.Threads, protocol.Move{ID: t.ID, State: string(t.State), At: *t.ClosedAt})
	return nil
}

// addBid adds a move of a bid, once even for a caller on both sides of it.
func addBid(ctx context.Context, tx *storage.Tx, d *protocol.Digest, ref string) error {
	id, n, err := storage.ParseMessageRef(ref)
	if err != nil {
		return err
	}
	m, err := tx.Bids().MoveByNumber(ctx, id, n)
	if err != nil {
		return err
	}
	move := protocol.Move{ID: id, State: string(m.State), At: m.At}
	if !slices.Contains(d.Bids, move) {
		d.Bids = append(d.Bids, move)
	}
	return nil
}

// addMeeting adds a move of a meeting request, once even for a caller on both sides of it.
func addMeeting(ctx context.Context, tx *storage.Tx, d *protocol.Digest, ref string) error {
	id, n, err := storage.ParseMessageRef(ref)
	if err != nil {
		return err
	}
	r, err := tx.Meetings().ByID(ctx, id)
	if err != nil || n < 1 || n > len(r.History) {
		return err
	}
	move := protocol.Move{ID: id, State: string(r.History[n-1].State), At: r.History[n-1].At}
	if !slices.Contains(d.Requests, move) {
		d.Requests = append(d.Requests, move)
	}
	return nil
}

// addMessage adds a message of a thread, for the reader on a side of it.
func addMessage(ctx context.Context, tx *storage.Tx, d *protocol.Digest, ref string, reader protocol.Side) error {
	threadID, n, err := storage.ParseMessageRef(ref)
	if err != nil {
		return err
	}
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil {
		return err
	}
	m, err := tx.Threads().MessageByNumber(ctx, threadID, n)
	if err != nil {
		return err
	}
	_, removed, err := tx.Leavings().Thread(ctx, t, reader)
	if err != nil {
		return err
	}
	if removed {
		storage.Removed(m, reader)
	}
	d.Messages = append(d.Messages, protocol.ThreadNews{ThreadID: t.ID, Handle: t.Handle, Message: *m})
	return nil
}
