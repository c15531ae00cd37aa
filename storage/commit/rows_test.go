package commit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArrays(t *testing.T) {
	t.Parallel()
	types := map[string]string{"seq": "int8", "words": "tsvector", "n": "int8", "visible": "bool"}
	for want, i := range map[string]Insert{
		`INSERT INTO feed (seq, visible, n) SELECT c0, c1, nextval('feed_number') FROM unnest($1::int8[], $2::bool[]) r (c0, c1)`: {
			Into: `INSERT INTO feed (seq, visible, n) VALUES `, Row: `(?, ?, nextval('feed_number'))`},
		`INSERT INTO post_word (seq, words) SELECT c0, array_to_tsvector(string_to_array(trim(c1), ' ')) FROM unnest($1::int8[], $2::text[]) r (c0, c1)`: {
			Into: `INSERT INTO post_word (seq, words) VALUES `, Row: `(?, array_to_tsvector(string_to_array(trim(?), ' ')))`},
	} {
		require.Equal(t, want, i.arrays(types))
	}
	r := Rows{Buffer: &Buffer{}, wide: 2, args: []any{1, "a", 2, nil, 3, "c"}, n: 3}
	require.Equal(t, []any{[]any{1, 2}, []any{"a", nil}}, r.columns(2))
}
