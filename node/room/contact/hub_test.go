package contact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// A round shows the changes of a while again: a follower wakes for each once, and not for an older task of its thread.
func TestFollowerHears(t *testing.T) {
	t.Parallel()
	f := &follower{wake: make(chan struct{}, 1), heard: storage.ExchangeVersion{First: 1, Moved: 5}}
	for _, v := range []struct {
		first int
		moved int64
		wakes bool
	}{{1, 5, false}, {1, 6, true}, {1, 6, false}, {3, 6, true}, {1, 6, false}, {3, 6, false}, {3, 4, true}} { // the last of a clock that is behind
		f.hears(storage.ExchangeVersion{First: v.first, Moved: v.moved})
		require.Equal(t, v.wakes, len(f.wake) == 1, "%+v", v)
		if v.wakes {
			<-f.wake
		}
	}
}
