package storage

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestTables: it is decided for every table what becomes of the rows of a deleted
// profile, and of rows that have ended.
func TestTables(t *testing.T) {
	t.Parallel()
	deletes := map[string]string{ // with a column handle
		"profile": "is the profile", "thread": "Threads.DropAll", "callback": "Threads.DropAll", "contact_block": "Threads.DropAll",
		"contact_block_name": "Threads.DropAll", "probe_of": "Probes.drop", "sighting": "Probes.drop", "attention_board": "AttentionBoards.drop",
		"payment_account": "AttentionBoards.drop", "till": "Tills.drop",
		"archive_post": "Profiles.Delete", "archive_import": "Profiles.Delete", "ticket": "ends by itself",
		"remote_actor": "is of another node", "meeting": "Threads.DropAll",
		"handle": "stays, so that nobody else gets it; Handles.leave",
	}
	ends := map[string]string{ // with a column for a time in the future
		"spent": "Requests.PruneSpent", "block": "Blocks.Prune", "api_token": "Tokens.Prune", "callback": "Callbacks.Prune", "refund": "is kept",
		"key_directory": "its cache (identity/directory)",
		"profile_rank":  "is a number of the directory's clock",
		"item":          "is a version of a catalog; Items.EndImport",
		"meeting":       "is when it takes place; Meetings.Prune",
		"invitation":    "is counted longer, until kept_until",
		"checkout":      "is read for a while longer, until ends_at",
	}
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		rows, err := tx.query(ctx, `SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2`)
		columns, err := collect(rows, err, func(s scanner) (c struct{ table, name string }, err error) { return c, s.Scan(&c.table, &c.name) })
		require.Greater(t, len(columns), 100)
		for _, c := range columns {
			switch c.name {
			case "handle":
				if deletes[c.table] == "" && !slices.Contains(ofProfile, c.table) {
					t.Errorf("the rows of table %s would remain when their profile is deleted, and belong to the next one with its handle: "+
						"add the table to ofProfile in storage/expiry.go, or delete them in Profiles.Delete and say so in this test", c.table)
				}
			case "until", "end", "ends_at", "expires", "expires_at":
				if ends[c.table] == "" && !slices.ContainsFunc(expiring, func(e expiry) bool { return e.table == c.table && e.end == c.name }) {
					t.Errorf("nothing deletes the rows of table %s after the time in %s: add the table to expiring in storage/expiry.go, "+
						"or say in this test what deletes them", c.table, c.name)
				}
			}
		}
		return err
	}))
}
