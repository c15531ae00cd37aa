package ucpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// buyingOf are the capabilities of buying in a release.
func buyingOf(version, webhook string) string {
	list := []string{catalogOf(version)}
	for _, name := range []string{protocol.UCPCheckouts, protocol.UCPCarts, protocol.UCPOrders, protocol.UCPPaymentTerms} {
		config := ""
		if name == protocol.UCPOrders && webhook != "" {
			config = fmt.Sprintf(`,"config":{"webhook_url":%q}`, webhook)
		}
		list = append(list, fmt.Sprintf(`%q:[{"version":%q%s}]`, name, version, config))
	}
	return strings.Join(list, ",")
}

// A buyerSide is a platform that buys, over one binding of UCP.
type buyerSide struct {
	h    *nodetest.House
	site *platformSite // nil: a client without a profile
	pair *key.Pair     // nil: it does not sign
	mcp  bool
}

// newBuyer is a platform with a profile in a release; signing publishes a key.
func newBuyer(h *nodetest.House, release, webhook string, signs, mcp bool) buyerSide {
	h.T.Helper()
	b, keys := buyerSide{h: h, mcp: mcp}, ""
	if signs {
		pair := must.Get(key.GenerateEd25519())(h.T)
		b.pair, keys = &pair, string(must.Get(key.MarshalPublic(pair.Published()))(h.T))
	}
	b.site = newPlatform(h.T, platformProfile(release, buyingOf(release, webhook), keys))
	return b
}

// sold is an answer about a checkout, a cart or an order.
type sold struct {
	Code   string // of a transport error
	UCP    protocol.UCPMeta
	ID     string
	Status string
	Lines  []struct {
		ID       string
		Item     protocol.OrderItem
		Quantity json.RawMessage
		Status   string
	} `json:"line_items"`
	Totals   []protocol.OrderTotal
	Messages []message
	Continue string `json:"continue_url"`
	Buyer    map[string]string
	Payment  struct {
		Terms    []struct{ ID, Title string }
		Selected string              `json:"selected_term_id"`
		Accepted struct{ ID string } `json:"accepted_term"`
	}
	Order *struct {
		ID, Label string
		Permalink string `json:"permalink_url"`
	}
	Checkout    string `json:"checkout_id"`
	Adjustments []protocol.Adjustment
	Fulfillment struct {
		Events []struct{ Type string }
	}
	Untrusted bool `json:"untrusted_content"`

	status int
	raw    string
}

type message struct{ Type, Code, Path, Content, Severity string }

func (s sold) codes() (list []string) {
	for _, m := range s.Messages {
		list = append(list, m.Code)
	}
	return list
}

func (s sold) total() (amount int64) {
	for _, t := range s.Totals {
		if t.Type == "total" {
			amount = t.Amount
		}
	}
	return amount
}

// tools are the tools of UCP's REST paths, by method and path.
var buyingTools = map[string]string{
	"POST /checkout-sessions": "create_checkout", "GET /checkout-sessions/": "get_checkout", "PUT /checkout-sessions/": "update_checkout",
	"POST /checkout-sessions//complete": "complete_checkout", "POST /checkout-sessions//cancel": "cancel_checkout",
	"POST /carts": "create_cart", "GET /carts/": "get_cart", "PUT /carts/": "update_cart", "POST /carts//cancel": "cancel_cart", "GET /orders/": "get_order",
}

// ask sends a request, and judges the answer by the schemas of its release.
func (b buyerSide) ask(method, path, id, after, body, idem string) (got sold) {
	h := b.h
	h.T.Helper()
	target := protocol.UCPPath + path
	if id != "" {
		target += "/" + url.PathEscape(id)
		path += "/"
	}
	target, path = target+after, path+after
	if b.mcp {
		args := map[string]any{"id": id}
		meta := map[string]any{"idempotency-key": idem}
		if b.site != nil {
			meta["ucp-agent"] = map[string]string{"profile": b.site.URL + "/"}
		}
		args["meta"] = meta
		if body != "" {
			args[map[bool]string{true: "cart", false: "checkout"}[strings.HasPrefix(path, "/carts")]] = json.RawMessage(body)
		}
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
			buyingTools[method+" "+path], must.Get(json.Marshal(args))(h.T))
		method, target, idem = "POST", protocol.UCPMCPPath, ""
	}
	r := httptest.NewRequest(method, h.Base+target, strings.NewReader(body))
	r.RequestURI = target
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if b.mcp {
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if idem != "" {
		r.Header.Set("Idempotency-Key", idem)
	}
	if b.site != nil {
		r.Header.Set("UCP-Agent", b.site.agent("/"))
	}
	if b.pair != nil {
		parts := []string{"@method", "@authority", "@path", "ucp-agent"}
		if body != "" {
			parts = append(parts, "content-digest", "content-type")
		}
		if idem != "" {
			parts = append(parts, "idempotency-key")
		}
		require.NoError(h.T, httpsig.SignRequest(r, must.Get(httpsig.ParseTarget(h.Base))(h.T), []byte(body),
			httpsig.SignOptions{Key: b.pair.Signer(), Tag: "-", Nonce: "-", TTL: -1, Components: parts}))
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	raw := w.Body.Bytes()
	require.Less(h.T, w.Code, 500, "%s %s: %s", method, target, raw)
	if b.mcp {
		var rpc struct {
			Result struct {
				Structured json.RawMessage `json:"structuredContent"`
			}
			Error struct{ Data json.RawMessage }
		}
		require.NoError(h.T, json.Unmarshal(raw, &rpc), "%s", raw)
		if raw = rpc.Result.Structured; w.Code != 200 {
			raw = rpc.Error.Data
		}
	}
	require.NoError(h.T, json.Unmarshal(raw, &got), "%s", raw)
	got.status, got.raw = w.Code, string(raw)
	if w.Code >= 300 {
		return got
	}
	release := got.UCP.Version
	if got.UCP.Status == "error" {
		ucpValid(h.T, release, ucpErrors[release], raw)
		return got
	}
	require.True(h.T, got.Untrusted)
	schema := map[byte]string{'c': "shopping/checkout.json", 'o': "shopping/order.json"}[path[1]]
	switch {
	case strings.HasPrefix(path, "/carts"):
		schema = "shopping/cart.json"
	case release == protocol.UCPVersions[0]:
		schema = "shopping/payment_terms.json#/$defs/dev.ucp." + strings.ReplaceAll(strings.TrimSuffix(schema, ".json"), "/", ".")
	}
	ucpValid(h.T, release, schema, raw)
	if got.Status == "requires_escalation" {
		require.NotEmpty(h.T, got.Continue)
		require.Contains(h.T, got.raw, `"severity":"requires_buyer`)
	}
	if schema != "shopping/cart.json" && path[1] == 'c' {
		require.NotNil(h.T, got.UCP.Handlers)
		require.Equal(h.T, got.Status == "completed", got.Order != nil)
	}
	return got
}

func (b buyerSide) create(body string) sold {
	return b.ask("POST", "/checkout-sessions", "", "", body, "")
}
func (b buyerSide) get(id string) sold { return b.ask("GET", "/checkout-sessions", id, "", "", "") }
func (b buyerSide) put(id, body string) sold {
	return b.ask("PUT", "/checkout-sessions", id, "", body, "")
}
func (b buyerSide) complete(id string) sold {
	return b.ask("POST", "/checkout-sessions", id, "/complete", `{"payment":{}}`, "")
}
func (b buyerSide) cancel(id string) sold {
	return b.ask("POST", "/checkout-sessions", id, "/cancel", "", "k-"+id)
}
func (b buyerSide) order(id string) sold         { return b.ask("GET", "/orders", id, "", "", "") }
func (b buyerSide) cart(m, id, body string) sold { return b.ask(m, "/carts", id, "", body, "") }

// wanting is the body of a checkout.
func wanting(mail string, items ...any) string {
	lines := []any{}
	for i := 0; i+1 < len(items); i += 2 {
		lines = append(lines, map[string]any{"item": map[string]any{"id": items[i]}, "quantity": items[i+1]})
	}
	body := map[string]any{"line_items": lines, "buyer": map[string]string{"first_name": "Meera", "last_name": "Rao"}}
	if mail != "" {
		body["buyer"].(map[string]string)["email"] = mail
	}
	raw, _ := json.Marshal(body)
	return string(raw)
}

// buyingWorld is UCPWorld whose shops rao and chai take orders: rao by the sandbox or later, when it is fetched; chai by delivery alone.
func buyingWorld(t *testing.T, h *nodetest.House) (variants map[string]string, rao string) {
	t.Helper()
	rao = "Bearer " + h.TokenOf("rao", "orders")
	chai := "Bearer " + h.TokenOf("chai", "orders")
	h.Ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", rao).Is(200)
	h.Ask("PUT", "/api/owner/payment-account", `{"provider":"sandbox"}`, "Authorization", chai).Is(200)
	h.Ask("PUT", "/api/owner/till", `{"open":true,"pickup":true,"payAtPickup":true,"delivery":true,"deliveryPrice":"40"}`, "Authorization", rao).Is(200)
	h.Ask("PUT", "/api/owner/till", `{"open":true,"delivery":true,"deliveryPrice":"30","area":["5700"]}`, "Authorization", chai).Is(200)
	variants = map[string]string{}
	for _, shop := range []string{"rao", "chai", "secret"} {
		for _, p := range ucp(h, "/catalog/search?merchant="+shop, `{}`).Products {
			variants[p.Title] = p.Variants[0].ID
		}
	}
	return variants, rao
}

// formOf is the form of the page that a checkout's continue_url opens, in a client without script.
func formOf(h *nodetest.House, address string, more ...string) (to string, form url.Values) {
	h.T.Helper()
	page := h.Ask("GET", strings.TrimPrefix(address, h.Base), "", "Accept", nodetest.Accept).Is(200).Body.String()
	_, part, ok := strings.Cut(page, `id="order"`)
	require.True(h.T, ok, "%s", page)
	part, _, _ = strings.Cut(part, "</form>")
	form = url.Values{}
	for _, field := range strings.Split(part, "<input")[1:] {
		value := func(name string) string {
			_, rest, _ := strings.Cut(field, " "+name+`="`)
			text, _, _ := strings.Cut(rest, `"`)
			return text
		}
		if value("type") != "radio" || strings.Contains(field, " checked") {
			form.Set(value("name"), value("value"))
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return "/order/new", form
}

// taken sends the form of a checkout's page, and returns the address of the order's page.
func taken(h *nodetest.House, address string, more ...string) string {
	h.T.Helper()
	to, form := formOf(h, address, more...)
	a := h.Ask("POST", to, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", nodetest.Accept)
	require.Equal(h.T, 303, a.Code, "%s", a.Body)
	return a.Header().Get("Location")
}

// TestUCP_Checkout walks a checkout from its creation to its order, over both bindings and in both releases, on both engines.
func TestUCP_Checkout(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		ids, rao := buyingWorld(t, h)
		for i, b := range []buyerSide{{h: h}, {h: h, mcp: true}, newBuyer(h, "2026-08-25", "", true, false), newBuyer(h, "2026-08-25", "", true, true),
			newBuyer(h, "2026-04-08", "", true, false), newBuyer(h, "2026-04-08", "", false, true)} {
			mail := fmt.Sprintf("meera%d@example.org", i)
			c := b.create(wanting("", ids["Idli"], 2))
			require.Contains(t, []int{200, 201}, c.status, c.raw)
			require.Equal(t, b.mcp, c.status == 200, "created over REST")
			require.Equal(t, "incomplete", c.Status, c.raw)
			require.Contains(t, c.codes(), "field_required", c.raw)
			require.EqualValues(t, 8100, c.total())
			c = b.put(c.ID, wanting(mail, ids["Idli"], 3))
			require.Equal(t, "requires_escalation", c.Status, c.raw)
			require.EqualValues(t, 12150, c.total(), "all of it is replaced")
			require.Equal(t, mail, c.Buyer["email"])
			if c.UCP.Version == "2026-08-25" {
				require.Len(t, c.Payment.Terms, 2, c.raw)
				require.Equal(t, "now", c.Payment.Selected)
			} else {
				require.Empty(t, c.Payment.Terms)
			}
			require.Equal(t, c.raw, b.get(c.ID).raw)
			require.Equal(t, c.raw, b.complete(c.ID).raw, "a person completes it")

			_, form := formOf(h, c.Continue)
			require.Equal(t, "Meera Rao", form.Get("name"))
			require.Equal(t, mail, form.Get("mail"))
			to, form := formOf(h, c.Continue, "way", "pickup", "mail", "nobody")
			refused := h.Ask("POST", to, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", nodetest.Accept)
			require.Equal(t, 422, refused.Code)
			require.Contains(t, refused.Body.String(), form.Get("checkout"), "the form is shown again, of the same checkout")
			page := taken(h, c.Continue, "way", "pickup", "pay", "later")
			done := b.get(c.ID)
			require.Equal(t, "completed", done.Status, done.raw)
			require.Empty(t, done.Continue)
			require.NotContains(t, done.raw, mail, "what the person told the shop is the shop's")
			require.Equal(t, "checkout_closed", b.put(c.ID, wanting(mail, ids["Idli"], 1)).Messages[0].Code)
			require.Equal(t, "not_cancelable", b.cancel(c.ID).Messages[0].Code)
			require.Equal(t, done.raw, b.complete(c.ID).raw)

			o := b.order(done.Order.ID)
			if b.pair == nil {
				require.Equal(t, []string{"not_found"}, o.codes())
				continue
			}
			require.Equal(t, c.ID, o.Checkout)
			require.EqualValues(t, 12150, o.total())
			require.NotContains(t, o.raw, mail)
			require.NotContains(t, o.raw, strings.TrimPrefix(page, "/order/"), "the platform gets no secret of the person's")
			h.Ask("POST", "/api/owner/orders/"+done.Order.ID, `{"do":"packed"}`, "Authorization", rao).Is(200)
			h.Ask("POST", "/api/owner/orders/"+done.Order.ID, `{"do":"picked_up"}`, "Authorization", rao).Is(200)
			h.Ask("POST", "/api/owner/orders/"+done.Order.ID, `{"do":"confirm"}`, "Authorization", rao).Is(200)
			h.Ask("POST", "/api/owner/orders/"+done.Order.ID, `{"do":"refund","amount":"40.50","note":"one was cold"}`, "Authorization", rao).Is(200)
			o = b.order(done.Order.ID)
			require.Equal(t, "fulfilled", o.Lines[0].Status, o.raw)
			require.Len(t, o.Fulfillment.Events, 2)
			require.Equal(t, "refund", o.Adjustments[0].Type, o.raw)
			if c.UCP.Version == "2026-08-25" {
				require.Equal(t, "later", o.Payment.Accepted.ID)
			}
		}
	})
}

// TestUCP_CheckoutRefused: what makes no checkout, and what is wrong with one.
func TestUCP_CheckoutRefused(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	ids, rao := buyingWorld(t, h)
	for _, b := range []buyerSide{{h: h}, {h: h, mcp: true}, newBuyer(h, "2026-04-08", "", true, false)} {
		for body, code := range map[string]string{
			wanting("m@example.org", ids["Idli"], 1, ids["Masala tea"], 1):                                                 "one_shop_per_checkout",
			wanting("m@example.org", "var_none", 1):                                                                        "item_unavailable",
			wanting("m@example.org", ids["Hidden tea"], 1):                                                                 "shop_closed",
			`{"line_items":[{"item":{"id":"` + ids["Idli"] + `","quantity_unit":{"unit":"KGM","scale":2}},"quantity":5}]}`: "quantity_unit_mismatch",
			`{"cart_id":"cart_none","line_items":[]}`:                                                                      "not_found",
		} {
			a := b.create(body)
			require.Equal(t, 200, a.status, a.raw)
			require.Equal(t, []string{code}, a.codes(), body)
			require.Equal(t, "unrecoverable", a.Messages[0].Severity)
			require.NotEmpty(t, a.Continue)
		}
		for _, body := range []string{`{}`, `{"line_items":[]}`, `{"line_items":[{}]}`, `{"line_items":{}}`, wanting("", ids["Idli"], 0),
			wanting("", ids["Idli"], 1000), wanting("", ids["Idli"], "1"), wanting("", 7, 1), `{"line_items":[{"item":{"id":"x"},"quantity":1}],"buyer":7}`} {
			require.Equal(t, 400, b.create(body).status, body)
		}
		none := []string{"not_found"}
		require.Equal(t, none, b.get("chk_none").codes())
		require.Equal(t, none, b.get("x y").codes())
		require.Equal(t, none, b.put("chk_none", wanting("", ids["Idli"], 1)).codes())
		require.Equal(t, none, b.cancel("chk_none").codes())
		require.Equal(t, none, b.order("ord_none").codes())
		c := b.create(wanting("nobody", ids["Idli"], 1))
		require.Equal(t, "incomplete", c.Status, c.raw)
		require.Contains(t, c.codes(), "invalid_email")
		c = b.create(strings.Replace(wanting("far@example.org", ids["Masala tea"], 1), "{", `{"context":{"postal_code":"110001"},`, 1))
		require.Equal(t, []string{"address_undeliverable", "test"}, c.codes(), c.raw)
		require.EqualValues(t, 2000+3000, c.total(), "it is delivered in any case")
		c = b.cancel(c.ID)
		require.Equal(t, "canceled", c.Status, c.raw)
		require.Equal(t, "canceled", b.get(c.ID).Status)
	}
	b := buyerSide{h: h}
	c := b.create(wanting("m@example.org", ids["Idli"], 1))
	h.Ask("PUT", "/api/owner/merchant/items/idli", `{"name":"Idli","price":{"currency":"INR","amount":"50"}}`, "Authorization", rao).Is(200)
	got := b.get(c.ID)
	require.Contains(t, got.codes(), "price_changed")
	require.EqualValues(t, 5000, got.total(), "the price of now")
	to, form := formOf(h, got.Continue, "way", "pickup", "pay", "now", "total", "40.50")
	refused := h.Ask("POST", to, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", nodetest.Accept)
	require.Equal(t, 409, refused.Code, "the person saw another price")
	h.Ask("PUT", "/api/owner/merchant/items/idli", `{"name":"Idli","price":{"currency":"INR","amount":"50"},"availability":"out_of_stock"}`,
		"Authorization", rao).Is(200)
	got = b.get(c.ID)
	require.Equal(t, "incomplete", got.Status)
	require.Contains(t, got.codes(), "out_of_stock")
	require.Contains(t, h.Ask("GET", strings.TrimPrefix(got.Continue, h.Base), "", "Accept", nodetest.Accept).Is(200).Body.String(), "sold out")
}

// TestUCP_CheckoutKeys: the same key with the same request is done once, with another it is refused.
func TestUCP_CheckoutKeys(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		ids, _ := buyingWorld(t, h)
		for i, b := range []buyerSide{{h: h}, {h: h, mcp: true}, newBuyer(h, "2026-08-25", "", true, false)} {
			body := wanting("", ids["Idli"], 1)
			one, two := fmt.Sprintf("one-%d", i), fmt.Sprintf("two-%d", i)
			first := b.ask("POST", "/checkout-sessions", "", "", body, one)
			second := b.ask("POST", "/checkout-sessions", "", "", body, one)
			require.Equal(t, first.raw, second.raw)
			require.Equal(t, first.status, second.status)
			require.NotEqual(t, first.ID, b.ask("POST", "/checkout-sessions", "", "", body, two).ID)
			other := b.ask("POST", "/checkout-sessions", "", "", strings.Replace(body, `"buyer"`, `"attribution":{"x":"y"},"buyer"`, 1), one)
			require.Equal(t, 409, other.status, other.raw)
			require.Contains(t, other.raw, "idempotency_key_reused")
			require.Equal(t, "canceled", b.cancel(first.ID).Status)
			require.Equal(t, "canceled", b.cancel(first.ID).Status, "the same cancellation again")
			require.Equal(t, 400, b.ask("POST", "/checkout-sessions", "", "", body, strings.Repeat("k", 300)).status)
		}
	})
}

// TestUCP_Cart: a cart becomes one checkout.
func TestUCP_Cart(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		ids, _ := buyingWorld(t, h)
		for i, b := range []buyerSide{{h: h}, {h: h, mcp: true}, newBuyer(h, "2026-08-25", "", true, true), newBuyer(h, "2026-04-08", "", true, false)} {
			mail := fmt.Sprintf("cart%d@example.org", i)
			cart := b.cart("POST", "", wanting(mail, ids["Idli"], 1))
			require.EqualValues(t, 4050, cart.total(), cart.raw)
			require.Empty(t, cart.Status)
			cart = b.cart("PUT", cart.ID, wanting(mail, ids["Idli"], 2))
			require.EqualValues(t, 8100, b.cart("GET", cart.ID, "").total())
			require.Equal(t, h.Base+"/buy/"+ids["Idli"]+":2", cart.Continue)
			c := b.create(`{"cart_id":"` + cart.ID + `","line_items":[]}`)
			require.Equal(t, "requires_escalation", c.Status, c.raw)
			require.EqualValues(t, 8100, c.total())
			require.Equal(t, mail, c.Buyer["email"])
			require.Equal(t, c.ID, b.create(`{"cart_id":"`+cart.ID+`","line_items":[]}`).ID, "one open checkout a cart")
			require.Equal(t, []string{"not_found"}, b.get(cart.ID).codes(), "a cart is no checkout")
			require.Equal(t, []string{"not_found"}, b.cart("GET", c.ID, "").codes())
			require.Equal(t, cart.ID, b.ask("POST", "/carts", cart.ID, "/cancel", "", "").ID)
			require.Equal(t, []string{"not_found"}, b.cart("GET", cart.ID, "").codes())
			require.Equal(t, []string{"one_shop_per_checkout"}, b.cart("POST", "", wanting("", ids["Idli"], 1, ids["Masala tea"], 1)).codes())
		}
	})
}

// TestUCP_Strangers: what a platform began under its signature is for nobody else, nor for its name without the signature.
func TestUCP_Strangers(t *testing.T) {
	t.Parallel()
	h := nodetest.UCPWorld(t, func(*node.Config) {})
	ids, _ := buyingWorld(t, h)
	mine, other := newBuyer(h, "2026-08-25", "", true, false), newBuyer(h, "2026-08-25", "", true, false)
	unsigned, tool := mine, mine
	unsigned.pair, tool.mcp = nil, true
	c := mine.create(wanting("m@example.org", ids["Idli"], 1))
	cart := mine.cart("POST", "", wanting("", ids["Idli"], 1))
	none := []string{"not_found"}
	for _, b := range []buyerSide{other, unsigned, {h: h}, {h: h, mcp: true}} {
		require.Equal(t, none, b.get(c.ID).codes())
		require.Equal(t, none, b.put(c.ID, wanting("", ids["Idli"], 9)).codes())
		require.Equal(t, none, b.complete(c.ID).codes())
		require.Equal(t, none, b.cancel(c.ID).codes())
		require.Equal(t, none, b.cart("GET", cart.ID, "").codes())
		require.Equal(t, none, b.create(`{"cart_id":"`+cart.ID+`"}`).codes())
		require.Equal(t, b.get("chk_01k9y3v6k8e5w9q2x4z7c1m0ad").raw, b.get(c.ID).raw, "as for an id that is nobody's")
	}
	require.Equal(t, c.raw, mine.get(c.ID).raw)
	taken(h, c.Continue, "way", "pickup", "pay", "later")
	done := tool.get(c.ID)
	require.Equal(t, "completed", done.Status, "the other binding is the same platform")
	require.Equal(t, c.ID, tool.order(done.Order.ID).Checkout)
	for _, b := range []buyerSide{other, unsigned, {h: h}, {h: h, mcp: true}} {
		require.Equal(t, none, b.order(done.Order.ID).codes())
	}
	a := h.Ask("GET", strings.TrimPrefix(done.Order.Permalink, h.Base), "", "Accept", nodetest.Accept)
	require.Equal(t, 404, a.Code, "it opens in the person's browser alone")
}

// TestUCP_LastPiece: a hundred checkouts at once for the last piece: one holds it, the others are incomplete.
func TestUCP_LastPiece(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		ids, rao := buyingWorld(t, h)
		h.Ask("PUT", "/api/owner/stock", `{"stock":[{"id":"`+ids["Idli"]+`","pieces":1}]}`, "Authorization", rao).Is(204)
		b := newBuyer(h, "2026-08-25", "", true, false)
		var group sync.WaitGroup
		all := make([]sold, 100)
		b.create(wanting("", ids["Ghee"], 1)) // reads the profile
		for i := range all {
			group.Go(func() { all[i] = b.create(wanting(fmt.Sprintf("m%d@example.org", i), ids["Idli"], 1)) })
		}
		group.Wait()
		held, lost := "", ""
		for _, c := range all {
			if c.Status == "requires_escalation" {
				require.Empty(t, held)
				held = c.ID
				continue
			}
			lost = c.ID
			require.Equal(t, "incomplete", c.Status, c.raw)
			require.Contains(t, c.codes(), "out_of_stock")
			require.Equal(t, "$.line_items[0]", c.Messages[len(c.Messages)-2].Path, c.raw)
		}
		require.NotEmpty(t, held)
		require.Equal(t, "requires_escalation", b.get(held).Status)
		b.cancel(held)
		require.Equal(t, "requires_escalation", b.put(lost, wanting("x@example.org", ids["Idli"], 1)).Status, "freed")
	})
}

// TestUCP_OrderWebhook: the platform that signed is told of its order, whole and signed, and again where it did not take it.
func TestUCP_OrderWebhook(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		h.Work()
		ids, rao := buyingWorld(t, h)
		type told struct {
			*http.Request
			body []byte
		}
		came, failing := make(chan told, 20), make(chan struct{}, 1)
		failing <- struct{}{}
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			came <- told{r, body}
			select {
			case <-failing:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
			}
		}))
		t.Cleanup(hook.Close)
		set := must.Get(key.ParseSet(h.Ask("GET", "/.well-known/http-message-signatures-directory", "").Is(200).Body.Bytes()))(t)
		next := func() (o sold, id string) {
			t.Helper()
			r := <-came
			require.Equal(t, `profile="`+h.Base+`/.well-known/ucp"`, r.Header.Get("UCP-Agent"))
			require.NotEmpty(t, r.Header.Get("Webhook-Timestamp"))
			for _, part := range strings.Fields("@method @authority @path content-digest content-type ucp-agent webhook-id webhook-timestamp") {
				require.Contains(t, r.Header.Get("Signature-Input"), `"`+part+`"`)
			}
			m := must.Get(httpsig.FromRequest(r.Request, must.Get(httpsig.ParseTarget(hook.URL))(t)))(t)
			v := httpsig.Verifier{Keys: keysOf(set), AllowLoopback: true}
			must.Get(v.Verify(t.Context(), &m, r.body, httpsig.UCPPolicy()))(t)
			require.NoError(t, json.Unmarshal(r.body, &o))
			ucpValid(t, o.UCP.Version, "shopping/order.json", r.body)
			require.NotContains(t, string(r.body), "meera@example.org")
			return o, r.Header.Get("Webhook-Id")
		}
		// One that does not sign is told nothing: anybody may name its profile.
		quiet := newBuyer(h, "2026-08-25", hook.URL, false, false)
		taken(h, quiet.create(wanting("quiet@example.org", ids["Idli"], 1)).Continue, "way", "pickup", "pay", "later")
		b := newBuyer(h, "2026-08-25", hook.URL+"/orders", true, false)
		c := b.create(wanting("meera@example.org", ids["Idli"], 2))
		taken(h, c.Continue, "way", "pickup", "pay", "later")
		o, id := next()
		require.Equal(t, c.ID, o.Checkout)
		_, again := next()
		require.Equal(t, id, again, "it is retried under the same id")
		h.Ask("POST", "/api/owner/orders/"+o.ID, `{"do":"packed"}`, "Authorization", rao).Is(200)
		o, id = next()
		require.NotEqual(t, again, id)
		require.Equal(t, "processing", o.Fulfillment.Events[0].Type)
	})
}

// keysOf are the keys of a key set, by their ids.
type keysOf key.Set

func (s keysOf) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	p, known := key.Set(s).Find(q.Params.KeyID)
	if !known {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	k, err := httpsig.NewKey(p.Key)
	return httpsig.Resolved{Key: k}, err
}

// TestUCP_RandomBuying sends bodies of checkouts and carts at random, over both bindings and in both releases: every answer fits the
// schemas, and none is an internal error.
func TestUCP_RandomBuying(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.UCPWorld(t, change)
		ids, _ := buyingWorld(t, h)
		m := ucpMaker{r: rand.New(rand.NewPCG(11, 13))}
		m.ids = []string{"", "x", ids["Idli"], ids["Masala tea"], ids["Cotton shirt"], ids["Kettle"], "\u202e\x00", "var_none"}
		word := func() any {
			return m.one("Meera", "", "मीरा", "a\x00b", "\u202e", strings.Repeat("é", 300), " x\n y ", "<b>", "\u202e")
		}
		object := func(names ...string) func() any {
			return func() any {
				o := map[string]any{}
				for _, name := range names {
					m.maybe(o, name, word)
				}
				return o
			}
		}
		body := func() string {
			o := map[string]any{"line_items": m.some(3, func() any {
				l := map[string]any{"item": map[string]any{"id": m.id()}, "quantity": 1 + m.r.IntN(3)}
				m.maybe(l, "quantity", func() any { return m.r.IntN(1100) })
				m.maybe(l, "id", word)
				m.maybe(l, "item", func() any {
					return map[string]any{"id": m.id(), "quantity_unit": m.one(nil, map[string]any{"unit": "C62"})}
				})
				return l
			})}
			m.maybe(o, "buyer", func() any {
				who := object("first_name", "last_name", "phone_number")().(map[string]any)
				m.maybe(who, "email", func() any {
					return m.one("m@example.org", "M+x@Example.org", "nobody", "a@b@c", strings.Repeat("x", 5000)+"@x.in")
				})
				return who
			})
			m.maybe(o, "context", object("postal_code", "address_country"))
			m.maybe(o, "payment", func() any { return map[string]any{"selected_term_id": m.one("now", "later", "x")} })
			m.maybe(o, "fulfillment", func() any {
				return map[string]any{"methods": m.some(2, func() any {
					return map[string]any{"destinations": m.some(2, object("street_address", "address_locality", "postal_code"))}
				})}
			})
			raw := must.Get(json.Marshal(o))(t)
			return string(raw)
		}
		sides := []buyerSide{{h: h}, {h: h, mcp: true}, newBuyer(h, "2026-08-25", "", true, false), newBuyer(h, "2026-04-08", "", false, true)}
		made, good := [2][4][]string{}, 0
		for range 600 {
			n := m.r.IntN(len(sides))
			b, cart := sides[n], m.r.IntN(3) == 0
			path, kind := "/checkout-sessions", 0
			if cart {
				path, kind = "/carts", 1
			}
			id := "none"
			if all := made[kind][n]; len(all) > 0 {
				id = all[m.r.IntN(len(all))]
			}
			key := m.one("", "", "k-1", strings.Repeat("k", 200)).(string)
			var got sold
			switch m.r.IntN(6) {
			case 0, 1, 2:
				got = b.ask("POST", path, "", "", body(), key)
			case 3:
				got = b.ask("PUT", path, id, "", body(), key)
			case 4:
				got = b.ask("GET", path, id, "", "", "")
			default:
				got = b.ask("POST", path, id, "/cancel", "", key)
			}
			if got.ID != "" {
				good++
				made[kind][n] = append(made[kind][n], got.ID)
			}
		}
		require.Greater(t, good, 50)
	})
}
