package storage

import (
	"context"
	"time"
)

// The feed announces items of a merchant when they are on sale for the first time, and
// when their price falls: some at once, and some in a day, so that no catalog fills it.

const (
	newsAtOnce = 20
	newsADay   = 100
)

// TakeJoined reports whether a listed business has not been announced, and marks it.
func (ms Merchants) TakeJoined(ctx context.Context, handle string) (bool, error) {
	n, err := ms.tx.writeAside(ctx, `UPDATE profile SET joined_at = ? WHERE handle = ? AND listed AND joined_at = 0`, millis(ms.tx.Now), handle)
	return n > 0, err
}

// TakeNews returns the items of a listed business to announce: those that were never on
// sale while it was listed, and those of the change whose price fell. Each is returned
// once, and those beyond the limits never. c may be nil.
func (is Items) TakeNews(ctx context.Context, handle string, c *ItemChanges) (fresh []StoredItem, cheaper []Cheaper, err error) {
	r, err := is.tx.Profiles().where(ctx, "handle = ?", handle)
	if err != nil || !r.Listed {
		return nil, nil, err
	}
	h, err := scanShop(is.tx.row(ctx, `SELECT `+shopColumns+` FROM merchant WHERE seq = ?`, r.Seq))
	if err != nil {
		return nil, nil, orNothing(err)
	}
	rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i
		WHERE i.seq = ? AND i.pos > ? AND i.since <= ? AND i.until > ?
		ORDER BY i.place, i.pos LIMIT ?`,
		h.seq, 2*h.news+1, h.catalog, h.catalog, newsAtOnce)
	if fresh, err = collect(rows, err, scanItem); err != nil {
		return nil, nil, err
	}
	if c != nil {
		cheaper = c.Cheaper
	}
	if len(fresh)+len(cheaper) == 0 {
		return nil, nil, nil
	}
	if is.tx.Now.Sub(moment(h.toldAt)) > 24*time.Hour {
		h.toldAt, h.toldN = millis(is.tx.Now), 0
	}
	left := min(newsAtOnce, newsADay-h.toldN)
	fresh = fresh[:min(len(fresh), max(left, 0))]
	cheaper = cheaper[:min(len(cheaper), max(left-len(fresh), 0))]
	if _, err := is.tx.write(ctx, `UPDATE merchant SET
		news = (SELECT COALESCE(max(pos), 0) / 2 FROM item WHERE seq = ? AND since <= ?),
		told_at = ?, told_n = ? WHERE seq = ?`,
		h.seq, h.catalog, h.toldAt, h.toldN+len(fresh)+len(cheaper), h.seq); err != nil {
		return nil, nil, err
	}
	if len(fresh) > 0 {
		var at []int64
		for n := range fresh {
			at = append(at, fresh[n].row.pos)
		}
		_, err = is.tx.write(ctx, `UPDATE item SET told = TRUE WHERE pos IN (`+marks(len(at))+`)`, anyOf(at)...)
	}
	for n := range cheaper {
		if err == nil && !cheaper[n].row.told {
			_, err = is.tx.write(ctx, `UPDATE item SET told = TRUE WHERE pos = ?`, cheaper[n].row.pos)
		}
	}
	return fresh, cheaper, err
}

// ToldIDs are the ids of the items of a profile that the feed announced.
func (is Items) ToldIDs(ctx context.Context, handle string) ([]string, error) {
	return list[string](ctx, is.tx, `SELECT DISTINCT id FROM item WHERE seq = (SELECT seq FROM profile WHERE handle = ?) AND told`, handle)
}

// dropSome deletes some items of a profile, and reports whether there are more.
func (is Items) dropSome(ctx context.Context, seq int64) (more bool, err error) {
	at, err := list[int64](ctx, is.tx, `SELECT pos FROM item WHERE seq = ? ORDER BY place LIMIT ?`, seq, forgetAtOnce)
	if err != nil || len(at) == 0 {
		return false, err
	}
	if err := is.dropWords(ctx, at); err != nil {
		return false, err
	}
	if _, err := is.tx.write(ctx, `DELETE FROM item WHERE pos IN (`+marks(len(at))+`)`, anyOf(at)...); err != nil {
		return false, err
	}
	return len(at) == forgetAtOnce, nil
}

// DropAll deletes the items of a deleted profile, some now and the others by a job.
func (is Items) DropAll(ctx context.Context, seq int64) error {
	more, err := is.dropSome(ctx, seq)
	if err != nil || !more {
		return err
	}
	return is.tx.Enqueue(ctx, Job{Kind: DropItemsJob, Lane: string(DropItemsJob), Dedupe: string(DropItemsJob) + " " + number(seq), Args: []byte(number(seq))})
}
