package main

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
)

func isPending(err error) bool { return errors.Is(err, erc8004.ErrPendingFinality) }
func isUnknown(err error) bool { return errors.Is(err, erc8004.ErrKeyUnknown) }

// shared is a Memory that outlives a reader, as a database does.
type shared struct {
	mu     sync.Mutex
	newest map[string]uint64
}

func (m *shared) Newest(_ context.Context, id, signer string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest[id+signer], nil
}

func (m *shared) Raise(_ context.Context, id, signer string, at uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest[id+signer] = max(m.newest[id+signer], at)
	return nil
}

// wallet deploys the ERC-1271 wallet with that account as its signer.
func (w *world) wallet(account int) common.Address {
	w.Helper()
	a, err := own.load("TestWallet")
	require.NoError(w, err)
	code, err := a.code(address(account))
	require.NoError(w, err)
	rec, err := w.registrar(9).Send(w.ctx, nil, code)
	require.NoError(w, err)
	return *rec.Contract
}

func (w *world) setSigner(wallet, signer common.Address) {
	w.Helper()
	data := append(crypto.Keccak256([]byte("setSigner(address)"))[:4], common.LeftPadBytes(signer[:], 32)...)
	w.must(w.registrar(9).Send(w.ctx, &wallet, data))
}

// byContract is a record that names a contract and carries an account's signature.
func (w *world) byContract(account int, wallet common.Address, id erc8004.ID, keys ...erc8004.Key) erc8004.Record {
	w.Helper()
	r := erc8004.Record{Signer: wallet, IssuedAt: uint64(time.Now().Unix()), Keys: keys}
	digest := r.Digest(id)
	sig, err := crypto.Sign(digest[:], accountKey(account))
	require.NoError(w, err)
	sig[64] += 27
	r.Signature = sig
	return r
}

func TestContractOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0)
	g := w.registrar(0)
	wallet := w.wallet(4)
	w.must(g.SetKeys(w.ctx, id.AgentID, w.byContract(4, wallet, id, key)))
	w.want(id, key, erc8004.ErrKeyUnknown) // not the owner yet
	w.must(g.Transfer(w.ctx, id.AgentID, wallet))
	w.finalise()
	w.want(id, key, nil)

	r := w.reader(w.config())
	_, err := r.Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
	w.setSigner(wallet, address(5))
	_, err = r.Authority(w.ctx, id, key.Thumbprint)
	require.ErrorIs(t, err, erc8004.ErrKeyUnknown, "contracts are asked each time")

	w.setSigner(wallet, common.Address{}) // burns all the gas it gets
	_, err = r.Authority(w.ctx, id, key.Thumbprint)
	require.ErrorIs(t, err, erc8004.ErrKeyUnknown)
}

func TestContractWallet_SetBySignature(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0)
	wallet := w.wallet(4)
	g := w.registrar(0)
	var refused *erc8004.RevertError
	_, err := g.SetAgentWallet(w.ctx, id.AgentID, wallet, accountKey(3))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "invalid wallet sig", refused.Reason)
	w.must(g.SetAgentWallet(w.ctx, id.AgentID, wallet, accountKey(4)))
	s, err := w.reader(w.config()).Snapshot(w.ctx, id)
	require.NoError(t, err)
	require.Equal(t, wallet, s.Wallet)
}

func TestReorg_OfGrant(t *testing.T) {
	t.Parallel()
	for _, polled := range []bool{false, true} {
		// The backend may include the transaction again; then the grant was never
		// undone, and the scenario is played again.
		undone := false
		for try := 0; try < 5 && !undone; try++ {
			undone = undoGrant(t, polled)
		}
		require.True(t, undone, "the backend included the transaction again, five times")
	}
}

// undoGrant grants a key in a block that a reorganisation replaces, and reports
// whether the new branch is without it.
func undoGrant(t *testing.T, polled bool) bool {
	t.Helper()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0)
	r := w.reader(w.config())
	if polled {
		w.polling(r)
	}
	fork, err := w.chain.backend.Client().BlockByNumber(w.ctx, nil)
	require.NoError(t, err)
	w.must(w.registrar(0).SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now(), key)))
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, key.Thumbprint)
		require.Error(t, err)
		return isPending(err)
	}, time.Minute, 20*time.Millisecond)

	// The block with the grant is replaced by empty ones; the transaction
	// that would come back is taken out of the pool.
	w.chain.mu.Lock()
	require.NoError(t, w.chain.backend.Fork(fork.Hash()))
	w.chain.backend.Rollback()
	for range 3 {
		w.chain.backend.Commit()
	}
	w.chain.mu.Unlock()
	require.Eventually(t, func() bool {
		s, err := w.reader(w.config()).Snapshot(w.ctx, id)
		return err == nil && s.Block > fork.NumberU64()
	}, time.Minute, 20*time.Millisecond)
	s, err := w.reader(w.config()).Snapshot(w.ctx, id)
	require.NoError(t, err)
	if len(s.Keys) > 0 {
		return false
	}
	w.finalise()
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, key.Thumbprint)
		require.Error(t, err, "an undone grant never counts")
		return isUnknown(err)
	}, time.Minute, 20*time.Millisecond)
	return true
}

func TestAllowPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0)
	w.must(w.registrar(0).SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now(), key)))
	cfg := w.config()
	cfg.AllowPending = true
	g, err := w.reader(cfg).Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
	require.True(t, g.Pending)
	cfg.AllowPending, cfg.Chains[0].Finality = false, "depth:0"
	_, err = w.reader(cfg).Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
	cfg.Chains[0].Finality = "safe" // the backend's safe is its latest
	_, err = w.reader(cfg).Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
	cfg.Chains[0].Finality = "depth:5"
	_, err = w.reader(cfg).Authority(w.ctx, id, key.Thumbprint)
	require.ErrorIs(t, err, erc8004.ErrPendingFinality)
}

func TestHugeMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0, key)
	g := w.registrar(0)
	w.must(g.SetMetadata(w.ctx, id.AgentID, erc8004.MetadataKeys, bytes.Repeat([]byte{1}, 20_000)))
	w.want(id, key, erc8004.ErrKeyUnknown)
	w.must(g.SetMetadata(w.ctx, id.AgentID, "other", bytes.Repeat([]byte{1}, 20_000)))
	w.must(g.SetAgentURI(w.ctx, id.AgentID, string(bytes.Repeat([]byte{'u'}, 20_000))))
	w.must(g.SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now(), key)))
	w.finalise()
	w.want(id, key, nil)
}

func TestBoundIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0, key)
	g := w.registrar(0)
	w.must(g.SetMetadata(w.ctx, id.AgentID, "agent-binding", address(7).Bytes()))
	w.want(id, key, erc8004.ErrIdentityBound)
	w.finalise()
	w.must(g.SetMetadata(w.ctx, id.AgentID, "agent-binding", nil))
	w.want(id, key, erc8004.ErrPendingFinality)
	w.finalise()
	w.want(id, key, nil)
}

func TestRegistry_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0)
	reason := func(_ any, err error) string {
		t.Helper()
		var refused *erc8004.RevertError
		require.ErrorAs(t, err, &refused)
		return refused.Reason
	}
	owner, stranger := w.registrar(0), w.registrar(1)
	require.Equal(t, "Not authorized", reason(stranger.SetMetadata(w.ctx, id.AgentID, "k", nil)))
	require.Equal(t, "reserved key", reason(owner.SetMetadata(w.ctx, id.AgentID, "agentWallet", address(1).Bytes())))
	_, _, err := owner.Register(w.ctx, "", erc8004.Metadata{Key: "agentWallet"})
	require.Equal(t, "reserved key", reason(nil, err))
	missing := common.Big32
	require.Equal(t, "no such agent", reason(owner.SetMetadata(w.ctx, missing, "k", nil)))
	w.must(owner.UnsetAgentWallet(w.ctx, id.AgentID))
	w.must(owner.SetAgentWallet(w.ctx, id.AgentID, address(0), accountKey(0)))
}
