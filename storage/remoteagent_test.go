package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/storage"
)

// A host has room for so many agents.
func TestRemoteAgents_Bound(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		put := func(host string, n int) (kept bool) {
			require.NoError(t, db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				kept, err = tx.RemoteAgents().Put(ctx, storage.RemoteAgent{Actor: fmt.Sprintf("https://%s/ap/agents/s%d", host, n), Host: host,
					Summary: protocol.AgentSummary{Profile: protocol.ProfileDraft{Handle: "s", Name: "S", Kind: protocol.Business}}})
				return err
			}))
			return kept
		}
		require.True(t, put("x.example", 0))
		require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO remote_agent (actor, host, agent, doc)
			WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT))
			SELECT 'https://x.example/ap/agents/s' || n, 'x.example', '', '{}' FROM series`, storage.MaxRemoteAgents-1))
		require.False(t, put("x.example", storage.MaxRemoteAgents))
		require.True(t, put("x.example", 0), "what is known is replaced")
		require.True(t, put("y.example", 1))
	})
}
