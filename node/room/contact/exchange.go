package contact

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// SendExchange begins or continues a thread (A2A 1.0 §3.4). A
// message that names an exchange is added to it while it waits for the agent. A message that names
// only the thread joins the exchange that is waiting there, or begins the next.
func (r *Contact) SendExchange(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AgentMessage) (protocol.Exchange, error) {
	threadID, err := r.exchangeThread(ctx, tx, c, in)
	if err != nil {
		return protocol.Exchange{}, err
	}
	token := ""
	if threadID == "" {
		receipt, err := r.Begin(ctx, tx, c, protocol.NewContact{Handle: in.Handle, Message: in.Text, Kind: in.Kind})
		if err != nil {
			return protocol.Exchange{}, err
		}
		if threadID = receipt.ThreadID; c.Standing == protocol.Proof { // others are recognised
			token = receipt.ReadToken
		}
	} else if _, err := r.Continue(ctx, tx, c, protocol.NewMessage{ThreadID: threadID, Message: in.Text}); err != nil {
		return protocol.Exchange{}, err
	}
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil {
		return protocol.Exchange{}, err
	}
	if err := tx.Threads().SetClientID(ctx, t.ID, t.Messages, in.MessageID); err != nil {
		return protocol.Exchange{}, err
	}
	e, err := exchange(ctx, tx, t, waiting(t))
	e.ReadToken = token
	return e, err
}

// waiting returns the number of the first message that the agent has not answered.
func waiting(t *storage.StoredThread) int { return t.Messages - t.Unread + 1 }

// exchangeThread returns the thread that a message continues, "" for a new one. A thread of
// another caller is not found, like one that does not exist.
func (r *Contact) exchangeThread(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.AgentMessage) (string, error) {
	if in.ExchangeID == "" && in.ThreadID == "" {
		return "", nil
	}
	threadID, first := in.ThreadID, 0
	if in.ExchangeID != "" {
		id, ok := protocol.ParseExchangeID(in.ExchangeID)
		if !ok {
			return "", threadNotFound()
		}
		threadID, first = id.ThreadID, id.First
	}
	t, err := r.writerThread(ctx, tx, c, in.Handle, threadID)
	if err != nil {
		return "", err
	}
	if in.ThreadID != "" && in.ThreadID != threadID {
		return "", protocol.Invalid(protocol.Fault{Pointer: "/threadId", Code: "mismatch", Detail: "the task belongs to another context; leave one of the two out"})
	}
	if first > 0 {
		e, err := exchange(ctx, tx, t, first)
		if err != nil {
			return "", err
		}
		if e.State != protocol.ExchangeOpen {
			return "", protocol.Errorf(protocol.Gone, "the task is over; leave taskId out to begin another in the same context")
		}
	}
	if t.State == protocol.ThreadClosed {
		return "", protocol.Errorf(protocol.Gone, "the context is closed; leave contextId out to begin another")
	}
	return t.ID, nil
}

// writerThread returns a thread that the caller has with an agent.
func (r *Contact) writerThread(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle, threadID string) (*storage.StoredThread, error) {
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil {
		return nil, storage.IfMissing(err, threadNotFound())
	}
	if asWriter, _ := sidesOf(t, c, c.ReadToken); !asWriter || t.Handle != handle {
		return nil, threadNotFound()
	}
	return t, nil
}

// AheadExchange is Ahead for a message by A2A, of which only one that begins a thread depends on the policy.
func (r *Contact) AheadExchange(ctx context.Context, tx *storage.Tx, in protocol.AgentMessage) error {
	if in.ThreadID != "" || in.ExchangeID != "" {
		return nil
	}
	return r.Ahead(ctx, tx, protocol.NewContact{Handle: in.Handle, Message: in.Text, Kind: in.Kind})
}

// GetExchange returns one exchange of the caller.
func (r *Contact) GetExchange(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ExchangeInput) (protocol.Exchange, error) {
	id, ok := protocol.ParseExchangeID(in.ID)
	if !ok {
		return protocol.Exchange{}, threadNotFound()
	}
	t, err := r.writerThread(ctx, tx, c, in.Handle, id.ThreadID)
	if err != nil {
		return protocol.Exchange{}, err
	}
	return exchange(ctx, tx, t, id.First)
}

// exchange returns the exchange that begins with message number first, which must be a message of
// the writer: the first of the thread, or the first after an answer. The exchange ends before the
// next such message.
func exchange(ctx context.Context, tx *storage.Tx, t *storage.StoredThread, first int) (protocol.Exchange, error) {
	e := protocol.Exchange{
		ID: protocol.ExchangeID{ThreadID: t.ID, First: first}.String(), ThreadID: t.ID, State: protocol.ExchangeOpen, Untrusted: true,
	}
	messages, err := tx.Threads().MessagesFrom(ctx, t.ID, max(first-1, 1), protocol.MaxThreadMessages)
	if err != nil {
		return e, err
	}
	if first > 1 {
		if len(messages) < 2 || messages[0].From != protocol.AgentSide {
			return e, threadNotFound()
		}
		messages = messages[1:]
	}
	if len(messages) == 0 || messages[0].From != protocol.WriterSide {
		return e, threadNotFound()
	}
	_, removed, err := tx.Leavings().Thread(ctx, t, protocol.WriterSide)
	if err != nil {
		return e, err
	}
	for _, m := range messages {
		if removed {
			storage.Removed(&m.Message, protocol.WriterSide)
		}
		if m.From == protocol.WriterSide && e.State == protocol.ExchangeAnswered {
			break
		}
		if m.From == protocol.AgentSide {
			e.State = protocol.ExchangeAnswered
		}
		e.Since = m.CreatedAt
		e.Messages = append(e.Messages, protocol.ExchangeMessage{
			ID: m.ID, ClientID: m.ClientID, From: m.From, Text: m.Text, CreatedAt: m.CreatedAt,
		})
	}
	if e.State == protocol.ExchangeOpen && t.State == protocol.ThreadClosed {
		e.State, e.Since = protocol.ExchangeDeclined, *t.ClosedAt
		if t.ClosedBy == bySilence {
			e.State = protocol.ExchangeExpired
		}
	}
	return e, nil
}
