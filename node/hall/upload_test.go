package hall

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// One account makes one file at a time, so that another finds a slot.
func TestUploads_Export(t *testing.T) {
	t.Parallel()
	u := NewUploads("catalog", nil)
	leave, err := u.Export("one")
	require.NoError(t, err)
	for range 4 {
		_, err := u.Export("one")
		require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
	}
	other, err := u.Export("two")
	require.NoError(t, err)
	_, err = u.Export("three")
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(err))
	leave()
	leave, err = u.Export("one")
	require.NoError(t, err)
	leave()
	other()
}
