package node_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	keydirectory "stoa/identity/directory"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/credential"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestNodeKey_Rotate: the node's next key is published with its beginning, the former one with its end. Who has read the directory before
// takes the next key once it has begun, and who reads it after takes the former one until it ends; receipts of the former one stay the node's.
func TestNodeKey_Rotate(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, func(c *node.Config) { c.Data = t.TempDir() })
	peer := func() *keydirectory.Cache {
		c := must.Get(keydirectory.New(keydirectory.Config{Client: http.DefaultClient, AllowLoopback: true}))(t)
		go c.Run(t.Context())
		return c
	}
	takes := func(c *keydirectory.Cache, thumbprint string, at time.Time) error {
		var err error
		require.Eventually(t, func() bool { // a client whose directory is being fetched sends the request again
			_, _, err = c.Await(t.Context(), "n", httpsig.AgentRef{URL: h.Base, Form: httpsig.AgentOrigin}, thumbprint, at)
			return err == nil || !strings.Contains(err.Error(), "being fetched")
		}, time.Minute, 20*time.Millisecond)
		return err
	}
	former, now := h.Keys.Ed.Thumbprint(), time.Now()
	before := peer()
	require.NoError(t, takes(before, former, now))

	reopened := func() *credential.Keyring {
		sealer := must.Get(key.LoadMaster(filepath.Join(h.Config.Data, "master.key")))(t)
		return must.Get(credential.OpenKeyring(t.Context(), h.DB, sealer, nil))(t)
	}
	list := must.Get(node.Do(t.Context(), h.Admin().Admin, protocol.RotateNodeKey, protocol.NodeKeyRotation{InHours: 1, OverlapDays: 30}))(t)
	require.Len(t, list.Items, 2)
	next := list.Items[1].KeyID
	require.True(t, list.Items[0].Signs, "until the next one begins")
	_, err := node.Do(t.Context(), h.Admin().Admin, protocol.RotateNodeKey, protocol.NodeKeyRotation{InHours: 1})
	require.Equal(t, protocol.Conflict, protocol.CodeOf(err), "one waits")
	require.NoError(t, h.Keys.Refresh(t.Context()), "as every minute")

	directory := h.Ask("GET", httpsig.DirectoryPath, "").Is(200)
	set := must.Get(key.ParseSet(directory.Body.Bytes()))(t)
	was, ok := set.Find(former)
	require.True(t, ok)
	require.WithinDuration(t, now.Add(time.Hour).AddDate(0, 0, 30), was.Expires, time.Minute)
	will, ok := set.Find(next)
	require.True(t, ok)
	require.WithinDuration(t, now.Add(time.Hour), will.NotBefore, time.Minute)
	require.Equal(t, former, reopened().Ed.Thumbprint())
	var actor struct {
		AssertionMethod []struct{ ID, PublicKeyMultibase string }
	}
	require.NoError(t, json.Unmarshal(h.Ask("GET", "/ap/node", "", "Accept", "application/activity+json").Is(200).Body.Bytes(), &actor))
	require.Len(t, actor.AssertionMethod, 2)
	require.Equal(t, key.Multikey(will.Key.(ed25519.PublicKey)), actor.AssertionMethod[1].PublicKeyMultibase)

	later := now.Add(time.Hour - 15*time.Second) // the next key has begun, as far as clocks agree; what is cached is so still
	require.NoError(t, takes(before, former, now), "in its cache")
	require.NoError(t, takes(before, next, later), "which it had not read: a keyid that is not in a cached directory is looked for")
	after := peer()
	require.NoError(t, takes(after, former, later), "until it ends")
	require.NoError(t, takes(after, next, later))
	require.NotEqual(t, h.Keys.RSA.Thumbprint(), reopened().RSA.Thumbprint())
	require.NotEqual(t, h.Keys.P256.Thumbprint(), reopened().P256.Thumbprint())
	require.ErrorIs(t, takes(after, next, now), httpsig.CodeKeyNotYetValid)

	list = must.Get(node.Do(t.Context(), h.Admin().Admin, protocol.RotateNodeKey, protocol.NodeKeyRotation{}))(t)
	require.Len(t, list.Items, 3, "after a leak it does not wait for the one that waits")
	require.True(t, list.Items[0].Ended && list.Items[1].Ended)
	require.Equal(t, list.Items[2].KeyID, reopened().Ed.Thumbprint())
}

// TestNodeKey_Leaked: without delay and overlap, the next start of the node signs with the next key and the former one is published no more.
func TestNodeKey_Leaked(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, func(c *node.Config) { c.Data = t.TempDir() })
		former := h.Keys.Ed
		list := must.Get(node.Do(t.Context(), h.Admin().Admin, protocol.RotateNodeKey, protocol.NodeKeyRotation{}))(t)
		sealer := must.Get(key.LoadMaster(filepath.Join(h.Config.Data, "master.key")))(t)
		k := must.Get(credential.OpenKeyring(t.Context(), h.DB, sealer, nil))(t)
		require.Equal(t, list.Items[1].KeyID, k.Ed.Thumbprint())
		require.Empty(t, k.Others())
		pairs := must.Get(k.Node(t.Context()))(t)
		require.Len(t, pairs, 2, "the next one, and that of P-256")
		require.Equal(t, k.Ed.Thumbprint(), pairs[0].Thumbprint())
		require.Len(t, k.Ever(), 2)

		token := must.Get(former.SignCompact([]byte(`{}`), protocol.OrderReceiptType))(t)
		_, found, err := (key.Set{Keys: k.Ever()}).VerifyCompact(token, protocol.OrderReceiptType, 4096, time.Now())
		require.NoError(t, err, "a receipt of the former key is the node's own")
		require.Equal(t, former.Thumbprint(), found.Thumbprint)
		_, err = node.Do(t.Context(), h.Admin().Admin, protocol.RotateNodeKey, protocol.NodeKeyRotation{OverlapDays: 1})
		require.NoError(t, err, "again, over the key whose private half is gone")
		require.Len(t, must.Get(node.Do(t.Context(), h.Admin().Admin, protocol.ListNodeKeys, protocol.None{}))(t).Items, 3)
	})
}
