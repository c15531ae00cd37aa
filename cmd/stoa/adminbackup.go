package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"stoa/node"
	"stoa/protocol"
)

type adminBackupCmd struct {
	File string `arg:"" optional:"" help:"Write it to this file, which must not exist. Without it: to backup-dir, as the node does each day, where old ones are deleted."`
	List bool   `help:"List the backups of backup-dir, and make none."`
}

func (c *adminBackupCmd) Run(w *world, all *adminCmd) error {
	switch {
	case c.List && c.File != "":
		return usagef("--list is of backup-dir; it takes no file")
	case c.List:
		return c.list(w, all)
	case c.File == "":
		return c.make(w, all)
	}
	if _, err := os.Stat(c.File); err == nil {
		return usagef("%s exists; name a new file", c.File)
	}
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		if err := a.Backup(ctx, all.Config, c.File, (&steps{w: w}).progress); err != nil {
			return err
		}
		fmt.Fprintf(w.stderr, "wrote %s; keep master.key, but in another place: the secrets in the backup cannot be decrypted without it\n", c.File)
		return nil
	})
}

func (c *adminBackupCmd) make(w *world, all *adminCmd) error {
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		s, err := a.BackUp(ctx, all.Config, newLogger(w.stderr, all.Config), (&steps{w: w}).progress)
		if err != nil {
			return err
		}
		checked := "read back"
		if s.Checked == s.Name {
			checked = "restored on trial"
		}
		made := struct {
			Name      string `json:"name"`
			Bytes     int64  `json:"bytes"`
			Rows      int64  `json:"rows"`
			Took      string `json:"took"`
			Encrypted bool   `json:"encrypted"`
			Checked   string `json:"checked"`
		}{s.Name, s.Bytes, s.Rows, (s.Took + s.CheckTook).Round(time.Millisecond).String(), s.Sealed, checked}
		return all.found(w, made)
	})
}

func (c *adminBackupCmd) list(w *world, all *adminCmd) error {
	_, found, err := node.Backups(w.ctx, all.Config, "")
	if err != nil {
		return err
	}
	var lines [][]string
	for _, f := range found {
		lines = append(lines, []string{f.Name, strconv.FormatInt(f.Size, 10)})
	}
	return all.rows(w, "name bytes", lines)
}

type adminRestoreCmd struct {
	From     string `arg:"" optional:"" help:"A file, a directory or s3://bucket/prefix/, of which the newest is taken. Default: backup-dir."`
	At       string `placeholder:"DATE" help:"Of a directory or bucket, the newest backup of that day (2026-11-20, UTC), or the one of that name."`
	Identity string `placeholder:"FILE" help:"The age identities that open an encrypted backup."`
	Profile  string `placeholder:"HANDLE" help:"Bring back this profile only, into the node, which may run."`
	Replace  bool   `help:"With profile: replace the one that is here."`
	Check    bool   `help:"Restore on trial: read, load and compare everything, and keep nothing."`
}

func (c *adminRestoreCmd) Run(w *world, all *adminCmd) error {
	shown := &steps{w: w}
	from := node.Source{From: c.From, Date: c.At, Identity: c.Identity, Progress: shown.progress, Read: shown.reads}
	switch {
	case c.Replace && c.Profile == "":
		return usagef("--replace is for --profile: a restored node takes the place of the one that is here in any case, which is kept")
	case c.Check && c.Profile != "":
		return usagef("--check is of the whole backup; leave --profile out")
	case c.Profile != "":
		handle := protocol.CleanHandle(c.Profile)
		if !protocol.IsHandle(handle) {
			return usagef("%s is not a handle", c.Profile)
		}
		return all.with(w, func(ctx context.Context, a *node.Admin) error {
			out, err := a.RestoreProfile(ctx, all.Config, from, handle, c.Replace)
			if err != nil {
				return err
			}
			return all.found(w, out)
		})
	case c.Check:
		out, err := node.TryRestore(w.ctx, all.Config, from)
		if err != nil {
			return err
		}
		return all.found(w, out)
	}
	out, err := node.Restore(w.ctx, all.Config, from, newLogger(w.stderr, all.Config))
	if err != nil {
		return err
	}
	if all.JSON {
		return printJSON(w.stdout, out)
	}
	return all.table(w, out, func(t io.Writer) {
		fmt.Fprintf(t, "restored %s from %s\n", out.Node, out.From)
		if out.Kept != "" {
			fmt.Fprintf(t, "the database of before is kept as %s; delete it when this one is right\n", out.Kept)
		}
		if out.Parts > 0 {
			fmt.Fprintf(t, "%d files of old posts were brought back\n", out.Parts)
		}
		for _, file := range out.Lacks {
			fmt.Fprintf(t, "bring back %s, which has the text of old posts: the node does not start without it\n", file)
		}
	})
}

// steps prints the steps of long work, each at most once a second: how much of it is done, how fast, and of a backup that is read, how
// much is read and how long that takes.
type steps struct {
	w           *world
	what        string
	began, told time.Time // of the step; of the last line
	first       int64     // done at the first line of the step
	read, of    int64     // of the backup, in bytes
	reading     time.Time // since when
}

// reads implements node.Source.Read.
func (s *steps) reads(read, of int64) {
	if s.reading.IsZero() {
		s.reading = time.Now()
	}
	s.read, s.of = read, of
}

func (s *steps) progress(what string, done int64) {
	now := time.Now()
	if what == s.what && now.Sub(s.told) < time.Second {
		return
	}
	if what != s.what {
		s.what, s.began, s.first = what, now, done
	}
	s.told = now
	line := what
	if done > 0 {
		line += fmt.Sprintf(" %d", done)
	}
	if spent := now.Sub(s.began).Seconds(); spent >= 1 && done > s.first {
		line += fmt.Sprintf(", %.0f a second", float64(done-s.first)/spent)
	}
	if s.read > 0 && s.read < s.of {
		line += fmt.Sprintf("; %d %% of the backup read, %s left", s.read*100/s.of,
			time.Duration(float64(now.Sub(s.reading))*float64(s.of-s.read)/float64(s.read)).Round(time.Second))
	}
	fmt.Fprintln(s.w.stderr, line)
}
