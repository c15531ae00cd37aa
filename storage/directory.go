package storage

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// A KeyDirectory is a verified key directory of another host.
type KeyDirectory struct {
	Name      string // its URL or other name
	Keys      []byte // JWK Set
	FetchedAt time.Time
	ExpiresAt time.Time
}

type keyDirectoryRow struct {
	bun.BaseModel `bun:"table:key_directory"`
	Name          string `bun:",pk"`
	Keys          []byte `bun:",notnull"`
	FetchedAt     int64
	ExpiresAt     int64
}

// PutKeyDirectory stores a directory, replacing the previous one.
func (tx *Tx) PutKeyDirectory(ctx context.Context, d KeyDirectory) error {
	return tx.put(ctx, &keyDirectoryRow{Name: d.Name, Keys: append([]byte{}, d.Keys...), FetchedAt: millis(d.FetchedAt), ExpiresAt: millis(d.ExpiresAt)},
		"name", "keys", "fetched_at", "expires_at")
}

// KeyDirectories returns every stored directory.
func (tx *Tx) KeyDirectories(ctx context.Context) ([]KeyDirectory, error) {
	var rows []keyDirectoryRow
	if err := tx.selectFrom(&rows).Order("name").Scan(tx.in(ctx)); err != nil {
		return nil, err
	}
	all := make([]KeyDirectory, 0, len(rows))
	for _, r := range rows {
		all = append(all, KeyDirectory{Name: r.Name, Keys: r.Keys, FetchedAt: moment(r.FetchedAt), ExpiresAt: moment(r.ExpiresAt)})
	}
	return all, nil
}

// DeleteKeyDirectory removes a directory; an unknown name is no error.
func (tx *Tx) DeleteKeyDirectory(ctx context.Context, name string) error {
	_, err := tx.write(ctx, `DELETE FROM key_directory WHERE name = ?`, name)
	return err
}
