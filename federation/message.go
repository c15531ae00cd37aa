package federation

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// A Correspondent keeps the threads of the node's agents. It decides whether a person of another server, the caller, may begin
// or continue one; refused says why not. Its methods run inside the transaction that records the acceptance, and make no
// network requests.
type Correspondent interface {
	ReceiveMessage(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string, m *protocol.RemoteMessage) (refused, err error)
	ReviseMessage(ctx context.Context, tx *storage.Tx, c protocol.Caller, m *protocol.RemoteMessage) error
	WithdrawMessage(ctx context.Context, tx *storage.Tx, actor, uri string) (known bool, err error)
}

// beginsOnBoard reports whether a Note begins a thread on our board: it is public, answers nothing and names the board, or is
// the Update of one that did.
func (f *Federation) beginsOnBoard(ctx context.Context, in *incoming, n *activity.Note) (bool, error) {
	if len(n.InReplyTo) > 0 || n.IsStoa(in.act.Context) {
		return false, nil
	}
	for _, id := range n.Named() {
		if id == f.site.Board() {
			return true, nil
		}
	}
	if !in.act.Type.Is("Update") {
		return false, nil
	}
	p, err := f.storedPost(ctx, string(n.ID))
	return p != nil && p.Board == f.site.Board(), err
}

// mayBegin reports whether the domain of a Note that would begin a thread on our board may do so now; one that the operator trusts
// always may.
func (f *Federation) mayBegin(ctx context.Context, in *incoming) (bool, error) {
	p, err := f.policy(ctx, in.host)
	if err != nil || p == storage.PolicyTrusted || in.act.Type.Is("Update") {
		return err == nil, err
	}
	if !f.mentions.take(in.host, 1, f.now()) {
		f.observe("kept-out", in.host, errTooMany)
		return false, nil
	}
	return true, nil
}

var errTooMany = errors.New("the domain has begun too many threads on the board")

// handleMessage handles a Note that is no post of our board: a message to the agents of this node that it names, or to the one
// whose message it answers. Everything else is ignored.
func (f *Federation) handleMessage(ctx context.Context, in *incoming, n *activity.Note) (after, error) {
	if f.c.Threads == nil || n.IsStoa(in.act.Context) || len(n.InReplyTo) > 1 {
		return nil, nil
	}
	update := in.act.Type.Is("Update")
	handles, err := f.agentsOf(ctx, n)
	if err != nil || len(handles) == 0 && !update {
		return nil, err
	}
	if update {
		known, err := f.isMessage(ctx, string(n.ID))
		if err != nil || !known || n.Updated.IsZero() {
			return nil, err
		}
	}
	m, err := f.readMessage(ctx, n)
	if err != nil {
		return nil, f.skipRefused(in.host, err)
	}
	c := protocol.Caller{Standing: protocol.Federated, Remote: &m.Author}
	return func(ctx context.Context, tx *storage.Tx) error {
		for _, uri := range []string{m.URI, in.actor} {
			if gone, err := tx.Inbox().Tombstoned(ctx, uri); err != nil || gone {
				return err
			}
		}
		if blocked, err := blockedAuthor(ctx, tx, m.Author); err != nil || blocked {
			return err
		}
		if policy, err := policyOf(ctx, tx, in.host); err != nil || policy == storage.PolicySilence {
			return err
		}
		if update {
			if m.EditedAt == nil || m.EditedAt.After(tx.Now.Add(editedAhead)) {
				return nil
			}
			return f.c.Threads.ReviseMessage(ctx, tx, c, m)
		}
		for _, handle := range handles {
			refused, err := f.c.Threads.ReceiveMessage(ctx, tx, c, handle, m)
			if err != nil {
				return err
			}
			if refused == nil {
				continue
			}
			f.observe("kept-out", in.host, refused)
			if err := f.grow(ctx, tx, storage.StockRefusals); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// agentsOf returns the handles of the agents that a Note is for, at most [protocol.MaxNamedAgents].
func (f *Federation) agentsOf(ctx context.Context, n *activity.Note) (handles []string, err error) {
	prefix := f.site.Agent("")
	for _, id := range n.Named() {
		if handle, ok := strings.CutPrefix(id, prefix); ok && protocol.IsHandle(handle) && len(handles) < protocol.MaxNamedAgents {
			handles = append(handles, handle)
		}
	}
	if len(handles) > 0 || !f.isLocal(n.InReplyTo.One()) {
		return handles, nil
	}
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.RemoteThreads().OfNote(ctx, n.InReplyTo.One())
		if err != nil || len(found) == 0 {
			return err
		}
		t, err := tx.Threads().ByID(ctx, found[0].ThreadID)
		if err == nil && t.Author.Actor != nil && *t.Author.Actor == n.AttributedTo.One() { // not whoever answers
			handles = append(handles, t.Handle)
		}
		return absent(err)
	})
	return handles, err
}

func (f *Federation) isMessage(ctx context.Context, uri string) (known bool, err error) {
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.RemoteThreads().OfNote(ctx, uri)
		known = len(found) > 0
		return err
	})
	return known, err
}

func (f *Federation) readMessage(ctx context.Context, n *activity.Note) (*protocol.RemoteMessage, error) {
	a, err := f.actorOf(ctx, n.AttributedTo.One(), actorAge)
	if err != nil {
		return nil, err
	}
	return n.Message(plainText(n.Text()), string(a.Username), string(a.Name))
}

// withdrawMessage removes the text of a message whose author deleted its Note, and reports whether there was one.
func (f *Federation) withdrawMessage(ctx context.Context, tx *storage.Tx, uri, actor string) (known bool, err error) {
	if f.c.Threads == nil {
		return false, nil
	}
	return f.c.Threads.WithdrawMessage(ctx, tx, actor, uri)
}

// wroteMessages returns the Notes of messages of an actor that are not withdrawn, at most so many.
func wroteMessages(ctx context.Context, tx *storage.Tx, actor string, most int) ([]string, error) {
	c := protocol.Caller{Standing: protocol.Federated, Remote: &protocol.Author{Actor: &actor}}
	return tx.RemoteThreads().Written(ctx, c.ID(), most)
}

// withdrawOf removes the text of messages of a deleted account, and reports whether there may be more.
func (f *Federation) withdrawOf(ctx context.Context, tx *storage.Tx, actor string) (more bool, err error) {
	notes, err := wroteMessages(ctx, tx, actor, erasedAtOnce)
	for _, uri := range notes {
		if err == nil {
			_, err = f.withdrawMessage(ctx, tx, uri, actor)
		}
	}
	return len(notes) == erasedAtOnce, err
}

// messageArgs are the arguments of a message job.
type messageArgs struct {
	storage.MessageJobArgs
	retryState
}

// sendMessage delivers a message of an agent to a person of another server.
func (f *Federation) sendMessage(ctx context.Context, j storage.Job) (after, error) {
	var args messageArgs
	if err := j.Decode(&args); err != nil {
		return nil, err
	}
	var m activity.Message
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		if args.Refusal != "" {
			m, err = f.refusalNote(ctx, tx, args.Refusal)
		} else {
			m, err = f.messageNote(ctx, tx, args.ThreadID, args.N)
		}
		if err != nil {
			return absent(err)
		}
		blocked, err := tx.Peers().Blocks(ctx, m.To, m.Agent)
		if blocked {
			m = activity.Message{}
		}
		return err
	})
	if err != nil || m.URI == "" {
		return nil, err
	}
	body, err := m.Create().Bytes()
	if err != nil {
		return nil, err
	}
	a, err := f.actorOf(ctx, m.To, actorAge)
	if err == nil {
		err = f.jobResult(f.send(ctx, m.Agent, a.Inbox.One(), body))
	}
	if err != nil {
		return f.retry(j, &args.retryState, &args, err)
	}
	return nil, nil
}

// messageNote reads a message of an agent in a thread; ErrNotFound when there is none.
func (f *Federation) messageNote(ctx context.Context, tx *storage.Tx, threadID string, n int) (activity.Message, error) {
	none := activity.Message{}
	t, err := tx.Threads().ByID(ctx, threadID)
	if err != nil {
		return none, err
	}
	remote, err := tx.RemoteThreads().ByID(ctx, threadID)
	if err != nil {
		return none, err
	}
	note, err := tx.RemoteThreads().ByNumber(ctx, threadID, n)
	if err != nil {
		return none, err
	}
	said, err := tx.Threads().MessageByNumber(ctx, threadID, n)
	if err != nil || said.From != protocol.AgentSide || t.Author.Actor == nil {
		return none, cmp.Or(err, storage.ErrNotFound)
	}
	answered, err := tx.RemoteThreads().Answered(ctx, threadID, n)
	if err != nil {
		return none, err
	}
	return activity.Message{
		URI: note.URI, Agent: f.site.Agent(t.Handle), To: *t.Author.Actor, Name: personName(t.Author), Host: hostOf(*t.Author.Actor),
		Text: said.Text, InReplyTo: answered, Context: remote.Context, Conversation: remote.Conversation, Visibility: note.Visibility, At: said.CreatedAt,
	}, nil
}

func personName(a protocol.Author) string {
	if a.Handle == nil {
		return a.Name
	}
	return *a.Handle
}

// refusalNote reads the Note that tells a person that a policy refuses; ErrNotFound when it is over.
func (f *Federation) refusalNote(ctx context.Context, tx *storage.Tx, id string) (activity.Message, error) {
	r, err := tx.RemoteThreads().Refusal(ctx, id)
	if err != nil {
		return activity.Message{}, err
	}
	return activity.Message{
		URI: protocol.MessageURI(f.site.Base, id), Agent: f.site.Agent(r.Handle), To: r.Actor, Name: r.Name, Host: hostOf(r.Actor), Text: r.Text,
		InReplyTo: r.InReplyTo, Context: r.Context, Conversation: r.Conversation, Visibility: protocol.Direct,
		At: r.Until.Add(-protocol.RefusalOnceWithin),
	}, nil
}

// serveMessage serves the Note of a message of an agent: a public one to everyone, a private one to who proves by a signature to be
// its addressee, or of the addressee's server, which has the message too and fetches with a key of its own. Without a
// signature every message is the same 401, and with another one the same 404, whether it exists or not.
func (f *Federation) serveMessage(w http.ResponseWriter, r *http.Request) {
	m, err := f.messageByID(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		f.problem(w, err)
		return
	case m.Visibility.Everyone():
		f.serve(w, r, func(context.Context, *storage.Tx) (activity.Object, error) { return m.Note(), nil })
		return
	}
	reader, err := f.readerOf(r)
	if err == nil && (m.URI == "" || !f.sameOrigin(reader, m.To)) {
		err = refuse(http.StatusNotFound, "there is no such object", nil)
	}
	head := w.Header()
	head.Set("Cache-Control", "private, no-store")
	head.Add("Vary", "Signature, Signature-Input")
	if err != nil {
		f.problem(w, err)
		return
	}
	body, err := m.Note().Bytes()
	if err != nil {
		f.problem(w, err)
		return
	}
	head.Set("Content-Type", activity.MediaType)
	_, _ = w.Write(body)
}

// messageByID returns the message of an agent with an id, or one without URI.
func (f *Federation) messageByID(ctx context.Context, id string) (m activity.Message, err error) {
	if !protocol.IsID(protocol.MessageID, id) {
		return m, nil
	}
	err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		notes, err := tx.RemoteThreads().OfNote(ctx, protocol.MessageURI(f.site.Base, id))
		if err != nil {
			return err
		}
		if len(notes) > 0 {
			m, err = f.messageNote(ctx, tx, notes[0].ThreadID, notes[0].N)
		} else {
			m, err = f.refusalNote(ctx, tx, id)
		}
		return absent(err)
	})
	return m, err
}

// readerOf returns the actor that signed a read. It uses the places of [Federation.noteReader].
func (f *Federation) readerOf(r *http.Request) (string, error) {
	if !httpsig.Signed(r.Header) && !cavage.Signed(r.Header) {
		return "", refuse(http.StatusUnauthorized, "sign the request", nil)
	}
	select {
	case f.reads <- struct{}{}:
	default:
		return "", refuse(http.StatusServiceUnavailable, "too many signed reads at once; try again later", nil)
	}
	defer func() { <-f.reads }()
	msg, err := httpsig.FromRequest(r, f.target)
	if err != nil {
		return "", refuse(http.StatusUnauthorized, "the request is for another host", err)
	}
	ctx, cancel := context.WithTimeout(forStranger(r.Context(), f.networkOf(r)), 2*fetchTimeout)
	defer cancel()
	return f.verifySignature(ctx, &msg, &delivery{})
}
