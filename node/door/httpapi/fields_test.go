package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// What a query holds becomes a value that JSON can say, or stays text for the
// schema to refuse.
func TestCoerce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, in string
		want     any
	}{
		{"integer", "20", int64(20)}, {"integer", "9007199254740993", "9007199254740993"}, {"integer", "20.0", "20.0"}, {"integer", "", ""},
		{"integer", "0x10", "0x10"},
		{"number", "120.50", 120.5}, {"number", "-1e3", -1000.0}, {"number", "NaN", "NaN"}, {"number", "Inf", "Inf"}, {"number", "-infinity", "-infinity"},
		{"number", "0x1p4", "0x1p4"}, {"number", "1e400", "1e400"}, {"number", "+5", "+5"}, {"number", ".5", ".5"},
		{"boolean", "true", true}, {"boolean", "0", false}, {"boolean", "TRUE", "TRUE"}, {"string", "5", "5"},
	} {
		got := coerce(tt.kind, tt.in)
		require.Equal(t, tt.want, got, "%s %q", tt.kind, tt.in)
		must.Get(json.Marshal(got))(t)
	}
}
