package contact

import (
	"context"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// ReceiveMessage takes a Note of a person of another server, c, for an agent of this node: into the thread that it continues, or
// into a new one, by the rules that contact_agent and continue_conversation ask. refused says why it was not taken; then
// nothing of it is stored, and where the agent's policy does not admit it, the person is told so, once a day. A Note that the
// agent has already has no effect.
func (r *Contact) ReceiveMessage(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string, m *protocol.RemoteMessage) (refused, err error) {
	p, err := r.receiver(ctx, tx, protocol.NewContact{Handle: handle})
	if code := protocol.CodeOf(err); code == protocol.NotFound || code == protocol.ContactRefused {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	threads, err := tx.RemoteThreads().ListOf(ctx, handle, writer(c, handle))
	if err != nil {
		return nil, err
	}
	if known, err := hasNote(ctx, tx, threads, m.URI); err != nil || known != "" {
		return nil, err
	}
	t, err := continues(ctx, tx, threads, m)
	switch {
	case err != nil:
	case t == "":
		refused, err = r.beginRemote(ctx, tx, c, p, threads, m)
		if refused != nil {
			return refused, err
		}
	default:
		err = r.continueRemote(ctx, tx, c, t, m)
	}
	if code := protocol.CodeOf(err); err != nil && (code == protocol.ContactRefused || code == protocol.Conflict) {
		return err, nil
	}
	return nil, err
}

// hasNote returns the id of the thread among some that has a message with the id of a Note, "" for none.
func hasNote(ctx context.Context, tx *storage.Tx, threads []storage.StoredThread, uri string) (string, error) {
	if uri == "" {
		return "", nil
	}
	all, err := tx.RemoteThreads().OfNote(ctx, uri)
	for _, m := range all {
		if slices.ContainsFunc(threads, func(t storage.StoredThread) bool { return t.ID == m.ThreadID }) {
			return m.ThreadID, nil
		}
	}
	return "", err
}

// continues returns the id of the open thread that a Note belongs to: that of the Note that it answers, otherwise the newest
// that its server calls by the same name; "" for none.
func continues(ctx context.Context, tx *storage.Tx, threads []storage.StoredThread, m *protocol.RemoteMessage) (string, error) {
	threads = slices.DeleteFunc(slices.Clone(threads), func(t storage.StoredThread) bool { return t.State == protocol.ThreadClosed })
	id, err := hasNote(ctx, tx, threads, m.InReplyTo)
	if err != nil || id != "" || m.Context == "" && m.Conversation == "" {
		return id, err
	}
	ids := make([]string, len(threads))
	for i, t := range threads {
		ids[i] = t.ID
	}
	all, err := tx.RemoteThreads().ListByID(ctx, ids)
	for _, t := range all {
		if (t.Context == m.Context && m.Context != "" || t.Conversation == m.Conversation && m.Conversation != "") && t.ThreadID > id {
			id = t.ThreadID
		}
	}
	return id, err
}

func (r *Contact) beginRemote(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, before []storage.StoredThread, m *protocol.RemoteMessage,
) (refused, err error) {
	handle, origin := p.Draft.Handle, netx.Registrable(*c.Remote.Node)
	if err := unblocked(ctx, tx, handle, c.KnownAs(writer(c, handle))); err != nil {
		return nil, err
	}
	if refused := p.Draft.Policy().Admits(c, m.Kind); refused != nil {
		return refused, r.explain(ctx, tx, c, handle, origin, m, refused)
	}
	if err := r.admit(ctx, tx, c, p, m.Kind); err != nil {
		return nil, err
	}
	answered := slices.ContainsFunc(before, func(t storage.StoredThread) bool { return t.Messages > t.Unread })
	if err := r.admitRemote(ctx, tx, handle, writer(c, handle), origin, answered); err != nil {
		return nil, err
	}
	t, _ := r.thread(tx, c, protocol.NewContact{Handle: handle, Kind: m.Kind})
	t.Origin = origin
	if err := r.open(ctx, tx, t, received(c, m)); err != nil {
		return nil, err
	}
	if err := tx.RemoteThreads().Insert(ctx, storage.RemoteThread{
		ThreadID: t.ID, Visibility: m.Visibility, Context: m.Context, Conversation: m.Conversation,
	}); err != nil {
		return nil, err
	}
	return nil, putNote(ctx, tx, t, m.URI, m.Visibility)
}

// admitRemote decides whether a person of another server may begin a thread, beside what admit decides. What others have begun
// does not limit a person whom the agent has answered, up to the number that is kept for such people.
func (r *Contact) admitRemote(ctx context.Context, tx *storage.Tx, handle, writer, origin string, answered bool) error {
	n, err := tx.RemoteThreads().Count(ctx, handle, writer, origin)
	if err != nil {
		return err
	}
	for _, limit := range []struct {
		reached bool
		most    int
		of      string
	}{
		{n.BegunByOne >= protocol.MaxBegunOfActor, protocol.MaxBegunOfActor, "begunThreads"},
		{!answered && n.BegunOfAll >= protocol.MaxBegunOfDomain, protocol.MaxBegunOfDomain, "begunThreadsOfDomain"},
		{!answered && n.OpenOfDomain >= protocol.MaxOpenOfDomain, protocol.MaxOpenOfDomain, "openThreadsOfDomain"},
		{protocol.SharedRemote.Full(answered, protocol.Waiting{Strangers: n.Open}), protocol.SharedRemote.Most, "openThreadsOfOtherServers"},
	} {
		if limit.reached {
			return reached(protocol.LimitReached{Reason: protocol.TooManyWaiting, Of: limit.of, Most: limit.most},
				"too many threads of %s with @%s: %s", origin, handle, limit.of)
		}
	}
	return nil
}

func received(c protocol.Caller, m *protocol.RemoteMessage) protocol.Message {
	return protocol.Message{From: protocol.WriterSide, Author: *c.Remote, Text: m.Text, Public: m.Visibility.Everyone()}
}

// putNote stores the Note of the last message of a thread.
func putNote(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, uri string, v protocol.Visibility) error {
	return tx.RemoteThreads().PutMessage(ctx, storage.RemoteMessage{URI: uri, ThreadID: t.ID, N: t.Messages, Visibility: v})
}

func (r *Contact) continueRemote(ctx context.Context, tx *storage.Tx, c protocol.Caller, id string, m *protocol.RemoteMessage) error {
	t, err := tx.Threads().ByID(ctx, id)
	if err != nil {
		return err
	}
	if err := unblocked(ctx, tx, t.Handle, c.KnownAs(t.Writer)); err != nil {
		return err
	}
	if _, err := r.appendMessage(ctx, tx, t, received(c, m)); err != nil {
		return err
	}
	if err := putNote(ctx, tx, t, m.URI, m.Visibility); err != nil {
		return err
	}
	if err := lower(ctx, tx, id, m); err != nil {
		return err
	}
	return notify(ctx, tx, t, protocol.ThreadMessage)
}

// lower notes that answers in a thread have the visibility of its least visible message, since they may tell what was written
// there, and the names of the conversation where the thread has none.
func lower(ctx context.Context, tx *storage.Tx, id string, m *protocol.RemoteMessage) error {
	t, err := tx.RemoteThreads().ByID(ctx, id)
	if err != nil {
		return err
	}
	was := t
	t.Visibility = t.Visibility.Least(m.Visibility)
	if t.Context == "" {
		t.Context = m.Context
	}
	if t.Conversation == "" {
		t.Conversation = m.Conversation
	}
	if t == was {
		return nil
	}
	return tx.RemoteThreads().Save(ctx, t)
}

// explain tells a person that an agent's policy does not admit the message, and how the agent is reached.
func (r *Contact) explain(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, handle, origin string, m *protocol.RemoteMessage, refused error,
) error {
	note := storage.RemoteRefusal{
		Actor: *c.Remote.Actor, Origin: origin, ID: protocol.NewID(protocol.MessageID, tx.Now), Handle: handle, Name: named(*c.Remote),
		Text:      protocol.AsError(refused).Detail + ". How to reach @" + handle + ": " + r.Base + "/agents/" + handle,
		InReplyTo: m.URI, Context: m.Context, Conversation: m.Conversation,
	}
	told, err := tx.RemoteThreads().Refuse(ctx, note)
	if err != nil || !told {
		return err
	}
	return tx.RemoteThreads().EnqueueMessage(ctx, *c.Remote.Node, storage.MessageJobArgs{Refusal: note.ID})
}

// named is the name of a person on its server.
func named(a protocol.Author) string {
	if a.Handle == nil {
		return ""
	}
	return *a.Handle
}

// remoteOf returns what a thread with a person of another server has beside other threads, nothing for those. One that came with
// an archive has its answers nowhere to send to.
func remoteOf(ctx context.Context, tx *storage.Tx, t *storage.StoredThread) (storage.RemoteThread, error) {
	switch {
	case t.Origin != "":
		return tx.RemoteThreads().ByID(ctx, t.ID)
	case strings.HasPrefix(t.Writer, "at:") && strings.Contains(t.Writer, " actor:"):
		return storage.RemoteThread{}, protocol.Errorf(protocol.Conflict,
			"this thread came with an archive; its writer, a person of the fediverse, can be answered only from the node where it was begun")
	}
	return storage.RemoteThread{}, nil
}

// send queues the delivery of an answer to the person of another server who began the thread.
func (r *Contact) send(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, m protocol.Message, remote storage.RemoteThread) error {
	if err := putNote(ctx, tx, t, protocol.MessageURI(r.Base, m.ID), remote.Visibility); err != nil {
		return err
	}
	return tx.RemoteThreads().EnqueueMessage(ctx, *t.Author.Node, storage.MessageJobArgs{ThreadID: t.ID, N: t.Messages})
}

// ReviseMessage gives the messages of a Note the text of its author's Update: the newest only, not in a closed thread, and not
// of an author whom the agent has blocked.
func (r *Contact) ReviseMessage(ctx context.Context, tx *storage.Tx, c protocol.Caller, m *protocol.RemoteMessage) error {
	all, err := tx.RemoteThreads().OfNote(ctx, m.URI)
	if err != nil {
		return err
	}
	for _, note := range all {
		t, err := tx.Threads().ByID(ctx, note.ThreadID)
		if err != nil {
			return err
		}
		old, err := tx.Threads().MessageByNumber(ctx, t.ID, note.N)
		if err != nil {
			return err
		}
		if t.Writer != c.ID() || t.State == protocol.ThreadClosed || old.Withdrawn || note.Revisions >= protocol.MaxRevisions ||
			old.EditedAt != nil && !m.EditedAt.After(*old.EditedAt) {
			continue
		}
		if err := unblocked(ctx, tx, t.Handle, c.KnownAs(t.Writer)); err != nil {
			if protocol.CodeOf(err) == protocol.ContactRefused {
				continue
			}
			return err
		}
		if err := tx.RemoteThreads().Revise(ctx, note, m.Text, *m.EditedAt); err != nil {
			return err
		}
		if err := lower(ctx, tx, t.ID, m); err != nil {
			return err
		}
	}
	return nil
}

// WithdrawMessage removes the text of the messages of a Note whose author deleted it, in closed threads too. known reports
// whether there are any.
func (r *Contact) WithdrawMessage(ctx context.Context, tx *storage.Tx, actor, uri string) (known bool, err error) {
	all, err := tx.RemoteThreads().OfNote(ctx, uri)
	if err != nil {
		return false, err
	}
	for _, note := range all {
		t, err := tx.Threads().ByID(ctx, note.ThreadID)
		if err != nil {
			return false, err
		}
		if t.Writer != "actor:"+actor {
			continue
		}
		known = true
		if err := tx.RemoteThreads().Withdraw(ctx, note); err != nil {
			return false, err
		}
	}
	return known, nil
}
