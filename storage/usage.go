package storage

import (
	"context"
	"time"
)

// A Usage is what one process of a deployment tells the others about the usage of
// its callers: a document in a format of the processes.
type Usage struct {
	Process string
	N       int64 // number of the process's document, from 1
	Doc     []byte
}

// usageKept is how long a Usage is stored: a process that did not read it by then
// was not running.
const usageKept = time.Minute

const usageQuery = `SELECT process, n, doc FROM usage WHERE at > ? AND process <> ? ORDER BY at, process, n LIMIT 1000`

// PutUsage stores a process's document, and deletes the old documents of all.
func (rs Requests) PutUsage(ctx context.Context, u Usage) error {
	if _, err := rs.PruneUsage(ctx); err != nil {
		return err
	}
	return rs.tx.exec(ctx, `INSERT INTO usage (process, n, at, doc) VALUES (?, ?, ?, ?)`, u.Process, u.N, millis(rs.tx.Now), u.Doc)
}

// UsageOfOthers returns the documents of other processes within the age, which is
// at most a minute, oldest first.
func (rs Requests) UsageOfOthers(ctx context.Context, process string, age time.Duration) ([]Usage, error) {
	return list[Usage](ctx, rs.tx, usageQuery, millis(rs.tx.Now.Add(-age)), process)
}

// PruneUsage deletes old documents, and returns how many.
func (rs Requests) PruneUsage(ctx context.Context) (int, error) {
	n, err := rs.tx.write(ctx, `DELETE FROM usage WHERE at <= ?`, millis(rs.tx.Now.Add(-usageKept)))
	return int(n), err
}
