package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:embed contracts/*.json contracts/*.sol
var contractFiles embed.FS

// An artifact is a compiled contract, written by contracts/compile.mjs or by
// another tool: Hardhat's have the same members, Foundry's an object as bytecode.
type artifact struct {
	Contract     string   `json:"contract"`
	Compiler     string   `json:"compiler"`
	SourceSHA256 string   `json:"sourceSHA256"`
	Bytecode     bytecode `json:"bytecode"`
	ABI          abi.ABI  `json:"abi"`
}

type bytecode []byte

// UnmarshalJSON accepts hex, with or without 0x, or an object with a member of that name.
func (b *bytecode) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		var o struct{ Object string }
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		s = o.Object
	}
	var err error
	if len(s) > 1 && s[:2] != "0x" {
		s = "0x" + s
	}
	*b, err = hexutil.Decode(s)
	return err
}

// contracts finds artifacts by name: in a folder and its subfolders or, if the folder is "", among
// those of this program.
type contracts struct{ dir string }

func (c contracts) load(name string) (artifact, error) {
	files, found := fs.FS(contractFiles), ""
	if c.dir != "" {
		files = os.DirFS(c.dir)
	}
	err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name+".json" && !d.IsDir() {
			found = p
			return fs.SkipAll
		}
		if d != nil && d.IsDir() && path.Base(p) == "node_modules" {
			return fs.SkipDir
		}
		return err
	})
	var a artifact
	if err == nil && found == "" {
		err = fs.ErrNotExist
	}
	if err == nil {
		var b []byte
		if b, err = fs.ReadFile(files, found); err == nil {
			err = json.Unmarshal(b, &a)
		}
	}
	if err != nil {
		return a, fmt.Errorf("contract %s: %w", name, err)
	}
	return a, nil
}

// has reports whether there is such an artifact.
func (c contracts) has(name string) bool {
	_, err := c.load(name)
	return err == nil
}

// code returns the creation code with the arguments of the constructor.
func (a artifact) code(args ...any) ([]byte, error) {
	packed, err := a.ABI.Pack("", args...)
	return bytes.Join([][]byte{a.Bytecode, packed}, nil), err
}

// call returns the data of a call.
func (a artifact) call(method string, args ...any) ([]byte, error) {
	return a.ABI.Pack(method, args...)
}

// A deployment sends the transactions that put registries on a chain.
type deployment struct {
	contracts contracts
	create    func(code []byte) (common.Address, error)
	call      func(to common.Address, data []byte) error
}

// identity deploys the identity registry: IdentityRegistry itself, or IdentityRegistryUpgradeable
// (the reference's name) behind a proxy.
func (d deployment) identity() (common.Address, error) {
	const upgradeable = "IdentityRegistryUpgradeable"
	if !d.contracts.has(upgradeable) {
		return d.plain("IdentityRegistry")
	}
	return d.proxied(upgradeable, common.Address{})
}

// reputation deploys the reputation registry of an identity registry.
func (d deployment) reputation(identity common.Address) (common.Address, error) {
	const upgradeable = "ReputationRegistryUpgradeable"
	if !d.contracts.has(upgradeable) {
		return d.plain("ReputationRegistry", identity)
	}
	return d.proxied(upgradeable, identity, identity)
}

func (d deployment) plain(name string, args ...any) (common.Address, error) {
	a, err := d.contracts.load(name)
	if err != nil {
		return common.Address{}, err
	}
	code, err := a.code(args...)
	if err != nil {
		return common.Address{}, fmt.Errorf("contract %s: %w", name, err)
	}
	return d.create(code)
}

// proxied deploys as the reference does (ERC-1967, UUPS): a proxy with the minimal implementation,
// which gets an owner, is upgraded to the registry, whose initialize gets the arguments. Only the
// owner may call it.
func (d deployment) proxied(name string, minimal common.Address, args ...any) (common.Address, error) {
	fail := func(err error) (common.Address, error) {
		return common.Address{}, fmt.Errorf("contract %s: %w", name, err)
	}
	first, err := d.contracts.load("HardhatMinimalUUPS")
	if err != nil {
		return fail(err)
	}
	real, err := d.contracts.load(name)
	if err != nil {
		return fail(err)
	}
	start, err := first.call("initialize", minimal)
	if err != nil {
		return fail(err)
	}
	initialize, err := real.call("initialize", args...)
	if err != nil {
		return fail(err)
	}
	implementation, err := d.plain("HardhatMinimalUUPS")
	if err != nil {
		return fail(err)
	}
	proxy, err := d.plain("ERC1967Proxy", implementation, start)
	if err != nil {
		return fail(err)
	}
	if implementation, err = d.plain(name); err != nil {
		return fail(err)
	}
	upgrade, err := real.call("upgradeToAndCall", implementation, initialize)
	if err != nil {
		return fail(err)
	}
	return proxy, d.call(proxy, upgrade)
}
