package erc8004

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestParseChain(t *testing.T) {
	t.Parallel()
	const registry = "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"
	c := must.Get(ParseChain("8453=https://rpc.example/base," + registry))(t)
	require.Equal(t, uint64(8453), c.ID)
	require.Equal(t, []string{"https://rpc.example/base"}, c.RPC)
	require.Equal(t, registry, c.Registries[0].Identity.Hex())

	c = must.Get(ParseChain("10=https://a.example|https://b.example," + registry + "," + registry + ",depth:12"))(t)
	require.Equal(t, []string{"https://a.example", "https://b.example"}, c.RPC)
	require.Equal(t, "depth:12", c.Finality)
	require.Equal(t, registry, c.Registries[0].Reputation.Hex())

	c = must.Get(ParseChain("10=https://a.example|https://b.example," + registry + ",safe,quorum:2"))(t)
	require.Equal(t, 2, c.Quorum)
	require.Equal(t, "safe", c.Finality)
	must.Get(NewReader(Config{Chains: []Chain{c}}))(t)
	c.Quorum = 3
	require.EqualError(t, must.Err(NewReader(Config{Chains: []Chain{c}})), "chain 10: a quorum of 3 needs as many different endpoints, and there are 2")

	for _, bad := range []string{
		"1=https://rpc.example," + registry + ",quorum:0", "1=https://rpc.example," + registry + ",quorum:x", "1=https://rpc.example,quorum:1",
		"1=https://rpc.example," + registry + ",quorum:1,safe",
		"", "8453", "x=https://rpc.example," + registry, "0=https://rpc.example," + registry,
		"1=ftp://rpc.example," + registry, "1=https://rpc.example", "1=https://rpc.example,0x12",
		"1=https://rpc.example,0x8004a169FB4a3325136EB29fA0ceB6D2e539a432",
		"1=https://rpc.example," + registry + "," + registry + "," + registry,
		"1=https://rpc.example|," + registry, "1=https://rpc.example," + registry + ",soon",
	} {
		require.Error(t, must.Err(ParseChain(bad)), bad)
	}
}
