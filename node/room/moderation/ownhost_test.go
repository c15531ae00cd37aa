package moderation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnHost is the table of what names this node.
func TestOwnHost(t *testing.T) {
	t.Parallel()
	for host, own := range map[string]bool{
		"stoa.agora.example": true, "stoa.agora.example:8443": true, "agora.example": true, "example": true,
		"toa.agora.example": false, "x.stoa.agora.example": false, "stoa.agora.example:443": false, "spam.example": false,
	} {
		require.Equal(t, own, OwnHost("https://stoa.agora.example:8443", host), host)
	}
}
