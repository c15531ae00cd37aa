package storage

import (
	"context"

	"stoa/protocol"
)

// What a profile wrote to others reads as removed to them while the profile is hidden and its owner can still undo that, and as it was when it is
// back. After the seven days the same is written into the rows (erase.go). Its own owner reads it as it is.

const hiddenLeaving = `SELECT 1 FROM leaving WHERE subject = ? AND hidden_at IS NOT NULL`

// Hides reports whether what an author wrote reads as removed.
func (ls Leavings) Hides(ctx context.Context, a protocol.Author) (bool, error) {
	if a.Handle == nil || a.Node != nil || a.Method == protocol.ByProof {
		return false, nil
	}
	return ls.hidden(ctx, *a.Handle)
}

func (ls Leavings) hidden(ctx context.Context, handle string) (bool, error) {
	return ls.tx.exists(ctx, hiddenLeaving, handle)
}

// Thread returns a thread as a side of it reads it, and whether the messages of the other one read as removed ([Removed]).
func (ls Leavings) Thread(ctx context.Context, t *StoredThread, reader protocol.Side) (read *StoredThread, removed bool, err error) {
	if reader == protocol.WriterSide {
		removed, err = ls.hidden(ctx, t.Handle)
		return t, removed, err
	}
	if removed, err = ls.Hides(ctx, t.Author); err != nil || !removed {
		return t, false, err
	}
	changed := *t
	changed.Author, changed.Callback = nobody(t.Author), ""
	return &changed, true, nil
}

// Removed takes the text and the author out of a message that the other side than the reader's wrote.
func Removed(m *protocol.Message, reader protocol.Side) {
	if m.From != reader && m.Author.Handle != nil {
		m.Author, m.Text, m.Withdrawn = nobody(m.Author), protocol.WithdrawnText, true
	}
}

// Bid returns a bid as others read it.
func (ls Leavings) Bid(ctx context.Context, b *StoredBid) (*StoredBid, error) {
	removed, err := ls.Hides(ctx, b.Author)
	if err != nil || !removed {
		return b, err
	}
	changed := *b
	changed.remove()
	return &changed, nil
}

func (b *StoredBid) remove() {
	b.Author, b.Message, b.URL, b.Callback, b.Evidence = nobody(b.Author), "", "", "", nil
}

// Meeting returns a request as the person asked reads it.
func (ls Leavings) Meeting(ctx context.Context, m *StoredMeeting) (*StoredMeeting, error) {
	removed, err := ls.Hides(ctx, m.Author)
	if err != nil || !removed {
		return m, err
	}
	changed := *m
	changed.remove()
	return &changed, nil
}

func (m *StoredMeeting) remove() {
	m.Name, m.Author, m.Purpose = "@"+*m.Author.Handle, nobody(m.Author), protocol.WithdrawnText
	m.Mail, m.Callback, m.TimeZone, m.Attends = "", "", "", nil
}
