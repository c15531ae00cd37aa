package erc8004

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	max256 := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for in, canonical := range map[string]string{
		"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:0":          "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:0",
		"eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22":      "eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22",
		"eip155:1:0x8004A169FB4A3325136EB29FA0CEB6D2E539A432:1":          "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:1",
		"eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:" + max256:  "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:" + max256,
		"eip155:9223372036854775808:0x" + strings.Repeat("0", 40) + ":5": "eip155:9223372036854775808:0x" + strings.Repeat("0", 40) + ":5",
	} {
		id, err := ParseID(in)
		require.NoError(t, err, in)
		require.Equal(t, canonical, id.String())
		again := must.Get(ParseID(id.Display()))(t)
		require.Equal(t, id.String(), again.String())
	}
	require.Equal(t, "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:0",
		mustID(t, "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:0").Display())
	addr := "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
	for _, in := range []string{
		"", "eip155", "eip155:1:" + addr, "eip155:01:" + addr + ":0", "eip155:0:" + addr + ":0",
		"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539A432:0", // one wrong capital
		"eip155:1:" + addr + ":007", "eip155:1:" + addr + ":-1", "eip155:1:" + addr + ":",
		"eip155:1:" + addr + ":115792089237316195423570985008687907853269984665640564039457584007913129639936", // 2^256
		"solana:1:x:1", "EIP155:1:" + addr + ":0", "eip155:1:0X8004a169fb4a3325136eb29fa0ceb6d2e539a432:0",
		" eip155:1:" + addr + ":0", "eip155:1:" + addr + ":0\n", "eip155:99999999999999999999:" + addr + ":0",
		"eip155:1:0x8004a169:0", "eip155:1:" + addr + ":0:0",
	} {
		require.ErrorIs(t, must.Err(ParseID(in)), ErrInvalidID, in)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:0")
	f.Add("eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:22")
	f.Add("eip155:01:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:007")
	f.Add("solana:1:x:1")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidID)
			return
		}
		require.Equal(t, strings.ToLower(s), id.String())
		again := must.Get(ParseID(id.Display()))(t)
		require.Equal(t, id.String(), again.String())
	})
}
