package directory

import (
	"context"
	"errors"
	"slices"
	"time"

	"stoa/protocol"
	"stoa/storage"
)

// Item is a stored item as readers see it.
func Item(base string, s *storage.StoredItem) protocol.Item {
	in := &s.Draft
	i := protocol.Item{
		ID: s.ID, SKU: in.SKU, Name: in.Name, Description: in.Description, Price: s.Price(), Unit: protocol.OrNil(in.Unit), Category: protocol.OrNil(in.Category),
		Categories: list(in.AllCategories()), Tags: list(in.Tags), Availability: s.Available(), Options: in.Options, Media: list(in.AllMedia()),
		URL: protocol.OrNil(in.URL), Variants: variants(s),
	}
	if p := s.Picture.Public(base); p != nil {
		i.Media = slices.Insert(i.Media, 0, protocol.Media{Type: "image", URL: p.URL, Alt: p.Alt})
	}
	for _, m := range i.Media {
		if i.Image == nil && m.Type == "image" {
			i.Image = &m.URL
		}
	}
	if s.Low != s.High {
		i.PriceRange = &protocol.PriceRange{Min: protocol.MoneyOf(s.Currency, s.Low), Max: protocol.MoneyOf(s.Currency, s.High)}
	}
	if len(in.Variants) == 0 {
		i.ListPrice, i.UnitPrice = i.Variants[0].ListPrice, i.Variants[0].UnitPrice
	}
	return i
}

func variants(s *storage.StoredItem) []protocol.Variant {
	var all []protocol.Variant
	for _, v := range s.Variants() {
		out := protocol.Variant{ID: v.ID, SKU: v.SKU, Title: s.Draft.Name, Options: v.Options,
			UnitPrice: v.UnitPrice, Availability: v.Availability, Barcode: v.Barcode}
		for n, o := range v.Options {
			if n == 0 {
				out.Title = o.Label
			} else {
				out.Title += " / " + o.Label
			}
		}
		if v.Currency != "" {
			out.Price = new(protocol.MoneyOf(v.Currency, v.Minor))
		}
		if v.List > 0 {
			out.ListPrice = new(protocol.MoneyOf(v.Currency, v.List))
		}
		all = append(all, out)
	}
	return all
}

// Items lists items on sale.
func (d *Directory) Items(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.ItemsQuery,
) (out protocol.ItemList, err error) {
	q := storage.ItemQuery{Q: in.Q, Categories: in.Category, Availabilities: in.Availability, Currency: in.In(), Sort: in.Sort, Paging: in.Paging}
	q.Min, q.Max, _ = in.Prices()
	if q.Near, err = located(ctx, tx, &in.PlaceFilter); err != nil {
		return out, err
	}
	q.Radius = in.Radius
	if in.Handle != "" {
		p, err := tx.Profiles().ByHandle(ctx, in.Handle)
		if err != nil || p.Draft.Kind != protocol.Business {
			return out, storage.Missing(err, protocol.Errorf(protocol.NotFound, "there is no business @%s on this node", in.Handle))
		}
		q.Handles = []string{in.Handle}
	}
	found, err := tx.Items().Search(ctx, q)
	out = protocol.ItemList{Page: protocol.Page[protocol.CatalogEntry]{Items: make([]protocol.CatalogEntry, 0, len(found.Items)), Next: found.Next},
		Finding: found.Finding}
	for n := range found.Items {
		i := &found.Items[n]
		m := i.Merchant.Draft
		seller := protocol.ItemMerchant{Handle: m.Handle, Name: m.Name, Page: d.page(m.Handle), Distance: i.Distance}
		out.Items = append(out.Items, protocol.CatalogEntry{Item: Item(d.Base, &i.StoredItem), Untrusted: true, Merchant: seller})
	}
	return out, err
}

// shop is the business of an owner's operation.
func (d *Directory) shop(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (*storage.StoredProfile, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return nil, err
	}
	return d.business(ctx, tx, handle)
}

func ownItem(s *storage.StoredItem) protocol.OwnItem {
	out := protocol.OwnItem{ID: s.ID, Item: s.Draft, Untrusted: true}
	for _, v := range s.Variants() {
		out.VariantIDs = append(out.VariantIDs, v.ID)
	}
	return out
}

// OwnItems lists the items of an owner's business.
func (d *Directory) OwnItems(
	ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.OwnItemsQuery,
) (out protocol.Page[protocol.OwnItem], err error) {
	p, err := d.shop(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	found, err := tx.Items().Search(ctx, storage.ItemQuery{Handles: []string{p.Draft.Handle}, Q: in.Q, Categories: in.Category,
		Availabilities: in.Availability, Paging: in.Paging})
	out = protocol.Page[protocol.OwnItem]{Items: make([]protocol.OwnItem, 0, len(found.Items)), Next: found.Next}
	for n := range found.Items {
		out.Items = append(out.Items, ownItem(&found.Items[n].StoredItem))
	}
	return out, err
}

// OwnItem is one item of an owner's business.
func (d *Directory) OwnItem(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ItemRef) (protocol.OwnItem, error) {
	p, err := d.shop(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnItem{}, err
	}
	i, err := tx.Items().BySKU(ctx, p.Draft.Handle, in.SKU)
	if errors.Is(err, storage.ErrNotFound) {
		return protocol.OwnItem{}, errNoItem
	}
	return ownItem(&i), err
}

var errNoItem = protocol.Errorf(protocol.NotFound, "there is no item with this sku in the catalog; list_own_items lists all of them")

// PutItem adds or replaces an item of an owner's business.
func (d *Directory) PutItem(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ItemInput) (protocol.OwnItem, error) {
	p, err := d.shop(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.OwnItem{}, err
	}
	changes, err := tx.Items().Put(ctx, p.Draft.Handle, in.ItemDraft)
	if err != nil {
		return protocol.OwnItem{}, CatalogError(err)
	}
	return ownItem(&changes.Items[0]), d.catalogChanged(ctx, tx, c, p, changes)
}

// RemoveItem removes an item of an owner's business.
func (d *Directory) RemoveItem(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ItemRef) (protocol.None, error) {
	p, err := d.shop(ctx, tx, c, in.Owned)
	if err != nil {
		return protocol.None{}, err
	}
	changes, err := tx.Items().Remove(ctx, p.Draft.Handle, in.SKU)
	if err == nil && changes.Removed == 0 {
		err = errNoItem
	}
	if err != nil {
		return protocol.None{}, CatalogError(err)
	}
	return protocol.None{}, d.catalogChanged(ctx, tx, c, p, changes)
}

// PutItems changes several items of an owner's business.
func (d *Directory) PutItems(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.ItemBatch) (out protocol.ItemsReport, err error) {
	p, err := d.shop(ctx, tx, c, in.Owned)
	if err != nil {
		return out, err
	}
	changes := &storage.ItemChanges{}
	if len(in.Remove) > 0 {
		gone, err := tx.Items().Remove(ctx, p.Draft.Handle, in.Remove...)
		if err != nil {
			return out, CatalogError(err)
		}
		out.Removed = gone.Removed
	}
	if len(in.Items) > 0 {
		if changes, err = tx.Items().Put(ctx, p.Draft.Handle, in.Items...); err != nil {
			return out, CatalogError(err)
		}
	}
	out.Added, out.Changed, out.Unchanged = changes.Added, changes.Changed, changes.Unchanged
	if out.ItemCount, err = tx.Items().Count(ctx, p.Draft.Handle); err != nil {
		return out, err
	}
	return out, d.catalogChanged(ctx, tx, c, p, changes)
}

// CatalogChanged announces what an import of a catalog changed.
func (d *Directory) CatalogChanged(ctx context.Context, tx *storage.Tx, c protocol.Caller, handle string, changes *storage.ItemChanges) error {
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return err
	}
	return d.catalogChanged(ctx, tx, c, p, changes)
}

// catalogChanged announces a change, and notes the operator's.
func (d *Directory) catalogChanged(ctx context.Context, tx *storage.Tx, c protocol.Caller, p *storage.StoredProfile, changes *storage.ItemChanges) error {
	if c.Standing == protocol.Operator {
		if err := tx.Audit(ctx, c.Actor(), "catalog put", p.Draft.Handle, ""); err != nil {
			return err
		}
	}
	return d.announceNews(ctx, tx, p, changes)
}

// CatalogError says what the owner can do about a refused change.
func CatalogError(err error) error {
	switch {
	case errors.Is(err, storage.ErrImporting):
		return &protocol.Error{Code: protocol.Conflict, Detail: "an import of this catalog is running; try again when it has ended", RetryAfter: 10 * time.Second}
	case errors.Is(err, storage.ErrFull):
		return protocol.Errorf(protocol.Conflict, "a catalog holds at most %d items and %d MiB; remove some first", protocol.MaxItems, protocol.MaxCatalogBytes>>20)
	case errors.Is(err, storage.ErrLarge):
		return protocol.Errorf(protocol.Conflict, "the catalog has more than %d items, which put_merchant does not replace: leave items out to keep them; "+
			"put_item, put_items and remove_item change some, import_items replaces all", protocol.MaxRecordItems)
	}
	return err
}
