package storage

import (
	"context"
	"fmt"
	"math"
	"time"

	"stoa/protocol"
)

// Lists of profiles show those that are alive first and then those that changed
// last, and both change during a walk. So a listed profile has versions. A version
// is a row of profile_rank with its words in the index; only its end ever changes.
// The clock counts every beginning and end, in the order of commits: its row is
// locked until the transaction ends. A walk's cursor contains the number at which
// it began, and it reads the versions of that number.
//
// Ended versions are deleted after a while (Profiles.PruneRanks); a walk that is older is
// refused.

// forever is the end of a version that has not ended.
const forever = math.MaxInt64

// place is the number that orders versions: liveness, then the time of the last
// change, then the clock, which makes it unique.
func place(alive protocol.Liveness, fresh, clock int64) int64 {
	rank := int64(1)
	switch alive {
	case protocol.LivenessAlive:
		rank = 2
	case protocol.LivenessDead:
		rank = 0
	}
	return rank<<61 | (fresh&(1<<42-1))<<19 | clock&(1<<19-1)
}

// advanceClock increments the clock of the directory and returns its number.
func (ps Profiles) advanceClock(ctx context.Context) (int64, error) {
	if err := ps.tx.dirty(); err != nil {
		return 0, err
	}
	return find[int64](ctx, ps.tx, `UPDATE profile_clock SET now = now + 1 WHERE id = 1 RETURNING now`)
}

// clockNow is the number of the clock and the number up to which ended versions are
// deleted.
func (ps Profiles) clockNow(ctx context.Context) (now, pruned int64, err error) {
	err = ps.tx.row(ctx, `SELECT now, pruned FROM profile_clock WHERE id = 1`).Scan(&now, &pruned)
	return now, pruned, err
}

// closeVersion ends the version of a profile that has one.
func (ps Profiles) closeVersion(ctx context.Context, pos, clock int64) error {
	if pos == 0 {
		return nil
	}
	return ps.tx.exec(ctx, `UPDATE profile_rank SET until = ?, closed_at = ? WHERE pos = ?`, clock, millis(ps.tx.Now), pos)
}

// openVersion begins the version at r.Pos.
func (ps Profiles) openVersion(ctx context.Context, r *profileRow, p *StoredProfile, m *StoredMerchant, clock int64) (err error) {
	words, terms := profileText(p, m)
	if err := ps.recount(ctx, r.Seq, terms); err != nil {
		return err
	}
	ps.tx.addsWords()
	if ps.tx.db.engine == engineSQLite {
		if _, err = ps.tx.write(ctx, `INSERT INTO profile_rank (pos, seq, since, until) VALUES (?, ?, ?, ?)`, r.Pos, r.Seq, clock, int64(forever)); err == nil {
			_, err = ps.tx.write(ctx, `INSERT INTO profile_word (rowid, words) VALUES (?, ?)`, r.Pos, words)
		}
	} else {
		_, err = ps.tx.write(ctx, `INSERT INTO profile_rank (pos, seq, since, until, words) VALUES (?, ?, ?, ?, array_to_tsvector(string_to_array(trim(?), ' ')))`,
			r.Pos, r.Seq, clock, int64(forever), words)
	}
	if err != nil {
		return fmt.Errorf("place profile %s: %w", r.Handle, err)
	}
	return nil
}

// rerank gives a changed profile a new version, or none when it is no longer
// listed.
func (ps Profiles) rerank(ctx context.Context, r *profileRow, p *StoredProfile, m *StoredMerchant) error {
	if !r.Listed && r.Pos == 0 {
		return nil
	}
	if m != nil {
		if err := ps.tx.Merchants().putPlaces(ctx, r, m); err != nil {
			return err
		}
	}
	clock, err := ps.advanceClock(ctx)
	if err != nil {
		return err
	}
	if err := ps.closeVersion(ctx, r.Pos, clock); err != nil {
		return err
	}
	r.Pos = 0
	if r.Listed {
		r.Pos = place(protocol.Liveness(r.Alive), freshness(r, m), clock)
	}
	if _, err := ps.tx.writeAside(ctx, `UPDATE profile SET pos = ? WHERE seq = ?`, nullable(r.Pos), r.Seq); err != nil {
		return err
	}
	if !r.Listed {
		return ps.recount(ctx, r.Seq, "")
	}
	return ps.openVersion(ctx, r, p, m, clock)
}

func nullable(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func freshness(r *profileRow, m *StoredMerchant) int64 {
	if m == nil {
		return r.UpdatedAt
	}
	return max(r.UpdatedAt, millis(m.UpdatedAt))
}

// PruneRanks deletes some of the versions that ended before a time, and returns how
// many.
func (ps Profiles) PruneRanks(ctx context.Context, before time.Time) (int, error) {
	type ended struct{ Pos, Until int64 }
	gone, err := list[ended](ctx, ps.tx, `SELECT pos, until FROM profile_rank WHERE closed_at IS NOT NULL AND closed_at < ?
		ORDER BY closed_at LIMIT 500`, millis(before))
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	last := int64(0)
	for _, e := range gone {
		last = max(last, e.Until)
		if _, err := ps.tx.write(ctx, `DELETE FROM profile_rank WHERE pos = ?`, e.Pos); err != nil {
			return 0, err
		}
		if ps.tx.db.engine == engineSQLite {
			if _, err := ps.tx.write(ctx, `DELETE FROM profile_word WHERE rowid = ?`, e.Pos); err != nil {
				return 0, err
			}
		}
	}
	_, err = ps.tx.write(ctx, `UPDATE profile_clock SET pruned = CASE WHEN pruned < ? THEN ? ELSE pruned END WHERE id = 1`, last, last)
	return len(gone), err
}

// profileWordsVersion is the version of the rules for the words of profiles: those
// of word.go and of profileword.go.
var profileWordsVersion = fmt.Sprint(postWordsVersion, ".9")

const profileWordsSetting = "words of profiles"

// placeUnplaced creates versions for listed profiles without one: those of a
// database from before versions existed, and all of them after a change of the
// index's contents.
func (db *DB) placeUnplaced(ctx context.Context) error {
	var made string
	if err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		made, err = tx.Settings().Get(ctx, profileWordsSetting)
		return err
	}); err != nil {
		return err
	}
	if made != profileWordsVersion {
		if err := db.Write(ctx, clearRanks); err != nil {
			return err
		}
	}
	for {
		n := 0
		err := db.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			n, err = tx.Profiles().placeSome(ctx)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// clearRanks empties the index. Walks that began before are refused afterwards.
func clearRanks(ctx context.Context, tx *Tx) error {
	now, err := tx.Profiles().advanceClock(ctx)
	if err != nil {
		return err
	}
	texts := []string{`UPDATE profile SET pos = NULL WHERE pos IS NOT NULL`, `DELETE FROM profile_rank`, `DELETE FROM profile_said`, `DELETE FROM profile_term`}
	if tx.db.engine == engineSQLite {
		texts = append(texts, `INSERT INTO profile_word (profile_word) VALUES ('delete-all')`)
	}
	for _, text := range texts {
		if _, err := tx.write(ctx, text); err != nil {
			return err
		}
	}
	if _, err := tx.write(ctx, `UPDATE profile_clock SET pruned = ? WHERE id = 1`, now); err != nil {
		return err
	}
	return tx.Settings().Put(ctx, profileWordsSetting, profileWordsVersion)
}

// placeSome creates versions for some profiles, and stores their probe targets,
// which older databases lack. The lock prevents two processes that start at the
// same time from doing the same profiles.
func (ps Profiles) placeSome(ctx context.Context) (int, error) {
	if _, err := ps.tx.write(ctx, `UPDATE profile_clock SET now = now WHERE id = 1`); err != nil {
		return 0, err
	}
	found, err := list[profileRow](ctx, ps.tx, profileTable.from+`WHERE listed AND pos IS NULL ORDER BY seq LIMIT 500`)
	if err != nil {
		return 0, err
	}
	for i := range found {
		p, err := found[i].profile()
		if err != nil {
			return 0, err
		}
		if err := ps.tx.Items().indexShop(ctx, &found[i]); err != nil {
			return 0, err
		}
		m, err := ps.tx.Merchants().of(ctx, found[i].Seq)
		if err != nil {
			return 0, err
		}
		if err := ps.rerank(ctx, &found[i], p, m); err != nil {
			return 0, err
		}
		if err := ps.tx.Probes().put(ctx, found[i].Handle, FromProfile, profileProbes(p)); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
