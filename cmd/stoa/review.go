package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/protocol"
)

type reviewCmd struct {
	Give reviewGiveCmd `cmd:"" help:"Review a business on the chain, with a receipt or a payment as proof of the order."`
}

// maxDataFile bounds a file that is put on the chain itself, where each byte is paid for.
const maxDataFile = 8 << 10

type reviewGiveCmd struct {
	Chain    string  `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY,REPUTATION" help:"The chain: chainId=rpcURL,identityRegistry,reputationRegistry."`
	Wallet   string  `required:"" env:"STOA_WALLET" placeholder:"FILE" help:"File with the reviewer's secp256k1 private key in hex: the account that the receipt is for, or that paid."`
	Rating   float64 `required:"" placeholder:"N" help:"0 to 100; two decimals."`
	Receipt  string  `placeholder:"FILE" help:"The order receipt of the business, a compact JWS."`
	Payment  string  `placeholder:"0x…" help:"Hash of the transaction that paid the business, where there is no receipt."`
	Comment  string  `placeholder:"TEXT" help:"What you want to say, at most 1000 characters. It is public and cannot be deleted."`
	Yes      bool    `help:"Send without asking."`
	DryRun   bool    `name:"dry-run" help:"Only print the file and what would be sent."`
	Identity string  `arg:"" help:"Chain identity of the business, eip155:<chainId>:<registry>:<agentId>."`
}

func (c *reviewGiveCmd) Help() string {
	return "The feedback file is part of the transaction itself, as a data: URI: nothing has to be hosted, and nobody can take it away."
}

func (c *reviewGiveCmd) Run(w *world) error {
	o, err := onChainFlags{Chain: c.Chain, Wallet: c.Wallet}.open(w.stderr)
	if err != nil {
		return err
	}
	id, err := only(o.chain, c.Identity)
	if err != nil {
		return err
	}
	reputation := o.chain.Registries[0].Reputation
	if reputation == ([20]byte{}) {
		return usagef("--chain names no reputation registry: chainId=rpcURL,identityRegistry,reputationRegistry")
	}
	file, value, decimals, err := c.file(id, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "%s\n", file)
	hash := erc8004.FeedbackHash(file)
	state, err := o.reader.Snapshot(w.ctx, id)
	if err != nil {
		return err
	}
	if from := o.registrar.Address(); from == state.Owner || from == state.Wallet {
		return fmt.Errorf("this wallet is the business's own, and nobody can review themselves: nothing was done")
	}
	uri := "data:application/json;base64," + base64.StdEncoding.EncodeToString(file)
	call := erc8004.Call{To: reputation, Data: erc8004.GiveFeedbackCall(id.AgentID, value, decimals, uri, hash)}
	rows := [][2]string{{"rating", fmt.Sprintf("%g of 100", c.Rating)}, {"feedback hash", fmt.Sprintf("0x%x", hash)}}
	if err := o.plan(w, id, state, call, rows...); err != nil || c.DryRun {
		return err
	}
	if err := confirm(w, c.Yes, "this is public on the chain for good; you can revoke it, not delete it"); err != nil {
		return err
	}
	made, err := o.registrar.Send(w.ctx, &reputation, call.Data)
	if err != nil {
		return err
	}
	block := uint64(made.Block)
	fmt.Fprintf(w.stderr, "Sent in block %d, transaction %s. Nodes count it once that block is final%s.\n", block, made.TxHash.Hex(), o.finality(w, block))
	return nil
}

// file makes the feedback file, with its value as it is on the chain.
func (c *reviewGiveCmd) file(id erc8004.ID, o *registryAccount) (file []byte, value int64, decimals uint8, err error) {
	value, decimals = int64(c.Rating*100+0.5), 2
	if !(c.Rating >= 0 && c.Rating <= 100) {
		return nil, 0, 0, usagef("--rating: from 0 to 100")
	}
	if value%100 == 0 {
		value, decimals = value/100, 0
	}
	if (c.Receipt == "") == (c.Payment == "") {
		return nil, 0, 0, usagef("give --receipt, or --payment: only a review that proves an order counts")
	}
	if len([]rune(c.Comment)) > protocol.MaxReviewText {
		return nil, 0, 0, usagef("--comment: at most %d characters", protocol.MaxReviewText)
	}
	account := strings.ToLower(o.registrar.Address().Hex())
	members := map[string]any{
		"agentRegistry": id.Display()[:strings.LastIndexByte(id.Display(), ':')], "agentId": json.Number(id.AgentID.String()),
		"clientAddress": fmt.Sprintf("eip155:%d:%s", id.ChainID, account), "createdAt": time.Now().UTC().Format(time.RFC3339),
		"value": value, "valueDecimals": decimals,
		"tag1": erc8004.Starred,
	}
	if c.Comment != "" {
		members["comment"] = c.Comment
	}
	if c.Payment != "" {
		members["proofOfPayment"] = map[string]any{"fromAddress": account, "chainId": fmt.Sprint(id.ChainID), "txHash": c.Payment}
	} else {
		raw, err := os.ReadFile(c.Receipt)
		if err != nil {
			return nil, 0, 0, err
		}
		members["orderReceipt"] = strings.TrimSpace(string(raw))
	}
	file, err = json.Marshal(members)
	if err == nil && len(file) > maxDataFile {
		err = usagef("the file has %d bytes, more than is put on a chain: %d", len(file), maxDataFile)
	}
	return file, value, decimals, err
}
