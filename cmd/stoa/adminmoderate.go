package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"stoa/node"
	"stoa/protocol"
)

// operate does an operation and prints the result, if there is one.
func (c *adminCmd) operate(w *world, op *protocol.Operation, in any) error {
	return c.with(w, func(ctx context.Context, a *node.Admin) error {
		if op.Out == reflect.TypeFor[protocol.None]() {
			return a.Operate(ctx, op, in, nil)
		}
		var out json.RawMessage
		if err := a.Operate(ctx, op, in, &out); err != nil {
			return err
		}
		return c.found(w, out)
	})
}

// found prints a document as a table: one line per member that is not empty.
func (c *adminCmd) found(w *world, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.table(w, json.RawMessage(raw), func(t io.Writer) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		lines(d, t, "")
	})
}

// lines writes what a JSON value holds, in its order: "name<tab>value". What is
// null or empty is left out, of numbers too.
func lines(d *json.Decoder, t io.Writer, name string) {
	token, err := d.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			lines(d, t, strings.TrimPrefix(name+"."+fmt.Sprint(key), "."))
		}
		d.Token()
	case json.Delim('['):
		for i := 1; d.More(); i++ {
			lines(d, t, fmt.Sprintf("%s.%d", name, i))
		}
		d.Token()
	case nil, "", json.Number("0"):
	default:
		fmt.Fprintf(t, "%s\t%s\n", name, protocol.OneLine(fmt.Sprint(token)))
	}
}

type adminPostCmd struct {
	Hide    decided `cmd:"" op:"hide_post" help:"Hide a post from the public."`
	Restore decided `cmd:"" op:"restore_post" help:"Make a hidden post visible again; its earlier reporters cannot hide it again."`
	Dismiss decided `cmd:"" op:"dismiss_reports" help:"Keep a reported post visible; its reports so far no longer count."`
	Reopen  decided `cmd:"" op:"reopen_reports" help:"Undo dismiss: the post waits for a decision again, and its reports count."`
	Delete  decided `cmd:"" op:"remove_post" help:"Delete a post for good."`
	Forward forward `cmd:"" op:"forward_report" help:"Report a post of another server to the operators there, in the name of the node."`
}

type forward struct {
	byID
	Comment string `json:"comment,omitempty" help:"What is wrong with it, for the operators there."`
}

// decided are the arguments of a decision about a post.
type decided struct {
	byID
	Why  string `json:"reason,omitempty" help:"Reason, for the author and the public moderation log."`
	Note string `json:"note,omitempty" help:"Note, for the operators only."`
}

type adminBlockCmd struct {
	Add  blockAddCmd  `cmd:"" help:"Block a value, or the writer of a post."`
	List blockListing `cmd:"" op:"list_node_blocks" help:"The blocks in force, newest first."`
	Lift byID         `cmd:"" op:"lift_node_block" help:"End a block."`
}

type blockAddCmd struct {
	Kind  string        `arg:"" optional:"" help:"agent, key, network, host, handle or actor. Default with --post: the most specific kind that is known of its writer."`
	Value string        `arg:"" optional:"" help:"Chain identity, thumbprint, host, handle or actor; for a network an address in it, or its keyed hash."`
	Post  string        `help:"Block the writer of this post."`
	For   time.Duration `help:"How long, in whole hours such as 72h. Default: until it is lifted."`
	Why   string        `help:"Reason, for the blocked writer and the public moderation log."`
	Note  string        `help:"Note, for the operators only."`
}

func (c *blockAddCmd) Run(w *world, all *adminCmd) error {
	if c.For%time.Hour != 0 {
		return usagef("--for must be whole hours, such as 72h")
	}
	return all.operate(w, protocol.AddBlock.Operation, protocol.NewNodeBlock{
		Kind: protocol.BlockKind(c.Kind), Value: c.Value, Post: c.Post, Reason: c.Why, Note: c.Note, Hours: int(c.For / time.Hour),
	})
}

type adminLimitCmd struct {
	Show  act         `cmd:"" op:"read_limits" help:"The limits in force."`
	Set   limitSetCmd `cmd:"" help:"Change limits; a running node applies them within two seconds."`
	Reset act         `cmd:"" op:"reset_limits" help:"Set all limits to the values of the configuration."`
}

type limitSetCmd struct {
	Limits []string `arg:"" help:"read-rate=N write-rate=N identity-rate=N (a second), proof-level=0..7."`
}

func (c *limitSetCmd) Run(w *world, all *adminCmd) error {
	in := map[string]any{}
	for _, limit := range c.Limits {
		name, text, _ := strings.Cut(limit, "=")
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return usagef("%q is not like read-rate=20", limit)
		}
		member, ok := map[string]string{"read-rate": "readRate", "write-rate": "writeRate", "identity-rate": "identityRate", "proof-level": "proofLevel"}[name]
		if !ok {
			return usagef("there is no limit %q: read-rate, write-rate, identity-rate, proof-level", name)
		}
		in[member] = v
	}
	return all.operate(w, protocol.SetLimits.Operation, in)
}

type adminNoteCmd struct {
	Add    noteAddCmd  `cmd:"" help:"Add a note about a subject."`
	List   noteListing `cmd:"" op:"list_moderation_notes" help:"Notes, newest first."`
	Delete byID        `cmd:"" op:"delete_moderation_note" help:"Delete a note."`
}

type noteAddCmd struct {
	Subject string   `arg:"" help:"The id of a post or block, a handle, a host, …"`
	Text    []string `arg:""`
}

func (c *noteAddCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.AddNote.Operation, protocol.NewNote{Subject: c.Subject, Text: strings.Join(c.Text, " ")})
}
