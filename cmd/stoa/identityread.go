package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/identity/erc8004"
)

// identityView is what the chain says about an identity, as commands print it.
type identityView struct {
	Identity string    `json:"identity"`
	Owner    string    `json:"owner"`
	Wallet   string    `json:"agentWallet,omitempty"`
	URI      string    `json:"agentURI"`
	Keys     []keyView `json:"keys"`
	NoKeys   string    `json:"noKeys,omitempty"` // why there are none
	Pending  bool      `json:"pending"`          // the last change of owner, wallet or keys can still be reverted
	Block    uint64    `json:"block"`
	Hash     string    `json:"blockHash"`
}

type keyView struct {
	KeyID string `json:"keyid"`
	Curve string `json:"curve"` // Ed25519 or P-256
	Valid bool   `json:"valid"` // false: it waits for finality
}

func viewOf(o erc8004.Overview) identityView {
	v := identityView{Identity: o.ID.Display(), Owner: o.Owner.Hex(), URI: strings.ToValidUTF8(o.URI, "?"), Pending: o.Pending, Block: o.Block,
		Hash: o.BlockHash.Hex(), Keys: []keyView{}}
	if o.Wallet != ([20]byte{}) {
		v.Wallet = o.Wallet.Hex()
	}
	for _, k := range o.Record {
		curve := "P-256"
		if _, ok := k.Public.(ed25519.PublicKey); ok {
			curve = "Ed25519"
		}
		v.Keys = append(v.Keys, keyView{k.Thumbprint, curve, k.Valid})
	}
	switch {
	case errors.Is(o.NoKeys, erc8004.ErrIdentityBound):
		v.NoKeys = "it is bound to another token, whose holder controls it (ERC-8217)"
	case o.NoKeys != nil && len(o.Keys) > 0:
		v.NoKeys = "its record names none, or is not signed by its owner or wallet"
	case o.NoKeys != nil:
		v.NoKeys = "it has no record of keys"
	}
	return v
}

// print prints the view in lines.
func (v identityView) print(w io.Writer) {
	w = plain{w}
	wallet := v.Wallet
	if wallet == "" {
		wallet = "none"
	}
	fmt.Fprintf(w, "identity  %s\nowner     %s\nwallet    %s\nuri       %s\nblock     %d\n", v.Identity, v.Owner, wallet, v.URI, v.Block)
	if len(v.Keys) == 0 {
		fmt.Fprintf(w, "keys      none: %s\n", v.NoKeys)
	}
	for _, k := range v.Keys {
		fmt.Fprintf(w, "key       %s (%s, %s)\n", k.KeyID, k.Curve, k.state())
	}
	if v.Pending {
		fmt.Fprintln(w, "state     the last change is not final: it can still be reverted")
	}
}

func (k keyView) state() string {
	if k.Valid {
		return "chain-key"
	}
	return "not valid before it is final"
}

// readFlags are of the commands that only read.
type readFlags struct {
	Chain string `required:"" env:"STOA_CHAIN" placeholder:"ID=RPC,REGISTRY" help:"The chain: chainId=rpcURL,identityRegistry."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// open returns the chain and a reader of it, which the command's own reads never exhaust.
func (f readFlags) open(every time.Duration) (erc8004.Chain, *erc8004.Reader, error) {
	chain, err := erc8004.ParseChain(f.Chain)
	if err != nil {
		return chain, nil, usage{err}
	}
	chain.Poll = every
	r, err := erc8004.NewReader(erc8004.Config{Chains: []erc8004.Chain{chain}, ReadsPerSec: 1000, ReadBurst: 1000})
	return chain, r, err
}

type identityShowCmd struct {
	readFlags
	Identity string `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
}

func (c *identityShowCmd) Run(w *world) error {
	chain, reader, err := c.open(0)
	if err != nil {
		return err
	}
	id, err := only(chain, c.Identity)
	if err != nil {
		return err
	}
	o, err := reader.Overview(w.ctx, id)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(w.stdout).Encode(viewOf(o))
	}
	viewOf(o).print(w.stdout)
	return nil
}

type identityListCmd struct {
	readFlags
	Wallet string `env:"STOA_WALLET" placeholder:"FILE" help:"File with the account's private key, in place of ACCOUNT."`

	PassphraseFile string `env:"STOA_WALLET_PASSPHRASE_FILE" placeholder:"FILE" help:"File with the passphrase of the keystore, in its first line."`

	AgentWallet bool   `help:"Also identities whose agentWallet the account is, which others own. All blocks since --from-block are searched."`
	FromBlock   uint64 `placeholder:"N" help:"The first block that is searched. Default: 0; the search goes backwards, and ends early when all owned identities are found."`
	Limit       int    `default:"100" help:"Identities that are listed, at most."`
	Account     string `arg:"" optional:"" help:"0x and 40 hex digits."`
}

func (c *identityListCmd) Help() string {
	return "The registry lists nothing by itself (ERC-721 without enumeration), so its events are searched; the progress is on standard error. " +
		"The registry's own count of what the account owns says when the list is complete. Exit status 4: it is not complete."
}

// holdings is what identity list prints as JSON.
type holdings struct {
	Account    string         `json:"account"`
	Registry   string         `json:"registry"`
	Owned      *int           `json:"owned"` // by the registry's count; null when it has none
	FromBlock  uint64         `json:"fromBlock"`
	ToBlock    uint64         `json:"toBlock"`
	Complete   bool           `json:"complete"`
	Identities []identityView `json:"identities"`
}

func (c *identityListCmd) Run(w *world) error {
	chain, reader, err := c.open(0)
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return usagef("--limit is at least 1")
	}
	s := erc8004.Search{ChainID: chain.ID, Registry: chain.Registries[0].Identity, From: c.FromBlock, Wallets: c.AgentWallet, Max: c.Limit}
	switch {
	case c.Account != "":
		if s.Account, err = erc8004.ParseAddress(c.Account); err != nil {
			return usage{err}
		}
	case c.Wallet != "":
		wallet, err := readWallet(c.Wallet, c.PassphraseFile, w.stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Wallet, err)
		}
		s.Account = erc8004.AccountOf(wallet)
	default:
		return usagef("whose identities: an account, or --wallet")
	}
	s.Progress = func(block uint64, agents int) {
		fmt.Fprintf(w.stderr, "searching from block %d down: %d found\n", block, agents)
	}
	found, err := reader.Holdings(w.ctx, s)
	if err != nil {
		return err
	}
	l := holdings{Account: s.Account.Hex(), Registry: fmt.Sprintf("eip155:%d:%s", chain.ID, s.Registry.Hex()), FromBlock: found.From, ToBlock: found.To,
		Complete: found.Complete}
	if found.Owned >= 0 {
		l.Owned = &found.Owned
	}
	if l.Identities, err = views(w.ctx, reader, found.Agents); err != nil {
		return err
	}
	if err := l.print(w, c.JSON); err != nil {
		return err
	}
	if !l.Complete {
		return undecided{fmt.Errorf("the list is not complete: blocks %d to %d were searched, and the registry counts %d that the account owns "+
			"(see --from-block, --limit)", found.From, found.To, found.Owned)}
	}
	return nil
}

func views(ctx context.Context, reader *erc8004.Reader, ids []erc8004.ID) ([]identityView, error) {
	all := []identityView{}
	for _, id := range ids {
		o, err := reader.Overview(ctx, id)
		if errors.Is(err, erc8004.ErrNotRegistered) { // a reorganisation since it was found
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, viewOf(o))
	}
	return all, nil
}

func (l holdings) print(w *world, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w.stdout).Encode(l)
	}
	t := newTable(w.stdout)
	fmt.Fprintln(t, "identity\trole\tkeys\tstate\turi")
	for _, v := range l.Identities {
		role, state, keys := "owner", "final", "none"
		if v.Owner != l.Account {
			role = "agent wallet"
		}
		if v.Pending {
			state = "pending"
		}
		for i, k := range v.Keys {
			if text := k.KeyID + " (" + k.state() + ")"; i == 0 {
				keys = text
			} else {
				keys += ", " + text
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", v.Identity, role, keys, state, shortened(v.URI, 60))
	}
	return t.Flush()
}

// shortened returns the first characters of a text, with … when it is longer.
func shortened(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
