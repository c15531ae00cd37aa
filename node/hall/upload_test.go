package hall

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
)

// One account makes one file at a time, so that another finds a slot.
func TestUploads_Export(t *testing.T) {
	t.Parallel()
	u := NewUploads("catalog", nil)
	leave := must.Get(u.Export("one"))(t)
	for range 4 {
		require.Equal(t, protocol.Conflict, protocol.CodeOf(must.Err(u.Export("one"))))
	}
	other := must.Get(u.Export("two"))(t)
	require.Equal(t, protocol.Overloaded, protocol.CodeOf(must.Err(u.Export("three"))))
	leave()
	leave = must.Get(u.Export("one"))(t)
	leave()
	other()
}
