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

// Tokens reads and writes the tokens of accounts and profiles.
type Tokens struct{ tx *Tx }

func (tx *Tx) Tokens() Tokens { return Tokens{tx} }

// Insert stores a token. A zero CreatedAt means now. ErrExists when its id or hash
// is taken.
func (ts Tokens) Insert(ctx context.Context, t Token) error {
	if t.CreatedAt.IsZero() {
		t.CreatedAt = ts.tx.Now
	}
	scopes, err := json.Marshal(append([]string{}, t.Scopes...))
	if err != nil {
		return fmt.Errorf("encode scopes: %w", err)
	}
	return ts.tx.insert(ctx, &tokenRow{
		ID: t.ID, Hash: t.Hash[:], Account: t.Account, Handle: t.Handle, Name: t.Name, Scopes: string(scopes),
		CreatedAt: millis(t.CreatedAt), ExpiresAt: millisPtr(t.ExpiresAt), RevokedAt: millisPtr(t.RevokedAt), LastUsedAt: millisPtr(t.LastUsedAt),
	})
}

// ByHash returns a token, also an expired or revoked one, which the caller must
// check. ErrNotFound when unknown.
func (ts Tokens) ByHash(ctx context.Context, hash [32]byte) (*Token, error) {
	var r tokenRow
	if err := ts.tx.selectFrom(&r).Where("hash = ?", hash[:]).Scan(ts.tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	t := r.token()
	return &t, nil
}

// ByID returns a token by its id; ErrNotFound when unknown.
func (ts Tokens) ByID(ctx context.Context, id string) (*Token, error) {
	var r tokenRow
	if err := ts.tx.selectFrom(&r).Where("id = ?", id).Scan(ts.tx.in(ctx)); err != nil {
		return nil, found(err)
	}
	t := r.token()
	return &t, nil
}

// OfProfile returns the tokens that are for one profile only, newest first.
func (ts Tokens) OfProfile(ctx context.Context, handle string) ([]Token, error) {
	var rows []tokenRow
	err := ts.tx.selectFrom(&rows).Where("handle = ?", handle).Order("id DESC").Limit(1000).Scan(ts.tx.in(ctx))
	return convert(rows, tokenRow.token), err
}

// OfAccount returns the tokens of an account, newest first.
func (ts Tokens) OfAccount(ctx context.Context, account string, limit int, after string) (protocol.Page[Token], error) {
	limit = bounded(limit)
	const listing = "tokens"
	before, err := idPosition(listing, after)
	if err != nil {
		return protocol.Page[Token]{}, err
	}
	var rows []tokenRow
	err = ts.tx.selectFrom(&rows).Where("account = ? AND id < ?", account, before).Order("id DESC").Limit(int64(limit + 1)).Scan(ts.tx.in(ctx))
	return page(convert(rows, tokenRow.token), limit, listing, func(t Token) string { return t.ID }), err
}

// Count is the number of tokens of an account that are neither revoked nor
// expired. In a writing transaction a concurrent count of the same waits for its
// end, so that a limit is exact over all processes.
func (ts Tokens) Count(ctx context.Context, account string) (n int, err error) {
	if ts.tx.writes() {
		if err := ts.tx.lockName(ctx, "tokens "+account); err != nil {
			return 0, err
		}
	}
	err = ts.tx.row(ctx, `SELECT count(*) FROM api_token WHERE account = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, account,
		millis(ts.tx.Now)).Scan(&n)
	return n, err
}

// Revoke ends a token now; ErrNotFound when unknown.
func (ts Tokens) Revoke(ctx context.Context, id string) error {
	return one(ts.tx.write(ctx, `UPDATE api_token SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?`, millis(ts.tx.Now), id))
}

// Touch records that a token was used now; ErrNotFound when unknown.
func (ts Tokens) Touch(ctx context.Context, id string) error {
	return one(ts.tx.writeAside(ctx, `UPDATE api_token SET last_used_at = ? WHERE id = ?`, millis(ts.tx.Now), id))
}

const endedTokens = `COALESCE(revoked_at, expires_at) < ? ORDER BY COALESCE(revoked_at, expires_at) LIMIT 1000`

// Prune deletes tokens that were revoked or expired before a time, at most a
// thousand per call, and returns how many.
func (ts Tokens) Prune(ctx context.Context, before time.Time) (int, error) {
	return ts.tx.deleteSome(ctx, "api_token", "id", endedTokens, millis(before))
}
