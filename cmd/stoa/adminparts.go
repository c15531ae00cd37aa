package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"stoa/node"
	"stoa/storage"
)

type adminPartsCmd struct {
	List     partsListCmd     `cmd:"" default:"1" help:"List the files."`
	Detach   partsDetachCmd   `cmd:"" help:"Move the text and evidence of the posts of a month from the database into its file."`
	Reattach partsReattachCmd `cmd:"" help:"Move them back into the database, where they stay; the file is emptied within a day."`
}

func (c *adminPartsCmd) Help() string {
	return "The setting parts-after moves them by itself. The files belong to the database: a backup needs both. " +
		"A command that is interrupted continues when it is given again."
}

type partsListCmd struct{}

func (c *partsListCmd) Run(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		parts, err := a.Parts(ctx)
		if err != nil {
			return err
		}
		return all.table(w, map[string]any{"items": parts}, func(t io.Writer) {
			if len(parts) == 0 {
				fmt.Fprintln(t, "No posts are in files: see the setting parts-after.")
				return
			}
			fmt.Fprintln(t, "month\tposts\tbytes\tfile\t")
			for _, p := range parts {
				note := ""
				switch {
				case p.Bytes < 0:
					note = "MISSING"
				case p.Taken:
					note = "taken back"
				}
				fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", monthText(p.Month), p.Posts, max(p.Bytes, 0), p.File, note)
			}
		})
	})
}

type partsDetachCmd struct {
	Month string `arg:"" help:"Month, as 2026-01."`
}

func (c *partsDetachCmd) Run(w *world, all *adminCmd) error {
	return movePosts(w, all, c.Month, (*node.Admin).Detach, "the posts of %s are in their file\n")
}

type partsReattachCmd struct {
	Month string `arg:"" help:"Month, as 2026-01."`
}

func (c *partsReattachCmd) Run(w *world, all *adminCmd) error {
	return movePosts(w, all, c.Month, (*node.Admin).Reattach, "the posts of %s are in the database\n")
}

func movePosts(w *world, all *adminCmd, month string, move func(*node.Admin, context.Context, int64, storage.Progress) error, done string) error {
	at, err := time.Parse("2006-01", month)
	if err != nil {
		return usagef("%q is no month such as 2026-01", month)
	}
	if at.Year() < 2020 {
		return usagef("%s: no post is from before 2020-01", month)
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		if err := move(a, ctx, storage.MonthOf(at), (&steps{w: w}).progress); err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, done, month)
		return nil
	})
}

func monthText(m int64) string { return fmt.Sprintf("%d-%02d", m/100, m%100) }
