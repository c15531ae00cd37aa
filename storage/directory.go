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

// PutDirectory stores a directory, replacing the previous one.
func (ks Keys) PutDirectory(ctx context.Context, d KeyDirectory) error {
	return ks.tx.put(ctx, &keyDirectoryRow{Name: d.Name, Keys: append([]byte{}, d.Keys...), FetchedAt: millis(d.FetchedAt), ExpiresAt: millis(d.ExpiresAt)},
		"name", "keys", "fetched_at", "expires_at")
}

// Directories returns every stored directory.
func (ks Keys) Directories(ctx context.Context) ([]KeyDirectory, error) {
	var rows []keyDirectoryRow
	if err := ks.tx.selectFrom(&rows).Order("name").Scan(ks.tx.in(ctx)); err != nil {
		return nil, err
	}
	all := make([]KeyDirectory, 0, len(rows))
	for _, r := range rows {
		all = append(all, KeyDirectory{Name: r.Name, Keys: r.Keys, FetchedAt: moment(r.FetchedAt), ExpiresAt: moment(r.ExpiresAt)})
	}
	return all, nil
}

// DeleteDirectory removes a directory; an unknown name is no error.
func (ks Keys) DeleteDirectory(ctx context.Context, name string) error {
	_, err := ks.tx.write(ctx, `DELETE FROM key_directory WHERE name = ?`, name)
	return err
}
