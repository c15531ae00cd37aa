package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"

	"github.com/uptrace/bun"
)

// A Token allows an owner's program to write. Only the hash of its secret is
// stored.
type Token struct {
	ID                               string
	Hash                             [32]byte
	Account, Name                    string
	Handle                           string   // the one profile it is for; "" for all of the account
	Scopes                           []string // what it may do; none allows nothing that needs a scope
	CreatedAt                        time.Time
	ExpiresAt, RevokedAt, LastUsedAt *time.Time // nil: never
}

type tokenRow struct {
	bun.BaseModel `bun:"table:api_token"`
	ID            string `bun:",pk"`
	Hash          []byte
	Account       string
	Handle        string
	Name          string
	Scopes        string
	CreatedAt     int64
	ExpiresAt     *int64
	RevokedAt     *int64
	LastUsedAt    *int64
}

func (r tokenRow) token() Token {
	t := Token{ID: r.ID, Account: r.Account, Handle: r.Handle, Name: r.Name, CreatedAt: moment(r.CreatedAt),
		ExpiresAt: momentPtr(r.ExpiresAt), RevokedAt: momentPtr(r.RevokedAt), LastUsedAt: momentPtr(r.LastUsedAt)}
	copy(t.Hash[:], r.Hash)
	if json.Unmarshal([]byte(r.Scopes), &t.Scopes) != nil {
		t.Scopes = nil // no scope rather than a wrong one
	}
	return t
}

// InsertToken stores a token. A zero CreatedAt means now. ErrExists when its id or
// hash is taken.
func (tx *Tx) InsertToken(ctx context.Context, t Token) error {
	if t.CreatedAt.IsZero() {
		t.CreatedAt = tx.Now
	}
	scopes, err := json.Marshal(append([]string{}, t.Scopes...))
	if err != nil {
		return fmt.Errorf("encode scopes: %w", err)
	}
	return tx.insert(ctx, &tokenRow{
		ID: t.ID, Hash: t.Hash[:], Account: t.Account, Handle: t.Handle, Name: t.Name, Scopes: string(scopes),
		CreatedAt: millis(t.CreatedAt), ExpiresAt: millisPtr(t.ExpiresAt), RevokedAt: millisPtr(t.RevokedAt), LastUsedAt: millisPtr(t.LastUsedAt),
	})
}

// TokenByHash returns a token, also an expired or revoked one, which the caller
// must check. ErrNotFound when unknown.
func (tx *Tx) TokenByHash(ctx context.Context, hash [32]byte) (*Token, error) {
	var r tokenRow
	if err := tx.selectFrom(&r).Where("hash = ?", hash[:]).Scan(tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	t := r.token()
	return &t, nil
}

// Token returns a token by its id; ErrNotFound when unknown.
func (tx *Tx) Token(ctx context.Context, id string) (*Token, error) {
	var r tokenRow
	if err := tx.selectFrom(&r).Where("id = ?", id).Scan(tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	t := r.token()
	return &t, nil
}

// ListTokens returns the tokens that are for one profile only, newest first.
func (tx *Tx) ListTokens(ctx context.Context, handle string) ([]Token, error) {
	var rows []tokenRow
	err := tx.selectFrom(&rows).Where("handle = ?", handle).Order("id DESC").Limit(1000).Scan(tx.in(ctx))
	return convert(rows, tokenRow.token), err
}

// AccountTokens returns the tokens of an account, newest first.
func (tx *Tx) AccountTokens(ctx context.Context, account string, limit int, after string) (protocol.Page[Token], error) {
	limit = bounded(limit)
	const listing = "tokens"
	before, err := idPosition(listing, after)
	if err != nil {
		return protocol.Page[Token]{}, err
	}
	var rows []tokenRow
	err = tx.selectFrom(&rows).Where("account = ? AND id < ?", account, before).Order("id DESC").Limit(int64(limit + 1)).Scan(tx.in(ctx))
	return page(convert(rows, tokenRow.token), limit, listing, func(t Token) string { return t.ID }), err
}

// CountTokens is the number of tokens of an account that are neither revoked nor
// expired. In a writing transaction a concurrent count of the same waits for its
// end, so that a limit is exact over all processes.
func (tx *Tx) CountTokens(ctx context.Context, account string) (n int, err error) {
	if tx.batch != nil {
		if err := tx.lockName(ctx, "tokens "+account); err != nil {
			return 0, err
		}
	}
	err = tx.row(ctx, `SELECT count(*) FROM api_token WHERE account = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, account,
		millis(tx.Now)).Scan(&n)
	return n, err
}

// RevokeToken ends a token now; ErrNotFound when unknown.
func (tx *Tx) RevokeToken(ctx context.Context, id string) error {
	return one(tx.write(ctx, `UPDATE api_token SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?`, millis(tx.Now), id))
}

// TouchToken records that a token was used now; ErrNotFound when unknown.
func (tx *Tx) TouchToken(ctx context.Context, id string) error {
	return one(tx.write(ctx, `UPDATE api_token SET last_used_at = ? WHERE id = ?`, millis(tx.Now), id))
}

const endedTokens = `COALESCE(revoked_at, expires_at) < ? ORDER BY COALESCE(revoked_at, expires_at) LIMIT 1000`

// PruneTokens deletes tokens that were revoked or expired before a time, at most a
// thousand per call, and returns how many.
func (tx *Tx) PruneTokens(ctx context.Context, before time.Time) (int, error) {
	return tx.deleteSome(ctx, "api_token", "id", endedTokens, millis(before))
}
