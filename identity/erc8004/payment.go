package erc8004

import (
	"context"
	"errors"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// A Payment is what a transaction paid to the wallet of an agent.
type Payment struct {
	Found     bool   // the chain has it in a final block
	Failed    bool   // it was reverted
	Block     uint64 //
	Place     uint64 // of the transaction in the block
	Wallet    string // agentWallet to which it was compared, in lower case; "" for none
	WalletNow bool   // that of now: the endpoint has no state of the block any more
	ToOther   bool   // it paid the account's money, but not to the wallet
	Amount    *big.Int
	Token     string // contract of an ERC-20 token, in lower case; "" for the chain's own currency
	Decimals  int    // of the token, as it says itself; -1 when it does not
}

type txReceipt struct {
	Status hexutil.Uint64 `json:"status"`
	Block  hexutil.Uint64 `json:"blockNumber"`
	Hash   common.Hash    `json:"blockHash"`
	Place  hexutil.Uint64 `json:"transactionIndex"`
	Logs   []feedbackLog  `json:"logs"`
}

type txFields struct {
	From  common.Address  `json:"from"`
	To    *common.Address `json:"to"`
	Value *hexutil.Big    `json:"value"`
}

// Payment returns what a transaction paid from an account to the agentWallet of an agent, as it was at
// that block where the endpoint still has its state, otherwise to walletNow. Amount is nil when it paid
// nothing to it. Errors wrap ErrUnavailable or ErrChainNotSupported.
func (r *Reader) Payment(ctx context.Context, id ID, tx, from, walletNow string) (p Payment, err error) {
	c, err := r.chainOf(id)
	if err != nil {
		return p, err
	}
	err = c.try(ctx, func(ctx context.Context, e *endpoint) error {
		p = Payment{}
		v, _, err := c.readBlocks(ctx, e, nil)
		if err != nil {
			return err
		}
		var receipt *txReceipt
		var fields *txFields
		elems := []rpc.BatchElem{{Method: "eth_getTransactionReceipt", Args: []any{tx}, Result: &receipt},
			{Method: "eth_getTransactionByHash", Args: []any{tx}, Result: &fields}}
		if err := errors.Join(e.batch(ctx, c.ID, elems), elems[0].Error, elems[1].Error); err != nil {
			return err
		}
		if receipt == nil || fields == nil || uint64(receipt.Block) > v.final {
			return nil
		}
		var there *header
		check := []rpc.BatchElem{headerElem(receipt.Block.String(), &there)}
		if err := errors.Join(e.batch(ctx, c.ID, check), check[0].Error); err != nil {
			return err
		}
		if there == nil || there.Hash != receipt.Hash {
			return nil
		}
		p.Found, p.Failed, p.Block, p.Place = true, receipt.Status != 1, uint64(receipt.Block), uint64(receipt.Place)
		if p.Failed {
			return nil
		}
		if p.Wallet, p.WalletNow, err = e.walletAt(ctx, c, id, *there, walletNow); err != nil {
			return err
		}
		p.paid(receipt, fields, from)
		if p.Token != "" {
			p.Decimals, err = e.tokenDecimals(ctx, c, v.head, p.Token)
		}
		return err
	})
	return p, err
}

// paid finds the first transfer from the account to the wallet.
func (p *Payment) paid(receipt *txReceipt, fields *txFields, from string) {
	is := func(a common.Address, text string) bool { return text != "" && strings.EqualFold(a.Hex(), text) }
	if is(fields.From, from) && fields.To != nil && fields.Value != nil && fields.Value.ToInt().Sign() > 0 {
		if is(*fields.To, p.Wallet) {
			p.Amount = fields.Value.ToInt()
			return
		}
		p.ToOther = true
	}
	for _, l := range receipt.Logs {
		// An ERC-721 transfer has the token in a fourth topic and no data.
		if len(l.Topics) != 3 || l.Topics[0] != topicTransfer || len(l.Data) != 32 || !is(common.BytesToAddress(l.Topics[1][:]), from) {
			continue
		}
		amount := new(big.Int).SetBytes(l.Data)
		if amount.Sign() == 0 {
			continue
		}
		if is(common.BytesToAddress(l.Topics[2][:]), p.Wallet) {
			p.Amount, p.Token, p.ToOther = amount, strings.ToLower(l.Address.Hex()), false
			return
		}
		p.ToOther = true
	}
}

// walletAt reads agentWallet at a block. An endpoint without the state of the block leaves that of now.
func (e *endpoint) walletAt(ctx context.Context, c *chain, id ID, at header, now string) (wallet string, isNow bool, err error) {
	got, err := e.callAt(ctx, c.ID, at, []call{{id.Registry, mustPack("getAgentWallet", id.AgentID), callGas}})
	if errors.Is(err, errUnknownBlock) {
		return now, true, nil
	}
	if err != nil {
		return "", false, err
	}
	a, err := result[common.Address]("getAgentWallet", got[0])
	if err != nil {
		return now, true, nil
	}
	return addressText(a), false, nil
}

// tokenDecimals asks a token for its decimals; -1 when it does not answer.
func (e *endpoint) tokenDecimals(ctx context.Context, c *chain, at header, token string) (int, error) {
	got, err := e.callAt(ctx, c.ID, at, []call{{common.HexToAddress(token), mustFeedback("decimals"), 100_000}})
	if err != nil {
		return -1, err
	}
	if n := new(big.Int).SetBytes(got[0].out); len(got[0].out) == 32 && n.IsInt64() && n.Int64() <= 36 {
		return int(n.Int64()), nil
	}
	return -1, nil
}
