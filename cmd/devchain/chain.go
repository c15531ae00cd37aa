package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	chainID = 1337 // by default
	// epoch is the backend's rule for finality: the last multiple of 32.
	epoch = 32
	// beatEvery keeps the head younger than any reader's max_head_age.
	beatEvery = 5 * time.Second
	// baseFee does not change: an eighth of 7 wei rounds to nothing. A transaction that paid
	// enough once therefore pays enough on replay.
	baseFee = 7
)

// A Chain is a running chain with the two registries on it.
//
// It mines when a transaction is waiting, and then adds empty blocks up to the next multiple of
// 32, so that everything sent is final a moment after it was included. Without transactions it
// adds a block every five seconds. Each block is at least one second after the previous one, so
// busy chains run ahead of the clock; only deadlines in contracts notice.
type Chain struct {
	Ready     Ready
	contracts contracts
	backend   *simulated.Backend
	rpc       *rpc.Client
	log       *slog.Logger
	journal   *journal
	dir       string // of the backend: a socket, and a key store, which it insists on and which stays empty
	manual    bool   // a transaction gets one block and does not become final by itself; set before Mine

	mu sync.Mutex // held over every block and its journal entry
}

// Start creates the chain, serves it and deploys the registries. artifacts is a folder with other
// compiled registries than this program's, or "".
func Start(listen, artifacts string, id uint64, log *slog.Logger) (*Chain, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: %w", listen, err)
	}
	c := &Chain{log: log, contracts: contracts{artifacts}, journal: &journal{Version: 1}}
	c.Ready.ChainID = id
	if c.dir, err = os.MkdirTemp("", "stoa-devchain-"); err != nil {
		return nil, err
	}
	for range 5 { // another process may take a free port before the backend does
		if c.backend, err = c.startBackend(host, port); err == nil || port != "0" {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	if c.rpc, err = rpc.Dial(c.socket()); err == nil {
		err = c.deploy()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Ready.Accounts = accounts()
	return c, nil
}

// startBackend converts the backend's panics to errors, such as that of a port in use.
func (c *Chain) startBackend(host, port string) (b *simulated.Backend, err error) {
	if port == "0" {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen: port %q", port)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("start chain: %v", p)
		}
	}()
	c.Ready.RPC = "http://" + net.JoinHostPort(host, port)
	return simulated.NewBackend(funds(), func(nc *node.Config, ec *ethconfig.Config) {
		nc.HTTPHost, nc.HTTPPort, nc.HTTPModules = host, int(n), []string{"eth", "net", "web3", "txpool"}
		nc.KeyStoreDir, nc.IPCPath = filepath.Join(c.dir, "keys"), c.socket()
		rules := *params.AllDevChainProtocolChanges
		rules.BogotaTime = nil // storage at current prices
		rules.ChainID = new(big.Int).SetUint64(c.Ready.ChainID)
		ec.Genesis.Config = &rules
		ec.Genesis.BaseFee = big.NewInt(baseFee)
	}), nil
}

// socket is where the backend tells this program of transactions that wait.
func (c *Chain) socket() string { return filepath.Join(c.dir, "ipc") }

// Close ends the chain; everything that is not in a journal is lost. The server would wait five
// seconds for connections that a client opened and never used, so Close waits for it only a
// quarter of a second.
func (c *Chain) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backend == nil {
		return nil
	}
	if c.rpc != nil {
		c.rpc.Close()
	}
	backend, done := c.backend, make(chan error, 1)
	c.backend = nil
	go func() { done <- backend.Close() }()
	var err error
	select {
	case err = <-done:
	case <-time.After(250 * time.Millisecond):
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// deploy deploys the registries, with the deployer's first transactions.
func (c *Chain) deploy() (err error) {
	d := c.deployment(deployerKey(), 0)
	if c.Ready.IdentityRegistry, err = d.identity(); err == nil {
		c.Ready.ReputationRegistry, err = d.reputation(c.Ready.IdentityRegistry)
	}
	if err != nil {
		return fmt.Errorf("deploy: %w", err)
	}
	return nil
}

// deployment sends as one account, from that nonce on, one block per transaction.
func (c *Chain) deployment(key *ecdsa.PrivateKey, nonce uint64) deployment {
	send := func(to *common.Address, data []byte) error {
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(new(big.Int).SetUint64(c.Ready.ChainID)), &types.DynamicFeeTx{
			Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(2 * params.GWei), Gas: 8_000_000, To: to, Data: data})
		if err != nil {
			return err
		}
		nonce++
		return c.include(context.Background(), tx)
	}
	return deployment{c.contracts,
		func(code []byte) (common.Address, error) {
			at := crypto.CreateAddress(crypto.PubkeyToAddress(key.PublicKey), nonce)
			return at, send(nil, code)
		},
		func(to common.Address, data []byte) error { return send(&to, data) },
	}
}

// include sends one transaction and mines it.
func (c *Chain) include(ctx context.Context, tx *types.Transaction) error {
	if err := c.backend.Client().SendTransaction(ctx, tx); err != nil {
		return err
	}
	c.backend.Commit()
	r, err := c.backend.Client().TransactionReceipt(ctx, tx.Hash())
	if err != nil {
		return err
	}
	if r.Status != types.ReceiptStatusSuccessful {
		return errors.New("transaction failed")
	}
	return nil
}

// Replay includes the journal's transactions, makes them final, and appends everything that
// follows to the same journal. Call it before Mine.
func (c *Chain) Replay(ctx context.Context, j *journal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal = j
	for i, raw := range j.Transactions {
		var tx types.Transaction
		if err := tx.UnmarshalBinary(raw); err != nil {
			return fmt.Errorf("state file: transaction %d: %w", i, err)
		}
		if err := c.include(ctx, &tx); err != nil {
			c.log.Warn("transaction did not replay", "index", i, "tx", tx.Hash(), "err", err)
		}
	}
	_, err := c.finish(ctx)
	return err
}

// Mine adds blocks until ctx ends.
func (c *Chain) Mine(ctx context.Context) error {
	sent := make(chan common.Hash, 1024)
	sub, err := c.rpc.EthSubscribe(ctx, sent, "newPendingTransactions")
	if err != nil {
		return fmt.Errorf("subscribe to pending transactions: %w", err)
	}
	defer sub.Unsubscribe()
	beat := time.Now().Add(beatEvery)
	next := time.NewTimer(0) // some may wait already
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-sub.Err():
			return fmt.Errorf("pending transactions: %w", err)
		case <-sent:
		case <-next.C:
		}
		waiting, err := c.waiting(ctx)
		n := 0
		if err == nil && waiting {
			n, err = c.settle(ctx)
		} else if err == nil && !time.Now().Before(beat) {
			err, n = c.block(ctx), 1
		}
		if err != nil {
			return err
		}
		if n > 0 {
			beat = time.Now().Add(beatEvery)
		}
		if waiting { // there may be more, or one that cannot be included, e.g. because it paid too little
			next.Reset(time.Second)
		} else {
			next.Reset(time.Until(beat))
		}
	}
}

func (c *Chain) waiting(ctx context.Context) (bool, error) {
	var status struct{ Pending hexutil.Uint64 }
	if err := c.rpc.CallContext(ctx, &status, "txpool_status"); err != nil {
		return false, fmt.Errorf("txpool_status: %w", err)
	}
	return status.Pending > 0, nil
}

func (c *Chain) settle(ctx context.Context) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manual {
		_, n, err := c.commit(ctx)
		return n, err
	}
	return c.finish(ctx)
}

func (c *Chain) block(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, err := c.commit(ctx)
	return err
}

// finish mines up to the next multiple of 32 and counts the transactions in these blocks. It needs
// c.mu.
func (c *Chain) finish(ctx context.Context) (int, error) {
	total := 0
	for {
		number, n, err := c.commit(ctx)
		total += n
		if err != nil || number%epoch == 0 {
			return total, err
		}
	}
}

// commit mines one block, keeps its transactions and counts them. It needs c.mu. A block that is
// mined is kept, also when ctx ends: somebody may have seen it.
func (c *Chain) commit(ctx context.Context) (number uint64, included int, err error) {
	if c.backend == nil {
		return 0, 0, errors.New("chain is closed")
	}
	hash := c.backend.Commit()
	b, err := c.backend.Client().BlockByHash(context.WithoutCancel(ctx), hash)
	if err != nil {
		return 0, 0, fmt.Errorf("read own block: %w", err)
	}
	var raw [][]byte
	for _, tx := range b.Transactions() {
		bin, err := tx.MarshalBinary()
		if err != nil {
			return 0, 0, err
		}
		raw = append(raw, bin)
	}
	if err := c.journal.add(raw...); err != nil {
		return 0, 0, fmt.Errorf("state file: %w", err)
	}
	return b.NumberU64(), len(raw), nil
}
