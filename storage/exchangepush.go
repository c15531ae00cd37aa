package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// pushesKept is how long the addresses of an exchange remain after its end: as long as they are tried.
const pushesKept = protocol.CallbackFor

// A PushKey names an address that is told of an exchange.
type PushKey struct {
	ThreadID string `json:"thread"`
	First    int    `json:"first"`
	ID       string `json:"id"`
}

// A StoredPush is an address that is told of an exchange.
type StoredPush struct {
	PushKey
	Lane    string    // of its jobs
	Tries   int       // at what it is to be told next, 0 when the last attempt succeeded
	NextAt  time.Time // of the next attempt, when there were any
	EndsAt  time.Time `db:",null"` // when it is deleted; zero while the exchange goes on
	PushDoc `db:"doc"`
}

// A PushDoc is what is stored of it and no statement looks for.
type PushDoc struct {
	URL    string    `json:"url"`
	Legacy bool      `json:"legacy,omitempty"`
	Scheme string    `json:"scheme,omitempty"`
	Sealed []byte    `json:"sealed,omitempty"` // token and credentials
	Until  time.Time `json:"until,omitzero"`   // the last attempt at what is to be told next
	Told   PushTold  `json:"told"`
}

// A PushTold is what an address was told of last.
type PushTold struct {
	State     string `json:"state"`
	Timestamp string `json:"timestamp"`
	Artifacts int    `json:"artifacts,omitempty"`
}

var pushTable = tableOf[StoredPush]("exchange_push")

// Pushes reads and writes the addresses that are told of exchanges.
type Pushes struct{ tx *Tx }

func (tx *Tx) Pushes() Pushes { return Pushes{tx} }

const pushByID = `WHERE thread_id = ? AND first = ? AND id = ?`

func (k PushKey) args() []any { return []any{k.ThreadID, k.First, k.ID} }

// Put stores an address, in place of one with its id.
func (ps Pushes) Put(ctx context.Context, p *StoredPush) error {
	return pushTable.put(ctx, ps.tx, p, "thread_id, first, id", "lane", "tries", "next_at", "ends_at", "doc")
}

// ByID returns an address; ErrNotFound when there is none.
func (ps Pushes) ByID(ctx context.Context, k PushKey) (*StoredPush, error) {
	return orNil(findLocked[StoredPush](ctx, ps.tx, pushTable.from+pushByID, k.args()...))
}

// List returns the addresses of an exchange by their ids.
func (ps Pushes) List(ctx context.Context, threadID string, first int) ([]StoredPush, error) {
	return list[StoredPush](ctx, ps.tx, pushTable.from+`WHERE thread_id = ? AND first = ? ORDER BY id`, threadID, first)
}

// Delete deletes an address if it is there.
func (ps Pushes) Delete(ctx context.Context, k PushKey) error {
	_, err := ps.tx.write(ctx, `DELETE FROM exchange_push `+pushByID, k.args()...)
	return err
}

// Drop deletes the addresses of all exchanges of a thread.
func (ps Pushes) Drop(ctx context.Context, threadID string) error {
	_, err := ps.tx.write(ctx, `DELETE FROM exchange_push WHERE thread_id = ?`, threadID)
	return err
}

// Enqueue enqueues an attempt to tell an address what has changed.
func (ps Pushes) Enqueue(ctx context.Context, p *StoredPush, at time.Time) error {
	args, err := json.Marshal(p.PushKey)
	if err != nil {
		return err
	}
	return ps.tx.Enqueue(ctx, Job{Kind: TaskPushJob, Lane: p.Lane, Args: args, RunAt: at, Dedupe: fmt.Sprint(TaskPushJob, " ", string(args), " ", millis(at))})
}

// tell enqueues the telling of the newest exchange of a thread, which has changed. Where an attempt failed, the next one tells it.
func (ps Pushes) tell(ctx context.Context, t *StoredThread) error {
	all, err := ps.List(ctx, t.ID, t.Task)
	for i := range all {
		if err == nil && all[i].Tries == 0 {
			err = ps.Enqueue(ctx, &all[i], ps.tx.Now)
		}
	}
	if err == nil && len(all) > 0 && t.TaskState.Final() {
		_, err = ps.tx.write(ctx, `UPDATE exchange_push SET ends_at = ? WHERE thread_id = ? AND first = ?`, millis(ps.tx.Now.Add(pushesKept)), t.ID, t.Task)
	}
	return err
}
