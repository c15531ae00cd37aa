package archive

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// A step is one checked record that is to be stored. Consecutive steps are stored in one
// transaction, which may end only before a step that begins something. A step may run twice.
type step struct {
	begins bool
	do     func(ctx context.Context, tx *storage.Tx) error
}

// isHead reports whether a member is stored together with the profile.
func isHead(file string) bool {
	return !slices.Contains([]string{itemsFile, picturesFile, postsFile, threadsFile, blocksFile, meetingsFile, bidsFile, ordersFile, receiptsFile,
		writtenFile}, file)
}

func (im *importing) step(ctx context.Context, r record) (step, error) {
	switch r.file {
	case profileFile:
		return step{do: im.storeProfile}, nil
	case merchantFile:
		var m merchantRecord
		err := im.decode(r, &m)
		return step{do: func(ctx context.Context, tx *storage.Tx) error { return im.storeMerchant(ctx, tx, &m) }}, err
	case notifyFile:
		var n protocol.NotifyDraft
		err := im.decode(r, &n)
		return step{do: func(ctx context.Context, tx *storage.Tx) error { return im.storeNotify(ctx, tx, &n) }}, err
	case roomsFile:
		rooms, err := im.rooms(r)
		return step{do: func(ctx context.Context, tx *storage.Tx) error { return im.storeRooms(ctx, tx, &rooms) }}, err
	case keysFile:
		k, public, err := im.key(r)
		return step{do: func(ctx context.Context, tx *storage.Tx) error { return im.storeKey(ctx, tx, k, public) }}, err
	case itemsFile:
		var d protocol.ItemDraft
		err := im.decode(r, &d)
		return step{begins: true, do: func(ctx context.Context, tx *storage.Tx) error { return im.storeItem(ctx, tx, d) }}, err
	case picturesFile:
		return im.pictureStep(ctx, r)
	case postsFile:
		return im.postStep(ctx, r)
	case threadsFile:
		return im.threadStep(r)
	case blocksFile:
		return im.blockStep(r)
	case meetingsFile:
		return im.meetingStep(r)
	case bidsFile:
		return im.bidStep(r)
	case ordersFile:
		return im.orderStep(r)
	case receiptsFile:
		return im.receiptStep(r)
	case writtenFile:
		return im.writtenStep(r)
	}
	return step{do: func(context.Context, *storage.Tx) error { return nil }}, nil // keys of the node and private keys were read earlier
}

// errBody ends the reading after the members that are stored with the profile.
var errBody = errors.New("archive: the rest")

// readHead reads the members that are stored with the profile.
func (im *importing) readHead(ctx context.Context, r io.Reader) (steps []step, err error) {
	err = walk(r, im.Limits, skipBegin, func(r record) error {
		if !isHead(r.file) {
			return errBody
		}
		s, err := im.step(ctx, r)
		steps = append(steps, s)
		return err
	}, im.Archive)
	if errors.Is(err, errBody) {
		err = nil
	}
	return steps, err
}

func skipBegin(*manifest, []byte, signature) error { return nil }

// storeHead stores what readHead has read. It may run twice.
func (im *importing) storeHead(ctx context.Context, tx *storage.Tx, steps []step) error {
	im.report = protocol.ImportReport{
		Handle: im.handle, From: im.manifest.Node, ExportedAt: im.manifest.ExportedAt, DryRun: im.DryRun, Identity: "none", Notes: []string{},
	}
	if err := im.checkMayImport(ctx, tx); err != nil {
		return err
	}
	if runs, err := tx.Imports().Running(ctx, im.handle); err != nil {
		return err
	} else if runs {
		return errUnderWay
	}
	if why, err := im.originBlocked(ctx, tx); err != nil {
		return err
	} else if why != "" {
		im.signed, im.why = false, why
	}
	for _, s := range steps {
		if err := s.do(ctx, tx); err != nil {
			return err
		}
	}
	return im.enrol(ctx, tx)
}

var errUnderWay = &protocol.Error{
	Code: protocol.Overloaded, Detail: "an archive is being imported into this profile; try again when it is done", RetryAfter: 5 * time.Second,
}

// A chunk is the records that are read before they are stored: at most so many, and so many bytes.
const (
	chunkRecords = 50
	chunkBytes   = 1 << 20
)

// readRest reads everything after the head, skips the first done records, and passes the others to
// store in chunks. A chunk ends only before a step that begins something.
func (im *importing) readRest(ctx context.Context, r io.Reader, done int, store func([]step) error) error {
	var steps []step
	seen, size := 0, 0
	begin := func(m *manifest, _ []byte, _ signature) error { return im.setOrigin(m) }
	err := walk(r, im.Limits, begin, func(r record) error {
		if isHead(r.file) {
			return nil
		}
		if seen++; seen <= done {
			return nil
		}
		s, err := im.step(ctx, r)
		if err != nil {
			return err
		}
		if s.begins && (len(steps) >= chunkRecords || size+len(r.raw) > chunkBytes) {
			if err := store(steps); err != nil {
				return err
			}
			steps, size = steps[:0], 0
		}
		if steps, size = append(steps, s), size+len(r.raw); im.Progress != nil && seen%1000 == 0 {
			im.Progress(r.file, r.n)
		}
		return nil
	}, im.Archive)
	if err != nil || len(steps) == 0 {
		return err
	}
	return store(steps)
}

// maxHold is how long one transaction keeps storing, since other writes wait for it.
const maxHold = 20 * time.Millisecond

// storeSteps stores as many of the steps as fit into maxHold, and returns their number. It may run
// twice.
func (im *importing) storeSteps(ctx context.Context, tx *storage.Tx, steps []step) (n int, err error) {
	im.open = nil
	start := time.Now()
	for n = range steps {
		if n > 0 && steps[n].begins && time.Since(start) > maxHold {
			return n, nil
		}
		if err := steps[n].do(ctx, tx); err != nil {
			return n, err
		}
	}
	return len(steps), nil
}

// errDry ends the transactions of a dry run.
var errDry = errors.New("archive: dry run")

// dryRun reports what an import would do: it runs it and rolls each transaction back.
func (im *importing) dryRun(ctx context.Context, f io.ReadSeeker) (protocol.ImportReport, error) {
	dry := func(do func(context.Context, *storage.Tx) error) error {
		err := im.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if err := do(ctx, tx); err != nil {
				return err
			}
			return errDry
		})
		if errors.Is(err, errDry) {
			return nil
		}
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return im.report, err
	}
	steps, err := im.readHead(ctx, f)
	if err != nil {
		return im.report, err
	}
	if err := dry(func(ctx context.Context, tx *storage.Tx) error { return im.storeHead(ctx, tx, steps) }); err != nil {
		return im.report, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return im.report, err
	}
	err = im.readRest(ctx, f, 0, func(steps []step) error {
		for len(steps) > 0 {
			before, n := im.report, 0
			if err := dry(func(ctx context.Context, tx *storage.Tx) (err error) {
				im.report = before
				n, err = im.storeSteps(ctx, tx, steps)
				return err
			}); err != nil {
				return err
			}
			steps = steps[n:]
		}
		return nil
	})
	return im.report, err
}
