package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"stoa/protocol"
)

type adminMoneyCmd struct {
	Trace moneyTraceCmd `cmd:"" help:"Print the life of a payment, and what has to happen next."`
}

type moneyTraceCmd struct {
	ID string `arg:"" help:"A bid_, pay_ or rfd_ id, the bank's reference (UTR), or the provider's id of a payment, refund or event."`
}

func (c *moneyTraceCmd) Run(w *world, all *adminCmd) error {
	return do(w, all, protocol.TracePayment, protocol.TraceQuery{ID: c.ID}, func(found protocol.MoneyTraces) error {
		return all.table(w, found, func(t io.Writer) {
			for _, x := range found.Items {
				if x.BidID == "" {
					fmt.Fprintf(t, "an event of no bid\t@%s\t%s\n", x.Handle, x.Provider)
				} else {
					fmt.Fprintf(t, "%s\t%s\t@%s\t%s\t%s %s by %s\n", x.BidID, x.State, x.Handle, x.Provider, x.Amount.Currency, x.Amount.Amount, x.Bidder)
				}
				moneySteps(t, "", x.Steps)
				moneySteps(t, "next: ", x.Next)
			}
		})
	})
}

// moneySteps prints steps, each on a line.
func moneySteps(t io.Writer, before string, steps []protocol.MoneyStep) {
	for _, s := range steps {
		at, words := "-", []string{before + s.What}
		if s.At != nil {
			at = s.At.Format(time.RFC3339)
		}
		if s.Amount != nil {
			words = append(words, s.Amount.Currency+" "+s.Amount.Amount)
		}
		if s.Note != "" {
			words = append(words, "("+s.Note+")")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", at, strings.Join(words, " "), strings.TrimSpace(s.Reference+" "+s.ID))
	}
}
