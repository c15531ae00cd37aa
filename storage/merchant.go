package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stoa/protocol"
)

// A StoredMerchant is the merchant record of a business.
type StoredMerchant struct {
	Draft     protocol.MerchantDraft // without items
	Items     []StoredItem           // the first of them, when they are read
	ItemCount int
	Prices    *protocol.PriceSpan // of what is on sale, in the currency of a list of businesses; nil where it was not read
	UpdatedAt time.Time

	seq     int64  // of its profile
	sells   string // words of the items, for the directory; only where it is needed
	catalog int64  // version that readers see

	// The open interval that was current or next when it was last computed; both zero
	// if the hours are unknown.
	opens, closes int64
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
// one. Its items become all that it sells; an item keeps its id while its SKU exists
// or was removed recently. Without items, and with more on sale than a record may hold,
// these stay. ErrNotFound when there is no such profile; [ErrLarge] when items would
// replace more than a record may hold; [ErrImporting].
func (ms Merchants) Put(ctx context.Context, handle string, draft protocol.MerchantDraft) (*StoredMerchant, *ItemChanges, error) {
	return ms.put(ctx, handle, draft, ms.tx.Now)
}

// ErrLarge is the error of a record with items for a business that sells more items
// than a record may hold.
var ErrLarge = errors.New("storage: the catalog is larger than a merchant record")

func (ms Merchants) put(ctx context.Context, handle string, draft protocol.MerchantDraft, written time.Time) (*StoredMerchant, *ItemChanges, error) {
	r, err := ms.tx.Profiles().lock(ctx, handle)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.profile()
	if err != nil {
		return nil, nil, err
	}
	m, err := ms.store(ctx, r.Seq, p, draft, written)
	if err != nil {
		return nil, nil, err
	}
	is := ms.tx.Items()
	h, err := is.shopOf(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	c := &ItemChanges{}
	m.ItemCount, m.catalog = h.items, h.catalog
	if h.items > protocol.MaxRecordItems {
		if len(draft.Items) > 0 {
			return nil, nil, ErrLarge
		}
	} else if h.items+len(draft.Items) > 0 {
		if c, err = is.put(ctx, h, draft.Items, true); err != nil {
			return nil, nil, err
		}
		m.Items, m.ItemCount = c.Items, h.items
		if _, err := ms.tx.write(ctx, `UPDATE merchant SET items = ?, item_bytes = ? WHERE seq = ?`, h.items, h.bytes, h.seq); err != nil {
			return nil, nil, err
		}
		if err := is.openRoom(ctx, h); err != nil {
			return nil, nil, err
		}
		if _, err := is.storeWords(ctx, r.Seq, shopText(c.Items)); err != nil {
			return nil, nil, err
		}
	}
	if m.sells, err = is.storedWords(ctx, r.Seq); err != nil {
		return nil, nil, err
	}
	if err := ms.tx.Profiles().rerank(ctx, r, p, m); err != nil {
		return nil, nil, err
	}
	return m, c, ms.tx.Probes().put(ctx, handle, FromMerchant, []string{draft.Website})
}

// store writes a record without its items, and without a new version.
func (ms Merchants) store(ctx context.Context, seq int64, p *StoredProfile, draft protocol.MerchantDraft, written time.Time) (m *StoredMerchant, err error) {
	m = &StoredMerchant{Draft: draft, UpdatedAt: written}
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
	return ms.tx.exec(ctx, `UPDATE merchant SET opens = ?, closes = ? WHERE seq = ?`, m.opens, m.closes, seq)
}

// ByHandle returns the record of a business that is shown, with its first items; nil when the
// profile has no record, ErrNotFound when there is no such profile.
func (ms Merchants) ByHandle(ctx context.Context, handle string) (*StoredProfile, *StoredMerchant, error) {
	return ms.first(ctx, "handle = ? AND state = ''", handle)
}

// Own is ByHandle for its owner and the operators, also while the business is not shown.
func (ms Merchants) Own(ctx context.Context, handle string) (*StoredProfile, *StoredMerchant, error) {
	return ms.first(ctx, "handle = ?", handle)
}

func (ms Merchants) first(ctx context.Context, where, handle string) (*StoredProfile, *StoredMerchant, error) {
	r, err := ms.tx.Profiles().where(ctx, where, handle)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.profile()
	if err != nil {
		return nil, nil, err
	}
	one := map[int64]*ListedProfile{r.Seq: {}}
	err = ms.read(ctx, one, "seq IN (?)", []any{r.Seq}, true)
	return p, one[r.Seq].Merchant, err
}

// ItemsNext is the cursor after the first items of a record, nil when there are no more.
func (m *StoredMerchant) ItemsNext() *string {
	if m == nil || len(m.Items) == m.ItemCount || len(m.Items) == 0 {
		return nil
	}
	last := m.Items[len(m.Items)-1].row
	return protocol.Cursor(listItems, placed{last.place, last.pos}.String())
}

// of is the record of a profile with the words of what it sells, nil if it has none.
func (ms Merchants) of(ctx context.Context, seq int64) (*StoredMerchant, error) {
	one := map[int64]*ListedProfile{seq: {}}
	if err := ms.read(ctx, one, "seq IN (?)", []any{seq}, false); err != nil || one[seq].Merchant == nil {
		return nil, err
	}
	m := one[seq].Merchant
	var err error
	m.sells, err = ms.tx.Items().storedWords(ctx, seq)
	return m, err
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

// read reads the records of profiles, with their first items if requested.
func (ms Merchants) read(ctx context.Context, profiles map[int64]*ListedProfile, in string, args []any, items bool) error {
	type row struct {
		Seq, Opens, Closes, Catalog int64
		Record                      protocol.MerchantDraft
		UpdatedAt                   time.Time
		Items                       int
	}
	found, err := list[row](ctx, ms.tx, `SELECT seq, record, opens, closes, updated_at, items, catalog FROM merchant WHERE `+in, args...)
	if err != nil {
		return fmt.Errorf("read merchant records: %w", err)
	}
	for _, r := range found {
		m := &StoredMerchant{
			Draft: r.Record, ItemCount: r.Items, UpdatedAt: r.UpdatedAt, seq: r.Seq, catalog: r.Catalog, opens: r.Opens, closes: r.Closes,
		}
		if items && m.ItemCount > 0 {
			if m.Items, err = ms.tx.Items().first(ctx, r.Seq, m.catalog); err != nil {
				return fmt.Errorf("read items: %w", err)
			}
		}
		if p := profiles[r.Seq]; p != nil {
			p.Merchant = m
		}
	}
	return nil
}

// RefreshHours computes again the hours of merchants whose stored interval has
// ended, and returns how many. Without it lists are correct but slower.
func (ms Merchants) RefreshHours(ctx context.Context) (int, error) {
	seqs, err := list[int64](ctx, ms.tx, `SELECT seq FROM merchant WHERE closes > 0 AND closes <= ? ORDER BY closes LIMIT 500`, millis(ms.tx.Now))
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	found := make([]version, len(seqs))
	for i, seq := range seqs {
		found[i].Seq = seq
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

// drop deletes a record, and its items as far as one transaction may: a job deletes the
// others, which nobody sees.
func (ms Merchants) drop(ctx context.Context, seq int64) error {
	for _, table := range []string{"merchant_word", "merchant_place", "merchant"} {
		if _, err := ms.tx.write(ctx, `DELETE FROM `+table+` WHERE seq = ?`, seq); err != nil {
			return err
		}
	}
	return ms.tx.Items().DropAll(ctx, seq)
}
