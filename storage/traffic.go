package storage

import (
	"context"
	"strings"
	"time"
)

// A Deed is a kind of what a node counts hour by hour.
type Deed string

const (
	DeedRead     Deed = "read"     // an operation that changes nothing was answered
	DeedWrite    Deed = "write"    // one that changes something was done
	DeedProof    Deed = "proof"    // of these, one that a proof of work paid for
	DeedReport   Deed = "report"   // of these, a report of a post
	DeedDelivery Deed = "delivery" // another server took an activity
	DeedFailure  Deed = "failure"  // a delivery failed
)

// Deeds are all of them.
var Deeds = []Deed{DeedRead, DeedWrite, DeedProof, DeedReport, DeedDelivery, DeedFailure}

// TrafficKept is how long the counts of an hour are stored.
const TrafficKept = 32 * 24 * time.Hour

// An HourCount is how often something was done within an hour.
type HourCount struct {
	Hour time.Time // its beginning, UTC
	Deed Deed
	N    int64
}

// Traffic reads and writes what the node did, hour by hour: at most one row for each
// hour and deed.
type Traffic struct{ tx *Tx }

func (tx *Tx) Traffic() Traffic { return Traffic{tx} }

// Add adds counts to the current hour.
func (t Traffic) Add(ctx context.Context, counts map[Deed]int64) error {
	var rows []string
	var args []any
	for _, d := range Deeds { // in one order, so that processes do not wait for each other in a circle
		if counts[d] > 0 {
			rows, args = append(rows, "(?, ?, ?)"), append(args, millis(t.tx.Now.Truncate(time.Hour)), string(d), counts[d])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return t.tx.exec(ctx, `INSERT INTO traffic (hour, what, n) VALUES `+strings.Join(rows, ", ")+
		` ON CONFLICT (hour, what) DO UPDATE SET n = traffic.n + EXCLUDED.n`, args...)
}

const trafficSince = `SELECT hour, what AS deed, n FROM traffic WHERE hour >= ? ORDER BY hour, what LIMIT ?`

// Since returns the counts of the hours from a time on, oldest first.
func (t Traffic) Since(ctx context.Context, from time.Time) ([]HourCount, error) {
	most := (int(TrafficKept/time.Hour) + 2) * len(Deeds)
	return list[HourCount](ctx, t.tx, trafficSince, millis(from), most)
}

// Prune deletes the counts of hours before a time, and returns how many rows.
func (t Traffic) Prune(ctx context.Context, before time.Time) (int, error) {
	n, err := t.tx.write(ctx, `DELETE FROM traffic WHERE hour < ?`, millis(before))
	return int(n), err
}
