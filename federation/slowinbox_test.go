package federation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An inbox that takes eight seconds for a delivery gets everything that waits for it, each entry once, although its lease is too short for all.
func TestDeliverEntries_SlowInbox(t *testing.T) {
	t.Parallel()
	nodeKeys(1)
	synctest.Test(t, func(t *testing.T) {
		net := newSimNet(2)
		slow := net.peers[1]
		slow.latency = 8 * time.Second
		require.False(t, slow.stoa)
		s := newSim(t, net)
		s.follow()
		for range perClaim {
			s.publish()
		}
		simStart(t, s.f, nil)
		time.Sleep(10 * time.Minute)
		net.mu.Lock()
		defer net.mu.Unlock()
		require.EqualValues(t, perClaim, slow.got)
		require.Equal(t, perClaim, slow.sent)
	})
}
