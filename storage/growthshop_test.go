package storage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// skewShops fills the index of the directory with businesses whose names and texts begin alike, each with a
// word of its own, near one place; all are versions of one profile.
func skewShops(t *testing.T, db *storage.DB, fill func(full int, insert string, args ...any)) {
	t.Helper()
	const own = "9999999"       // in the text of one, the number of the row in those of the others
	if storage.OnPostgres(db) { // after the profiles that have their numbers already
		require.NoError(t, storage.Exec(t.Context(), db, `SELECT setval(pg_get_serial_sequence('profile', 'seq'), 5000000)`))
	}
	place := &protocol.Geo{Latitude: 12.97, Longitude: 77.6}
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		if _, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{
			Handle: "teas", Name: "Tearoom" + own, Description: "Teapots" + own, Kind: protocol.Business}}); err != nil {
			return err
		}
		_, _, err := tx.Merchants().Put(ctx, "teas", protocol.MerchantDraft{Geo: place})
		return err
	})
	var seq int64
	var text string
	read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
		seq, text, err = storage.ProfileText(ctx, tx, "teas")
		return err
	})
	require.Contains(t, text, "tearoom"+own)
	fill(100_000, `INSERT INTO merchant_place (name, seq, latitude, longitude) `+
		`WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `+
		`SELECT CASE WHEN n % 2 = 0 THEN 'tealand' ELSE 'lane ' || CAST(n AS TEXT) END, n, 13000000, 77600000 FROM series`)
	const series = `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	const versions = `INSERT INTO profile_rank (pos, seq, since, until`
	const row = `SELECT 4611686018427387904 + n, CAST(? AS BIGINT), 0, 9223372036854775807`
	if storage.OnPostgres(db) {
		fill(100_000, versions+`, words) `+series+row+`, array_to_tsvector(string_to_array(trim(replace(?, ?, CAST(n AS TEXT))), ' ')) FROM series`, seq, text, own)
		return
	}
	fill(100_000, versions+`) `+series+row+` FROM series`, seq)
	fill(100_000, `INSERT INTO profile_word (rowid, words) `+series+`SELECT 4611686018427387904 + n, replace(?, ?, CAST(n AS TEXT)) FROM series`, text, own)
}

// grownShops are searches for businesses by the beginning of a word.
var grownShops = []statement{
	{"shops by the beginning of a word", agentsBy(protocol.MerchantQuery{Q: "tea"}, 20)},
	{"shops by a rare word and the beginning of another", agentsBy(protocol.MerchantQuery{Q: "tearoom7 teap", Local: true}, 1)},
	{"shops by the beginning of a word, near a place", agentsBy(protocol.MerchantQuery{Q: "tea",
		PlaceFilter: protocol.PlaceFilter{Near: "12.97,77.6", Radius: 5000}}, 20)},
	{"a place by the name that many businesses give", placed("Tealand", 1)},
	{"a place by the beginning of a name that many businesses give", placed("Lane", 1)},
	{"a place that nobody gives", placed("Teatown", 0)},
}

func placed(name string, want int) func(ctx context.Context, db *storage.DB) error {
	return reading(func(ctx context.Context, tx *storage.Tx) error {
		places, err := tx.FindPlaces(ctx, name)
		return found(len(places)-want+1, err)
	})
}

func agentsBy(q protocol.MerchantQuery, want int) func(ctx context.Context, db *storage.DB) error {
	return reading(func(ctx context.Context, tx *storage.Tx) error {
		page, err := tx.Profiles().ListMerchants(ctx, q)
		return found(len(page.Items)-want+1, err)
	})
}
