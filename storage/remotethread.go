package storage

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"stoa/protocol"
)

// A RemoteThread is what a thread with a person of another server has beside its row in thread.
type RemoteThread struct {
	ThreadID              string
	Visibility            protocol.Visibility // the least of all its messages: who can read answers
	Context, Conversation string              // names of the conversation on that server, "" for none
}

// A RemoteMessage is the Note of a message in such a thread.
type RemoteMessage struct {
	URI        string
	ThreadID   string
	N          int
	Visibility protocol.Visibility
	Revisions  int // how often its author changed it
}

// A RemoteRefusal is a Note that tells a person of another server that the contact policy of an agent does not admit a message.
type RemoteRefusal struct {
	Actor, Origin, ID     string // Origin is the registrable domain of the actor
	Handle                string // of the agent
	Name                  string // of the person on that server
	Text                  string
	InReplyTo             string
	Context, Conversation string
	Until                 time.Time // before it the person is told nothing again
}

var (
	remoteThreadTable  = tableOf[RemoteThread]("remote_thread")
	remoteMessageTable = tableOf[RemoteMessage]("remote_message")
	remoteRefusalTable = tableOf[RemoteRefusal]("remote_refusal")
)

// RemoteThreads reads and writes the threads with people of other servers.
type RemoteThreads struct{ tx *Tx }

func (tx *Tx) RemoteThreads() RemoteThreads { return RemoteThreads{tx} }

// Insert stores a new one.
func (rs RemoteThreads) Insert(ctx context.Context, t RemoteThread) error {
	return remoteThreadTable.insert(ctx, rs.tx, &t)
}

// ByID returns a thread by the id of its row in thread; ErrNotFound when it is not one with a person of another server.
func (rs RemoteThreads) ByID(ctx context.Context, threadID string) (RemoteThread, error) {
	return find[RemoteThread](ctx, rs.tx, remoteThreadTable.from+`WHERE thread_id = ?`, threadID)
}

// Inboxes returns the inboxes of people with whom an agent has threads, at most limit.
func (rs RemoteThreads) Inboxes(ctx context.Context, handle string, limit int) ([]string, error) {
	return list[string](ctx, rs.tx, `SELECT DISTINCT CASE WHEN a.shared_inbox <> '' THEN a.shared_inbox ELSE a.inbox END
		FROM thread t JOIN remote_actor a ON a.id = substr(t.writer, 7) WHERE t.handle = ? AND t.origin IS NOT NULL LIMIT ?`, handle, limit)
}

// ListByID returns those of some threads.
func (rs RemoteThreads) ListByID(ctx context.Context, ids []string) ([]RemoteThread, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return list[RemoteThread](ctx, rs.tx, remoteThreadTable.from+`WHERE thread_id IN (`+marks(len(ids))+`)`, toAny(ids)...)
}

// Save stores visibility and names of the conversation.
func (rs RemoteThreads) Save(ctx context.Context, t RemoteThread) error {
	return remoteThreadTable.update(ctx, rs.tx, &t, "thread_id", "visibility", "context", "conversation")
}

// remoteKnown is how many of a person's threads with one agent are looked at.
const remoteKnown = 50

const (
	remoteThreadsOf = `WHERE handle = ? AND writer = ? AND origin IS NOT NULL ORDER BY created_at DESC LIMIT ?`
	remoteOfNote    = `WHERE uri = ? LIMIT ?`
	remoteOpen      = `SELECT origin FROM thread WHERE (handle || '') = ? AND origin IS NOT NULL AND state = 'open' LIMIT ?`
	remoteBegunBy   = `SELECT count(*) FROM (SELECT 1 FROM thread WHERE writer = ? AND origin IS NOT NULL AND created_at > ? ORDER BY created_at LIMIT ?) AS s`
	remoteBegunOf   = `SELECT count(*) FROM (SELECT 1 FROM thread WHERE origin = ? AND created_at > ? ORDER BY created_at LIMIT ?) AS s`
	remoteRefusedOf = `SELECT count(*) FROM (SELECT 1 FROM remote_refusal WHERE origin = ? AND until > ? LIMIT ?) AS s`
	remoteAnswered  = `SELECT m.uri FROM remote_message AS m JOIN thread_message AS s ON s.thread_id = m.thread_id AND s.n = m.n
		WHERE m.thread_id = ? AND m.n < ? AND s.side = 'writer' ORDER BY m.n DESC LIMIT 1`
	remoteWritten = `SELECT m.uri FROM thread AS t JOIN remote_message AS m ON m.thread_id = t.id
		JOIN thread_message AS s ON s.thread_id = m.thread_id AND s.n = m.n
		WHERE t.writer = ? AND t.origin IS NOT NULL AND s.side = 'writer' AND NOT s.withdrawn LIMIT ?`
)

// ListOf returns the threads of a person with an agent, the newest first, at most 50.
func (rs RemoteThreads) ListOf(ctx context.Context, handle, writer string) ([]StoredThread, error) {
	return list[StoredThread](ctx, rs.tx, threadTable.from+remoteThreadsOf, handle, writer, remoteKnown)
}

// A RemoteCount is what is begun and open of one person, its domain and everybody on other servers, each up to a limit that
// the caller compares it with.
type RemoteCount struct {
	OpenOfDomain, Open     int // with one agent
	BegunByOne, BegunOfAll int // within a day on the node, by the person and by its domain
}

// Count counts for a person who is about to begin a thread with an agent. A concurrent count for the same agent or domain waits
// for this transaction to end.
func (rs RemoteThreads) Count(ctx context.Context, handle, writer, origin string) (c RemoteCount, err error) {
	for _, name := range []string{"remote " + origin, "remote @" + handle} {
		if err := rs.tx.lockName(ctx, name); err != nil {
			return c, err
		}
	}
	day := millis(rs.tx.Now.Add(-24 * time.Hour))
	var faults [3]error
	open, err := list[string](ctx, rs.tx, remoteOpen, handle, protocol.SharedRemote.Most)
	for _, of := range open {
		if of == origin {
			c.OpenOfDomain++
		}
	}
	c.Open, faults[0] = len(open), err
	c.BegunByOne, faults[1] = find[int](ctx, rs.tx, remoteBegunBy, writer, day, protocol.MaxBegunOfActor)
	c.BegunOfAll, faults[2] = find[int](ctx, rs.tx, remoteBegunOf, origin, day, protocol.MaxBegunOfDomain)
	return c, errors.Join(faults[:]...)
}

// PutMessage stores the Note of a message.
func (rs RemoteThreads) PutMessage(ctx context.Context, m RemoteMessage) error {
	return remoteMessageTable.insert(ctx, rs.tx, &m)
}

// OfNote returns the messages of a Note, one for each agent that it was given to.
func (rs RemoteThreads) OfNote(ctx context.Context, uri string) ([]RemoteMessage, error) {
	return list[RemoteMessage](ctx, rs.tx, remoteMessageTable.from+remoteOfNote, uri, protocol.MaxNamedAgents)
}

// ByNumber returns the Note of a message by its number in the thread; ErrNotFound when it has none.
func (rs RemoteThreads) ByNumber(ctx context.Context, threadID string, n int) (RemoteMessage, error) {
	return find[RemoteMessage](ctx, rs.tx, remoteMessageTable.from+`WHERE thread_id = ? AND n = ?`, threadID, n)
}

// Answered returns the Note of the writer's last message before number n, "" for none.
func (rs RemoteThreads) Answered(ctx context.Context, threadID string, n int) (string, error) {
	return orZero(find[string](ctx, rs.tx, remoteAnswered, threadID, n))
}

// Revise gives a message another text of its author's.
func (rs RemoteThreads) Revise(ctx context.Context, m RemoteMessage, text string, at time.Time) error {
	if err := rs.tx.exec(ctx, `UPDATE remote_message SET revisions = revisions + 1 WHERE thread_id = ? AND n = ?`, m.ThreadID, m.N); err != nil {
		return err
	}
	return rs.tx.exec(ctx, `UPDATE thread_message SET text = ?, edited_at = ? WHERE thread_id = ? AND n = ?`, text, millis(at), m.ThreadID, m.N)
}

// Withdraw removes the text of a message.
func (rs RemoteThreads) Withdraw(ctx context.Context, m RemoteMessage) error {
	return rs.tx.exec(ctx, `UPDATE thread_message SET text = ?, withdrawn = ? WHERE thread_id = ? AND n = ?`,
		protocol.WithdrawnText, true, m.ThreadID, m.N)
}

// Written returns the Notes of a person that are not withdrawn, at most limit.
func (rs RemoteThreads) Written(ctx context.Context, writer string, limit int) ([]string, error) {
	return list[string](ctx, rs.tx, remoteWritten, writer, limit)
}

// A MessageJobArgs is the argument of a message job: a message of an agent, or the id of a refusal.
type MessageJobArgs struct {
	ThreadID string `json:"thread,omitempty"`
	N        int    `json:"n,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
}

// EnqueueMessage queues the delivery of a message to a server.
func (rs RemoteThreads) EnqueueMessage(ctx context.Context, host string, a MessageJobArgs) error {
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return rs.tx.Enqueue(ctx, Job{Kind: MessageJob, Lane: "to:" + host, Args: args})
}

// Refuse stores a refusal, and reports false when the person was told within a day, or too many of its domain were.
func (rs RemoteThreads) Refuse(ctx context.Context, r RemoteRefusal) (bool, error) {
	if err := rs.tx.lockName(ctx, "remote refusal "+r.Origin); err != nil {
		return false, err
	}
	if told, err := rs.tx.exists(ctx, `SELECT 1 FROM remote_refusal WHERE actor = ? AND until > ?`, r.Actor, millis(rs.tx.Now)); err != nil || told {
		return false, err
	}
	n, err := find[int](ctx, rs.tx, remoteRefusedOf, r.Origin, millis(rs.tx.Now), protocol.MaxRefusedOfOne)
	if err != nil || n >= protocol.MaxRefusedOfOne {
		return false, err
	}
	r.Until = rs.tx.Now.Add(protocol.RefusalOnceWithin)
	return true, remoteRefusalTable.put(ctx, rs.tx, &r, "actor")
}

// Refusal returns a refusal by the id of its Note; ErrNotFound when it is over.
func (rs RemoteThreads) Refusal(ctx context.Context, id string) (RemoteRefusal, error) {
	return find[RemoteRefusal](ctx, rs.tx, remoteRefusalTable.from+`WHERE id = ?`, id)
}
