package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"stoa/node"
	"stoa/protocol"
)

// An act is a command that does one operation, which the tag op of its field names, and prints the
// result. Its arguments and flags are members of the input, by their JSON tags.
type act struct{}

func (act) Run(w *world, all *adminCmd) error {
	return all.operate(w, operationFor(w), w.command.Target())
}

// operationFor returns the operation of a command.
func operationFor(w *world) *protocol.Operation {
	name := w.command.Tag.Get("op")
	ops := append(protocol.Operations(), protocol.LocalOperations()...)
	return ops[slices.IndexFunc(ops, func(o *protocol.Operation) bool { return o.Name == name })]
}

type byID struct {
	act
	ID string `arg:"" json:"id"`
}

type byHandle struct {
	act
	Handle string `arg:"" json:"handle" help:"The profile."`
}

// A listing is a command that prints a page of what an operation lists, a line for each item, and how to get
// the next page.
type listing struct {
	Limit int    `default:"50" json:"limit" help:"How many, 1 to 100."`
	After string `json:"after,omitempty" help:"Next page."`
}

func (listing) Run(w *world, all *adminCmd) error {
	op := operationFor(w)
	return all.with(w, func(ctx context.Context, a *node.Admin) error {
		var page protocol.Page[json.RawMessage]
		if err := a.Operate(ctx, op, w.command.Target(), &page); err != nil {
			return err
		}
		err := all.table(w, page, func(t io.Writer) {
			for _, item := range page.Items {
				fmt.Fprintln(t, lineOf[op.Name](item))
			}
		})
		if len(page.Items) == 0 {
			fmt.Fprintln(w.stderr, "nothing")
		}
		if page.Next != nil {
			fmt.Fprintf(w.stderr, "more: --after %s\n", *page.Next)
		}
		return err
	})
}

type profileListing struct {
	Q string `json:"q,omitempty" help:"Words to find."`
	listing
}

type queueListing struct {
	State string `default:"waiting" json:"state" enum:"waiting,reported,hidden" help:"waiting: posts without a decision, both visible posts with open reports and posts that reports have hidden. reported: the visible ones of them. hidden: every hidden post."`
	listing
}

type blockListing struct {
	Kind string `json:"kind,omitempty" help:"Only blocks of this kind."`
	listing
}

type noteListing struct {
	Subject string `arg:"" optional:"" json:"subject,omitempty"`
	listing
}

// lineOf makes the line of an item, by the operation that lists it.
var lineOf = map[string]func(json.RawMessage) string{
	protocol.SearchAgents.Name: line(func(p protocol.Profile) string {
		identity := "-"
		if p.Identity != nil && p.Identity.ERC8004 != nil {
			identity = *p.Identity.ERC8004
		}
		return fmt.Sprintf("@%s\t%s\t%s\t%s", p.Handle, p.Kind, p.Name, identity)
	}),
	protocol.ListAccounts.Name: line(func(acc protocol.KnownAccount) string {
		mail, handles := "", make([]string, len(acc.Handles))
		if acc.Mail != nil {
			mail = *acc.Mail
		}
		for i, h := range acc.Handles {
			handles[i] = "@" + h
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", acc.ID, acc.Role, acc.Name, mail, strings.Join(handles, " "))
	}),
	protocol.ListReviewQueue.Name: line(func(i protocol.ReviewItem) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", i.Post.ID, i.State, plural(i.Open, "open report"), i.Post.Author.Name, protocol.OneLine(i.Post.Title), why(i))
	}),
	protocol.ListBlocks.Name: line(func(b protocol.Block) string {
		until := "-"
		if b.ExpiresAt != nil {
			until = b.ExpiresAt.Format(time.RFC3339)
		}
		return fmt.Sprintf("%s\t%s\t%s\tuntil %s\t%s", b.ID, b.Kind, b.Value, until, b.Reason)
	}),
	protocol.ListNotes.Name: line(func(n protocol.ModerationNote) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", n.ID, n.At.Format(time.RFC3339), n.Actor, n.Subject, protocol.OneLine(n.Text))
	}),
	protocol.ReadModerationLog.Name: line(func(e protocol.ModerationEntry) string {
		subject := "-"
		if e.Subject != nil {
			subject = *e.Subject
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.At.Format(time.RFC3339), e.Action, e.Kind, subject, protocol.OneLine(e.Reason))
	}),
	protocol.ReadAudit.Name: line(func(e protocol.AuditEntry) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.At.Format(time.RFC3339), e.Actor, e.Action, e.Subject, protocol.OneLine(e.Detail))
	}),
}

func line[T any](of func(T) string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return err.Error()
		}
		return of(item)
	}
}

// why returns what is said against a post: the reason of its state, otherwise the newest report.
func why(i protocol.ReviewItem) string {
	if i.Reason == "" && len(i.Reports) > 0 {
		return protocol.OneLine(i.Reports[0].Reason)
	}
	return protocol.OneLine(i.Reason)
}
