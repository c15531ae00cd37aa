package node

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// However often it is asked whether the node is ready, the database is asked once a
// second.
func TestReady_AsksOnceASecond(t *testing.T) {
	t.Parallel()
	var p pulse
	asked := 0
	ping := func(context.Context) error { asked++; return errors.New("away") } // under the lock of the pulse
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { p.take(t.Context(), ping) })
	}
	all.Wait()
	require.EqualError(t, p.take(t.Context(), ping), "away")
	require.Equal(t, 1, asked)
	p.at = p.at.Add(-pulseAge)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.take(gone, func(ctx context.Context) error { return ctx.Err() }), "of a client that left")
}
