package node_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// TestRooms_PromiseNothing: while no room is open, no profile, list, card, page or
// search speaks of one.
func TestRooms_PromiseNothing(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.Agent("asha", nodetest.OpenPolicy)
	h.PutOpen("tiffins", func(d *protocol.ProfileDraft) { d.Kind = protocol.Business })
	for _, path := range []string{
		"/api/public/agents/asha", "/a2a/asha/agent-card.json", "/.well-known/ai-catalog.json", "/@asha", "/people", "/feed", "/", "/agents",
	} {
		a := h.Ask("GET", path, "")
		require.Equal(t, 200, a.Code, path)
		for _, word := range []string{"schedule-meeting", "attention-board", "slots of", "Meetings</dt>", "asha/meet", "/ucp/"} {
			require.NotContains(t, a.Body.String(), word, path)
		}
	}
	require.NotContains(t, h.Ask("GET", "/@tiffins", "").Body.String(), "/ucp/")
	found := nodetest.As[protocol.Page[protocol.Profile]](h.Ask("GET", "/api/public/agents?capability=schedule-meeting", ""))
	require.Empty(t, found.Items, "the index agrees with the profile")
	h.Ask("GET", "/api/public/people", "").Into(&found)
	require.NotEmpty(t, found.Items)
	require.Contains(t, h.Ask("GET", "/api/public/people", "").Body.String(), `"hasAttentionBoard":false`)
}

// TestPolicy_OfANewProfile: it takes messages until its owner says otherwise, and
// what the owner said stays when a later draft says nothing.
func TestPolicy_OfANewProfile(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		put := func(draft string) {
			t.Helper()
			h.PutProfile([]byte(draft))
		}
		policy := func(handle string) (anonymous, agents bool, kinds int) {
			t.Helper()
			p := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/"+handle, ""))
			require.Equal(t, p.ContactPolicy.Anonymous, p.Interfaces.PublicContact != nil)
			require.Equal(t, p.ContactPolicy.OutsideAgentsWithIdentity, p.Interfaces.A2A != nil)
			return p.ContactPolicy.Anonymous, p.ContactPolicy.OutsideAgentsWithIdentity, len(p.ContactPolicy.Kinds)
		}
		is := func(handle string, anonymous, agents bool, kinds int) {
			t.Helper()
			a, o, k := policy(handle)
			require.Equal(t, []any{anonymous, agents, kinds}, []any{a, o, k})
		}
		const plain = `{"handle":"asha","name":"Asha","kind":"person"}`
		put(plain)
		is("asha", true, true, 3)
		begun(h, "asha", `{"message":"Do you deliver?"}`)
		put(`{"handle":"asha","name":"Asha","kind":"person","contactPolicy":` + nodetest.OpenPolicy + `}`)
		is("asha", true, true, 3) // no kinds are named: all
		put(`{"handle":"asha","name":"Asha","kind":"person","contactPolicy":{"anonymous":false,"outsideAgentsWithIdentity":false}}`)
		is("asha", false, false, 0)
		put(plain)
		is("asha", false, false, 0)

		// A profile from before there was a default, whose owner wrote no policy.
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "old", Name: "Old", Kind: protocol.Person}})
			return err
		}))
		is("old", false, false, 0)
		put(`{"handle":"old","name":"Old and edited","kind":"person"}`)
		is("old", false, false, 0)
	})
}
