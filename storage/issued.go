package storage

import (
	"context"
	"fmt"
	"math"
)

// HighestIssued is the largest issue time of a signed key record seen for a chain
// identity and signer, 0 if none was seen: an older record is a replay.
func (ks Keys) HighestIssued(ctx context.Context, identity, signer string) (uint64, error) {
	var at int64
	err := ks.tx.row(ctx, `SELECT issued_at FROM issued WHERE identity = ? AND signer = ?`, identity, signer).Scan(&at)
	if err == ErrNotFound {
		err = nil
	}
	return uint64(at), err
}

// RaiseIssued stores an issue time if it is larger than the stored one.
func (ks Keys) RaiseIssued(ctx context.Context, identity, signer string, issuedAt uint64) error {
	if issuedAt > math.MaxInt64 {
		return fmt.Errorf("storage: issue time %d is out of range", issuedAt)
	}
	return ks.tx.exec(ctx, `INSERT INTO issued (identity, signer, issued_at) VALUES (?, ?, ?)
		ON CONFLICT (identity, signer) DO UPDATE SET issued_at = EXCLUDED.issued_at WHERE issued.issued_at < EXCLUDED.issued_at`,
		identity, signer, int64(issuedAt))
}

// KnownIdentity reports whether a chain identity is enrolled with a profile or had
// a valid signed key record.
func (ks Keys) KnownIdentity(ctx context.Context, identity string) (bool, error) {
	return find[bool](ctx, ks.tx, `SELECT EXISTS (SELECT 1 FROM profile WHERE erc8004 = ?) OR EXISTS (SELECT 1 FROM issued WHERE identity = ?)`,
		identity, identity)
}
