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
	Transfer identityTransferCmd `cmd:"" help:"Transfer an identity to another account; this ends every key of it."`
	Show     identityShowCmd     `cmd:"" help:"What the chain says about an identity."`
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
func (o *registryAccount) call(w *world, from string, data []byte) error {
	sender, err := erc8004.ParseAddress(from)
	if err != nil {
		return err
	}
	c, err := o.registrar.Estimate(w.ctx, sender, data)
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
	return &registryAccount{chain, registrar, wallet}, err
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

// plan prints what is about to be written, for the user to read.
func (o *registryAccount) plan(w *world, id erc8004.ID, rows ...[2]string) (erc8004.Snapshot, error) {
	reader, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{o.chain}})
	if err != nil {
		return erc8004.Snapshot{}, err
	}
	s, err := reader.Snapshot(w.ctx, id)
	if err != nil {
		return s, err
	}
	t := newTable(w.stderr)
	for _, row := range append([][2]string{
		{"chain", fmt.Sprint(o.chain.ID)}, {"registry", id.Registry.Hex()}, {"token", id.AgentID.String()},
		{"owner", s.Owner.Hex()}, {"from", o.registrar.Address().Hex()},
	}, rows...) {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return s, t.Flush()
}

// confirm asks for confirmation before what cannot be undone.
func confirm(w *world, yes bool, what string) error {
	if yes {
		return nil
	}
	f, ok := w.stdin.(*os.File)
	if ok {
		info, err := f.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		return usagef("%s, and there is no terminal for a confirmation: use --yes to confirm", what)
	}
	fmt.Fprintf(w.stderr, "%s. Continue? [y/N] ", strings.ToUpper(what[:1])+what[1:])
	answer, _ := bufio.NewReader(f).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// record signs a key record with the wallet.
func (o *registryAccount) record(id erc8004.ID, keys []erc8004.Key) (erc8004.Record, error) {
	return erc8004.SignRecord(id, keys, time.Now(), o.wallet)
}

// published prints the effect of a key record.
func published(w *world, keys int, block uint64) {
	switch keys {
	case 0:
		fmt.Fprintf(w.stdout, "no keys, block %d\n", block)
		return
	case 1:
		fmt.Fprintf(w.stdout, "1 key, block %d\n", block)
	default:
		fmt.Fprintf(w.stdout, "%d keys, block %d\n", keys, block)
	}
	fmt.Fprintf(w.stderr, "A key is valid once block %d is final, which takes about a quarter of an hour on Ethereum; until then nodes answer "+
		"identity-unverified.\n",
		block)
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
	onChainFlags `embed:""`
	printFlag    `embed:""`
	Key          []string `required:"" placeholder:"FILE" help:"JWK or PEM file of a message key, public or private. Repeatable, at most four."`
	URI          string   `placeholder:"URL" help:"Address of the registration document."`
	Yes          bool     `help:"Register without asking. It never asks; the flag is that of the other commands."`
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
		return o.call(w, o.registrar.Address().Hex(), erc8004.RegisterCall(c.URI))
	}
	id, _, err := o.registrar.Register(w.ctx, c.URI)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, id)
	record, err := o.record(id, keys)
	if err == nil {
		var receipt erc8004.Receipt
		if receipt, err = o.registrar.SetKeys(w.ctx, id.AgentID, record); err == nil {
			fmt.Fprintf(w.stderr, "Its keys are valid once block %d is final, which takes about a quarter of an hour on Ethereum.\n", uint64(receipt.Block))
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

type identityKeysCmd struct {
	onChainFlags `embed:""`
	printFlag    `embed:""`
	Identity     string   `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	Key          []string `placeholder:"FILE" help:"JWK or PEM file of a message key. Repeatable; none revokes all."`
	Yes          bool     `help:"Revoke without asking."`
}

func (c *identityKeysCmd) Run(w *world) error {
	o, err := c.open(w.stderr)
	if err != nil {
		return err
	}
	id, err := only(o.chain, c.Identity)
	if err != nil {
		return err
	}
	keys, err := entries(c.Key)
	if err != nil {
		return err
	}
	rows := [][2]string{}
	for _, k := range keys {
		rows = append(rows, [2]string{"key", k.Thumbprint})
	}
	state, err := o.plan(w, id, rows...)
	if err != nil {
		return err
	}
	if from := o.registrar.Address(); from != state.Owner && from != state.Wallet {
		return fmt.Errorf("this wallet is neither the owner nor the agentWallet (%s), so a record that it signs is not valid anywhere: nothing was done",
			state.Wallet)
	}
	if len(keys) == 0 && !c.Print {
		if err := confirm(w, c.Yes, "this revokes every key of the identity, and the profiles that are enrolled to it lose it"); err != nil {
			return err
		}
	}
	record, err := o.record(id, keys)
	if err != nil {
		return err
	}
	if c.Print { // the owner sends what this wallet has signed
		return o.call(w, state.Owner.Hex(), erc8004.SetKeysCall(id.AgentID, record))
	}
	receipt, err := o.registrar.SetKeys(w.ctx, id.AgentID, record)
	if err != nil {
		if o.registrar.Address() != state.Owner {
			return fmt.Errorf("%w (the agentWallet may sign the record; the registry accepts it only from the owner, or from an account that the owner approved)", err)
		}
		return err
	}
	published(w, len(keys), uint64(receipt.Block))
	return nil
}

type identityTransferCmd struct {
	onChainFlags `embed:""`
	printFlag    `embed:""`
	Identity     string `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	To           string `arg:"" help:"Account of the new owner."`
	Yes          bool   `help:"Transfer without asking."`
}

func (c *identityTransferCmd) Run(w *world) error {
	o, err := c.open(w.stderr)
	if err != nil {
		return err
	}
	id, err := only(o.chain, c.Identity)
	if err != nil {
		return err
	}
	to, err := erc8004.ParseAddress(c.To)
	if err != nil {
		return usage{err}
	}
	state, err := o.plan(w, id, [2]string{"to", to.Hex()})
	if err != nil {
		return err
	}
	if c.Print {
		return o.call(w, state.Owner.Hex(), erc8004.GiveAgentCall(id.AgentID, state.Owner, to))
	}
	if o.registrar.Address() != state.Owner {
		return fmt.Errorf("this wallet is not the owner (%s): nothing was done", state.Owner)
	}
	if err := confirm(w, c.Yes, "this transfers the identity to another owner and ends every key of it, which cannot be undone"); err != nil {
		return err
	}
	receipt, err := o.registrar.Transfer(w.ctx, new(big.Int).Set(id.AgentID), to)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "transferred in block %d\n", receipt.Block)
	return nil
}

type identityShowCmd struct {
	Chain    string `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY" help:"The chain: chainId=rpcURL,identityRegistry."`
	Identity string `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
}

func (c *identityShowCmd) Run(w *world) error {
	chain, err := erc8004.ParseChain(c.Chain)
	if err != nil {
		return usage{err}
	}
	id, err := only(chain, c.Identity)
	if err != nil {
		return err
	}
	reader, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{chain}})
	if err != nil {
		return err
	}
	s, err := reader.Snapshot(w.ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "identity  %s\nowner     %s\nwallet    %s\nuri       %s\nblock     %d\n",
		id.Display(), s.Owner, s.Wallet, strings.ToValidUTF8(s.URI, "?"), s.Block)
	grants, err := reader.Grants(w.ctx, id)
	switch {
	case errors.Is(err, erc8004.ErrKeyUnknown):
		fmt.Fprintln(w.stdout, "keys      none")
	case err != nil:
		fmt.Fprintf(w.stdout, "keys      none: %v\n", err)
	}
	for _, g := range grants {
		fmt.Fprintf(w.stdout, "key       %s (chain-key)\n", g.KeyID)
	}
	return nil
}
