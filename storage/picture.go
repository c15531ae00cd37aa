package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"stoa/protocol"
)

// A Picture is a picture of a profile or an item as their rows say it. Its bytes are stored by the hash of the largest size.
type Picture struct {
	Hash   string `json:"h"`
	Alt    string `json:"a,omitempty"`
	Width  int    `json:"w"`
	Height int    `json:"e"`
}

// A PictureFile is a picture with its bytes in each of [protocol.PictureEdges].
type PictureFile struct {
	Picture
	Sizes [len(protocol.PictureEdges)][]byte
}

// Public is the picture as everybody reads it, nil for none.
func (p *Picture) Public(base string) *protocol.Picture {
	if p == nil {
		return nil
	}
	return &protocol.Picture{URL: base + p.path(protocol.PictureEdges[2]), Alt: p.Alt, Width: p.Width, Height: p.Height}
}

func (p *Picture) path(edge int) string {
	return fmt.Sprintf("%s%s-%d.jpg", protocol.PicturePath, p.Hash, edge)
}

// pictureOf reads what a row says of its picture.
func pictureOf(doc string) (p *Picture) {
	if json.Unmarshal([]byte(doc), &p) != nil {
		return nil
	}
	return p
}

// Pictures reads and writes pictures. One that nothing uses is not served, and is deleted by Prune.
type Pictures struct{ tx *Tx }

func (tx *Tx) Pictures() Pictures { return Pictures{tx} }

// Of is the picture of a profile, or with a SKU of its item; ErrNotFound when there is none.
func (ps Pictures) Of(ctx context.Context, handle, sku string) (*Picture, error) {
	var doc string
	if err := ps.tx.row(ctx, `SELECT doc FROM picture_use WHERE handle = ? AND sku = ?`, handle, sku).Scan(&doc); err != nil {
		return nil, err
	}
	return pictureOf(doc), nil
}

// Put stores a picture as that of a profile, or with a SKU of its item on sale. ErrNotFound, [ErrImporting], [ErrFull].
func (ps Pictures) Put(ctx context.Context, handle, sku string, f *PictureFile) error {
	if err := ps.set(ctx, handle, sku, &f.Picture); err != nil {
		return err
	}
	var rows, own int
	var bytes int64
	if err := ps.tx.row(ctx, `SELECT count(*), COALESCE(sum(size), 0) FROM picture`).Scan(&rows, &bytes); err != nil {
		return err
	}
	if err := ps.tx.row(ctx, `SELECT count(*) FROM picture_use WHERE handle = ? AND sku <> ?`, handle, sku).Scan(&own); err != nil {
		return err
	}
	if most := PictureCap; own >= protocol.MaxPictures || rows >= most.Rows || bytes >= most.Bytes {
		return ErrFull
	}
	doc, err := json.Marshal(f.Picture)
	if err != nil {
		return err
	}
	size := 0
	for _, b := range f.Sizes {
		size += len(b)
	}
	if err := ps.lock(ctx); err != nil {
		return err
	}
	if _, err := ps.tx.write(ctx, `INSERT INTO picture (hash, size, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, f.Hash, size, millis(ps.tx.Now)); err != nil {
		return err
	}
	for n, edge := range protocol.PictureEdges {
		if _, err := ps.tx.write(ctx, `INSERT INTO picture_size (hash, edge, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, f.Hash, edge, f.Sizes[n]); err != nil {
			return err
		}
	}
	return ps.tx.exec(ctx, `INSERT INTO picture_use (handle, sku, hash, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT (handle, sku) DO UPDATE SET hash = EXCLUDED.hash, doc = EXCLUDED.doc`, handle, sku, f.Hash, string(doc))
}

// lock keeps Prune from deleting what Put is about to use.
func (ps Pictures) lock(ctx context.Context) error {
	if err := ps.tx.dirty(); err != nil {
		return err
	}
	return ps.tx.lockName(ctx, "pictures")
}

// Remove ends the use of a picture. It is false when there is none.
func (ps Pictures) Remove(ctx context.Context, handle, sku string) (bool, error) {
	if err := ps.set(ctx, handle, sku, nil); err != nil && (sku == "" || err != ErrNotFound) {
		return false, err
	}
	n, err := ps.tx.write(ctx, `DELETE FROM picture_use WHERE handle = ? AND sku = ?`, handle, sku)
	return n > 0, err
}

// set writes the row that shows the picture; p is nil for none.
func (ps Pictures) set(ctx context.Context, handle, sku string, p *Picture) error {
	if sku != "" {
		return ps.tx.Items().setPicture(ctx, handle, sku, p)
	}
	r, err := ps.tx.Profiles().lock(ctx, handle)
	if err != nil {
		return err
	}
	doc := ""
	if p != nil {
		raw, err := json.Marshal(p)
		if err != nil {
			return err
		}
		doc = string(raw)
	}
	return ps.tx.exec(ctx, `UPDATE profile SET picture = ? WHERE seq = ?`, doc, r.Seq)
}

// setPicture writes the picture of an item on sale.
func (is Items) setPicture(ctx context.Context, handle, sku string, p *Picture) error {
	h, err := is.lock(ctx, handle)
	if err != nil {
		return err
	}
	if h.importing(is.tx.Now) {
		return ErrImporting
	}
	found, err := is.bySKU(ctx, h, []string{sku})
	if err != nil {
		return err
	}
	old := found[sku]
	if old == nil || old.row.until <= h.catalog {
		return ErrNotFound
	}
	old.Picture = p
	i, doc, err := newItem(is.tx.Now, old.Draft, old)
	if err != nil {
		return err
	}
	size := i.row.size
	i.row = old.row
	i.row.size = size
	h.bytes += int64(size - old.row.size)
	if err := is.write(ctx, []newRow{{i, doc, old.row.indexed}}); err != nil {
		return err
	}
	return is.changed(ctx, h)
}

const pictureShown = `SELECT s.body FROM picture_size s WHERE s.hash = ? AND s.edge = ? AND EXISTS (
	SELECT 1 FROM picture_use u JOIN profile p ON p.handle = u.handle WHERE u.hash = s.hash AND p.state = '')`

// Shown returns the bytes of a picture that a profile which is shown uses; ErrNotFound for any other.
func (ps Pictures) Shown(ctx context.Context, hash string, edge int) (body []byte, err error) {
	return body, ps.tx.row(ctx, pictureShown, hash, edge).Scan(&body)
}

// A PictureUse is a picture of a profile, or with a SKU of an item of it.
type PictureUse struct {
	SKU string
	Picture
	Body []byte
}

// Any reports whether a profile or an item of it has a picture.
func (ps Pictures) Any(ctx context.Context, handle string) (bool, error) {
	return ps.tx.exists(ctx, `SELECT 1 FROM picture_use WHERE handle = ? LIMIT 1`, handle)
}

// Each calls one for every picture of a profile, in its largest size of at most so many bytes.
func (ps Pictures) Each(ctx context.Context, handle string, most int, one func(PictureUse) error) error {
	skus, err := list[string](ctx, ps.tx, `SELECT sku FROM picture_use WHERE handle = ? ORDER BY sku`, handle)
	if err != nil {
		return err
	}
	for _, sku := range skus {
		u, doc := PictureUse{SKU: sku}, ""
		if err := ps.tx.row(ctx, `SELECT u.doc, s.body FROM picture_use u JOIN picture_size s ON s.hash = u.hash
			WHERE u.handle = ? AND u.sku = ? AND length(s.body) <= ? ORDER BY s.edge DESC LIMIT 1`, handle, sku, most).Scan(&doc, &u.Body); err != nil {
			return err
		}
		if p := pictureOf(doc); p != nil {
			u.Picture = *p
		}
		if err := one(u); err != nil {
			return err
		}
	}
	return nil
}

// Prune deletes some uses by items that are gone, and some pictures that nothing uses, and returns how many.
func (ps Pictures) Prune(ctx context.Context) (all int, err error) {
	if err := ps.lock(ctx); err != nil {
		return 0, err
	}
	for _, x := range [][3]string{{"picture_use", "handle, sku", unsoldPictures},
		{"picture_size", "hash, edge", unusedPictures}, {"picture", "hash", unusedPictures}} {
		n, err := ps.tx.deleteSome(ctx, x[0], x[1], x[2])
		if all += n; err != nil {
			return all, err
		}
	}
	return all, nil
}

const (
	unsoldPictures = `s.sku <> '' AND NOT EXISTS (SELECT 1 FROM item i JOIN profile p ON p.seq = i.seq WHERE p.handle = s.handle AND i.sku = s.sku) LIMIT 100`
	unusedPictures = `NOT EXISTS (SELECT 1 FROM picture_use u WHERE u.hash = s.hash) LIMIT 100`
)

// IsPictureHash reports whether a text has the form of the hash of a picture.
func IsPictureHash(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
