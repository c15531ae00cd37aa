package federation

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
	"stoa/storage"
)

// A key that was read is not read again for a moment. What this process replaces
// holds at once, what another one replaces after that moment, and a signature that
// the remembered key does not verify is tried with the key of the database.
func TestKeyMemory(t *testing.T) {
	w := newWorld(t)
	id := alice + "#main-key"
	elsewhere := func(k Keys) { // as another process does it
		t.Helper()
		spki := must.Get(x509.MarshalPKIXPublicKey(k.RSA.Public()))(t)
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Peers().PutKey(ctx, storage.RemoteKey{KeyID: id, Owner: alice, Host: "victim.example", Algorithm: underPublicKey, Key: spki,
				FetchedAt: w.tick.now()})
		}))
	}
	holds := func(k Keys, why string) {
		t.Helper()
		found := must.Get(w.f.keyOf(t.Context(), id, false))(t)
		require.Equal(t, k.RSA.Public(), found.Public, why)
	}
	first, second, third := w.actors[alice].keys, nodeKeys(110), nodeKeys(111)

	holds(first, "as it was fetched")
	elsewhere(second)
	holds(first, "remembered")
	w.tick.pass(keyMemory + time.Millisecond)
	holds(second, "read again")

	elsewhere(third)
	w.actors[alice].keys = third
	require.Equal(t, 202, w.deliver(alice, w.note(61, "")), "the new key counts at once where the remembered one fails")
	holds(third, "what was read then is remembered")

	w.tick.pass(keyRetryAge + time.Minute)
	w.actors[alice].keys = first
	holds(third, "not yet fetched")
	require.Equal(t, 202, w.deliver(alice, w.note(62, "")), "fetched, since the known key fails")
	holds(first, "what this process replaces is dropped")

	for i := range 10_000 { // strangers choose the ids
		found := &remoteKey{ID: alice + "#" + string(rune('0'+i)), Owner: alice}
		w.f.keys.Put(found.ID, found, found.size(), w.tick.now().Add(keyMemory))
	}
	require.Less(t, w.f.keys.Len(), 8000, "8 MiB of keys")
}
