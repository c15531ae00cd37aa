package directory

import (
	"context"

	"stoa/protocol"
	"stoa/storage"
)

// ItemsForUCP lists items on sale with their sellers.
func (d *Directory) ItemsForUCP(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.UCPItemQuery,
) (protocol.FoundList, error) {
	var found storage.ItemPage
	var err error
	if in.IDs != nil {
		found.Items, err = tx.Items().ByIDs(ctx, in.IDs)
	} else {
		found, err = tx.Items().Search(ctx, storage.ItemQuery{Q: in.Q, Handles: in.Merchants, Categories: in.Categories, Availabilities: in.Availability,
			Currency: in.Currency, Min: in.Min, Max: in.Max, Paging: in.Paging})
	}
	page := protocol.FoundList{Page: protocol.Page[protocol.FoundItem]{Items: make([]protocol.FoundItem, 0, len(found.Items)), Next: found.Next},
		Finding: found.Finding}
	if err != nil {
		return page, err
	}
	shops := map[*storage.StoredProfile]protocol.Shop{}
	for i := range found.Items {
		f := &found.Items[i]
		shop, known := shops[f.Merchant]
		if !known {
			p := d.Profile(f.Merchant)
			shop = protocol.Shop{Handle: p.Handle, Name: p.Name, Page: p.Interfaces.Page, Profile: p.Interfaces.Profile, Returns: p.Returns,
				Support: protocol.TakesSupport(p.ContactPolicy)}
			shops[f.Merchant] = shop
		}
		page.Items = append(page.Items, protocol.FoundItem{Item: Item(d.Base, &f.StoredItem), Merchant: shop, Untrusted: true})
	}
	return page, nil
}
