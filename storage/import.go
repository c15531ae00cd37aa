package storage

import (
	"context"
	"fmt"
	"time"
)

// An import of an archive is many short transactions, so that other writes are not
// delayed. Its state is stored here: the archive itself in pieces, the decisions
// that were made before the first record was stored, and its progress. So another
// process, or this one after a restart, can finish it.

// An ImportState is the phase of an import.
type ImportState string

const (
	ImportStaging ImportState = "staging" // none of its records is stored; when abandoned, it is deleted
	ImportRunning ImportState = "running" // its profile is stored; when abandoned, it is resumed
	ImportDone    ImportState = "done"    // all of it is stored
)

// An Import is one import of an archive into a profile.
type Import struct {
	ID, Handle string
	State      ImportState
	Holder     string    // the process that runs it
	At         time.Time // when its holder last reported
	Done       int       // number of stored records after the profile
	Ruling     []byte    // JSON: the decisions about it, written once
	Report     []byte    // JSON: its results so far
}

var importTable = tableOf[Import]("archive_import")

// Imports reads and writes imports of archives, and the pieces of the archives.
type Imports struct{ tx *Tx }

func (tx *Tx) Imports() Imports { return Imports{tx} }

// Begin stores an import that is being staged.
func (is Imports) Begin(ctx context.Context, id, handle, holder string) error {
	return importTable.insert(ctx, is.tx, &Import{ID: id, Handle: handle, State: ImportStaging, Holder: holder, At: is.tx.Now})
}

// AddPiece stores the next bytes of the archive of a staged import. ErrNotFound
// when the import was deleted meanwhile.
func (is Imports) AddPiece(ctx context.Context, id string, n int, bytes []byte) error {
	if err := one(is.tx.write(ctx, `UPDATE archive_import SET at = ? WHERE id = ? AND state = 'staging'`, millis(is.tx.Now), id)); err != nil {
		return err
	}
	return is.tx.exec(ctx, `INSERT INTO archive_piece (import_id, n, bytes) VALUES (?, ?, ?)`, id, n, bytes)
}

// Piece is the n-th piece of an archive, from 0; ErrNotFound after the last.
func (is Imports) Piece(ctx context.Context, id string, n int) ([]byte, error) {
	return find[[]byte](ctx, is.tx, `SELECT bytes FROM archive_piece WHERE import_id = ? AND n = ?`, id, n)
}

// ByID returns an import; ErrNotFound when there is none. In a writing
// transaction its row is locked.
func (is Imports) ByID(ctx context.Context, id string) (*Import, error) {
	return orNil(findLocked[Import](ctx, is.tx, importTable.from+`WHERE id = ?`, id))
}

// Save stores the mutable fields of an import and sets its time to now.
func (is Imports) Save(ctx context.Context, im *Import) error {
	im.At = is.tx.Now
	return importTable.update(ctx, is.tx, im, "id", "state", "holder", "at", "done", "ruling", "report")
}

// Running reports whether an import into a profile is running. In a writing
// transaction no other import begins before its end.
func (is Imports) Running(ctx context.Context, handle string) (bool, error) {
	if is.tx.writes() {
		if err := is.tx.lockName(ctx, "import "+handle); err != nil {
			return false, err
		}
	}
	var n int
	err := is.tx.row(ctx, `SELECT count(*) FROM archive_import WHERE handle = ? AND state = 'running'`, handle).Scan(&n)
	return n > 0, err
}

// piecesAtOnce is how many pieces one transaction deletes.
const piecesAtOnce = 8

// DropPieces deletes some pieces of an archive, unless its import runs, and returns
// how many; 0 when none is left.
func (is Imports) DropPieces(ctx context.Context, id string) (int, error) {
	n, err := is.tx.write(ctx, `DELETE FROM archive_piece WHERE import_id = ? AND n IN
		(SELECT n FROM archive_piece WHERE import_id = ? ORDER BY n DESC LIMIT ?)
		AND NOT EXISTS (SELECT 1 FROM archive_import WHERE id = ? AND state = 'running')`, id, id, piecesAtOnce, id)
	return int(n), err
}

// Drop deletes an import whose pieces are deleted, unless it runs.
func (is Imports) Drop(ctx context.Context, id string) error {
	return is.tx.exec(ctx, `DELETE FROM archive_import WHERE id = ? AND state <> 'running'`, id)
}

// Prune deletes imports that have been inactive since a time and are not to be
// resumed, their pieces first, a part per call. The row is locked, so that
// AddPiece adds no piece to an import that is deleted.
func (is Imports) Prune(ctx context.Context, before time.Time) (int, error) {
	if err := is.tx.dirty(); err != nil {
		return 0, err
	}
	id, err := find[string](ctx, is.tx, idleImport+is.tx.db.engine.ForUpdate(), millis(before))
	if err != nil {
		return 0, orNothing(err)
	}
	n, err := is.DropPieces(ctx, id)
	if err != nil || n > 0 {
		return n, err
	}
	if err := is.Drop(ctx, id); err != nil {
		return 0, fmt.Errorf("forget import %s: %w", id, err)
	}
	return 1, nil
}

const idleImport = `SELECT id FROM archive_import WHERE state <> 'running' AND at < ? ORDER BY at LIMIT 1`
