package storage

import (
	"context"
	"encoding/json"
	"time"
)

// A Cosignature is what a node that follows our board cosigned last of the log's tree.
type Cosignature struct {
	Host, Epoch string
	Size        int64
	Root        []byte
	Line        string // of a signed note
}

const (
	maxWitnesses = 100
	witnessPause = 5 * time.Minute // from one request to the next
	witnessWait  = 15 * time.Second
	witnessAge   = 30 * 24 * time.Hour // after the last request
)

// AskWitness has the node of an actor, which has read our board's log, asked soon to cosign the tree, if the node follows the board, has not
// cosigned this tree and was not asked in the last five minutes. With 100 witnesses known, others are not asked.
func (ls Logs) AskWitness(ctx context.Context, board, actor, host string) error {
	stoa, err := ls.tx.Outlets().FollowingHost(ctx, board, host)
	if err != nil || !stoa {
		return orNothing(err)
	}
	t, err := ls.Tree(ctx, board)
	if err != nil || t.ID == 0 {
		return orNothing(err)
	}
	now := ls.tx.Now
	n, err := ls.tx.write(ctx, `INSERT INTO log_witness (host, epoch, size, root, line, asked_at, until) SELECT ?, '', 0, ?, '', ?, ?
		WHERE (SELECT count(*) FROM log_witness WHERE host <> ?) < ?
		ON CONFLICT (host) DO UPDATE SET asked_at = EXCLUDED.asked_at, until = EXCLUDED.until
		WHERE log_witness.asked_at <= ? AND (log_witness.epoch <> ? OR log_witness.size <> ?)`,
		host, []byte{}, millis(now), millis(now.Add(witnessAge)), host, maxWitnesses, millis(now.Add(-witnessPause)), t.Epoch, t.Size)
	if err != nil || n == 0 {
		return err
	}
	args, err := json.Marshal(actor)
	if err != nil {
		return err
	}
	name := "witness:" + host
	return ls.tx.Enqueue(ctx, Job{Kind: WitnessJob, Lane: name, Dedupe: name, Args: args, RunAt: now.Add(witnessWait)})
}

// Cosigned stores what a node that was asked cosigned, in place of what it cosigned before.
func (ls Logs) Cosigned(ctx context.Context, c Cosignature) error {
	return ls.tx.exec(ctx, `UPDATE log_witness SET epoch = ?, size = ?, root = ?, line = ? WHERE host = ?`, c.Epoch, c.Size, c.Root, c.Line, c.Host)
}

// maxCosignatures is how many cosignatures a checkpoint is served with.
const maxCosignatures = 64

// Cosignatures returns up to 64 cosignatures of trees of an epoch, the largest tree first, then by host. All have a size of at least least.
func (ls Logs) Cosignatures(ctx context.Context, epoch string, least int64) ([]Cosignature, error) {
	return list[Cosignature](ctx, ls.tx, `SELECT host, epoch, size, root, line FROM log_witness WHERE epoch = ? AND size >= ? AND line <> ''
		ORDER BY size DESC, host LIMIT ?`, epoch, least, maxCosignatures)
}
