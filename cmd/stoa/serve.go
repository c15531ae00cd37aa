package main

import (
	"fmt"

	"stoa/node"
)

type serveCmd struct {
	node.Config `embed:""`
}

func (c *serveCmd) Help() string {
	return "Each setting is a flag, an environment variable and a key of the file given with --config. " +
		"Stop with SIGTERM or Ctrl-C; running requests get 8 seconds."
}

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
	return n.Run(w.ctx)
}
