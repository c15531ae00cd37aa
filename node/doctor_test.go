package node_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity"
	"stoa/node"
	"stoa/node/hall"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// examined has a node examine itself, as an operator does on Health, and returns what it found, by name; faults by their code.
func examined(h *nodetest.House) map[string]protocol.Check {
	h.T.Helper()
	read := func() protocol.Health {
		res, err := h.Table.Invoke(h.T.Context(), hall.Request{Op: protocol.ReadHealth.Name, Args: []byte("{}"), Door: "operator",
			Evidence: identity.Evidence{Operator: true}})
		require.NoError(h.T, err)
		return res.Value.(protocol.Health)
	}
	var before time.Time
	if was := read().CheckUp; was != nil {
		before = was.At
	}
	require.Eventually(h.T, func() bool { return time.Since(before) >= time.Second }, time.Minute, 10*time.Millisecond) // which its time tells apart
	require.NoError(h.T, h.Operate(h.T.Context(), protocol.LookAgain.Name, []byte("{}")))
	var up *protocol.CheckUp
	require.Eventually(h.T, func() bool {
		up = read().CheckUp
		return up != nil && up.At.After(before)
	}, 2*time.Minute, 20*time.Millisecond)
	found := map[string]protocol.Check{}
	for _, c := range up.Items {
		name := c.Code
		if name == "" {
			name = c.Name
		}
		found[name] = c
	}
	return found
}

// TestReach: a node learns from one that it follows whether it can be reached. Who asks is looked at and nobody else, and only for peers.
func TestReach(t *testing.T) {
	t.Parallel()
	peer := nodetest.Start(t)
	server := httptest.NewUnstartedServer(nil)
	h := nodetest.New(t, func(c *node.Config) { c.BaseURL = "http://" + server.Listener.Addr().String() })
	server.Config.Handler = h.Handler()
	server.Start()
	defer server.Close()
	h.Work()

	found := examined(h)
	require.Equal(t, protocol.CheckUnseen, found["ports-unasked"].Verdict, "nobody to ask: %v", found)
	_, err := h.Reach(t.Context(), peer.Base)
	require.ErrorContains(t, err, "403", "it is no peer")

	require.NoError(t, h.Follow(t.Context(), peer.Base))
	require.Eventually(t, func() bool {
		n, err := h.AcceptedPeers(t.Context())
		return err == nil && n == 1
	}, time.Minute, 20*time.Millisecond)
	found = examined(h)
	require.Equal(t, protocol.CheckOK, found["ports"].Verdict, "%v", found)
	require.Contains(t, found["ports"].Seen, strings.TrimPrefix(peer.Base, "http://")+": ok (IPv4 ok")
	require.Equal(t, protocol.CheckOK, found["clock"].Verdict, "%v", found)
	require.Contains(t, found["versions"].Seen, " test")

	require.Equal(t, 401, peer.Ask("GET", "/ap/reach", "").Code, "it is signed")
	server.Close()
	found = examined(h)
	require.Equal(t, protocol.CheckFault, found["ports-closed"].Verdict, "%v", found)
	require.Contains(t, found["ports-closed"].Seen, "refused")
	require.Equal(t, protocol.CheckFault, found["address-silent"].Verdict, "%v", found)
	for range 3 {
		_, err = h.Reach(t.Context(), peer.Base)
	}
	require.ErrorContains(t, err, "429", "a few times a minute")
}

// TestDoctorPage: what reached the node is told to who reads its database, and to nobody else.
func TestDoctorPage(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for _, mark := range []string{"x", strings.Repeat("A", 75), ""} {
		a := h.Ask("GET", "/ap/doctor/"+mark, "")
		require.Equal(t, 404, a.Code, mark)
		require.NotContains(t, a.Body.String(), "forwarded")
	}
}

// TestLookAgain: an examination that waits for tomorrow is made now, and the next one is tomorrow again.
func TestLookAgain(t *testing.T) {
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change)
		h.Work()
		found := examined(h)
		require.NotEmpty(t, found["backup-none"].Mend+found["backup-unknown"].Mend, "%v", found)
		require.Equal(t, "ok", string(found["database"].Verdict), "%v", found)
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			page, err := tx.Jobs().List(ctx, storage.JobWaiting, storage.ExamineJob, 10, "")
			require.Len(t, page.Items, 1)
			require.Greater(t, page.Items[0].RunAt.Sub(tx.Now), 23*time.Hour)
			return err
		}))
	})
}
