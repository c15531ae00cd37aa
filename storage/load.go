package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stoa/protocol"
)

// Functions that fill a database with many new rows, without lookups.

// LoadPost stores a visible post of this node unchanged, with its thread, replies
// and resolution, which must be true when the transaction ends. CountThreads counts
// the loaded replies.
func (tx *Tx) LoadPost(p *protocol.StoredPost) error {
	if tx.batch == nil {
		return ErrReadOnly
	}
	seq, err := seqOf(p.ID)
	if err != nil {
		return err
	}
	p.State = protocol.Visible
	return tx.holdPost(p, seq)
}

// CountThreads sets the number of visible posts below each root.
func (tx *Tx) CountThreads(ctx context.Context) error {
	_, err := tx.write(ctx, `UPDATE post SET thread_count = t.n FROM
		(SELECT root, count(*) AS n FROM post WHERE root IS NOT NULL AND state = 'visible' GROUP BY root) t WHERE post.id = t.root`)
	return err
}

// LoadProfile stores a new profile with its liveness and, for a business, its
// merchant record; nil for none. Nothing is probed. ErrExists when handle or
// identity is taken. Load some hundred per transaction: each advances the clock of
// the lists.
func (tx *Tx) LoadProfile(ctx context.Context, p *StoredProfile, merchant *protocol.MerchantDraft) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	p.Draft.Listed = nil
	raw, err := json.Marshal(p.Draft)
	if err != nil {
		return fmt.Errorf("encode profile: %w", err)
	}
	p.CreatedAt, p.UpdatedAt = tx.Now, tx.Now
	r := profileRow{Handle: p.Draft.Handle, Draft: string(raw), ERC8004: p.ERC8004, KeyHash: p.KeyHash, IdentityNote: p.IdentityNote,
		Listed: !p.Unlisted, Alive: string(p.Alive), LastSeenAt: millis(p.LastSeenAt), CreatedAt: millis(tx.Now), UpdatedAt: millis(tx.Now)}
	if r.Alive == "" {
		r.Alive = string(protocol.LivenessUnknown)
	}
	if err := tx.saveProfile(ctx, &r); err != nil {
		return err
	}
	var m *StoredMerchant
	if merchant != nil {
		if m, err = tx.storeMerchant(ctx, r.Seq, p, *merchant, tx.Now); err != nil {
			return err
		}
	}
	return tx.rerank(ctx, &r, p, m)
}

// gathered is the setting that holds the definitions of the indexes that a load has
// dropped, so that the next start makes them if the load did not end.
const gathered = "indexes to make"

// Load runs fn, which fills the database. On PostgreSQL the full-text indexes are
// dropped before and made afterwards, also when fn fails: that takes a fraction of
// the time, but searches are slow meanwhile.
func (db *DB) Load(ctx context.Context, fn func() error) error {
	if db.engine == enginePostgres {
		if err := db.Write(ctx, dropWords); err != nil {
			return fmt.Errorf("prepare a load: %w", err)
		}
	}
	return errors.Join(fn(), db.makeWords(context.WithoutCancel(ctx)))
}

func dropWords(ctx context.Context, tx *Tx) error {
	rows, err := tx.query(ctx, `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%USING gin%'`)
	indexes, err := collect(rows, err, func(s scanner) (i [2]string, err error) { return i, s.Scan(&i[0], &i[1]) })
	if err != nil || len(indexes) == 0 {
		return err
	}
	texts, err := tx.dropped(ctx)
	if err != nil {
		return err
	}
	for _, i := range indexes {
		texts = append(texts, i[1])
		if _, err := tx.write(ctx, `DROP INDEX "`+i[0]+`"`); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	return tx.PutSetting(ctx, gathered, string(raw))
}

// dropped are the definitions of the dropped indexes.
func (tx *Tx) dropped(ctx context.Context) (texts []string, err error) {
	raw, err := tx.Setting(ctx, gathered)
	if err != nil || raw == "" {
		return nil, err
	}
	return texts, json.Unmarshal([]byte(raw), &texts)
}

// makeWords makes the indexes that a load has dropped.
func (db *DB) makeWords(ctx context.Context) error {
	if db.engine != enginePostgres {
		return nil
	}
	err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		texts, err := tx.dropped(ctx)
		if err != nil || len(texts) == 0 {
			return err
		}
		if _, err := tx.write(ctx, `SET LOCAL maintenance_work_mem = '256MB'`); err != nil {
			return err
		}
		for _, text := range texts {
			if _, err := tx.write(ctx, strings.Replace(text, "CREATE INDEX", "CREATE INDEX IF NOT EXISTS", 1)); err != nil {
				return err
			}
		}
		return tx.PutSetting(ctx, gathered, "")
	})
	if err != nil {
		return fmt.Errorf("make the indexes of words: %w", err)
	}
	return nil
}
