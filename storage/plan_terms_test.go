package storage

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// TestPlans_Terms: what a word may have meant, and how rare it is, is looked up by the indexes of each table of words.
func TestPlans_Terms(t *testing.T) {
	t.Parallel()
	db := must.Get(Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "stoa.db")}))(t)
	defer db.Close()
	plan := func(text string, args ...any) string {
		var all []string
		require.NoError(t, db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			rows, err := tx.query(ctx, `EXPLAIN QUERY PLAN `+text, args...)
			all, err = collect(rows, err, func(s scanner) (step string, err error) {
				var id, parent, none int
				return step, s.Scan(&id, &parent, &none, &step)
			})
			return err
		}))
		return strings.Join(all, "\n")
	}
	for _, table := range []string{itemTerms, profileTerms, postTerms} {
		require.Contains(t, plan(termsKnown(table, 2), "a", "b"), "SEARCH "+table+" USING INDEX "+table+"_key (key=?)")
		near := plan(termsNear(table), "ab", 3, 5, 9, "yz", 3, 5, 9)
		for _, end := range []string{"head", "tail"} {
			require.Contains(t, near, "SEARCH "+table+" USING INDEX "+table+"_"+end+" ("+end+"=? AND size>? AND size<?)")
		}
	}
	require.Contains(t, plan(saidBy, 1), "SEARCH profile_said USING INTEGER PRIMARY KEY")
	require.Contains(t, plan(takeFresh, 9), "SEARCH post_fresh USING INTEGER PRIMARY KEY")
}
