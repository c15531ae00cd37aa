package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"stoa/node"
	"stoa/protocol"
	"stoa/storage"
)

type serveCmd struct {
	Check       bool `help:"Try all settings as a start would, say what was found, change nothing, and exit."`
	JSON        bool `help:"With --check: as JSON."`
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
	if c.Check {
		return checkSettings(w, c.Config, c.JSON)
	}
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
	if err := offerOperator(w, n.Admin(), isTerminal(w.stdout)); err != nil {
		return errors.Join(err, n.Close())
	}
	defer time.AfterFunc(settled, debug.FreeOSMemory).Stop()
	return n.Run(w.ctx)
}

// offerOperator prints the link that makes the first operator, where there is none and no link is good, so that of many processes one prints
// it. Logs are read by others than the operator: there it names the command that prints the link.
func offerOperator(w *world, a *node.Admin, terminal bool) error {
	var has bool
	err := a.DB.Read(w.ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		has, err = tx.Accounts().HasOperator(ctx)
		return err
	})
	if err != nil || has {
		return err
	}
	var link protocol.SignInLink
	if terminal {
		link, err = node.Do(w.ctx, a, protocol.MakeOperatorLink, protocol.OperatorLinkOrder{Keep: true})
	}
	switch {
	case protocol.CodeOf(err) == protocol.Conflict: // meanwhile
		return nil
	case err != nil:
		return err
	case link.URL == "":
		fmt.Fprintln(w.stdout, "no operator yet: stoa admin account first-operator prints a link that makes the first one, with the settings of this process")
	default:
		fmt.Fprintf(w.stdout, "no operator yet: this link makes the first one, once, within 24 hours:\n%s\n", link.URL)
	}
	return nil
}

// checkSettings prints what a look at each part of the configuration found; a fault is an error of the configuration.
func checkSettings(w *world, c node.Config, asJSON bool) error {
	found, faults := c.Check(w.ctx), 0
	for _, f := range found {
		mark := "ok   "
		if !f.OK {
			mark, faults = "FAULT", faults+1
		}
		if !asJSON {
			fmt.Fprintf(w.stdout, "%s %s: %s\n", mark, f.Check, oneLine(f.Found))
		}
		if !asJSON && f.Mend != "" {
			fmt.Fprintf(w.stdout, "      -> %s\n", f.Mend)
		}
	}
	if asJSON {
		if err := printJSON(w.stdout, map[string]any{"ok": faults == 0, "items": found}); err != nil {
			return err
		}
	}
	if faults > 0 {
		return fmt.Errorf("%w: %d of %d checks found a fault", node.ErrConfig, faults, len(found))
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
