package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/identity/erc8004"
)

type identityWatchCmd struct {
	readFlags
	Every      time.Duration `default:"12s" help:"Pause between looks at the chain, at least 100ms."`
	UntilFinal bool          `help:"End when nothing that is pending is left; exit status 4 when it is interrupted before."`
	Identity   string        `arg:"" help:"eip155:<chainId>:<registry>:<agentId>"`
}

func (c *identityWatchCmd) Help() string {
	return "Prints owner, wallet, keys and URI, and each change: as pending, then as final, or as reverted by a reorganisation of the chain; with --json one " +
		"object a line. It ends when it is interrupted, with exit status 0."
}

// sighting is a line of identity watch --json.
type sighting struct {
	At      time.Time     `json:"at"`
	Event   string        `json:"event"` // now, changed, final, reorganised, unreadable
	Changed []string      `json:"changed,omitempty"`
	Now     *identityView `json:"now,omitempty"`
	Error   string        `json:"error,omitempty"`
}

func (c *identityWatchCmd) Run(w *world) error {
	if c.Every < 100*time.Millisecond {
		return usagef("--every is at least 100ms")
	}
	chain, reader, err := c.open(c.Every)
	if err != nil {
		return err
	}
	id, err := only(chain, c.Identity)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); reader.Run(ctx) }()
	defer func() { cancel(); <-done }()
	final := false
	err = reader.Follow(ctx, id, c.Every, func(s erc8004.Sight) bool {
		line := sighting{At: time.Now().UTC(), Event: s.Kind, Changed: s.Changed}
		if s.Err != nil {
			line.Error = s.Err.Error()
		} else {
			v := viewOf(s.Overview)
			line.Now = &v
			final = !v.Pending
		}
		if c.JSON {
			json.NewEncoder(w.stdout).Encode(line)
		} else {
			line.print(w.stdout)
		}
		return !c.UntilFinal || !final
	})
	switch {
	case err == nil || w.ctx.Err() != nil && !c.UntilFinal:
		return nil
	case w.ctx.Err() != nil && !final:
		return undecided{errors.New("interrupted while a change was pending")}
	}
	return err
}

func (s sighting) print(w io.Writer) {
	at := s.At.Format(time.TimeOnly)
	switch changed := strings.Join(s.Changed, ", "); {
	case s.Error != "":
		fmt.Fprintf(plain{w}, "%s  unreadable: %s\n", at, s.Error)
		return
	case s.Event == erc8004.SightFinal:
		fmt.Fprintf(w, "%s  final: block %d\n", at, s.Now.Block)
		return
	case s.Event == erc8004.SightReorganised && changed == "":
		fmt.Fprintf(w, "%s  the chain was reorganised; the identity is as it was\n", at)
	case s.Event == erc8004.SightReorganised:
		fmt.Fprintf(w, "%s  the chain was reorganised, and changed: %s\n", at, changed)
	case changed != "":
		fmt.Fprintf(w, "%s  changed: %s\n", at, changed)
	default:
		fmt.Fprintf(w, "%s\n", at)
	}
	s.Now.print(w)
}
