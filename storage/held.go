package storage

import (
	"slices"
	"strings"
	"unicode"
)

// A held is a set of what a batch holds back.
type held uint8

const (
	heldPosts held = 1 << iota
	heldTags
	heldWriters
	heldLog
	heldWords
	heldFeed
	heldNews
	bySubject // of a statement: it finds feed items by their subject only
)

// heldIn says for each table what a batch holds back of it, or gives it when what
// is held back is written. Every statement of a Tx that names one of them settles
// first (Tx.query, Tx.write).
var heldIn = map[string]held{
	"post":        heldPosts,
	"post_tag":    heldTags,
	"writer":      heldWriters,
	"log":         heldLog,
	"log_waiting": heldLog,
	"stream":      heldLog,
	"post_word":   heldWords,
	"feed":        heldFeed,
	"news":        heldNews,
	"tally":       heldFeed | heldNews,
	"feed_number": heldFeed | heldNews,
}

// heldBy is what may be held back of the tables that a statement names. Every word
// of the text counts as a name, so that none is missed; one that is something else
// there settles in vain.
func heldBy(query string) (all held) {
	named := 0
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		in := heldIn[word]
		all |= in
		if in == heldFeed {
			named++
		}
	}
	if named > 0 && strings.Count(query, "subject_id = ?") == named {
		all |= bySubject
	}
	return all
}

// maxNamed is the longest text that is remembered, in bytes; longer ones hold long
// lists of placeholders.
const maxNamed = 4096

// heldBy is heldBy, remembered by the statement's text.
func (c *conn) heldBy(query string) held {
	if len(query) > maxNamed {
		return heldBy(query)
	}
	all, known := c.named[query]
	if !known {
		if c.named == nil || len(c.named) >= maxStmts {
			c.named = map[string]held{}
		}
		all = heldBy(query)
		c.named[query] = all
	}
	return all
}

// held is what the batch holds back now.
func (b *batch) held() (all held) {
	for i, r := range [...]*rows{b.posts, b.tags, b.writers, b.log, b.words, b.feed, b.news.rows} {
		if r.n > 0 {
			all |= 1 << i
		}
	}
	return all
}

// settleFor writes what is held back of the tables that a statement names. The
// items of the feed stay where the statement finds others by their subject.
func (tx *Tx) settleFor(query string, args []any) error {
	b := tx.batch
	if b == nil {
		return nil
	}
	all := b.held()
	if all == 0 {
		return nil
	}
	named := tx.conn.heldBy(query)
	if named&bySubject != 0 && !slices.ContainsFunc(args, b.holdsSubject) {
		named &^= heldFeed
	}
	all &= named
	if all&heldWords != 0 {
		if err := tx.settleWords(); err != nil {
			return err
		}
	}
	if all&(heldFeed|heldNews) != 0 {
		if err := tx.settleFeed(); err != nil {
			return err
		}
	}
	if all&(heldPosts|heldTags|heldWriters|heldLog) != 0 {
		return tx.settle()
	}
	return nil
}
