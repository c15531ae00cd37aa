package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"stoa/node"
)

type generateCmd struct {
	Root  string `default:"." help:"Root of the repository."`
	Check bool   `help:"Compare only; fail when a file is stale."`
}

func (c *generateCmd) Run(w *world) error {
	files, err := node.Generate()
	if err != nil {
		return err
	}
	stale := 0
	for _, f := range files {
		path := filepath.Join(c.Root, filepath.FromSlash(f.Path))
		old, readErr := os.ReadFile(path)
		now, err := f.File(old)
		if err != nil {
			return err
		}
		if readErr == nil && bytes.Equal(old, now) {
			continue
		}
		stale++
		if c.Check {
			fmt.Fprintf(w.stderr, "stale: %s\n", f.Path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, now, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(w.stdout, "wrote %s\n", f.Path)
	}
	if c.Check && stale > 0 {
		return fmt.Errorf("%d generated files are stale; run make generate", stale)
	}
	return nil
}
