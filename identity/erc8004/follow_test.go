package erc8004

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	a := s.setAgent(t)
	r := newTestReader(t, func(c *Config) { c.Chains[0].Poll = 10 * time.Millisecond }, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go r.Run(ctx)
	seen, ended := make(chan Sight, 16), make(chan error, 1)
	go func() {
		ended <- r.Follow(ctx, mustID(t, vectorID), 10*time.Millisecond, func(s Sight) bool { seen <- s; return true })
	}()
	next := func() Sight {
		select {
		case s := <-seen:
			return s
		case <-time.After(time.Minute):
			t.Fatal("nothing was reported")
			return Sight{}
		}
	}

	first := next()
	require.Equal(t, SightNow, first.Kind)
	require.Equal(t, a.owner, first.Overview.Owner)
	require.Len(t, first.Overview.Record, 1)
	require.True(t, first.Overview.Record[0].Valid)

	buyer, seller := common.Address{7}, a.owner
	s.do(func() {
		s.past(false)
		a.owner = buyer
		s.emit(topicTransfer, common.BytesToHash(seller[:]), common.BytesToHash(buyer[:]), agentTopic(1))
	})
	sold := next()
	require.Equal(t, SightChanged, sold.Kind)
	require.Equal(t, []string{"owner", "keys"}, sold.Changed, "the record of the seller does not count")
	require.True(t, sold.Overview.Pending)
	require.ErrorIs(t, sold.Overview.NoKeys, ErrKeyUnknown)

	s.do(func() { s.fork, s.branch, s.head, s.logs, a.owner = 100, 9, 103, nil, seller })
	back := next()
	require.Equal(t, SightReorganised, back.Kind)
	require.Equal(t, []string{"owner", "keys"}, back.Changed)
	require.Equal(t, seller, back.Overview.Owner)

	s.do(func() {
		a.uri = "https://elsewhere.example/"
		s.emit(topicURIUpdated, agentTopic(1), common.Hash{})
	})
	renamed := next()
	require.Equal(t, SightChanged, renamed.Kind)
	require.Equal(t, []string{"agentURI"}, renamed.Changed)
	require.False(t, renamed.Overview.Pending, "a URI gives nobody authority")

	s.do(func() {
		s.past(false)
		a.wallet = common.Address{8}
		s.emit(topicMetadataSet, agentTopic(1), topic("agentWallet"))
	})
	require.Equal(t, []string{"agentWallet"}, next().Changed)
	s.do(func() { s.final = s.head })
	final := next()
	require.Equal(t, SightFinal, final.Kind)
	require.False(t, final.Overview.Pending)

	s.do(func() { s.chain = 2 })
	r.pass(10 * time.Minute) // what is cached is too old
	lost := next()
	require.Equal(t, SightUnreadable, lost.Kind)
	require.ErrorIs(t, lost.Err, ErrUnavailable)

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, r.Follow(t.Context(), mustID(t, "eip155:31337:0x5fbdb2315678afecb367f032d93f642f64180aa3:9"), time.Second, nil), ErrUnavailable)
}

func TestLag(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	r := newTestReader(t, nil, s)
	l := must.Get(r.Lag(t.Context(), stubChain))(t)
	require.Equal(t, Lag{100, 96, l.HeadAt, l.FinalAt}, l)

	l = Lag{Head: 100, Final: 36, HeadAt: time.Unix(768, 0), FinalAt: time.Unix(0, 0)} // two epochs of 32 blocks of 12 s
	for block, left := range map[uint64]time.Duration{20: 0, 36: 0, 100: 768 * time.Second, 101: 768 * time.Second, 68: 384 * time.Second} {
		require.Equal(t, left, l.Until(block), "block %d", block)
	}
	require.Zero(t, Lag{Head: 5, Final: 5}.Until(6), "every block is final")
}
