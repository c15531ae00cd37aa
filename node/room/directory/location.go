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

// LocationsForUCP lists where businesses are: those of this node, then those of followed nodes.
func (d *Directory) LocationsForUCP(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.UCPLocationQuery,
) (page protocol.List[protocol.Location], err error) {
	if in.Handles != nil || in.Actors != nil {
		page.Items, err = d.locationsOf(ctx, tx, &in)
		return page, err
	}
	page.Items = []protocol.Location{}
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
			f := &found.Items[i]
			if f.Remote != nil {
				if l := locationElsewhere(f.Remote, &in); l != nil {
					page.Items = append(page.Items, *l)
				}
			} else if l, ok := d.location(&f.StoredProfile, f.Merchant, &in); ok {
				page.Items = append(page.Items, l)
			}
		}
		page.Next, page.Finding = found.Next, found.Finding
		if looked += ask.Limit; found.Next == nil || len(page.Items) >= in.Size() || looked >= mostLooked {
			return page, nil
		}
		ask.After = *found.Next
	}
}

// locationsOf returns the locations of the businesses that are named, in that order.
func (d *Directory) locationsOf(ctx context.Context, tx *storage.Tx, in *protocol.UCPLocationQuery) ([]protocol.Location, error) {
	all := []protocol.Location{}
	same := func(want string, is *string) bool { return want == "" || is != nil && strings.EqualFold(want, *is) }
	add := func(l protocol.Location, ok bool) {
		if ok && same(in.Category, l.Category) && same(in.City, l.City) {
			all = append(all, l)
		}
	}
	for _, handle := range in.Handles {
		p, m, err := tx.Merchants().ByHandle(ctx, handle)
		if errors.Is(err, storage.ErrNotFound) || err == nil && p.Draft.Kind != protocol.Business {
			continue
		}
		if err != nil {
			return all, err
		}
		add(d.location(p, m, in))
	}
	for _, actor := range in.Actors {
		a, err := tx.RemoteAgents().ByActor(ctx, actor)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return all, err
		}
		if l := locationElsewhere(&a, in); l != nil {
			add(*l, true)
		}
	}
	return all, nil
}

// locationElsewhere is the location of a business of another node, nil if it does not say or does not meet the conditions.
func locationElsewhere(a *storage.RemoteAgent, in *protocol.UCPLocationQuery) *protocol.Location {
	l, ok := elsewhere(a).location(a.Profile(), a.Merchant(), in)
	if !ok {
		return nil
	}
	l.ID, l.Node = a.Actor, &a.Host
	return &l
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
		ID: p.Draft.Handle, Handle: p.Draft.Handle, Name: p.Draft.Name, Category: protocol.OrNil(m.Draft.Category), City: protocol.OrNil(m.Draft.City),
		Address: m.Draft.Address, Geo: m.Draft.Geo,
		Timezone: protocol.OrNil(zone), Hours: list(m.Draft.Hours), ExceptionHours: list(m.Draft.ExceptionHours),
		Phone: protocol.OrNil(m.Draft.Phone), Page: d.page(p.Draft.Handle), Profile: d.address(p.Draft.Handle), Untrusted: true,
	}, true
}
