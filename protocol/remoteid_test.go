package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

func TestRemoteID(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	const uri = "https://a.example/ap/posts/post_01k9y3v6k8e5w9q2x4z7c1m0ad"
	id := protocol.RemoteID(protocol.PostID, at, uri)
	require.True(t, protocol.IsID(protocol.PostID, id))
	require.Equal(t, id, protocol.RemoteID(protocol.PostID, at, uri))
	require.Equal(t, protocol.NewID(protocol.PostID, at)[:15], id[:15], "sorts by its time among local ids")
	require.True(t, protocol.IsRemoteID(protocol.RemoteID(protocol.PostID, at.Add(time.Hour), uri), uri))
	require.False(t, protocol.IsRemoteID(id, uri+"x"))
	require.False(t, protocol.IsRemoteID(protocol.NewID(protocol.PostID, at), uri))
	require.False(t, protocol.IsRemoteID("", uri))
}
