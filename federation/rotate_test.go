package federation

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKeyRotated: a server that has rotated its key is believed at once by a node that knows the former one, and what it signed with the
// former one too, as long as its actor names that.
func TestKeyRotated(t *testing.T) {
	w := newWorld(t)
	a := w.actors[alice]
	relay := func(body []byte) int { return w.deliver(mallory, body) }
	late, later := w.proven(w.note(81, "")), w.proven(w.note(82, ""))
	require.Equal(t, 202, relay(w.proven(w.note(80, ""))), "by the first key, which the node knows from now on")

	former := a.keys.Ed25519.Public().(ed25519.PublicKey)
	a.keys, a.former = nodeKeys(112), []ed25519.PublicKey{former}
	w.tick.pass(keyRetryAge + time.Minute)
	require.Equal(t, 202, relay(w.proven(w.note(83, ""))), "by the next key, which this node has not seen before")
	require.Equal(t, 202, w.deliver(alice, w.proven(w.note(85, ""))), "by the next RSA key, under the id of the former")
	require.Equal(t, 202, relay(late), "by the former one, which was on its way")

	a.former = nil
	w.tick.pass(keyAge + time.Minute)
	require.NotEqual(t, 202, relay(later), "the former key has ended")
	require.Equal(t, 202, relay(w.proven(w.note(84, ""))))
}
