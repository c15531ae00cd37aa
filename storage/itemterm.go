package storage

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// The words of items as their sellers spell them, and in how many items each is: what a word of a question may have been meant
// for, and how rare it is. They are counted with each row that is indexed, and leave with the last one.

// longestTerm bounds the words that are counted, in bytes of Latin letters.
const longestTerm = 32

// isTerm reports whether a word is counted: those of letters are.
func isTerm(w string) bool {
	return len(w) > 2 && len(w) <= 2*longestTerm && utf8.RuneCountInString(w) > 2 && !strings.ContainsAny(w, "0123456789")
}

// countTerms adds words to those of items, or with times -1 takes them away.
func (is Items) countTerms(ctx context.Context, count map[string]int, times int) error {
	// In one order, so that two processes do not wait for each other.
	for some := range slices.Chunk(sortedKeys(count), 500) {
		if times < 0 {
			if err := is.uncount(ctx, some, count); err != nil {
				return err
			}
			continue
		}
		args := make([]any, 0, 6*len(some))
		for _, w := range some {
			head, tail, size := edges(w)
			args = append(args, w, keyOf(w), head, tail, size, count[w])
		}
		if _, err := is.tx.write(ctx, `INSERT INTO item_term (word, key, head, tail, size, n) VALUES (?, ?, ?, ?, ?, ?)`+
			strings.Repeat(`, (?, ?, ?, ?, ?, ?)`, len(some)-1)+` ON CONFLICT (word) DO UPDATE SET n = item_term.n + EXCLUDED.n`, args...); err != nil {
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
		if err := is.countTerms(ctx, count, -1); err != nil {
			return err
		}
	}
	return nil
}

func (is Items) uncount(ctx context.Context, words []string, count map[string]int) error {
	for _, w := range words {
		if _, err := is.tx.write(ctx, `UPDATE item_term SET n = n - ? WHERE word = ?`, count[w], w); err != nil {
			return err
		}
	}
	_, err := is.tx.write(ctx, `DELETE FROM item_term WHERE n <= 0 AND word IN (`+marks(len(words))+`)`, toAny(words)...)
	return err
}

// edges are the first and last two letters of a word in Latin letters, and how many it has.
func edges(w string) (head, tail string, size int) {
	r := []rune(latin(w))
	n := min(2, len(r))
	return string(r[:n]), string(r[len(r)-n:]), len(r)
}

// A spelling is a word of items.
type spelling struct {
	Word, Key string
	N         int64
}

// known are how many items have words of each key, at most.
func (is Items) known(ctx context.Context, keys []string) (map[string]int64, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	found, err := list[spelling](ctx, is.tx, `SELECT '' AS word, key, CAST(sum(n) AS BIGINT) AS n FROM item_term
		WHERE key IN (`+marks(len(keys))+`) GROUP BY key`, toAny(keys)...)
	n := map[string]int64{}
	for _, s := range found {
		n[s.Key] = s.N
	}
	return n, err
}

// mostSpelled is how many other spellings of the words of a search are looked for.
const mostSpelled = 40

// spell adds to a search the words of items that have the keys of its words, and returns the words that no item has.
func (is Items) spell(ctx context.Context, s *search) (missing []string, err error) {
	words := map[string][]string{}
	for _, w := range s.words {
		if !strings.Contains(w, pairOf) && isTerm(w) {
			words[keyOf(w)] = append(words[keyOf(w)], w)
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	var keys []string
	for k := range words {
		keys = append(keys, k)
	}
	found, err := list[spelling](ctx, is.tx, `SELECT word, key, n FROM item_term
		WHERE key IN (`+marks(len(keys))+`) ORDER BY word LIMIT ?`, append(toAny(keys), mostSpelled)...)
	s.spelled = map[string][]string{}
	for _, f := range found {
		for _, w := range words[f.Key] {
			if w != f.Word {
				s.spelled[w] = append(s.spelled[w], f.Word)
			}
		}
	}
	for _, w := range s.words {
		if k := keyOf(w); len(words[k]) > 0 && !slices.ContainsFunc(found, func(f spelling) bool { return f.Key == k }) {
			missing = append(missing, w)
		}
	}
	return missing, err
}

// Sizes of the search for what a word was meant for.
const (
	spellingsLooked = 20_000
	mostMeant       = 3
)

// meant are the words of items that a word is nearest to, the likeliest first; none when it is too short or too far
// from all. Edits at both ends of it at once are not found.
func (is Items) meant(ctx context.Context, w string) ([]spelling, error) {
	head, tail, size := edges(w)
	most := editsIn(size)
	if most == 0 {
		return nil, nil
	}
	found, err := list[spelling](ctx, is.tx, `SELECT word, key, n FROM (SELECT word, key, n FROM item_term WHERE head = ? AND size BETWEEN ? AND ? LIMIT ?) h
		UNION SELECT word, key, n FROM (SELECT word, key, n FROM item_term WHERE tail = ? AND size BETWEEN ? AND ? LIMIT ?) t ORDER BY word`,
		head, size-most, size+most, spellingsLooked, tail, size-most, size+most, spellingsLooked)
	if err != nil {
		return nil, err
	}
	if size == 4 { // two letters in the middle that changed places
		r := []rune(latin(w))
		r[1], r[2] = r[2], r[1]
		more, err := list[spelling](ctx, is.tx, `SELECT word, key, n FROM item_term WHERE word = ?`, string(r))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return nearest(w, found, most), nil
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
