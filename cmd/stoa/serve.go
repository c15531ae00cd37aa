package main

import (
	"fmt"
	"runtime/debug"
	"time"

	"stoa/node"
)

type serveCmd struct {
	node.Config `settings:"Settings"`
}

func (c *serveCmd) Help() string {
	return "Each setting is a flag, an environment variable and a key of the file given with --config. " +
		"Stop with SIGTERM or Ctrl-C; running requests get 8 seconds."
}

// settled is when a node has made what it keeps (schemas, texts, keys, tables), and the process gives back what that took
// beside: 6 to 8 MB.
const settled = 5 * time.Second

func (c *serveCmd) Run(w *world) error {
	c.Config.Version = buildVersion()
	tuneCollector(c.MemoryLimit)
	log := newLogger(w.stderr, c.Config)
	n, err := node.New(w.ctx, c.Config, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "stoa %s serves %s on %s\n", buildVersion(), n.Base, n.URL)
	if c.OperatorListen != "" {
		fmt.Fprintf(w.stdout, "metrics and profiles on http://%s\n", c.OperatorListen)
	}
	defer time.AfterFunc(settled, debug.FreeOSMemory).Stop()
	return n.Run(w.ctx)
}
