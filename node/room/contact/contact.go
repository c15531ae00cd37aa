// Package contact holds the conversations with agents (spec §2.5, §2.11, contract §5): writing to
// an agent, reading and continuing a thread, the agent's inbox, and the delivery of replies to a
// callbackUrl.
package contact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// A Contact keeps the threads of one node. DB and Webhook are for its jobs.
type Contact struct {
	Base    string // public address of the node, without a slash at the end
	Private bool   // a callbackUrl may be on this machine: development
	DB      *storage.DB
	Webhook Sender
	Seal    Sealer
	Limits  protocol.ThreadLimits
	Hub     *Hub // of those who follow exchanges
}

// Begin opens a thread with an agent.
func (r *Contact) Begin(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewContact) (protocol.ContactReceipt, error) {
	t, token, err := r.begin(ctx, tx, c, in, false)
	if err != nil {
		return protocol.ContactReceipt{}, err
	}
	return protocol.ContactReceipt{ThreadID: t.ID, ReadToken: token, State: t.State, URL: r.url(t.ID)}, nil
}

// begin opens a thread, and for task an exchange that is a task.
func (r *Contact) begin(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.NewContact, task bool) (*storage.StoredThread, string, error) {
	p, err := r.receiver(ctx, tx, in)
	if err != nil {
		return nil, "", err
	}
	if err := r.admit(ctx, tx, c, p, kindOf(in)); err != nil {
		return nil, "", err
	}
	t, token := r.thread(tx, c, in)
	if task {
		t.Task, t.TaskState = 1, protocol.ExchangeOpen
	}
	return t, token, r.open(ctx, tx, t, protocol.Message{From: protocol.WriterSide, Author: t.Author, Text: in.Message})
}

// thread returns a new thread of an admitted caller, and its read token.
func (r *Contact) thread(tx *storage.Tx, c protocol.Caller, in protocol.NewContact) (t *storage.StoredThread, token string) {
	token = protocol.NewReadToken()
	t = &storage.StoredThread{
		ID: protocol.NewID(protocol.ThreadID, tx.Now), Handle: in.Handle, Kind: kindOf(in), State: protocol.ThreadOpen,
		Writer: writer(c, in.Handle), Author: c.Author(r.Base, in.Name, tx.Now), TokenHash: protocol.SecretHash(token),
		Visitor: c.Visitor, Callback: in.CallbackURL,
	}
	if t.Author.Verified {
		t.WriterHandle = c.Handle
	}
	return t, token
}

// open stores a new thread with its first message and tells the owner.
func (r *Contact) open(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, first protocol.Message) error {
	if err := tx.Threads().Insert(ctx, t); err != nil {
		return err
	}
	if _, err := r.appendMessage(ctx, tx, t, first); err != nil {
		return err
	}
	if err := enqueueSilence(ctx, tx, t); err != nil {
		return err
	}
	return notify(ctx, tx, t, protocol.ThreadBegun)
}

func kindOf(in protocol.NewContact) protocol.ContactKind { return cmp.Or(in.Kind, protocol.Question) }

// receiver returns the profile that a message is for. One that the operator has blocked gets none: it could not answer.
func (r *Contact) receiver(ctx context.Context, tx *storage.Tx, in protocol.NewContact) (*storage.StoredProfile, error) {
	if in.CallbackURL != "" {
		if why := protocol.CallbackFault(in.CallbackURL, r.Private); why != "" {
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/callbackUrl", Code: "callback-address", Detail: why})
		}
	}
	p, err := tx.Profiles().ByHandle(ctx, in.Handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(in.Handle)
	}
	if err != nil {
		return nil, err
	}
	return p, answers(ctx, tx, in.Handle)
}

// answers refuses a message to a profile that the operator of the node has blocked.
func answers(ctx context.Context, tx *storage.Tx, handle string) error {
	blocked, err := tx.Blocks().Match(ctx, protocol.BlockHandle, handle)
	if err == nil && blocked {
		err = protocol.Errorf(protocol.ContactRefused, "the operator of this node has blocked @%s", handle)
	}
	return err
}

// Ahead returns the public reason why no caller with only a proof of work may begin the thread:
// there is no such agent, or its policy refuses such messages. It is nil otherwise.
func (r *Contact) Ahead(ctx context.Context, tx *storage.Tx, in protocol.NewContact) error {
	p, err := r.receiver(ctx, tx, in)
	if err != nil {
		return err
	}
	return p.Draft.Policy().Admits(protocol.Caller{Standing: protocol.Proof}, kindOf(in))
}

// admit decides whether the caller may begin a thread: the policy admits it, no block names it,
// and not too many of its threads are waiting.
func (r *Contact) admit(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, kind protocol.ContactKind) error {
	handle := p.Draft.Handle
	if !c.Owns(handle) && c.Standing != protocol.Operator { // spec §2.5: the owner is always admitted
		if err := p.Draft.Policy().Admits(c, kind); err != nil {
			return err
		}
		if err := unblocked(ctx, tx, handle, c.KnownAs(writer(c, handle))); err != nil {
			return err
		}
	}
	limits := r.Limits.OrDefault()
	most := limits.Open
	if c.Standing == protocol.Proof {
		most = limits.OfNetwork
	}
	waiting, err := tx.Threads().CountOpen(ctx, handle, writer(c, handle), most)
	if err == nil && waiting >= most {
		return reached(protocol.LimitReached{Reason: protocol.TooManyWaiting, Of: "openThreads", Most: most},
			"%d of your threads with @%s are waiting for an answer; write in one of them, or wait", most, handle)
	}
	return err
}

func unblocked(ctx context.Context, tx *storage.Tx, handle string, names []string) error {
	blocked, err := tx.ContactBlocks().Match(ctx, handle, names)
	if err == nil && blocked {
		return protocol.Errorf(protocol.ContactRefused, "@%s does not accept messages from you", handle)
	}
	return err
}

// writer returns the one name under which a caller's threads with an agent are counted. A network
// is hashed together with the handle, so that the anonymous threads of one network cannot be
// linked from agent to agent.
func writer(c protocol.Caller, handle string) string {
	if c.Standing&(protocol.Session|protocol.Signed|protocol.Operator|protocol.Federated) != 0 {
		return c.ID()
	}
	sum := sha256.Sum256([]byte("contact\x00" + handle + "\x00" + c.Network))
	return "net:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// appendMessage stores the next message of a thread and updates the thread's state. The side, author and text of m are given.
func (r *Contact) appendMessage(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, m protocol.Message) (protocol.Message, error) {
	m.ID, m.CreatedAt, m.Untrusted = protocol.NewID(protocol.MessageID, tx.Now), tx.Now, true
	var err error
	if t.State, err = t.State.Speak(m.From); err != nil {
		return m, err
	}
	if t.Messages >= protocol.MaxThreadMessages {
		return m, reached(protocol.LimitReached{Reason: protocol.ThreadFull, Of: "threadMessages", Most: protocol.MaxThreadMessages},
			"the thread has %d messages, which is the most it can have; begin another", t.Messages)
	}
	if m.From == protocol.WriterSide {
		if most := r.Limits.OrDefault().Unanswered; t.Unread >= most {
			return m, reached(protocol.LimitReached{Reason: protocol.TooManyWaiting, Of: "unansweredMessages", Most: most},
				"%d of your messages are waiting for an answer; wait for it", t.Unread)
		}
		if t.Unread, t.Unseen = t.Unread+1, 0; t.TaskState == protocol.ExchangeAsked {
			t.TaskState = protocol.ExchangeWorking
		}
	} else {
		t.Unread, t.Unseen = 0, t.Unseen+1
	}
	if err := tx.Threads().AppendMessage(ctx, t, m); err != nil {
		return m, err
	}
	if err := appendNews(ctx, tx, t, m.From); err != nil {
		return m, err
	}
	return m, tx.Threads().Save(ctx, t)
}

// reached returns the conflict of a limit that was reached.
func reached(limit protocol.LimitReached, format string, args ...any) error {
	e := protocol.Errorf(protocol.Conflict, format, args...)
	if e.Err = limit; limit.Reason == protocol.TooManyWaiting {
		e.RetryAfter = protocol.AnswerWait
	}
	return e
}

// appendNews adds the last message of a thread to the other side's news.
func appendNews(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, by protocol.Side) error {
	ref := storage.MessageRef(t.ID, t.Messages)
	if by == protocol.WriterSide {
		return tx.News().Append(ctx, storage.NewsInbox, ref, "handle:"+t.Handle)
	}
	return tx.News().Append(ctx, storage.NewsAnswer, ref, writerReaders(t)...)
}

// writerReaders returns the names under which the writer of a thread reads news.
func writerReaders(t *storage.StoredThread) []string {
	readers := []string{storage.ThreadReader(t.ID)}
	if t.Visitor != "" {
		readers = append(readers, storage.VisitorReader(t.Visitor))
	}
	if t.WriterHandle == "" && t.Author.Handle != nil {
		return readers // the profile was deleted; its handle or identity may belong to another by now
	}
	return append(readers, t.Author.Names()...)
}

// notify sends a notice to the owner. It contains nothing of the message.
func notify(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, event protocol.NoticeEvent) error {
	kind := strings.ReplaceAll(string(t.Kind), "_", " ")
	title := strings.ToUpper(kind[:1]) + kind[1:] + " from " + t.Author.Name
	if !t.Author.Verified {
		title += " (unverified)"
	}
	return tx.Notify(ctx, protocol.Notice{Handle: t.Handle, Event: event, Subject: t.ID, Title: title})
}

func (r *Contact) url(threadID string) string { return r.Base + "/api/public/threads/" + threadID }

// threadNotFound is the answer to every caller that may not read a thread, and the same for a
// thread that does not exist.
func threadNotFound() error {
	return protocol.Errorf(protocol.NotFound, "there is no thread with that id that you may read; send its read token, or sign as its writer")
}

// sidesOf returns for which sides of a thread the caller speaks: for none when it sends a read
// token that does not match.
func sidesOf(t *storage.StoredThread, c protocol.Caller, token string) (asWriter, asAgent bool) {
	if token != "" {
		return protocol.SecretMatches(token, t.TokenHash), false
	}
	if c.Owns(t.Handle) && c.May(protocol.ScopeInbox) {
		asAgent = true
	}
	// A browser that began the thread keeps it after signing in. Both values are hashes, so that
	// comparing them reveals nothing about the cookie.
	asWriter = t.Visitor != "" && c.Visitor == t.Visitor ||
		c.May(protocol.ScopePost) && isWriter(t, c)
	return asWriter, asAgent
}

// isWriter reports whether a recognised caller began the thread.
func isWriter(t *storage.StoredThread, c protocol.Caller) bool {
	return c.Made(t.Author, t.WriterHandle)
}
