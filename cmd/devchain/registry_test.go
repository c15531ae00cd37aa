package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
)

// What the registries answer, in every detail that a reader can see. The same
// tests passed on the reference's contracts (ERC8004_ARTIFACTS, CONTRIBUTING.md).

// A book is a deployed contract with its ABI.
type book struct {
	w   *world
	abi abi.ABI
	at  common.Address
}

func (w *world) book(at common.Address, from contracts, names ...string) book {
	w.Helper()
	for _, name := range names {
		if a, err := from.load(name); err == nil {
			return book{w, a.ABI, at}
		}
	}
	w.Fatalf("no artifact of %v", names)
	return book{}
}

func (w *world) identity() book {
	return w.book(w.chain.Ready.IdentityRegistry, w.chain.contracts, "IdentityRegistryUpgradeable", "IdentityRegistry")
}

func (w *world) reputation() book {
	return w.book(w.chain.Ready.ReputationRegistry, w.chain.contracts, "ReputationRegistryUpgradeable", "ReputationRegistry")
}

func (b book) pack(method string, args ...any) []byte {
	b.w.Helper()
	data, err := b.abi.Pack(method, args...)
	require.NoError(b.w, err, method)
	return data
}

// view calls as someone; refused is the name of an error with its arguments, or
// the text of a revert.
func (b book) view(from common.Address, method string, args ...any) (out []any, refused string) {
	b.w.Helper()
	return b.call(from, b.at, method, b.pack(method, args...))
}

func (b book) call(from, to common.Address, method string, data []byte) (out []any, refused string) {
	b.w.Helper()
	raw, err := b.w.chain.backend.Client().CallContract(b.w.ctx, ethereum.CallMsg{From: from, To: &to, Data: data}, nil)
	if err != nil {
		return nil, b.reason(err)
	}
	if method != "" {
		out, err = b.abi.Unpack(method, raw)
		require.NoError(b.w, err, method)
	}
	return out, ""
}

func (b book) reason(err error) string {
	b.w.Helper()
	var d rpc.DataError
	require.ErrorAs(b.w, err, &d)
	text, _ := d.ErrorData().(string)
	data := common.FromHex(text)
	if len(data) < 4 {
		return "nothing"
	}
	if s, err := abi.UnpackRevert(data); err == nil {
		return s
	}
	for _, sig := range []string{
		"ERC721InvalidOwner(address)", "ERC721InvalidOperator(address)", "ERC721InvalidReceiver(address)", "ERC721InvalidApprover(address)",
		"ERC721NonexistentToken(uint256)", "ERC721InsufficientApproval(address,uint256)", "ERC721IncorrectOwner(address,uint256,address)",
	} {
		if string(crypto.Keccak256([]byte(sig))[:4]) == string(data[:4]) {
			var args []string
			for rest := data[4:]; len(rest) >= 32; rest = rest[32:] {
				args = append(args, new(big.Int).SetBytes(rest[:32]).Text(16))
			}
			return sig[:strings.Index(sig, "(")] + "(" + strings.Join(args, ",") + ")"
		}
	}
	return text
}

// do sends a transaction of an account and returns the names of its events.
func (b book) do(account int, method string, args ...any) []string {
	b.w.Helper()
	return b.w.send(account, b.at, b.pack(method, args...))
}

func (w *world) send(account int, to common.Address, data []byte) (events []string) {
	w.Helper()
	rec, err := w.registrar(account).Send(w.ctx, &to, data)
	require.NoError(w, err)
	r, err := w.chain.backend.Client().TransactionReceipt(w.ctx, rec.TxHash)
	require.NoError(w, err)
	for _, l := range r.Logs {
		events = append(events, w.event(l))
	}
	return events
}

func (w *world) event(l *types.Log) string {
	for _, b := range []book{w.identity(), w.reputation()} {
		if e, err := b.abi.EventByID(l.Topics[0]); err == nil {
			return e.Name
		}
	}
	return l.Topics[0].Hex()
}

func hexOf(a common.Address) string { return new(big.Int).SetBytes(a[:]).Text(16) }

func TestRegistry_EventsOfRegister(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.identity()
	overload := func(args string) string {
		for name, m := range b.abi.Methods {
			if m.Sig == "register("+args+")" {
				return name
			}
		}
		t.Fatal("no register(" + args + ")")
		return ""
	}
	type entry struct {
		MetadataKey   string
		MetadataValue []byte
	}
	require.Equal(t, []string{"Transfer", "Registered", "MetadataSet"}, b.do(0, overload("")), "no URI, so no MetadataUpdate")
	require.Equal(t, []string{"Transfer", "MetadataUpdate", "Registered", "MetadataSet"}, b.do(0, overload("string"), ""))
	require.Equal(t, []string{"Transfer", "MetadataUpdate", "Registered", "MetadataSet", "MetadataSet"},
		b.do(0, overload("string,(string,bytes)[]"), "https://a.example/", []entry{{"k", []byte("v")}}))
	require.Equal(t, []string{"MetadataUpdate", "URIUpdated"}, b.do(0, "setAgentURI", big.NewInt(0), "https://b.example/"))
	require.Equal(t, []string{"MetadataSet", "Transfer"}, b.do(0, "transferFrom", address(0), address(1), big.NewInt(0)))
	for i := range int64(3) {
		out, refused := b.view(address(9), "getAgentWallet", big.NewInt(i))
		require.Empty(t, refused)
		require.Equal(t, i == 0, out[0] == common.Address{}, "cleared by the transfer")
	}
}

func TestRegistry_ZeroAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0).AgentID
	b := w.identity()
	zero := common.Address{}
	_, refused := b.view(address(9), "balanceOf", zero)
	require.Equal(t, "ERC721InvalidOwner(0)", refused)
	_, refused = b.view(address(0), "setApprovalForAll", zero, true)
	require.Equal(t, "ERC721InvalidOperator(0)", refused)
	out, refused := b.view(address(0), "isAuthorizedOrOwner", zero, id)
	require.Empty(t, refused)
	require.Equal(t, false, out[0], "nobody is approved, which is not the zero address")
	for _, missing := range []*big.Int{id, big.NewInt(77)} {
		_, refused = b.view(address(0), "transferFrom", address(0), zero, missing)
		require.Equal(t, "ERC721InvalidReceiver(0)", refused)
	}
	_, refused = b.view(address(0), "isAuthorizedOrOwner", address(0), big.NewInt(77))
	require.Equal(t, "ERC721NonexistentToken(4d)", refused)
	out, _ = b.view(address(9), "balanceOf", address(0))
	require.Equal(t, big.NewInt(1), out[0])
}

func TestRegistry_SafeTransfer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.identity()
	plain, withData := "safeTransferFrom", "safeTransferFrom0"
	require.Equal(t, "safeTransferFrom(address,address,uint256,bytes)", b.abi.Methods[withData].Sig)
	out, _ := b.view(address(9), "supportsInterface", [4]byte{0x80, 0xac, 0x58, 0xcd})
	require.Equal(t, true, out[0])

	id := w.agent(0).AgentID
	require.Equal(t, []string{"MetadataSet", "Transfer"}, b.do(0, plain, address(0), address(1), id))
	require.Equal(t, []string{"MetadataSet", "Transfer"}, b.do(1, withData, address(1), address(0), id, []byte("x")))
	_, refused := b.view(address(2), plain, address(0), address(2), id)
	require.Equal(t, "ERC721InsufficientApproval("+hexOf(address(2))+",0)", refused)
	_, refused = b.view(address(0), plain, address(1), address(2), id)
	require.Equal(t, "ERC721IncorrectOwner("+hexOf(address(1))+",0,"+hexOf(address(0))+")", refused)
	_, refused = b.view(address(0), plain, address(0), b.at, id)
	require.Equal(t, "ERC721InvalidReceiver("+hexOf(b.at)+")", refused, "a contract that takes no tokens")
	_, refused = b.view(address(0), "transferFrom", address(0), b.at, id)
	require.Empty(t, refused, "transferFrom asks nobody")

	at := w.wallet(4)
	wallet := w.book(at, own, "TestWallet")
	wallet.do(4, "setAnswer", [4]byte{1, 2, 3, 4})
	_, refused = b.view(address(0), plain, address(0), at, id)
	require.Equal(t, "ERC721InvalidReceiver("+hexOf(at)+")", refused, "the wrong answer")
	wallet.do(4, "setAnswer", [4]byte{})
	_, refused = b.view(address(0), plain, address(0), at, id)
	require.Equal(t, "no thanks", refused, "its own reason")
	wallet.do(4, "setAnswer", [4]byte{0x15, 0x0b, 0x7a, 0x02})
	b.do(0, withData, address(0), at, id, []byte("hello"))
	out, _ = wallet.view(address(9), "received")
	require.Contains(t, string(out[0].([]byte)), "hello")
	out, _ = b.view(address(9), "ownerOf", id)
	require.Equal(t, at, out[0])
}

// A contract that registers has to take the token that it gets.
func TestRegistry_ContractRegisters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.identity()
	at := w.wallet(4)
	wallet := w.book(at, own, "TestWallet")
	register := wallet.pack("execute", b.at, crypto.Keccak256([]byte("register()"))[:4])
	wallet.do(4, "setAnswer", [4]byte{9})
	_, refused := b.call(address(4), at, "", register)
	require.Equal(t, "ERC721InvalidReceiver("+hexOf(at)+")", refused)
	wallet.do(4, "setAnswer", [4]byte{0x15, 0x0b, 0x7a, 0x02})
	require.Equal(t, []string{"Transfer", "Registered", "MetadataSet"}, w.send(4, at, register))
	out, _ := b.view(address(9), "getAgentWallet", new(big.Int))
	require.Equal(t, at, out[0])

	// Its keys are signed by the wallet's signer (ERC-1271), and written through it.
	key := messageKey(t, "a")
	id := w.registrar(0).ID(new(big.Int))
	rec := w.byContract(4, at, id, key)
	w.send(4, at, wallet.pack("execute", b.at, b.pack("setMetadata", id.AgentID, erc8004.MetadataKeys, rec.Encode())))
	w.finalise()
	w.want(id, key, nil)
}

// An upgrade voids what a reader keeps, and is said loudly.
func TestRegistry_Upgraded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := messageKey(t, "a")
	id := w.agent(0, key)
	said := &shout{}
	cfg := w.config()
	cfg.Log = slog.New(slog.NewTextHandler(said, nil))
	r := w.polling(w.reader(cfg))
	require.Eventually(t, func() bool {
		_, err := r.Authority(w.ctx, id, key.Thumbprint)
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	b := w.identity()
	if _, ours := b.abi.Methods["emitUpgraded"]; ours {
		require.Equal(t, []string{"Upgraded"}, b.do(0, "emitUpgraded", address(7)))
	} else {
		w.upgradeToItself(b)
	}
	require.Eventually(t, func() bool { return said.contains("identity registry was upgraded") }, time.Minute, 20*time.Millisecond)
	_, err := r.Authority(w.ctx, id, key.Thumbprint)
	require.NoError(t, err)
}

// upgradeToItself gives a proxy the implementation that it has.
func (w *world) upgradeToItself(b book) {
	w.Helper()
	client := w.chain.backend.Client()
	slot := common.HexToHash("0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc") // ERC-1967
	raw, err := client.StorageAt(w.ctx, b.at, slot, nil)
	require.NoError(w, err)
	w.chain.mu.Lock()
	defer w.chain.mu.Unlock()
	nonce, err := client.PendingNonceAt(w.ctx, crypto.PubkeyToAddress(deployerKey().PublicKey))
	require.NoError(w, err)
	require.NoError(w, w.chain.deployment(deployerKey(), nonce).call(b.at, b.pack("upgradeToAndCall", common.BytesToAddress(raw), []byte{})))
}

type shout struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shout) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shout) contains(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

func (b book) give(agent *big.Int, value *big.Int, decimals uint8, tag1, tag2 string) (data []byte) {
	return b.pack("giveFeedback", agent, value, decimals, tag1, tag2, "", "", [32]byte{})
}

func TestReputation_Bounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0).AgentID
	b := w.reputation()
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	over := new(big.Int).Add(most, big.NewInt(1))
	try := func(account int, agent, value *big.Int, decimals uint8) string {
		_, refused := b.call(address(account), b.at, "", b.give(agent, value, decimals, "", ""))
		return refused
	}
	require.Empty(t, try(1, id, most, 0))
	require.Empty(t, try(1, id, new(big.Int).Neg(most), 18))
	require.Equal(t, "value too large", try(1, id, over, 0))
	require.Equal(t, "value too large", try(1, id, new(big.Int).Neg(over), 0))
	require.Equal(t, "too many decimals", try(1, id, over, 19))
	require.Equal(t, "value too large", try(0, id, over, 0))
	require.Equal(t, "Self-feedback not allowed", try(0, id, most, 0))
	require.Equal(t, "ERC721NonexistentToken(4d)", try(1, big.NewInt(77), most, 0))

	w.send(1, b.at, b.give(id, big.NewInt(5), 0, "", ""))
	none, first, second := uint64(0), uint64(1), uint64(2)
	for _, c := range []struct {
		method string
		args   []any
		want   string
	}{
		{"revokeFeedback", []any{id, none}, "index must be > 0"},
		{"revokeFeedback", []any{id, second}, "index out of bounds"},
		{"revokeFeedback", []any{id, first}, ""},
		{"readFeedback", []any{id, address(1), none}, "index must be > 0"},
		{"readFeedback", []any{id, address(1), second}, "index out of bounds"},
		{"appendResponse", []any{id, address(1), none, "", [32]byte{}}, "index must be > 0"},
		{"appendResponse", []any{id, address(1), second, "", [32]byte{}}, "Empty URI"},
		{"appendResponse", []any{id, address(1), second, "https://a.example/", [32]byte{}}, "index out of bounds"},
		{"appendResponse", []any{id, address(1), first, "https://a.example/", [32]byte{}}, ""},
		{"getSummary", []any{id, []common.Address{}, "", ""}, "clientAddresses required"},
	} {
		_, refused := b.view(address(1), c.method, c.args...)
		require.Equal(t, c.want, refused, "%s %v", c.method, c.args)
	}
}

func TestReputation_ReadAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0).AgentID
	b := w.reputation()
	for _, f := range []struct {
		account    int
		value      int64
		decimals   uint8
		tag1, tag2 string
	}{{1, 90, 0, "starred", "a"}, {2, -755, 1, "starred", "b"}, {1, 60, 0, "other", "a"}, {3, 7, 0, "", ""}} {
		require.Equal(t, []string{"NewFeedback"}, w.send(f.account, b.at, b.give(id, big.NewInt(f.value), f.decimals, f.tag1, f.tag2)))
	}
	b.do(1, "revokeFeedback", id, uint64(2))
	read := func(from []common.Address, tag1, tag2 string, revoked bool) []any {
		out, refused := b.view(address(9), "readAllFeedback", id, from, tag1, tag2, revoked)
		require.Empty(t, refused)
		return out
	}
	one, two, three := address(1), address(2), address(3)
	require.Equal(t, []any{
		[]common.Address{one, one, two, three}, []uint64{1, 2, 1, 1}, []*big.Int{big.NewInt(90), big.NewInt(60), big.NewInt(-755), big.NewInt(7)},
		[]uint8{0, 0, 1, 0}, []string{"starred", "other", "starred", ""}, []string{"a", "a", "b", ""}, []bool{false, true, false, false},
	}, read(nil, "", "", true))
	require.Equal(t, []common.Address{one, two, three}, read(nil, "", "", false)[0])
	require.Equal(t, []common.Address{two, one}, read([]common.Address{two, one}, "starred", "", true)[0])
	require.Equal(t, []string{"other"}, read([]common.Address{one}, "other", "a", true)[4])
	require.Empty(t, read([]common.Address{one}, "other", "a", false)[0])
	require.Empty(t, read([]common.Address{address(7)}, "", "", true)[0])
	out, _ := b.view(address(9), "getClients", id)
	require.Equal(t, []common.Address{one, two, three}, out[0])
}

func TestReputation_ResponseCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0).AgentID
	b := w.reputation()
	w.send(1, b.at, b.give(id, big.NewInt(1), 0, "", ""))
	w.send(1, b.at, b.give(id, big.NewInt(2), 0, "", ""))
	w.send(2, b.at, b.give(id, big.NewInt(3), 0, "", ""))
	for _, r := range []struct {
		account, client int
		index           uint64
	}{{0, 1, 1}, {0, 1, 1}, {5, 1, 1}, {0, 1, 2}, {6, 2, 1}} {
		require.Equal(t, []string{"ResponseAppended"}, b.do(r.account, "appendResponse", id, address(r.client), r.index, "https://a.example/", [32]byte{}))
	}
	zero := common.Address{}
	for _, c := range []struct {
		client     common.Address
		index      uint64
		responders []common.Address
		want       uint64
	}{
		{address(1), 1, nil, 3},
		{address(1), 1, []common.Address{address(0)}, 2},
		{address(1), 1, []common.Address{address(5), address(5)}, 2},
		{address(1), 1, []common.Address{zero}, 0},
		{address(1), 2, nil, 1},
		{address(1), 9, nil, 0},
		{address(1), 0, nil, 4},
		{address(1), 0, []common.Address{address(0)}, 3},
		{zero, 0, nil, 5},
		{zero, 1, []common.Address{address(6)}, 1},
		{address(8), 0, nil, 0},
	} {
		out, refused := b.view(address(9), "getResponseCount", id, c.client, c.index, c.responders)
		require.Empty(t, refused)
		require.Equal(t, c.want, out[0], "%v", c)
	}
}

// The average is in the most frequent number of decimals, cut towards zero.
func TestReputation_Summary(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.agent(0).AgentID
	b := w.reputation()
	for account, f := range map[int]struct {
		value    int64
		decimals uint8
	}{1: {90, 0}, 2: {755, 1}, 3: {60, 0}} {
		w.send(account, b.at, b.give(id, big.NewInt(f.value), f.decimals, "starred", ""))
	}
	out, refused := b.view(address(9), "getSummary", id, []common.Address{address(1), address(2), address(3)}, "starred", "")
	require.Empty(t, refused)
	require.Equal(t, []any{uint64(3), big.NewInt(75), uint8(0)}, out, "75.17")
}

// The suite runs on contracts of other tools: an artifact may be one of Hardhat or
// of Foundry, somewhere under the folder.
func TestContracts_ForeignArtifacts(t *testing.T) {
	t.Parallel()
	mine, err := own.load("IdentityRegistry")
	require.NoError(t, err)
	raw, err := contractFiles.ReadFile("contracts/IdentityRegistry.json")
	require.NoError(t, err)
	dir := t.TempDir()
	writeArtifact(t, dir, "out/IdentityRegistry.sol/IdentityRegistry.json", raw,
		func(m map[string]any) { m["bytecode"] = map[string]any{"object": m["bytecode"]} })
	raw, err = contractFiles.ReadFile("contracts/ReputationRegistry.json")
	require.NoError(t, err)
	writeArtifact(t, dir, "ReputationRegistry.json", raw, func(m map[string]any) { m["bytecode"] = strings.TrimPrefix(m["bytecode"].(string), "0x") })
	a, err := contracts{dir}.load("IdentityRegistry")
	require.NoError(t, err)
	require.Equal(t, mine.Bytecode, a.Bytecode)

	c, err := Start("127.0.0.1:0", dir, chainID, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer c.Close()
	r, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{{ID: chainID, RPC: []string{c.Ready.RPC},
		Registries: []erc8004.Registry{{Identity: c.Ready.IdentityRegistry, Reputation: c.Ready.ReputationRegistry}}}}})
	require.NoError(t, err)
	require.NoError(t, r.Check(context.Background()))

	_, err = Start("127.0.0.1:0", t.TempDir(), chainID, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "contract IdentityRegistry")
}

func writeArtifact(t *testing.T, dir, name string, raw []byte, edit func(map[string]any)) {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	edit(m)
	out, err := json.Marshal(m)
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, out, 0o600))
}
