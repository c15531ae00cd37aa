package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTidier: memory is given back once after many streams came or went, and not for few.
func TestTidier(t *testing.T) {
	t.Parallel()
	freed := 0
	tidy, now := &tidier{free: func() { freed++ }}, time.Now()
	wait := func(turns uint64, seconds int) int {
		for range seconds {
			now = now.Add(time.Second)
			tidy.look(turns, now)
		}
		return freed
	}
	require.Zero(t, wait(tidyStreams-1, 60), "a few")
	require.Zero(t, wait(5000, 5), "they may still come")
	require.Zero(t, wait(5001, 9))
	require.Equal(t, 1, wait(5001, 60), "once")
	require.Equal(t, 1, wait(5001+tidyStreams-1, 60))
	require.Equal(t, 2, wait(10_002, 60), "all of them left")
}
