package erc8004

import (
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
)

// A Registrar writes to one identity registry with one account. It is meant for development chains
// and for an administrator's own agents; it has no failover. It is safe for concurrent use and
// sends one transaction after the other.
type Registrar struct {
	cfg  RegistrarConfig
	rpc  *rpc.Client
	from common.Address

	mu sync.Mutex // held from nonce to sending
}

// RegistrarConfig says where to write and with which account.
type RegistrarConfig struct {
	RPC        string // http or https
	HTTPClient *http.Client
	ChainID    uint64 // the endpoint has to serve this chain
	Registry   common.Address
	Key        *ecdsa.PrivateKey // secp256k1; pays, and owns what it registers
	Timeout    time.Duration     // of one call until the receipt, default 60 s
}

// Metadata is one entry of an agent's on-chain metadata. The key agentWallet
// is reserved by the registry.
type Metadata struct {
	Key   string
	Value []byte
}

// A Receipt says where a transaction was included.
type Receipt struct {
	TxHash   common.Hash     `json:"transactionHash"`
	Block    hexutil.Uint64  `json:"blockNumber"`
	GasUsed  hexutil.Uint64  `json:"gasUsed"`
	Contract *common.Address `json:"contractAddress"` // of a deployment
	Status   hexutil.Uint64  `json:"status"`
	Logs     []logEntry      `json:"logs"`
}

// A RevertError is the contract's refusal, with its reason as text or its error data in hex.
type RevertError struct{ Reason string }

func (e *RevertError) Error() string { return "contract refuses: " + e.Reason }

// NewRegistrar does not dial.
func NewRegistrar(cfg RegistrarConfig) (*Registrar, error) {
	if cfg.Key == nil || cfg.ChainID == 0 {
		return nil, errors.New("registrar: key and chain id are needed")
	}
	setDefault(&cfg.Timeout, time.Minute)
	c, err := rpc.DialOptions(context.Background(), cfg.RPC, rpc.WithHTTPClient(httpClient(cfg.HTTPClient)))
	if err != nil {
		return nil, fmt.Errorf("registrar: %w", err)
	}
	return &Registrar{cfg: cfg, rpc: c, from: crypto.PubkeyToAddress(cfg.Key.PublicKey)}, nil
}

// Address is the account that pays and owns.
func (g *Registrar) Address() common.Address { return g.from }

// ID is the identity of an agent in this registry.
func (g *Registrar) ID(agent *big.Int) ID { return ID{g.cfg.ChainID, g.cfg.Registry, agent} }

// Register mints an agent with its URI and metadata. The agentWallet becomes
// the registrar's account.
func (g *Registrar) Register(ctx context.Context, agentURI string, metadata ...Metadata) (ID, Receipt, error) {
	type entry struct {
		MetadataKey   string
		MetadataValue []byte
	}
	entries := []entry{}
	for _, m := range metadata {
		entries = append(entries, entry{m.Key, m.Value})
	}
	rec, err := g.Send(ctx, &g.cfg.Registry, mustPack("register", agentURI, entries))
	if err != nil {
		return ID{}, rec, fmt.Errorf("register: %w", err)
	}
	for _, l := range rec.Logs {
		if l.Address == g.cfg.Registry && len(l.Topics) > 1 && l.Topics[0] == topicRegistered {
			return g.ID(l.agent()), rec, nil
		}
	}
	return ID{}, rec, errors.New("register: no Registered event")
}

// RegisterCall returns the data of a call of a registry that mints an agent with its URI and no
// metadata, for a wallet to sign. The agent belongs to the account that sends it.
func RegisterCall(agentURI string) []byte {
	return mustPack("register", agentURI, []struct {
		MetadataKey   string
		MetadataValue []byte
	}{})
}

// SetKeysCall returns the data of a call of a registry that publishes a signed key record. The registry takes it from the owner of the
// agent, and from accounts that the owner approved; the record may be another's, of the agent wallet.
func SetKeysCall(agent *big.Int, r Record) []byte {
	return mustPack("setMetadata", agent, MetadataKeys, r.Encode())
}

// GiveAgentCall returns the data of a call of a registry that gives an agent to another owner.
func GiveAgentCall(agent *big.Int, from, to common.Address) []byte {
	return mustPack("transferFrom", from, to, agent)
}

// A Call is a call of a contract that was not sent, as wallets take it (eth_sendTransaction), with the gas that the chain estimates.
type Call struct {
	ChainID hexutil.Uint64 `json:"chainId"`
	From    common.Address `json:"from"`
	To      common.Address `json:"to"`
	Data    hexutil.Bytes  `json:"data"`
	Value   hexutil.Uint64 `json:"value"`
	Gas     hexutil.Uint64 `json:"gas"`

	// Cost is what the call costs at most, in the smallest unit of the chain's currency, at the prices that the registrar would pay now.
	// Wallets choose their own. A chain with a fee for its parent chain takes more.
	Cost *big.Int `json:"-"`
}

// Estimate tries a call without sending it, and fills in what it does not name: From is the registrar's account, To the identity
// registry. A refusal is a [*RevertError].
func (g *Registrar) Estimate(ctx context.Context, c Call) (Call, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	if c.From == (common.Address{}) {
		c.From = g.from
	}
	if c.To == (common.Address{}) {
		c.To = g.cfg.Registry
	}
	if err := g.rpc.CallContext(ctx, &c.ChainID, "eth_chainId"); err != nil {
		return c, fmt.Errorf("eth_chainId: %w", err)
	}
	if uint64(c.ChainID) != g.cfg.ChainID {
		return c, fmt.Errorf("%w: %d", errWrongChain, c.ChainID)
	}
	args := map[string]any{"from": c.From, "to": c.To, "data": c.Data}
	if err := g.rpc.CallContext(ctx, &c.Gas, "eth_estimateGas", args); err != nil {
		return c, fmt.Errorf("eth_estimateGas: %w", refusal(err))
	}
	c.Gas = hexutil.Uint64(withReserve(uint64(c.Gas)))
	_, feeCap, err := g.fees(ctx)
	if err != nil {
		return c, err
	}
	c.Cost = feeCap.Mul(feeCap, new(big.Int).SetUint64(uint64(c.Gas)))
	return c, nil
}

// fees returns the tip and the price of gas that a transaction of now offers at most.
func (g *Registrar) fees(ctx context.Context) (tip, feeCap *big.Int, err error) {
	var offered hexutil.Big
	if err := g.rpc.CallContext(ctx, &offered, "eth_maxPriorityFeePerGas"); err != nil {
		return nil, nil, fmt.Errorf("eth_maxPriorityFeePerGas: %w", refusal(err))
	}
	h, err := g.head(ctx)
	if err != nil {
		return nil, nil, err
	}
	tip = offered.ToInt()
	feeCap = new(big.Int).Lsh(h.BaseFee.ToInt(), 1) // room for six full blocks
	return tip, feeCap.Add(feeCap, tip), nil
}

// SetKeys publishes a signed key record for an agent of this account.
func (g *Registrar) SetKeys(ctx context.Context, agent *big.Int, r Record) (Receipt, error) {
	return g.SetMetadata(ctx, agent, MetadataKeys, r.Encode())
}

// SetMetadata writes one metadata entry; an empty value clears it.
func (g *Registrar) SetMetadata(ctx context.Context, agent *big.Int, key string, value []byte) (Receipt, error) {
	return g.do(ctx, "setMetadata", agent, key, value)
}

// SetAgentURI changes the address of the registration document.
func (g *Registrar) SetAgentURI(ctx context.Context, agent *big.Int, uri string) (Receipt, error) {
	return g.do(ctx, "setAgentURI", agent, uri)
}

// Transfer gives the agent to another owner. It clears agentWallet; metadata
// and URI stay.
func (g *Registrar) Transfer(ctx context.Context, agent *big.Int, to common.Address) (Receipt, error) {
	return g.do(ctx, "transferFrom", g.from, to, agent)
}

// Approve lets another account do everything the owner can with one agent,
// until it is transferred.
func (g *Registrar) Approve(ctx context.Context, agent *big.Int, operator common.Address) (Receipt, error) {
	return g.do(ctx, "approve", operator, agent)
}

// UnsetAgentWallet clears agentWallet.
func (g *Registrar) UnsetAgentWallet(ctx context.Context, agent *big.Int) (Receipt, error) {
	return g.do(ctx, "unsetAgentWallet", agent)
}

// SetAgentWallet makes wallet the agentWallet. signer must be wallet's own key, or one that the
// contract at wallet accepts (ERC-1271).
func (g *Registrar) SetAgentWallet(ctx context.Context, agent *big.Int, wallet common.Address, signer *ecdsa.PrivateKey) (Receipt, error) {
	head, err := g.head(ctx)
	if err != nil {
		return Receipt{}, fmt.Errorf("setAgentWallet: %w", err)
	}
	var out hexutil.Bytes
	args := map[string]any{"to": g.cfg.Registry, "data": hexutil.Bytes(mustPack("ownerOf", agent))}
	if err := g.rpc.CallContext(ctx, &out, "eth_call", args, "latest"); err != nil {
		return Receipt{}, fmt.Errorf("setAgentWallet: %w", refusal(err))
	}
	owner, err := unpackOne[common.Address]("ownerOf", out)
	if err != nil {
		return Receipt{}, fmt.Errorf("setAgentWallet: %w", err)
	}
	// The registry accepts at most five minutes, by the clock of its chain.
	deadline := new(big.Int).SetUint64(uint64(head.Time) + 240)
	sig, err := signDigest(WalletDigest(g.ID(agent), wallet, owner, deadline), signer)
	if err != nil {
		return Receipt{}, err
	}
	return g.do(ctx, "setAgentWallet", agent, wallet, deadline, sig)
}

var walletSetType = crypto.Keccak256([]byte("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)"))

// WalletDigest returns what a new agentWallet signs to be accepted by the registry (EIP-712,
// domain "ERC8004IdentityRegistry" version "1"). The deadline is in Unix seconds of the chain.
func WalletDigest(id ID, wallet, owner common.Address, deadline *big.Int) common.Hash {
	return typedDigest(id, "ERC8004IdentityRegistry", walletSetType,
		wordBig(id.AgentID), wordAddress(wallet), wordAddress(owner), wordBig(deadline))
}

func (g *Registrar) do(ctx context.Context, method string, args ...any) (Receipt, error) {
	data, err := registryABI.Pack(method, args...)
	if err != nil {
		return Receipt{}, fmt.Errorf("%s: %w", method, err)
	}
	rec, err := g.Send(ctx, &g.cfg.Registry, data)
	if err != nil {
		return rec, fmt.Errorf("%s: %w", method, err)
	}
	return rec, nil
}

type head struct {
	header
	BaseFee *hexutil.Big `json:"baseFeePerGas"`
}

func (g *Registrar) head(ctx context.Context) (*head, error) {
	var h *head
	if err := g.rpc.CallContext(ctx, &h, "eth_getBlockByNumber", "latest", false); err != nil {
		return nil, err
	}
	if h == nil || h.BaseFee == nil {
		return nil, errors.New("chain without base fee (EIP-1559)")
	}
	return h, nil
}

// Send signs and sends a call of any contract, or deploys one when to is nil, and waits for the
// receipt. A refusal is a [*RevertError], found before sending when the node can estimate the
// call. What is asked of the newest block afterwards has its effect. After a timeout the transaction
// may still be included.
func (g *Registrar) Send(ctx context.Context, to *common.Address, data []byte) (Receipt, error) {
	return g.send(ctx, to, data, nil)
}

// Pay sends wei of the chain's own currency, and waits for the receipt as Send does.
func (g *Registrar) Pay(ctx context.Context, to common.Address, wei *big.Int) (Receipt, error) {
	return g.send(ctx, &to, nil, wei)
}

func (g *Registrar) send(ctx context.Context, to *common.Address, data []byte, value *big.Int) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	hash, err := g.submit(ctx, to, data, value)
	if err != nil {
		return Receipt{}, err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		var rec *Receipt
		if err := g.rpc.CallContext(ctx, &rec, "eth_getTransactionReceipt", hash); err == nil && rec != nil {
			if rec.Status != 1 {
				return *rec, &RevertError{"transaction " + hash.Hex() + " failed"}
			}
			// A receipt may come before its block is the newest, above all from an endpoint of several machines.
			var head hexutil.Uint64
			if err := g.rpc.CallContext(ctx, &head, "eth_blockNumber"); err == nil && head >= rec.Block {
				return *rec, nil
			}
		}
		select {
		case <-ctx.Done():
			return Receipt{TxHash: hash}, fmt.Errorf("wait for transaction %s: %w", hash, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (g *Registrar) submit(ctx context.Context, to *common.Address, data []byte, value *big.Int) (common.Hash, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var chain, nonce, gas hexutil.Uint64
	args := map[string]any{"from": g.from, "data": hexutil.Bytes(data)}
	if to != nil {
		args["to"] = *to
	}
	if value != nil {
		args["value"] = (*hexutil.Big)(value)
	}
	for _, q := range []rpc.BatchElem{
		{Method: "eth_chainId", Result: &chain},
		{Method: "eth_getTransactionCount", Args: []any{g.from, "pending"}, Result: &nonce},
		{Method: "eth_estimateGas", Args: []any{args}, Result: &gas},
	} {
		if err := g.rpc.CallContext(ctx, q.Result, q.Method, q.Args...); err != nil {
			return common.Hash{}, fmt.Errorf("%s: %w", q.Method, refusal(err))
		}
		if uint64(chain) != g.cfg.ChainID {
			return common.Hash{}, fmt.Errorf("%w: %d", errWrongChain, chain)
		}
	}
	tip, feeCap, err := g.fees(ctx)
	if err != nil {
		return common.Hash{}, err
	}
	t := tx{chainID: new(big.Int).SetUint64(g.cfg.ChainID), nonce: uint64(nonce), tip: tip, feeCap: feeCap,
		gas: withReserve(uint64(gas)), data: data, value: value}
	if to != nil {
		t.to = to[:]
	}
	raw, err := t.sign(g.cfg.Key)
	if err != nil {
		return common.Hash{}, err
	}
	var hash common.Hash
	if err := g.rpc.CallContext(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw)); err != nil {
		return hash, fmt.Errorf("eth_sendRawTransaction: %w", err)
	}
	return hash, nil
}

// maxTxGas is what one transaction may use (EIP-7825).
const maxTxGas = 1 << 24

// withReserve adds a quarter to an estimate, for state that changes before inclusion.
func withReserve(gas uint64) uint64 {
	return max(gas, min(gas+gas/4, maxTxGas))
}

// refusal converts the data of a revert to a RevertError.
func refusal(err error) error {
	data := revertData(err)
	if data == nil {
		return err
	}
	if reason, uerr := abi.UnpackRevert(data); uerr == nil {
		return &RevertError{reason}
	}
	if len(data) >= 4 && string(data[:4]) == nonexistentToken {
		return &RevertError{"no such agent"}
	}
	return &RevertError{"0x" + hex.EncodeToString(data)}
}
