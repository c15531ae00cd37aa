package storage

import (
	"context"
	"strconv"
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
	WriterHandle         string `db:",null"` // the profile of this node that began it, "" for none or a deleted one
	Author               protocol.Author
	TokenHash            [32]byte
	Visitor              string `db:",null,blob"` // hash of the cookie of the browser that began it, "" for none
	Callback             string // where replies are sent, "" for nowhere
	Origin               string `db:",null"` // registrable domain of the server whose person began it, "" for everyone else
	Messages             int    // the number of the last one
	Unread, Unseen       int    // messages of the writer, of the agent, since the other side last wrote
	Seen                 int    // how many messages the owner has read
	CreatedAt, UpdatedAt time.Time
	ClosedAt             *time.Time
	Task                 int                    // the first message of the newest exchange that is a task, 0 for none
	TaskState            protocol.ExchangeState // its state
	ClosedBy             string                 // "owner", "silence", or "sale": the writer's chain identity has another owner; or "writer", who canceled a task

	before threadMove // as it was read
}

func (t *StoredThread) loaded() {
	t.Author.Complete(t.CreatedAt)
	t.before = t.move()
}

// A threadMove is what a change of the task of a thread changes.
type threadMove struct {
	task, messages int
	state          protocol.ThreadState
}

func (t *StoredThread) move() threadMove { return threadMove{t.Task, t.Messages, t.State} }

// A newThread is a thread with who began it (begunTables).
type newThread struct {
	StoredThread
	Agent *string
}

var (
	threadTable    = tableOf[StoredThread]("thread")
	newThreadTable = tableOf[newThread]("thread")
)

// Threads reads and writes threads with agents, and their messages.
type Threads struct{ tx *Tx }

func (tx *Tx) Threads() Threads { return Threads{tx} }

// Insert stores a new thread without messages and sets its times to now.
func (ts Threads) Insert(ctx context.Context, t *StoredThread) error {
	t.CreatedAt, t.UpdatedAt = ts.tx.Now, ts.tx.Now
	return newThreadTable.insert(ctx, ts.tx, &newThread{*t, begunBy(t.Writer, t.Author)})
}

// ByID returns a thread; ErrNotFound when there is none. In a writing
// transaction its row is locked, so that a decision about it stays valid.
func (ts Threads) ByID(ctx context.Context, id string) (*StoredThread, error) {
	return orNil(findLocked[StoredThread](ctx, ts.tx, threadTable.from+`WHERE id = ?`, id))
}

// IDByToken returns the id of the thread that a read token gives access to, by the
// token's hash; ErrNotFound when there is none.
func (ts Threads) IDByToken(ctx context.Context, hash [32]byte) (string, error) {
	return find[string](ctx, ts.tx, threadByToken, hash[:])
}

const threadByToken = `SELECT id FROM thread WHERE token_hash = ?`

// Save stores the mutable fields of a thread: state, counts, callback, and when
// and by whom it was closed, and its task.
func (ts Threads) Save(ctx context.Context, t *StoredThread) error {
	if t.Task > 0 && t.before != t.move() {
		if err := ts.tx.Exchanges().put(ctx, t); err != nil {
			return err
		}
	}
	return threadTable.update(ctx, ts.tx, t, "id", "state", "callback", "messages", "unread", "unseen", "seen", "updated_at", "closed_at", "closed_by",
		"task", "task_state")
}

// CountNew counts the threads with messages of the writer that the owner has not read, up to most.
func (ts Threads) CountNew(ctx context.Context, handle string, most int) (int, error) {
	return find[int](ctx, ts.tx, `SELECT count(*) FROM (`+newThreads+`) AS fresh`, handle, most)
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
		ThreadID string
		N        int
		Text     string
	}
	found, err := list[end](ctx, ts.tx, `SELECT m.thread_id, m.n, m.text FROM thread AS t JOIN thread_message AS m ON m.thread_id = t.id AND m.n IN (1, t.messages)
		WHERE t.id IN (?`+strings.Repeat(`, ?`, len(threads)-1)+`)`, args...)
	ends := make(map[string][2]string, len(threads))
	for _, e := range found {
		both := ends[e.ThreadID]
		if e.N == 1 {
			both[0] = e.Text
		} else {
			both[1] = e.Text
		}
		ends[e.ThreadID] = both
	}
	return ends, err
}

// AppendMessage stores the next message of a thread. The caller has read the thread
// with ByID in the same transaction and saves it.
func (ts Threads) AppendMessage(ctx context.Context, t *StoredThread, m protocol.Message) error {
	t.Messages++
	t.UpdatedAt = ts.tx.Now
	return ts.insertMessage(ctx, t.ID, t.Messages, m)
}

// A messageRow is a message of a thread as it is stored.
type messageRow struct {
	ThreadID, ID string
	N            int
	Side         protocol.Side
	Author       protocol.Author
	Text         string
	At           time.Time
	Public       bool
	EditedAt     *time.Time
	Withdrawn    bool
	ClientID     string `db:",null,read"` // of client_message

	Mark     protocol.AnswerAs   `db:",null,read"` // of exchange_part
	Artifact protocol.Attachment `db:",null,read"`
}

var (
	messageTable = tableOf[messageRow]("thread_message")
	messagesFrom = `SELECT ` + messageTable.columnsOf("m.") + `, c.client_id, p.mark, p.artifact
		FROM thread_message m LEFT JOIN client_message c ON c.thread_id = m.thread_id AND c.n = m.n
		LEFT JOIN exchange_part p ON p.thread_id = m.thread_id AND p.n = m.n
		WHERE m.thread_id = ? AND m.n >= ? ORDER BY m.n LIMIT ?`
)

func (r *messageRow) loaded() {
	r.Author.Complete(r.At)
	if p := r.Author.Proof; r.Side == protocol.AgentSide && p.Level == protocol.ByChainKey && p.Block == nil {
		// Stored before levels existed: whatever key of the profile signed, the profile's
		// identity was written with it.
		r.Author.Proof = protocol.AuthorProof{Level: protocol.ByProfileKey}
		r.Author.Complete(r.At)
	}
}

func (r *messageRow) message() protocol.Message {
	return protocol.Message{ID: r.ID, From: r.Side, Author: r.Author, Text: r.Text, CreatedAt: r.At,
		Public: r.Public, EditedAt: r.EditedAt, Withdrawn: r.Withdrawn, Untrusted: true}
}

func (ts Threads) insertMessage(ctx context.Context, threadID string, n int, m protocol.Message) error {
	return messageTable.insert(ctx, ts.tx, &messageRow{ThreadID: threadID, ID: m.ID, N: n, Side: m.From, Author: m.Author, Text: m.Text, At: m.CreatedAt,
		Public: m.Public, EditedAt: m.EditedAt, Withdrawn: m.Withdrawn})
}

// ListMessages returns the messages of a thread, oldest first.
func (ts Threads) ListMessages(ctx context.Context, threadID string, limit int, after string) (protocol.Page[protocol.Message], error) {
	limit = bounded(limit)
	const listing = "messages"
	from, err := position(listing, after, 0)
	if err != nil {
		return protocol.Page[protocol.Message]{}, err
	}
	found, err := list[messageRow](ctx, ts.tx, messageTable.from+`WHERE thread_id = ? AND n > ? ORDER BY n LIMIT ?`, threadID, from, limit+1)
	p := page(found, limit, listing, func(r messageRow) string { return strconv.Itoa(r.N) })
	out := protocol.Page[protocol.Message]{Items: make([]protocol.Message, len(p.Items)), Next: p.Next}
	for i := range p.Items {
		out.Items[i] = p.Items[i].message()
	}
	return out, err
}

// Withdraw removes the text of a message of the writer of a thread, for good; ErrNotFound when the thread has none of that id.
func (ts Threads) Withdraw(ctx context.Context, threadID, id string) error {
	return one(ts.tx.write(ctx, `UPDATE thread_message SET text = ?, withdrawn = ? WHERE thread_id = ? AND id = ? AND side = 'writer'`,
		protocol.WithdrawnText, true, threadID, id))
}

// MessageByNumber returns one message of a thread; ErrNotFound when there is none.
func (ts Threads) MessageByNumber(ctx context.Context, threadID string, n int) (*protocol.Message, error) {
	r, err := find[messageRow](ctx, ts.tx, messageTable.from+`WHERE thread_id = ? AND n = ?`, threadID, n)
	if err != nil {
		return nil, err
	}
	m := r.message()
	return &m, nil
}

// List returns the threads with an agent, newest first; state "" is every state.
func (ts Threads) List(ctx context.Context, handle string, state protocol.ThreadState, limit int, after string) (protocol.Page[StoredThread], error) {
	text, args := threadsQuery(handle, state)
	return newest[StoredThread](ctx, ts.tx, "threads-"+string(state), "id", limit, after, text, args...)
}

// onesOwn is a page of the rows of one agent, newest first, onesOwnState one of
// those in one state. Each is ordered by an expression that only its own index has,
// so that no engine uses the primary key and reads the rows of all agents in
// between, as PostgreSQL does if one agent has a large part of them.
const (
	onesOwn      = `id || '' < ? ORDER BY id || '' DESC LIMIT ?`
	onesOwnState = `'' || id < ? ORDER BY '' || id DESC LIMIT ?`
)

func threadsQuery(handle string, state protocol.ThreadState) (text string, args []any) {
	if state == "" {
		return threadTable.from + `WHERE handle = ? AND ` + onesOwn, []any{handle}
	}
	return threadTable.from + `WHERE handle = ? AND state = ? AND ` + onesOwnState, []any{handle, string(state)}
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
func (ts Threads) CountOpen(ctx context.Context, handle, writer string, most int) (int, error) {
	if err := ts.tx.lockName(ctx, "thread "+handle+" "+writer); err != nil {
		return 0, err
	}
	return find[int](ctx, ts.tx, countOpenThreads, handle, writer, most)
}
