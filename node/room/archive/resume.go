package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// An import is saved in the database before anything of it is stored: the archive, and what was
// decided about it by asking others. The transaction that stores its profile also enqueues a job
// that finishes it. The process that works on an import is its holder and renews that with each
// transaction. When a holder has been silent for some seconds, any process may take the import
// over. Each transaction checks that it still holds the import, so that no two processes work on
// it at the same time.

const (
	silence   = 3 * time.Second // of a holder, until another process may take over
	turn      = time.Minute     // how long a job works on an import before it makes room for others
	pieceSize = 256 << 10
)

// stage saves the archive, and checks that it is the one that was inspected. It returns the id of
// the import.
func (im *importing) stage(ctx context.Context, f *os.File, holder string) (id string, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return id, err
	}
	if err := im.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) error {
		id = protocol.NewID(protocol.ImportID, tx.Now)
		return tx.Imports().Begin(ctx, id, im.handle, holder)
	}); err != nil {
		return id, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.deletePieces(ctx, id, true))
		}
	}()
	sum, piece := sha256.New(), make([]byte, pieceSize)
	for n := 0; ; n++ {
		size, err := io.ReadFull(f, piece)
		if size > 0 {
			sum.Write(piece[:size])
			if err := im.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Imports().AddPiece(ctx, id, n, piece[:size])
			}); err != nil {
				return id, err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return id, err
		}
	}
	if !bytes.Equal(sum.Sum(nil), im.sum) {
		return id, refused("the file changed while it was read")
	}
	return id, nil
}

// begin stores the profile and what belongs to it. After that the import will be finished, by this
// process or another.
func (im *importing) begin(ctx context.Context, id string) error {
	steps, err := im.readHead(ctx, &pieces{ctx: ctx, db: im.DB, id: id})
	if err != nil {
		return err
	}
	return im.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := im.storeHead(ctx, tx, steps); err != nil {
			return err
		}
		row, err := tx.Imports().ByID(ctx, id)
		if err != nil {
			return err
		}
		row.State = storage.ImportRunning
		if row.Ruling, err = im.encodeDecision(); err != nil {
			return err
		}
		if row.Report, err = json.Marshal(im.report); err != nil {
			return err
		}
		if err := tx.Imports().Save(ctx, row); err != nil {
			return err
		}
		if err := enqueueResume(id, tx.Now.Add(silence))(ctx, tx); err != nil {
			return err
		}
		return tx.Audit(ctx, im.By.Actor(), "archive import", im.handle, im.manifest.Node+" @"+im.manifest.Handle)
	})
}

func enqueueResume(id string, at time.Time) func(context.Context, *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error {
		return tx.Enqueue(ctx, storage.Job{Kind: storage.ImportJob, Lane: id, Args: []byte(`{"id":"` + id + `"}`), RunAt: at})
	}
}

// Resume is the job that finishes an interrupted import.
func (a *Archive) Resume(ctx context.Context, j storage.Job, args struct{ ID string }) (func(context.Context, *storage.Tx) error, error) {
	row, now := (*storage.Import)(nil), time.Time{}
	err := a.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		now = tx.Now
		row, err = tx.Imports().ByID(ctx, args.ID)
		return err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case row.State == storage.ImportDone:
		return nil, a.deletePieces(ctx, row.ID, false)
	case row.At.Add(silence).After(now):
		return enqueueResume(row.ID, row.At.Add(silence)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, turn)
	defer cancel()
	switch _, err := a.finish(ctx, row.ID, string(j.Kind)+" "+rand.Text(), nil); {
	case errors.Is(err, errGone):
		return nil, nil
	case ctx.Err() != nil, protocol.CodeOf(err) == protocol.Overloaded:
		return enqueueResume(row.ID, now.Add(silence)), nil
	default:
		return nil, err
	}
}

var (
	errGone  = protocol.Errorf(protocol.Conflict, "the profile was deleted while its archive was imported")
	errTaken = errors.New("archive: another process has taken the import over")
)

// finish works on a running import until it is done, or waits for its holder.
func (a *Archive) finish(ctx context.Context, id, holder string, progress Progress) (report protocol.ImportReport, err error) {
	for {
		var row *storage.Import
		err := a.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			row, err = tx.Imports().ByID(ctx, id)
			if err == nil && row.State == storage.ImportRunning && row.Holder != holder && !row.At.Add(silence).After(tx.Now) {
				row.Holder = holder
				err = tx.Imports().Save(ctx, row)
			}
			return err
		})
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return report, errGone
		case err != nil:
			return report, err
		case row.State == storage.ImportDone:
			_ = a.deletePieces(ctx, id, false) // what remains is deleted by the job or by pruning
			return report, json.Unmarshal(row.Report, &report)
		case row.Holder == holder:
			err = a.storeRest(ctx, row, progress)
		default:
			err = errTaken
		}
		if err != nil && !errors.Is(err, errTaken) {
			return report, err
		}
		if err != nil {
			select {
			case <-ctx.Done():
				return report, ctx.Err()
			case <-time.After(silence / 10):
			}
		}
	}
}

// storeRest stores the remaining records of an import, in steps.
func (a *Archive) storeRest(ctx context.Context, row *storage.Import, progress Progress) error {
	im, err := a.fromDecision(row)
	if err != nil {
		return err
	}
	im.Progress = progress
	held := func(do func(ctx context.Context, tx *storage.Tx, row *storage.Import) error) error {
		return a.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) error {
			now, err := tx.Imports().ByID(ctx, row.ID)
			switch {
			case errors.Is(err, storage.ErrNotFound):
				return errGone
			case err != nil:
				return err
			case now.Holder != row.Holder || now.State != storage.ImportRunning:
				return errTaken
			}
			if err := do(ctx, tx, now); err != nil {
				return err
			}
			return tx.Imports().Save(ctx, now)
		})
	}
	err = im.readRest(ctx, &pieces{ctx: ctx, db: a.DB, id: row.ID}, row.Done, func(steps []step) error {
		for len(steps) > 0 {
			n := 0
			if err := held(func(ctx context.Context, tx *storage.Tx, now *storage.Import) (err error) {
				im.report = protocol.ImportReport{}
				if err := json.Unmarshal(now.Report, &im.report); err != nil {
					return err
				}
				if n, err = im.storeSteps(ctx, tx, steps); err != nil {
					return err
				}
				now.Done += n
				now.Report, err = json.Marshal(im.report)
				return err
			}); err != nil {
				return err
			}
			steps = steps[n:]
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return held(func(_ context.Context, _ *storage.Tx, now *storage.Import) error {
		now.State = storage.ImportDone
		return nil
	})
}

// writeWithRetry writes, and tries again for up to 30 seconds while the write queue is full.
func (a *Archive) writeWithRetry(ctx context.Context, fn func(context.Context, *storage.Tx) error) error {
	for try := 1; ; try++ {
		err := a.DB.Write(ctx, fn)
		if protocol.CodeOf(err) != protocol.Overloaded || errors.Is(err, errUnderWay) || try == 30 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// deletePieces deletes the pieces of an archive and, with whole, also its import. A running import
// is kept: begin may have committed although it returned an error.
func (a *Archive) deletePieces(ctx context.Context, id string, whole bool) error {
	ctx = context.WithoutCancel(ctx)
	for more := true; more; {
		if err := a.writeWithRetry(ctx, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.Imports().DropPieces(ctx, id)
			if more = n > 0; err != nil || more || !whole {
				return err
			}
			return tx.Imports().Drop(ctx, id)
		}); err != nil {
			return err
		}
	}
	return nil
}

// pieces reads the archive of an import.
type pieces struct {
	ctx  context.Context
	db   *storage.DB
	id   string
	n    int
	rest []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		err := p.db.Read(p.ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			p.rest, err = tx.Imports().Piece(ctx, p.id, p.n)
			return err
		})
		if err != nil {
			return 0, storage.IfMissing(err, io.EOF)
		}
		p.n++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
