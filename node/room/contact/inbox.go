package contact

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// List returns the threads with one of the owner's agents.
func (r *Contact) List(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ThreadQuery) (protocol.Page[protocol.Thread], error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Page[protocol.Thread]{}, err
	}
	found, err := tx.Threads().List(ctx, handle, in.State, in.Size(), in.After)
	if err != nil {
		return protocol.Page[protocol.Thread]{}, err
	}
	returns, err := returnsOf(ctx, tx, handle)
	if err != nil {
		return protocol.Page[protocol.Thread]{}, err
	}
	began, err := tx.Exchanges().Began(ctx, found.Items)
	if err != nil {
		return protocol.Page[protocol.Thread]{}, err
	}
	ends, err := tx.Threads().Ends(ctx, found.Items)
	for i := range found.Items {
		if err != nil {
			return protocol.Page[protocol.Thread]{}, err
		}
		read, removed, e := tx.Leavings().Thread(ctx, &found.Items[i], protocol.AgentSide)
		if err = e; removed {
			found.Items[i], ends[read.ID] = *read, [2]string{protocol.WithdrawnText, protocol.WithdrawnText}
		}
	}
	return convert(found, func(t *storage.StoredThread) protocol.Thread {
		shown := view(t, protocol.AgentSide)
		shown.Subject, shown.Preview = beginning(ends[t.ID][0], 80), beginning(ends[t.ID][1], 140)
		shown.Return, shown.Task = protocol.ReturnTaskOf(t.Kind, returns), taskOf(t, began)
		return shown
	}), err
}

// returnsOf reads the returns policy of a profile, nil for none.
func returnsOf(ctx context.Context, tx *storage.Tx, handle string) (*protocol.ReturnsPolicy, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return nil, storage.IfMissing(err, nil)
	}
	return p.Draft.Returns, nil
}

// beginning returns the first line of a text, cut after so many characters.
func beginning(text string, most int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(line); len(letters) > most {
		line = strings.TrimSpace(string(letters[:most-1])) + "…"
	}
	return line
}

// Read marks the messages of a thread as read.
func (r *Contact) Read(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ThreadRef) (protocol.None, error) {
	t, err := ownThread(ctx, tx, c, in.ThreadID)
	if err != nil || t.Seen == t.Messages {
		return protocol.None{}, err
	}
	t.Seen = t.Messages
	return protocol.None{}, tx.Threads().Save(ctx, t)
}

func convert[R, T any](found protocol.Page[R], to func(*R) T) protocol.Page[T] {
	out := protocol.Page[T]{Items: make([]T, len(found.Items)), Next: found.Next}
	for i := range found.Items {
		out.Items[i] = to(&found.Items[i])
	}
	return out
}

// ownThread returns a thread of one of the caller's agents. A thread of another agent is not
// found: ids are not secret, and the answer must not confirm them.
func ownThread(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string) (*storage.StoredThread, error) {
	t, err := tx.Threads().ByID(ctx, id)
	if err == nil && !actsAs(c, t.Handle) || errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.Errorf(protocol.NotFound, "none of your agents has a thread with that id")
	}
	return t, err
}

func actsAs(c protocol.Caller, handle string) bool {
	_, err := c.ActsAs(handle)
	return err == nil
}

// Get returns one thread and a page of its messages.
func (r *Contact) Get(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ThreadPage) (protocol.Conversation, error) {
	t, err := ownThread(ctx, tx, c, in.ThreadID)
	if err != nil {
		return protocol.Conversation{}, err
	}
	returns, err := returnsOf(ctx, tx, t.Handle)
	if err != nil {
		return protocol.Conversation{}, err
	}
	out, err := conversation(ctx, tx, t, protocol.AgentSide, in.Paging)
	if err != nil {
		return out, err
	}
	began, err := tx.Exchanges().Began(ctx, []storage.StoredThread{*t})
	out.Thread.Return, out.Thread.Task = protocol.ReturnTaskOf(t.Kind, returns), taskOf(t, began)
	return out, err
}

// taskOf returns the newest task of a thread for its owner, nil for none.
func taskOf(t *storage.StoredThread, began map[string]string) *protocol.ThreadTask {
	if t.Task == 0 {
		return nil
	}
	return &protocol.ThreadTask{ID: protocol.ExchangeID{ThreadID: t.ID, First: t.Task}.String(), MessageID: began[t.ID], State: t.TaskState}
}

// Answer stores the agent's next message and, when the writer gave a callback address, enqueues
// its delivery.
func (r *Contact) Answer(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewAnswer) (protocol.Said, error) {
	t, err := ownThread(ctx, tx, c, in.ThreadID)
	if err != nil {
		return protocol.Said{}, err
	}
	if c.Standing == protocol.Operator {
		return protocol.Said{}, protocol.Errorf(protocol.Forbidden, "the operator cannot answer for @%s; only its owner can", t.Handle)
	}
	// The hall checks blocks for the profile that the caller names. Here the thread names the
	// profile, which may be any of the owner's.
	if blocked, err := tx.Blocks().Match(ctx, protocol.BlockHandle, t.Handle); err != nil {
		return protocol.Said{}, err
	} else if blocked {
		return protocol.Said{}, protocol.Errorf(protocol.Forbidden, "the operator of this node has blocked @%s", t.Handle)
	}
	by, err := r.agent(ctx, tx, c, t.Handle)
	if err != nil {
		return protocol.Said{}, err
	}
	remote, err := remoteOf(ctx, tx, t)
	if err != nil {
		return protocol.Said{}, err
	}
	if t.TaskState != "" {
		t.TaskState = t.TaskState.Answered(in.As)
	}
	m, err := r.appendMessage(ctx, tx, t, protocol.Message{From: protocol.AgentSide, Author: by, Text: in.Message, Public: remote.Visibility.Everyone()})
	if err != nil {
		return protocol.Said{}, err
	}
	if err := putPart(ctx, tx, t, in); err != nil {
		return protocol.Said{}, err
	}
	if t.Origin != "" {
		if err := r.send(ctx, tx, t, m, remote); err != nil {
			return protocol.Said{}, err
		}
	}
	if t.Callback != "" {
		if err := enqueueCallback(ctx, tx, t, m); err != nil {
			return protocol.Said{}, err
		}
	}
	return protocol.Said{ThreadID: t.ID, State: t.State, Message: m}, nil
}

// putPart stores what the last message of a thread, of its agent, is for a task: nothing for an answer without an attachment.
func putPart(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, in protocol.NewAnswer) error {
	p := storage.ExchangePart{Mark: cmp.Or(in.As, protocol.AsAnswer)}
	if in.Attachment != nil {
		p.Artifact = *in.Attachment
	}
	if p.Mark == protocol.AsAnswer && in.Attachment == nil {
		return nil
	}
	return tx.Exchanges().PutPart(ctx, t.ID, t.Messages, p)
}

// agent returns the author of an answer: the profile that was written to, whichever other profiles
// its owner has.
func (r *Contact) agent(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string) (protocol.Author, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return protocol.Author{}, err
	}
	c.Handle, c.Name, c.Agent = handle, p.Draft.Name, p.ERC8004
	return c.Author(r.Base, "", tx.Now), nil
}

// Close ends a thread for good. A closed thread does not change.
func (r *Contact) Close(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ThreadRef) (protocol.Thread, error) {
	t, err := ownThread(ctx, tx, c, in.ThreadID)
	if err != nil {
		return protocol.Thread{}, err
	}
	if t.State != protocol.ThreadClosed {
		err = closeThread(ctx, tx, t, "owner")
	}
	return view(t, protocol.AgentSide), err
}

// Block refuses further messages from the writer of a thread, by every name that it has shown. Bids of
// the writer on the agent's attention board leave the feed.
func (r *Contact) Block(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewBlock) (protocol.BlockedWriter, error) {
	t, err := ownThread(ctx, tx, c, in.ThreadID)
	if err != nil {
		return protocol.BlockedWriter{}, err
	}
	if t.Writer == "operator" {
		return protocol.BlockedWriter{}, protocol.Errorf(protocol.Conflict, "this thread was begun by the node's operator, who cannot be blocked; close it")
	}
	b := &storage.ContactBlock{
		ID: protocol.NewID(protocol.BlockID, tx.Now), Handle: t.Handle, Writer: t.Writer, Author: t.Author, ThreadID: t.ID, Note: in.Note,
		Names: append([]string{t.Writer}, t.Author.BlockNames()...),
	}
	if err := tx.ContactBlocks().Insert(ctx, b); err != nil { // b becomes the existing block if there is one
		return protocol.BlockedWriter{}, err
	}
	return blocked(b), tx.Bids().RetractOn(ctx, protocol.BoardID(r.Base), t.Handle, b.Names)
}

var knownBy = map[string]protocol.KnownBy{
	"agent": protocol.ByIdentity, "handle": protocol.ByProfile, "key": protocol.ByKey, "account": protocol.ByAccount, "net": protocol.ByNetwork,
	"actor": protocol.ByActor, "mailbox": protocol.ByMailbox, "domain": protocol.ByDomain,
}

func blocked(b *storage.ContactBlock) protocol.BlockedWriter {
	kind, _, _ := strings.Cut(b.Writer, ":")
	return protocol.BlockedWriter{ID: b.ID, Handle: b.Handle, Writer: b.Author, KnownBy: knownBy[kind], ThreadID: b.ThreadID,
		Note: b.Note, CreatedAt: b.At, Untrusted: true}
}

// Unblock deletes a block.
func (r *Contact) Unblock(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BlockRef) (protocol.None, error) {
	b, err := tx.ContactBlocks().ByID(ctx, in.ID)
	if err != nil || !actsAs(c, b.Handle) {
		return protocol.None{}, storage.Missing(err, protocol.Errorf(protocol.NotFound, "none of your agents has a block with that id"))
	}
	return protocol.None{}, tx.ContactBlocks().Delete(ctx, b.ID)
}

// ListBlocked returns the blocks of one of the owner's agents.
func (r *Contact) ListBlocked(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.BlockQuery) (protocol.Page[protocol.BlockedWriter], error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.Page[protocol.BlockedWriter]{}, err
	}
	found, err := tx.ContactBlocks().List(ctx, handle, in.Size(), in.After)
	return convert(found, blocked), err
}
