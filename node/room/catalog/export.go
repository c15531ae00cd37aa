package catalog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
	"stoa/storage"
)

// Export is the operation export_items. Its file has the items of one moment, and an import of it
// changes nothing.
func (c *Catalog) Export(ctx context.Context, by protocol.Caller, in protocol.Owned) (protocol.File, error) {
	handle, err := by.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	leave, err := c.uploads.Export(by.Actor())
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := c.Spool()
	if err != nil {
		return nil, err
	}
	if err := c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		if err := business(ctx, tx, handle); err != nil {
			return err
		}
		return write(ctx, tx, handle, f)
	}); err != nil {
		f.Close()
		return nil, err
	}
	return hall.Made(f, handle+"-items.csv")
}

// write writes the catalog of a business as spreadsheets read it: with a byte order mark, without
// which they take another encoding than UTF-8.
func write(ctx context.Context, tx *storage.Tx, handle string, f *os.File) error {
	out := bufio.NewWriterSize(f, 64<<10)
	if _, err := io.WriteString(out, "\ufeff"); err != nil {
		return err
	}
	w := csv.NewWriter(out)
	w.UseCRLF = true
	if err := w.Write(columns); err != nil {
		return err
	}
	if err := tx.Items().Each(ctx, handle, func(i *storage.StoredItem) error {
		rows, err := rowsOf(i.Draft)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := w.Write(r.cells()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if w.Flush(); w.Error() != nil {
		return w.Error()
	}
	return out.Flush()
}

// cells are the cells of a row, in the order of the columns.
func (r row) cells() []string {
	all := make([]string, len(columns))
	for n, name := range columns {
		all[n] = guarded(r[name])
	}
	return all
}

// rowsOf are the rows of an item: in the columns where those can express it, which is found out by
// reading them, otherwise as JSON.
func rowsOf(d protocol.ItemDraft) ([]row, error) {
	whole, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", d.SKU, err)
	}
	rows := split(d)
	read := make([]row, len(rows))
	for n, r := range rows {
		read[n] = row{}
		for name, cell := range r {
			if cell = strings.TrimSpace(cell); cell != "" { // as a row is read
				read[n][name] = cell
			}
		}
	}
	var again protocol.ItemDraft
	made, faults := members(read)
	raw, err := json.Marshal(made)
	if err == nil && len(faults) == 0 && json.Unmarshal(raw, &again) == nil {
		if raw, err = json.Marshal(again.Normal()); err == nil && bytes.Equal(raw, whole) {
			return rows, nil
		}
	}
	return []row{{"sku": d.SKU, "name": d.Name, "json": string(whole)}}, nil
}

// split divides an item, in its normal form, into rows: one for itself when it has something that a
// row of a variant would say of the variant, and one for each variant.
func split(d protocol.ItemDraft) []row {
	first := row{"sku": d.SKU, "name": d.Name, "description": d.Description, "unit": d.Unit, "category": d.Category,
		"categories": strings.Join(d.Categories, "|"), "tags": strings.Join(d.Tags, "|"), "image": d.Image, "url": d.URL}
	var links []string
	for _, m := range d.Media {
		links = append(links, m.URL)
	}
	first["media"] = strings.Join(links, "|")
	for n, o := range d.Options[:min(len(d.Options), maxRowOptions)] {
		first[optionName(n+1)] = o.Name
	}
	own := protocol.VariantDraft{Price: d.Price, ListPrice: d.ListPrice, UnitPrice: d.UnitPrice, Availability: d.Availability, Barcode: d.Barcode}
	rows := []row{first}
	if len(d.Variants) == 0 || own.Price != nil || own.ListPrice != nil || own.UnitPrice != nil || own.Availability != "" {
		first.price(own)
	} else {
		rows = nil
	}
	for n, v := range d.Variants {
		r := row{"sku": d.SKU}
		if n == 0 && rows == nil {
			r = first
		}
		r["variant_sku"] = v.SKU
		for n, label := range v.Options[:min(len(v.Options), maxRowOptions)] {
			r[optionValue(n+1)] = label
		}
		r.price(v)
		rows = append(rows, r)
	}
	return rows
}

// price is the reverse of priced.
func (r row) price(v protocol.VariantDraft) {
	for column, m := range map[string]*protocol.MoneyDraft{"price": v.Price, "list_price": v.ListPrice} {
		if m == nil {
			continue
		}
		if r[column] = string(m.Amount); m.Currency != protocol.Rupee {
			r["currency"] = m.Currency
		}
	}
	if u := v.UnitPrice; u != nil {
		r["measure"] = fmt.Sprintf("%d %s", u.Measure.Value, u.Measure.Unit)
		r["reference"] = fmt.Sprintf("%d %s", u.Reference.Value, u.Reference.Unit)
	}
	r["availability"], r["barcode"] = string(v.Availability), v.Barcode
}

// Spreadsheets take a cell that begins with one of these for a formula, which can send what is in
// the sheet elsewhere. In front of it an apostrophe makes it text.
const formula = "=+-@\t\r＝＋－＠"

// guarded returns a cell that no spreadsheet takes for a formula; unguarded reads it.
func guarded(cell string) string {
	if formulaLike(cell) {
		return "'" + cell
	}
	return cell
}

func unguarded(cell string) string {
	if strings.HasPrefix(cell, "'") && formulaLike(cell) {
		return cell[1:]
	}
	return cell
}

// formulaLike reports whether a cell begins with a sign of a formula, after any apostrophes.
func formulaLike(cell string) bool {
	rest := []rune(strings.TrimLeft(cell, "'"))
	return len(rest) > 0 && slices.Contains([]rune(formula), rest[0])
}
