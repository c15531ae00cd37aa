package archive

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// An openThread is the thread whose lines are being read.
type openThread struct {
	storage.StoredThread
	want, got int  // messages
	callbacks int  // deliveries
	skip      bool // it is stored already, or may not be imported
}

// checkThreadLine checks one line of threads.ndjson. Messages follow their thread,
// numbered from 1, and none is missing.
func (im *importing) checkThreadLine(r record) error {
	var in threadLine
	if err := im.decode(r, &in); err != nil {
		return err
	}
	bad := func(why string) error { return refused("%s, record %d: %s", r.file, r.n, why) }
	given := 0
	for _, there := range []bool{in.Thread != nil, in.Message != nil, in.Callback != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		return bad("one of thread, message and callback")
	}
	t := in.Thread
	if t != nil {
		if im.open != nil && im.open.got != im.open.want {
			return bad("the thread before it has fewer messages than it says")
		}
		im.open = &openThread{want: t.Messages}
	}
	if in.Message != nil && im.open != nil {
		im.open.got++
	}
	switch {
	case im.open == nil:
		return bad("it belongs to no thread")
	case t != nil && (t.State == string(protocol.ThreadClosed)) != (t.ClosedAt != nil):
		return bad("only a closed thread has a closing time, and needs one")
	case t != nil && max(t.Unread, t.Unseen) > t.Messages:
		return bad("more unread than there are messages")
	case in.Message != nil && in.Message.N != im.open.got:
		return bad("messages are numbered from 1")
	case im.open.got > im.open.want:
		return bad("the thread has more messages than it says")
	case in.Callback != nil:
		if im.open.callbacks++; im.open.callbacks > protocol.MaxThreadMessages { // at most one a message
			return bad("the thread has more deliveries than messages")
		}
	}
	return nil
}

// threadStep returns the step that stores one line. A thread and what belongs to it are stored in
// one transaction.
func (im *importing) threadStep(r record) (step, error) {
	var in threadLine
	if err := im.decode(r, &in); err != nil {
		return step{}, err
	}
	return step{begins: in.Thread != nil, do: func(ctx context.Context, tx *storage.Tx) error {
		switch {
		case in.Thread != nil:
			return im.storeThread(ctx, tx, in.Thread)
		case in.Callback != nil:
			return im.storeCallback(ctx, tx, in.Callback)
		case im.open.skip:
			return nil
		}
		m := in.Message
		return tx.Threads().ImportMessage(ctx, im.open.ID, storage.NumberedMessage{N: m.N, ClientID: m.ClientID, Message: protocol.Message{
			ID: m.ID, From: protocol.Side(m.From), Author: im.author(m.Author), Text: m.Text, CreatedAt: notAfter(m.CreatedAt, tx.Now), Untrusted: true,
		}})
	}}, nil
}

func (im *importing) storeThread(ctx context.Context, tx *storage.Tx, in *threadRecord) error {
	t := storage.StoredThread{
		ID: in.ID, Handle: im.handle, Kind: protocol.ContactKind(in.Kind), State: protocol.ThreadState(in.State),
		Writer: im.writer(in.Writer), Author: im.author(in.Author), Callback: in.Callback,
		Messages: in.Messages, Unread: in.Unread, Unseen: in.Unseen,
		CreatedAt: notAfter(in.CreatedAt, tx.Now), UpdatedAt: notAfter(in.UpdatedAt, tx.Now), ClosedBy: in.ClosedBy,
	}
	if in.ClosedAt != nil {
		t.ClosedAt = new(notAfter(*in.ClosedAt, tx.Now))
	}
	hash, err := hex.DecodeString(in.TokenHash)
	if err != nil {
		return err
	}
	copy(t.TokenHash[:], hash)
	if t.Callback != "" {
		if why := protocol.CallbackFault(t.Callback, im.Private); why != "" {
			t.Callback = ""
			im.note("callback addresses of threads were left out: the address %s", why)
		}
	}
	im.open = &openThread{StoredThread: t, want: in.Messages}
	switch err := tx.Threads().Import(ctx, &t); {
	case errors.Is(err, storage.ErrExists):
		im.open.skip = true
		old, err := tx.Threads().ByID(ctx, t.ID)
		if err != nil {
			return err
		}
		if old.Handle == im.handle {
			im.report.Threads.Same++
			return nil
		}
		im.report.Threads.LeftOut++
		im.note("threads were left out: they belong to another profile here")
		return nil
	case err != nil:
		return err
	}
	im.report.Threads.New++
	if t.State == protocol.ThreadClosed {
		return nil
	}
	return im.Watch(ctx, tx, &t)
}

// storeCallback stores a delivery. One that was waiting is not sent from here automatically,
// because the node that it comes from may still be trying.
func (im *importing) storeCallback(ctx context.Context, tx *storage.Tx, in *callbackRecord) error {
	if im.open.skip {
		im.report.Callbacks.Same++
		return nil
	}
	if in.N > im.open.want || protocol.CallbackFault(in.URL, im.Private) != "" {
		im.report.Callbacks.LeftOut++
		im.note("deliveries were left out: this node does not send to their address")
		return nil
	}
	c := storage.StoredCallback{
		ID: in.ID, Handle: im.handle, ThreadID: im.open.ID, URL: in.URL, N: in.N, State: protocol.CallbackState(in.State), Attempts: in.Attempts,
		Status: in.Status, LastError: in.LastError, CreatedAt: notAfter(in.CreatedAt, tx.Now), NextAt: tx.Now, Until: tx.Now,
	}
	if in.State == "waiting" {
		c.State, c.LastError = "failed", "the profile moved to another node before it was delivered"
		im.note("deliveries that waited are kept as failed; replay them to send them from here")
	}
	switch err := tx.Callbacks().Import(ctx, &c); {
	case errors.Is(err, storage.ErrExists):
		im.report.Callbacks.LeftOut++
		im.note("deliveries were left out: their id is taken")
	case err != nil:
		return err
	default:
		im.report.Callbacks.New++
	}
	return nil
}

// writer returns the name of the writer who began a thread, as this node may use it: identities
// and keys are the same on every node; accounts, handles and networks belong to the other node.
func (im *importing) writer(name string) string {
	if strings.HasPrefix(name, "agent:") || strings.HasPrefix(name, "key:") || strings.HasPrefix(name, "at:") ||
		strings.HasPrefix(name, "domain:") {
		return name
	}
	return "at:" + im.host + " " + name
}

// author returns a writer by the word of the node that made the archive. Without that node's
// signature only the name is kept.
func (im *importing) author(a authorRecord) protocol.Author {
	if !im.signed {
		return protocol.Author{Name: a.Name, Method: protocol.ByProof}
	}
	return a.author(im.host)
}

func (im *importing) blockStep(r record) (step, error) {
	var in blockRecord
	if err := im.decode(r, &in); err != nil {
		return step{}, err
	}
	return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error { return im.storeBlock(ctx, tx, &in) }}, nil
}

func (im *importing) storeBlock(ctx context.Context, tx *storage.Tx, in *blockRecord) error {
	switch old, err := tx.ContactBlocks().ByID(ctx, in.ID); {
	case err == nil && old.Handle == im.handle:
		im.report.Blocks.Same++
		return nil
	case err == nil:
		im.report.Blocks.LeftOut++
		im.note("blocks of writers were left out: their id is taken")
		return nil
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	b := storage.ContactBlock{ID: in.ID, Handle: im.handle, Writer: im.writer(in.Writer), Author: im.author(in.Author), ThreadID: in.ThreadID, Note: in.Note}
	for _, name := range in.Names {
		b.Names = append(b.Names, im.writer(name))
	}
	slices.SortFunc(b.Names, cmp.Compare)
	if err := tx.ContactBlocks().Insert(ctx, &b); err != nil {
		return err
	}
	if b.ID != in.ID { // the same writer is blocked here already
		im.report.Blocks.Same++
		return nil
	}
	im.report.Blocks.New++
	return tx.ContactBlocks().SetTime(ctx, b.ID, notAfter(in.At, tx.Now))
}
