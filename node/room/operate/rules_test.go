package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
)

// TestRules_Blocked is the table of who a block is of.
func TestRules_Blocked(t *testing.T) {
	t.Parallel()
	const agent = "eip155:1:0xabcdef0000000000000000000000000000000000:7"
	past := time.Now().Add(-time.Minute)
	r := &Rules{}
	known := map[blocked]protocol.Block{
		{protocol.BlockAgent, agent}: {Kind: protocol.BlockAgent},

		{protocol.BlockAgent, agent + "2@0xa"}: {Kind: protocol.BlockAgent},
		{protocol.BlockKey, "k"}:               {Kind: protocol.BlockKey},
		{protocol.BlockNetwork, "n"}:           {Kind: protocol.BlockNetwork},
		{protocol.BlockHandle, "asha"}:         {Kind: protocol.BlockHandle},
		{protocol.BlockHandle, "freed"}:        {Kind: protocol.BlockHandle, ExpiresAt: &past},
	}
	r.blocks.Store(&known)
	tests := []struct {
		name    string
		caller  protocol.Caller
		handle  string
		refused bool
	}{
		{"the agent", protocol.Caller{Standing: protocol.Signed, Agent: agent}, "", true},
		{"another", protocol.Caller{Standing: protocol.Signed, Agent: agent + "1"}, "", false},
		{"the agent's owner", protocol.Caller{Standing: protocol.Signed, Agent: agent, Owner: "0xb"}, "", true},
		{"an agent under the blocked owner", protocol.Caller{Standing: protocol.Signed, Agent: agent + "2", Owner: "0xa"}, "", true},
		{"an agent under another owner", protocol.Caller{Standing: protocol.Signed, Agent: agent + "2", Owner: "0xb"}, "", false},
		{"the key", protocol.Caller{Standing: protocol.Signed, KeyID: "k"}, "", true},
		{"the network, unknown", protocol.Caller{Standing: protocol.Proof, Network: "n"}, "", true},
		{"the network, a key that nobody vouches for", protocol.Caller{Standing: protocol.Signed, KeyID: "other", Network: "n"}, "", true},
		{"the network, an owner", protocol.Caller{Standing: protocol.Session, Account: "acc", Network: "n"}, "", false},
		{"the network, an agent", protocol.Caller{Standing: protocol.Signed, Agent: agent + "1", Network: "n"}, "", false},
		{"the handle", protocol.Caller{Standing: protocol.Session, Handle: "asha"}, "", true},
		{"its owner as another", protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"asha", "ravi"}}, "ravi", false},
		{"its owner as it", protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"asha", "ravi"}}, "asha", true},
		{"its owner, who has no other", protocol.Caller{Standing: protocol.Session, Account: "acc", Handles: []string{"asha"}}, "", true},
		{"a block that ended", protocol.Caller{Standing: protocol.Session, Handle: "freed"}, "", false},
		{"the operator", protocol.Caller{Standing: protocol.Operator, Handle: "asha", Network: "n"}, "asha", false},
		{"nobody in particular", protocol.Caller{Standing: protocol.Proof, Network: "m"}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := r.Blocked(tt.caller, tt.handle)
			if tt.refused {
				require.Equal(t, protocol.Forbidden, protocol.CodeOf(err))
			} else {
				require.NoError(t, err)
			}
		})
	}
}
