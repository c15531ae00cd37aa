// Package catalog is the room of whole catalogs: it imports the items of a business from a file of
// CSV (RFC 4180), JSON Lines (one JSON object a line) or a JSON array, or from one that another program
// wrote (foreign.go), checked completely first, all of it or nothing, and exports them as CSV.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// A Catalog imports and exports files. Make it with New.
type Catalog struct {
	DB      *storage.DB
	Spool   func() (*os.File, error) // a private temporary file, deleted when it is closed
	Changed func(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string, changes *storage.ItemChanges) error
	Error   func(error) error // says what the owner can do about an error of storage
	Client  *http.Client      // asks addresses of catalogs
	Private bool              // they may be of this machine

	uploads *hall.Uploads
	schemas *hall.Schemas
}

// New completes a Catalog.
func New(c Catalog) *Catalog {
	c.uploads, c.schemas = hall.NewUploads("catalog", c.Spool), hall.Declared()
	return &c
}

// Import is the operation import_items.
func (c *Catalog) Import(ctx context.Context, by protocol.Caller, in protocol.ItemsImport, body io.Reader) (protocol.ItemsImportReport, error) {
	handle, err := by.ActsAs(in.Handle)
	if err != nil {
		return protocol.ItemsImportReport{}, err
	}
	if err := c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error { return business(ctx, tx, handle) }); err != nil {
		return protocol.ItemsImportReport{}, err
	}
	f, leave, err := c.uploads.Receive(ctx, by.ID(), body)
	if err != nil {
		return protocol.ItemsImportReport{}, err
	}
	defer leave()
	defer f.Close()
	out, _, err := c.read(ctx, by, handle, in, f, nil)
	return out, err
}

// business returns an error when no business has the handle.
func business(ctx context.Context, tx *storage.Tx, handle string) error {
	p, err := tx.Profiles().Own(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) || err == nil && p.Draft.Kind != protocol.Business {
		return protocol.Errorf(protocol.NotFound, "there is no business @%s on this node", handle)
	}
	return err
}

// read imports a file. feed is nil for one that the owner sends.
func (c *Catalog) read(ctx context.Context, by protocol.Caller, handle string, in protocol.ItemsImport, f *os.File, feed *storage.ItemFeed) (
	protocol.ItemsImportReport, *storage.ItemChanges, error) {
	out := protocol.ItemsImportReport{DryRun: in.DryRun, Faults: []protocol.LineFault{}}
	file, err := c.open(f)
	if err != nil {
		return out, nil, err
	}
	skus, err := c.check(file, &out)
	if err != nil {
		return out, nil, err
	}
	out.Format, out.Columns, out.Notes = file.format, file.columns, file.allNotes()
	out.Items = len(skus)
	if out.FaultCount > 0 && !in.DryRun {
		return out, nil, faulty(&out)
	}
	if out.FaultCount > 0 { // what would happen is not known before they are repaired
		return out, nil, nil
	}
	changes, err := c.DB.ImportItems(ctx, storage.ItemImport{
		Handle: handle, SKUs: skus, Whole: in.Mode != protocol.ImportMerge, DryRun: in.DryRun, Feed: feed,
		Drafts: func(yield func(protocol.ItemDraft, error) bool) {
			again, err := c.open(f)
			if err != nil {
				yield(protocol.ItemDraft{}, err)
				return
			}
			again.each(func(_ int, d protocol.ItemDraft, _ []protocol.Fault) bool { return yield(d, nil) })
		},
		Done: func(ctx context.Context, tx *storage.Tx, changes *storage.ItemChanges) error {
			return c.Changed(ctx, tx, by, handle, changes)
		},
	})
	if err != nil {
		return out, nil, c.Error(err)
	}
	out.Added, out.Changed, out.Unchanged, out.Removed = changes.Added, changes.Changed, changes.Unchanged, changes.Removed
	return out, changes, nil
}

// maxFaults is how many faults a report lists.
const maxFaults = 500

// check reads the whole file, reports its faults and returns the SKUs.
func (c *Catalog) check(file *file, out *protocol.ItemsImportReport) (skus []string, err error) {
	fault := func(line int, f protocol.Fault) {
		if out.FaultCount++; len(out.Faults) < maxFaults {
			out.Faults = append(out.Faults, protocol.LineFault{Line: line, Pointer: f.Pointer, Code: f.Code, Detail: f.Detail})
		}
	}
	first := map[string]int{}
	err = file.each(func(line int, d protocol.ItemDraft, faults []protocol.Fault) bool {
		for _, f := range faults {
			fault(line, f)
		}
		if d.SKU == "" {
			return true
		}
		if at, repeated := first[d.SKU]; repeated {
			fault(line, protocol.Fault{Pointer: "/sku", Code: "repeated", Detail: fmt.Sprintf("line %d has this sku too", at)})
			return true
		}
		if first[d.SKU] = line; len(skus) == protocol.MaxItems {
			fault(line, protocol.Fault{Code: "too-many", Detail: fmt.Sprintf("a catalog holds at most %d items; the rest of the file was not read", protocol.MaxItems)})
			return false
		}
		skus = append(skus, d.SKU)
		return true
	})
	if err == nil && len(skus)+out.FaultCount == 0 {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the file has no item; to remove all items use put_items with remove")
	}
	return skus, err
}

// faulty is the error of an import of a file with faults.
func faulty(out *protocol.ItemsImportReport) error {
	faults := make([]protocol.Fault, 0, out.FaultCount)
	for _, f := range out.Faults {
		faults = append(faults, protocol.Fault{Pointer: "/lines/" + strconv.Itoa(f.Line) + f.Pointer, Code: f.Code, Detail: f.Detail})
	}
	e := protocol.AsError(protocol.Invalid(append(faults, make([]protocol.Fault, out.FaultCount-len(faults))...)...))
	e.Detail = fmt.Sprintf("Nothing was imported: the file has %d faults. A dry run lists up to %d of them by line.", out.FaultCount, maxFaults)
	return e
}
