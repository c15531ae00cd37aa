package storage

import (
	"context"
	"fmt"
	"strconv"

	"stoa/protocol"
)

// postWordsVersion is the version of the rules for the words of posts. See word.go.
const postWordsVersion = 6

const wordsSetting = "words of posts"

// reindex rebuilds the full-text index of posts if it was made by another version
// of the rules. It is one transaction: another process that starts at the same time
// waits for it and finds nothing left to do.
func (db *DB) reindex(ctx context.Context) error {
	made := func(ctx context.Context, tx *Tx) (bool, error) {
		version, err := tx.Settings().Get(ctx, wordsSetting)
		return version == strconv.Itoa(postWordsVersion), err
	}
	var done bool
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		done, err = made(ctx, tx)
		return err
	})
	if err != nil || done {
		return err
	}
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if db.engine == enginePostgres {
			if _, err := tx.write(ctx, `LOCK TABLE post_word IN ACCESS EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		if done, err := made(ctx, tx); err != nil || done {
			return err
		}
		if err := tx.Posts().rebuildWords(ctx); err != nil {
			return fmt.Errorf("build the index of words: %w", err)
		}
		return tx.Settings().Put(ctx, wordsSetting, strconv.Itoa(postWordsVersion))
	})
}

// rebuildWords reads every visible post in the order of its number.
func (ps Posts) rebuildWords(ctx context.Context) error {
	if err := ps.recountAll(ctx); err != nil {
		return err
	}
	empty := `TRUNCATE post_word`
	if ps.tx.db.engine == engineSQLite {
		empty = `INSERT INTO post_word (post_word) VALUES ('delete-all')`
	}
	if _, err := ps.tx.write(ctx, empty); err != nil {
		return err
	}
	for last := int64(-1); ; {
		next, n, err := ps.wordSome(ctx, last)
		if err != nil {
			return err
		}
		if err := ps.tx.settleWords(); err != nil {
			return err
		}
		if last = next; n == 0 {
			return nil
		}
	}
}

// wordSome holds back the words of some visible posts after one, and returns the last of them and how many there are.
func (ps Posts) wordSome(ctx context.Context, last int64) (int64, int, error) {
	type item struct {
		protocol.StoredPost
		seq int64
	}
	rows, err := ps.tx.query(ctx, `SELECT `+postColumns+` FROM post WHERE state = 'visible' AND seq > ? ORDER BY seq LIMIT 1000`, last)
	items, err := collect(rows, err, func(s scanner) (i item, err error) {
		i.seq, err = scanPost(s, &i.Post, &i.Part)
		return i, err
	})
	for i := range items {
		if err == nil {
			last, err = items[i].seq, ps.tx.hold(heldWords, items[i].seq, postText(&items[i].StoredPost))
		}
	}
	return last, len(items), err
}
