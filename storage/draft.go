package storage

import (
	"context"
	"time"
)

// A DraftState says what became of a write that waits for a person.
type DraftState string

const (
	DraftWaits   DraftState = "waiting"
	DraftDone    DraftState = "done"
	DraftRefused DraftState = "refused"
)

// A Draft is a write without a proof of work that a person may confirm.
type Draft struct {
	Hash    [32]byte // of the secret of the program that sent it
	Link    [32]byte // of the secret in the person's link
	Network string   // keyed hash of the network it came from
	Op      string
	Digest  [32]byte // of operation and arguments
	Body    []byte   // sealed
	State   DraftState
	Result  []byte // sealed; empty until it is done
	EndsAt  time.Time
}

var draftTable = tableOf[Draft]("draft")

// Drafts reads and writes the writes that wait for a person.
type Drafts struct{ tx *Tx }

func (tx *Tx) Drafts() Drafts { return Drafts{tx} }

// Insert stores a draft. Of more than most of its network the one that ends first goes.
func (ds Drafts) Insert(ctx context.Context, d Draft, most int) error {
	if err := draftTable.insert(ctx, ds.tx, &d); err != nil {
		return err
	}
	return ds.tx.exec(ctx, `DELETE FROM draft WHERE hash IN (SELECT hash FROM draft WHERE network = ? ORDER BY ends_at DESC LIMIT 100 OFFSET ?)`, d.Network, most)
}

// ByHash returns the draft of a program's secret, ByLink that of a person's link; ErrNotFound for none, and for one that has ended.
func (ds Drafts) ByHash(ctx context.Context, hash [32]byte) (Draft, error) {
	return find[Draft](ctx, ds.tx, draftTable.from+`WHERE hash = ? AND ends_at > ?`, hash[:], millis(ds.tx.Now))
}

func (ds Drafts) ByLink(ctx context.Context, link [32]byte) (Draft, error) {
	return find[Draft](ctx, ds.tx, draftTable.from+`WHERE link = ? AND ends_at > ?`, link[:], millis(ds.tx.Now))
}

// Count is how many have not ended, up to a number.
func (ds Drafts) Count(ctx context.Context, most int) (int, error) {
	return find[int](ctx, ds.tx, `SELECT count(*) FROM (SELECT 1 FROM draft WHERE ends_at > ? LIMIT ?) r`, millis(ds.tx.Now), most)
}

// Decide records what became of a draft that waits; ErrNotFound for one that does not.
func (ds Drafts) Decide(ctx context.Context, link [32]byte, state DraftState, result []byte, ends time.Time) error {
	return one(ds.tx.write(ctx, `UPDATE draft SET state = ?, result = ?, ends_at = ? WHERE link = ? AND state = 'waiting'`, string(state),
		append([]byte{}, result...), millis(ends), link[:]))
}
