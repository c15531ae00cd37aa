package main

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"runtime"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
)

type identityCmd struct {
	Register identityRegisterCmd `cmd:"" help:"Mint an identity and publish a key for it."`
	Keys     identityKeysCmd     `cmd:"" help:"Replace the keys of an identity; without any, all keys are revoked."`
	Drop     identityDropCmd     `cmd:"" help:"Take the keys of an identity away, or one of them, so that no key signs for it any more."`
	Transfer identityTransferCmd `cmd:"" help:"Transfer an identity to another account; this ends every key of it."`
	Show     identityShowCmd     `cmd:"" help:"What the chain says about an identity."`
	List     identityListCmd     `cmd:"" help:"The identities of an account."`
	Watch    identityWatchCmd    `cmd:"" help:"Follow an identity: print what the chain says about it, and each change as it comes."`
}

// onChainFlags say where to write and with which account.
type onChainFlags struct {
	Chain  string `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY" help:"The chain: chainId=rpcURL,identityRegistry."`
	Wallet string `required:"" env:"STOA_WALLET" placeholder:"FILE" help:"File with the account's secp256k1 private key: 64 hex digits, PEM, or a keystore of version 3."`

	PassphraseFile string `env:"STOA_WALLET_PASSPHRASE_FILE" placeholder:"FILE" help:"File with the passphrase of the keystore, in its first line."`
}

// printFlag is of the commands that write.
type printFlag struct {
	Print bool `help:"Send nothing: try the call, and print it as JSON for another wallet to send (eth_sendTransaction)."`
}

// call prints a call that another wallet may send, after the chain has tried it.
func (o *registryAccount) call(w *world, c erc8004.Call) error {
	c, err := o.registrar.Estimate(w.ctx, c)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w.stdout, "%s\n", raw)
	}
	return err
}

// registryAccount is one registry of one chain, and an account to write with.
type registryAccount struct {
	chain     erc8004.Chain
	reader    *erc8004.Reader
	registrar *erc8004.Registrar
	wallet    *ecdsa.PrivateKey
}

func (f onChainFlags) open(stderr io.Writer) (*registryAccount, error) {
	chain, err := erc8004.ParseChain(f.Chain)
	if err != nil {
		return nil, usage{err}
	}
	wallet, err := readWallet(f.Wallet, f.PassphraseFile, stderr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Wallet, err)
	}
	registrar, err := erc8004.NewRegistrar(erc8004.RegistrarConfig{
		RPC: chain.RPC[0], ChainID: chain.ID, Registry: chain.Registries[0].Identity, Key: wallet,
	})
	if err != nil {
		return nil, err
	}
	reader, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{chain}})
	return &registryAccount{chain, reader, registrar, wallet}, err
}

// openFor is open for a command about one identity.
func (f onChainFlags) openFor(stderr io.Writer, identity string) (*registryAccount, erc8004.ID, error) {
	o, err := f.open(stderr)
	if err != nil {
		return nil, erc8004.ID{}, err
	}
	id, err := only(o.chain, identity)
	return o, id, err
}

// readWallet reads the private key of an account. It warns when others can read the file.
func readWallet(file, passphrase string, stderr io.Writer) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		fmt.Fprintf(stderr, "stoa: %s can be read by others (mode %04o), and anyone who has it owns the identity: chmod 600 %s\n", file, mode, file)
	}
	return erc8004.ReadWallet(raw, func() (string, error) {
		if passphrase == "" {
			return "", fmt.Errorf("%w: name a file with it by --passphrase-file", erc8004.ErrSealed)
		}
		text, err := os.ReadFile(passphrase)
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSuffix(line, "\r"), err
	})
}

// only parses an identity of the configured chain and registry. For any other, the token with the
// same number would be changed here.
func only(chain erc8004.Chain, identity string) (erc8004.ID, error) {
	id, err := erc8004.ParseID(identity)
	switch {
	case err != nil:
		return id, usage{err}
	case id.ChainID != chain.ID:
		return id, usagef("%s is an identity of chain %d, and --chain (STOA_CHAIN) names chain %d: nothing was done", identity, id.ChainID, chain.ID)
	case id.Registry != chain.Registries[0].Identity:
		return id, usagef("%s is an identity of registry %s, and --chain (STOA_CHAIN) names registry %s: nothing was done",
			identity, id.Registry, chain.Registries[0].Identity)
	}
	return id, nil
}

// plan tries a call without sending it, and prints what is about to be written and what it costs, for the user to read.
func (o *registryAccount) plan(w *world, id erc8004.ID, state erc8004.Snapshot, call erc8004.Call, rows ...[2]string) error {
	call, refused := o.registrar.Estimate(w.ctx, call)
	t := newTable(w.stderr)
	rows = append([][2]string{
		{"chain", fmt.Sprint(o.chain.ID)}, {"registry", id.Registry.Hex()}, {"token", id.AgentID.String()},
		{"owner", state.Owner.Hex()}, {"from", o.registrar.Address().Hex()},
	}, rows...)
	if refused == nil {
		rows = append(rows, [2]string{"gas", costs(call)})
	}
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return errors.Join(t.Flush(), refused)
}

// costs says what a call costs at most.
func costs(c erc8004.Call) string {
	whole := new(big.Rat).SetFrac(c.Cost, big.NewInt(1e18)).FloatString(9)
	return fmt.Sprintf("%d, at most %s of the chain's currency", uint64(c.Gas), strings.TrimSuffix(strings.TrimRight(whole, "0"), "."))
}

// finality says when a block is final, to follow "once block N is final".
func (o *registryAccount) finality(w *world, block uint64) string {
	lag, err := o.reader.Lag(w.ctx, o.chain.ID)
	if err != nil {
		return ", which takes about a quarter of an hour on Ethereum"
	}
	left := lag.Until(block)
	if left == 0 {
		return ": it is"
	}
	text := plural(int(left.Round(time.Second).Seconds()), "second")
	if left >= 2*time.Minute {
		text = plural(int(left.Round(time.Minute).Minutes()), "minute")
	}
	return fmt.Sprintf(": in about %s, at %s", text, time.Now().Add(left).UTC().Format("15:04 MST"))
}

// confirm asks for confirmation before what cannot be undone.
func confirm(w *world, yes bool, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(w.stdin) {
		return usagef("%s, and there is no terminal for a confirmation: use --yes to confirm", what)
	}
	fmt.Fprintf(w.stderr, "%s. Continue? [y/N] ", strings.ToUpper(what[:1])+what[1:])
	answer, _ := bufio.NewReader(w.stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

func entries(files []string) ([]erc8004.Key, error) {
	var keys []erc8004.Key
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		public, err := publicKey(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		k, err := erc8004.NewKey(public)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// publicKey reads the public half of a JWK or PEM file, private or public.
func publicKey(raw []byte) (crypto.PublicKey, error) {
	if pair, err := key.ParsePair(raw); err == nil {
		return pair.Public(), nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("-----BEGIN ")) {
		return key.ParsePublicPEM(string(raw))
	}
	parsed, err := key.ParsePublic(raw)
	return parsed.Key, err
}

type identityRegisterCmd struct {
	onChainFlags
	printFlag
	Key []string `required:"" placeholder:"FILE" help:"JWK or PEM file of a message key, public or private. Repeatable, at most four."`
	URI string   `placeholder:"URL" help:"Address of the registration document."`
	Yes bool     `help:"Register without asking. It never asks; the flag is that of the other commands."`
}

func (c *identityRegisterCmd) Run(w *world) error {
	o, err := c.open(w.stderr)
	if err != nil {
		return err
	}
	keys, err := entries(c.Key)
	if err != nil {
		return err
	}
	if c.Print {
		fmt.Fprintln(w.stderr, "Who sends this owns the identity. Its keys are published once it has a number: stoa identity keys.")
		return o.call(w, erc8004.Call{Data: erc8004.RegisterCall(c.URI)})
	}
	call, err := o.registrar.Estimate(w.ctx, erc8004.Call{Data: erc8004.RegisterCall(c.URI)})
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stderr, "Registering: gas %s. A second transaction publishes the keys.\n", costs(call))
	id, _, err := o.registrar.Register(w.ctx, c.URI)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, id)
	record, err := erc8004.SignRecord(id, keys, time.Now(), o.wallet)
	if err == nil {
		var receipt erc8004.Receipt
		if receipt, err = o.registrar.SetKeys(w.ctx, id.AgentID, record); err == nil {
			fmt.Fprintf(w.stderr, "Its keys are valid once block %d is final%s.\n", uint64(receipt.Block), o.finality(w, uint64(receipt.Block)))
			return nil
		}
	}
	again := []string{"stoa identity keys --chain", shellWord(c.Chain), "--wallet", shellWord(c.Wallet)}
	for _, file := range c.Key {
		again = append(again, "--key", shellWord(file))
	}
	return fmt.Errorf("the identity is registered and has no keys yet: %w\nPublish them with:\n  %s %s", err, strings.Join(again, " "), id)
}

// shellWord quotes a word for a shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

type identityTransferCmd struct {
	onChainFlags
	printFlag
	Identity string `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	To       string `arg:"" help:"Account of the new owner."`
	Yes      bool   `help:"Transfer without asking."`
}

func (c *identityTransferCmd) Run(w *world) error {
	o, id, err := c.openFor(w.stderr, c.Identity)
	if err != nil {
		return err
	}
	to, err := erc8004.ParseAddress(c.To)
	if err != nil {
		return usage{err}
	}
	state, err := o.reader.Snapshot(w.ctx, id)
	if err != nil {
		return err
	}
	call := erc8004.Call{From: state.Owner, Data: erc8004.GiveAgentCall(id.AgentID, state.Owner, to)}
	if c.Print {
		return o.call(w, call)
	}
	if o.registrar.Address() != state.Owner {
		return fmt.Errorf("this wallet is not the owner (%s): nothing was done", state.Owner)
	}
	if err := o.plan(w, id, state, call, [2]string{"to", to.Hex()}); err != nil {
		return err
	}
	if err := confirm(w, c.Yes, "this transfers the identity to another owner and ends every key of it, which cannot be undone"); err != nil {
		return err
	}
	receipt, err := o.registrar.Transfer(w.ctx, new(big.Int).Set(id.AgentID), to)
	if err != nil {
		return err
	}
	block := uint64(receipt.Block)
	fmt.Fprintf(w.stdout, "transferred in block %d\n", block)
	fmt.Fprintf(w.stderr, "It cannot be reverted once that block is final%s.\n", o.finality(w, block))
	return nil
}
