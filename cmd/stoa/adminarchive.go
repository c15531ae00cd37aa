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
		fmt.Fprintln(w.stderr, "private keys are not in it; give a passphrase to take those along that the node keeps")
	}
	return nil
}

type adminImportCmd struct {
	File       string `arg:"" type:"existingfile" help:"The archive."`
	As         string `help:"The handle to have here; the archive's own when left out."`
	Account    string `help:"Whom a new profile belongs to: an account's id, or a profile of it."`
	DryRun     bool   `help:"Change nothing; say what would happen."`
	Replace    bool   `help:"Put the archive's profile, merchant record and notification settings in place of those that are here."`
	Vouch      bool   `help:"You know that the archive is the owner's and from the node it names: take its posts also when that node cannot be asked, and its keys for the owner's."`
	Passphrase string `env:"STOA_PASSPHRASE" help:"Opens the private keys in the archive."`
}

func (c *adminImportCmd) Run(w *world, all *adminCmd) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
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
