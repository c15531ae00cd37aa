package directory

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"

	"stoa/protocol"
	"stoa/storage"
)

// Merchants lists the businesses (spec §2.15).
func (d *Directory) Merchants(
	ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.MerchantQuery,
) (protocol.List[protocol.MerchantEntry], error) {
	near, err := located(ctx, tx, &in.PlaceFilter)
	if err != nil {
		return protocol.List[protocol.MerchantEntry]{}, err
	}
	found, err := tx.Profiles().ListMerchants(ctx, in)
	page := entries(found.Page, func(f *storage.ListedProfile) protocol.MerchantEntry {
		if f.Remote == nil {
			return d.merchant(tx, f, near)
		}
		if f.Merchant != nil {
			f.Merchant.Prices = f.Remote.Prices(in.In())
		}
		e := elsewhere(f.Remote).merchant(tx, f, near)
		e.Elsewhere = f.Remote.Elsewhere(tx.Now)
		return e
	})
	return protocol.List[protocol.MerchantEntry]{Page: page, Finding: found.Finding}, err
}

// located is the place of a filter, nil for none. A name becomes coordinates.
func located(ctx context.Context, tx *storage.Tx, in *protocol.PlaceFilter) (*protocol.Geo, error) {
	if name := in.NearName(); name != "" {
		places, err := tx.FindPlaces(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(places) != 1 {
			return nil, protocol.PlaceError(places)
		}
		in.Near = places[0].Geo.String()
	}
	near, _, _ := in.Place()
	return near, nil
}

// entries makes a page of entries.
func entries[In, Out any](found protocol.Page[In], entry func(*In) Out) protocol.Page[Out] {
	page := protocol.Page[Out]{Items: make([]Out, 0, len(found.Items)), Next: found.Next}
	for i := range found.Items {
		page.Items = append(page.Items, entry(&found.Items[i]))
	}
	return page
}

func (d *Directory) merchant(tx *storage.Tx, f *storage.ListedProfile, near *protocol.Geo) protocol.MerchantEntry {
	p := f.Draft
	e := protocol.MerchantEntry{
		Handle: p.Handle, Name: p.Name, Headline: p.Headline,
		Openness:    protocol.OpennessAt(f.Merchant.Schedule(p.Timezone), tx.Now),
		HasIdentity: f.ERC8004 != "", Reputation: d.Reputation(&f.StoredProfile), Page: d.page(p.Handle), Profile: d.address(p.Handle), Untrusted: true,
	}
	if f.Merchant != nil {
		e.Category, e.City = protocol.OrNil(f.Merchant.Draft.Category), protocol.OrNil(f.Merchant.Draft.City)
		if at := f.Merchant.Draft.Geo; near != nil && at != nil {
			e.Distance = new(int(math.Round(near.Distance(*at))))
		}
		if s := f.Merchant.Prices; s != nil {
			e.PriceRange = &protocol.PriceRange{Min: protocol.MoneyOf(s.Currency, s.Low), Max: protocol.MoneyOf(s.Currency, s.High)}
		}
	}
	e.Alive, e.LastSeenAt = liveness(&f.StoredProfile)
	return e
}

// Merchant is one business's public page as data (spec §2.15).
func (d *Directory) Merchant(ctx context.Context, tx *storage.Tx, _ protocol.Caller, in protocol.MerchantInfoQuery) (protocol.Merchant, error) {
	p, m, err := tx.Merchants().ByHandle(ctx, in.Handle)
	if err != nil || p.Draft.Kind != protocol.Business {
		return protocol.Merchant{}, storage.Missing(err, protocol.Errorf(protocol.NotFound, "there is no business @%s on this node", in.Handle))
	}
	profile := d.Profile(p)
	out := protocol.Merchant{
		Handle: profile.Handle, Name: profile.Name, Headline: profile.Headline, Description: profile.Description,
		Timezone: protocol.OrNil(profile.Timezone), Hours: []protocol.DayHours{}, ExceptionHours: []protocol.ExceptionHours{},
		Openness: protocol.OpennessAt(m.Schedule(profile.Timezone), tx.Now), Items: []protocol.Item{},
		Tags: profile.Tags, Languages: profile.Languages, Identity: profile.Identity, Reputation: profile.Reputation,
		Returns: profile.Returns, ReturnRequest: protocol.ReturnRequestOf(profile),
		ContactPolicy: profile.ContactPolicy, Alive: profile.Alive, LastSeenAt: profile.LastSeenAt,
		Page: profile.Interfaces.Page, Profile: profile.Interfaces.Profile, UpdatedAt: p.UpdatedAt, Untrusted: true,
	}
	if m == nil {
		return out, nil
	}
	out.Category, out.City, out.Address, out.Geo = protocol.OrNil(m.Draft.Category), protocol.OrNil(m.Draft.City), m.Draft.Address, m.Draft.Geo
	out.Hours, out.ExceptionHours = list(m.Draft.Hours), list(m.Draft.ExceptionHours)
	out.Phone, out.Website = protocol.OrNil(m.Draft.Phone), protocol.OrNil(m.Draft.Website)
	if m.Draft.Timezone != "" {
		out.Timezone = &m.Draft.Timezone
	}
	if m.UpdatedAt.After(out.UpdatedAt) {
		out.UpdatedAt = m.UpdatedAt
	}
	items := make([]protocol.Item, 0, len(m.Items))
	for i := range m.Items {
		items = append(items, Item(d.Base, &m.Items[i]))
	}
	if in.Limit == 0 {
		items = protocol.Short(items, out)
	}
	out.Items = items[:min(len(items), cmp.Or(in.Limit, len(items)))]
	m.Items = m.Items[:len(out.Items)]
	out.ItemCount, out.ItemsNext = m.ItemCount, m.ItemsNext()
	return out, nil
}

// Record returns the record of a business as the owner wrote it.
func (d *Directory) Record(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.Owned) (protocol.MerchantRecord, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.MerchantRecord{}, err
	}
	if _, err := d.business(ctx, tx, handle); err != nil {
		return protocol.MerchantRecord{}, err
	}
	_, m, err := tx.Merchants().Own(ctx, handle)
	return record(handle, m), err
}

// PutRecord writes the whole record of a business and announces in the feed the
// items that are listed for the first time.
func (d *Directory) PutRecord(ctx context.Context, tx *storage.Tx, c protocol.Caller, in protocol.MerchantInput) (protocol.MerchantRecord, error) {
	handle, err := c.ActsAs(in.Handle)
	if err != nil {
		return protocol.MerchantRecord{}, err
	}
	p, err := d.business(ctx, tx, handle)
	if err != nil {
		return protocol.MerchantRecord{}, err
	}
	draft := in.MerchantDraft
	if len(draft.Hours)+len(draft.ExceptionHours) > 0 && draft.Timezone == "" && p.Draft.Timezone == "" {
		return protocol.MerchantRecord{}, protocol.Invalid(protocol.Fault{Pointer: "/timezone", Code: "required",
			Detail: "hours need a time zone, here or in the profile"})
	}
	m, changes, err := tx.Merchants().Put(ctx, handle, draft)
	if err != nil {
		return protocol.MerchantRecord{}, CatalogError(err)
	}
	if c.Standing == protocol.Operator {
		if err := tx.Audit(ctx, c.Actor(), "merchant put", handle, ""); err != nil {
			return protocol.MerchantRecord{}, err
		}
	}
	return record(handle, m), d.announceNews(ctx, tx, p, changes)
}

func (d *Directory) business(ctx context.Context, tx *storage.Tx, handle string) (*storage.StoredProfile, error) {
	p, err := tx.Profiles().Own(ctx, handle)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, protocol.NoAgent(handle)
	}
	if err == nil && p.Draft.Kind != protocol.Business {
		return nil, protocol.Invalid(protocol.Fault{Pointer: "/handle", Code: "not-for-kind", Detail: "@" + handle +
			" is a person; merchant records are for businesses"})
	}
	return p, err
}

// record converts a stored record to the form that its owner wrote.
func record(handle string, m *storage.StoredMerchant) protocol.MerchantRecord {
	r := protocol.MerchantRecord{Handle: handle, Untrusted: true}
	if m == nil {
		return r
	}
	r.Record, r.UpdatedAt, r.ItemCount = m.Draft, &m.UpdatedAt, m.ItemCount
	if m.ItemCount <= protocol.MaxRecordItems {
		for i := range m.Items {
			r.Record.Items = append(r.Record.Items, m.Items[i].Draft)
		}
	}
	return r
}

// announceNews announces in the feed the news of a listed business: that it joined, new
// items, and prices that fell with a change of its catalog, which may be nil.
func (d *Directory) announceNews(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, c *storage.ItemChanges) error {
	if err := tx.Profiles().EnqueueTold(ctx, p.Draft.Handle); err != nil {
		return err
	}
	joined, err := tx.Merchants().TakeJoined(ctx, p.Draft.Handle)
	if err != nil {
		return err
	}
	if joined {
		if err := d.announce(ctx, tx, p, protocol.FeedMerchantJoined,
			protocol.Subject{Kind: "profile", ID: p.Draft.Handle, URL: d.page(p.Draft.Handle), Title: p.Draft.Name},
			p.Draft.Name+" joined. "+p.Draft.Headline); err != nil {
			return err
		}
	}
	fresh, cheaper, err := tx.Items().TakeNews(ctx, p.Draft.Handle, c)
	if err != nil {
		return err
	}
	listing := func(i *storage.StoredItem, summary string) error {
		return d.announce(ctx, tx, p, protocol.FeedListing, protocol.Subject{Kind: "item", ID: i.ID, URL: d.page(p.Draft.Handle) + "#" + i.ID,
			Title: i.Draft.Name}, summary+".")
	}
	for n := range fresh {
		i := &fresh[n]
		summary := p.Draft.Name + " offers " + i.Draft.Name
		if price := i.Price(); price != nil {
			summary += ", " + price.Currency + " " + price.Amount
		}
		if err := listing(i, summary); err != nil {
			return err
		}
	}
	for n := range cheaper {
		i, now := &cheaper[n].StoredItem, cheaper[n].Price()
		if err := listing(i, p.Draft.Name+" lowered the price of "+i.Draft.Name+" to "+now.Currency+" "+now.Amount+" from "+cheaper[n].Before.Amount); err != nil {
			return err
		}
	}
	return nil
}

func (d *Directory) announce(
	ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, kind protocol.FeedType, subject protocol.Subject, summary string,
) error {
	item := protocol.FeedItem{
		ID: protocol.NewID(protocol.FeedID, tx.Now), Type: kind, At: tx.Now, Actor: Author(d.Base, p, tx.Now),
		Subject: subject, Summary: strings.TrimSpace(summary), Untrusted: true,
	}
	board := protocol.BoardID(d.Base)
	if d.Sign != nil {
		if err := d.Sign(ctx, tx, board, &item, nil); err != nil {
			return err
		}
	}
	return tx.Feed().Publish(ctx, board, item)
}

// showNews shows or hides the feed items about a profile, also at the nodes that follow this one. Those no longer list it when
// they are hidden.
func (d *Directory) showNews(ctx context.Context, tx *storage.Tx, handle string, visible bool) error {
	ids, err := tx.Items().ToldIDs(ctx, handle)
	if err != nil {
		return err
	}
	p, err := tx.Profiles().Own(ctx, handle)
	if err != nil {
		return err
	}
	return tx.Feed().ShowAgent(ctx, protocol.BoardID(d.Base), handle, p.ERC8004, ids, visible)
}
