package nodetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/node"
	"stoa/protocol/must"
)

// BinEnv names the directory with the programs that make built; make test sets it.
const BinEnv = "STOA_TEST_BIN"

// chainProgram builds the development chain once for all tests, where make has not.
var chainProgram = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		return filepath.Join(dir, "stoa-devchain"), nil
	}
	dir, err := os.MkdirTemp("", "stoa-devchain-")
	if err != nil {
		return "", err
	}
	atEnd(func() { os.RemoveAll(dir) })
	command := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "stoa-devchain"), ".")
	command.Dir = Source("cmd", "devchain")
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // what make compiled serves
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the chain: %w\n%s", err, out)
	}
	return filepath.Join(dir, "stoa-devchain"), nil
})

// An EVM is a chain of its own: a transaction gets one block, and nothing is final
// until the test says so.
type EVM struct {
	T          testing.TB
	in         io.Writer
	out        *bufio.Reader
	issued     int64 // seconds that the next key record is ahead of the one before
	RPC        string
	ChainID    uint64
	Identity   string `json:"identityRegistry"`
	Reputation string `json:"reputationRegistry"`
	Accounts   []struct{ Address, PrivateKey string }
}

// NewEVM starts a chain, which ends with the test.
func NewEVM(t testing.TB) *EVM { return NewEVMOf(t, 1337) }

// NewEVMOf starts a chain with that number.
func NewEVMOf(t testing.TB, id uint64) *EVM {
	t.Helper()
	program := must.Get(chainProgram())(t)
	command := exec.Command(program, "-manual", "-chain-id", fmt.Sprint(id))
	in := must.Get(command.StdinPipe())(t)
	out := must.Get(command.StdoutPipe())(t)
	require.NoError(t, command.Start())
	t.Cleanup(func() { in.Close(); command.Wait() })
	c := &EVM{T: t, in: in, out: bufio.NewReader(out)}
	line := must.Get(c.out.ReadBytes('\n'))(t)
	require.NoError(t, json.Unmarshal(line, c))
	return c
}

// Do gives the chain a command: see cmd/devchain, -manual.
func (c *EVM) Do(command string) {
	c.T.Helper()
	must.Get(fmt.Fprintln(c.in, command))(c.T)
	answer := must.Get(c.out.ReadString('\n'))(c.T)
	require.NotContains(c.T, answer, "error")
}

// Registrar writes to the identity registry as an account.
func (c *EVM) Registrar(account int) *erc8004.Registrar {
	c.T.Helper()
	wallet := must.Get(erc8004.ParseWalletKey(c.Accounts[account].PrivateKey))(c.T)
	registry := must.Get(erc8004.ParseAddress(c.Identity))(c.T)
	g := must.Get(erc8004.NewRegistrar(erc8004.RegistrarConfig{RPC: c.RPC, ChainID: c.ChainID, Registry: registry, Key: wallet}))(c.T)
	return g
}

// Must takes what a transaction returned and fails when there was an error.
func (c *EVM) Must(_ erc8004.Receipt, err error) {
	c.T.Helper()
	require.NoError(c.T, err)
}

// Publish writes the record that an account signs, in the name of another if that
// may.
func (c *EVM) Publish(signer, sender int, id erc8004.ID, pairs ...key.Pair) {
	c.T.Helper()
	var keys []erc8004.Key
	for _, p := range pairs {
		k := must.Get(erc8004.NewKey(p.Public()))(c.T)
		keys = append(keys, k)
	}
	wallet := must.Get(erc8004.ParseWalletKey(c.Accounts[signer].PrivateKey))(c.T)
	c.issued++
	record := must.Get(erc8004.SignRecord(id, keys, time.Now().Add(time.Duration(c.issued)*time.Second), wallet))(c.T)
	c.Must(c.Registrar(sender).SetKeys(c.T.Context(), id.AgentID, record))
}

// Flag is the chain as the setting chain says it, with a finality such as ",depth:3"; "" is that of the setting.
func (c *EVM) Flag(finality string) string {
	return fmt.Sprintf("%d=%s,%s%s", c.ChainID, c.RPC, c.Identity, finality)
}

// A Stage is a node that watches a chain.
type Stage struct {
	*House
	Chain *EVM
}

// NewStage makes a house and a chain that it reads, final up to its last block.
func NewStage(t testing.TB, finality string, change ...func(*node.Config)) *Stage {
	t.Helper()
	c := NewEVM(t)
	s := &Stage{New(t, append(change, func(o *node.Config) { o.Chain = []string{c.Flag(finality)} })...), c}
	c.Do("final")
	return s
}

// Start is a stage whose node runs as in production. What is done on the chain after the start, the node may see a second later.
func (c *EVM) Start(change ...func(*node.Config)) *Stage {
	c.T.Helper()
	c.Do("final")
	return &Stage{Start(c.T, append(change, func(o *node.Config) { o.Chain = []string{c.Flag("")} })...), c}
}

// Register registers an identity of an account, which is final.
func (s *Stage) Register(account int) erc8004.ID {
	s.T.Helper()
	id, _, err := s.Chain.Registrar(account).Register(s.T.Context(), "https://agent.example/a")
	require.NoError(s.T, err)
	s.Chain.Do("final")
	return id
}

// Watch runs what runs alongside the doors.
func (s *Stage) Watch() {
	ctx, cancel := context.WithCancel(s.T.Context())
	var group sync.WaitGroup
	group.Go(func() { s.House.Chain.Reader.Run(ctx) })
	group.Go(func() { s.Enrolments.Run(ctx) })
	s.T.Cleanup(func() { cancel(); group.Wait() })
}

// NewPair is a new Ed25519 key.
func NewPair(t testing.TB) key.Pair {
	t.Helper()
	p := must.Get(key.GenerateEd25519())(t)
	return p
}
