package storage

import (
	"context"
	"strings"
	"time"

	"stoa/protocol"
)

// LogShop begins the object of a log entry with the summary of a shop; its handle follows.
const LogShop = "shop/"

const (
	toldAfter = time.Second     // a change is told so soon,
	toldPause = 5 * time.Minute // and the next one not earlier
)

// EnqueueTold has a shop told to the nodes that follow this one, unless that is to be done already.
func (ms Merchants) EnqueueTold(ctx context.Context, handle string) error {
	var at int64
	err := ms.tx.row(ctx, `SELECT at FROM shop_told WHERE handle = ?`, handle).Scan(&at)
	if orNothing(err) != nil {
		return err
	}
	run := ms.tx.Now.Add(toldAfter)
	if next := moment(at).Add(toldPause); err == nil && next.After(run) {
		run = next
	}
	return ms.tx.Enqueue(ctx, Job{Kind: ShopToldJob, Lane: "tell " + handle, Dedupe: string(ShopToldJob) + " " + handle, Args: []byte(handle), RunAt: run})
}

// Summary returns what other nodes list a shop by; ErrNotFound for one that is not listed.
func (ms Merchants) Summary(ctx context.Context, handle string) (*protocol.ShopSummary, *StoredProfile, error) {
	p, m, err := ms.ByHandle(ctx, handle)
	if err != nil || p.Draft.Kind != protocol.Business || p.Unlisted {
		if err == nil {
			err = ErrNotFound
		}
		return nil, nil, err
	}
	s := &protocol.ShopSummary{Name: p.Draft.Name, Headline: p.Draft.Headline, Tags: p.Draft.Tags[:min(len(p.Draft.Tags), 20)], Updated: p.UpdatedAt,
		AcceptsReturns: p.Draft.Returns != nil && p.Draft.Returns.AcceptsReturns}
	if m == nil {
		return s, p, nil
	}
	s.Category, s.City, s.Geo, s.Items = m.Draft.Category, m.Draft.City, m.Draft.Geo, m.ItemCount
	if m.UpdatedAt.After(s.Updated) {
		s.Updated = m.UpdatedAt
	}
	seq, catalog, err := ms.tx.Items().catalogOf(ctx, handle)
	if err != nil {
		return nil, nil, err
	}
	words, err := ms.tx.Items().storedWords(ctx, seq)
	if err != nil {
		return nil, nil, err
	}
	for w := range strings.FieldsSeq(words) {
		if len(s.Words)+len(w) >= protocol.MaxShopWords {
			break
		}
		if !strings.ContainsFunc(w, private) {
			s.Words += w + " "
		}
	}
	s.Words = strings.TrimSpace(s.Words)
	rows, err := ms.tx.query(ctx, shopPrices, seq, catalog, catalog)
	s.Prices, err = collect(rows, err, func(r scanner) (p protocol.PriceSpan, err error) { return p, r.Scan(&p.Currency, &p.Low, &p.High) })
	return s, p, err
}

const shopPrices = `SELECT p.currency, min(p.minor), max(p.minor) FROM item_price p JOIN item i ON i.pos = p.pos
	WHERE p.seq = ? AND i.since <= ? AND i.until > ? GROUP BY p.currency LIMIT 3`

// Tell puts the summary of a shop into the log of board, in place of an earlier one; told is the activity. It is false when
// the log has a summary with that digest.
func (ms Merchants) Tell(ctx context.Context, board, handle, digest string, told func() ([]byte, error)) (bool, error) {
	var before string
	err := ms.tx.row(ctx, `SELECT digest FROM shop_told WHERE handle = ?`, handle).Scan(&before)
	if orNothing(err) != nil || before == digest {
		return false, orNothing(err)
	}
	activity, err := told()
	if err != nil {
		return false, err
	}
	if _, err := ms.tx.write(ctx, `INSERT INTO shop_told (handle, digest, at) VALUES (?, ?, ?)
		ON CONFLICT (handle) DO UPDATE SET digest = EXCLUDED.digest, at = EXCLUDED.at`, handle, digest, millis(ms.tx.Now)); err != nil {
		return false, err
	}
	if err := ms.tx.Logs().Redact(ctx, board, LogShop+handle); err != nil {
		return false, err
	}
	return true, ms.tx.Logs().Append(ctx, board, LogUpdate, LogShop+handle, activity)
}

const shopTold = `SELECT activity FROM log WHERE object_id = ? AND stream = (SELECT id FROM stream WHERE board = ?) AND NOT redacted AND activity IS NOT NULL
	ORDER BY seq DESC LIMIT 1`

// Told returns the activity that Tell put into the log of board; ErrNotFound when there is none.
func (ms Merchants) Told(ctx context.Context, board, handle string) (activity []byte, err error) {
	err = ms.tx.row(ctx, shopTold, LogShop+handle, board).Scan(&activity)
	return activity, err
}

// untell takes the summary of a shop out of the log of board. It is false when there was none.
func (ms Merchants) untell(ctx context.Context, board, handle string) (bool, error) {
	n, err := ms.tx.write(ctx, `DELETE FROM shop_told WHERE handle = ?`, handle)
	if err != nil || n == 0 {
		return false, err
	}
	return true, ms.tx.Logs().Redact(ctx, board, LogShop+handle)
}
