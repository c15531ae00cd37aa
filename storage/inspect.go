package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"
)

// An Inspection is what a database is, before a program opens it to serve.
type Inspection struct {
	There   bool   // it has tables of a node
	Version int64  // of its tables
	Newest  int64  // that this program knows
	Base    string // public address of the node that it belongs to, "" for none yet
	Posts   bool   // posts are in it, so that the address stays
	Sealed  []byte // the sealed secret of that name, nil where there is none
}

// Inspect reads what a database is and changes nothing, neither in it nor beside its file. The error of a version that this program does not serve is
// [ErrNewer] or [ErrOlder], of what a move has left or not ended [ErrMoved] or [ErrMoving].
func Inspect(ctx context.Context, c Config, secret string) (in Inspection, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	driver, source, engine := "pgx", c.URL, enginePostgres
	if c.Path != "" {
		if _, err := os.Stat(c.Path); errors.Is(err, os.ErrNotExist) {
			return in, nil
		}
		driver, engine = "sqlite", engineSQLite
		source = "file:" + (&url.URL{Path: c.Path}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)"
		if _, err := os.Stat(c.Path + "-wal"); errors.Is(err, os.ErrNotExist) {
			source += "&immutable=1" // no process has it open: nothing is read beside it, and no file is made
		}
	}
	if in.Newest, err = lastMigration(engine); err != nil {
		return in, err
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return in, err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return in, err
	}
	defer tx.Rollback()
	if err := in.read(ctx, tx, engine, secret); err != nil || !in.There {
		return in, err
	}
	switch {
	case in.Version > in.Newest:
		err = serves(ctx, tx, in.Version, in.Newest)
	case in.Version < first && in.Version != unreleased[engine]:
		err = fmt.Errorf("%w: its tables have version %d", ErrOlder, in.Version)
	}
	return in, err
}

func (in *Inspection) read(ctx context.Context, tx *sql.Tx, e engine, secret string) error {
	tables := `SELECT count(*) > 0 FROM sqlite_master WHERE name = 'goose_db_version'`
	if e == enginePostgres {
		var encoding string
		if err := tx.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
			return err
		}
		if encoding != "UTF8" {
			return fmt.Errorf("its encoding is %s; make it with ENCODING 'UTF8'", encoding)
		}
		tables = `SELECT to_regclass('goose_db_version') IS NOT NULL`
	}
	if err := tx.QueryRowContext(ctx, tables).Scan(&in.There); err != nil || !in.There {
		return err
	}
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(max(version_id), 0) FROM goose_db_version`).Scan(&in.Version); err != nil || in.Version == 0 {
		in.There = false
		return err
	}
	mark := "$1"
	if e == engineSQLite {
		mark = "?"
	}
	var base, moved, moving []byte
	for name, into := range map[string]*[]byte{settingPrefix + "base": &base, secret: &in.Sealed,
		settingPrefix + movedSetting: &moved, settingPrefix + movingSetting: &moving} {
		err := tx.QueryRowContext(ctx, `SELECT value FROM secret WHERE name = `+mark, name).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	in.Base = string(base)
	if len(moved) > 0 {
		return ErrMoved
	}
	if len(moving) > 0 {
		return ErrMoving
	}
	return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM post)`).Scan(&in.Posts)
}

// lastMigration is the last version of the tables.
func lastMigration(e engine) (last int64, err error) {
	files, err := Migrations(string(e))
	if err != nil {
		return 0, err
	}
	for name := range files.(sqlFiles) {
		last = max(last, migrationNumber(name))
	}
	return last, nil
}
