package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
)

// foreign names a folder of other compiled registries, for the same suite on those.
var foreign = os.Getenv("ERC8004_ARTIFACTS")

// own are this program's contracts: the wallets of tests are among them.
var own contracts

// A world is a chain of its own for one test: every transaction gets one block,
// and nothing is final until the test says so.
type world struct {
	*testing.T
	chain *Chain
	ctx   context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := Start("127.0.0.1:0", foreign, chainID, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if yes, err := c.waiting(ctx); err == nil && yes {
				c.block(ctx)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done; c.Close() })
	w := &world{T: t, chain: c, ctx: ctx}
	w.finalise()
	return w
}

// finalise mines until all that happened is final.
func (w *world) finalise() {
	w.Helper()
	_, err := w.chain.settle(w.ctx)
	require.NoError(w, err)
}

func (w *world) registrar(account int, registry ...common.Address) *erc8004.Registrar {
	w.Helper()
	at := append(registry, w.chain.Ready.IdentityRegistry)[0]
	g, err := erc8004.NewRegistrar(erc8004.RegistrarConfig{RPC: w.chain.Ready.RPC, ChainID: chainID, Registry: at,
		Key: accountKey(account), Timeout: time.Minute})
	require.NoError(w, err)
	return g
}

func (w *world) config() erc8004.Config {
	return erc8004.Config{Chains: []erc8004.Chain{{ID: chainID, RPC: []string{w.chain.Ready.RPC}, Poll: 100 * time.Millisecond,
		Registries: []erc8004.Registry{{Identity: w.chain.Ready.IdentityRegistry, Reputation: w.chain.Ready.ReputationRegistry}}}},
		ReadsPerSec: 1000, ReadBurst: 1000}
}

func (w *world) reader(cfg erc8004.Config) *erc8004.Reader {
	w.Helper()
	r, err := erc8004.NewReader(cfg)
	require.NoError(w, err)
	return r
}

// polling starts the reader's poller for the rest of the test.
func (w *world) polling(r *erc8004.Reader) *erc8004.Reader {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	w.Cleanup(func() { cancel(); <-done })
	return r
}

// want asks a reader that has nothing cached.
func (w *world) want(id erc8004.ID, key erc8004.Key, want error) erc8004.Grant {
	w.Helper()
	g, err := w.reader(w.config()).Authority(w.ctx, id, key.Thumbprint)
	require.ErrorIs(w, err, want)
	return g
}

func (w *world) must(_ erc8004.Receipt, err error) {
	w.Helper()
	require.NoError(w, err)
}

// agent registers an agent of an account with the given keys, all final.
func (w *world) agent(account int, keys ...erc8004.Key) erc8004.ID {
	w.Helper()
	g := w.registrar(account)
	id, _, err := g.Register(w.ctx, "https://node.example/registration.json")
	require.NoError(w, err)
	if len(keys) > 0 {
		w.must(g.SetKeys(w.ctx, id.AgentID, w.record(account, id, time.Now(), keys...)))
	}
	w.finalise()
	return id
}

func (w *world) record(account int, id erc8004.ID, at time.Time, keys ...erc8004.Key) erc8004.Record {
	w.Helper()
	r, err := erc8004.SignRecord(id, keys, at, accountKey(account))
	require.NoError(w, err)
	return r
}

func address(account int) common.Address {
	return crypto.PubkeyToAddress(accountKey(account).PublicKey)
}

func messageKey(t testing.TB, seed string) erc8004.Key {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k, err := erc8004.NewKey(ed25519.NewKeyFromSeed(sum[:]).Public())
	require.NoError(t, err)
	return k
}

func p256Key(t testing.TB, seed string) erc8004.Key {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	priv, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
	require.NoError(t, err)
	k, err := erc8004.NewKey(&priv.PublicKey)
	require.NoError(t, err)
	return k
}

func TestArtifacts_MatchSource(t *testing.T) {
	t.Parallel()
	sources, err := fs.Glob(contractFiles, "contracts/*.sol")
	require.NoError(t, err)
	require.Len(t, sources, 4)
	for _, path := range sources {
		src, err := contractFiles.ReadFile(path)
		require.NoError(t, err)
		sum := sha256.Sum256(src)
		a, err := own.load(path[len("contracts/") : len(path)-len(".sol")])
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(sum[:]), a.SourceSHA256, "%s changed: run npm run compile in contracts/", path)
		require.NotEmpty(t, a.ABI.Methods)
	}
}

func TestRegister_Grant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, second := messageKey(t, "a"), p256Key(t, "b")
	id := w.agent(0, key, second)
	require.Equal(t, "0", id.AgentID.String(), "agent ids count from 0")

	g := w.want(id, key, nil)
	require.Equal(t, id.String(), g.Identity)
	require.Equal(t, id.Display(), g.Display)
	require.Equal(t, key.Public, g.PublicKey)
	require.Equal(t, address(0), g.Owner)
	require.Equal(t, address(0), g.Wallet)
	require.NotZero(t, g.Block)
	require.False(t, g.Pending)
	require.Equal(t, second.Public, w.want(id, second, nil).PublicKey)
	w.want(id, messageKey(t, "stranger"), erc8004.ErrKeyUnknown)

	all, err := w.reader(w.config()).Grants(w.ctx, id)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.NoError(t, w.reader(w.config()).Check(w.ctx))
}

func TestRegister_WithRecordAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	g := w.registrar(3)
	rec := w.record(3, g.ID(big.NewInt(0)), time.Now(), key)
	id, _, err := g.Register(w.ctx, "", erc8004.Metadata{Key: erc8004.MetadataKeys, Value: rec.Encode()})
	require.NoError(t, err)
	w.want(id, key, erc8004.ErrPendingFinality)
	w.finalise()
	w.want(id, key, nil)
}

func TestRotation_OldKeyWorksUntilFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, next := messageKey(t, "old"), messageKey(t, "new")
	id := w.agent(0, old)
	for _, r := range []*erc8004.Reader{w.reader(w.config()), w.polling(w.reader(w.config()))} {
		_, err := r.Authority(w.ctx, id, old.Thumbprint)
		require.NoError(t, err)
	}
	r := w.polling(w.reader(w.config()))
	_, err := r.Authority(w.ctx, id, old.Thumbprint)
	require.NoError(t, err)

	g := w.registrar(0)
	w.must(g.SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now().Add(time.Second), next, old)))
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, next.Thumbprint)
		require.Error(t, err)
		return isPending(err)
	}, time.Minute, 20*time.Millisecond)
	_, err = r.Authority(w.ctx, id, old.Thumbprint)
	require.NoError(t, err, "the old key is in the final state and in the new one")
	w.want(id, old, nil) // who has not seen the final state asks for it
	w.want(id, next, erc8004.ErrPendingFinality)

	w.finalise()
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, next.Thumbprint)
		return err == nil
	}, time.Minute, 20*time.Millisecond)

	w.must(g.SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now().Add(2*time.Second), next)))
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, old.Thumbprint)
		return isUnknown(err)
	}, time.Minute, 20*time.Millisecond, "a revocation counts before it is final")
	_, err = r.Authority(w.ctx, id, next.Thumbprint)
	require.NoError(t, err)
}

func TestEmptySet_RevokesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0, key)
	w.want(id, key, nil)
	w.must(w.registrar(0).SetKeys(w.ctx, id.AgentID, w.record(0, id, time.Now().Add(time.Second))))
	w.want(id, key, erc8004.ErrKeyUnknown)
}

func TestTransfer_KillsKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "seller")
	id := w.agent(0, key)
	r := w.polling(w.reader(w.config()))
	alone := w.reader(w.config())
	for _, r := range []*erc8004.Reader{r, alone} {
		_, err := r.Authority(w.ctx, id, key.Thumbprint)
		require.NoError(t, err)
	}
	w.must(w.registrar(0).Transfer(w.ctx, id.AgentID, address(1)))
	w.want(id, key, erc8004.ErrKeyUnknown)
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, key.Thumbprint)
		return isUnknown(err)
	}, time.Minute, 20*time.Millisecond, "the poller sees the Transfer")
	s, err := w.reader(w.config()).Snapshot(w.ctx, id)
	require.NoError(t, err)
	require.Equal(t, address(1), s.Owner)
	require.Zero(t, s.Wallet, "a transfer clears agentWallet")
	require.NotEmpty(t, s.Keys, "metadata survives, so the record must not count")
	// Without a poller the old answer lives on for a minute at most; the clock of
	// that is tested in the package itself.
	_, err = alone.Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
}

func TestSeller_CannotPlantKeyForBuyer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	evil := messageKey(t, "evil")
	id := w.agent(0)
	planted := w.record(0, id, time.Now(), evil)
	planted.Signer = address(1) // names the buyer; the signature stays the seller's
	g := w.registrar(0)
	w.must(g.SetKeys(w.ctx, id.AgentID, planted))
	w.must(g.Transfer(w.ctx, id.AgentID, address(1)))
	w.finalise()
	w.want(id, evil, erc8004.ErrKeyUnknown)
}

func TestOldRecord_PostedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, next := messageKey(t, "old"), messageKey(t, "new")
	first := time.Now().Add(-time.Hour)
	id := w.agent(0)
	g := w.registrar(0)
	oldRecord := w.record(0, id, first, old)
	w.must(g.SetKeys(w.ctx, id.AgentID, oldRecord))
	w.must(g.Approve(w.ctx, id.AgentID, address(2)))
	w.finalise()
	cfg := w.config()
	cfg.Memory = &shared{newest: map[string]uint64{}}
	ask := func(k erc8004.Key) error {
		_, err := w.reader(cfg).Authority(w.ctx, id, k.Thumbprint) // fresh cache, same memory
		return err
	}
	require.NoError(t, ask(old))
	w.must(g.SetKeys(w.ctx, id.AgentID, w.record(0, id, first.Add(time.Minute), next)))
	w.finalise()
	require.NoError(t, ask(next))

	w.must(w.registrar(2).SetKeys(w.ctx, id.AgentID, oldRecord)) // an operator posts the public old bytes
	w.finalise()
	require.ErrorIs(t, ask(old), erc8004.ErrKeyUnknown)
	require.ErrorIs(t, ask(next), erc8004.ErrKeyUnknown)
}

func TestOperator_CannotSignForOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, evil := messageKey(t, "a"), messageKey(t, "evil")
	id := w.agent(0, key)
	w.must(w.registrar(0).Approve(w.ctx, id.AgentID, address(2)))
	op := w.registrar(2)
	w.must(op.SetKeys(w.ctx, id.AgentID, w.record(2, id, time.Now(), evil)))
	w.finalise()
	w.want(id, evil, erc8004.ErrKeyUnknown)

	// The standard trusts operators with the wallet: then the record counts.
	w.must(op.SetAgentWallet(w.ctx, id.AgentID, address(2), accountKey(2)))
	w.want(id, evil, erc8004.ErrPendingFinality)
	w.finalise()
	w.want(id, evil, nil)
}

func TestRecord_OfAnotherAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	a, b := w.agent(0, key), w.agent(0)
	w.must(w.registrar(0).SetKeys(w.ctx, b.AgentID, w.record(0, a, time.Now(), key)))
	other := b
	other.ChainID = 1
	w.finalise()
	w.want(b, key, erc8004.ErrKeyUnknown)
	w.must(w.registrar(0).SetKeys(w.ctx, b.AgentID, w.record(0, other, time.Now(), key)))
	w.finalise()
	w.want(b, key, erc8004.ErrKeyUnknown)
}

func TestRefused_RegistryChainAndToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0, key)

	// A second copy of the registry, where anyone is agent 0.
	w.chain.mu.Lock()
	at, err := w.chain.deployment(accountKey(5), 0).identity()
	w.chain.mu.Unlock()
	require.NoError(t, err)
	twin, _, err := w.registrar(5, at).Register(w.ctx, "")
	require.NoError(t, err)
	w.want(twin, key, erc8004.ErrRegistryNotAllowed)

	other := id
	other.ChainID = 8453
	w.want(other, key, erc8004.ErrChainNotSupported)
	missing := id
	missing.AgentID = big.NewInt(7)
	w.want(missing, key, erc8004.ErrNotRegistered)

	cfg := w.config()
	cfg.Chains[0].ID = 1
	other.ChainID = 1
	_, err = w.reader(cfg).Authority(w.ctx, other, key.Thumbprint)
	require.ErrorIs(t, err, erc8004.ErrUnavailable, "the endpoint serves another chain")

	cfg = w.config()
	cfg.Chains[0].Registries[0] = erc8004.Registry{Identity: common.HexToAddress("0x8004000000000000000000000000000000000001")}
	missing.Registry = cfg.Chains[0].Registries[0].Identity
	_, err = w.reader(cfg).Authority(w.ctx, missing, key.Thumbprint)
	require.ErrorIs(t, err, erc8004.ErrUnavailable, "no contract there")
	require.Error(t, w.reader(cfg).Check(w.ctx))
}

func TestAppears_AfterNegativeAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.polling(w.reader(w.config()))
	g := w.registrar(0)
	_, err := r.Snapshot(w.ctx, g.ID(new(big.Int)))
	require.ErrorIs(t, err, erc8004.ErrNotRegistered)
	id, _, err := g.Register(w.ctx, "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := r.Snapshot(w.ctx, id)
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

// A chain keeps the state of 128 blocks. One that moved further since the
// poller's last look is looked at again.
func TestChainRunsAhead_OfThePoller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	first, cold := w.agent(0, key), w.agent(1, key)
	cfg := w.config()
	cfg.Chains[0].Poll = time.Hour
	r := w.polling(w.reader(cfg))
	require.Eventually(t, func() bool { // the one look of the poller is over
		_, err := r.Authority(w.ctx, first, key.Thumbprint)
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	w.chain.mu.Lock()
	for range 300 {
		w.chain.backend.Commit()
	}
	w.chain.mu.Unlock()
	for range 7 { // more than the breaker would bear
		_, err := r.Authority(w.ctx, cold, key.Thumbprint)
		require.NoError(t, err)
		missing := cold
		missing.AgentID = big.NewInt(1000 + time.Now().UnixNano())
		_, err = r.Snapshot(w.ctx, missing)
		require.ErrorIs(t, err, erc8004.ErrNotRegistered)
	}
}
