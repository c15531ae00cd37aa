package commit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLiteralLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		args  []any
		want  string
		kept  []any
	}{
		{`SELECT a FROM t WHERE b = ?`, []any{1}, `SELECT a FROM t WHERE b = ?`, []any{1}},
		{`SELECT a FROM t WHERE b = ? LIMIT ?`, []any{"x", 20}, `SELECT a FROM t WHERE b = ? LIMIT 20`, []any{"x"}},
		{`SELECT a FROM (SELECT a FROM t LIMIT ?) WHERE b = ? LIMIT ? OFFSET ?`, []any{int64(-1), "x", 3, 4},
			`SELECT a FROM (SELECT a FROM t LIMIT -1) WHERE b = ? LIMIT 3 OFFSET ?`, []any{"x", 4}},
		{`SELECT a FROM t LIMIT ?`, []any{"1; DROP TABLE t"}, `SELECT a FROM t LIMIT ?`, []any{"1; DROP TABLE t"}},
		{`SELECT a FROM t LIMIT ?`, nil, `SELECT a FROM t LIMIT ?`, nil},
	} {
		query, args := literalLimits(c.query, c.args)
		require.Equal(t, c.want, query)
		require.Equal(t, c.kept, args)
	}
}
