package erc8004

import (
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// The part of the two registries that is used here. register has three
// overloads and package abi renames them by order of appearance, so only the
// longest is listed.
const registryJSON = `[
{"type":"function","name":"ownerOf","inputs":[{"type":"uint256"}],"outputs":[{"type":"address"}]},
{"type":"function","name":"balanceOf","inputs":[{"type":"address"}],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"tokenURI","inputs":[{"type":"uint256"}],"outputs":[{"type":"string"}]},
{"type":"function","name":"getAgentWallet","inputs":[{"type":"uint256"}],"outputs":[{"type":"address"}]},
{"type":"function","name":"getMetadata","inputs":[{"type":"uint256"},{"type":"string"}],"outputs":[{"type":"bytes"}]},
{"type":"function","name":"supportsInterface","inputs":[{"type":"bytes4"}],"outputs":[{"type":"bool"}]},
{"type":"function","name":"getIdentityRegistry","inputs":[],"outputs":[{"type":"address"}]},
{"type":"function","name":"isValidSignature","inputs":[{"type":"bytes32"},{"type":"bytes"}],"outputs":[{"type":"bytes4"}]},
{"type":"function","name":"register","inputs":[{"name":"agentURI","type":"string"},{"name":"metadata","type":"tuple[]","components":[
 {"name":"metadataKey","type":"string"},{"name":"metadataValue","type":"bytes"}]}],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"setMetadata","inputs":[{"type":"uint256"},{"type":"string"},{"type":"bytes"}]},
{"type":"function","name":"setAgentURI","inputs":[{"type":"uint256"},{"type":"string"}]},
{"type":"function","name":"setAgentWallet","inputs":[{"type":"uint256"},{"type":"address"},{"type":"uint256"},{"type":"bytes"}]},
{"type":"function","name":"unsetAgentWallet","inputs":[{"type":"uint256"}]},
{"type":"function","name":"approve","inputs":[{"type":"address"},{"type":"uint256"}]},
{"type":"function","name":"transferFrom","inputs":[{"type":"address"},{"type":"address"},{"type":"uint256"}]}
]`

var registryABI = mustABI(registryJSON)

func mustABI(s string) abi.ABI {
	a, err := abi.JSON(strings.NewReader(s))
	if err != nil {
		panic(err) // a constant of this file
	}
	return a
}

// mustPack encodes a call whose argument types are fixed by this package.
func mustPack(method string, args ...any) []byte {
	b, err := registryABI.Pack(method, args...)
	if err != nil {
		panic(err)
	}
	return b
}

// unpackOne decodes the only result of a call. Empty output is not a zero
// value: it means that there is no contract at the address.
func unpackOne[T any](method string, out []byte) (T, error) {
	var zero T
	if len(out) == 0 {
		return zero, errNoContract
	}
	vals, err := registryABI.Unpack(method, out)
	if err != nil {
		return zero, err
	}
	return *abi.ConvertType(vals[0], &zero).(*T), nil
}

// Events of the identity registry (ERC-8004 "Identity Registry", ERC-721).
var (
	topicTransfer    = topic("Transfer(address,address,uint256)")        // agent in topics[3]
	topicRegistered  = topic("Registered(uint256,string,address)")       // agent in topics[1], as in all below
	topicMetadataSet = topic("MetadataSet(uint256,string,string,bytes)") // topics[2] is the hash of the key
	topicURIUpdated  = topic("URIUpdated(uint256,string,address)")       //
	topicUpgraded    = topic("Upgraded(address)")                        // no agent
	authorityKeys    = []common.Hash{topic(MetadataKeys), topic("agentWallet"), topic(metadataBinding)}
)

// metadataBinding names another token whose holder controls the agent (ERC-8217).
const metadataBinding = "agent-binding"

// nonexistentToken is the selector of ERC721NonexistentToken(uint256).
const nonexistentToken = "\x7e\x27\x32\x89"

func topic(s string) common.Hash { return crypto.Keccak256Hash([]byte(s)) }
