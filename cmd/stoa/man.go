package main

import (
	"os"
	"path/filepath"
)

type manCmd struct {
	Dir string `arg:"" help:"Where the manual pages are written, as files such as stoa-serve.1."`
}

func (c *manCmd) Run(w *world) error {
	for name, page := range w.command.Parent.Manuals(buildVersion()) {
		if err := os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}
