package storage

import "stoa/storage/commit"

// The buffers of rows that a batch holds back, in the order in which they are written
// at its end.
const (
	heldWords = iota
	heldFresh
	heldPosts
	heldTags
	heldLog
	heldWriters
	heldFeed
	heldNews
)

// An insert is the INSERT of a table of which rows are held back.
type insert = commit.Insert

// buffers are late when writing them before a savepoint costs much: FTS5 writes out
// its buffer of words at each savepoint, and other processes' readers wait for a
// transaction that has taken numbers of the feed (tally.go).
func buffers(e engine) []commit.Buffer {
	log := commit.Buffer{Insert: logInsert, Tables: []string{"stream"}, Number: numberLog}
	feed := commit.Buffer{Insert: feedInsert, Late: true, Key: "subject_id", KeyAt: 3, Tables: []string{"tally", "feed_number"}, Number: numberFeed}
	if e == enginePostgres { // entries are numbered after the commit, items by their statement
		log = commit.Buffer{Insert: waitingInsert, Tables: []string{"log", "stream"}}
		feed.Insert, feed.Number = feedInsertNumbered, nil
	}
	return []commit.Buffer{
		heldWords:   {Insert: postWords.insert(e), Late: true},
		heldFresh:   {Insert: freshInsert},
		heldPosts:   {Insert: postInsert},
		heldTags:    {Insert: tagInsert},
		heldLog:     log,
		heldWriters: {Insert: writerInsert},
		heldFeed:    feed,
		heldNews:    {Insert: newsInsert, Late: true, Tables: []string{"tally", "feed_number"}, Number: numberNews},
	}
}

// hold holds a row back.
func (tx *Tx) hold(buffer int, values ...any) error {
	if buffer == heldWords {
		tx.addsWords()
	}
	return tx.sql.Hold(buffer, values...)
}

// settleWords writes the words that are held back. An op that will delete words
// calls it before dirty.
func (tx *Tx) settleWords() error { return tx.sql.Settle(heldWords) }

// settleFeed writes the feed items and news that are held back.
func (tx *Tx) settleFeed() error { return tx.sql.Settle(heldFeed, heldNews) }
