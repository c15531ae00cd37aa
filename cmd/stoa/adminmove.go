package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/node"
	"stoa/storage"
)

type adminMoveCmd struct {
	To   string `help:"Where to: postgres://…, or sqlite: and a data directory."`
	Undo bool   `help:"Let the database that was moved be served again. What was written at the new place since is not in it."`
}

func (c *adminMoveCmd) Help() string {
	return "The node is stopped, and the target empty. When the move is interrupted, even by a crash, the same command continues it. " +
		"In the end every table is counted and hashed on both sides; the source is only read, and then refuses to be served."
}

func (c *adminMoveCmd) Run(w *world, all *adminCmd) error {
	log := newLogger(w.stderr, all.Config)
	if c.Undo {
		was, err := node.Unmove(w.ctx, all.Config, log)
		if err == nil && !was {
			err = errors.New("this database was not moved")
		}
		if err != nil {
			return err
		}
		return all.line(w, "done", "the database is served again; do not serve the other one too")
	}
	if scheme, _, is := strings.Cut(c.To, "://"); c.To == "" || is && scheme != "postgres" && scheme != "postgresql" {
		return usagef("say where to: --to postgres://… or --to sqlite:DIRECTORY")
	}
	report, err := node.Move(w.ctx, all.Config, c.To, log, moveProgress(w))
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stderr, "Moved. Start the node there, with the same master key: --master-key %s\n", node.MasterKeyFile(all.Config))
	return all.table(w, report, func(t io.Writer) {
		fmt.Fprintln(t, "table\trows\thash")
		for _, m := range report.Tables {
			fmt.Fprintf(t, "%s\t%d\t%s\n", m.Table, m.Rows, m.Hash)
		}
	})
}

// moveProgress prints every two seconds how far a move is.
func moveProgress(w *world) func(storage.MoveStep) {
	var doing string
	var began, told time.Time
	var first int64 // rows that were done when it began
	return func(s storage.MoveStep) {
		what, now := s.Doing, time.Now()
		if s.Of == 0 { // it counts by table
			what += s.Table
		}
		if what != doing {
			doing, began, first = what, now, s.Rows
		}
		if now.Sub(told) < 2*time.Second {
			return
		}
		told = now
		rate := float64(s.Rows-first) / max(now.Sub(began).Seconds(), 1)
		line := fmt.Sprintf("%s %s: %d rows, %.0f a second", s.Doing, s.Table, s.Rows, rate)
		if s.Of > 0 {
			line = fmt.Sprintf("%s %s: %d of %d rows, %.0f a second", s.Doing, s.Table, s.Rows, s.Of, rate)
		}
		if s.Of > s.Rows && rate > 0 {
			line += fmt.Sprintf(", %s left", time.Duration(float64(s.Of-s.Rows)/rate*float64(time.Second)).Round(time.Second))
		}
		fmt.Fprintln(w.stderr, line)
	}
}
