package storage

import (
	"context"
	"encoding/json"
	"time"

	"stoa/protocol"
)

// What a profile that is gone wrote to others loses its text, part by part. Rows that are others' too stay: their threads, bids with money, requests.

// erasedAtOnce is how many threads, bids or requests one transaction deals with.
const erasedAtOnce = 100

// nobody is an author of whom nothing is left but the handle.
func nobody(a protocol.Author) protocol.Author {
	return protocol.Author{Name: "@" + *a.Handle, Handle: a.Handle, Method: a.Method}
}

// EraseWritten removes the text of some of what a profile wrote to others, and reports whether there is more. board is the log of the node's board.
func (ls Leavings) EraseWritten(ctx context.Context, handle, board string) (more bool, err error) {
	if err := ls.tx.dirty(); err != nil {
		return false, err
	}
	threads, err := ls.tx.Threads().Written(ctx, handle, erasedAtOnce, "")
	for i := range threads.Items {
		if err == nil {
			err = ls.eraseThread(ctx, &threads.Items[i])
		}
	}
	if err != nil || len(threads.Items) > 0 {
		return true, err
	}
	bids, err := ls.tx.Bids().Written(ctx, handle, erasedAtOnce, "")
	for i := range bids.Items {
		if err == nil {
			err = ls.eraseBid(ctx, bids.Items[i].ID, board)
		}
	}
	if err != nil || len(bids.Items) > 0 {
		return true, err
	}
	meetings, err := ls.tx.Meetings().Written(ctx, handle, erasedAtOnce, "")
	for i := range meetings.Items {
		if err == nil {
			err = ls.eraseMeeting(ctx, meetings.Items[i].ID)
		}
	}
	return len(meetings.Items) > 0, err
}

func (ls Leavings) eraseThread(ctx context.Context, t *StoredThread) error {
	t, err := ls.tx.Threads().ByID(ctx, t.ID) // locked
	if err != nil {
		return err
	}
	if err := ls.tx.Callbacks().End(ctx, t.ID, "its writer has left"); err != nil {
		return err
	}
	if err := ls.tx.Pushes().Drop(ctx, t.ID); err != nil {
		return err
	}
	if _, err := ls.tx.write(ctx, `UPDATE callback SET url = '', last_error = '' WHERE thread_id = ?`, t.ID); err != nil {
		return err
	}
	raw, err := json.Marshal(nobody(t.Author))
	if err != nil {
		return err
	}
	author := string(raw)
	if _, err := ls.tx.write(ctx, `UPDATE thread_message SET text = ?, withdrawn = ?, author = ? WHERE thread_id = ? AND side = 'writer'`,
		protocol.WithdrawnText, true, author, t.ID); err != nil {
		return err
	}
	if t.State != protocol.ThreadClosed {
		t.State, t.ClosedAt, t.ClosedBy = protocol.ThreadClosed, &ls.tx.Now, "silence"
	}
	t.Callback = ""
	if err := ls.tx.Threads().Save(ctx, t); err != nil {
		return err
	}
	hash := protocol.SecretHash(protocol.NewReadToken())
	return ls.tx.exec(ctx, `UPDATE thread SET writer_handle = NULL, visitor = NULL, agent = NULL, author = ?, token_hash = ? WHERE id = ?`,
		author, hash[:], t.ID)
}

func (ls Leavings) eraseBid(ctx context.Context, id, board string) error {
	b, err := ls.tx.Bids().ByID(ctx, id)
	if err != nil {
		return err
	}
	if _, err := ls.tx.AttentionBoards().ByID(ctx, b.Board); err != nil { // locks it
		return err
	}
	if b, err = ls.tx.Bids().ByID(ctx, id); err != nil {
		return err
	}
	if err := ls.tx.Bids().Retract(ctx, board, id); err != nil {
		return err
	}
	if err := ls.tx.Feed().wipe(ctx, id); err != nil {
		return err
	}
	b.remove()
	b.Visitor, b.By = nil, ""
	if err := ls.tx.Bids().Save(ctx, b); err != nil {
		return err
	}
	hash := protocol.SecretHash(protocol.NewReadToken())
	return ls.tx.exec(ctx, `UPDATE bid SET writer_handle = NULL, agent = NULL, token_hash = ? WHERE id = ?`, hash[:], id)
}

func (ls Leavings) eraseMeeting(ctx context.Context, id string) error {
	m, err := ls.tx.Meetings().ByID(ctx, id)
	if err != nil {
		return err
	}
	if _, err := ls.tx.Profiles().lock(ctx, m.Handle); orNothing(err) != nil {
		return err
	}
	if m, err = ls.tx.Meetings().ByID(ctx, id); err != nil {
		return err
	}
	m.remove()
	m.MailUntil, m.Visitor, m.By = time.Time{}, nil, ""
	switch m.State {
	case protocol.MeetingUnconfirmed, protocol.MeetingSubmitted, protocol.MeetingProposed:
		m.State, m.DueAt = protocol.MeetingWithdrawn, time.Time{}
		err = ls.tx.Meetings().Move(ctx, m, "the requester has left")
	default:
		err = ls.tx.Meetings().Save(ctx, m)
	}
	if err != nil {
		return err
	}
	hash := protocol.SecretHash(protocol.NewReadToken())
	return ls.tx.exec(ctx, `UPDATE meeting SET writer_handle = NULL, agent = NULL, token_hash = ? WHERE id = ?`, hash[:], id)
}
