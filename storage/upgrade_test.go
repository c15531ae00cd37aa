package storage_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A program uses the tables of a newer one whose migrations only add, and what it writes keeps the rules.
func TestMigrate_NewerThatOnlyAdds(t *testing.T) {
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		storagetest.Unopened(t, c, func(exec func(string, ...any)) {
			exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`)
			exec(`CREATE TABLE later (id BIGINT)`)
			exec(`ALTER TABLE profile ADD COLUMN later TEXT NOT NULL DEFAULT ''`)
			exec(`ALTER TABLE post ADD COLUMN later INTEGER`)
		})
		in := must.Get(storage.Inspect(t.Context(), c, "a"))(t)
		require.Equal(t, int64(9999), in.Version)
		var log bytes.Buffer
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		db := must.Get(storage.Open(t.Context(), c))(t)
		require.Contains(t, log.String(), "a newer program has migrated the database, and this one can still use it")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}}))
		})
		require.NoError(t, db.Check(t.Context()))
		require.NoError(t, db.Close())
	})
}

// An old SQLite database is copied before it is migrated, once, and the copy is what it was. Copies of earlier migrations go.
func TestMigrate_Copies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := storage.Config{Path: filepath.Join(dir, "stoa.db")}
	before(t, c, unreleased(c))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stoa.db.before-7"), nil, 0o600))
	for range 2 {
		db := must.Get(storage.Open(t.Context(), c))(t)
		require.NoError(t, db.Close())
	}
	copies := must.Get(filepath.Glob(c.Path + ".*"))(t)
	require.Len(t, copies, 1, "%v", copies)
	info := must.Get(os.Stat(copies[0]))(t)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, int64(unreleased(c)), tablesOf(t, copies[0]))

	none := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db"), NoCopy: true}
	before(t, none, unreleased(none))
	storagetest.OpenConfig(t, none)
	copies = must.Get(filepath.Glob(none.Path + ".before*"))(t)
	require.Empty(t, copies)
}

// Where no copy can be made nothing is migrated, and the error says what to do.
func TestMigrate_NoCopy(t *testing.T) {
	t.Parallel()
	c := storage.Config{Path: filepath.Join(t.TempDir(), "stoa.db")}
	before(t, c, unreleased(c))
	require.NoError(t, os.MkdirAll(fmt.Sprintf("%s.before-%d/in/the/way", c.Path, newestMigration(t)), 0o700))
	require.ErrorContains(t, must.Err(storage.Open(t.Context(), c)), "make room beside it, or set no-migration-copy")
	require.Equal(t, int64(unreleased(c)), tablesOf(t, c.Path))
	require.Empty(t, must.Get(filepath.Glob(c.Path+".*.part-*"))(t))
}

// Databases that earlier releases left are opened: no row is lost, everything is as the rules say, and they are written on.
func TestMigrate_KeptReleases(t *testing.T) {
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		files := must.Get(filepath.Glob(map[bool]string{true: "testdata/kept/*.db.gz", false: "testdata/kept/*.sql.gz"}[c.Path != ""]))(t)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				driver, source := "sqlite", filepath.Join(t.TempDir(), "stoa.db")
				if c.URL == "" {
					require.NoError(t, os.WriteFile(source, unpacked(t, file), 0o600))
					c.Path = source
				} else {
					driver, source = "pgx", storagetest.EmptyPostgresURL(t)
					dumped(t, source, string(unpacked(t, file)))
					c.URL = source
				}
				before := rowsOf(t, driver, source)
				require.Greater(t, before["post"], int64(10))
				db := must.Get(storage.Open(t.Context(), c))(t)
				require.NoError(t, db.Check(t.Context()))
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "later", Name: "Later", Kind: protocol.Person}}))
				})
				require.NoError(t, db.Close())
				for table, n := range rowsOf(t, driver, source) {
					if was, there := before[table]; there && !grows[table] {
						require.GreaterOrEqual(t, n, was, table)
					}
				}
			})
		}
	})
}

// grows are tables whose rows come and go by themselves.
var grows = map[string]bool{"post_fresh": true, "job": true, "lease": true}

func unpacked(t *testing.T, file string) []byte {
	t.Helper()
	f := must.Get(os.Open(file))(t)
	defer f.Close()
	r := must.Get(gzip.NewReader(f))(t)
	return must.Get(io.ReadAll(r))(t)
}

// dumped runs the statements of a dump on a PostgreSQL database, in a session of their own.
func dumped(t *testing.T, address, statements string) {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), address))(t)
	_, err := conn.PgConn().Exec(t.Context(), statements+";RESET ALL").ReadAll() // a pooler keeps what a session sets, such as its search_path
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// rowsOf counts the rows of each table.
func rowsOf(t *testing.T, driver, source string) map[string]int64 {
	t.Helper()
	db := must.Get(sql.Open(driver, source))(t)
	defer func() { require.NoError(t, db.Close()) }()
	names := `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
	if driver == "sqlite" {
		names = `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
			AND name NOT LIKE '%~_data' ESCAPE '~' AND name NOT LIKE '%~_idx' ESCAPE '~' AND name NOT LIKE '%~_docsize' ESCAPE '~'`
	}
	rows := must.Get(db.Query(names))(t)
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Close())
	counts := map[string]int64{}
	for _, name := range tables {
		var n int64
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM "`+name+`"`).Scan(&n))
		counts[name] = n
	}
	return counts
}

func newestMigration(t *testing.T) (newest int64) {
	for number := range migrationFiles(t, "sqlite") {
		newest = max(newest, number)
	}
	return newest
}

// migrationFiles are the texts of the migrations by their numbers.
func migrationFiles(t *testing.T, engine string) map[int64]string {
	t.Helper()
	dir := must.Get(storage.Migrations(engine))(t)
	names := must.Get(fs.ReadDir(dir, "."))(t)
	all := map[int64]string{}
	for _, n := range names {
		number := must.Get(strconv.ParseInt(n.Name()[:4], 10, 64))(t)
		raw := must.Get(fs.ReadFile(dir, n.Name()))(t)
		all[number] = string(raw)
	}
	return all
}

func tablesOf(t *testing.T, path string) (version int64) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+path+"?mode=ro"))(t)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRow(`SELECT max(version_id) FROM goose_db_version`).Scan(&version))
	return version
}

// takesAway finds statements that an older program does not bear.
var takesAway = regexp.MustCompile(`(?i)\bDROP (TABLE|COLUMN)|\bRENAME\b|\bALTER COLUMN\b|\bADD CONSTRAINT\b|` +
	`\bCREATE UNIQUE INDEX\b|\bCREATE (CONSTRAINT )?TRIGGER\b`)

// From this version on a migration only adds, or says since when programs bear it. A table that the same file makes may be anything.
func TestMigrate_OnlyAdds(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		for number, text := range migrationFiles(t, engine) {
			if number <= 236 || strings.Contains(text, "UPDATE compatible SET since = "+strconv.FormatInt(number, 10)) {
				continue
			}
			for statement := range strings.SplitSeq(text, ";") {
				made := regexp.MustCompile(`(?i)\bON (\w+)`).FindStringSubmatch(statement)
				own := made != nil && strings.Contains(text, "CREATE TABLE "+made[1]+" ")
				require.False(t, takesAway.MatchString(statement) && !own, "%s/%04d:%s\nAdd only, or write: UPDATE compatible SET since = %d",
					engine, number, statement, number)
				if add := strings.ToUpper(statement); strings.Contains(add, "ADD COLUMN") && strings.Contains(add, "NOT NULL") {
					require.Contains(t, add, "DEFAULT", "%s/%04d:%s", engine, number, statement)
				}
			}
		}
	}
}

// A trial migrates a copy, checks it, says what it did, and leaves the database and its folder as they were.
func TestTryMigration(t *testing.T) {
	storagetest.SkipPooled(t) // it is refused there, see TestPooler
	eachEmpty(t, func(t *testing.T, c storage.Config) {
		before(t, c, unreleased(c))
		m := must.Get(storage.TryMigration(t.Context(), c))(t)
		require.Equal(t, int64(unreleased(c)), m.From)
		require.Equal(t, newestMigration(t), m.To)
		require.Len(t, m.Steps, len(migrationFiles(t, "sqlite"))-1)
		require.Positive(t, m.Took)
		require.Equal(t, m.From, must.Get(storage.TryMigration(t.Context(), c))(t).From, "the database was changed")
		if c.Path != "" {
			left := must.Get(os.ReadDir(filepath.Dir(c.Path)))(t)
			require.Len(t, left, 1, "%v", left)
		}
	})
}
