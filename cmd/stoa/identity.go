package main

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
)

type identityCmd struct {
	Register identityRegisterCmd `cmd:"" help:"Mint an identity and publish a key for it."`
	Keys     identityKeysCmd     `cmd:"" help:"Replace the keys of an identity; without any, all keys are revoked."`
	Transfer identityTransferCmd `cmd:"" help:"Give an identity to another account; every key dies with it."`
	Show     identityShowCmd     `cmd:"" help:"What the chain says about an identity."`
}

// onChainFlags say where and as whom to write.
type onChainFlags struct {
	Chain  string `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY" help:"The chain: chainId=rpcURL,identityRegistry."`
	Wallet string `required:"" env:"STOA_WALLET" placeholder:"FILE" help:"File with the owner's secp256k1 private key in hex."`
}

func (f onChainFlags) open() (*erc8004.Registrar, *owner, error) {
	chain, err := erc8004.ParseChain(f.Chain)
	if err != nil {
		return nil, nil, usage{err}
	}
	raw, err := os.ReadFile(f.Wallet)
	if err != nil {
		return nil, nil, err
	}
	wallet, err := erc8004.ParseWalletKey(string(raw))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Wallet, err)
	}
	registrar, err := erc8004.NewRegistrar(erc8004.RegistrarConfig{
		RPC: chain.RPC[0], ChainID: chain.ID, Registry: chain.Registries[0].Identity, Key: wallet,
	})
	return registrar, &owner{sign: func(id erc8004.ID, keys []erc8004.Key) (erc8004.Record, error) {
		return erc8004.SignRecord(id, keys, time.Now(), wallet)
	}}, err
}

// owner signs key records with the wallet.
type owner struct {
	sign func(id erc8004.ID, keys []erc8004.Key) (erc8004.Record, error)
}

func entries(files []string) ([]erc8004.Key, error) {
	var keys []erc8004.Key
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pair, err := key.ParsePair(raw)
		public := pair.Public()
		if err != nil {
			parsed, err := key.ParsePublic(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			public = parsed.Key
		}
		k, err := erc8004.NewKey(public)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

type identityRegisterCmd struct {
	onChainFlags `embed:""`
	Key          []string `required:"" placeholder:"FILE" help:"JWK of a message key, public or private. Repeatable, at most four."`
	URI          string   `placeholder:"URL" help:"Address of the registration document."`
}

func (c *identityRegisterCmd) Run(w *world) error {
	registrar, owner, err := c.open()
	if err != nil {
		return err
	}
	keys, err := entries(c.Key)
	if err != nil {
		return err
	}
	id, _, err := registrar.Register(w.ctx, c.URI)
	if err != nil {
		return err
	}
	fmt.Fprintln(w.stdout, id)
	record, err := owner.sign(id, keys)
	if err != nil {
		return err
	}
	_, err = registrar.SetKeys(w.ctx, id.AgentID, record)
	return err
}

type identityKeysCmd struct {
	onChainFlags `embed:""`
	Identity     string   `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	Key          []string `placeholder:"FILE" help:"JWK of a message key. Repeatable; none revokes all."`
}

func (c *identityKeysCmd) Run(w *world) error {
	registrar, owner, err := c.open()
	if err != nil {
		return err
	}
	id, err := erc8004.ParseID(c.Identity)
	if err != nil {
		return usage{err}
	}
	keys, err := entries(c.Key)
	if err != nil {
		return err
	}
	record, err := owner.sign(id, keys)
	if err != nil {
		return err
	}
	receipt, err := registrar.SetKeys(w.ctx, id.AgentID, record)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "%d keys, block %d\n", len(keys), receipt.Block)
	return nil
}

type identityTransferCmd struct {
	onChainFlags `embed:""`
	Identity     string `arg:""`
	To           string `arg:"" help:"Account of the new owner."`
}

func (c *identityTransferCmd) Run(w *world) error {
	registrar, _, err := c.open()
	if err != nil {
		return err
	}
	id, err := erc8004.ParseID(c.Identity)
	if err != nil {
		return usage{err}
	}
	to, err := erc8004.ParseAddress(c.To)
	if err != nil {
		return usage{err}
	}
	receipt, err := registrar.Transfer(w.ctx, new(big.Int).Set(id.AgentID), to)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "transferred in block %d\n", receipt.Block)
	return nil
}

type identityShowCmd struct {
	Chain    string `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY" help:"The chain: chainId=rpcURL,identityRegistry."`
	Identity string `arg:""`
}

func (c *identityShowCmd) Run(w *world) error {
	chain, err := erc8004.ParseChain(c.Chain)
	if err != nil {
		return usage{err}
	}
	id, err := erc8004.ParseID(c.Identity)
	if err != nil {
		return usage{err}
	}
	reader, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{chain}})
	if err != nil {
		return err
	}
	s, err := reader.Snapshot(w.ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "identity  %s\nowner     %s\nwallet    %s\nuri       %s\nblock     %d\n", id.Display(), s.Owner, s.Wallet, strings.ToValidUTF8(s.URI, "?"), s.Block)
	grants, err := reader.Grants(w.ctx, id)
	if err != nil {
		fmt.Fprintf(w.stdout, "keys      none: %v\n", err)
		return nil
	}
	for _, g := range grants {
		fmt.Fprintf(w.stdout, "key       %s (%s)\n", g.KeyID, g.Level)
	}
	return nil
}
