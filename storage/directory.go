package storage

import (
	"context"
	"time"
)

// A KeyDirectory is a verified key directory of another host.
type KeyDirectory struct {
	Name      string // its URL or other name
	Keys      []byte // JWK Set
	FetchedAt time.Time
	ExpiresAt time.Time
}

var keyDirectoryTable = tableOf[KeyDirectory]("key_directory")

// PutDirectory stores a directory, replacing the previous one.
func (ks Keys) PutDirectory(ctx context.Context, d KeyDirectory) error {
	return keyDirectoryTable.put(ctx, ks.tx, &d, "name")
}

// Directories returns every stored directory.
func (ks Keys) Directories(ctx context.Context) ([]KeyDirectory, error) {
	return list[KeyDirectory](ctx, ks.tx, keyDirectoryTable.from+`ORDER BY name`)
}

// DeleteDirectory removes a directory; an unknown name is no error.
func (ks Keys) DeleteDirectory(ctx context.Context, name string) error {
	return ks.tx.exec(ctx, `DELETE FROM key_directory WHERE name = ?`, name)
}
