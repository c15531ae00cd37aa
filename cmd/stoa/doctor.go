package main

import (
	"cmp"
	"fmt"
	"io"

	"stoa/node"
	"stoa/protocol"
)

type doctorCmd struct {
	JSON        bool   `name:"json" help:"Print JSON instead of a table."`
	KeyCopied   string `name:"key-copied" placeholder:"FILE" help:"Compare a copy of the master key (- for standard input) with the key, remember that there is one, and examine nothing."`
	Resolver    string `placeholder:"HOST:PORT" help:"DNS server to ask instead of the system's, such as 9.9.9.9:53."`
	node.Config `settings:"Settings of the node, as for serve"`
}

func (c *doctorCmd) Help() string {
	return "Looks at the node as others see it: name, ports, certificate, proxy, clock, chain endpoints, mail, disk, backup, copy of the master key, versions; " +
		"each fault with what to do. Run it where the node runs, with its settings; the node may be running or not. " +
		"The page Health shows what it found. Fails when something is at fault."
}

func (c *doctorCmd) Run(w *world) error {
	c.Config.Version = buildVersion()
	e := node.Examination{Config: c.Config, Resolver: c.Resolver, Log: newLogger(w.stderr, c.Config)}
	if c.KeyCopied != "" {
		return c.keyCopied(w, e)
	}
	found, err := e.Look(w.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(w.stdout, found)
	} else {
		err = printCheckUp(w.stdout, found)
	}
	if n := found.Count(protocol.CheckFault); n > 0 && err == nil {
		err = fmt.Errorf("at fault: %d of %d checks", n, len(found.Items))
	}
	return err
}

func printCheckUp(w io.Writer, found protocol.CheckUp) error {
	t := newTable(w)
	for _, c := range found.Items {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Verdict, c.Name, cmp.Or(c.What, c.Seen))
		if c.What != "" {
			for _, line := range []string{c.Seen, "→ " + c.Mend} {
				if line != "" {
					fmt.Fprintf(t, "\t\t%s\n", line)
				}
			}
		}
	}
	return t.Flush()
}

func (c *doctorCmd) keyCopied(w *world, e node.Examination) error {
	if c.KeyCopied != "-" {
		if err := e.NoCopy(c.KeyCopied); err != nil {
			return err
		}
	}
	text, err := readInput(w, c.KeyCopied)
	if err != nil {
		return err
	}
	if err := e.KeyCopied(w.ctx, text); err != nil {
		return err
	}
	fmt.Fprintln(w.stderr, "the copy is of the master key; that is noted")
	return nil
}
