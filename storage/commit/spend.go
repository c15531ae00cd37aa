package commit

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"stoa/protocol"
)

// Spend spends a proof or nonce. The second use, by any process, in this batch or
// any earlier one, is an error with the code of s. While another process has not
// committed its use, this one waits for that.
func (tx *Tx) Spend(ctx context.Context, s protocol.Spend) error {
	b := tx.batch
	if b == nil {
		return ErrReadOnly
	}
	used := &protocol.Error{Code: s.Code, Detail: "This was used before; each proof of work and each signature can be used for one write only."}
	switch state, declared := b.ahead[s.Key]; {
	case declared && state != aheadFree:
		return used
	case declared:
		b.ahead[s.Key] = aheadTaken
		b.taken = append(b.taken, s.Key)
		b.touched = true
		return nil
	}
	n, err := tx.conn.exec(tx.In(ctx), `INSERT INTO spent (key, until) VALUES (?, ?) ON CONFLICT DO NOTHING`, s.Key[:], s.Until.UnixMilli())
	if err != nil {
		return err
	}
	if n == 0 {
		return used
	}
	b.touched = true
	b.spent = append(b.spent, s.Key)
	return nil
}

// An aheadState is the state of a key that an op of the batch declared (DB.Write).
type aheadState byte

const (
	aheadUsed  aheadState = iota // spent by an earlier batch
	aheadFree                    // its row is inserted, for the first op that spends it
	aheadTaken                   // spent by an op of this batch
)

const spentInsert = `INSERT INTO spent (key, until) SELECT * FROM unnest($1::bytea[], $2::int8[]) ON CONFLICT DO NOTHING RETURNING key`

// spendAhead inserts the keys that the ops declared, before any of them runs and
// with one statement for all: the returned rows are those that were not spent. It
// saves PostgreSQL a round trip each; on SQLite a prepared statement for one row is
// faster. They are sorted by key, so that processes which insert the same ones wait
// for each other in one order. Which op gets a key is decided when it calls Spend;
// a key of an op that fails is free again for the next one.
func (b *batch) spendAhead(ctx context.Context, p *pipeline, ops []*op) error {
	var fresh []protocol.Spend
	for _, o := range ops {
		for _, s := range o.spends {
			if _, known := b.ahead[s.Key]; known {
				continue
			}
			if b.ahead == nil {
				b.ahead = map[[16]byte]aheadState{}
			}
			b.ahead[s.Key] = aheadUsed
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(x, y protocol.Spend) int { return bytes.Compare(x.Key[:], y.Key[:]) })
	if len(fresh) == 0 {
		return nil
	}
	if b.db.direct {
		if err := b.conn.keep(ctx, spentInsert); err != nil {
			return err
		}
	}
	keys, untils := make([][]byte, len(fresh)), make([]int64, len(fresh))
	for i, s := range fresh {
		keys[i], untils[i] = s.Key[:], s.Until.UnixMilli()
	}
	p.query(spentInsert, []any{keys, untils}, func(rows pgx.Rows) error {
		for rows.Next() {
			var raw []byte
			if err := rows.Scan(&raw); err != nil {
				return err
			}
			if len(raw) == 16 {
				b.ahead[[16]byte(raw)] = aheadFree
			}
		}
		return rows.Err()
	})
	return nil
}

// giveBack deletes the rows of declared keys that no op has spent.
func (b *batch) giveBack(ctx context.Context, to execer) error {
	for key, state := range b.ahead {
		if state != aheadFree {
			continue
		}
		if _, err := to.exec(ctx, `DELETE FROM spent WHERE key = ?`, key[:]); err != nil {
			return fmt.Errorf("give back what was not spent: %w", err)
		}
	}
	return nil
}
