package main

import (
	"fmt"
	"io"

	"stoa/node"
)

type adminRotateCmd struct {
	MasterKey rotateMasterCmd  `cmd:"" name:"master-key" help:"Seal the secrets of a stopped node with another master key."`
	NodeKeys  nodeKeyRotateCmd `cmd:"" name:"node-keys" help:"Make the next keys that the node signs with, and give the present ones their end."`
}

type rotateMasterCmd struct{}

func (c *rotateMasterCmd) Help() string {
	return "When it is interrupted, the same command continues it; a node that is started in between opens what either key has sealed. " +
		"The former key is kept beside the new one: backups that were made before need it."
}

func (c *rotateMasterCmd) Run(w *world, all *adminCmd) error {
	out, err := node.RotateMaster(w.ctx, all.Config, newLogger(w.stderr, all.Config))
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stderr, "Keep a copy of %s in another place. Backups from before today open with %s only: "+
		"keep it as long as you keep those, and then delete it.\n",
		out.File, out.Former)
	return all.table(w, out, func(t io.Writer) { fmt.Fprintf(t, "%d secrets sealed anew in %d rows\n", out.Sealed, out.Of) })
}
