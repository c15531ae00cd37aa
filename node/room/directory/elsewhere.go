package directory

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"stoa/identity/integrity"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// remoteMerchants adds to a page the businesses of other nodes, which come after those of this one.
func (d *Directory) remoteMerchants(
	ctx context.Context, tx *storage.Tx, in protocol.MerchantQuery, page protocol.Page[protocol.MerchantEntry],
) (protocol.Page[protocol.MerchantEntry], error) {
	room := in.Size() - len(page.Items)
	if in.Local {
		return page, nil
	}
	found, err := tx.RemoteShops().List(ctx, in, max(room, 1), in.After)
	if err != nil {
		return page, err
	}
	if room == 0 {
		if len(found.Items) > 0 {
			page.Next = storage.RemoteStart()
		}
		return page, nil
	}
	near, _, _ := in.Place()
	for _, s := range found.Items {
		base, handle, _ := strings.Cut(s.Actor, "/ap/agents/")
		e := protocol.MerchantEntry{
			Handle: handle, Name: s.Summary.Name, Headline: s.Summary.Headline, HasIdentity: s.Summary.HasIdentity, Node: &s.Host,
			Category: protocol.OrNil(s.Summary.Category), City: protocol.OrNil(s.Summary.City),
			Page: s.Page, Profile: base + strings.TrimPrefix(d.address(handle), d.Base), Untrusted: true,
		}
		if near != nil && s.Summary.Geo != nil {
			e.Distance = new(int(math.Round(near.Distance(*s.Summary.Geo))))
		}
		if !s.SeenAt.IsZero() && tx.Now.Sub(s.SeenAt) > storage.GoneAfter {
			e.GoneSince = &s.SeenAt
		}
		page.Items = append(page.Items, e)
	}
	page.Next = found.Next
	return page, nil
}

// Jobs are the handlers of the room's jobs.
func (d *Directory) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{storage.ShopToldJob: d.tellShop}
}

// tellShop tells the nodes that follow this one what a shop is found by, when that has changed. A shop that is no longer
// listed was taken back when that happened.
func (d *Directory) tellShop(_ context.Context, j storage.Job) (func(context.Context, *storage.Tx) error, error) {
	handle := string(j.Args)
	return func(ctx context.Context, tx *storage.Tx) error {
		s, p, err := tx.Merchants().Summary(ctx, handle)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return err
		}
		same := *s
		same.Updated = time.Time{}
		bare, err := json.Marshal(same)
		if err != nil {
			return err
		}
		digest, err := integrity.Digest(bare)
		if err != nil {
			return err
		}
		_, err = tx.Merchants().Tell(ctx, protocol.BoardID(d.Base), handle, digest, func() ([]byte, error) { return d.offerShop(ctx, tx, p, raw) })
		return err
	}, nil
}

// offerShop is the activity that tells of a shop, with its statement about the summary, if the node keeps a key of it.
func (d *Directory) offerShop(ctx context.Context, tx *storage.Tx, p *storage.StoredProfile, summary []byte) ([]byte, error) {
	digest, err := integrity.Digest(summary)
	if err != nil {
		return nil, err
	}
	signed := protocol.FeedItem{Type: "shop", At: tx.Now, Actor: Author(d.Base, p, tx.Now), Subject: protocol.Subject{Title: p.Draft.Name}, Summary: digest}
	var e protocol.NewsEvidence
	if d.Sign != nil {
		if err := d.Sign(ctx, tx, protocol.BoardID(d.Base), &signed, nil); err != nil {
			return nil, err
		}
	}
	if signed.Evidence != nil {
		if err := json.Unmarshal(signed.Evidence, &e); err != nil {
			return nil, err
		}
	}
	return activity.Site{Base: d.Base}.OfferShop(signed.Actor, d.page(p.Draft.Handle), summary, e.Statement, tx.Now).Bytes()
}
