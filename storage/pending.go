package storage

import (
	"context"
	"errors"
	"sync"
	"time"

	"stoa/protocol"
)

// PostgreSQL appends new words to a list of its GIN index, and moves them into the index
// once the list is long (gin_pending_list_limit): in the INSERT that makes it so, which
// would stop the only writer for a tenth of a second. So each process that writes words
// moves them on another connection, before the list is long. One process does it at a time;
// vacuum does what is left when a process ends.

const (
	pendingRest  = 500 * time.Millisecond // from one time to the next, at least
	pendingShare = 4                      // times as long as it took
	pendingLong  = 10 * time.Second       // at most
)

// movePending moves the words that wait of every index of words.
const movePending = `SELECT COALESCE(sum(gin_clean_pending_list(i)), 0)
	FROM unnest(ARRAY['post_word_gin', 'item_word_words', 'profile_rank_words']::regclass[]) i
	WHERE pg_try_advisory_xact_lock(hashtextextended('words that wait', 0))`

// addsWords is called by each write that adds words to an index.
func (tx *Tx) addsWords() {
	if tx.db.engine == enginePostgres {
		tx.wake(topicWords)
	}
}

// startMoving starts what moves words that wait, on PostgreSQL. end ends it and waits for it.
func (db *DB) startMoving() (end func()) {
	if db.engine != enginePostgres {
		return func() {}
	}
	life, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { db.keepMoving(life) })
	return func() { cancel(); running.Wait() }
}

func (db *DB) keepMoving(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.sql.Topic(topicWords):
		}
		begin := time.Now()
		var moved int64
		err := db.sql.Available(ctx, db.sql.Lookup(ctx, movePending).Scan(&moved))
		if err != nil && ctx.Err() == nil && !errors.As(err, new(*protocol.Error)) {
			db.log.Error("move words into their indexes", "err", err)
		}
		if pause(ctx, min(max(pendingRest, pendingShare*time.Since(begin)), pendingLong)) != nil {
			return
		}
	}
}
