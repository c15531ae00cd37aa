package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"stoa/protocol"
)

// An import replaces a catalog, or adds to it, in many short transactions: it writes
// rows that are valid from the next version of the catalog, and ends those that they
// replace with that version. No reader sees it until one transaction makes the version
// current; until then it can be undone (tidy). Other changes of the catalog are
// refused meanwhile.

// An ItemImport is what to import. SKUs are those of the drafts, in their order, each
// once; both iterations of Drafts give the same.
type ItemImport struct {
	Handle string
	SKUs   []string
	Drafts iter.Seq2[protocol.ItemDraft, error]
	Whole  bool      // what is not in it is removed, and the order is its order
	DryRun bool      // count only
	Feed   *ItemFeed // it was read at the address of the catalog
	// Done runs in the transaction that makes the import current.
	Done func(ctx context.Context, tx *Tx, c *ItemChanges) error
}

// An ItemFeed says how a catalog that was read at its address is imported.
type ItemFeed struct {
	Keep  bool // what the owner changed since stays as it is
	First bool // the first reading: the address has what the file names from now on
	Falls bool // it may remove more than half of what is on sale
}

// ErrFalls is the error of a reading that would remove more than half of what is on sale.
var ErrFalls = errors.New("storage: more than half of the items would be removed")

// takenOff marks an item of the catalog's address that the owner removed: no digest is even.
const takenOff = 2

// importAtOnce is how many rows one transaction of an import writes.
const importAtOnce = 100

// known is what is kept in memory of a row while its catalog is imported.
type known struct {
	Pos, Until, Place, Digest, Fed int64
	Size                           int
}

// ImportItems does an import, all of it or nothing. ErrNotFound, [ErrImporting],
// [ErrFull], or an error of Drafts or Done.
func (db *DB) ImportItems(ctx context.Context, im ItemImport) (*ItemChanges, error) {
	if im.DryRun {
		return db.planItems(ctx, im)
	}
	id := rand.Text()
	var h *shop
	if err := db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
		if h, err = tx.Items().lock(ctx, im.Handle); err != nil {
			return err
		}
		if h.importing(tx.Now) {
			return ErrImporting
		}
		_, err = tx.write(ctx, `UPDATE merchant SET import_id = ?, import_at = ? WHERE seq = ?`, id, millis(tx.Now), h.seq)
		return err
	}); err != nil {
		return nil, err
	}
	h.importID = id
	c, err := db.importInto(ctx, h, im)
	// What was prepared in vain, or is replaced, is deleted also when the client has gone.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		err = errors.Join(err, db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			_, err := tx.write(ctx, `UPDATE merchant SET import_id = '' WHERE seq = ? AND import_id = ?`, h.seq, id)
			return err
		}))
	}
	return c, errors.Join(err, db.TidyItems(ctx, im.Handle))
}

func (db *DB) importInto(ctx context.Context, h *shop, im ItemImport) (*ItemChanges, error) {
	if err := db.tidy(ctx, h.seq, h.importID); err != nil {
		return nil, err
	}
	p, err := db.planOf(ctx, h, im)
	if err == nil && p.falls(im.SKUs) {
		err = ErrFalls
	}
	if err != nil {
		return nil, err
	}
	stage := func(drafts []protocol.ItemDraft) error {
		next := *p
		err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			next = p.copy()
			return tx.Items().stage(ctx, &next, drafts)
		})
		*p = next
		return err
	}
	var some []protocol.ItemDraft
	for d, err := range im.Drafts {
		if err != nil {
			return nil, err
		}
		if p.note(d.Normal()) {
			some = append(some, d)
		}
		if len(some) == importAtOnce {
			if err := stage(some); err != nil {
				return nil, err
			}
			some = some[:0]
		}
	}
	if len(some) > 0 {
		if err := stage(some); err != nil {
			return nil, err
		}
	}
	for gone := range slices.Chunk(p.others(), importAtOnce) {
		if err := db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.Items().stageRemoval(ctx, p, gone) }); err != nil {
			return nil, err
		}
	}
	if err := p.fits(); err != nil {
		return nil, err
	}
	return &p.ItemChanges, db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		is := tx.Items()
		now, err := is.lock(ctx, im.Handle)
		if err == nil && (now.seq != h.seq || now.importID != h.importID) {
			err = errLost
		}
		if err != nil {
			return err
		}
		now.catalog, now.items, now.bytes = h.catalog+1, p.items, p.bytes
		if _, err := tx.write(ctx, `UPDATE merchant SET import_id = '' WHERE seq = ?`, h.seq); err != nil {
			return err
		}
		if err := is.changed(ctx, now); err != nil || im.Done == nil {
			return err
		}
		changes := p.ItemChanges
		return im.Done(ctx, tx, &changes)
	})
}

// errLost is the error of an import that was silent for so long that others changed the catalog.
var errLost = fmt.Errorf("%w: this one was silent for too long", ErrImporting)

// planItems counts what an import would do.
func (db *DB) planItems(ctx context.Context, im ItemImport) (*ItemChanges, error) {
	h := &shop{}
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		r, err := tx.Profiles().where(ctx, "handle = ?", im.Handle)
		if err != nil {
			return err
		}
		found, err := scanShop(tx.row(ctx, `SELECT `+shopColumns+` FROM merchant WHERE seq = ?`, r.Seq))
		if err == nil {
			h = found
		}
		return orNothing(err)
	})
	if err != nil {
		return nil, err
	}
	p, err := db.planOf(ctx, h, im)
	if err != nil {
		return nil, err
	}
	for d, err := range im.Drafts {
		if err != nil {
			return nil, err
		}
		p.note(d.Normal())
	}
	p.others()
	return &p.ItemChanges, p.fits()
}

// proceed notes that an import runs. It locks the catalog.
func (is Items) proceed(ctx context.Context, seq int64, id string) error {
	n, err := is.tx.write(ctx, `UPDATE merchant SET import_at = ? WHERE seq = ? AND import_id = ?`, millis(is.tx.Now), seq, id)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// stage writes some items for the next version.
func (is Items) stage(ctx context.Context, p *plan, drafts []protocol.ItemDraft) error {
	h := p.shop
	if err := is.proceed(ctx, h.seq, h.importID); err != nil {
		return err
	}
	skus := make([]string, len(drafts))
	fresh := 0
	for n, d := range drafts {
		skus[n] = d.SKU
		if _, ok := p.rows[d.SKU]; !ok {
			fresh++
		}
	}
	old, err := is.bySKU(ctx, h, skus)
	if err != nil {
		return err
	}
	numbers, err := is.numbers(ctx, fresh)
	if err != nil {
		return err
	}
	var rows []newRow
	var replaced []int64
	for _, d := range drafts {
		before := old[d.SKU]
		i, doc, err := newItem(is.tx.Now, d, before)
		if err != nil {
			return err
		}
		i.row.seq, i.row.since, i.row.until, i.row.place = h.seq, h.catalog+1, forever, p.places[d.SKU]
		if before == nil {
			i.row.pos, numbers = 2*numbers[0], numbers[1:]
		} else {
			i.row.pos, i.row.told, i.row.fed = before.row.pos^1, before.row.told, before.row.fed
			if before.row.until > h.catalog {
				replaced, p.bytes = append(replaced, before.row.pos), p.bytes-int64(before.row.size)
			}
		}
		if p.feed != nil {
			i.row.fed = i.row.digest
		}
		p.bytes += int64(i.row.size)
		p.ItemChanges.note(i, before)
		rows = append(rows, newRow{item: i, doc: doc})
	}
	if err := is.end(ctx, replaced, h.catalog+1); err != nil {
		return err
	}
	return is.write(ctx, rows)
}

// end ends rows with a version.
func (is Items) end(ctx context.Context, at []int64, until int64) error {
	for some := range slices.Chunk(at, rowsAtOnce) {
		if _, err := is.tx.write(ctx, `UPDATE item SET until = ? WHERE pos IN (`+marks(len(some))+`)`, append([]any{until}, anyOf(some)...)...); err != nil {
			return err
		}
	}
	return nil
}

// stageRemoval ends items with the next version.
func (is Items) stageRemoval(ctx context.Context, p *plan, skus []string) error {
	if err := is.proceed(ctx, p.shop.seq, p.shop.importID); err != nil {
		return err
	}
	at := make([]int64, len(skus))
	for n, sku := range skus {
		at[n] = p.rows[sku].Pos
	}
	return is.end(ctx, at, p.shop.catalog+1)
}

// TidyItems deletes what imports left in a catalog that none is running in: rows that
// are replaced, or were prepared in vain. A removed item stays for a while, for its id.
func (db *DB) TidyItems(ctx context.Context, handle string) error {
	var seq int64
	busy := false
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		r, err := tx.Profiles().where(ctx, "handle = ?", handle)
		if err != nil {
			return orNothing(err)
		}
		h, err := scanShop(tx.row(ctx, `SELECT `+shopColumns+` FROM merchant WHERE seq = ?`, r.Seq))
		if err == nil {
			seq, busy = h.seq, h.importing(tx.Now)
		}
		return orNothing(err)
	})
	if err != nil || seq == 0 || busy {
		return err
	}
	return db.tidy(ctx, seq, "")
}

// StaleImports are the handles of businesses whose import ended with its process.
func (is Items) StaleImports(ctx context.Context) ([]string, error) {
	return list[string](ctx, is.tx, `SELECT p.handle FROM merchant m JOIN profile p ON p.seq = m.seq WHERE m.import_id <> '' AND m.import_at < ? LIMIT 100`,
		millis(is.tx.Now.Add(-importSilence)))
}

// EndImport ends the import of a business whose process ended.
func (is Items) EndImport(ctx context.Context, handle string) error {
	return is.tx.exec(ctx, `UPDATE merchant SET import_id = '' WHERE seq = (SELECT seq FROM profile WHERE handle = ?) AND import_at < ?`,
		handle, millis(is.tx.Now.Add(-importSilence)))
}

// tidy is TidyItems while the import of an id runs, or none for "".
func (db *DB) tidy(ctx context.Context, seq int64, id string) error {
	type row struct {
		Pos, Since, Until int64
		Indexed           bool
	}
	var catalog int64
	var all []row
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.row(ctx, `SELECT catalog FROM merchant WHERE seq = ?`, seq).Scan(&catalog); err != nil {
			return orNothing(err)
		}
		var err error
		all, err = list[row](ctx, tx, `SELECT pos, since, until, indexed FROM item WHERE seq = ? ORDER BY pos`, seq)
		return err
	})
	if err != nil {
		return err
	}
	later := map[int64]row{} // by the number of the item, the row that counts
	for _, r := range all {
		if other, ok := later[r.Pos/2]; r.Since <= catalog && (!ok || other.Until < r.Until) {
			later[r.Pos/2] = r
		}
	}
	var drop, reset, away []any
	for _, r := range all {
		switch {
		case r.Since > catalog, r.Until <= catalog && later[r.Pos/2].Pos != r.Pos:
			drop = append(drop, r.Pos)
		case r.Until > catalog && r.Until < forever:
			reset = append(reset, r.Pos)
		case r.Until <= catalog && r.Indexed:
			away = append(away, r.Pos)
		}
	}
	for _, part := range []struct {
		text string
		at   []any
		end  bool
	}{
		{`DELETE FROM item WHERE seq = ? AND (since > ? OR until <= ?) AND pos IN `, drop, true},
		{`UPDATE item SET until = 9223372036854775807 WHERE seq = ? AND since <= ? AND until > ? AND pos IN `, reset, false},
		{`UPDATE item SET indexed = FALSE, away_at = ? WHERE seq = ? AND since <= ? AND until <= ? AND indexed AND pos IN `, away, true},
	} {
		for some := range slices.Chunk(part.at, importAtOnce) {
			if err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
				return tx.Items().tidySome(ctx, seq, catalog, id, part.text, some, part.end)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tidySome changes rows, unless the catalog has changed since they were chosen.
func (is Items) tidySome(ctx context.Context, seq, catalog int64, id, text string, at []any, words bool) error {
	h, err := scanShop(is.tx.row(ctx, `SELECT `+shopColumns+` FROM merchant WHERE seq = ?`+is.tx.db.engine.ForUpdate(), seq))
	if err != nil {
		return orNothing(err)
	}
	if h.catalog != catalog || h.importID != id && h.importing(is.tx.Now) {
		return nil
	}
	if id != "" {
		if err := is.proceed(ctx, seq, id); err != nil {
			return err
		}
	}
	args := append([]any{seq, catalog, catalog}, at...)
	if err := is.tx.dirty(); err != nil {
		return err
	}
	if words {
		_, where, _ := strings.Cut(text, " WHERE ")
		gone, err := list[int64](ctx, is.tx, `SELECT pos FROM item WHERE `+where+`(`+marks(len(at))+`)`, args...)
		if err == nil {
			err = is.dropWords(ctx, gone)
		}
		if err != nil {
			return err
		}
	}
	if strings.HasPrefix(text, "UPDATE item SET indexed") {
		args = append([]any{millis(is.tx.Now)}, args...)
	}
	return is.tx.exec(ctx, text+`(`+marks(len(at))+`)`, args...)
}
