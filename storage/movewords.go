package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"stoa/protocol"
)

// A wordsStep is an index of words, and what builds it from the rows, some at a time: some returns the last row that it has read, and how
// many there were.
type wordsStep struct {
	table string
	some  func(ctx context.Context, tx *Tx, last int64) (int64, int, error)
}

// moveWords are the indexes of words that a move builds from the rows.
var moveWords = []wordsStep{
	{"post_word", func(ctx context.Context, tx *Tx, last int64) (int64, int, error) {
		return tx.Posts().wordSome(ctx, last)
	}},
	{"item_word", wordItems},
	{"profile_word", wordProfiles},
	{"remote_agent_word", wordRemoteAgents},
	{"ard_entry_word", wordEntries},
}

const moveWordRows = 1000

// rebuild builds what is not copied.
func (m *mover) rebuild(ctx context.Context) error {
	at := slices.IndexFunc(moveWords, func(w wordsStep) bool { return w.table == m.state.Words })
	if m.state.Built {
		at = len(moveWords)
	}
	for done := int64(0); at < len(moveWords); {
		doing, read := moveWords[at], 0
		if err := m.write(ctx, func(ctx context.Context, tx *Tx, next *moving) (err error) {
			if next.Last, read, err = doing.some(ctx, tx, m.state.Last); err != nil {
				return fmt.Errorf("build %s: %w", doing.table, err)
			}
			if read == 0 {
				if next.Last, next.Built = 0, at+1 == len(moveWords); !next.Built {
					next.Words = moveWords[at+1].table
				}
			}
			return tx.settleWords()
		}); err != nil {
			return err
		}
		if done += int64(read); read == 0 {
			at, done = at+1, 0
		} else {
			m.report(MoveStep{"build", doing.table, done, 0})
		}
	}
	if m.to.engine == engineSQLite {
		return nil
	}
	for len(m.state.Later) > 0 {
		m.report(MoveStep{"build the indexes of words", "", 0, 0})
		if err := m.write(ctx, func(ctx context.Context, tx *Tx, next *moving) error {
			next.Later = next.Later[1:]
			return errors.Join(tx.raw(ctx, `SET LOCAL maintenance_work_mem = '256MB'`), tx.raw(ctx, m.state.Later[0]))
		}); err != nil {
			return err
		}
	}
	return m.to.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.exec(ctx, `ANALYZE`) })
}

// dropLater drops the indexes of words of PostgreSQL: made at once they take a tenth of the time that they take row by row.
func dropLater(ctx context.Context, tx *Tx, next *moving) error {
	type index struct{ Name, Def string }
	all, err := list[index](ctx, tx, `
		SELECT indexname AS name, indexdef AS def FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '% USING gin %'
		ORDER BY indexname`)
	for _, i := range all {
		next.Later = append(next.Later, i.Def)
		if err == nil {
			err = tx.raw(ctx, `DROP INDEX `+i.Name)
		}
	}
	return err
}

func wordItems(ctx context.Context, tx *Tx, last int64) (int64, int, error) {
	rows, err := tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.indexed AND i.pos > ? ORDER BY i.pos LIMIT ?`, last, moveWordRows)
	found, err := collect(rows, err, scanItem)
	for n := range found {
		if err == nil {
			last = found[n].row.pos
			err = itemWords.add(ctx, tx, last, itemText(&found[n], map[string]int{}))
		}
	}
	return last, len(found), err
}

// wordProfiles gives each version of the directory the words of its profile. Those that ended had other words, maybe, and are for
// walks that began before the move.
func wordProfiles(ctx context.Context, tx *Tx, last int64) (int64, int, error) {
	type version struct{ Pos, Seq int64 }
	if last == 0 {
		last = math.MinInt64
	}
	found, err := list[version](ctx, tx, `SELECT pos, seq FROM profile_rank WHERE pos > ? ORDER BY pos LIMIT ?`, last, moveWordRows)
	for _, v := range found {
		if err == nil {
			last, err = v.Pos, wordProfile(ctx, tx, v.Pos, v.Seq)
		}
	}
	return last, len(found), err
}

func wordProfile(ctx context.Context, tx *Tx, pos, seq int64) error {
	r, err := find[profileRow](ctx, tx, profileTable.from+`WHERE seq = ?`, seq)
	if err != nil {
		return orNothing(err)
	}
	p, err := r.profile()
	if err != nil {
		return err
	}
	m, err := tx.Merchants().of(ctx, seq)
	if err != nil {
		return err
	}
	words, _ := profileText(p, m)
	if tx.db.engine == engineSQLite {
		return tx.exec(ctx, `INSERT INTO profile_word (rowid, words) VALUES (?, ?)`, pos, words)
	}
	return tx.exec(ctx, `UPDATE profile_rank SET words = array_to_tsvector(string_to_array(trim(?), ' ')) WHERE pos = ?`, words, pos)
}

func wordRemoteAgents(ctx context.Context, tx *Tx, last int64) (int64, int, error) {
	const page = `SELECT seq, agent, doc FROM remote_agent WHERE seq > ? ORDER BY seq LIMIT ?`
	return wordDocs(ctx, tx, page, remoteWords, last, func(agent string, doc []byte) (string, error) {
		a := RemoteAgent{Agent: agent}
		err := json.Unmarshal(doc, &a.Summary)
		return a.words(), err
	})
}

func wordEntries(ctx context.Context, tx *Tx, last int64) (int64, int, error) {
	const page = `SELECT seq, '', doc FROM ard_entry WHERE seq > ? ORDER BY seq LIMIT ?`
	return wordDocs(ctx, tx, page, ardWordIndex, last, func(_ string, doc []byte) (string, error) {
		var e protocol.ClaimedEntry
		err := json.Unmarshal(doc, &e)
		return entryText(&e), err
	})
}

func wordDocs(ctx context.Context, tx *Tx, query string, w wordIndex, last int64, words func(agent string, doc []byte) (string, error)) (int64, int, error) {
	type row struct {
		seq   int64
		agent string
		doc   []byte
	}
	rows, err := tx.query(ctx, query, last, moveWordRows)
	found, err := collect(rows, err, func(s scanner) (r row, err error) { return r, s.Scan(&r.seq, &r.agent, &r.doc) })
	for _, r := range found {
		var text string
		if err == nil {
			text, err = words(r.agent, r.doc)
		}
		if err == nil {
			last, err = r.seq, w.add(ctx, tx, r.seq, text)
		}
	}
	return last, len(found), err
}
