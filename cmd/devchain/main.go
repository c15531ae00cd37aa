// Stoa-devchain is a throw-away Ethereum chain with the ERC-8004 registries, for `stoa dev` and
// for tests. It runs go-ethereum's simulated backend in memory behind real JSON-RPC over HTTP,
// chain id 1337 by default.
//
// It is a separate binary and module because the simulated backend is five times as large as the
// node itself. Never use its keys on another chain: they are printed at every start.
//
// When the chain is ready it prints one line of JSON on stdout ([Ready]); logs go to stderr. It
// ends on SIGTERM, on SIGINT and, with -exit-with-stdin, when its standard input is closed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ethereum/go-ethereum/common"
)

// Ready is the line on stdout.
type Ready struct {
	ChainID            uint64         `json:"chainId"`
	RPC                string         `json:"rpc"`
	IdentityRegistry   common.Address `json:"identityRegistry"`
	ReputationRegistry common.Address `json:"reputationRegistry"`
	Accounts           []Account      `json:"accounts"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`address` of the JSON-RPC server; port 0 chooses a free one")
	state := flag.String("state", "", "`file` that stores the transactions, to recreate the same agents at the next start")
	id := flag.Uint64("chain-id", chainID, "`number` of the chain")
	withStdin := flag.Bool("exit-with-stdin", false, "end when standard input is closed")
	artifacts := flag.String("artifacts", os.Getenv("ERC8004_ARTIFACTS"), "`folder` of other compiled registries to deploy; default $ERC8004_ARTIFACTS")
	manual := flag.Bool("manual", false, "accept commands on standard input, for tests: mine N, final, fork N; nothing becomes final by itself")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var commands io.Reader
	if *manual {
		commands = os.Stdin
	} else if *withStdin {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, *listen, *artifacts, *id, *state, commands, log, os.Stdout); err != nil {
		log.Error("devchain", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, or with commands until they end.
func run(ctx context.Context, listen, artifacts string, id uint64, state string, commands io.Reader, log *slog.Logger, out io.Writer) error {
	c, err := Start(listen, artifacts, id, log)
	if err != nil {
		return err
	}
	defer c.Close()
	j, err := openJournal(state)
	if err != nil {
		return err
	}
	if err := c.Replay(ctx, j); err != nil {
		return err
	}
	c.manual = commands != nil
	done := make(chan error, 1)
	go func() { done <- c.Mine(ctx) }()
	line, err := json.Marshal(c.Ready)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		return err
	}
	log.Info("chain ready", "rpc", c.Ready.RPC, "identity", c.Ready.IdentityRegistry, "reputation", c.Ready.ReputationRegistry)
	if commands != nil {
		return c.runCommand(ctx, commands, out)
	}
	if err := <-done; ctx.Err() == nil {
		return err
	}
	return nil
}
