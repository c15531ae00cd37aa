package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// chainBinary is the development chain: a second program, so that the node does not contain an
// EVM.
const chainBinary = "stoa-devchain"

type devChain struct {
	ChainID            uint64 `json:"chainId"`
	RPC                string `json:"rpc"`
	IdentityRegistry   string `json:"identityRegistry"`
	ReputationRegistry string `json:"reputationRegistry"`
	Buyer              string `json:"buyer"` // account whose key is in the file buyer
}

// chainProcess is the running development chain.
type chainProcess struct {
	devChain
	wallet string // private key of a funded account, hex
	buyer  string // that of another

	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	err     error // why it ended; valid after ended is closed
	once    sync.Once
}

// startChain runs the chain and waits until it answers. Its program must be next to this one or in
// PATH. Under data it stores its agents and its port, so that a saved address stays valid after a
// restart.
func startChain(ctx context.Context, data string, stderr io.Writer) (*chainProcess, error) {
	path, err := findChain()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(data, "chain.port")
	port := "0"
	if raw, err := os.ReadFile(file); err == nil {
		port = strings.TrimSpace(string(raw))
	}
	if l, err := net.Listen("tcp", "127.0.0.1:"+port); err != nil {
		fmt.Fprintf(stderr, "stoa: the port %s of the chain is in use; the chain gets another\n", port)
		port = "0"
	} else if err := l.Close(); err != nil {
		return nil, err
	}
	p, err := runChain(ctx, path, "127.0.0.1:"+port, filepath.Join(data, "chain.json"))
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(p.RPC)
	if err == nil {
		err = os.WriteFile(file, []byte(at.Port()+"\n"), 0o600)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func runChain(ctx context.Context, path, listen, state string) (*chainProcess, error) {
	command := exec.Command(path, "-listen", listen, "-state", state, "-exit-with-stdin")
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var log tail
	command.Stderr = &log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	p := &chainProcess{command: command, stdin: stdin, ended: make(chan struct{})}
	line := make(chan []byte, 1)
	go func() {
		reader := bufio.NewReader(stdout)
		first, _ := reader.ReadBytes('\n')
		line <- first
		io.Copy(io.Discard, reader)
		p.err = command.Wait()
		close(p.ended)
	}()
	select {
	case first := <-line:
		var ready struct {
			devChain
			Accounts []struct {
				Address    string `json:"address"`
				PrivateKey string `json:"privateKey"`
			} `json:"accounts"`
		}
		if err := json.Unmarshal(first, &ready); err != nil || len(ready.Accounts) < 2 {
			p.stop()
			return nil, fmt.Errorf("the development chain did not start: %s", log.String())
		}
		p.devChain, p.wallet, p.buyer = ready.devChain, ready.Accounts[0].PrivateKey, ready.Accounts[1].PrivateKey
		p.Buyer = ready.Accounts[1].Address
		return p, nil
	case <-time.After(30 * time.Second):
		p.stop()
		return nil, errors.New("the development chain did not start within 30 s")
	case <-ctx.Done():
		p.stop()
		return nil, ctx.Err()
	}
}

func findChain() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), chainBinary)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(chainBinary)
	if err != nil {
		return "", usagef("dev needs the program %s next to this one or in PATH; make builds both", chainBinary)
	}
	return path, nil
}

// flag returns the chain as the setting --chain of a node.
func (c devChain) flag() string {
	return fmt.Sprintf("%d=%s,%s,%s", c.ChainID, c.RPC, c.IdentityRegistry, c.ReputationRegistry)
}

// registry returns the identity registry in the form of identities.
func (p *chainProcess) registry() string {
	return fmt.Sprintf("eip155:%d:%s", p.ChainID, strings.ToLower(p.IdentityRegistry))
}

// wait returns when ctx ends, with an error if the chain ends first.
func (p *chainProcess) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.ended:
		return fmt.Errorf("the development chain ended: %w", errors.Join(p.err, errors.New("start dev again")))
	}
}

// stop ends the chain by closing its standard input, and kills it after a while.
func (p *chainProcess) stop() {
	p.once.Do(func() {
		p.stdin.Close()
		select {
		case <-p.ended:
		case <-time.After(5 * time.Second):
			p.command.Process.Kill()
			<-p.ended
		}
	})
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 4096; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
