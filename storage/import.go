package storage

import (
	"context"
	"fmt"
	"time"
)

// An import of an archive is many short transactions, so that other writes go on.
// What it has come to stands here: the archive itself in pieces, what was decided
// about it before the first of it was stored, and how far it is. So another
// process, or this one when it is started again, finishes what was left.

// An ImportState says how far an import is.
type ImportState string

const (
	ImportStaging ImportState = "staging" // nothing of it is stored; when it is left, it is forgotten
	ImportRunning ImportState = "running" // its profile is here; when it is left, it is finished
	ImportDone    ImportState = "done"    // all of it is here
)

// An Import is one import of an archive into a profile.
type Import struct {
	ID, Handle string
	State      ImportState
	Holder     string    // who is at it
	At         time.Time // when its holder last was
	Done       int       // records stored of those that come after the profile
	Ruling     []byte    // JSON: what was decided about it, written once
	Report     []byte    // JSON: what it has come to
}

// BeginImport notes an import that is being staged.
func (tx *Tx) BeginImport(ctx context.Context, id, handle, holder string) error {
	_, err := tx.write(ctx, `INSERT INTO archive_import (id, handle, state, holder, at, done, ruling, report) VALUES (?, ?, 'staging', ?, ?, 0, ?, ?)`,
		id, handle, holder, millis(tx.Now), []byte{}, []byte{})
	return err
}

// AddPiece keeps the next bytes of the archive of a staged import. ErrNotFound
// when the import was forgotten meanwhile.
func (tx *Tx) AddPiece(ctx context.Context, id string, n int, bytes []byte) error {
	if err := one(tx.write(ctx, `UPDATE archive_import SET at = ? WHERE id = ? AND state = 'staging'`, millis(tx.Now), id)); err != nil {
		return err
	}
	_, err := tx.write(ctx, `INSERT INTO archive_piece (import_id, n, bytes) VALUES (?, ?, ?)`, id, n, bytes)
	return err
}

// Piece is the n-th piece of an archive, from 0; ErrNotFound behind the last.
func (tx *Tx) Piece(ctx context.Context, id string, n int) (bytes []byte, err error) {
	err = tx.row(ctx, `SELECT bytes FROM archive_piece WHERE import_id = ? AND n = ?`, id, n).Scan(&bytes)
	return bytes, err
}

// ImportByID returns an import; ErrNotFound when there is none. In a writing
// transaction its row is locked.
func (tx *Tx) ImportByID(ctx context.Context, id string) (*Import, error) {
	query := `SELECT id, handle, state, holder, at, done, ruling, report FROM archive_import WHERE id = ?`
	if tx.batch != nil {
		if err := tx.dirty(); err != nil {
			return nil, err
		}
		query += tx.db.engine.forUpdate()
	}
	var im Import
	var at int64
	if err := tx.row(ctx, query, id).Scan(&im.ID, &im.Handle, &im.State, &im.Holder, &at, &im.Done, &im.Ruling, &im.Report); err != nil {
		return nil, err
	}
	im.At = moment(at)
	return &im, nil
}

// SaveImport stores what may change of an import and sets its time to now.
func (tx *Tx) SaveImport(ctx context.Context, im *Import) error {
	im.At = tx.Now
	return one(tx.write(ctx, `UPDATE archive_import SET state = ?, holder = ?, at = ?, done = ?, ruling = ?, report = ? WHERE id = ?`,
		string(im.State), im.Holder, millis(im.At), im.Done, im.Ruling, im.Report, im.ID))
}

// ImportRuns reports whether something is being imported into a profile. In a
// writing transaction no other begins before its end.
func (tx *Tx) ImportRuns(ctx context.Context, handle string) (bool, error) {
	if tx.batch != nil {
		if err := tx.lockName(ctx, "import "+handle); err != nil {
			return false, err
		}
	}
	var n int
	err := tx.row(ctx, `SELECT count(*) FROM archive_import WHERE handle = ? AND state = 'running'`, handle).Scan(&n)
	return n > 0, err
}

// piecesAtOnce is how many pieces one transaction takes away.
const piecesAtOnce = 8

// DropPieces takes some pieces of an archive away, unless its import runs, and
// returns how many; 0 when none is left.
func (tx *Tx) DropPieces(ctx context.Context, id string) (int, error) {
	n, err := tx.write(ctx, `DELETE FROM archive_piece WHERE import_id = ? AND n IN
		(SELECT n FROM archive_piece WHERE import_id = ? ORDER BY n DESC LIMIT ?)
		AND NOT EXISTS (SELECT 1 FROM archive_import WHERE id = ? AND state = 'running')`, id, id, piecesAtOnce, id)
	return int(n), err
}

// DropImport forgets an import whose pieces are gone, unless it runs.
func (tx *Tx) DropImport(ctx context.Context, id string) error {
	_, err := tx.write(ctx, `DELETE FROM archive_import WHERE id = ? AND state <> 'running'`, id)
	return err
}

// PruneImports deletes imports that nobody has been at since a time and that are not
// to be finished, and their pieces first; a bit of it a call. The row is locked, so
// that AddPiece adds no piece to an import that is deleted.
func (tx *Tx) PruneImports(ctx context.Context, before time.Time) (int, error) {
	if err := tx.dirty(); err != nil {
		return 0, err
	}
	var id string
	err := tx.row(ctx, idleImport+tx.db.engine.forUpdate(), millis(before)).Scan(&id)
	if err == ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := tx.DropPieces(ctx, id)
	if err != nil || n > 0 {
		return n, err
	}
	if err := tx.DropImport(ctx, id); err != nil {
		return 0, fmt.Errorf("forget import %s: %w", id, err)
	}
	return 1, nil
}

const idleImport = `SELECT id FROM archive_import WHERE state <> 'running' AND at < ? ORDER BY at LIMIT 1`
