package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"stoa/node"
	"stoa/protocol"
)

type adminExportCmd struct {
	Handle     string `arg:""`
	File       string `arg:"" help:"Where to write the archive; must not exist."`
	Passphrase string `env:"STOA_PASSPHRASE" help:"Include the private keys that the node keeps, encrypted under this passphrase of at least 12 characters. Other users may see command lines: the environment variable is better."`
}

func (c *adminExportCmd) Run(w *world, all *adminCmd) error {
	if n := len(c.Passphrase); n > 0 && (n < 12 || n > 128) {
		return usagef("a passphrase has 12 to 128 characters")
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usage{err}
	}
	err = all.with(w, func(ctx context.Context, a *node.Admin) error {
		out, err := a.Export(ctx, protocol.ExportRequest{Owned: protocol.Owned{Handle: c.Handle}, Passphrase: c.Passphrase}, progressOn(w))
		if err != nil {
			return err
		}
		defer out.Close()
		_, err = io.Copy(f, out)
		return err
	})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	if c.Passphrase == "" {
		fmt.Fprintln(w.stderr, "the archive contains no private keys; give a passphrase to include those that the node keeps")
	}
	return nil
}

type adminImportCmd struct {
	File       string `arg:"" help:"The archive."`
	As         string `help:"The handle on this node. Default: the archive's."`
	Account    string `help:"The account of a new profile: its id, or one of its profiles."`
	DryRun     bool   `help:"Change nothing; report what would happen."`
	Replace    bool   `help:"Replace the profile, merchant record, notification and meeting settings here with the archive's."`
	Vouch      bool   `help:"You know that the archive is from the owner and the node that it names: accept its posts even if that node cannot be asked, and its keys as the owner's."`
	Passphrase string `env:"STOA_PASSPHRASE" help:"Decrypts the private keys in the archive."`
}

func (c *adminImportCmd) Run(w *world, all *adminCmd) error {
	f, err := os.Open(c.File)
	if err != nil {
		return usage{err}
	}
	defer f.Close()
	in := protocol.ImportOrder{Account: c.Account, Vouch: c.Vouch, ImportRequest: protocol.ImportRequest{
		As: protocol.CleanHandle(c.As), DryRun: c.DryRun, Replace: c.Replace, Passphrase: c.Passphrase,
	}}
	if in.As != "" && !protocol.IsHandle(in.As) {
		return usagef("%s is not a handle", c.As)
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		report, err := a.Import(ctx, f, in, progressOn(w))
		if err != nil {
			return err
		}
		return all.found(w, report)
	})
}

func progressOn(w *world) func(string, int) {
	return func(member string, n int) { fmt.Fprintf(w.stderr, "%s %d\n", member, n) }
}
