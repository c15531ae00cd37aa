package storage

import (
	"context"
	"time"
)

// What is deleted on SQLite leaves its page at once (PRAGMA secure_delete). Two places keep it longer: the
// segments of an index of words, until they are merged, and the write-ahead log, until it is written anew.

var wordTables = []string{"post_word", "profile_word", "item_word", "remote_agent_word", "ard_entry_word"}

const (
	mergePages   = 64     // of an index that one transaction writes, some ten milliseconds
	mergeAtMost  = 10_000 // transactions: half a million pages
	emptyTries   = 100
	emptyEvery   = 500 * time.Millisecond
	mergeBetween = 10 * time.Millisecond // for other writes
)

// Scrub removes from the file of a SQLite database what was deleted before the call: it merges every index of
// words into one segment, part by part between other writes, and empties the write-ahead log when no reader needs
// it, within a minute. On PostgreSQL it does nothing.
func (db *DB) Scrub(ctx context.Context) error {
	if db.engine != engineSQLite {
		return nil
	}
	for _, table := range wordTables {
		if err := db.mergeWords(ctx, table); err != nil {
			return err
		}
	}
	for range emptyTries {
		if empty, err := db.sql.EmptyLog(ctx); err != nil || empty {
			return err
		}
		if err := pause(ctx, emptyEvery); err != nil {
			return err
		}
	}
	return nil
}

// mergeWords merges the segments of an index (https://www.sqlite.org/fts5.html#the_merge_command): a negative number
// chooses them, and it is done when a call changes no more than its own row.
func (db *DB) mergeWords(ctx context.Context, table string) error {
	for n := range mergeAtMost {
		pages := mergePages
		if n == 0 {
			pages = -mergePages
		}
		var before, after int
		err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			if err := tx.dirty(); err != nil {
				return err
			}
			if err := tx.row(ctx, `SELECT total_changes()`).Scan(&before); err != nil {
				return err
			}
			if err := tx.raw(ctx, `INSERT INTO `+table+` (`+table+`, rank) VALUES ('merge', ?)`, pages); err != nil {
				return err
			}
			return tx.row(ctx, `SELECT total_changes()`).Scan(&after)
		})
		if err != nil || after-before < 2 {
			return err
		}
		if err := pause(ctx, mergeBetween); err != nil {
			return err
		}
	}
	return nil
}
