package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"stoa/protocol"
)

// A StoredMerchant is the merchant record of a business.
type StoredMerchant struct {
	Draft     protocol.MerchantDraft // without items
	Items     []StoredItem
	UpdatedAt time.Time

	// The open interval that was current or next when it was last computed; both zero
	// if the hours are unknown.
	opens, closes int64
}

// A StoredItem is an item that a merchant sells.
type StoredItem struct {
	ID       string
	Draft    protocol.ItemDraft // without price
	Currency string             // of the price; "" on request
	Minor    int64              // the price in minor units
}

// Price is the item's price, nil when it is on request.
func (i StoredItem) Price() *protocol.Money {
	if i.Currency == "" {
		return nil
	}
	return new(protocol.MoneyOf(i.Currency, i.Minor))
}

// Schedule is the merchant's hours in its time zone, otherwise in that of the
// profile; nil when they are unknown. A nil record has none.
func (m *StoredMerchant) Schedule(profileZone string) *protocol.Schedule {
	if m == nil {
		return nil
	}
	zone := m.Draft.Timezone
	if zone == "" {
		zone = profileZone
	}
	return protocol.NewSchedule(zone, m.Draft.Hours, m.Draft.ExceptionHours)
}

// span computes the open interval that is stored with the record.
func (m *StoredMerchant) span(profileZone string, now time.Time) {
	m.opens, m.closes = 0, 0
	s := m.Schedule(profileZone)
	if s == nil {
		return
	}
	span, _, ok := s.Span(now)
	if !ok { // computed again after the known part
		span.From = now.AddDate(1, 0, 0)
		span.To = span.From
	}
	m.opens, m.closes = millis(span.From), millis(span.To)
}

// open reports whether the business is open at a moment by the stored interval;
// after its end the hours are used.
func (m *StoredMerchant) open(profileZone string, now time.Time) bool {
	if ms := millis(now); ms < m.closes {
		return m.opens <= ms
	}
	open := protocol.OpennessAt(m.Schedule(profileZone), now).OpenNow
	return open != nil && *open
}

// Merchants reads and writes the records of businesses, with their items.
type Merchants struct{ tx *Tx }

func (tx *Tx) Merchants() Merchants { return Merchants{tx} }

// Put stores the record of the business of that handle, replacing the previous
// one. An item keeps its id while its SKU exists or was removed recently.
// ErrNotFound when there is no such profile.
func (ms Merchants) Put(ctx context.Context, handle string, draft protocol.MerchantDraft) (*StoredMerchant, error) {
	return ms.put(ctx, handle, draft, ms.tx.Now)
}

func (ms Merchants) put(ctx context.Context, handle string, draft protocol.MerchantDraft, written time.Time) (*StoredMerchant, error) {
	r, err := ms.tx.Profiles().lock(ctx, handle)
	if err != nil {
		return nil, err
	}
	p, err := r.profile()
	if err != nil {
		return nil, err
	}
	m, err := ms.store(ctx, r.Seq, p, draft, written)
	if err != nil {
		return nil, err
	}
	if err := ms.tx.Profiles().rerank(ctx, r, p, m); err != nil {
		return nil, err
	}
	return m, ms.tx.Probes().put(ctx, handle, FromMerchant, []string{draft.Website})
}

// store writes a record and its items, without a new version.
func (ms Merchants) store(ctx context.Context, seq int64, p *StoredProfile, draft protocol.MerchantDraft, written time.Time) (m *StoredMerchant, err error) {
	m = &StoredMerchant{Draft: draft, UpdatedAt: written}
	if m.Items, err = ms.putItems(ctx, seq, draft.Items); err != nil {
		return nil, err
	}
	m.Draft.Items = nil
	m.span(p.Draft.Timezone, ms.tx.Now)
	raw, err := json.Marshal(m.Draft)
	if err != nil {
		return nil, fmt.Errorf("encode merchant record: %w", err)
	}
	if _, err := ms.tx.write(ctx, `INSERT INTO merchant (seq, record, opens, closes, updated_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (seq) DO UPDATE SET record = EXCLUDED.record, opens = EXCLUDED.opens, closes = EXCLUDED.closes, updated_at = EXCLUDED.updated_at`,
		seq, string(raw), m.opens, m.closes, millis(written)); err != nil {
		return nil, fmt.Errorf("store merchant record: %w", err)
	}
	return m, nil
}

// moveHours computes the hours again after the profile has changed: its zone
// applies if the record names none.
func (ms Merchants) moveHours(ctx context.Context, seq int64, p *StoredProfile, m *StoredMerchant) error {
	m.span(p.Draft.Timezone, ms.tx.Now)
	_, err := ms.tx.write(ctx, `UPDATE merchant SET opens = ?, closes = ? WHERE seq = ?`, m.opens, m.closes, seq)
	return err
}

// Removed items keep their id for their SKU for so long, and so many.
const (
	keepAway = 90 * 24 * time.Hour
	maxAway  = 1000
)

func (ms Merchants) putItems(ctx context.Context, seq int64, drafts []protocol.ItemDraft) ([]StoredItem, error) {
	if _, err := ms.tx.write(ctx, `UPDATE merchant_item SET place = NULL, away_at = ? WHERE seq = ? AND place IS NOT NULL`, millis(ms.tx.Now), seq); err != nil {
		return nil, err
	}
	items := make([]StoredItem, 0, len(drafts))
	var args []any
	for n, d := range drafts {
		i := StoredItem{Draft: d}
		var currency, minor any
		if d.Price != nil {
			var fault *protocol.Fault
			if i.Minor, fault = d.Price.Minor(); fault != nil {
				return nil, fmt.Errorf("storage: price of %s: %s", d.SKU, fault.Detail)
			}
			i.Currency = d.Price.Currency
			currency, minor = i.Currency, i.Minor
		}
		i.Draft.Price = nil
		doc, err := json.Marshal(i.Draft)
		if err != nil {
			return nil, fmt.Errorf("encode item: %w", err)
		}
		items = append(items, i)
		args = append(args, seq, d.SKU, protocol.NewID(protocol.ItemID, ms.tx.Now), n, string(doc), currency, minor)
	}
	if err := ms.placeItems(ctx, items, args); err != nil {
		return nil, err
	}
	_, err := ms.tx.write(ctx, `DELETE FROM merchant_item WHERE seq = ? AND place IS NULL AND (away_at < ?
		OR sku NOT IN (SELECT sku FROM merchant_item WHERE seq = ? AND place IS NULL ORDER BY away_at DESC, sku LIMIT ?))`,
		seq, millis(ms.tx.Now.Add(-keepAway)), seq, maxAway)
	return items, err
}

// placeItems writes items with one statement and finds the id of each.
func (ms Merchants) placeItems(ctx context.Context, items []StoredItem, args []any) error {
	if len(items) == 0 {
		return nil
	}
	if err := ms.tx.dirty(); err != nil {
		return err
	}
	rows, err := ms.tx.query(ctx, `INSERT INTO merchant_item (seq, sku, id, place, doc, currency, minor) VALUES (?, ?, ?, ?, ?, ?, ?)`+
		strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?)`, len(items)-1)+`
		ON CONFLICT (seq, sku) DO UPDATE SET place = EXCLUDED.place, doc = EXCLUDED.doc, currency = EXCLUDED.currency, minor = EXCLUDED.minor, away_at = 0
		RETURNING sku, id`, args...)
	named, err := collect(rows, err, func(s scanner) (n [2]string, err error) { return n, s.Scan(&n[0], &n[1]) })
	if err != nil {
		return fmt.Errorf("store items: %w", err)
	}
	ids := map[string]string{}
	for _, n := range named {
		ids[n[0]] = n[1]
	}
	for i := range items {
		items[i].ID = ids[items[i].Draft.SKU]
	}
	return nil
}

// ByHandle returns the record of a business, with its items; nil when the profile
// has no record, ErrNotFound when there is no such profile.
func (ms Merchants) ByHandle(ctx context.Context, handle string) (*StoredProfile, *StoredMerchant, error) {
	r, err := ms.tx.Profiles().where(ctx, "handle = ?", handle)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.profile()
	if err != nil {
		return nil, nil, err
	}
	m, err := ms.of(ctx, r.Seq)
	return p, m, err
}

// of is the whole record of a profile, nil if it has none.
func (ms Merchants) of(ctx context.Context, seq int64) (*StoredMerchant, error) {
	one := map[int64]*ListedProfile{seq: {}}
	err := ms.read(ctx, one, "seq IN (?)", []any{seq}, true)
	return one[seq].Merchant, err
}

// BySeq returns the records among those profiles, without items, by number; there may be some hundred.
func (ms Merchants) BySeq(ctx context.Context, seqs []int64) (map[int64]*StoredMerchant, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	profiles := map[int64]*ListedProfile{}
	for _, seq := range seqs {
		profiles[seq] = &ListedProfile{}
	}
	in, args := inSeqs(seqs)
	if err := ms.read(ctx, profiles, in, args, false); err != nil {
		return nil, err
	}
	found := map[int64]*StoredMerchant{}
	for seq, p := range profiles {
		if p.Merchant != nil {
			found[seq] = p.Merchant
		}
	}
	return found, nil
}

// read reads the records of profiles, with their items if requested.
func (ms Merchants) read(ctx context.Context, profiles map[int64]*ListedProfile, in string, args []any, items bool) error {
	type entry struct {
		seq int64
		m   StoredMerchant
	}
	rows, err := ms.tx.query(ctx, `SELECT seq, record, opens, closes, updated_at FROM merchant WHERE `+in, args...)
	found, err := collect(rows, err, func(s scanner) (e entry, err error) {
		var record []byte
		var updated int64
		if err := s.Scan(&e.seq, &record, &e.m.opens, &e.m.closes, &updated); err != nil {
			return e, err
		}
		e.m.UpdatedAt = moment(updated)
		return e, json.Unmarshal(record, &e.m.Draft)
	})
	if err != nil {
		return fmt.Errorf("read merchant records: %w", err)
	}
	for i := range found {
		if p := profiles[found[i].seq]; p != nil {
			p.Merchant = &found[i].m
		}
	}
	if len(found) == 0 || !items {
		return nil
	}
	type thing struct {
		seq  int64
		item StoredItem
	}
	rows, err = ms.tx.query(ctx, `SELECT seq, id, doc, COALESCE(currency, ''), COALESCE(minor, 0) FROM merchant_item WHERE `+in+` AND place IS NOT NULL `+
		`ORDER BY seq, place`, args...)
	things, err := collect(rows, err, func(s scanner) (t thing, err error) {
		var doc []byte
		if err := s.Scan(&t.seq, &t.item.ID, &doc, &t.item.Currency, &t.item.Minor); err != nil {
			return t, err
		}
		return t, json.Unmarshal(doc, &t.item.Draft)
	})
	if err != nil {
		return fmt.Errorf("read items: %w", err)
	}
	for _, t := range things {
		if p := profiles[t.seq]; p != nil && p.Merchant != nil {
			p.Merchant.Items = append(p.Merchant.Items, t.item)
		}
	}
	return nil
}

// TakeNews returns the news of a listed business that the feed has not published:
// that it joined, and items that were never listed before. Each is returned once.
func (ms Merchants) TakeNews(ctx context.Context, handle string) (joined bool, items []StoredItem, err error) {
	n, err := ms.tx.write(ctx, `UPDATE profile SET joined_at = ? WHERE handle = ? AND listed AND joined_at = 0`, millis(ms.tx.Now), handle)
	if err != nil {
		return false, nil, err
	}
	rows, err := ms.tx.query(ctx, `UPDATE merchant_item SET listed_at = ? WHERE place IS NOT NULL AND listed_at = 0
		AND seq = (SELECT seq FROM profile WHERE handle = ? AND listed) RETURNING id, doc, COALESCE(currency, ''), COALESCE(minor, 0)`, millis(ms.tx.Now), handle)
	items, err = collect(rows, err, func(s scanner) (i StoredItem, err error) {
		var doc []byte
		if err := s.Scan(&i.ID, &doc, &i.Currency, &i.Minor); err != nil {
			return i, err
		}
		return i, json.Unmarshal(doc, &i.Draft)
	})
	return n > 0, items, err
}

// ItemIDs are the ids of every stored item that a profile has or had.
func (ms Merchants) ItemIDs(ctx context.Context, handle string) ([]string, error) {
	rows, err := ms.tx.query(ctx, `SELECT id FROM merchant_item WHERE seq = (SELECT seq FROM profile WHERE handle = ?)`, handle)
	return collect(rows, err, func(s scanner) (id string, err error) { return id, s.Scan(&id) })
}

// RefreshHours computes again the hours of merchants whose stored interval has
// ended, and returns how many. Without it lists are correct but slower.
func (ms Merchants) RefreshHours(ctx context.Context) (int, error) {
	rows, err := ms.tx.query(ctx, `SELECT seq FROM merchant WHERE closes > 0 AND closes <= ? ORDER BY closes LIMIT 500`, millis(ms.tx.Now))
	seqs, err := collect(rows, err, scanInt)
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	found := make([]version, len(seqs))
	for i, seq := range seqs {
		found[i].seq = seq
	}
	profiles, err := ms.tx.Profiles().ofVersions(ctx, found, false, false)
	if err != nil {
		return 0, err
	}
	for _, seq := range seqs {
		p := profiles[seq]
		if p == nil || p.Merchant == nil {
			return 0, fmt.Errorf("storage: merchant %d has no profile", seq)
		}
		if err := ms.moveHours(ctx, seq, &p.StoredProfile, p.Merchant); err != nil {
			return 0, err
		}
	}
	return len(seqs), nil
}

// drop deletes a record with its items.
func (ms Merchants) drop(ctx context.Context, seq int64) error {
	if _, err := ms.tx.write(ctx, `DELETE FROM merchant_item WHERE seq = ?`, seq); err != nil {
		return err
	}
	_, err := ms.tx.write(ctx, `DELETE FROM merchant WHERE seq = ?`, seq)
	return err
}
