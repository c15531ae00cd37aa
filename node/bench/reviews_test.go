package bench_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A ledger is a chain endpoint with many reviews of one agent, two a block.
type ledger struct {
	*httptest.Server
	logs     []map[string]any
	requests atomic.Int64
}

const (
	rpcChain         = 31337
	rpcRegistry      = "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
	ledgerReputation = "0x8004baa17c55a88189ae136b182e5fda19de9b63"
	ledgerOwner      = "0x0000000000000000000000000000000000000001" // as eth_call says
)

func (l *ledger) head() uint64 { return uint64(len(l.logs))/2 + 200 }

func (l *ledger) answer(w http.ResponseWriter, r *http.Request) {
	l.requests.Add(1)
	var in []struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	json.NewDecoder(r.Body).Decode(&in)
	var out []map[string]any
	for _, q := range in {
		m := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		switch q.Method {
		case "eth_chainId":
			m["result"] = hexutil.Uint64(rpcChain)
		case "eth_getBlockByNumber":
			n := hexutil.Uint64(l.head())
			var tag string
			json.Unmarshal(q.Params[0], &tag)
			if strings.HasPrefix(tag, "0x") {
				n.UnmarshalText([]byte(tag))
			}
			m["result"] = map[string]any{"number": n, "hash": common.BigToHash(big.NewInt(int64(n) + 1)), "timestamp": hexutil.Uint64(time.Now().Unix())}
		case "eth_getLogs":
			var f struct {
				FromBlock, ToBlock hexutil.Uint64
				Topics             []json.RawMessage
			}
			json.Unmarshal(q.Params[0], &f)
			if len(f.Topics) > 0 && strings.Contains(string(f.Topics[0]), "ddf252ad") { // nobody sold anything
				m["result"] = []any{}
				break
			}
			first, last := min(max(int(f.FromBlock)-1, 0)*2, len(l.logs)), min(int(f.ToBlock)*2, len(l.logs))
			m["result"] = l.logs[first:last]
		case "eth_call":
			m["result"] = common.BigToHash(big.NewInt(1))
			if strings.Contains(string(q.Params[0]), "bc4d861b") { // getIdentityRegistry
				m["result"] = common.HexToHash(rpcRegistry)
			}
		}
		out = append(out, m)
	}
	json.NewEncoder(w).Encode(out)
}

// newLedger gives a business n reviews, each with a receipt of its own within the event.
func newLedger(b *testing.B, n int, change func(*node.Config)) (*ledger, *nodetest.House) {
	l := &ledger{}
	l.Server = httptest.NewServer(http.HandlerFunc(l.answer))
	b.Cleanup(l.Close)
	h := nodetest.New(b, change, func(c *node.Config) {
		c.Chain = []string{fmt.Sprintf("%d=%s,%s,%s", rpcChain, l.URL, rpcRegistry, ledgerReputation)}
	})
	agent := fmt.Sprintf("eip155:%d:%s:7", rpcChain, rpcRegistry)
	ctx := b.Context()
	require.NoError(b, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "rao", Name: "Rao", Kind: protocol.Business}})
		if err != nil {
			return err
		}
		e := storage.Enrolment{Handle: "rao", ERC8004: agent, KeyID: "k", Owner: ledgerOwner, Wallet: ledgerOwner}
		return tx.Enrolments().Begin(ctx, "operator", e, []byte("{}"))
	}))
	var args abi.Arguments
	for _, name := range []string{"uint64", "int128", "uint8", "string", "string", "string", "string", "bytes32"} {
		typ := must.Get(abi.NewType(name, "", nil))(b)
		args = append(args, abi.Argument{Type: typ})
	}
	topic := crypto.Keccak256Hash([]byte("NewFeedback(uint256,address,uint64,int128,uint8,string,string,string,string,string,bytes32)"))
	var receipts []storage.StoredReceipt
	for i := range n {
		client := strings.ToLower(common.BigToAddress(big.NewInt(int64(i) + 1000)).Hex())
		r := storage.StoredReceipt{ID: protocol.NewID(protocol.ReceiptID, time.Now()), Handle: "rao", Order: fmt.Sprint(i), Agent: agent,
			Client: fmt.Sprintf("eip155:%d:%s", rpcChain, client), Currency: "INR", Minor: 18000, PaidAt: time.Now(), IssuedAt: time.Now()}
		claims := must.Get(json.Marshal(protocol.OrderReceiptClaims{Issuer: h.Base, Order: r.Order, Agent: agent, Shop: "rao",
			Client: r.Client, Amount: "180.00", Currency: "INR", ID: r.ID, Known: protocol.KnownProvider}))(b)
		r.Token = must.Get(h.Keys.Ed.SignCompact(claims, protocol.OrderReceiptType))(b)
		receipts = append(receipts, r)
		file := fmt.Appendf(nil, `{"agentRegistry":"eip155:%d:%s","agentId":7,"clientAddress":%q,"createdAt":"2026-11-20T09:30:00Z",`+
			`"value":90,"valueDecimals":0,"orderReceipt":%q}`,
			rpcChain, rpcRegistry, client, r.Token)
		uri := "data:application/json;base64," + base64.StdEncoding.EncodeToString(file)
		data := must.Get(args.Pack(uint64(1), big.NewInt(90), uint8(0), "starred", "", "", uri, erc8004.FeedbackHash(file)))(b)
		l.logs = append(l.logs, map[string]any{"address": ledgerReputation, "data": hexutil.Bytes(data), "blockNumber": hexutil.Uint64(i/2 + 1),
			"topics":    []any{topic, common.BigToHash(big.NewInt(7)), common.HexToHash(client), crypto.Keccak256Hash([]byte("starred"))},
			"blockHash": common.Hash{}, "blockTimestamp": hexutil.Uint64(time.Now().Unix()), "transactionHash": common.BigToHash(big.NewInt(int64(i) + 1)),
			"transactionIndex": hexutil.Uint64(i % 2), "logIndex": hexutil.Uint64(i % 2)})
	}
	for len(receipts) > 0 {
		part := receipts[:min(500, len(receipts))]
		receipts = receipts[len(part):]
		require.NoError(b, h.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			for _, r := range part {
				if err := tx.OrderReceipts().Insert(ctx, r, protocol.MaxOrderReceipts); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return l, h
}

// BenchmarkReviews indexes 10,000 reviews of one business, all of which count.
func BenchmarkReviews(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchReviews(b, func(*node.Config) {}) })
	b.Run("postgres", func(b *testing.B) {
		if os.Getenv(storagetest.PostgresEnv) == "" {
			b.Skip("no PostgreSQL")
		}
		benchReviews(b, func(c *node.Config) { c.Database = storagetest.PostgresURL(b) })
	})
}

func benchReviews(b *testing.B, change func(*node.Config)) {
	const n = 10_000
	for b.Loop() {
		b.StopTimer()
		l, h := newLedger(b, n, change)
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		peak := before.HeapInuse
		asked := l.requests.Load()
		b.StartTimer()
		counted := int64(0)
		for runs := 0; counted < n && runs < 100; runs++ {
			after := must.Get(h.Reputation.Index(b.Context(), storage.Job{Args: fmt.Appendf(nil, "eip155:%d:%s", rpcChain, rpcRegistry)}))(b)
			require.NoError(b, h.DB.Write(b.Context(), after))
			require.NoError(b, h.DB.Read(b.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				counted, _, err = tx.Feedbacks().Sum(ctx, fmt.Sprintf("eip155:%d:%s:7", rpcChain, rpcRegistry))
				return err
			}))
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
		b.StopTimer()
		require.EqualValues(b, n, counted)
		b.ReportMetric(float64(l.requests.Load()-asked), "requests")
		b.ReportMetric(float64(peak-before.HeapInuse)/(1<<20), "MiB-more")
		b.StartTimer()
	}
}
