package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// A journal stores the signed transactions of the chain in order. Replayed on the same genesis
// with the same accounts they give the same agents, records, owners and reviews. Block numbers and
// times differ; a call that depends on the time (setAgentWallet has a deadline) is refused on
// replay, and logged.
type journal struct {
	path string // "" keeps nothing

	Version      int             `json:"version"`
	Transactions []hexutil.Bytes `json:"transactions"`
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path, Version: 1}
	if path == "" {
		return j, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(b, j)
	}
	if err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	if j.Version != 1 {
		return nil, fmt.Errorf("state file %s: version %d, want 1", path, j.Version)
	}
	return j, nil
}

// add appends transactions and replaces the file in one step.
func (j *journal) add(raw ...[]byte) error {
	for _, r := range raw {
		j.Transactions = append(j.Transactions, r)
	}
	if j.path == "" || len(raw) == 0 {
		return nil
	}
	b, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.path+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(j.path+".new", j.path)
}
