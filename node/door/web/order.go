package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"stoa/node/door/web/words"
	"stoa/node/hall"
	"stoa/protocol"
)

// The pages of a buyer: a permalink leads to a form with the basket's prices of now, and the form to the page of the order. The address
// of that contains its secret. Nothing is ordered by opening an address, and nothing needs a script.

const (
	newOrderPath = "/order/new"
	orderPath    = "/order/{token}"
)

// takesOrders reports whether a shop takes orders now.
func (s *Web) takesOrders(ctx context.Context, m protocol.Merchant) bool {
	if len(m.Items) == 0 || len(m.Items[0].Variants) == 0 {
		return false
	}
	raw, err := json.Marshal(protocol.Basket{Items: []protocol.BasketItem{{ID: m.Items[0].Variants[0].ID, Quantity: 1}}})
	if err != nil {
		return false
	}
	res, err := s.Table.Invoke(ctx, hall.Request{Op: protocol.QuoteOrder.Name, Args: raw, Door: "page"})
	q, ok := res.Value.(protocol.BasketQuote)
	return err == nil && ok && q.Till.Taking
}

// pieces are the fields of the form "basket" for the variants of an item that can be ordered.
func pieces(i protocol.Item) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		fields := all{}
		for _, v := range i.Variants {
			if v.Price == nil || v.Price.Currency != protocol.Rupee || v.Availability == protocol.OutOfStock || v.Availability == protocol.Discontinued {
				continue
			}
			fields = append(fields, markup(`<div class="field"><label for="n-%[1]s">%[2]s</label>`+
				`<input id="n-%[1]s" name="%[1]s" form="basket" type="number" min="0" max="999" inputmode="numeric"></div>`,
				v.ID, tr(ctx, "Pieces of %s", v.Title)))
		}
		return fields.Render(ctx, w)
	})
}

// chosen is the basket of the form of a shop's page: the number of pieces by the id of the variant.
func chosen(form url.Values) (b protocol.Basket) {
	for _, id := range slices.Sorted(maps.Keys(form)) {
		if n := strings.TrimSpace(form.Get(id)); protocol.IsID(protocol.VariantID, id) && strings.Trim(n, "0") != "" {
			if pieces, err := strconv.Atoi(n); err == nil {
				b.Items = append(b.Items, protocol.BasketItem{ID: id, Quantity: pieces})
			}
		}
	}
	return b
}

// openedOrder leads a browser from the address that a payment provider returns to, which has the order's id, to its page.
var openedOrder = opened{"stoa_order", "/order/", "token", "token", 7}

func (s *Web) orderRoutes() []Route {
	return []Route{
		{Pattern: protocol.BuyPath + "/:items", Handler: http.HandlerFunc(s.permalink)},
		{Pattern: newOrderPath, Handler: http.HandlerFunc(s.newOrderPage)},
		s.forms(newOrderPath, s.newOrderForm, protocol.MakeOrder.Operation),
		{Pattern: protocol.CheckoutPath + ":token", Handler: http.HandlerFunc(s.checkoutPage)},
		{Pattern: "/order/:token", Handler: http.HandlerFunc(s.orderPage)},
		s.forms("/order/:token", s.orderPageForm, protocol.CancelOrder.Operation, protocol.ConfirmOrderMail.Operation, protocol.ReviewOrder.Operation),
	}
}

// permalink leads to the form with a basket (UCP dev.ucp.shopping.permalink). An id may be written as ~ and base64url.
func (s *Web) permalink(w http.ResponseWriter, r *http.Request) {
	b, err := protocol.ParseBasket(r.PathValue("items"))
	for i, x := range b.Items {
		if coded, is := strings.CutPrefix(x.ID, "~"); is && err == nil {
			var raw []byte
			raw, err = base64.RawURLEncoding.Strict().DecodeString(coded)
			if b.Items[i].ID = string(raw); err != nil || !utf8.Valid(raw) || strings.ContainsFunc(string(raw), unicode.IsControl) {
				err = protocol.Errorf(protocol.InvalidRequest, "the id %s of this address is not base64url of a text", x.ID)
			}
		}
	}
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	redirect(w, r, newOrderPath+"?"+url.Values{"items": {b.String()}}.Encode())
}

func (s *Web) newOrderPage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if b := chosen(query); len(b.Items) > 0 {
		redirect(w, r, newOrderPath+"?"+url.Values{"items": {b.String()}}.Encode())
		return
	}
	s.showNewOrder(w, r, query.Get("items"), nil)
}

// checkoutPage is where a person takes over the basket of a platform of UCP: the form of an order, with what the platform said.
func (s *Web) checkoutPage(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	var c protocol.Checkout
	if err := s.invokeOpen(r, protocol.ReadCheckout.Operation, map[string]any{"token": token}, &c); err != nil {
		s.failSecret(w, r, err)
		return
	}
	if c.Order != "" {
		redirect(w, r, "/order/"+c.Order)
		return
	}
	s.showCheckout(w, r, c, token, nil)
}

func (s *Web) showCheckout(w http.ResponseWriter, r *http.Request, c protocol.Checkout, token string, f *sent) {
	var b protocol.Basket
	for _, l := range c.Lines {
		b.Items = append(b.Items, protocol.BasketItem{ID: l.Item.ID, Quantity: int(l.Quantity.Total)})
	}
	body := newOrderBody(c.BasketQuote, b, handoff{token, c}, f)
	if c.Status == protocol.CheckoutCanceled {
		body = all{title("Your order"), para("This basket was canceled, or waited too long. Nothing was ordered."),
			when(c.Handle != "", inside("p", link("/@"+c.Handle, "Back to the shop")))}
	}
	s.writePrivate(w, r, f.status(), view{Title: tr(r.Context(), "Your order"), Path: protocol.CheckoutPath + "{token}", Secret: true, Body: body})
}

// A handoff is the checkout that an order begins with; the zero value is none.
type handoff struct {
	token string
	protocol.Checkout
}

// shown is what the form of the order holds at first.
func (h handoff) shown() url.Values {
	b := h.Buyer
	v := url.Values{"name": {strings.TrimSpace(b.First + " " + b.Last)}, "mail": {b.Mail}, "phone": {b.Phone}, "street": {b.Street}, "pin": {b.PIN}}
	v.Set("pay", protocol.PayNow)
	if h.Pay != "" {
		v.Set("pay", h.Pay)
	}
	return v
}

// showNewOrder shows the form of a basket; f is the one that was refused.
func (s *Web) showNewOrder(w http.ResponseWriter, r *http.Request, items string, f *sent) {
	b, err := protocol.ParseBasket(items)
	var q protocol.BasketQuote
	if err == nil {
		err = s.invokeOpen(r, protocol.QuoteOrder.Operation, b, &q)
	}
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.writePrivate(w, r, f.status(), view{Title: tr(r.Context(), "Your order"), Path: newOrderPath, Body: newOrderBody(q, b, handoff{}, f)})
}

// newOrderForm takes the form: it makes the order and leads to its page.
func (s *Web) newOrderForm(w http.ResponseWriter, r *http.Request) {
	if err := s.parseForm(w, r); err != nil {
		s.Fail(w, r, err)
		return
	}
	f, form := newSent(r.PostForm), r.PostForm
	args := f.args("name", "mail", "phone", "street", "pin", "note", "way", "pay", "total", "client", "checkout")
	b, err := protocol.ParseBasket(form.Get("items"))
	args["items"], args["language"] = b.Items, words.Of(r.Context()).Code
	if args["way"] == protocol.ByDelivery {
		delete(args, "total") // the form shows that of the items; the page of the order says what it costs before it is paid
	}
	var made protocol.MadeOrder
	if err == nil {
		err = s.invokeForm(r, protocol.MakeOrder.Operation, args, &made)
	}
	if err != nil {
		f.refuse(r.Context(), protocol.AsError(err))
		var c protocol.Checkout
		if token := form.Get("checkout"); token != "" && s.invokeOpen(r, protocol.ReadCheckout.Operation, map[string]any{"token": token}, &c) == nil {
			s.showCheckout(w, r, c, token, f)
			return
		}
		s.showNewOrder(w, r, form.Get("items"), f)
		return
	}
	s.open(w, openedOrder, made.Order.ID, made.Token)
	redirect(w, r, "/order/"+made.Token)
}

func (s *Web) orderPage(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	if protocol.IsID(protocol.OrderID, token) { // where a payment provider returns to, and the permalink of platforms
		if c, err := r.Cookie(openedOrder.cookie); err == nil {
			redirect(w, r, "/order/"+url.PathEscape(c.Value))
			return
		}
		s.writePrivate(w, r, http.StatusNotFound, view{Title: tr(r.Context(), "Your order"), Path: orderPath, Secret: true, Body: all{title("Your order"),
			para("An order opens in the browser in which it was made, or by the address that its page says to keep.")}})
		return
	}
	var o protocol.ShopOrder
	if err := s.invokeOpen(r, protocol.ReadOrder.Operation, map[string]any{"token": token}, &o); err != nil {
		s.failSecret(w, r, err)
		return
	}
	s.showOrder(w, r, o, token, nil, nil)
}

func (s *Web) orderPageForm(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	err := s.parseForm(w, r)
	var f *sent
	if err == nil {
		args := map[string]any{"token": token}
		op := protocol.CancelOrder.Operation
		switch r.PostForm.Get("do") {
		case protocol.ConfirmOrderMail.Name:
			op, args["ticket"] = protocol.ConfirmOrderMail.Operation, r.PostForm.Get("ticket")
		case protocol.ReviewOrder.Name:
			f = newSent(r.PostForm)
			op = protocol.ReviewOrder.Operation
			if args = inputOf(op, r.PostForm); r.PostForm.Get("withdraw") != "" {
				args["withdraw"] = true
			}
			args["token"] = token
		}
		err = s.invokeOpen(r, op, args, nil)
	}
	if err == nil {
		redirect(w, r, "/order/"+token)
		return
	}
	if f != nil {
		f.refuse(r.Context(), protocol.AsError(err))
	}
	var o protocol.ShopOrder
	if s.invokeOpen(r, protocol.ReadOrder.Operation, map[string]any{"token": token}, &o) != nil {
		s.failSecret(w, r, err)
		return
	}
	s.showOrder(w, r, o, token, protocol.AsError(err), f)
}

// showOrder shows the page of an order; f is a review that was refused.
func (s *Web) showOrder(w http.ResponseWriter, r *http.Request, o protocol.ShopOrder, token string, refused *protocol.Error, f *sent) {
	v := view{Title: tr(r.Context(), "Your order"), Path: orderPath, Secret: true, Helps: true,
		Body: orderBody(o, token, s.Base, r.URL.Query().Get("mail"), refused, f)}
	if o.State == protocol.OrderAwaiting && o.Pay == protocol.PayNow {
		v.Refresh = 30
	}
	status := 0
	if refused != nil {
		status = refused.Code.Status()
	}
	s.writePrivate(w, r, status, v)
}

var orderWays = [][2]string{{protocol.ByDelivery, english("Delivered to me")}, {protocol.ByPickup, english("I fetch it")}}
var orderPays = [][2]string{{protocol.PayNow, english("Now")}, {protocol.PayLater, english("When I get it")}}

// newOrderBody shows a basket and the form that orders it.
func newOrderBody(q protocol.BasketQuote, b protocol.Basket, h handoff, f *sent) templ.Component {
	body := all{inside(`div class="lead"`, title("Your order"),
		when(q.Handle != "", inside(`p class="meta"`, linkText("", "/@"+q.Handle, q.Shop), testMark(q.Till.Test))))}
	if f != nil {
		body = append(body, notOrdered(f))
	}
	for _, x := range q.Faults {
		name := x.ID
		for _, l := range q.Lines {
			if l.Item.ID == x.ID {
				name = l.Item.Title
			}
		}
		body = append(body, inside(`div class="alert" role="alert"`, inside("p", called(name), in(`span lang="en"`, ": "+x.Detail+"."))))
	}
	body = append(body, titled("what", "What you order", orderLines(q.Lines, []protocol.OrderTotal{{Type: "subtotal", Amount: paiseOf(q.Sum)}})))
	switch {
	case len(q.Lines) == 0 || len(q.Faults) > 0:
		return append(body, when(q.Handle != "", inside("p", link("/@"+q.Handle, "Back to the shop"))))
	case !q.Till.Taking:
		return append(body, para("This shop takes no orders here. Ask it on its page."), inside("p", link("/@"+q.Handle, "Back to the shop")))
	}
	return append(body, titled("to", "Who orders, and how you get it", newOrderFields(q, b, h, f)))
}

// notOrdered says why an order was refused.
func notOrdered(f *sent) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return inside(`div class="alert" role="alert"`, inside("p", bold("Nothing was ordered.", ownRefusal(ctx, f)))).Render(ctx, w)
	})
}

func paiseOf(m protocol.Money) int64 {
	paise, _ := protocol.Decimal(m.Amount).Paise()
	return paise
}

func newOrderFields(q protocol.BasketQuote, b protocol.Basket, h handoff, f *sent) templ.Component {
	t := q.Till
	controls := []control{
		line("name", "Your name").with("autocomplete", "name"), line("mail", "Your mail address").with("type", "email", "autocomplete", "email"),
		line("phone", "Telephone, for the delivery").with("type", "tel", "autocomplete", "tel"),
	}
	shown := h.shown()
	shown.Set("way", protocol.ByPickup)
	if !t.Now {
		shown.Set("pay", protocol.PayLater)
	}
	if t.Delivery {
		shown.Set("way", protocol.ByDelivery)
	}
	if t.Delivery && t.Pickup {
		controls = append(controls, choose("way", "How you get it", orderWays))
	} else {
		controls = append(controls, holds("way", shown.Get("way")))
	}
	if t.Delivery {
		controls = append(controls, line("street", "With delivery: house, street and place").with("autocomplete", "street-address"),
			line("pin", "With delivery: PIN code").with("inputmode", "numeric", "autocomplete", "postal-code"))
	}
	if t.PayOnDelivery && t.Delivery || t.PayAtPickup && t.Pickup {
		controls = append(controls, choose("pay", "When you pay", orderPays))
	} else {
		controls = append(controls, holds("pay", protocol.PayNow))
	}
	controls = append(controls, line("note", "Anything the shop should know"),
		fold("For a review on the blockchain", line("client", "Your account there, 0x…").with("autocomplete", "off")))
	said := all{}
	if t.Delivery {
		said = append(said, para("Delivery costs %s.", rupees(q.Carriage)))
	}
	if t.Note != "" {
		said = append(said, inside(`div class="said"`, userText(t.Note)))
	}
	said = append(said, posted("card form", "order", newOrderPath, hidden("items", b.String(), "total", q.Sum.Amount, "checkout", h.token), once(),
		ask(protocol.MakeOrder.Operation, f, "order", shown, controls...), sends("Order"),
		hint("You pay the shop itself, on the next page. Only you and the shop see what you enter here.")))
	return said
}

// orderLines is a list of what is ordered, with what it costs.
func orderLines(lines []protocol.OrderLine, totals []protocol.OrderTotal) templ.Component {
	list := all{templ.Raw(`<ul class="rows">`)}
	for _, l := range lines {
		list = append(list, inside("li", inside("div", inside("p", in("span", countOf(l.Quantity.Total)), called(l.Item.Title))),
			in(`span class="price"`, protocol.FormatRupees(l.Item.Price*l.Quantity.Total))))
	}
	for _, t := range totals {
		list = append(list, inside("li", sayIn("p", totalWords[t.Type]), in(`span class="price"`, protocol.FormatRupees(t.Amount))))
	}
	return append(list, templ.Raw("</ul>"))
}

func countOf(n int64) string { return protocol.FormatRupees(n * 100)[len("₹"):] + " × " }

var totalWords = map[string]string{"subtotal": english("Items##of an order, in all"), "fulfillment": english("Delivery"), "total": english("Total")}

// orderStates say what the state of an order means to its buyer.
var orderStates = map[protocol.OrderState]string{
	protocol.OrderAwaiting: english("Not paid yet."), protocol.OrderPaid: english("Paid. The shop has been told."),
	protocol.OrderFulfilled: english("Paid, and handed over."), protocol.OrderCanceled: english("Canceled. Do not pay now."),
	protocol.OrderIsRefunded: english("The money was sent back."),
}

var orderEvents = map[string]string{
	"made": english("ordered"), "reported": english("payment reported"), "denied": english("payment not found"), "paid": english("paid"),
	"packed": english("packed"), "sent": english("sent"), "delivered": english("delivered"), "picked_up": english("fetched"),
	"answered":  english("review answered"),
	"fulfilled": english("done##an order"), "canceled": english("canceled"), "refund": english("money goes back"), "refunded": english("money sent back"),
}

// orderWord says what the state of an order means.
func orderWord(o protocol.ShopOrder) string {
	switch {
	case o.Claimed:
		return english("The shop has to confirm that the payment arrived.")
	case o.State == protocol.OrderAwaiting && o.Pay == protocol.PayLater:
		return english("Ordered. You pay when you get it.")
	}
	return orderStates[o.State]
}

// reviewTable is the form of a buyer's review; withdraw is a button of its own form.
var reviewTable = &formTable{op: protocol.ReviewOrder.Operation, controls: []control{
	choose("stars", "How was it?", [][2]string{{"", english("Please choose")}, {"5", english("5, very good")}, {"4", english("4, good")},
		{"3", english("3, fair")}, {"2", english("2, poor")}, {"1", english("1, very poor")}}),
	box("text", "What others should know; it is public"),
}}

// orderReview is the review of an order, and the form for it.
func orderReview(o protocol.ShopOrder, token string, f *sent) templ.Component {
	const do = "review_order"
	at, shown := formID(do, "", ""), url.Values{}
	form := func(button string) templ.Component {
		return posted("card form", at, "/order/"+token, hidden("do", do), reviewTable.fields(f, at, shown), sends(button))
	}
	r := o.Review
	if r == nil || r.Stars == nil {
		return titled("review", "Your review",
			para("You can review the shop for 180 days. The page of its reviews shows neither your name nor your address."), form(english("Send the review")))
	}
	shown.Set("stars", strconv.Itoa(int(*r.Stars)))
	shown.Set("text", r.Text)
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return titled("review", "Your review", inside(`p class="meta"`, in(`span class="kind"`, starsWords(ctx, *r)), testMark(o.Test), reviewCounts(*r)),
			when(r.Text != "", inside(`div class="said"`, userText(r.Text))), in("p", reviewWhy(ctx, *r)), reviewReplies(r.Replies),
			inside("p", linkText("", "/@"+o.Handle+"/reviews", tr(ctx, "All reviews of the shop"))), folded(f != nil, "Change it", form(english("Change the review"))),
			posted("", "", "/order/"+token, hidden("do", do, "withdraw", "true"), submitsQuietly("Withdraw the review"))).Render(ctx, w)
	})
}

// orderMail asks the buyer for a confirmation of the mailbox, where it decides how the payment is known.
func orderMail(o protocol.ShopOrder, token, ticket string) templ.Component {
	switch {
	case o.MailConfirmed:
		return templ.NopComponent
	case ticket != "":
		return titled("mailbox", "Your mailbox", para("You came by the link of a letter about this order."),
			posted("card form", "mailbox-confirm", "/order/"+token, hidden("do", protocol.ConfirmOrderMail.Name, "ticket", ticket), sends("This mailbox is mine")))
	case o.UTR != nil && o.Known != nil && *o.Known == protocol.KnownStated:
		return titled("mailbox", "Your mailbox",
			para("Open the link in our letter about this order to confirm your mailbox: then your payment counts as reported by you, and your review counts."))
	}
	return templ.NopComponent
}

// orderBody is the page of an order for its buyer.
func orderBody(o protocol.ShopOrder, token, base, ticket string, refused *protocol.Error, f *sent) templ.Component {
	body := all{
		inside(`div class="lead"`, title("Your order"), in(`p class="amount"`, rupees(o.Total)),
			inside(`p class="meta"`, linkText("", "/@"+o.Handle, o.Shop), code(o.ID), testMark(o.Test))),
	}
	if refused != nil {
		body = append(body, inside(`div class="alert" role="alert"`, in(`p lang="en"`, sentence(refused.Detail))))
	}
	body = append(body, sayIn(`p role="status"`, orderWord(o)))
	if o.State == protocol.OrderAwaiting && o.Pay == protocol.PayNow && !o.Claimed {
		body = append(body, inside("p", linkAs(`class="button"`, "/pay/"+token, "Pay %s", rupees(o.Total))))
	}
	body = append(body, titled("what", "What you order", orderLines(o.Lines, o.Totals)), titled("to", "Who orders, and how you get it", orderBuyer(o)),
		orderHistory(o))
	if o.State == protocol.OrderAwaiting && !o.Claimed {
		body = append(body, posted("", "", "/order/"+token, hidden("do", protocol.CancelOrder.Name), submitsQuietly("Cancel the order")))
	}
	if o.Receipt != nil {
		body = append(body, orderMail(o, token, ticket), orderReview(o, token, f))
		body = append(body, folded(false, "The receipt", para("This node signed it. With it anyone can verify the order."),
			inside(`pre tabindex="0"`, in("code data-copy", *o.Receipt))))
	}
	return append(body, titled("keep", "Keep this", para("This address opens the order; anyone who has it can see it:"),
		inside(`pre tabindex="0"`, in("code data-copy", base+"/order/"+token))))
}

// orderBuyer shows who ordered, and how it reaches them.
func orderBuyer(o protocol.ShopOrder) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		way := tr(ctx, orderWays[0][1])
		if o.Way == protocol.ByPickup {
			way = tr(ctx, orderWays[1][1])
		}
		return inside(`dl class="facts"`, fact("Name", o.Buyer.Name), plainFact("Mail address", o.Buyer.Mail),
			plainFact("Telephone", o.Buyer.Phone), plainFact("How you get it", way),
			fact("Address", strings.TrimSpace(o.Buyer.Street+" "+o.Buyer.PIN)), fact("For the shop", o.Buyer.Note),
			fact("From the shop", o.Note)).Render(ctx, w)
	})
}

// orderHistory says what happened to an order.
func orderHistory(o protocol.ShopOrder) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		list := all{templ.Raw(`<ul class="rows">`)}
		for _, e := range o.Events {
			list = append(list, inside("li", inside("div", inside("p", in("span", tr(ctx, orderEvents[e.What])), indianMoment(e.At)),
				when(e.Note != "", in(`p class="hint" lang=""`, e.Note)))))
		}
		for _, x := range o.Refunds {
			list = append(list, inside("li", in(`p class="hint"`, tr(ctx, "%s back, %s", rupees(x.Amount), tr(ctx, ownRefundStates[x.State])))))
		}
		return titled("history", "What happened", append(list, templ.Raw("</ul>"))).Render(ctx, w)
	})
}
