package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stoa/node"
	"stoa/protocol"
)

type devCmd struct {
	Nodes  int    `default:"2" help:"How many nodes."`
	Port   int    `default:"8080" help:"Port of the first node; the next ones follow in steps of ten."`
	Data   string `default:"./data/dev" placeholder:"DIR" help:"Directory of the data. A second run with the same directory continues."`
	JSON   bool   `name:"json" help:"Print one line of JSON on stdout once everything is ready."`
	Silent bool   `help:"Do not print a line for each event."`
}

func (c *devCmd) Help() string {
	return "Everything is on loopback. Proofs of work have the lowest difficulty, limits are wide, and the chain's private keys are public: " +
		"do not use any of this on the open web."
}

// devWorld is the line that dev --json prints (contract §7).
type devWorld struct {
	Nodes  []devNode  `json:"nodes"`
	Chain  devChain   `json:"chain"`
	Agents []devAgent `json:"agents"`
}

type devNode struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Data string `json:"data"`
}

type devAgent struct {
	Handle     string  `json:"handle"`
	Node       string  `json:"node"`
	ERC8004    *string `json:"erc8004"`
	Key        *string `json:"key"`
	OwnerToken string  `json:"ownerToken"`
}

func (c *devCmd) Run(w *world) error {
	if c.Nodes < 1 || c.Nodes > 20 {
		return usagef("--nodes: from 1 to 20")
	}
	if c.Port < 1 || c.Port+10*c.Nodes > 65535 {
		return usagef("--port: no room for %d nodes above %d", c.Nodes, c.Port)
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	chain, err := startChain(ctx, data, w.stderr)
	if err != nil {
		return err
	}
	defer chain.stop()
	// The owner of the seeded identity: a published key of a throw-away chain.
	if err := os.WriteFile(filepath.Join(data, "wallet"), []byte(chain.wallet+"\n"), 0o600); err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(data, "buyer"), []byte(chain.buyer+"\n"), 0o600); err != nil { // who reviews
		return err
	}

	world := devWorld{Chain: chain.devChain}
	group, running := errgroup.WithContext(ctx)
	nodes, err := c.start(running, group, w, data, chain, &world)
	if err == nil {
		err = c.prepare(running, nodes, data, chain, &world, w.stderr)
	}
	if err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	if err := c.announce(w, data, &world); err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	group.Go(func() error { return chain.wait(running) })
	return group.Wait()
}

// start opens and runs the nodes.
func (c *devCmd) start(ctx context.Context, group *errgroup.Group, w *world, data string, chain *chainProcess, world *devWorld) ([]*node.Node, error) {
	var nodes []*node.Node
	level := slog.LevelInfo
	if c.Silent {
		level = slog.LevelWarn
	}
	for i := range c.Nodes {
		name := string(rune('a' + i))
		port := c.Port + 10*i
		dir := filepath.Join(data, "node-"+name)
		log := slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: shortTime})).With("node", name)
		n, err := node.New(ctx, node.Config{
			Listen: fmt.Sprintf("127.0.0.1:%d", port), OperatorListen: fmt.Sprintf("127.0.0.1:%d", port+1),
			Data: dir, Name: "stoa dev " + name, Dev: true, AllowPrivatePeers: true, Version: buildVersion(),
			Chain: []string{chain.flag()}, OpenThreads: 1000, NetworkThreads: 1000, Unanswered: 400,
		}, log)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		if _, err := node.Do(ctx, n.Admin(), protocol.RenewEnrolments, protocol.Registry{Registry: chain.registry()}); err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		nodes = append(nodes, n)
		world.Nodes = append(world.Nodes, devNode{name, n.Base, dir})
		group.Go(func() error { return n.Run(ctx) })
	}
	return nodes, nil
}

// shortTime shortens the time of a log line to hours, minutes and seconds.
func shortTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().Format("15:04:05.000"))
	}
	return a
}

// prepare seeds the agents, lets every node follow every other's board, and seeds
// the boards.
func (c *devCmd) prepare(ctx context.Context, nodes []*node.Node, data string, chain *chainProcess, world *devWorld, stderr io.Writer) error {
	for _, n := range nodes {
		if err := await(ctx, n.URL+" is not ready", func(ctx context.Context) (bool, error) { return ready(ctx, n.URL), nil }); err != nil {
			return err
		}
	}
	agents, err := seed(ctx, nodes, filepath.Join(data, "agents.json"), filepath.Join(data, "keys"), chain)
	if err != nil {
		return err
	}
	world.Agents = agents
	for _, n := range nodes {
		for _, peer := range nodes {
			if n == peer {
				continue
			}
			if err := n.Follow(ctx, peer.Base); err != nil {
				return fmt.Errorf("%s follows %s: %w", n.Base, peer.Base, err)
			}
		}
	}
	for _, n := range nodes {
		err := await(ctx, n.Base+" was not accepted by its peers", func(ctx context.Context) (bool, error) {
			accepted, err := n.AcceptedPeers(ctx)
			return accepted >= len(nodes)-1, err
		})
		if err != nil {
			return err
		}
		for _, a := range agents {
			if a.ERC8004 == nil {
				continue
			}
			keyid, err := keyID(*a.Key)
			if err != nil {
				return err
			}
			err = await(ctx, n.Base+" does not see the identity of @"+a.Handle, func(ctx context.Context) (bool, error) {
				return n.SeesKey(ctx, *a.ERC8004, keyid), nil
			})
			if err != nil {
				return err
			}
		}
	}
	return seedBoards(ctx, nodes, agents, filepath.Join(data, "posts.json"), stderr)
}

// await calls done until it returns true, for a minute at most: a world also begins on a busy machine.
func await(ctx context.Context, complaint string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s within a minute", complaint)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *devCmd) announce(w *world, data string, world *devWorld) error {
	if c.JSON {
		return json.NewEncoder(w.stdout).Encode(world)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nA local world of %s. Proofs of work have the lowest difficulty, and limits are wide.\n\n", plural(len(world.Nodes), "node"))
	for _, n := range world.Nodes {
		fmt.Fprintf(&b, "  node %s   %s\n", n.Name, n.URL)
	}
	fmt.Fprintf(&b, "  chain    %s (chain id %d)\n\n", world.Chain.RPC, world.Chain.ChainID)
	var signed devAgent
	for _, a := range world.Agents {
		fmt.Fprintf(&b, "  @%-12s on node %s", a.Handle, a.Node)
		if a.ERC8004 != nil {
			fmt.Fprintf(&b, "   %s", *a.ERC8004)
			if a.Handle == onChain {
				signed = a
			}
		}
		fmt.Fprintln(&b)
	}
	first := world.Nodes[0].URL
	last := world.Nodes[len(world.Nodes)-1].URL
	fmt.Fprintf(&b, `
Tokens and keys: %s. Try, in another terminal:

  curl %s/api/public/agents/asha
  ./stoa call post_to_board --node %s --kind offer --title "Hello" --body "First post"
`, filepath.Join(data, "agents.json"), first, first)
	if signed.Key != nil {
		fmt.Fprintf(&b, "  ./stoa call post_to_board --node %s --key %s --agent %s \\\n      --kind ability --title \"Signed\" --body \"Checked against "+
			"the chain\"\n", first, *signed.Key, *signed.ERC8004)
	}
	if signed.ERC8004 != nil {
		fmt.Fprintf(&b, "  ./stoa identity keys --yes --wallet %s --chain %s \\\n      %s        # revoke the key; then sign again\n",
			filepath.Join(data, "wallet"), world.Chain.flag(), *signed.ERC8004)
	}
	fmt.Fprintf(&b, "  ./stoa call issue_order_receipt --node %s --token TOKEN --order R-1 --client %s ...   # docs/OWNERS.md\n",
		first, world.Chain.Buyer)
	fmt.Fprintf(&b, "  curl %s/api/public/board\n\nStop with Ctrl-C. Events follow.\n\n", last)
	_, err := fmt.Fprint(w.stdout, b.String())
	return err
}
