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

// Requests reads and writes the answers and proofs of requests, so that none counts
// twice, and the usage of callers.
type Requests struct{ tx *Tx }

func (tx *Tx) Requests() Requests { return Requests{tx} }

// Receipt returns the stored answer for the caller's key, nil if there is none or
// it has expired.
func (rs Requests) Receipt(ctx context.Context, caller, key string) (*Receipt, error) {
	r := Receipt{Caller: caller, Key: key}
	var digest []byte
	var expires int64
	err := rs.tx.row(ctx, `SELECT operation, digest, answer, expires FROM receipt WHERE caller = ? AND key = ?`, caller, key).
		Scan(&r.Operation, &digest, &r.Answer, &expires)
	if err == ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copy(r.Digest[:], digest)
	if r.Expires = moment(expires); !r.Expires.After(rs.tx.Now) {
		return nil, nil
	}
	return &r, nil
}

// KeepReceipt stores an answer. ErrExists if one is stored that has not expired.
func (rs Requests) KeepReceipt(ctx context.Context, r Receipt) error {
	n, err := rs.tx.write(ctx, `INSERT INTO receipt (caller, key, operation, digest, answer, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (caller, key) DO UPDATE SET operation = EXCLUDED.operation, digest = EXCLUDED.digest, answer = EXCLUDED.answer, expires = EXCLUDED.expires
		WHERE receipt.expires <= ?`, r.Caller, r.Key, r.Operation, r.Digest[:], r.Answer, millis(r.Expires), millis(rs.tx.Now))
	if err == nil && n == 0 {
		return ErrExists
	}
	return err
}
