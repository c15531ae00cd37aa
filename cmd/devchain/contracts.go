package main

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:embed contracts/*.json contracts/*.sol
var contractFiles embed.FS

// An artifact is a compiled contract, written by contracts/compile.mjs.
type artifact struct {
	Contract     string          `json:"contract"`
	Compiler     string          `json:"compiler"`
	SourceSHA256 string          `json:"sourceSHA256"`
	Bytecode     hexutil.Bytes   `json:"bytecode"`
	ABI          json.RawMessage `json:"abi"`
}

func loadArtifact(name string) (artifact, error) {
	var a artifact
	b, err := contractFiles.ReadFile("contracts/" + name + ".json")
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		return a, fmt.Errorf("contract %s: %w", name, err)
	}
	return a, nil
}

// code is the creation code with the constructor's addresses behind it.
func (a artifact) code(args ...common.Address) []byte {
	out := append([]byte(nil), a.Bytecode...)
	for _, arg := range args {
		out = append(out, common.LeftPadBytes(arg[:], 32)...)
	}
	return out
}
