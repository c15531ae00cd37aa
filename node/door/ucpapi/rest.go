package ucpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
)

// rest serves one operation over the REST binding.
func (a *API) rest(o *operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		if err != nil {
			a.refuse(w, err)
			return
		}
		x := &exchange{API: a, op: o, network: a.c.Network(r), id: w.Header().Get(requestIDHeader), subject: r.PathValue("id")}
		answer, err := x.serveREST(w, r, body)
		if err != nil {
			a.refuse(w, err)
			return
		}
		head := w.Header()
		open(head)
		write(head, w, cmp.Or(x.status, http.StatusOK), answer)
	}
}

func (x *exchange) serveREST(w http.ResponseWriter, r *http.Request, body []byte) ([]byte, error) {
	sent, present, f := agentField(r.Header.Values("Ucp-Agent"))
	if f != nil {
		return nil, f
	}
	in, f := readInput(r, x.op, body)
	if f != nil {
		return nil, f
	}
	if x.key, f = keyOf(sent, strings.Join(r.Header.Values("Idempotency-Key"), ", ")); f != nil {
		return nil, f
	}
	x.digest = digestOf(body)
	if err := x.count(); err != nil {
		return nil, err
	}
	x.merchant = protocol.CleanHandle(r.URL.Query().Get("merchant"))
	incompatible, err := x.negotiate(r, sent, present, body)
	if err != nil {
		return nil, err
	}
	x.c.Table.Limits.Fields(w.Header(), x.network, !x.op.writes)
	return x.answer(r, in, incompatible)
}

// count counts a request that changes something; the router has counted every one.
func (x *exchange) count() error {
	if !x.op.writes {
		return nil
	}
	return x.c.Table.Limits.Write(x.network)
}

// answer runs the operation, unless there is no capability in common.
func (x *exchange) answer(r *http.Request, in *object, incompatible bool) ([]byte, error) {
	if incompatible {
		return hall.JSON(x.failed("capabilities_incompatible", "the platform's profile has no version of "+x.op.capability+" that this node has"))
	}
	out, err := x.op.run(r.Context(), x, in)
	if err == nil && *in.fault != nil {
		err = *in.fault
	}
	if err != nil {
		return nil, err
	}
	return hall.JSON(out)
}

// readBody reads a JSON body within the limit; nil without one.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := hall.ReadBody(w, r, MaxBody)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, protocol.Errorf(protocol.UnsupportedMediaType, "send the body as Content-Type: application/json")
	}
	return body, nil
}

// readInput returns the request in the form of UCP. A POST may have the parameter merchant in its
// query.
func readInput(r *http.Request, o *operation, body []byte) (*object, *fault) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query string cannot be read: check the percent-encoding")
	}
	allowed := []string{"merchant"}
	if o.bare || o.writes {
		allowed = nil
	}
	if o.path == "" {
		allowed = []string{"q", "merchant", "category", "currency", "min", "max", "availability", "limit", "after"}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "utm_") {
			return nil, badRequest("there is no query parameter " + protocol.CleanText(protocol.Clip(name, 64)) + "; the parameters are " + strings.Join(allowed, ", "))
		}
		if len(query[name]) > 1 && name != "category" {
			return nil, badRequest("give " + name + " once")
		}
	}
	if o.path != "" {
		if len(body) == 0 && o.bare {
			return newObject(nil), nil
		}
		if len(body) == 0 {
			return nil, badRequest("send the request as a JSON object")
		}
		return parse(body)
	}
	return fromQuery(query), nil
}

// fromQuery returns the search that the parameters of a GET describe.
func fromQuery(query url.Values) *object {
	text := func(s string) json.RawMessage { b, _ := json.Marshal(s); return b }
	members, filters, price := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	object := func(m map[string]json.RawMessage) json.RawMessage { b, _ := json.Marshal(m); return b }
	amount := func(s string) json.RawMessage {
		if json.Valid([]byte(s)) {
			return json.RawMessage(s)
		}
		return text(s)
	}
	if q := query.Get("q"); q != "" {
		members["query"] = text(q)
	}
	if all := query["category"]; len(all) > 0 {
		filters["categories"], _ = json.Marshal(all)
	}
	if s := query.Get("availability"); s != "" {
		filters[filterAvailability], _ = json.Marshal(strings.Split(s, ","))
	}
	for _, name := range []string{"min", "max"} {
		if s := query.Get(name); s != "" {
			price[name] = amount(s)
		}
	}
	if len(price) > 0 {
		filters["price"] = object(price)
		currency := query.Get("currency")
		if currency == "" {
			currency = protocol.Rupee
		}
		members["context"] = object(map[string]json.RawMessage{"currency": text(currency)})
	}
	if len(filters) > 0 {
		members["filters"] = object(filters)
	}
	pagination := map[string]json.RawMessage{}
	if s := query.Get("limit"); s != "" {
		pagination["limit"] = amount(s)
	}
	if s := query.Get("after"); s != "" {
		pagination["cursor"] = text(s)
	}
	members["pagination"] = object(pagination)
	o := newObject(members)
	o.browse = true
	return o
}
