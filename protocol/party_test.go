package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMade is the one rule of whose a thing is.
func TestMade(t *testing.T) {
	t.Parallel()
	const agent, other = "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:7", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:77"
	signed := func(agent, owner, handle, key string) Caller {
		c := Caller{Standing: Signed, Agent: agent, Owner: owner, Handle: handle, KeyID: key, Proof: AuthorProof{Level: ByProfileKey}}
		if agent != "" {
			c.Proof = AuthorProof{Level: ByChainKey, Block: new(int64(7))}
		}
		return c
	}
	seller := signed(agent, "0xa", "", "k")
	hosted := signed(agent, "0xa", "asha", "k")
	before := func(c Caller) Author { // as it was stored before owners were
		a := c.Author("https://n.example", "", time.Now())
		a.Proof.Owner, a.Proof.BlockHash = nil, nil
		return a
	}
	of := func(c Caller) Author { return c.Author("https://n.example", "", time.Now()) }
	elsewhere := of(hosted)
	elsewhere.Node = new("m.example")
	partial := seller
	partial.Partial = true
	for _, tt := range []struct {
		name    string
		author  Author
		profile string
		caller  Caller
		want    bool
	}{
		{"the same", of(seller), "", seller, true},
		{"a new key of the owner", of(seller), "", signed(agent, "0xa", "", "k2"), true},
		{"another owner", of(seller), "", signed(agent, "0xb", "", "k2"), false},
		{"another owner who got the key, too", of(seller), "", signed(agent, "0xb", "", "k"), false},
		{"the former owner's key alone", of(seller), "", signed("", "", "", "k"), false},
		{"the former owner's key, as a profile", of(seller), "", signed("", "", "asha", "k"), false},
		{"another agent of the owner", of(seller), "", signed(other, "0xa", "", "k"), false},
		{"enrolled since", of(seller), "", hosted, true},
		{"a profile with the identity, signed in", of(seller), "", Caller{Standing: Session, Agent: agent, Owner: "0xa", Handle: "asha"}, false},
		{"what is signed in part", of(seller), "", partial, false},
		{"without standing", of(seller), "", Caller{Standing: Proof, Agent: agent, Owner: "0xa", KeyID: "k"}, false},
		{"the operator", of(seller), "", Caller{Standing: Operator, Agent: agent, Owner: "0xa", KeyID: "k"}, false},

		{"of before: the same key", before(seller), "", seller, true},
		{"of before: another key", before(seller), "", signed(agent, "0xa", "", "k2"), false},
		{"of before: another owner", before(seller), "", signed(agent, "0xb", "", "k2"), false},
		{"of before: the key alone", before(seller), "", signed("", "", "", "k"), false},

		{"a profile's", of(hosted), "asha", hosted, true},
		{"a profile's, by its owner", of(hosted), "asha", Caller{Standing: Session, Handles: []string{"asha", "bina"}}, true},
		{"a profile's, by who has the identity now", of(hosted), "asha", signed(agent, "0xb", "bina", "k2"), false},
		{"a profile's, by the identity without it", of(hosted), "asha", seller, false},
		{"a deleted profile's", of(hosted), "", hosted, false},
		{"a profile of another node, not of that handle here", elsewhere, "", signed("", "", "asha", "k2"), false},
		{"a profile of another node, by its identity", elsewhere, "", seller, true},

		{"a key's", of(signed("", "", "", "k")), "", signed("", "", "", "k"), true},
		{"a key's, with an identity since", of(signed("", "", "", "k")), "", seller, true},
		{"another key's", of(signed("", "", "", "k")), "", signed("", "", "", "k2"), false},
		{"nobody's", of(Caller{Standing: Proof, KeyID: "k"}), "", signed("", "", "", "k"), false},
	} {
		require.Equal(t, tt.want, tt.caller.Made(tt.author, tt.profile), tt.name)
		if tt.want { // what is one's own is in one's news
			require.Subset(t, tt.caller.Names(), tt.author.Names()[:1], tt.name)
		} else if !tt.caller.Partial && (tt.profile != "" || !tt.author.hosted()) { // of which whats_new knows nothing, or the room
			require.NotSubset(t, append(tt.caller.Names(), ""), append(tt.author.Names(), "none")[:1], tt.name)
		}
	}
}

// TestCaller_KnownAs: a block binds the identity under the owner that it was set against.
func TestCaller_KnownAs(t *testing.T) {
	t.Parallel()
	c := Caller{Standing: Signed, Agent: "a", Owner: "0xa", KeyID: "k", Handle: "asha", Account: "acc"}
	require.Equal(t, []string{"agent:a@0xa", "agent:a", "account:acc", "handle:asha", "key:k"}, c.KnownAs(c.ID()))
	require.Equal(t, []string{"net:n"}, Caller{Standing: Proof, Network: "n"}.KnownAs("net:n"))
	a := Caller{Standing: Signed, Agent: "a", Owner: "0xa", KeyID: "k", Proof: AuthorProof{Level: ByChainKey}}.Author("https://n.example", "", time.Now())
	require.Equal(t, []string{"key:k", "agent:a@0xa"}, a.BlockNames())
	require.Equal(t, []string{"a", "a@0xa"}, a.AgentBlocks())
	a.Proof.Owner = nil
	require.Equal(t, []string{"key:k"}, a.BlockNames(), "it does not bind who buys the identity")
	require.Equal(t, []string{"a"}, a.AgentBlocks())
}
