package federation

import (
	"context"
	"crypto"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/identity/key"
	"stoa/node/hall"
	"stoa/node/room/credential"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// restarted starts the node's federation as a fresh process does, with the keys of its keyring. made numbers the RSA keys.
func (n *node) restarted(sealer *key.Sealer, made *int) *credential.Keyring {
	n.t.Helper()
	newRSA := func() (key.Pair, error) {
		*made++
		return nodeKeys(119 + *made).RSA, nil
	}
	ring := must.Get(credential.OpenKeyring(n.t.Context(), n.db, sealer, newRSA))(n.t)
	n.f = n.start(Keys{RSA: ring.RSA, Ed25519: ring.Ed, Others: ring.Others, Former: ring.FormerRSA}, nil)
	return ring
}

// A keeper is a server that fetches an actor's RSA key once and does not again when a signature does not fit it.
type keeper struct {
	key crypto.PublicKey
	got []string // ids of activities
	no  int      // refusals
}

func (k *keeper) fetch(n *node) {
	n.t.Helper()
	actor := must.JSON[activity.Actor](n.served("/ap/board"))(n.t)
	found, ok := actor.PublicKey.Find(activity.MainKey(n.f.site.Board()))
	require.True(n.t, ok)
	k.key = must.Get(key.ParsePublicPEM(string(found.PEM)))(n.t)
}

func (k *keeper) Resolve(context.Context, string) (cavage.Resolved, error) {
	return cavage.Resolved{Key: k.key}, nil
}

func (k *keeper) serve(n *node) http.HandlerFunc {
	target := must.Get(httpsig.ParseTarget("https://keeper.example"))(n.t)
	return func(w http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(n.t)
		msg := must.Get(httpsig.FromRequest(r, target))(n.t)
		v := cavage.Verifier{Keys: k, Now: n.tick.now}
		if _, err := v.Verify(r.Context(), &msg, body); err != nil {
			k.no++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a := must.JSON[activity.Activity](body)(n.t)
		k.got = append(k.got, string(a.ID))
		w.WriteHeader(http.StatusAccepted)
	}
}

// served fetches a document of the node.
func (n *node) served(path string) []byte {
	n.t.Helper()
	w := httptest.NewRecorder()
	n.f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(n.t.Context(), "GET", n.base+path, nil))
	require.Equal(n.t, 200, w.Code, path)
	return w.Body.Bytes()
}

// TestRotation: what waits when a node's keys are rotated, and what was signed before, arrives and verifies at a node that knows the former
// keys, at one that knows none, and at a server that never fetches a key again; for 30 days. Then the former key is published no more, and
// what only that signed is refused.
func TestRotation(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		net, tick, made := newNetwork(), newClock(), 0
		a, b := newNodeOn(t, net, tick, 0, nil, c), newNode(t, net, tick, 1, nil)
		sealer := must.Get(key.LoadOrCreateMaster(filepath.Join(t.TempDir(), "master.key")))(t)
		ring := a.restarted(sealer, &made)
		former := ring.Ed
		table := hall.New(a.db, &identity.Gate{}, hall.NewLimits(hall.Rates{}))
		ring.Bind(table)
		rotate := func(args string) {
			t.Helper()
			must.Get(table.Invoke(t.Context(), hall.Request{Op: protocol.RotateNodeKey.Name, Args: []byte(args), Door: "operator",
				Evidence: identity.Evidence{Operator: true}}))(t)
			require.NoError(t, ring.Refresh(t.Context()), "as every minute")
		}
		k := &keeper{}
		net.mu.Lock()
		net.hosts["keeper.example"] = k.serve(a)
		net.mu.Unlock()
		k.fetch(a)
		tell := func(id string) {
			require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
				return a.f.enqueueDelivery(ctx, tx, a.f.site.Board(), "https://keeper.example/inbox", activity.Object{"id": id, "type": "View", "actor": a.f.site.Board()})
			}))
		}
		b.follow(a)
		a.follow(b)
		theirs := b.post(nil)
		first := a.post(nil)
		tell("one")
		settle(t, a, b)
		require.Equal(t, protocol.Visible, b.state(first.URI), "b knows the former key")
		late := [][]byte{a.served(activity.CreateID(a.post(nil).URI)[len(a.base):]), a.served(activity.CreateID(a.post(nil).URI)[len(a.base):])}

		// Both servers are away; what is for them waits.
		net.set("b.example", true)
		net.set("keeper.example", true)
		waits := []*protocol.StoredPost{a.post(nil), a.post(func(p *protocol.StoredPost) { p.ReplyTo = theirs.URI })}
		tell("two")
		for range 5 {
			a.work()
		}
		require.Empty(t, b.state(waits[0].URI))
		rotate(`{"inHours":2,"overlapDays":30}`)
		tick.pass(2*time.Hour + time.Minute)
		ring = a.restarted(sealer, &made)
		require.NotEqual(t, former.Thumbprint(), ring.Ed.Thumbprint())
		waits = append(waits, a.post(nil), a.post(func(p *protocol.StoredPost) { p.ReplyTo = theirs.URI }))
		tell("three")
		for range 5 {
			a.work()
		}
		net.set("b.example", false)
		net.set("keeper.example", false)
		for range 30 { // the pauses between tries
			settle(t, a, b)
			tick.pass(30 * time.Minute)
		}
		for _, p := range waits {
			require.Equal(t, protocol.Visible, b.state(p.URI))
		}
		require.ElementsMatch(t, []string{"one", "two", "three"}, k.got, "by the former RSA key")
		no := k.no
		require.Positive(t, no, "by the next one it was refused")
		tell("four")
		settle(t, a)
		require.Len(t, k.got, 4)
		require.Equal(t, no, k.no, "what the server takes is remembered")

		fresh := newNode(t, net, tick, 2, nil) // reads the log from the beginning
		fresh.follow(a)
		settle(t, a, b, fresh)
		require.Equal(t, protocol.Visible, fresh.state(first.URI))
		relayed := func(body []byte) int {
			return fresh.f.send(t.Context(), fresh.f.site.Board(), b.base+"/ap/inbox", body).status
		}
		require.Equal(t, 202, relayed(late[0]), "by the former key, on its way since")

		tick.pass(29 * 24 * time.Hour)
		require.NoError(t, ring.Refresh(t.Context()))
		require.Len(t, ring.Others(), 1, "within 30 days")
		require.Contains(t, string(a.served("/ap/board")), key.Multikey(ring.Others()[0]))
		tick.pass(3 * 24 * time.Hour)
		require.NoError(t, ring.Refresh(t.Context()))
		require.Empty(t, ring.Others())
		require.True(t, ring.FormerRSA().IsZero())
		k.fetch(a)
		tell("five")
		settle(t, a)
		require.Len(t, k.got, 5, "by the next one")
		require.Equal(t, no, k.no)
		require.Equal(t, 401, relayed(late[1]), "the former key has ended")
		last := a.post(nil)
		settle(t, a, b, fresh)
		require.Equal(t, protocol.Visible, b.state(last.URI))
		require.Equal(t, protocol.Visible, fresh.state(last.URI))
	})
}
