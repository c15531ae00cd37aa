package directory

import (
	"context"
	"errors"
	"math"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// mostLooked is how many businesses are evaluated for one page of locations.
const mostLooked = 500

// LocationsForUCP lists where businesses are.
func (d *Directory) LocationsForUCP(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.UCPLocationQuery,
) (protocol.Page[protocol.Location], error) {
	page := protocol.Page[protocol.Location]{Items: []protocol.Location{}}
	if in.Handles != nil {
		for _, handle := range in.Handles {
			p, m, err := tx.Merchants().ByHandle(ctx, handle)
			if errors.Is(err, storage.ErrNotFound) || err == nil && p.Draft.Kind != protocol.Business {
				continue
			}
			if err != nil {
				return page, err
			}
			same := func(want string, is *string) bool { return want == "" || is != nil && strings.EqualFold(want, *is) }
			if l, ok := d.location(p, m, &in); ok && same(in.Category, l.Category) && same(in.City, l.City) {
				page.Items = append(page.Items, l)
			}
		}
		return page, nil
	}
	ask := protocol.MerchantQuery{Q: in.Q, Category: in.Category, City: in.City, Paging: in.Paging}
	if in.Near != nil { // in whole metres; location compares exactly
		ask.Near, ask.Radius = in.Near.String(), max(1, int(math.Ceil(in.Radius)))
	}
	for looked := 0; ; {
		ask.Limit = in.Size() - len(page.Items) // so that the cursor is after the last one shown
		found, err := tx.Profiles().ListMerchants(ctx, ask)
		if err != nil {
			return page, err
		}
		for i := range found.Items {
			if l, ok := d.location(&found.Items[i].StoredProfile, found.Items[i].Merchant, &in); ok {
				page.Items = append(page.Items, l)
			}
		}
		page.Next = found.Next
		if looked += ask.Limit; found.Next == nil || len(page.Items) >= in.Size() || looked >= mostLooked {
			return page, nil
		}
		ask.After = *found.Next
	}
}

// location returns where a business is, if it says so and meets the conditions.
func (d *Directory) location(p *storage.StoredProfile, m *storage.StoredMerchant, in *protocol.UCPLocationQuery) (protocol.Location, bool) {
	if m == nil || m.Draft.Address == nil && m.Draft.Geo == nil && m.Draft.City == "" {
		return protocol.Location{}, false
	}
	schedule := m.Schedule(p.Draft.Timezone)
	if at := in.At(); !at.IsZero() {
		if open := protocol.OpennessAt(schedule, at).OpenNow; open == nil || !*open {
			return protocol.Location{}, false
		}
	}
	if in.Near != nil && (m.Draft.Geo == nil || in.Near.Distance(*m.Draft.Geo) > in.Radius) {
		return protocol.Location{}, false
	}
	zone := p.Draft.Timezone
	if m.Draft.Timezone != "" {
		zone = m.Draft.Timezone
	}
	return protocol.Location{
		Handle: p.Draft.Handle, Name: p.Draft.Name, Category: protocol.OrNil(m.Draft.Category), City: protocol.OrNil(m.Draft.City),
		Address: m.Draft.Address, Geo: m.Draft.Geo,
		Timezone: protocol.OrNil(zone), Hours: list(m.Draft.Hours), ExceptionHours: list(m.Draft.ExceptionHours),
		Phone: protocol.OrNil(m.Draft.Phone), Page: d.page(p.Draft.Handle), Profile: d.address(p.Draft.Handle), Untrusted: true,
	}, true
}
