package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"stoa/node/out/mail"
)

type adminMailCmd struct {
	Check mailCheckCmd `cmd:"" help:"Compare the DNS records for mail (SPF, DKIM, DMARC) with the settings, and print those to add."`
	Key   mailKeyCmd   `cmd:"" help:"Make a key for dkim-key."`
}

type mailCheckCmd struct{}

func (c *mailCheckCmd) Help() string {
	return "Takes the settings of mail as serve does (smtp, mail-from, dkim-key, dkim-selector). Asks the DNS and nothing else. Fails when a record needs work."
}

// mailCheckTime is for all questions to the DNS.
const mailCheckTime = 30 * time.Second

func (c *mailCheckCmd) Run(w *world, all *adminCmd) error {
	ctx, cancel := context.WithTimeout(w.ctx, mailCheckTime)
	defer cancel()
	records, err := all.CheckMail(ctx, net.DefaultResolver.LookupTXT)
	if err != nil {
		return err
	}
	if err := all.mailRecords(w, records); err != nil {
		return err
	}
	for _, r := range records {
		if r.Fault != "" {
			return fmt.Errorf("%s: %s", r.Purpose, r.Fault)
		}
	}
	return nil
}

// mailRecords prints a record as its state and, where there is one, the line for the DNS.
func (c *adminCmd) mailRecords(w *world, records []mail.Record) error {
	items := []map[string]any{}
	for _, r := range records {
		item := map[string]any{"purpose": r.Purpose, "name": r.Name, "found": append([]string{}, r.Found...), "fault": r.Fault}
		if r.Want != "" {
			item["line"] = r.Line()
		}
		items = append(items, item)
	}
	return c.table(w, map[string]any{"items": items}, func(t io.Writer) {
		for _, r := range records {
			state := "ok"
			if r.Fault != "" {
				state = r.Fault
			}
			fmt.Fprintf(t, "%s\t%s\n", r.Purpose, state)
			if r.Want != "" {
				fmt.Fprintf(t, "\t%s\n", r.Line())
			}
		}
	})
}

type mailKeyCmd struct {
	File string `arg:"" help:"File to write, which must not exist."`
}

func (c *mailKeyCmd) Run(w *world, all *adminCmd) error {
	if err := mail.WriteKey(c.File); err != nil {
		return err
	}
	return all.line(w, "key", c.File)
}
