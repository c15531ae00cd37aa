package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"stoa/node"
	"stoa/storage"
)

type adminMigrateCmd struct {
	DryRun bool `name:"dry-run" help:"On a copy, which is removed again: shows what would be changed, how long it takes, and whether the result is sound."`
}

func (c *adminMigrateCmd) Help() string {
	return "A new version of the program migrates the database when it starts, and copies one of SQLite before (stoa.db.before-…). " +
		"With --dry-run nothing is changed: the copy of a SQLite database lies beside it and needs as much room; the node may run. " +
		"A PostgreSQL server copies a database only while nothing is connected to it."
}

// migrated is what admin migrate prints.
type migrated struct {
	storage.Migration
	Milliseconds int64  `json:"milliseconds"`
	Check        string `json:"check"`
}

func (c *adminMigrateCmd) Run(w *world, all *adminCmd) error {
	if !c.DryRun {
		return all.with(w, func(context.Context, *node.Admin) error {
			return all.line(w, "done", "the tables are those of stoa "+buildVersion())
		})
	}
	m, err := storage.TryMigration(w.ctx, all.Storage(newLogger(w.stderr, all.Config)))
	if err != nil {
		return err
	}
	return all.table(w, migrated{m, m.Took.Milliseconds(), "ok"}, func(t io.Writer) {
		for _, s := range m.Steps {
			fmt.Fprintf(t, "%s\t%s\n", s.File, s.Took.Round(time.Millisecond))
		}
		fmt.Fprintf(t, "from version %d to %d, with indexes and check\t%s\nthe database was not changed\n", m.From, m.To, m.Took.Round(time.Millisecond))
	})
}
