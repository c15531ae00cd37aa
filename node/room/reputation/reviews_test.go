package reputation_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"stoa/identity/attest"
	"stoa/identity/erc8004"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A market is a stage with shops that are enrolled to identities on a real chain, and a reputation
// registry that the node reads. No job runs by itself.
type market struct {
	*nodetest.Stage
	files   *httptest.Server
	content map[string][]byte
	token   common.Address
	late    hexutil.Bytes // a signed transaction to send
}

func newMarket(t *testing.T, finality string, change func(*node.Config)) *market {
	t.Helper()
	c := nodetest.NewEVM(t)
	m := &market{content: map[string][]byte{}}
	m.files = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := m.content[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(file)
	}))
	t.Cleanup(m.files.Close)
	m.Stage = &nodetest.Stage{House: nodetest.New(t, change, func(o *node.Config) {
		o.AllowPrivatePeers = true
		o.Chain = []string{fmt.Sprintf("%d=%s,%s,%s%s", c.ChainID, c.RPC, c.Identity, c.Reputation, finality)}
	}), Chain: c}
	m.Reputation.Pace, m.Reputation.Pauses = 0, nil
	c.Do("final")
	return m
}

func addressOf(c *nodetest.EVM, account int) common.Address {
	return common.HexToAddress(c.Accounts[account].Address)
}

// shop makes a business whose identity is owned by one account and paid to another.
func (m *market) shop(handle string, owner, wallet int) (id erc8004.ID, token string) {
	m.T.Helper()
	ctx := m.T.Context()
	token = "Bearer " + m.Business(handle, "")
	pair := nodetest.NewPair(m.T)
	require.NoError(m.T, m.Admin().AddKey(ctx, handle, pair, true))
	id, _, err := m.Chain.Registrar(owner).Register(ctx, "https://agent.example/"+handle)
	require.NoError(m.T, err)
	if wallet != owner {
		signer := must.Get(erc8004.ParseWalletKey(m.Chain.Accounts[wallet].PrivateKey))(m.T)
		m.Chain.Must(m.Chain.Registrar(owner).SetAgentWallet(ctx, id.AgentID, addressOf(m.Chain, wallet), signer))
	}
	m.Chain.Publish(owner, owner, id, pair)
	m.Chain.Do("final")
	require.NoError(m.T, m.Admin().EnrolIdentity(ctx, handle, id.String(), pair.Thumbprint()))
	return id, token
}

// receipt issues a receipt for an order of an account, of whose payment its provider told.
func (m *market) receipt(token, order string, account int) protocol.OrderReceipt {
	m.T.Helper()
	return m.receiptOf(token, order, account, "INR", "180")
}

func (m *market) receiptOf(token, order string, account int, currency, amount string) (r protocol.OrderReceipt) {
	m.T.Helper()
	return m.Receipt(token, protocol.NewOrderReceipt{Order: order, Client: m.Chain.Accounts[account].Address,
		Total: protocol.MoneyDraft{Currency: currency, Amount: protocol.Decimal(amount)}}, protocol.KnownProvider)
}

// file is a feedback file, with some more members.
func (m *market) file(id erc8004.ID, account int, value int64, more string) []byte {
	return fmt.Appendf(nil, `{"agentRegistry":"eip155:%d:%s","agentId":%s,"clientAddress":"eip155:%d:%s","createdAt":"2026-11-20T09:30:00Z",`+
		`"value":%d,"valueDecimals":0%s}`,
		id.ChainID, id.Registry.Hex(), id.AgentID, id.ChainID, m.Chain.Accounts[account].Address, value, more)
}

func dataURI(file []byte) string {
	return "data:application/json;base64," + base64.StdEncoding.EncodeToString(file)
}

// give gives feedback on the chain.
func (m *market) give(id erc8004.ID, account int, value int64, uri string, hash [32]byte) erc8004.Receipt {
	m.T.Helper()
	return m.giveAs(account, erc8004.GiveFeedbackCall(id.AgentID, value, 0, uri, hash))
}

func (m *market) giveAs(account int, call []byte) erc8004.Receipt {
	m.T.Helper()
	to := common.HexToAddress(m.Chain.Reputation)
	made := must.Get(m.Chain.Registrar(account).Send(m.T.Context(), &to, call))(m.T)
	return made
}

// pay pays from an account, and returns a member for a file.
func (m *market) pay(account int, to common.Address, wei int64) string {
	m.T.Helper()
	made := must.Get(m.Chain.Registrar(account).Pay(m.T.Context(), to, big.NewInt(wei)))(m.T)
	return m.proofOf(made)
}

func (m *market) proofOf(made erc8004.Receipt) string {
	return fmt.Sprintf(`,"proofOfPayment":{"chainId":"%d","txHash":%q}`, m.Chain.ChainID, made.TxHash.Hex())
}

// payToken pays with an ERC-20 token of the test.
func (m *market) payToken(account int, to common.Address, units int64) string {
	m.T.Helper()
	if m.token == (common.Address{}) {
		raw := must.Get(os.ReadFile(nodetest.Source("cmd/devchain/contracts/TestToken.json")))(m.T)
		var artifact struct{ Bytecode string }
		require.NoError(m.T, json.Unmarshal(raw, &artifact))
		code := must.Get(hex.DecodeString(strings.TrimPrefix(artifact.Bytecode, "0x")))(m.T)
		made := must.Get(m.Chain.Registrar(9).Send(m.T.Context(), nil, code))(m.T)
		m.token = *made.Contract
	}
	mint := append(common.FromHex("0xa0712d68"), common.LeftPadBytes(big.NewInt(units).Bytes(), 32)...) // mint(uint256)
	must.Get(m.Chain.Registrar(account).Send(m.T.Context(), &m.token, mint))(m.T)
	made := must.Get(m.Chain.Registrar(account).Send(m.T.Context(), &m.token, erc8004.TransferCall(to, big.NewInt(units))))(m.T)
	return m.proofOf(made)
}

// fails sends a transaction that is included and fails: its contract takes no gas price but the zero of an
// estimate (GASPRICE JUMPI STOP JUMPDEST REVERT).
func (m *market) fails(account int) string {
	m.T.Helper()
	made, err := m.Chain.Registrar(account).Send(m.T.Context(), nil, common.FromHex("683a600557005b5f5ffd5f5260096017f3"))
	require.NoError(m.T, err)
	made, err = m.Chain.Registrar(account).Send(m.T.Context(), made.Contract, nil)
	require.ErrorContains(m.T, err, "failed")
	return m.proofOf(made)
}

// payLater signs a payment with a nonce that the account has not reached, and leaves it in m.late.
func (m *market) payLater(account int, nonce uint64, to common.Address) string {
	m.T.Helper()
	wallet := must.Get(erc8004.ParseWalletKey(m.Chain.Accounts[account].PrivateKey))(m.T)
	fields := []any{nonce, big.NewInt(1e10), uint64(50_000), to, big.NewInt(5), []byte{}}
	unsigned := must.Get(rlp.EncodeToBytes(append(fields, m.Chain.ChainID, uint(0), uint(0))))(m.T) // EIP-155
	sig := must.Get(crypto.Sign(crypto.Keccak256(unsigned), wallet))(m.T)
	number := func(b []byte) *big.Int { return new(big.Int).SetBytes(b) }
	signed := must.Get(rlp.EncodeToBytes(append(fields, uint64(sig[64])+35+2*m.Chain.ChainID, number(sig[:32]), number(sig[32:64]))))(m.T)
	m.late = signed
	return m.proofOf(erc8004.Receipt{TxHash: crypto.Keccak256Hash(signed)})
}

// index runs the jobs of reviews until nothing is due, of several processes at the same time.
func (m *market) index(houses ...*nodetest.House) {
	m.T.Helper()
	ctx := m.T.Context()
	if houses == nil {
		houses = []*nodetest.House{m.House}
	}
	run := func(h *nodetest.House, handle func(context.Context, storage.Job) (func(context.Context, *storage.Tx) error, error), args string) error {
		after, err := handle(ctx, storage.Job{Args: []byte(args)})
		if err == nil && after != nil {
			err = h.DB.Write(ctx, after)
		}
		return err
	}
	for range 6 {
		var group errgroup.Group
		for _, h := range houses {
			group.Go(func() error {
				var errs []error
				for registry := range h.Reputation.Chain.Reputations() {
					errs = append(errs, run(h, h.Reputation.Index, registry))
				}
				for range 4 {
					errs = append(errs, run(h, h.Reputation.Checks, ""))
				}
				return errors.Join(errs...)
			})
		}
		require.NoError(m.T, group.Wait())
	}
}

// reviews lists the reviews of a shop, counted or not, by the hash of their transaction.
func (m *market) reviews(handle string) map[string]protocol.Review {
	m.T.Helper()
	all := map[string]protocol.Review{}
	for _, uncounted := range []string{"", "&uncounted=true"} {
		var page protocol.Page[protocol.Review]
		for after := ""; ; after = "&after=" + *page.Next {
			a := m.Ask("GET", "/api/public/agents/"+handle+"/reviews?limit=7"+uncounted+after, "").Is(200)
			page = protocol.Page[protocol.Review]{}
			a.Into(&page)
			for _, r := range page.Items {
				require.Equal(m.T, uncounted == "", r.Counts)
				require.NotEmpty(m.T, r.Why)
				all[r.Evidence.Transaction] = r
			}
			if page.Next == nil {
				break
			}
		}
	}
	return all
}

func (m *market) reputed(handle string) protocol.Reputation {
	m.T.Helper()
	p := nodetest.As[protocol.Merchant](m.Ask("GET", "/api/public/merchants/"+handle, ""))
	require.NotNil(m.T, p.Reputation)
	return *p.Reputation
}

// TestReviews gives reviews on a real chain, and finds each counted or not, and why.
func TestReviews(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		m := newMarket(t, "", change)
		shop, token := m.shop("rao", 0, 5)
		_, otherToken := m.shop("mehta", 6, 6)
		m.index() // the shops are known from here on
		require.Equal(t, 0, m.reputed("rao").Reviews)
		require.Nil(t, m.reputed("rao").Average)
		require.Contains(t, m.reputed("rao").Source, "Reviews from paid orders")

		by := func(r protocol.OrderReceipt) string { return fmt.Sprintf(`,"orderReceipt":%q`, r.Receipt) }
		data := func(account int, value int64, more string) erc8004.Receipt {
			file := m.file(shop, account, value, more)
			return m.give(shop, account, value, dataURI(file), erc8004.FeedbackHash(file))
		}
		served := func(name string, file []byte, account int, value int64) erc8004.Receipt {
			m.content[name] = file
			return m.give(shop, account, value, m.files.URL+name, erc8004.FeedbackHash(file))
		}
		wallet := addressOf(m.Chain, 5)
		first, revoked, later, gone := m.receipt(token, "R-1", 1), m.receipt(token, "R-2", 1), m.receipt(token, "R-3", 1), m.receipt(token, "R-4", 2)
		small, dollars, refunded := m.receiptOf(token, "R-10", 8, "INR", "49.99"), m.receiptOf(token, "R-11", 8, "USD", "180"), m.receipt(token, "R-12", 8)
		m.refund(token, refunded, "pending", -18000)
		m.refund(token, refunded, "completed", -18000)
		require.Equal(t, 200, m.Ask("POST", "/api/owner/order-receipts/"+revoked.ID+"/revoke", `{}`, "Authorization", token).Code)
		native, coins := m.pay(3, wallet, 1_000_000_000_000_000), m.payToken(4, wallet, 2_500_000)
		large := append(m.file(shop, 1, 50, ""), []byte(strings.Repeat(" ", protocol.MaxReviewFile))...)
		file := m.file(shop, 1, 85, by(first))

		cases := []struct {
			name   string
			made   erc8004.Receipt
			reason protocol.ReviewReason
		}{
			{"an order receipt, file in the event", data(1, 90, `,"comment":"Good thali."`+by(first)), protocol.ByProvider},
			{"the same receipt again", data(1, 90, by(first)), protocol.ProofUsed},
			{"a receipt that was revoked before", data(1, 90, by(revoked)), protocol.ReceiptRevoked},
			{"a receipt that is revoked later, of the same account", data(1, 70, by(later)), protocol.TooSoon},
			{"another order of the same account", data(1, 70, by(m.receipt(token, "R-13", 1))), protocol.TooSoon},
			{"an order below the floor", data(8, 100, by(small)), protocol.OrderTooSmall},
			{"an order in another currency", data(8, 100, by(dollars)), protocol.OrderCurrency},
			{"an order that was refunded", data(8, 100, by(refunded)), protocol.OrderRefunded},
			{"a receipt of another client", data(2, 90, by(first)), protocol.ReceiptClient},
			{"a receipt of another shop", data(1, 90, by(m.receipt(otherToken, "M-1", 1))), protocol.ReceiptAgent},
			{"no proof", data(1, 100, ""), protocol.NoProof},
			{"over a hundred", data(1, 101, ""), protocol.OutOfRange},
			{"below zero", data(1, -1, ""), protocol.OutOfRange},
			{"by the wallet of the shop", data(5, 100, ""), protocol.SelfReview},
			{"without a file", m.give(shop, 1, 90, "", [32]byte{}), protocol.NoFile},
			{"ipfs", m.give(shop, 1, 90, "ipfs://bafy", [32]byte{1}), protocol.UnreadableURI},
			{"another hash", m.give(shop, 1, 85, dataURI(file), [32]byte{1}), protocol.HashMismatch},
			{"another value", m.give(shop, 1, 86, dataURI(file), erc8004.FeedbackHash(file)), protocol.FileDiffers},
			{"no file of ERC-8004", m.give(shop, 1, 86, dataURI([]byte("[]")), erc8004.FeedbackHash([]byte("[]"))), protocol.MalformedFile},
			{"a file that is not there", m.give(shop, 1, 85, m.files.URL+"/nothing", erc8004.FeedbackHash(file)), protocol.Unreachable},
			{"a file that is too large", served("/large", large, 1, 50), protocol.FileTooLarge},
			{"a payment in the chain's own currency", served("/native", m.file(shop, 3, 80, native), 3, 80), protocol.ByPayment},
			{"the same payment again", data(3, 80, native), protocol.ProofUsed},
			{"a payment in a token", data(4, 100, coins), protocol.ByPayment},
			{"a payment to somebody else", data(3, 80, m.pay(3, addressOf(m.Chain, 7), 5)), protocol.PaymentPayee},
			{"tokens to somebody else", data(4, 80, m.payToken(4, addressOf(m.Chain, 7), 5)), protocol.PaymentPayee},
			{"a transaction that paid nothing", data(3, 80, m.pay(3, wallet, 0)), protocol.PaymentNothing},
			{"a payment of somebody else", data(1, 80, native), protocol.PaymentNothing},
			{"a payment that is nowhere", data(3, 80, fmt.Sprintf(`,"proofOfPayment":{"chainId":"%d","txHash":"0x%064d"}`, m.Chain.ChainID, 7)),
				protocol.PaymentUnknown},
			{"a payment on another chain", data(3, 80, fmt.Sprintf(`,"proofOfPayment":{"chainId":"1","txHash":"0x%064d"}`, 7)), protocol.PaymentChain},
			{"another tag", m.giveAs(1, bytes.Replace(erc8004.GiveFeedbackCall(shop.AgentID, 85, 0, dataURI(file), erc8004.FeedbackHash(file)),
				[]byte(erc8004.Starred), []byte("quality"), 1)), protocol.NotStarred},
			{"a transaction that failed", data(3, 80, m.fails(3)), protocol.PaymentFailed},
			{"a payment after the review", data(8, 80, m.payLater(8, 4, wallet)), protocol.PaymentLate},
			{"taken back by its client", data(2, 20, by(gone)), protocol.ByProvider},
		}
		client := must.Get(rpc.DialContext(t.Context(), m.Chain.RPC))(t)
		defer client.Close()
		require.NoError(t, client.CallContext(t.Context(), nil, "eth_sendRawTransaction", m.late))
		m.index()
		_, early := m.reviews("rao")[cases[len(cases)-1].made.TxHash.Hex()]
		require.False(t, early, "nothing before it is final")
		m.Chain.Do("final")
		require.NoError(t, m.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			r := must.Get(tx.OrderReceipts().ByID(ctx, later.ID))(t) // the chain's clock runs ahead of ours
			r.RevokedAt = new(time.Now().Add(24 * time.Hour))
			return tx.OrderReceipts().Put(ctx, r)
		}))
		two := m.Second(change)
		two.Reputation.Pace, two.Reputation.Pauses = 0, nil
		m.index(m.House, two)
		got := m.reviews("rao")
		require.Len(t, got, len(cases))
		for _, c := range cases {
			require.Equal(t, c.reason, got[c.made.TxHash.Hex()].Reason, c.name)
		}
		require.Equal(t, 4, m.reputed("rao").Reviews)
		require.InDelta(t, 3.6, *m.reputed("rao").Average, 1e-9, "(90 + 80 + 100 + 20) / 4 / 20, to one place")
		require.Equal(t, 0, m.reputed("mehta").Reviews)

		of := func(name string) protocol.Review {
			for _, c := range cases {
				if c.name == name {
					return got[c.made.TxHash.Hex()]
				}
			}
			t.Fatalf("no case %q", name)
			return protocol.Review{}
		}
		one := of("an order receipt, file in the event")
		require.Equal(t, "Good thali.", one.Text)
		require.InDelta(t, 4.5, *one.Stars, 1e-9)
		require.Equal(t, protocol.Money{Currency: "INR", Amount: "180.00"}, one.Order.Total)
		require.Equal(t, first.ID, one.Order.Receipt)
		paid := of("a payment in a token").Payment
		require.Equal(t, "2.5", paid.Amount)
		require.Equal(t, strings.ToLower(m.token.Hex()), *paid.Token)
		require.Equal(t, "0.001", of("a payment in the chain's own currency").Payment.Amount)
		require.Len(t, m.Told("review"), 4)

		page := m.Ask("GET", "/@rao/reviews", "", "Accept", "text/html").Is(200)
		for _, text := range []string{"Good thali.", "4.5", "₹180", "2.5 of the token " + strings.ToLower(m.token.Hex()), protocol.ByPayment.Text(),
			protocol.ByProvider.Text()} {
			require.Contains(t, page.Body.String(), text)
		}
		require.Contains(t, m.Ask("GET", "/@rao/reviews?uncounted=true", "", "Accept", "text/html").Body.String(), protocol.HashMismatch.Text())

		m.hidesText(one)

		// An answer of the shop is shown, one of a stranger is not. What its client takes back counts no more, and
		// its order is free again.
		registry := common.HexToAddress(m.Chain.Reputation)
		for account, text := range map[int]string{5: "Thank you.", 7: "Buy mine."} {
			m.Chain.Must(m.Chain.Registrar(account).Send(t.Context(), &registry,
				erc8004.AppendResponseCall(shop.AgentID, addressOf(m.Chain, 1), one.Evidence.Index, "data:,"+strings.ReplaceAll(text, " ", "%20"), [32]byte{})))
		}
		last := got[cases[len(cases)-1].made.TxHash.Hex()]
		m.Chain.Must(m.Chain.Registrar(2).Send(t.Context(), &registry, erc8004.RevokeFeedbackCall(shop.AgentID, last.Evidence.Index)))
		again := data(2, 40, by(gone))
		m.Chain.Do("final")
		m.index()
		got = m.reviews("rao")
		require.Equal(t, protocol.ReviewRevoked, got[last.Evidence.Transaction].Reason)
		require.Equal(t, protocol.ByProvider, got[again.TxHash.Hex()].Reason)
		require.Len(t, got[one.Evidence.Transaction].Replies, 1)
		require.Equal(t, "Thank you.", got[one.Evidence.Transaction].Replies[0].Text)
		require.Equal(t, 4, m.reputed("rao").Reviews)
		require.InDelta(t, 3.9, *m.reputed("rao").Average, 1e-9)
		require.Len(t, m.Told("review"), 4, "one of them is withdrawn")
		require.Equal(t, 404, m.Ask("GET", "/api/public/agents/nobody/reviews", "").Code)
		m.withdrawn(token, gone, first, one, got)
		m.sold(shop, token, otherToken)
	})
}

// refund adds an adjustment to the order of a receipt.
func (m *market) refund(token string, r protocol.OrderReceipt, status string, minor int64) {
	m.T.Helper()
	m.Ask("POST", "/api/owner/order-receipts/"+r.ID+"/adjustments", fmt.Sprintf(`{"adjustment":{"id":"%s%d","type":"refund","status":%q,
		"occurred_at":"2026-11-21T09:30:00Z","totals":[{"type":"total","amount":%d}]}}`, status, minor, status, minor), "Authorization", token).Is(200)
}

// withdrawn: a shop that says that an order was refunded in full, or revokes its receipt, takes the review out of
// the sum; it stays listed, with the reason, and another review of the account may count then.
func (m *market) withdrawn(token string, gone, first protocol.OrderReceipt, one protocol.Review, before map[string]protocol.Review) {
	m.T.Helper()
	m.refund(token, gone, "completed", -13000)
	require.Equal(m.T, 4, m.reputed("rao").Reviews, "a part of it")
	m.refund(token, gone, "pending", -5000)
	require.Equal(m.T, 4, m.reputed("rao").Reviews, "not yet")
	m.refund(token, gone, "completed", -5000)
	require.Equal(m.T, 3, m.reputed("rao").Reviews)
	require.Contains(m.T, m.Ask("GET", "/api/public/order-receipts/"+gone.ID, "").Body.String(), `"refunded"`)
	require.Equal(m.T, 200, m.Ask("POST", "/api/owner/order-receipts/"+first.ID+"/revoke", `{}`, "Authorization", token).Code)
	require.Equal(m.T, 2, m.reputed("rao").Reviews)
	require.NoError(m.T, m.DB.Check(m.T.Context()))
	m.index()
	var reasons []protocol.ReviewReason
	now := m.reviews("rao")
	for id, r := range before {
		if now[id].Reason != r.Reason {
			reasons = append(reasons, now[id].Reason)
		}
	}
	revoked := protocol.ReceiptRevoked
	require.ElementsMatch(m.T, []protocol.ReviewReason{protocol.OrderRefunded, revoked, revoked, protocol.ByProvider}, reasons,
		"refunded; revoked, and the review that had used the same receipt; the other order of the account")
	require.Equal(m.T, protocol.ReceiptRevoked, now[one.Evidence.Transaction].Reason)
	require.Equal(m.T, 3, m.reputed("rao").Reviews)
	page := m.Ask("GET", "/@rao/reviews?uncounted=true", "", "Accept", "text/html", "Cookie", "stoa_language=hi").Body.String()
	for _, why := range []protocol.ReviewReason{protocol.OrderRefunded, revoked, protocol.TooSoon, protocol.OrderTooSmall, protocol.OrderCurrency} {
		require.NotContains(m.T, page, why.Text(), "it is in Hindi")
	}
}

// TestReviews_Reorganisation: a final block that is replaced after all takes its reviews along.
func TestReviews_Reorganisation(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		m := newMarket(t, ",depth:2", change)
		shop, token := m.shop("rao", 0, 0)
		m.index()
		file := m.file(shop, 1, 90, fmt.Sprintf(`,"orderReceipt":%q`, m.receipt(token, "R-1", 1).Receipt))
		m.give(shop, 1, 90, dataURI(file), erc8004.FeedbackHash(file))
		m.Chain.Do("mine 2")
		m.index()
		require.Equal(t, 1, m.reputed("rao").Reviews)
		m.Chain.Do("fork 3")
		m.index()
		require.Equal(t, 0, m.reputed("rao").Reviews)
		require.Empty(t, m.Told("review"))
		m.give(shop, 1, 90, dataURI(file), erc8004.FeedbackHash(file))
		m.Chain.Do("mine 2")
		m.index()
		require.Equal(t, 1, m.reputed("rao").Reviews, "the order is free again")
	})
}

// TestProofDocument_Reviews: a review and a receipt of an order have proofs, and what is hidden of a review is not in it.
func TestProofDocument_Reviews(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "", func(*node.Config) {})
	shop, token := m.shop("rao", 0, 5)
	m.shop("mehta", 6, 6)
	m.index()
	receipt := m.receipt(token, "order-1", 2)
	file := m.file(shop, 2, 90, fmt.Sprintf(`,"orderReceipt":%q,"text":"Crisp dosa"`, receipt.Receipt))
	m.give(shop, 2, 90, dataURI(file), erc8004.FeedbackHash(file))
	m.Chain.Do("final")
	m.index()
	said, review, operator := nodetest.GoodSteps("document node", "author"), nodetest.GoodSteps("document node counts", "author"), m.Operator()
	for _, r := range m.reviews("rao") {
		address := "/api/public/agents/rao/reviews/" + r.ID
		require.Contains(t, string(m.Proven(address, attest.KindReview, review)), "Crisp dosa")
		require.Equal(t, 404, m.Ask("GET", "/api/public/agents/mehta/reviews/"+r.ID+"/proof", "").Code)
		operator.Do(200, "POST", "/api/operator/reviews/"+r.ID+"/hide", map[string]string{"reason": "a name"}, nil)
		require.NotContains(t, string(m.Proven(address, attest.KindReview, review)), "Crisp dosa")
	}
	address := "/api/public/order-receipts/" + receipt.ID
	require.Contains(t, string(m.Proven(address, attest.KindReceipt, said)), `"valid"`)
	m.Ask("POST", "/api/owner/order-receipts/"+receipt.ID+"/revoke", `{"reason":"mistake"}`, "Authorization", token).Is(200)
	require.Contains(t, string(m.Proven(address, attest.KindReceipt, said)), `"revoked"`)
	require.Equal(t, 404, m.Ask("GET", "/api/public/order-receipts/rcpt_01kaa9zv6k8e5w9q2x4z7c1m0a/proof", "").Code)
}
