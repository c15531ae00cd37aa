package storage

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// The words of items, profiles and posts as their writers spell them, and in how many each is: what a word of a question may have been
// meant for, and how rare it is. They leave with the last row that has them.

// longestTerm bounds the words that are counted, in bytes of Latin letters.
const longestTerm = 32

// isTerm reports whether a word is counted: those of letters are.
func isTerm(w string) bool {
	return len(w) > 2 && len(w) <= 2*longestTerm && utf8.RuneCountInString(w) > 2 && !strings.ContainsAny(w, "0123456789")
}

// Tables of words. Each is like the first.
const (
	itemTerms    = "item_term"
	profileTerms = "profile_term"
	postTerms    = "post_term"
)

// countTerms adds words to those of a table, or with times -1 takes them away.
func (tx *Tx) countTerms(ctx context.Context, table string, count map[string]int, times int) error {
	// In one order, so that two processes do not wait for each other.
	for some := range slices.Chunk(sortedKeys(count), 500) {
		if times < 0 {
			if err := tx.uncount(ctx, table, some, count); err != nil {
				return err
			}
			continue
		}
		args := make([]any, 0, 6*len(some))
		for _, w := range some {
			head, tail, size := edges(w)
			args = append(args, w, keyOf(w), head, tail, size, count[w])
		}
		if _, err := tx.write(ctx, `INSERT INTO `+table+` (word, key, head, tail, size, n) VALUES (?, ?, ?, ?, ?, ?)`+
			strings.Repeat(`, (?, ?, ?, ?, ?, ?)`, len(some)-1)+` ON CONFLICT (word) DO UPDATE SET n = `+table+`.n + EXCLUDED.n`, args...); err != nil {
			return err
		}
	}
	return nil
}

// dropTerms takes away the words of rows.
func (is Items) dropTerms(ctx context.Context, at []int64) error {
	for some := range slices.Chunk(at, 500) {
		rows, err := is.tx.query(ctx, `SELECT `+itemColumns+` FROM item i WHERE i.indexed AND i.pos IN (`+marks(len(some))+`)`, anyOf(some)...)
		found, err := collect(rows, err, scanItem)
		if err != nil {
			return err
		}
		count := map[string]int{}
		for n := range found {
			itemText(&found[n], count)
		}
		if err := is.tx.countTerms(ctx, itemTerms, count, -1); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) uncount(ctx context.Context, table string, words []string, count map[string]int) error {
	for _, w := range words {
		if _, err := tx.write(ctx, `UPDATE `+table+` SET n = n - ? WHERE word = ?`, count[w], w); err != nil {
			return err
		}
	}
	_, err := tx.write(ctx, `DELETE FROM `+table+` WHERE n <= 0 AND word IN (`+marks(len(words))+`)`, toAny(words)...)
	return err
}

// edges are the first and last two letters of a word in Latin letters, and how many it has.
func edges(w string) (head, tail string, size int) {
	r := []rune(latin(w))
	n := min(2, len(r))
	return string(r[:n]), string(r[len(r)-n:]), len(r)
}

// A spelling is a counted word.
type spelling struct {
	Word, Key string
	N         int64
}

// known are how many rows have words of each key, at most.
func (tx *Tx) known(ctx context.Context, tables, keys []string) (map[string]int64, error) {
	n := map[string]int64{}
	if len(keys) == 0 {
		return n, nil
	}
	for _, table := range tables {
		found, err := list[spelling](ctx, tx, termsKnown(table, len(keys)), toAny(keys)...)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			n[s.Key] += s.N
		}
	}
	return n, nil
}

func termsKnown(table string, keys int) string {
	return `SELECT '' AS word, key, CAST(sum(n) AS BIGINT) AS n FROM ` + table + ` WHERE key IN (` + marks(keys) + `) GROUP BY key`
}

// Sizes of the search for what a word was meant for.
const (
	spellingsLooked = 20_000
	mostMeant       = 3
)

// meant are the counted words that a word is nearest to, the likeliest first; none when it is too short or too far
// from all. Edits at both ends of it at once are not found.
func (tx *Tx) meant(ctx context.Context, tables []string, w string) ([]spelling, error) {
	head, tail, size := edges(w)
	most := editsIn(size)
	if most == 0 {
		return nil, nil
	}
	var all []spelling
	for _, table := range tables {
		found, err := list[spelling](ctx, tx, termsNear(table),
			head, size-most, size+most, spellingsLooked, tail, size-most, size+most, spellingsLooked)
		if err != nil {
			return nil, err
		}
		if size == 4 { // two letters in the middle that changed places
			r := []rune(latin(w))
			r[1], r[2] = r[2], r[1]
			more, err := list[spelling](ctx, tx, `SELECT word, key, n FROM `+table+` WHERE word = ?`, string(r))
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
		all = append(all, found...)
	}
	return nearest(w, all, most), nil
}

func termsNear(table string) string {
	return `SELECT word, key, n FROM (SELECT word, key, n FROM ` + table + ` WHERE head = ? AND size BETWEEN ? AND ? LIMIT ?) h
		UNION SELECT word, key, n FROM (SELECT word, key, n FROM ` + table + ` WHERE tail = ? AND size BETWEEN ? AND ? LIMIT ?) t ORDER BY word`
}

// nearest are the spellings that are at most so many edits from a word, in letters or by ear.
func nearest(w string, found []spelling, most int) []spelling {
	own, key := latin(w), keyOf(w)
	var all [][2]int64 // by edits, another first letter, and how many have it, with the index
	for i, s := range found {
		if s.Word == w {
			continue
		}
		edits := apart(own, latin(s.Word), most)
		if len(key) > 3 && edits > 0 {
			edits = min(edits, max(1, apart(key, s.Key, most)))
		}
		if edits <= most {
			place := int64(edits) << 41
			if s.Word[0] != w[0] {
				place |= 1 << 40
			}
			all = append(all, [2]int64{place + 1<<39 - min(s.N, 1<<39), int64(i)})
		}
	}
	inOrder(all)
	var out []spelling
	for _, n := range all {
		near := found[n[1]]
		if len(out) == mostMeant || n[0]>>41 > all[0][0]>>41 {
			break
		}
		if !slices.ContainsFunc(out, func(s spelling) bool { return s.Key == near.Key }) {
			out = append(out, near)
		}
	}
	return out
}

// recount counts the words of a profile, in order, in place of those that it had.
func (ps Profiles) recount(ctx context.Context, seq int64, terms string) error {
	had, err := orZero(find[string](ctx, ps.tx, saidBy, seq))
	if err != nil || had == terms {
		return err
	}
	fresh, gone := map[string]int{}, map[string]int{}
	for w := range strings.FieldsSeq(had) {
		gone[w] = 1
	}
	for w := range strings.FieldsSeq(terms) {
		if gone[w] == 0 {
			fresh[w] = 1
		}
		delete(gone, w)
	}
	if err := ps.tx.countTerms(ctx, profileTerms, gone, -1); err != nil {
		return err
	}
	if err := ps.tx.countTerms(ctx, profileTerms, fresh, 1); err != nil {
		return err
	}
	if terms == "" {
		return ps.tx.exec(ctx, `DELETE FROM profile_said WHERE seq = ?`, seq)
	}
	return ps.tx.exec(ctx, `INSERT INTO profile_said (seq, words) VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET words = EXCLUDED.words`, seq, terms)
}

const saidBy = `SELECT words FROM profile_said WHERE seq = ?`
