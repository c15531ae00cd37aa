package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/node"
	"stoa/protocol"
)

// operate invokes one of the operator's operations and prints the result.
func (c *adminCmd) operate(w *world, op *protocol.Operation, in any) error {
	return c.with(w, func(ctx context.Context, a *node.Admin) error {
		if op.HTTP.Status == 204 {
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

// list prints a page as lines of a table, and how to get the next page.
func list[T any](c *adminCmd, w *world, op *protocol.Operation, in any, line func(T) string) error {
	return c.with(w, func(ctx context.Context, a *node.Admin) error {
		var page protocol.Page[T]
		if err := a.Operate(ctx, op, in, &page); err != nil {
			return err
		}
		err := c.table(w, page, func(t io.Writer) {
			for _, item := range page.Items {
				fmt.Fprintln(t, line(item))
			}
		})
		if err != nil {
			return err
		}
		more(w.stderr, len(page.Items), page.Next)
		return nil
	})
}

func more(w io.Writer, n int, next *string) {
	if n == 0 {
		fmt.Fprintln(w, "nothing")
	}
	if next != nil {
		fmt.Fprintf(w, "more: --after %s\n", *next)
	}
}

// paged are the flags of a listing.
type paged struct {
	Limit int    `default:"50" help:"How many, 1 to 100."`
	After string `help:"Next page."`
}

func (p paged) paging() protocol.Paging { return protocol.Paging{Limit: p.Limit, After: p.After} }

type adminQueueCmd struct {
	State string `default:"waiting" enum:"waiting,reported,hidden" help:"waiting: posts without a decision, both visible posts with open reports and posts that reports have hidden. reported: the visible ones of them. hidden: every hidden post."`
	paged
}

func (c *adminQueueCmd) Run(w *world, all *adminCmd) error {
	in := protocol.ReviewQuery{State: protocol.ReviewState(c.State), Paging: c.paging()}
	return list(all, w, protocol.ListReviewQueue.Operation, in, func(i protocol.ReviewItem) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", i.Post.ID, i.State, plural(i.Open, "open report"), i.Post.Author.Name, protocol.OneLine(i.Post.Title), why(i))
	})
}

// why returns what is said against a post: the reason of its state, otherwise the newest report.
func why(i protocol.ReviewItem) string {
	if i.Reason == "" && len(i.Reports) > 0 {
		return protocol.OneLine(i.Reports[0].Reason)
	}
	return protocol.OneLine(i.Reason)
}

type adminPostCmd struct {
	Hide    postHideCmd    `cmd:"" help:"Hide a post from the public."`
	Restore postRestoreCmd `cmd:"" help:"Make a hidden post visible again; its earlier reporters cannot hide it again."`
	Dismiss postDismissCmd `cmd:"" help:"Keep a reported post visible; its reports so far no longer count."`
	Reopen  postReopenCmd  `cmd:"" help:"Undo dismiss: the post waits for a decision again, and its reports count."`
	Delete  postDeleteCmd  `cmd:"" help:"Delete a post for good."`
}

// decided are the arguments of a decision about a post.
type decided struct {
	ID   string `arg:""`
	Why  string `help:"Reason, for the author and the public moderation log."`
	Note string `help:"Note, for the operators only."`
}

func (d decided) input() protocol.Decision {
	return protocol.Decision{ID: d.ID, Reason: d.Why, Note: d.Note}
}

type (
	postHideCmd    struct{ decided }
	postRestoreCmd struct{ decided }
	postDismissCmd struct{ decided }
	postReopenCmd  struct{ decided }
	postDeleteCmd  struct{ decided }
)

func (c *postHideCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.HidePost.Operation, c.input())
}

func (c *postRestoreCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.RestorePost.Operation, c.input())
}

func (c *postDismissCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.DismissReports.Operation, c.input())
}

func (c *postReopenCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.ReopenReports.Operation, c.input())
}

func (c *postDeleteCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.RemovePost.Operation, c.input())
}

type adminBlockCmd struct {
	Add  blockAddCmd  `cmd:"" help:"Block a value, or the writer of a post."`
	List blockListCmd `cmd:"" help:"The blocks in force, newest first."`
	Lift blockLiftCmd `cmd:"" help:"End a block."`
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

type blockListCmd struct {
	Kind string `help:"Only blocks of this kind."`
	paged
}

func (c *blockListCmd) Run(w *world, all *adminCmd) error {
	in := protocol.NodeBlockQuery{Kind: protocol.BlockKind(c.Kind), Paging: c.paging()}
	return list(all, w, protocol.ListBlocks.Operation, in, func(b protocol.Block) string {
		until := "-"
		if b.ExpiresAt != nil {
			until = b.ExpiresAt.Format(time.RFC3339)
		}
		return fmt.Sprintf("%s\t%s\t%s\tuntil %s\t%s", b.ID, b.Kind, b.Value, until, b.Reason)
	})
}

type blockLiftCmd struct {
	ID string `arg:""`
}

func (c *blockLiftCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.LiftBlock.Operation, protocol.NodeBlockRef{ID: c.ID})
}

type adminLimitCmd struct {
	Show  limitShowCmd  `cmd:"" help:"The limits in force."`
	Set   limitSetCmd   `cmd:"" help:"Change limits; a running node applies them within two seconds."`
	Reset limitResetCmd `cmd:"" help:"Set all limits to the values of the configuration."`
}

type limitShowCmd struct{}

func (c *limitShowCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.ReadLimits.Operation, protocol.None{})
}

type limitSetCmd struct {
	Limits map[string]float64 `arg:"" help:"read-rate=N write-rate=N identity-rate=N (a second), proof-level=0..7."`
}

func (c *limitSetCmd) Run(w *world, all *adminCmd) error {
	in := map[string]any{}
	for name, v := range c.Limits {
		member, ok := map[string]string{"read-rate": "readRate", "write-rate": "writeRate", "identity-rate": "identityRate", "proof-level": "proofLevel"}[name]
		if !ok {
			return usagef("there is no limit %q: read-rate, write-rate, identity-rate, proof-level", name)
		}
		in[member] = v
	}
	return all.operate(w, protocol.SetLimits.Operation, in)
}

type limitResetCmd struct{}

func (c *limitResetCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.ResetLimits.Operation, protocol.None{})
}

type adminNoteCmd struct {
	Add    noteAddCmd    `cmd:"" help:"Add a note about a subject."`
	List   noteListCmd   `cmd:"" help:"Notes, newest first."`
	Delete noteDeleteCmd `cmd:"" help:"Delete a note."`
}

type noteAddCmd struct {
	Subject string   `arg:"" help:"The id of a post or block, a handle, a host, …"`
	Text    []string `arg:""`
}

func (c *noteAddCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.AddNote.Operation, protocol.NewNote{Subject: c.Subject, Text: strings.Join(c.Text, " ")})
}

type noteListCmd struct {
	Subject string `arg:"" optional:""`
	paged
}

func (c *noteListCmd) Run(w *world, all *adminCmd) error {
	in := protocol.NoteQuery{Subject: c.Subject, Paging: c.paging()}
	return list(all, w, protocol.ListNotes.Operation, in, func(n protocol.ModerationNote) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", n.ID, n.At.Format(time.RFC3339), n.Actor, n.Subject, protocol.OneLine(n.Text))
	})
}

type noteDeleteCmd struct {
	ID string `arg:""`
}

func (c *noteDeleteCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.DeleteNote.Operation, protocol.NoteRef{ID: c.ID})
}

type adminStatsCmd struct{}

func (c *adminStatsCmd) Run(w *world, all *adminCmd) error {
	return all.operate(w, protocol.ReadStatistics.Operation, protocol.None{})
}

type adminLogCmd struct{ paged }

func (c *adminLogCmd) Run(w *world, all *adminCmd) error {
	return list(all, w, protocol.ReadModerationLog.Operation, protocol.LogQuery{Paging: c.paging()}, func(e protocol.ModerationEntry) string {
		subject := "-"
		if e.Subject != nil {
			subject = *e.Subject
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.At.Format(time.RFC3339), e.Action, e.Kind, subject, protocol.OneLine(e.Reason))
	})
}

type adminAuditCmd struct{ paged }

func (c *adminAuditCmd) Run(w *world, all *adminCmd) error {
	return list(all, w, protocol.ReadAudit.Operation, protocol.AuditQuery{Paging: c.paging()}, func(e protocol.AuditEntry) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.At.Format(time.RFC3339), e.Actor, e.Action, e.Subject, protocol.OneLine(e.Detail))
	})
}
