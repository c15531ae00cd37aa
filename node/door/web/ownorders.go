package web

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"stoa/protocol"
)

// The shop's pages of its orders, and of how it takes them.

const (
	ordersPath     = "/account/orders"
	orderTermsPath = "/account/orders/settings"
)

// orderStep is a form about an order; what it does is a field of its own, since "do" names the operation.
var orderStep = &formTable{op: protocol.UpdateOrder.Operation, controls: []control{
	line("step", noLabel).of("do"), line("utr", "Reference of the payment, 12 digits").with("inputmode", "numeric", "autocomplete", "off"),
	line("amount", "Amount in rupees; empty for all that is left"), line("note", "For the buyer"),
}}

var tillTable = &formTable{op: protocol.PutTill.Operation, controls: []control{
	tickBox("open", "Take orders"),
	group("How buyers get it", tickBox("delivery", "We deliver"), tickBox("pickup", "Buyers may fetch")),
	line("deliveryPrice", "Price of a delivery, in rupees"), line("freeFrom", "Delivery is free from this sum"),
	spelled(line("area", "PIN codes that you deliver to, or their first digits, separated by spaces; empty for all").upTo(400),
		func(list []string) string { return strings.Join(list, " ") }, func(text string) any { return strings.Fields(text) }),
	group("When they pay", tickBox("payOnDelivery", "On delivery is allowed"), tickBox("payAtPickup", "When they fetch is allowed")),
	box("note", "For buyers, before they pay"),
}}

var stockTable = &formTable{op: protocol.PutStock.Operation, controls: []control{
	line("variant", "SKU of the item, of a variant item/variant; or its id").of("").upTo(129).with("autocomplete", "off"),
	line("pieces", "Pieces that you have; empty: not counted").of("").upTo(7).with("inputmode", "numeric"),
}, finish: func(form url.Values, args map[string]any) {
	one := map[string]any{"id": form.Get("variant")}
	if text := strings.TrimSpace(form.Get("pieces")); text != "" {
		if one["pieces"] = text; len(text) < 8 {
			if n, err := strconv.Atoi(text); err == nil {
				one["pieces"] = n
			}
		}
	}
	args["stock"] = []any{one}
}}

func (a *account) readOrders(s *Web, r *http.Request) error {
	a.Sales = &sales{State: r.URL.Query().Get("state")}
	args := map[string]any{"handle": a.Handle}
	for _, name := range []string{"state", "from"} {
		if v := r.URL.Query().Get(name); v != "" {
			args[map[string]string{"state": "state", "from": "after"}[name]] = v
		}
	}
	var page protocol.Page[protocol.ShopOrder]
	if err := s.invokeSignedIn(r, protocol.ListOrders.Operation, args, &page); err != nil {
		return err
	}
	if a.Sales.Orders = page.Items; page.Next != nil {
		a.Sales.Next = ordersPath + "?" + query("handle", a.Handle) + "&" + query("state", a.Sales.State) + "&" + query("from", *page.Next)
	}
	var refunds protocol.Page[protocol.OwnRefund]
	err := s.invokeSignedIn(r, protocol.ListRefunds.Operation, map[string]any{"handle": a.Handle}, &refunds)
	a.Sales.Refunds = refunds.Items
	return err
}

// sales are the orders of a shop.
type sales struct {
	Orders  []protocol.ShopOrder
	Refunds []protocol.OwnRefund
	Next    string
	State   string
}

var orderFilters = [][2]string{{"", english("All")}, {"awaiting_payment", english("Not paid")}, {"paid", english("Paid")},
	{"fulfilled", english("Handed over")}, {"canceled", english("Canceled")}, {"refunded", english("Refunded")}}

// ownOrders is the list of a shop's orders, with what each waits for.
func ownOrders(a *account) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		list := all{inside("p", link(orderTermsPath+"?"+query("handle", a.Handle), "How you take orders, and where you are paid"))}
		for _, x := range a.Sales.Refunds {
			if x.State != "manual" && x.State != "failed" {
				continue
			}
			at := formID(protocol.MarkRefunded.Name, "", x.ID)
			list = append(list, inside(`article class="card"`, inside(`p class="meta"`, in(`span class="price"`, rupees(x.Amount)),
				spanned("refund, %s", tr(ctx, ownRefundStates[x.State]))), inside("p", spanned("Of the payment %s", code(x.PaymentRef))),
				posted("form", at, "/account", ownKeys(protocol.MarkRefunded.Name, a.Handle, x.ID),
					ask(protocol.MarkRefunded.Operation, a.sent(protocol.MarkRefunded.Name, a.Handle, x.ID), at, nil,
						remark("Send it back by hand, then enter the reference below."), line("reference", "Reference of your transfer")),
					sends("I have refunded it"))))
		}
		list = append(list, crumbs("States", choiceCrumbs(ctx, orderFilters, a.Sales.State, func(state string) string {
			return ordersPath + "?" + query("handle", a.Handle) + "&" + query("state", state)
		})...), when(len(a.Sales.Orders) == 0, empty("No such order yet.")))
		for _, o := range a.Sales.Orders {
			list = append(list, ownOrder(ctx, a, o))
		}
		if a.Sales.Next != "" {
			list = append(list, inside(`nav class="pager"`, linkAs(`class="on" rel="next"`, a.Sales.Next, "Older orders")))
		}
		return titled("orders", "Orders", list).Render(ctx, w)
	})
}

// ownOrder is one order with the forms for what comes next.
func ownOrder(ctx context.Context, a *account, o protocol.ShopOrder) templ.Component {
	f := a.sent(protocol.UpdateOrder.Name, a.Handle, o.ID)
	step := func(do, label, class string) templ.Component {
		return posted("", "", "/account", ownKeys(protocol.UpdateOrder.Name, a.Handle, o.ID), hidden("step", do),
			markup(`<button class="%s" type="submit">%s</button>`, class, tr(ctx, label)))
	}
	typed := func(do, button string, controls ...control) templ.Component {
		at := formID(protocol.UpdateOrder.Name+"-"+do, "", o.ID)
		return posted("form", at, "/account", ownKeys(protocol.UpdateOrder.Name, a.Handle, o.ID), hidden("step", do),
			ask(protocol.UpdateOrder.Operation, f, at, nil, controls...), sends(button))
	}
	later := o.State == protocol.OrderAwaiting && o.Pay == protocol.PayLater
	card := all{
		inside(`p class="meta"`, in(`span class="price"`, rupees(o.Total)), indianMoment(o.MadeAt), testMark(o.Test)),
		sayIn("p", ownOrderWord(o)), orderLines(o.Lines, o.Totals), orderBuyer(o),
	}
	if o.Claimed {
		card = append(card, inside("p", spanned("Look in your bank's app: has the payment %s arrived?", code(deref(o.UTR)))),
			inside(`div class="send"`, step("confirm", english("It has arrived"), ""), step("deny", english("It has not"), "quiet")))
	}
	if later || o.State == protocol.OrderPaid {
		over := step("delivered", english("Delivered##an order"), "")
		if o.Way == protocol.ByPickup {
			over = step("picked_up", english("Fetched##an order"), "")
		}
		card = append(card, inside(`div class="send"`, step("packed", english("Packed##an order"), "quiet"),
			when(o.Way == protocol.ByDelivery, step("sent", english("Sent##an order"), "quiet")), over, when(later, step("confirm", english("The money is here"), ""))))
	}
	if o.State == protocol.OrderAwaiting && o.Provider == string(protocol.PayUPI) && !o.Claimed {
		card = append(card, folded(f != nil, "It was paid all the same", typed("confirm", english("The money is here"), orderStep.controls[1])))
	}
	if o.State == protocol.OrderPaid || o.State == protocol.OrderFulfilled {
		card = append(card, folded(f != nil, "Send money back", typed("refund", english("Send it back"), orderStep.controls[2:]...)))
	}
	if o.State == protocol.OrderAwaiting || o.State == protocol.OrderPaid {
		card = append(card, folded(f != nil, "Cancel the order", typed("cancel", english("Cancel the order"), orderStep.controls[3])))
	}
	if r := o.Review; r != nil && r.Stars != nil {
		card = append(card, inside(`p class="meta"`, spanned("Review: %s", starsWords(ctx, *r)), reviewCounts(*r)),
			when(r.Text != "", inside(`div class="said"`, userText(r.Text))), reviewReplies(r.Replies),
			folded(f != nil, "Answer the review", typed("answer", english("Answer"), line("note", "Your answer, which everybody can read"))))
	}
	return inside(`article class="card" id="`+o.ID+`"`, append(card, orderHistory(o))...)
}

// ownOrderWord says what the state of an order means to its shop.
func ownOrderWord(o protocol.ShopOrder) string {
	switch {
	case o.Claimed:
		return english("The buyer says to have paid.")
	case o.State == protocol.OrderAwaiting && o.Pay == protocol.PayLater:
		return english("To be paid when you hand it over.")
	}
	return map[protocol.OrderState]string{protocol.OrderAwaiting: english("Not paid yet."), protocol.OrderPaid: english("Paid: hand it over."),
		protocol.OrderFulfilled: english("Paid, and handed over."), protocol.OrderCanceled: english("Canceled."),
		protocol.OrderIsRefunded: english("The money was sent back.")}[o.State]
}

// orderTermsBody is how a shop takes orders: its terms, what it has left, and where it is paid.
func orderTermsBody(a *account) templ.Component {
	pays, till := answer(a, protocol.GetPaymentAccount), answer(a, protocol.GetTill)
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		terms, paid := a.sent("put_till", a.Handle, ""), a.sent("put_payment_account", a.Handle, "")
		at, v := formID("put_till", a.Handle, ""), tillTable.shows(till)
		form := func(id, name, button string, in ...templ.Component) templ.Component {
			return posted("card form", id, orderTermsPath, append(append(all{ownKeys(name, a.Handle, "")}, in...), sends(button))...)
		}
		body := all{accountHead(a, "How you take orders, and where you are paid")}
		body = append(body, titled("terms", "How you take orders", when(!till.Taking, para("You take no orders now.")),
			form(at, "put_till", "Save", version(terms, v), tillTable.fields(terms, at, v))))
		at = formID("put_stock", a.Handle, "")
		body = append(body, titled("stock", "What you have left", form(at, "put_stock", "Save",
			hint("What is counted is held while a buyer pays, and cannot be sold twice. The id is on the page of your shop."),
			stockTable.fields(a.sent("put_stock", a.Handle, ""), at, nil))))
		at, v = formID("put_payment_account", a.Handle, ""), payTable.shows(pays)
		account := all{form(at, "put_payment_account", "Save the account", version(paid, v),
			para("Payers pay you directly; no money passes through this node."), payFields(ctx, pays).fields(paid, at, v))}
		if pays.WebhookURL != nil {
			account = append(account, hint("Webhook address for Razorpay: %s", code(*pays.WebhookURL)))
		}
		if pays.Provider != nil {
			account = append(account, posted("", "", orderTermsPath, ownKeys("delete_payment_account", a.Handle, ""), submitsQuietly("Delete the payment account")))
		}
		return append(body, titled("account", "Where you are paid", account...)).Render(ctx, w)
	})
}
