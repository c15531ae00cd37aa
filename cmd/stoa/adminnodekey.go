package main

import (
	"fmt"
	"time"

	"stoa/protocol"
)

type adminNodeKeyCmd struct {
	List nodeKeyListCmd `cmd:"" help:"The Ed25519 keys of the node, and when they are valid."`
}

type nodeKeyListCmd struct{}

func (c *nodeKeyListCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.ListNodeKeys, protocol.None{}, func(keys protocol.NodeKeys) error { return nodeKeys(w, all, keys) })
}

type nodeKeyRotateCmd struct {
	In      int  `name:"in-hours" default:"2" help:"Hours until the next key begins: at least one, so that no cache lacks it."`
	Overlap int  `name:"overlap-days" default:"30" help:"Days for which the present key is taken beside the next one."`
	Now     bool `help:"After a leak: the present keys end at once."`
}

func (c *nodeKeyRotateCmd) Help() string {
	return "Both Ed25519 keys are published at once, with their times. Restart the node after the next key has begun and before the present one ends: " +
		"a process signs with the key of the time when it started. It then has other keys of RSA and P-256 too, which other servers fetch again."
}

func (c *nodeKeyRotateCmd) Run(w *world, all *adminCmd) error {
	in := protocol.NodeKeyRotation{InHours: c.In, OverlapDays: c.Overlap}
	if c.Now {
		in = protocol.NodeKeyRotation{}
	}
	return do(w, all, protocol.RotateNodeKey, in, func(keys protocol.NodeKeys) error {
		if next := keys.Items[len(keys.Items)-1]; next.From != nil {
			fmt.Fprintf(w.stderr, "Restart the node after %s: it then signs with %s.\n", next.From.UTC().Format(time.RFC3339), next.KeyID)
		}
		return nodeKeys(w, all, keys)
	})
}

func nodeKeys(w *world, all *adminCmd, keys protocol.NodeKeys) error {
	var lines [][]string
	for _, k := range keys.Items {
		from, until, state := "", "", "valid"
		if k.From != nil {
			from = k.From.UTC().Format(time.RFC3339)
		}
		if k.Until != nil {
			until = k.Until.UTC().Format(time.RFC3339)
		}
		switch {
		case k.Ended:
			state = "ended"
		case k.Signs:
			state = "signs"
		}
		lines = append(lines, []string{k.KeyID, from, until, state})
	}
	return all.rows(w, "keyid from until state", lines)
}
