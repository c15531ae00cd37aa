package web

import (
	"net/http"
	"strconv"
	"strings"

	"stoa/protocol"
)

// listed are the fields of a form that hold several values, apart by commas.
var listed = map[string]bool{"tags": true, "languages": true, "regions": true}

func commaList(text string) []string {
	list := []string{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// priced makes the pricing of a capability of its fields; without a model there is
// none.
func priced(r *http.Request, args map[string]any) error {
	pricing := map[string]any{}
	for _, name := range []string{"model", "currency", "amount", "note"} {
		value := r.PostForm.Get("pricing-" + name)
		delete(args, "pricing-"+name)
		if value != "" {
			pricing[name] = value
		}
	}
	if pricing["model"] == nil {
		return nil
	}
	if amount, ok := pricing["amount"].(string); ok {
		n, err := strconv.ParseFloat(amount, 64)
		if err != nil || !(n >= 0 && n <= 1e15) { // NaN is neither
			return protocol.Invalid(protocol.Fault{Pointer: "/pricing/amount", Code: "wrong-type", Detail: "must be a number, such as 120.50"})
		}
		pricing["amount"] = n
	}
	args["pricing"] = pricing
	return nil
}

// edited is a profile with what its form holds put in place; what the form does
// not show stays.
func (s *Web) edited(r *http.Request, args map[string]any) error {
	form := r.PostForm
	if err := s.as(r, protocol.GetOwnProfile.Operation, map[string]any{"handle": form.Get("handle")}, &args); err != nil {
		return err
	}
	for _, name := range []string{"name", "headline", "description", "timezone"} {
		args[name] = form.Get(name)
	}
	for name := range listed {
		args[name] = commaList(form.Get(name))
	}
	args["listed"] = form.Get("listed") != ""
	policy := map[string]any{"outsideAgentsWithIdentity": form.Get("agents") != "", "anonymous": form.Get("anonymous") != ""}
	if kinds := form["kinds"]; len(kinds) > 0 {
		policy["kinds"] = kinds
	}
	if when := form.Get("responseTime"); when != "" {
		policy["responseTime"] = when
	}
	args["contactPolicy"] = policy
	return nil
}
