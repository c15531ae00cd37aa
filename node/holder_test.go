package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
)

const handsChanged = "The identity has changed hands since."

// TestHolder: pages of what was written before a sale say that the identity has changed hands, and profiles who holds it since when. They
// ask the chain nothing.
func TestHolder(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, "", change)
		s.Watch()
		page := func(path string) string { return s.Ask("GET", path, "", "Accept", "text/html").Is(200).Body.String() }
		changed := func(id string) bool { return strings.Contains(page("/board/"+id), handsChanged) }
		today := time.Now().In(protocol.India).Format("2 Jan 2006")
		holds := func(handle string, account int, since string) {
			t.Helper()
			who := strings.ToLower(s.Chain.Accounts[account].Address)
			require.Regexp(t, `Held by <code title="`+who+`">`+who[:6]+`…`+who[38:]+`</code> `+since+` `+today, page("/@"+handle))
		}
		a := enrolled(s, "asha", 0)
		holds("asha", 0, "at least since")
		signed := nodetest.As[protocol.Post](a.signs(a.pair, "POST", "/api/public/board", nodetest.GoodPost)).ID
		id := s.Register(0)
		owner := accountOf(s, 0, id.String())
		require.Eventually(t, func() bool {
			return owner.sends(owner.request("GET", "/api/public/since", "", false)).Code == 200
		}, time.Minute, 20*time.Millisecond)
		written := nodetest.As[protocol.Post](owner.sends(owner.request("POST", "/api/public/board", nodetest.GoodPost, false)).Is(201))
		before := []string{a.ownPost, signed, written.ID}
		time.Sleep(time.Second) // some looks
		for _, id := range before {
			require.False(t, changed(id), id)
		}

		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), id.AgentID, s.Chain.Registrar(1).Address()))
		buyers := nodetest.NewPair(t)
		s.Chain.Publish(1, 1, a.id, buyers)
		for _, id := range before {
			require.Eventually(t, func() bool { return changed(id) }, time.Minute, 20*time.Millisecond, id)
		}
		require.NotContains(t, page("/@asha"), "Held by")
		s.Chain.Do("final")
		a.grants(buyers, "")
		after := nodetest.As[protocol.Post](a.signs(buyers, "POST", "/api/public/board", nodetest.GoodPost)).ID
		require.False(t, changed(after), "of the buyer")
		require.True(t, changed(signed))
		s.Hosted("bina")
		require.NoError(t, s.Admin().EnrolIdentity(t.Context(), "bina", a.id.String(), buyers.Thumbprint()))
		holds("bina", 1, "since")
		require.False(t, changed(after))

		// Bought back: it had another owner in between.
		s.Chain.Must(s.Chain.Registrar(1).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(0).Address()))
		require.Eventually(t, func() bool { return changed(after) }, time.Minute, 20*time.Millisecond)
		require.True(t, changed(signed))
	})
}

// TestHolder_Reorganised: a sale that the chain takes back was none.
func TestHolder_Reorganised(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		s := nodetest.NewStage(t, ",depth:4", change)
		s.Watch()
		a := enrolled(s, "asha", 0)
		post := nodetest.As[protocol.Post](a.signs(a.pair, "POST", "/api/public/board", nodetest.GoodPost)).ID
		changed := func() bool { return strings.Contains(s.Ask("GET", "/board/"+post, "").Body.String(), handsChanged) }
		s.Chain.Must(s.Chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, s.Chain.Registrar(1).Address()))
		require.Eventually(t, changed, time.Minute, 20*time.Millisecond)
		s.Chain.Do("fork 1")
		s.Chain.Do("mine 4")
		require.Eventually(t, func() bool { return !changed() }, time.Minute, 20*time.Millisecond)
	})
}
