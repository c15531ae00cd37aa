package rate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRate(t *testing.T) {
	t.Parallel()
	r, now := PerSecond(10, 3), time.Now().UnixNano()
	var free int64
	for range 3 {
		next, wait := r.Take(free, now, 1)
		require.LessOrEqual(t, wait, time.Duration(0))
		free = next
	}
	_, wait := r.Take(free, now, 1)
	require.Equal(t, 100*time.Millisecond, wait)
	_, wait = r.Take(free, now+int64(wait), 1)
	require.Zero(t, wait, "the wait is enough")
	_, wait = r.Take(0, now, 3.5)
	require.Equal(t, 50*time.Millisecond, wait, "more than a burst is never there")
	_, wait = r.Take(free, now+int64(time.Hour), 3)
	require.Zero(t, wait, "time gives no more than a burst")
}

func TestRates(t *testing.T) {
	t.Parallel()
	r := Table[int]{Most: 4}
	for key := range 4 {
		require.True(t, r.Room(key, 0))
		r.Set(key, int64(key))
	}
	require.False(t, r.Room(4, -1), "all of them are in use")
	require.True(t, r.Room(3, -1), "known")
	require.True(t, r.Room(4, 0))
	require.Equal(t, 3, r.Len(), "key 0 is free")
	require.EqualValues(t, 3, r.Free(3))
	require.Zero(t, r.Free(0))
	r.Halve()
	require.Equal(t, 1, r.Len())
	require.EqualValues(t, 3, r.Free(3), "it took the most")
	same := Table[int]{Most: 4}
	for key := range 4 {
		same.Set(key, 7)
	}
	same.Halve()
	require.Equal(t, 2, same.Len())
}
