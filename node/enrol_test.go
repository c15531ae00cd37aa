package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestAddKey_Again: what is added twice loses nothing, and what was retired never
// comes back, whoever of them adds it.
func TestAddKey_Again(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		admin := h.Admin()
		h.Hosted("asha")
		ravis := h.Hosted("ravi")
		pair, err := key.GenerateEd25519()
		require.NoError(t, err)
		public, err := key.MarshalPublic(pair.Published())
		require.NoError(t, err)
		stored := func() (kept, retired bool) {
			keys, err := node.Do(t.Context(), admin.Admin, protocol.ListKeys, protocol.OwnInput{Owned: nodetest.Owned("asha")})
			require.NoError(t, err)
			for _, k := range keys.Items {
				if k.KeyID == pair.Thumbprint() {
					return k.Kept, k.RetiredAt != nil
				}
			}
			t.Fatal("the key is not there")
			return
		}

		require.NoError(t, admin.AddKey(t.Context(), "asha", pair, false))
		kept, _ := stored()
		require.False(t, kept)
		require.NoError(t, admin.AddKey(t.Context(), "asha", pair, true))
		kept, _ = stored()
		require.True(t, kept)
		require.NoError(t, admin.AddKey(t.Context(), "asha", pair, false))
		kept, retired := stored()
		require.True(t, kept, "the private half that the node keeps stays")
		require.False(t, retired)
		require.Equal(t, protocol.Conflict, protocol.CodeOf(admin.AddKey(t.Context(), "asha", ravis, false)), "another profile's")

		require.NoError(t, admin.RetireKey(t.Context(), pair.Thumbprint()))
		for _, keep := range []bool{true, false} {
			err = admin.AddKey(t.Context(), "asha", pair, keep)
			require.Equal(t, protocol.Conflict, protocol.CodeOf(err))
			require.ErrorContains(t, err, "make another", "it names the way out")
		}
		bearer := []string{"Authorization", "Bearer " + h.OwnerToken("asha")}
		require.Equal(t, 409, h.Ask("POST", "/api/owner/keys", `{"jwk":`+string(public)+`}`, bearer...).Code)
		_, retired = stored()
		require.True(t, retired)
		require.Equal(t, 401, h.Signed(pair, nodetest.GoodPost, nil).Code)
	})
}
