package storage

import (
	"slices"
	"strings"
	"unicode"
)

// A held is a set of buffers in which a batch holds rows back.
type held uint8

const (
	heldPosts held = 1 << iota
	heldTags
	heldWriters
	heldLog
	heldWords
	heldFeed
	heldNews
	bySubject // of a statement: it selects feed items only by subject
)

// heldIn maps each table to the buffers that hold rows of it, or whose rows get
// their numbers from it when they are written. A statement of a Tx that names such
// a table writes these buffers first (Tx.query, Tx.write).
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

// heldBy returns the buffers of the tables that a statement names. Every word of the
// text counts as a name, so that none is missed; a word that means something else
// there costs an unnecessary write.
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

// maxNamed is the length of the longest cached text, in bytes; longer ones contain
// long lists of placeholders.
const maxNamed = 4096

// heldBy is the function heldBy with a cache by the statement's text.
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

// held returns the buffers that have rows.
func (b *batch) held() (all held) {
	for i, r := range [...]*rows{b.posts, b.tags, b.writers, b.log, b.words, b.feed, b.news.rows} {
		if r.n > 0 {
			all |= 1 << i
		}
	}
	return all
}

// settleFor writes the held-back rows of the tables that a statement names. Feed
// items remain held back when the statement selects items by subject, and none of
// them has that subject.
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
