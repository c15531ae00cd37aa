package main

import (
	"fmt"
	"time"

	"stoa/identity/erc8004"
)

// A keyChange is what keys and drop write.
type keyChange struct {
	keys  []erc8004.Key
	rows  [][2]string // what the plan says
	ask   string      // what is asked before; "" for nothing
	yes   bool
	print bool
}

// setKeys signs a record of keys with the wallet, and sends it. It returns the block; 0 when the call was only printed.
func (o *registryAccount) setKeys(w *world, id erc8004.ID, state erc8004.Snapshot, c keyChange) (block uint64, err error) {
	from := o.registrar.Address()
	if from != state.Owner && from != state.Wallet {
		return 0, fmt.Errorf("this wallet is neither the owner nor the agentWallet (%s), so a record that it signs is not valid anywhere: nothing was done",
			state.Wallet)
	}
	record, err := erc8004.SignRecord(id, c.keys, time.Now(), o.wallet)
	if err != nil {
		return 0, err
	}
	call := erc8004.Call{Data: erc8004.SetKeysCall(id.AgentID, record)}
	if c.print { // the owner sends what this wallet has signed
		call.From = state.Owner
		return 0, o.call(w, call)
	}
	err = o.plan(w, id, state, call, c.rows...)
	if err != nil && from != state.Owner {
		return 0, fmt.Errorf("%w (the agentWallet may sign the record; the registry accepts it only from the owner, "+
			"or from an account that the owner approved: see --print)", err)
	}
	if err == nil && c.ask != "" {
		err = confirm(w, c.yes, c.ask)
	}
	if err != nil {
		return 0, err
	}
	receipt, err := o.registrar.SetKeys(w.ctx, id.AgentID, record)
	if err == nil {
		count := "no keys"
		if len(c.keys) > 0 {
			count = plural(len(c.keys), "key")
		}
		fmt.Fprintf(w.stdout, "%s, block %d\n", count, uint64(receipt.Block))
	}
	return uint64(receipt.Block), err
}

type identityKeysCmd struct {
	onChainFlags
	printFlag
	Identity string   `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	Key      []string `placeholder:"FILE" help:"JWK or PEM file of a message key. Repeatable; none revokes all."`
	Yes      bool     `help:"Revoke without asking."`
}

func (c *identityKeysCmd) Run(w *world) error {
	o, id, err := c.openFor(w.stderr, c.Identity)
	if err != nil {
		return err
	}
	keys, err := entries(c.Key)
	if err != nil {
		return err
	}
	change := keyChange{keys: keys, yes: c.Yes, print: c.Print}
	for _, k := range keys {
		change.rows = append(change.rows, [2]string{"key", k.Thumbprint})
	}
	if len(keys) == 0 {
		change.ask = "this revokes every key of the identity, and the profiles that are enrolled to it lose it"
	}
	state, err := o.reader.Snapshot(w.ctx, id)
	if err != nil {
		return err
	}
	block, err := o.setKeys(w, id, state, change)
	if err == nil && block > 0 && len(keys) > 0 {
		fmt.Fprintf(w.stderr, "A key is valid once block %d is final%s; until then nodes answer identity-unverified.\n", block, o.finality(w, block))
	}
	return err
}

type identityDropCmd struct {
	onChainFlags
	printFlag
	Identity string `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
	Key      string `placeholder:"KEYID" help:"Only this key, by its thumbprint; the others stay."`
	Yes      bool   `help:"Drop without asking."`
}

func (c *identityDropCmd) Help() string {
	return "Writes a record without the keys, as identity keys does. It counts from its block on; once that is final, nothing but a new record brings " +
		"the keys back."
}

func (c *identityDropCmd) Run(w *world) error {
	o, id, err := c.openFor(w.stderr, c.Identity)
	if err != nil {
		return err
	}
	state, err := o.reader.Overview(w.ctx, id)
	if err != nil {
		return err
	}
	change := keyChange{yes: c.Yes, print: c.Print,
		ask: "no key signs for the identity any more after this, and the profiles that are enrolled to it lose it"}
	for _, k := range state.Record {
		switch {
		case c.Key == "" || k.Thumbprint == c.Key:
			change.rows = append(change.rows, [2]string{"drops", k.Thumbprint})
		default:
			change.keys = append(change.keys, k.Key)
			change.rows = append(change.rows, [2]string{"keeps", k.Thumbprint})
		}
	}
	switch dropped := len(state.Record) - len(change.keys); {
	case dropped == 0 && c.Key != "":
		return fmt.Errorf("the identity has no key %s: nothing was done", c.Key)
	case dropped == 0:
		fmt.Fprintf(w.stderr, "No key signs for %s: nothing was done.\n", id)
		return nil
	case len(change.keys) > 0:
		change.ask = fmt.Sprintf("key %s does not sign for the identity any more after this", c.Key)
	}
	block, err := o.setKeys(w, id, state.Snapshot, change)
	if err == nil && block > 0 {
		fmt.Fprintf(w.stderr, "What is dropped signs nothing from block %d on; it cannot be reverted once that block is final%s.\n", block, o.finality(w, block))
	}
	return err
}
