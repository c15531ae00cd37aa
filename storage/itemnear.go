package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stoa/protocol"
)

// mostNear is how many businesses with something on sale a search near a place looks at: the nearest ones.
const mostNear = 100

// A nearShop is a business near a place.
type nearShop struct{ seq, millimetres int64 }

// near are the businesses in the circle of a query, the nearest first.
func (is Items) near(ctx context.Context, q *ItemQuery) (shops []nearShop, err error) {
	a, err := merchantsAsked(protocol.MerchantQuery{PlaceFilter: protocol.PlaceFilter{Near: q.Near.String(), Radius: q.Radius}, Local: true})
	if err != nil {
		return nil, err
	}
	if q.Handles != nil {
		return is.nearOf(ctx, q.Handles, a.shop)
	}
	ps := Profiles(is)
	now, _, err := ps.clockNow(ctx)
	if err != nil {
		return nil, err
	}
	selling := func(all []ListedProfile) (shops []nearShop) {
		for i := range all {
			if p := &all[i]; p.Catalog && len(shops) < mostNear {
				shops = append(shops, nearShop{p.Merchant.seq, a.shop.millimetres(p)})
			}
		}
		return shops
	}
	rows, err := ps.around(ctx, a, nearWalk{clock: now, distance: -1}, func(all []ListedProfile) bool {
		return len(all) >= nearRows || len(selling(all)) == mostNear
	})
	shops = selling(rows)
	slices.SortFunc(shops, func(x, y nearShop) int {
		return cmp.Or(cmp.Compare(x.millimetres, y.millimetres), cmp.Compare(x.seq, y.seq))
	})
	return shops, err
}

// nearOf are those of some businesses that are in a circle.
func (is Items) nearOf(ctx context.Context, handles []string, f *shopFilter) (shops []nearShop, err error) {
	for _, handle := range handles {
		p, m, err := is.tx.Merchants().ByHandle(ctx, handle)
		if err := IfMissing(err, nil); err != nil {
			return nil, err
		}
		if err != nil || m == nil || m.Draft.Geo == nil || !p.Catalog || f.near.Distance(*m.Draft.Geo) > f.radius {
			continue
		}
		shops = append(shops, nearShop{m.seq, f.millimetres(&ListedProfile{Merchant: m})})
	}
	return shops, nil
}

// byDistance lists items by how near their business is, those of one with the oldest first.
func (is Items) byDistance(ctx context.Context, q ItemQuery, s asked, shops []nearShop) (out protocol.Page[CatalogItem], err error) {
	out.Items = []CatalogItem{}
	at, err := protocol.ParseCursor(listItems, q.After)
	if err != nil {
		return out, err
	}
	last, pos := nearShop{millimetres: -1}, int64(-1)
	name := func(shop nearShop, pos int64) string {
		return fmt.Sprintf("n%d.%d.%d", shop.millimetres, shop.seq, pos)
	}
	if at != "" {
		if _, err := fmt.Sscanf(at, "n%d.%d.%d", &last.millimetres, &last.seq, &pos); err != nil || name(last, pos) != at || last.millimetres < 0 {
			return out, errListCursor()
		}
	}
	limit := bounded(q.Limit)
	for n, shop := range shops {
		if shop.millimetres < last.millimetres || shop.millimetres == last.millimetres && shop.seq < last.seq {
			continue
		}
		w := itemWalk{up: true, at: -1, shop: shop.seq, seqs: []int64{shop.seq}}
		if shop == last {
			w.at = pos
		}
		s.shop = facetShops(w.seqs)
		q.Paging = protocol.Paging{Limit: limit - len(out.Items)}
		page, err := is.walk(ctx, q, s, w)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, page.Items...)
		switch more := page.Next; {
		case more != nil:
			if w, err = w.resume(*more); err == nil {
				out.Next = protocol.Cursor(listItems, name(shop, w.at))
			}
			return out, err
		case len(out.Items) == limit && n < len(shops)-1:
			out.Next = protocol.Cursor(listItems, name(shop, out.Items[limit-1].row.pos/2))
			return out, nil
		}
	}
	return out, nil
}
