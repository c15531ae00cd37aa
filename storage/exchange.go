package storage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stoa/protocol"
)

// A NumberedMessage is a message of a thread with its number, the id that its
// writer gave it, "" for none, and what it is for a task.
type NumberedMessage struct {
	N        int
	ClientID string
	Part     ExchangePart
	protocol.Message
}

// An ExchangePart says what a message of an agent is for a task: the zero value an answer.
type ExchangePart struct {
	Mark     protocol.AnswerAs
	Artifact protocol.Attachment // the zero value for none
}

// SetClientID stores the id that the writer gave to a message.
func (ts Threads) SetClientID(ctx context.Context, threadID string, n int, clientID string) error {
	return ts.tx.exec(ctx, `INSERT INTO client_message (thread_id, n, client_id) VALUES (?, ?, ?)`, threadID, n, clientID)
}

// MessagesFrom returns at most limit messages of a thread, oldest first, beginning
// with number n.
func (ts Threads) MessagesFrom(ctx context.Context, threadID string, n, limit int) ([]NumberedMessage, error) {
	rows, err := list[messageRow](ctx, ts.tx, messagesFrom, threadID, n, limit)
	all := make([]NumberedMessage, len(rows))
	for i, r := range rows {
		all[i] = NumberedMessage{r.N, r.ClientID, ExchangePart{r.Mark, r.Artifact}, r.message()}
	}
	return all, err
}

// A partRow is a row of exchange_part.
type partRow struct {
	ThreadID string
	N        int
	Mark     protocol.AnswerAs
	Artifact protocol.Attachment `db:",null"`
}

// A StoredExchange is an exchange that is a task, in a thread of a party; or a bid or a meeting request, which is one too.
type StoredExchange struct {
	ThreadID string // or the id of the bid or of the request
	First    int    // 0 for one of those
	Party    string
	State    protocol.ExchangeState
	Moved    time.Time
	EndsAt   time.Time `db:",null"` // when it is listed no more; zero for one in a thread
}

// thingsListed is how long a bid or a meeting request is listed after its last change.
const thingsListed = 90 * 24 * time.Hour

var (
	partTable     = tableOf[partRow]("exchange_part")
	exchangeTable = tableOf[StoredExchange]("exchange")
)

// Exchanges reads and writes the exchanges that are tasks.
type Exchanges struct{ tx *Tx }

func (tx *Tx) Exchanges() Exchanges { return Exchanges{tx} }

// PutPart stores what a message of an agent is for its task.
func (es Exchanges) PutPart(ctx context.Context, threadID string, n int, p ExchangePart) error {
	return partTable.insert(ctx, es.tx, &partRow{threadID, n, p.Mark, p.Artifact})
}

// Began returns the ids that the writers of threads gave the messages with which their tasks began, by thread.
func (es Exchanges) Began(ctx context.Context, threads []StoredThread) (map[string]string, error) {
	var args []any
	for _, t := range threads {
		if t.Task > 0 {
			args = append(args, t.ID)
		}
	}
	if len(args) == 0 {
		return nil, nil
	}
	type began struct{ ThreadID, ClientID string }
	found, err := list[began](ctx, es.tx, `SELECT c.thread_id, c.client_id FROM thread t JOIN client_message c ON c.thread_id = t.id AND c.n = t.task
		WHERE t.id IN (`+marks(len(args))+`)`, args...)
	ids := make(map[string]string, len(found))
	for _, b := range found {
		ids[b.ThreadID] = b.ClientID
	}
	return ids, err
}

// Party is the name of a writer with an agent.
func Party(handle, writer string) string { return handle + " " + writer }

// put stores the newest task of a thread as it is now, and wakes who waits for it.
func (es Exchanges) put(ctx context.Context, t *StoredThread) error {
	if t.State == protocol.ThreadClosed {
		t.TaskState = t.TaskState.Closed(t.ClosedBy)
	}
	es.tx.wake(TopicTasks)
	if t.Task == t.before.task { // a new one has no addresses to tell
		if err := es.tx.Pushes().tell(ctx, t); err != nil {
			return err
		}
	}
	return es.store(ctx, &StoredExchange{ThreadID: t.ID, First: t.Task, Party: Party(t.Handle, t.Writer), State: t.TaskState, Moved: es.tx.Now})
}

// store stores a task. Its time is later than that of any of its states before, so that the two are told apart.
func (es Exchanges) store(ctx context.Context, e *StoredExchange) error {
	_, err := exchangeTable.write(ctx, es.tx, e, ` ON CONFLICT (thread_id, first) DO UPDATE SET state = excluded.state, ends_at = excluded.ends_at,
		moved = CASE WHEN excluded.moved > exchange.moved THEN excluded.moved ELSE exchange.moved + 1 END`)
	return err
}

// PartyOf is the party of a bid or a meeting request. That of a guest is nobody else's: it is found by its token.
func PartyOf(handle, by, id string) string {
	if strings.HasPrefix(by, "net:") {
		by = id
	}
	return Party(handle, by)
}

// thing stores a bid or a meeting request that is new or has moved, and wakes who waits for it.
func (es Exchanges) thing(ctx context.Context, id, handle, by string, s protocol.ExchangeState) error {
	es.tx.wake(TopicTasks)
	return es.store(ctx, &StoredExchange{ThreadID: id, Party: PartyOf(handle, by, id), State: s, Moved: es.tx.Now, EndsAt: es.tx.Now.Add(thingsListed)})
}

// An ExchangeVersion is another whenever the newest task of a thread, or what is a task itself, has changed.
type ExchangeVersion struct {
	First int
	Moved int64 // Unix milliseconds
}

// A MovedExchange is a task that has changed.
type MovedExchange struct {
	ThreadID string
	ExchangeVersion
}

const (
	movedExchanges = `SELECT thread_id, first, moved FROM exchange WHERE moved >= ? ORDER BY moved`
	newestExchange = `SELECT thread_id, first, moved FROM exchange WHERE thread_id = ? ORDER BY first DESC LIMIT 1`
)

// Moved returns the tasks that have changed since a time, the last changed last.
func (es Exchanges) Moved(ctx context.Context, since time.Time) ([]MovedExchange, error) {
	return list[MovedExchange](ctx, es.tx, movedExchanges, millis(since))
}

// Version returns the version of a thread's newest task, or of a bid or a meeting request.
func (es Exchanges) Version(ctx context.Context, threadID string) (ExchangeVersion, error) {
	found, err := list[MovedExchange](ctx, es.tx, newestExchange, threadID)
	if err != nil || len(found) == 0 {
		return ExchangeVersion{}, err
	}
	return found[0].ExchangeVersion, nil
}

// An ExchangeFilter selects tasks of a party, of one thread or of all, in one of some states or in all, that changed at a time or later.
type ExchangeFilter struct {
	Party, ThreadID string
	States          []protocol.ExchangeState
	Since           time.Time
}

// where returns the condition of a filter.
func (f ExchangeFilter) where() (text string, args []any) {
	text, args = `party = ? AND moved >= ?`, []any{f.Party, millis(f.Since)}
	if f.ThreadID != "" {
		text, args = text+` AND thread_id = ?`, append(args, f.ThreadID)
	}
	if len(f.States) > 0 {
		text += ` AND state IN (` + marks(len(f.States)) + `)`
		for _, s := range f.States {
			args = append(args, string(s))
		}
	}
	return text, args
}

const newestExchanges = ` ORDER BY moved DESC, thread_id DESC, first DESC LIMIT ?`

// MaxCounted is up to how many tasks are counted.
const MaxCounted = 10_000

// Count counts what a filter selects, up to MaxCounted.
func (es Exchanges) Count(ctx context.Context, f ExchangeFilter) (int, error) {
	text, args := f.where()
	return find[int](ctx, es.tx, `SELECT count(*) FROM (SELECT 1 FROM exchange WHERE `+text+` LIMIT ?) AS counted`, append(args, MaxCounted)...)
}

// parsePlace reads the position of a cursor of List.
func parsePlace(at string) (moved int64, threadID string, first int, ok bool) {
	parts := strings.Split(at, " ")
	if len(parts) != 3 {
		return 0, "", 0, false
	}
	moved, err := strconv.ParseInt(parts[0], 10, 64)
	first, wrong := strconv.Atoi(parts[2])
	return moved, parts[1], first, err == nil && wrong == nil
}

// List returns what a filter selects, those that changed last first. A cursor belongs to one listing, which names filter and party.
func (es Exchanges) List(ctx context.Context, f ExchangeFilter, listing string, limit int, after string) (protocol.Page[StoredExchange], error) {
	at, err := protocol.ParseCursor(listing, after)
	if err != nil {
		return protocol.Page[StoredExchange]{}, err
	}
	text, args := f.where()
	if at != "" {
		moved, thread, first, ok := parsePlace(at)
		if !ok {
			return protocol.Page[StoredExchange]{}, protocol.Errorf(protocol.InvalidCursor, "the page token is not one of this list")
		}
		text, args = text+` AND (moved, thread_id, first) < (?, ?, ?)`, append(args, moved, thread, first)
	}
	found, err := list[StoredExchange](ctx, es.tx, exchangeTable.from+`WHERE `+text+newestExchanges, append(args, limit+1)...)
	return page(found, limit, listing, func(e StoredExchange) string {
		return fmt.Sprintf("%d %s %d", millis(e.Moved), e.ThreadID, e.First)
	}), err
}
