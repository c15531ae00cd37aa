package web

import (
	"context"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// ownRefusal says why a form was refused.
func ownRefusal(ctx context.Context, f *sent) string {
	if len(f.err.Faults) == 0 {
		return refusalText(ctx, f.err)
	}
	text := tr(ctx, "What you typed is kept; correct the marked fields.")
	for _, x := range f.stray {
		text += " " + sentence(x)
	}
	return text
}

// ownRefundStates say to the owner how far a refund is.
var ownRefundStates = map[string]string{
	"due": english("about to be ordered"), "ordered": english("at the payment provider"), "manual": english("to be sent by you"),
	"failed": english("the provider refused it; it is tried again"), "done": english("done##a refund"),
}

// backWords say what of a payment goes back.
func backWords(ctx context.Context, refunds []protocol.BidRefund) (text string) {
	for _, x := range refunds {
		text += "; " + tr(ctx, "%s back, %s", rupees(x.Amount), tr(ctx, ownRefundStates[x.State]))
	}
	return text
}

// oneTap is a form with one button. label is in the reader's language.
func oneTap(handle, do, label, id, class string) templ.Component {
	button := markup(`<button class="%s" type="submit">%s</button>`, class, label)
	return posted("", "", attentionPath, ownKeys(do, handle, id), button)
}

// bidAct is a form about a bid or a refund, with a button.
func bidAct(f *sent, op *protocol.Operation, handle, id, button string, controls ...control) templ.Component {
	at := formID(op.Name, "", id)
	return posted("form", at, attentionPath, ownKeys(op.Name, handle, id), ask(op, f, at, nil, controls...), sends(button))
}

// bidFilters are the states by which bids are listed.
var bidFilters = [][2]string{{"", english("All")}, {"live", english("Live")}, {"held", english("Not paid")}, {"claimed", english("To confirm")},
	{"refunding", english("Refunds")}}

// saveBoard is the key of the button.
func saveBoard(b protocol.OwnAttentionBoard) string {
	if b.Open {
		return english("Save the board")
	}
	return english("Open the board")
}

// payFields are the fields of a payment account, which say which secrets are stored.
func payFields(ctx context.Context, a protocol.PaymentAccount) *formTable {
	t := payTable.change("provider", func(c control) control {
		for _, p := range a.Providers {
			c.options = append(c.options, [2]string{string(p), providerWords[p]})
		}
		return c
	})
	keep := func(c control) control {
		c.label = tr(ctx, "%s; stored, leave empty to keep", tr(ctx, c.label))
		return c.verbatim()
	}
	if a.HasKeySecret {
		t = t.change("keySecret", keep)
	}
	if a.WebhookSecrets > 0 {
		t = t.change("webhookSecrets", keep)
	}
	return t
}

// providerWords name the payment providers.
var providerWords = map[protocol.PayName]string{
	protocol.PayUPI: english("UPI, confirmed by you"), protocol.PayRazorpay: english("Razorpay, by links of your account"),
	protocol.PaySandbox: english("Sandbox: TEST, no money moves"),
}
