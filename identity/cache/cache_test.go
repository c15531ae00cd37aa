package cache

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c, now := Of[int](100), time.Now()
	c.Put("a", 1, 0, now.Add(time.Minute))
	v, ok := c.Get("a", now.Add(time.Minute-1))
	require.True(t, ok)
	require.Equal(t, 1, v)
	_, ok = c.Get("a", now.Add(time.Minute))
	require.False(t, ok, "it has expired")
	c.Put("a", 2, 0, now.Add(time.Hour))
	v, _ = c.Get("a", now.Add(time.Minute+1))
	require.Equal(t, 2, v)
	c.Drop("a")
	_, ok = c.Get("a", now)
	require.False(t, ok)
}

// However many names strangers make up, the bound holds, and what is asked for all
// the time stays.
func TestCache_Bound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	until := now.Add(time.Hour)
	few, bytes := Of[int](100), OfBytes[int](100_000)
	few.Put("often", 1, 0, until)
	bytes.Put("often", 1, 500, until)
	for i := range 20_000 {
		name := fmt.Sprint("made up ", i)
		few.Put(name, i, 0, until)
		bytes.Put(name, i, i%1000, until)
		if i%2 == 0 {
			few.Get("often", now)
			bytes.Get("often", now)
		}
		require.LessOrEqual(t, few.Len(), 100)
		require.LessOrEqual(t, bytes.rows.WeightedSize(), uint64(100_000))
	}
	require.Greater(t, few.Len(), 90)
	for _, c := range []*Cache[int]{few, bytes} {
		_, ok := c.Get("often", now)
		require.True(t, ok)
	}
	bytes.Put("often", 2, 100_000, until)
	_, ok := bytes.Get("often", now)
	require.False(t, ok, "a value larger than the cache is not kept, nor the one before it")
	bytes.Put(strings.Repeat("n", 100_000), 2, 0, until)
	require.LessOrEqual(t, bytes.rows.WeightedSize(), uint64(100_000))
}

func TestCache_Concurrent(t *testing.T) {
	t.Parallel()
	c, now := Of[int](50), time.Now()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 5000 {
				name := fmt.Sprint(i % 120)
				if v, ok := c.Get(name, now); ok && v != i%120 {
					t.Errorf("%s holds %d", name, v)
				}
				c.Put(name, i%120, 0, now.Add(time.Hour))
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, c.Len(), 50)
}
