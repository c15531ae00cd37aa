package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// A StoredThread is a conversation with the node's own data about it.
type StoredThread struct {
	ID, Handle           string
	Kind                 protocol.ContactKind
	State                protocol.ThreadState
	Writer               string // who began it, as used by limits and blocks
	WriterHandle         string // the profile of this node that began it, "" for none or a deleted one
	Author               protocol.Author
	TokenHash            [32]byte
	Visitor              string // hash of the cookie of the browser that began it, "" for none
	Callback             string // where replies are sent, "" for nowhere
	Messages             int    // the number of the last one
	Unread, Unseen       int    // messages of the writer, of the agent, since the other side last wrote
	Seen                 int    // how many messages the owner has read
	CreatedAt, UpdatedAt time.Time
	ClosedAt             *time.Time
	ClosedBy             string // "owner", "silence", or "sale": the writer's chain identity has another owner
}

const threadColumns = `id, handle, kind, state, writer, author, token_hash, visitor, callback, messages, unread, unseen, created_at, updated_at,
	closed_at, closed_by, writer_handle, seen`

func scanThread(s scanner) (t StoredThread, err error) {
	var author string
	var hash, visitor []byte
	var created, updated int64
	var closed *int64
	var profile *string
	if err = s.Scan(&t.ID, &t.Handle, &t.Kind, &t.State, &t.Writer, &author, &hash, &visitor, &t.Callback, &t.Messages,
		&t.Unread, &t.Unseen, &created, &updated, &closed, &t.ClosedBy, &profile, &t.Seen); err != nil {
		return t, err
	}
	if profile != nil {
		t.WriterHandle = *profile
	}
	copy(t.TokenHash[:], hash)
	t.Visitor, t.CreatedAt, t.UpdatedAt, t.ClosedAt = string(visitor), moment(created), moment(updated), momentPtr(closed)
	if err = readAuthor(author, &t.Author, t.CreatedAt); err != nil {
		return t, fmt.Errorf("thread %s: %w", t.ID, err)
	}
	return t, nil
}

// Threads reads and writes threads with agents, and their messages.
type Threads struct{ tx *Tx }

func (tx *Tx) Threads() Threads { return Threads{tx} }

// Insert stores a new thread without messages and sets its times to now.
func (ts Threads) Insert(ctx context.Context, t *StoredThread) error {
	author, err := json.Marshal(t.Author)
	if err != nil {
		return fmt.Errorf("encode author: %w", err)
	}
	var visitor []byte
	if t.Visitor != "" {
		visitor = []byte(t.Visitor)
	}
	var profile *string
	if t.WriterHandle != "" {
		profile = &t.WriterHandle
	}
	t.CreatedAt, t.UpdatedAt = ts.tx.Now, ts.tx.Now
	_, err = ts.tx.write(ctx, `INSERT INTO thread (`+threadColumns+`, agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.Handle, string(t.Kind), string(t.State), t.Writer, string(author), t.TokenHash[:], visitor, t.Callback, t.Messages,
		t.Unread, t.Unseen, millis(t.CreatedAt), millis(t.UpdatedAt), millisPtr(t.ClosedAt), t.ClosedBy, profile, t.Seen, begunBy(t.Writer, t.Author))
	return err
}

// ByID returns a thread; ErrNotFound when there is none. In a writing
// transaction its row is locked, so that a decision about it stays valid.
func (ts Threads) ByID(ctx context.Context, id string) (*StoredThread, error) {
	query := `SELECT ` + threadColumns + ` FROM thread WHERE id = ?`
	if ts.tx.writes() {
		if err := ts.tx.dirty(); err != nil {
			return nil, err
		}
		query += ts.tx.db.engine.ForUpdate()
	}
	rows, err := ts.tx.query(ctx, query, id)
	found, err := collect(rows, err, scanThread)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return &found[0], nil
}

// IDByToken returns the id of the thread that a read token gives access to, by the
// token's hash; ErrNotFound when there is none.
func (ts Threads) IDByToken(ctx context.Context, hash [32]byte) (id string, err error) {
	err = ts.tx.row(ctx, threadByToken, hash[:]).Scan(&id)
	return id, err
}

const threadByToken = `SELECT id FROM thread WHERE token_hash = ?`

// Save stores the mutable fields of a thread: state, counts, callback, and when
// and by whom it was closed.
func (ts Threads) Save(ctx context.Context, t *StoredThread) error {
	return one(ts.tx.write(ctx, `UPDATE thread SET state = ?, callback = ?, messages = ?, unread = ?, unseen = ?, seen = ?, updated_at = ?, closed_at = ?,
		closed_by = ? WHERE id = ?`,
		string(t.State), t.Callback, t.Messages, t.Unread, t.Unseen, t.Seen, millis(t.UpdatedAt), millisPtr(t.ClosedAt), t.ClosedBy, t.ID))
}

// CountNew counts the threads with messages of the writer that the owner has not read, up to most.
func (ts Threads) CountNew(ctx context.Context, handle string, most int) (n int, err error) {
	err = ts.tx.row(ctx, `SELECT count(*) FROM (`+newThreads+`) AS fresh`, handle, most).Scan(&n)
	return n, err
}

const newThreads = `SELECT 1 FROM thread WHERE handle = ? AND unread > 0 AND messages > seen LIMIT ?`

// Ends returns the text of the first and of the newest message of threads, by id.
func (ts Threads) Ends(ctx context.Context, threads []StoredThread) (map[string][2]string, error) {
	if len(threads) == 0 {
		return nil, nil
	}
	args := make([]any, len(threads))
	for i, t := range threads {
		args[i] = t.ID
	}
	type end struct {
		id   string
		n    int
		text string
	}
	rows, err := ts.tx.query(ctx, `SELECT m.thread_id, m.n, m.text FROM thread AS t JOIN thread_message AS m ON m.thread_id = t.id AND m.n IN (1, t.messages)
		WHERE t.id IN (?`+strings.Repeat(`, ?`, len(threads)-1)+`)`, args...)
	found, err := collect(rows, err, func(s scanner) (e end, err error) { return e, s.Scan(&e.id, &e.n, &e.text) })
	ends := make(map[string][2]string, len(threads))
	for _, e := range found {
		both := ends[e.id]
		if e.n == 1 {
			both[0] = e.text
		} else {
			both[1] = e.text
		}
		ends[e.id] = both
	}
	return ends, err
}

// AppendMessage stores the next message of a thread. The caller has read the thread
// with ByID in the same transaction and saves it.
func (ts Threads) AppendMessage(ctx context.Context, t *StoredThread, m protocol.Message) error {
	author, err := json.Marshal(m.Author)
	if err != nil {
		return fmt.Errorf("encode author: %w", err)
	}
	t.Messages++
	t.UpdatedAt = ts.tx.Now
	_, err = ts.tx.write(ctx, `INSERT INTO thread_message (thread_id, n, id, side, author, text, at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.Messages, m.ID, string(m.From), string(author), m.Text, millis(m.CreatedAt))
	return err
}

const messageColumns = `n, id, side, author, text, at`

type numbered struct {
	n int64
	protocol.Message
}

func scanMessage(s scanner) (m numbered, err error) {
	var author string
	var at int64
	if err = s.Scan(&m.n, &m.ID, &m.From, &author, &m.Text, &at); err != nil {
		return m, err
	}
	m.CreatedAt, m.Untrusted = moment(at), true
	if err = readAuthor(author, &m.Author, m.CreatedAt); err != nil {
		return m, fmt.Errorf("message %s: %w", m.ID, err)
	}
	if m.From == protocol.AgentSide && m.Author.Proof.Level == protocol.ByChainKey && m.Author.Proof.Block == nil {
		// Stored before levels existed: whatever key of the profile signed, the profile's
		// identity was written with it.
		m.Author.Proof = protocol.AuthorProof{Level: protocol.ByProfileKey}
		m.Author.Complete(m.CreatedAt)
	}
	return m, nil
}

// readAuthor reads a stored author. One that was stored before levels existed was
// checked when it was stored.
func readAuthor(raw string, a *protocol.Author, at time.Time) error {
	if err := json.Unmarshal([]byte(raw), a); err != nil {
		return err
	}
	a.Complete(at)
	return nil
}

// ListMessages returns the messages of a thread, oldest first.
func (ts Threads) ListMessages(ctx context.Context, threadID string, limit int, after string) (protocol.Page[protocol.Message], error) {
	limit = bounded(limit)
	const listing = "messages"
	from, err := position(listing, after, 0)
	if err != nil {
		return protocol.Page[protocol.Message]{}, err
	}
	rows, err := ts.tx.query(ctx, `SELECT `+messageColumns+` FROM thread_message WHERE thread_id = ? AND n > ? ORDER BY n LIMIT ?`, threadID, from, limit+1)
	found, err := collect(rows, err, scanMessage)
	p := page(found, limit, listing, func(m numbered) string { return number(m.n) })
	out := protocol.Page[protocol.Message]{Items: make([]protocol.Message, len(p.Items)), Next: p.Next}
	for i := range p.Items {
		out.Items[i] = p.Items[i].Message
	}
	return out, err
}

// MessageByNumber returns one message of a thread; ErrNotFound when there is none.
func (ts Threads) MessageByNumber(ctx context.Context, threadID string, n int) (*protocol.Message, error) {
	rows, err := ts.tx.query(ctx, `SELECT `+messageColumns+` FROM thread_message WHERE thread_id = ? AND n = ?`, threadID, n)
	found, err := collect(rows, err, scanMessage)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return &found[0].Message, nil
}

// List returns the threads with an agent, newest first; state "" is every state.
func (ts Threads) List(ctx context.Context, handle string, state protocol.ThreadState, limit int, after string) (protocol.Page[StoredThread], error) {
	limit = bounded(limit)
	listing := "threads-" + string(state)
	before, err := positionID(listing, after)
	if err != nil {
		return protocol.Page[StoredThread]{}, err
	}
	text, args := threadsQuery(handle, state, before, limit+1)
	rows, err := ts.tx.query(ctx, text, args...)
	found, err := collect(rows, err, scanThread)
	return page(found, limit, listing, func(t StoredThread) string { return t.ID }), err
}

// onesOwn is a page of the rows of one agent, newest first, onesOwnState one of
// those in one state. Each is ordered by an expression that only its own index has,
// so that no engine uses the primary key and reads the rows of all agents in
// between, as PostgreSQL does if one agent has a large part of them.
const (
	onesOwn      = `id || '' < ? ORDER BY id || '' DESC LIMIT ?`
	onesOwnState = `'' || id < ? ORDER BY '' || id DESC LIMIT ?`
)

func threadsQuery(handle string, state protocol.ThreadState, before string, limit int) (text string, args []any) {
	if state == "" {
		return `SELECT ` + threadColumns + ` FROM thread WHERE handle = ? AND ` + onesOwn, []any{handle, before, limit}
	}
	return `SELECT ` + threadColumns + ` FROM thread WHERE handle = ? AND state = ? AND ` + onesOwnState, []any{handle, string(state), before, limit}
}

// positionID reads the id in a cursor of a listing that is descending by id;
// without a cursor it returns a string greater than every id.
func positionID(listing, after string) (string, error) {
	p, err := protocol.ParseCursor(listing, after)
	if p == "" {
		p = "~"
	}
	return p, err
}

const countOpenThreads = `SELECT count(*) FROM (SELECT 1 FROM thread WHERE handle = ? AND writer = ? AND state = 'open' LIMIT ?) AS waiting`

// CountOpen counts the threads of a writer with an agent that wait for an answer,
// up to most. A concurrent count of the same waits for this transaction to end, so
// that a limit is exact over all processes.
func (ts Threads) CountOpen(ctx context.Context, handle, writer string, most int) (n int, err error) {
	if err := ts.tx.lockName(ctx, "thread "+handle+" "+writer); err != nil {
		return 0, err
	}
	err = ts.tx.row(ctx, countOpenThreads, handle, writer, most).Scan(&n)
	return n, err
}
