package storage

import (
	"context"
	"time"
)

// A Receipt is the answer to a write with an Idempotency-Key, stored so that the
// same request gets it again (contract §1).
type Receipt struct {
	Caller, Key, Operation string
	Digest                 [32]byte // of the request, to detect another one under the same key
	Answer                 []byte
	Expires                time.Time
}

var keptReceiptTable = tableOf[Receipt]("receipt")

// Requests reads and writes the answers and proofs of requests, so that none counts
// twice, and the usage of callers.
type Requests struct{ tx *Tx }

func (tx *Tx) Requests() Requests { return Requests{tx} }

// Receipt returns the stored answer for the caller's key, nil if there is none or
// it has expired.
func (rs Requests) Receipt(ctx context.Context, caller, key string) (*Receipt, error) {
	r, err := find[Receipt](ctx, rs.tx, keptReceiptTable.from+`WHERE caller = ? AND key = ?`, caller, key)
	if err != nil || !r.Expires.After(rs.tx.Now) {
		return nil, orNothing(err)
	}
	return &r, nil
}

// KeepReceipt stores an answer. ErrExists if one is stored that has not expired.
func (rs Requests) KeepReceipt(ctx context.Context, r Receipt) error {
	text, args, err := keptReceiptTable.statement(&r, ` ON CONFLICT (caller, key) DO UPDATE SET operation = excluded.operation, digest = excluded.digest,
		answer = excluded.answer, expires = excluded.expires WHERE receipt.expires <= ?`)
	if err != nil {
		return err
	}
	n, err := rs.tx.write(ctx, text, append(args, millis(rs.tx.Now))...)
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}
