// Package storagetest gives tests fresh databases: SQLite always, PostgreSQL
// where a cluster is named. It starts no server.
package storagetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"stoa/storage"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// PostgresEnv names the environment variable with the postgres:// URL of a
// cluster in which tests may make and drop databases.
const PostgresEnv = "STOA_TEST_POSTGRES"

// Open returns a fresh, migrated SQLite database that is closed with the test.
func Open(t testing.TB) *storage.DB { return OpenConfig(t, storage.Config{}) }

// OpenConfig is Open with a clock, a log or a queue length. A path that is set
// stays; otherwise the file lies in the test's directory.
func OpenConfig(t testing.TB, c storage.Config) *storage.DB {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "stoa.db")
		file, err := template()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, c)
}

// template migrates once a process and keeps the bytes of the file.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stoa-template")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stoa.db")
	db, err := storage.Open(context.Background(), storage.Config{Path: path})
	if err != nil {
		return nil, err
	}
	// The last connection to close moves the write-ahead log into the file.
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func open(t testing.TB, c storage.Config) *storage.DB {
	t.Helper()
	db, err := storage.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Each runs fn on a fresh SQLite database and, where STOA_TEST_POSTGRES is set,
// on a fresh PostgreSQL database.
func Each(t *testing.T, fn func(t *testing.T, db *storage.DB)) {
	EachConfig(t, func(t *testing.T, c storage.Config) { fn(t, open(t, c)) })
}

// EachConfig is Each for tests that open the database themselves, or twice.
func EachConfig(t *testing.T, fn func(t *testing.T, c storage.Config)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file, err := template()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "stoa.db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		fn(t, storage.Config{Path: path})
	})
	if os.Getenv(PostgresEnv) == "" {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, storage.Config{URL: PostgresURL(t)})
	})
}

// PostgresURL makes an empty database in the cluster of STOA_TEST_POSTGRES,
// drops it with the test, and returns its address.
func PostgresURL(t testing.TB) string {
	t.Helper()
	cluster := os.Getenv(PostgresEnv)
	u, err := url.Parse(cluster)
	if err != nil || cluster == "" {
		t.Fatalf("%s is not a postgres:// URL", PostgresEnv)
	}
	admin, err := sql.Open("pgx", cluster)
	if err != nil {
		t.Fatal(err)
	}
	var random [8]byte
	rand.Read(random[:])
	name := "stoa_test_" + hex.EncodeToString(random[:])
	if _, err := admin.Exec(`CREATE DATABASE ` + name + ` ENCODING 'UTF8' TEMPLATE template0`); err != nil {
		admin.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer admin.Close()
		if _, err := admin.Exec(`DROP DATABASE IF EXISTS ` + name + ` WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}
