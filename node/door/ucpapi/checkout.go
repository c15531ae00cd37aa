package ucpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/protocol"
)

// Checkout and cart. The node holds no money and has no payment handler: a person takes every checkout over on its continue_url, and
// pays the shop there.

type lineItem struct {
	ID       string                `json:"id"`
	Item     protocol.OrderItem    `json:"item"`
	Quantity int64                 `json:"quantity"`
	Totals   []protocol.OrderTotal `json:"totals"`
}

type buyer struct {
	First string `json:"first_name,omitempty"`
	Last  string `json:"last_name,omitempty"`
	Mail  string `json:"email,omitempty"`
	Phone string `json:"phone_number,omitempty"`
}

type schedule struct {
	ID          string      `json:"id"`
	Type        string      `json:"type"`
	Description description `json:"description"`
	Amount      int64       `json:"amount"`
}

type term struct {
	ID        string     `json:"id"`
	Title     string     `json:"title"`
	Schedules []schedule `json:"schedules"`
}

// terms are what the extension of payment terms adds to a checkout.
type terms struct {
	Terms    []term `json:"terms"`
	Selected string `json:"selected_term_id"`
}

type confirmation struct {
	ID        string `json:"id"`
	Label     string `json:"label"`
	Permalink string `json:"permalink_url"`
}

// A session is a checkout, or a cart, which has no status.
type session struct {
	UCP       protocol.UCPMeta      `json:"ucp"`
	ID        string                `json:"id"`
	Status    string                `json:"status,omitempty"`
	Lines     []lineItem            `json:"line_items"`
	Buyer     *buyer                `json:"buyer,omitempty"`
	Currency  string                `json:"currency"`
	Totals    []protocol.OrderTotal `json:"totals"`
	Messages  []message             `json:"messages,omitempty"`
	Links     []link                `json:"links"`
	Policies  []policy              `json:"policies,omitempty"`
	ExpiresAt *time.Time            `json:"expires_at,omitempty"`
	Continue  string                `json:"continue_url,omitempty"`
	Payment   *terms                `json:"payment,omitempty"`
	Order     *confirmation         `json:"order,omitempty"`
	Untrusted bool                  `json:"untrusted_content"`
}

// makeSession is create_checkout and create_cart.
func makeSession(ctx context.Context, x *exchange, in *object) (any, error) {
	draft, refused := x.draftOf(in)
	if refused != nil || *in.fault != nil {
		return refused, faultIn(in)
	}
	if draft.Cart = x.op.capability == protocol.UCPCarts; !draft.Cart {
		draft.From = in.text("cart_id", 80)
	}
	if *in.fault == nil && draft.From == "" && len(draft.Items) == 0 {
		in.wrong("line_items", "is required: at least one item")
	}
	if *in.fault != nil {
		return nil, *in.fault
	}
	got, err := x.ask(ctx, protocol.UCPMakeCheckout.Operation, draft)
	if err == nil && got.Refused == nil {
		x.status = http.StatusCreated
	}
	return x.session(got, err)
}

// putSession is update_checkout and update_cart.
func putSession(ctx context.Context, x *exchange, in *object) (any, error) {
	draft, refused := x.draftOf(in)
	if refused != nil || *in.fault != nil {
		return refused, faultIn(in)
	}
	draft.Session = x.named()
	return x.session(x.ask(ctx, protocol.UCPPutCheckout.Operation, draft))
}

// getSession is get_checkout and get_cart, and complete_checkout, which answers the checkout as it is: a person completes it.
func getSession(ctx context.Context, x *exchange, _ *object) (any, error) {
	return x.session(x.ask(ctx, protocol.UCPCheckout.Operation, protocol.CheckoutDraft{Session: x.named()}))
}

// cancelSession is cancel_checkout and cancel_cart.
func cancelSession(ctx context.Context, x *exchange, _ *object) (any, error) {
	return x.session(x.ask(ctx, protocol.UCPCancelCheckout.Operation, protocol.CheckoutDraft{Session: x.named(), Digest: x.digest}))
}

// ask runs an operation about checkouts.
func (x *exchange) ask(ctx context.Context, op *protocol.Operation, in any) (*protocol.Checkout, error) {
	out := &protocol.Checkout{}
	return out, x.invoke(ctx, op, in, out)
}

func faultIn(in *object) error {
	if *in.fault != nil {
		return *in.fault
	}
	return nil
}

// named is the id of the request; one that is none of the operation's is nobody's.
func (x *exchange) named() string {
	kind := protocol.CheckoutID
	switch x.op.capability {
	case protocol.UCPCarts:
		kind = protocol.CartID
	case protocol.UCPOrders:
		kind = protocol.OrderID
	}
	if protocol.IsID(kind, x.subject) {
		return x.subject
	}
	return "none"
}

var pinForm = regexp.MustCompile(`^[1-9][0-9]{5}$`)

// draftOf reads a checkout or a cart. refused is a business outcome.
func (x *exchange) draftOf(in *object) (d protocol.CheckoutDraft, refused any) {
	d.Release, d.Digest = x.version, x.digest
	if x.platform != nil {
		if d.Profile = x.platform.url; x.vouched {
			d.Webhook = x.platform.webhook
		}
	}
	for _, l := range in.objects("line_items", protocol.MaxOrderItems) {
		item := l.object("item")
		if item == nil {
			l.wrong("item", "is required, an object")
			return d, nil
		}
		n, sent := l.integer("quantity", 1, protocol.MaxPieces)
		id := item.text("id", 80)
		if !sent {
			l.wrong("quantity", "is required")
		}
		if id == "" {
			item.wrong("id", "is required: the id of a variant")
		}
		if unit := item.object("quantity_unit"); unit != nil {
			scale, _ := unit.integer("scale", 0, 100)
			if unit.text("unit", 40) != "C62" || scale != 0 {
				refused = x.failedAt("", "quantity_unit_mismatch", "everything here is sold by the piece: send quantity as pieces, without quantity_unit")
			}
		}
		d.Items = append(d.Items, protocol.BasketItem{ID: protocol.CleanText(id), Quantity: int(n)})
	}
	who := in.object("buyer")
	d.Buyer = protocol.CheckoutBuyer{First: words(who, "first_name", 80), Last: words(who, "last_name", 80), Mail: words(who, "email", 254),
		Phone: words(who, "phone_number", 30)}
	around := in.object("context")
	d.Buyer.PIN = words(around, "postal_code", 6)
	if methods := in.object("fulfillment").objects("methods", 20); len(methods) > 0 {
		if all := methods[0].objects("destinations", 50); len(all) > 0 {
			to := all[0]
			street := []string{words(to, "street_address", 120), words(to, "extended_address", 80), words(to, "address_locality", 80)}
			d.Buyer.Street = firstRunes(strings.Join(strings.Fields(strings.Join(street, " ")), " "), 200)
			if pin := words(to, "postal_code", 6); pin != "" {
				d.Buyer.PIN = pin
			}
		}
	}
	if !pinForm.MatchString(d.Buyer.PIN) {
		d.Buyer.PIN = ""
	}
	switch chosen := in.object("payment").text("selected_term_id", 80); chosen {
	case protocol.PayNow, protocol.PayLater:
		d.Pay = chosen
	}
	return d, refused
}

// words returns a text of one line, clipped: what a platform says of a person, who corrects it.
func words(o *object, name string, most int) string {
	return firstRunes(strings.Join(strings.Fields(protocol.CleanText(o.text(name, 4096))), " "), most)
}

// failedAt is failed with the page of a shop to go on.
func (x *exchange) failedAt(handle, code, content string) failure {
	f := x.failed(code, content)
	if handle != "" {
		f.Continue = x.c.Base + "/@" + handle
	}
	return f
}

// session returns a checkout or a cart in UCP's shape, or why there is none.
func (x *exchange) session(c *protocol.Checkout, err error) (any, error) {
	switch {
	case protocol.CodeOf(err) == protocol.NotFound:
		return x.failed("not_found", protocol.AsError(err).Detail), nil
	case err != nil:
		return nil, err
	case c.Refused != nil:
		return x.failedAt(c.Handle, c.Refused.Code, c.Refused.Detail), nil
	}
	cart := x.op.capability == protocol.UCPCarts
	out := &session{UCP: x.meta(), ID: c.ID, Lines: []lineItem{}, Currency: protocol.Rupee, Totals: c.Totals, Links: x.linksOf(c), Untrusted: true}
	if c.Buyer != (protocol.CheckoutBuyer{}) {
		out.Buyer = &buyer{c.Buyer.First, c.Buyer.Last, c.Buyer.Mail, c.Buyer.Phone}
	}
	var ids []string
	for _, l := range c.Lines {
		cost := l.Item.Price * l.Quantity.Original
		out.Lines = append(out.Lines, lineItem{l.ID, l.Item, l.Quantity.Original, lineTotals(cost)})
		ids = append(ids, fmt.Sprintf("%s:%d", l.Item.ID, l.Quantity.Original))
	}
	for _, n := range c.Notes {
		m := message{Type: n.Type, Code: n.Code, Path: n.Path, Content: n.Detail}
		if n.Type == "error" {
			m.Severity = "recoverable"
		}
		out.Messages = append(out.Messages, m)
	}
	if c.Till.Test {
		out.Messages = append(out.Messages, info("test", "", "TEST: no money moves"))
	}
	if x.current() && c.Returns != nil {
		p := policy{Type: returnPolicy, Description: description{c.Returns.Words(c.Support)}, URL: x.c.Base + "/@" + c.Handle + "#returns",
			Returns: c.Returns}
		for i := range out.Lines {
			p.AppliesTo = append(p.AppliesTo, fmt.Sprintf("$.line_items[%d]", i))
		}
		out.Policies = []policy{p}
	}
	if cart {
		out.ExpiresAt = &c.ExpiresAt
		if len(ids) > 0 {
			out.Continue = x.c.Base + protocol.BuyPath + "/" + strings.Join(ids, ",")
		}
		return out, nil
	}
	out.UCP.Handlers, out.Status = &struct{}{}, c.Status
	x.complete(c, out)
	return out, nil
}

func lineTotals(paise int64) []protocol.OrderTotal {
	return []protocol.OrderTotal{{Type: "subtotal", Amount: paise}, {Type: "total", Amount: paise}}
}

// complete adds what only a checkout has.
func (x *exchange) complete(c *protocol.Checkout, out *session) {
	if c.Token != "" {
		out.Continue, out.ExpiresAt = x.c.Base+protocol.CheckoutPath+c.Token, &c.ExpiresAt
	}
	switch c.Status {
	case protocol.CheckoutCompleted:
		label := "Order at " + c.Shop
		if c.Till.Test {
			label = "TEST: " + label
		}
		out.Order = &confirmation{c.Order, label, x.c.Base + "/order/" + c.Order}
	case protocol.CheckoutEscalates:
		about := "the person reviews the order on the page of continue_url, says how it reaches them, and pays the shop"
		if c.Order != "" {
			about = "the person has ordered, and has not paid yet"
		}
		out.Messages = append(out.Messages, message{Type: "error", Code: "payment_required", Content: about, Severity: "requires_buyer_review"})
	}
	if x.terms && c.Order == "" {
		out.Payment = termsOf(c)
		if out.UCP.Capabilities != nil {
			out.UCP.Capabilities[protocol.UCPPaymentTerms] = []protocol.UCPEntity{{Version: x.version}}
		}
	}
}

// termsOf are the terms of a checkout where its shop may be paid later; nil where all is due at once.
func termsOf(c *protocol.Checkout) *terms {
	total := int64(0)
	for _, t := range c.Totals {
		if t.Type == "total" {
			total = t.Amount
		}
	}
	of := func(id, kind, title, text string) term {
		return term{id, title, []schedule{{id, kind, description{text}, total}}}
	}
	later := []string{}
	if c.Till.Later(protocol.ByDelivery) && c.Till.Delivery {
		later = append(later, "on delivery")
	}
	if c.Till.Later(protocol.ByPickup) && c.Till.Pickup {
		later = append(later, "when it is fetched")
	}
	if len(later) == 0 {
		return nil
	}
	out := &terms{Selected: c.Pay}
	if c.Till.Now {
		out.Terms = append(out.Terms, of(protocol.PayNow, "immediate", "Pay now", "Paid to the shop on its payment page, when the order is placed."))
	} else {
		out.Selected = protocol.PayLater
	}
	how := strings.Join(later, " or ")
	out.Terms = append(out.Terms, of(protocol.PayLater, "deferred", "Pay "+how, "Paid to the shop "+how+"."))
	return out
}

const returnPolicy = "dev.ucp.shopping.policy.return"

// linksOf are the links that a platform shows with a checkout.
func (x *exchange) linksOf(c *protocol.Checkout) []link {
	shop := x.c.Base + "/@" + c.Handle
	all := []link{{UCPShop, shop, c.Shop}, {Type: "terms_of_service", URL: x.c.Base + "/terms"}, {Type: "privacy_policy", URL: x.c.Base + "/privacy"}}
	if c.Returns != nil {
		all = append(all, link{Type: "refund_policy", URL: shop + "#returns"})
	}
	return all
}

// keyOf is the idempotency key of a platform as the hall takes it; "" for none.
func keyOf(profile, sent string) (string, *fault) {
	if sent == "" {
		return "", nil
	}
	if len(sent) > 255 {
		return "", badRequest("the idempotency key has at most 255 bytes")
	}
	return digestOf([]byte(profile + "\n" + sent)), nil
}

// digestOf identifies a request: the same members in another order are the same request.
func digestOf(body []byte) string {
	if plain, err := strictjson.Canonical(body); err == nil {
		body = plain
	}
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
