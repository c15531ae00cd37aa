package storagetest

import (
	"context"
	"database/sql"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// Unopened makes a database with the tables of today, not opened by a node yet, and gives fill a
// function to run statements on it, with ? for arguments on both engines.
func Unopened(t testing.TB, c storage.Config, fill func(exec func(query string, args ...any))) {
	t.Helper()
	UnopenedAt(t, c, math.MaxInt64, fill)
}

// UnopenedAt is Unopened with the tables of an earlier version.
func UnopenedAt(t testing.TB, c storage.Config, version int64, fill func(exec func(query string, args ...any))) {
	t.Helper()
	driver, source, dialect, engine := "sqlite", c.Path, goose.DialectSQLite3, "sqlite"
	if c.URL != "" {
		driver, source, dialect, engine = "pgx", c.URL, goose.DialectPostgres, "postgres"
	} else {
		require.NoError(t, os.MkdirAll(filepath.Dir(c.Path), 0o700))
	}
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	dir, err := storage.Migrations(engine)
	require.NoError(t, err)
	provider, err := goose.NewProvider(dialect, db, dir, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	_, err = provider.UpTo(context.Background(), version)
	require.NoError(t, err)
	fill(func(query string, args ...any) {
		t.Helper()
		if engine == "postgres" {
			for n := 1; strings.Contains(query, "?"); n++ {
				query = strings.Replace(query, "?", "$"+strconv.Itoa(n), 1)
			}
		}
		_, err := db.Exec(query, args...)
		require.NoError(t, err, query)
	})
}
