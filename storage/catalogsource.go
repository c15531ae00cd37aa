package storage

import (
	"context"
	"time"

	"stoa/protocol"
)

// A CatalogSource is where a business has its catalog, and how it was last read there. Account had the profile when the address was
// set, "" for none.
type CatalogSource struct {
	Handle, Account, URL string
	CatalogSourceDoc     `db:"doc"`
}

// A CatalogSourceDoc is what is stored of a source and no statement looks for.
type CatalogSourceDoc struct {
	Mode      string               `json:"mode,omitempty"`
	Overwrite bool                 `json:"overwrite,omitempty"` // what the owner changed
	Round     int                  `json:"round"`               // a reading that began in an earlier round stores nothing
	Waiting   bool                 `json:"waiting,omitempty"`
	Falls     bool                 `json:"falls,omitempty"`    // the next reading may remove more than half of the items
	Tag       string               `json:"tag,omitempty"`      // ETag of what was read last
	Modified  string               `json:"modified,omitempty"` // its Last-Modified
	AskedAt   time.Time            `json:"askedAt,omitzero"`
	ReadAt    time.Time            `json:"readAt,omitzero"` // zero: never
	ChangedAt time.Time            `json:"changedAt,omitzero"`
	Added     int                  `json:"added,omitempty"`
	Changed   int                  `json:"changed,omitempty"`
	Removed   int                  `json:"removed,omitempty"`
	Kept      int                  `json:"kept,omitempty"`
	Fault     string               `json:"fault,omitempty"` // of the last reading, "" for none
	Fell      bool                 `json:"fell,omitempty"`  // that fault is [ErrFalls]
	Faults    []protocol.LineFault `json:"faults,omitempty"`
	Told      string               `json:"told,omitempty"` // kind of the fault that the owner was notified of
	Failures  int                  `json:"failures,omitempty"`
	NextAt    time.Time            `json:"nextAt,omitzero"`
}

var catalogSourceTable = tableOf[CatalogSource]("catalog_source")

// CatalogSources reads and writes where businesses have their catalogs. Who writes one locks the profile first.
type CatalogSources struct{ tx *Tx }

func (tx *Tx) CatalogSources() CatalogSources { return CatalogSources{tx} }

// ByHandle returns the source of a business; ErrNotFound when it has none.
func (cs CatalogSources) ByHandle(ctx context.Context, handle string) (*CatalogSource, error) {
	return orNil(find[CatalogSource](ctx, cs.tx, catalogSourceTable.from+`WHERE handle = ?`, handle))
}

// Put stores a source.
func (cs CatalogSources) Put(ctx context.Context, s *CatalogSource) error {
	return catalogSourceTable.put(ctx, cs.tx, s, "handle")
}

// Delete deletes the source of a business. It is false when there is none.
func (cs CatalogSources) Delete(ctx context.Context, handle string) (bool, error) {
	n, err := cs.tx.write(ctx, `DELETE FROM catalog_source WHERE handle = ?`, handle)
	return n > 0, err
}
