package storage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/protocol"
)

// A wordIndex is a full-text index: FTS5 on SQLite, a tsvector with GIN on
// PostgreSQL. Its rows have the numbers of the table that it indexes.
type wordIndex struct {
	table, of string
	steps     steps
}

// Steps are the sizes of a search on PostgreSQL: see findPostgres.
type steps struct {
	near int // newest rows that are read first; 0 for none
	few  int // up to so many matches are gathered and sorted at once
	far  int // newest rows that are read next, for a common word not used recently
}

var (
	usualSteps = steps{near: 3000, few: 6000, far: 200_000}
	postWords  = wordIndex{table: "post_word", of: "post", steps: usualSteps}
)

func (w wordIndex) insert(e engine) insert {
	if e == engineSQLite {
		// A statement of several rows has its own savepoint, at which FTS5 writes out its
		// buffer; one of a single row has none.
		return insert{Into: "INSERT INTO " + w.table + " (rowid, words) VALUES ", Row: "(?, ?)", Sorted: true, Alone: true}
	}
	return insert{Into: "INSERT INTO " + w.table + " (seq, words) VALUES ", Row: "(?, array_to_tsvector(string_to_array(trim(?), ' ')))", Sorted: true}
}

// add adds a row.
func (w wordIndex) add(ctx context.Context, tx *Tx, seq int64, words string) error {
	in := w.insert(tx.db.engine)
	return tx.exec(ctx, in.Into+in.Row, seq, strings.TrimSpace(words))
}

// drop removes a row. The words must be those it was added with. Words of other
// rows stay held back.
func (w wordIndex) drop(ctx context.Context, tx *Tx, seq int64, words string) error {
	if err := tx.sql.SettleRow(heldWords, seq); err != nil {
		return err
	}
	if err := tx.dirty(); err != nil {
		return err
	}
	if tx.db.engine == engineSQLite {
		return tx.raw(ctx, "INSERT INTO "+w.table+" ("+w.table+", rowid, words) VALUES ('delete', ?, ?)", seq, words)
	}
	return tx.raw(ctx, "DELETE FROM "+w.table+" WHERE seq = ?", seq)
}

// find returns the newest limit rows before the given one that meet a condition, newest first.
func (w wordIndex) find(ctx context.Context, tx *Tx, c condition, before int64, limit int) ([]int64, error) {
	if tx.db.engine == engineSQLite {
		return list[int64](ctx, tx, "SELECT rowid FROM "+w.table+" WHERE "+w.table+" MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?", c(fts5), before, limit)
	}
	return w.findPostgres(ctx, tx, c(tsquery), before, limit)
}

// match is find for a search.
func (w wordIndex) match(ctx context.Context, tx *Tx, s *search, before int64, limit int) ([]int64, error) {
	return w.find(ctx, tx, s.flat, before, limit)
}

// soonEnough is how many times as many rows as were read first may be read next, by how many of them matched.
const soonEnough = 4

// findPostgres searches in steps. With ORDER BY and LIMIT alone, the planner reads
// the whole table backwards for a rare word; with the index alone, it gathers every
// match of a common one. So it reads the newest rows; all matches, if they are few;
// more of the newest rows; everything.
func (w wordIndex) findPostgres(ctx context.Context, tx *Tx, query string, before int64, limit int) ([]int64, error) {
	if w.steps.near > 0 {
		found, whole, err := w.findWithin(ctx, tx, query, before, limit, w.steps.near)
		if err != nil || whole {
			return found, err
		}
		if len(found) > 0 && w.steps.near/len(found)*limit <= soonEnough*w.steps.near { // the page is full soon after
			if found, whole, err = w.findWithin(ctx, tx, query, before, limit, soonEnough*w.steps.near); err != nil || whole {
				return found, err
			}
		}
	}
	// The row that is not positive is the number of matches.
	found, err := list[int64](ctx, tx, "WITH m AS MATERIALIZED (SELECT seq FROM "+w.table+" WHERE words @@ ?::tsquery LIMIT ?) "+
		"SELECT -count(*) FROM m UNION ALL (SELECT seq FROM m WHERE seq < ? ORDER BY seq DESC LIMIT ?) ORDER BY 1 DESC",
		query, w.steps.few+1, before, limit)
	if err != nil || int(-found[len(found)-1]) <= w.steps.few {
		return found[:max(0, len(found)-1)], err
	}
	found, whole, err := w.findWithin(ctx, tx, query, before, limit, w.steps.far)
	if err != nil || whole {
		return found, err
	}
	return list[int64](ctx, tx, "WITH m AS MATERIALIZED (SELECT seq FROM "+w.table+" WHERE words @@ ?::tsquery AND seq < ?) SELECT seq FROM m ORDER BY "+
		"seq DESC LIMIT ?",
		query, before, limit)
}

// findWithin reads size rows before the given one. whole is true when the page is
// full or there are no more rows.
func (w wordIndex) findWithin(ctx context.Context, tx *Tx, query string, before int64, limit, size int) (found []int64, whole bool, err error) {
	floor := int64(math.MinInt64)
	err = tx.row(ctx, "SELECT seq FROM "+w.of+" WHERE seq < ? ORDER BY seq DESC OFFSET ? LIMIT 1", before, size).Scan(&floor)
	if err != nil && err != ErrNotFound {
		return nil, false, err
	}
	found, err = list[int64](ctx, tx, "SELECT seq FROM "+w.table+" WHERE words @@ ?::tsquery AND seq < ? AND seq > ? ORDER BY seq DESC LIMIT ?",
		query, before, floor, limit)
	return found, len(found) == limit || floor == math.MinInt64, err
}

// matchAll writes a query for every word. Words contain only letters, marks, digits
// and private-use characters (word.go), so quoting is enough.
func matchAll(words []string, quote, and string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(and)
		}
		b.WriteString(quote)
		b.WriteString(w)
		b.WriteString(quote)
	}
	return b.String()
}

func scanInt(s scanner) (n int64, err error) {
	err = s.Scan(&n)
	return n, err
}

// inSeqs is "seq IN (…)" with its arguments.
func inSeqs(seqs []int64) (string, []any) {
	args := make([]any, len(seqs))
	for i, n := range seqs {
		args[i] = n
	}
	return fmt.Sprintf("seq IN (?%s)", strings.Repeat(", ?", len(seqs)-1)), args
}

// walked bounds how many rows one page of walkWords reads.
const walked = 1000

// walkWords lists what meets a search, the newest first. bySeqs reads rows by their numbers, and need not return all of them;
// admits decides what the index does not.
func walkWords[T any](ctx context.Context, tx *Tx, w wordIndex, listing string, s *search, limit int, after string,
	bySeqs func(context.Context, []int64) (map[int64]T, error), admits func(*T) bool) (out protocol.Page[T], err error) {
	out.Items = []T{}
	before, err := position(listing, after, math.MaxInt64)
	if err != nil || s.nothing {
		return out, err
	}
	for read := 0; read < walked; {
		seqs, err := w.match(ctx, tx, s, before, 100)
		if err != nil || len(seqs) == 0 {
			return out, err
		}
		rows, err := bySeqs(ctx, seqs)
		if err != nil {
			return out, err
		}
		for _, seq := range seqs {
			row, ok := rows[seq]
			if !ok || !admits(&row) {
				before = seq
				continue
			}
			if len(out.Items) == limit {
				out.Next = protocol.Cursor(listing, number(before))
				return out, nil
			}
			out.Items, before = append(out.Items, row), seq
		}
		if read += len(seqs); len(seqs) < 100 {
			return out, nil
		}
	}
	out.Next = protocol.Cursor(listing, number(before))
	return out, nil
}

// dropWorded deletes the rows that a query of numbers finds, with their words, in an index whose engine knows the words of a row.
func (tx *Tx) dropWorded(ctx context.Context, w wordIndex, query string, args ...any) error {
	if err := tx.dirty(); err != nil {
		return err
	}
	rows, err := tx.query(ctx, query, args...)
	seqs, err := collect(rows, err, scanInt)
	if err != nil || len(seqs) == 0 {
		return err
	}
	key := "seq"
	if tx.db.engine == engineSQLite {
		key = "rowid"
	}
	for some := range slices.Chunk(seqs, 500) {
		in, args := inSeqs(some)
		if _, err := tx.write(ctx, `DELETE FROM `+w.table+` WHERE `+strings.Replace(in, "seq", key, 1), args...); err != nil {
			return err
		}
		if _, err := tx.write(ctx, `DELETE FROM `+w.of+` WHERE `+in, args...); err != nil {
			return err
		}
	}
	return nil
}
