package activity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestClip(t *testing.T) {
	t.Parallel()
	const wales = "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
	for _, tt := range []struct {
		name, in, want string
		n              int
	}{
		{"short", "abc", "abc", 3},
		{"long", "abcd", "ab…", 3},
		{"space at the cut", "a bcd", "a…", 3},
		{"a flag whole", wales, wales, 7},
		{"a flag cut", wales + "abc", "🏴…", 5},
	} {
		got := protocol.Shorten(tt.in, tt.n)
		require.Equal(t, tt.want, got, tt.name)
		_, why, bad := protocol.Unfit(got)
		require.False(t, bad, "%s: %s", tt.name, why)
	}
}
