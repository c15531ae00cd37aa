package storage

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"stoa/protocol"
)

// A Token allows an owner's program to write. Only the hash of its secret is
// stored.
type Token struct {
	ID                               string
	Hash                             [32]byte
	Account, Name                    string
	Handle                           string // the one profile it is for; "" for all of the account
	Scopes                           scopes // what it may do; none allows nothing that needs a scope
	CreatedAt                        time.Time
	ExpiresAt, RevokedAt, LastUsedAt *time.Time // nil: never

	// Of one that a program got by OAuth.
	Client     string     // the host that says who it is, "" for a program on the owner's computer, and for other tokens
	Resource   string     // address at which it is good, "" for everywhere
	Code       *string    // names the code that it came from
	Generation int64      // how many secrets came before this one
	LapsesAt   *time.Time // when its secret ends, before the next one
}

// scopes are stored as JSON. Of what cannot be read there is none rather than a wrong one.
type scopes []string

func (s *scopes) Scan(from any) error {
	if json.Unmarshal(fmt.Appendf(nil, "%s", from), (*[]string)(s)) != nil {
		*s = nil
	}
	return nil
}

func (s scopes) Value() (driver.Value, error) {
	raw, err := json.Marshal(append([]string{}, s...))
	return string(raw), err
}

var tokenTable = tableOf[Token]("api_token")

// Tokens reads and writes the tokens of accounts and profiles.
type Tokens struct{ tx *Tx }

func (tx *Tx) Tokens() Tokens { return Tokens{tx} }

// Insert stores a token. A zero CreatedAt means now. ErrExists when its id or hash
// is taken.
func (ts Tokens) Insert(ctx context.Context, t Token) error {
	if t.CreatedAt.IsZero() {
		t.CreatedAt = ts.tx.Now
	}
	return tokenTable.create(ctx, ts.tx, &t)
}

// ByHash returns a token, also an expired or revoked one, which the caller must
// check. ErrNotFound when unknown.
func (ts Tokens) ByHash(ctx context.Context, hash [32]byte) (*Token, error) {
	return orNil(find[Token](ctx, ts.tx, tokenTable.from+`WHERE hash = ?`, hash[:]))
}

// ByID returns a token by its id; ErrNotFound when unknown.
func (ts Tokens) ByID(ctx context.Context, id string) (*Token, error) {
	return orNil(find[Token](ctx, ts.tx, tokenTable.from+`WHERE id = ?`, id))
}

// ByCode returns the token that came from a code; ErrNotFound when none did.
func (ts Tokens) ByCode(ctx context.Context, code string) (*Token, error) {
	return orNil(find[Token](ctx, ts.tx, tokenTable.from+`WHERE code = ?`, code))
}

// Renew gives a token its next secret, if it has had so many before; ErrNotFound otherwise, so that of two at once one succeeds.
func (ts Tokens) Renew(ctx context.Context, id string, generation int64, hash [32]byte, lapses time.Time) error {
	return one(ts.tx.write(ctx, `UPDATE api_token SET hash = ?, generation = generation + 1, lapses_at = ? WHERE id = ? AND generation = ?`,
		hash[:], millis(lapses), id, generation))
}

// OfProfile returns the tokens that are for one profile only, newest first.
func (ts Tokens) OfProfile(ctx context.Context, handle string) ([]Token, error) {
	return list[Token](ctx, ts.tx, tokenTable.from+`WHERE handle = ? ORDER BY id DESC LIMIT 1000`, handle)
}

// OfAccount returns the tokens of an account, newest first.
func (ts Tokens) OfAccount(ctx context.Context, account string, limit int, after string) (protocol.Page[Token], error) {
	return newest[Token](ctx, ts.tx, "tokens", "id", limit, after, tokenTable.from+`WHERE account = ? AND id < ? ORDER BY id DESC LIMIT ?`, account)
}

// Count is the number of tokens of an account that are neither revoked nor
// expired. In a writing transaction a concurrent count of the same waits for its
// end, so that a limit is exact over all processes.
func (ts Tokens) Count(ctx context.Context, account string) (int, error) {
	if ts.tx.writes() {
		if err := ts.tx.lockName(ctx, "tokens "+account); err != nil {
			return 0, err
		}
	}
	return find[int](ctx, ts.tx, `SELECT count(*) FROM api_token WHERE account = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, account,
		millis(ts.tx.Now))
}

// CountFor is the number of tokens for one profile alone that are neither revoked nor expired.
func (ts Tokens) CountFor(ctx context.Context, handle string) (int, error) {
	return find[int](ctx, ts.tx, `SELECT count(*) FROM api_token WHERE handle = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, handle,
		millis(ts.tx.Now))
}

// Move gives the tokens for one profile alone to another account.
func (ts Tokens) Move(ctx context.Context, handle, account string) error {
	return ts.tx.exec(ctx, `UPDATE api_token SET account = ? WHERE handle = ?`, account, handle)
}

// Revoke ends a token now; ErrNotFound when unknown.
func (ts Tokens) Revoke(ctx context.Context, id string) error {
	return one(ts.tx.write(ctx, `UPDATE api_token SET revoked_at = COALESCE(revoked_at, ?) WHERE id = ?`, millis(ts.tx.Now), id))
}

// Rename gives a token of an account another name; ErrNotFound when it has none of that id.
func (ts Tokens) Rename(ctx context.Context, account, id, name string) error {
	return one(ts.tx.writeAside(ctx, `UPDATE api_token SET name = ? WHERE account = ? AND id = ?`, name, account, id))
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
