package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
)

// A form is a reader's selection in a listing and its faults, so that the page can show both
// again.
type form struct {
	op     *protocol.Operation
	values url.Values // the given values, one per field
	args   map[string]any
	err    *protocol.Error // why it was refused; nil when it was not
	taken  []string        // fields whose values were among the words of q
	found  protocol.Finding
}

// typesOf returns the JSON Schema type of each field of an operation's input.
func typesOf(s *hall.Schemas, op *protocol.Operation) map[string]string {
	types := map[string]string{}
	for name, p := range s.Resolve(s.Of(op.In)).Properties {
		types[name] = s.Resolve(p).Type
	}
	return types
}

// given normalises the query of a form: an empty field was not given, and several ticked boxes
// become a comma list.
func given(query url.Values) url.Values {
	out := url.Values{}
	for name, all := range query {
		var set []string
		for _, v := range all {
			if v = strings.TrimSpace(v); v != "" {
				set = append(set, tidy(name, v))
			}
		}
		if len(set) > 0 && !strings.HasPrefix(name, "utm_") {
			out.Set(name, strings.Join(set, ","))
		}
	}
	return out
}

// tidy changes what people write to what the wire has: @asha, #paper, in-ka, Karnataka.
func tidy(name, v string) string {
	switch name {
	case "author":
		return protocol.CleanHandle(v)
	case "tag":
		return protocol.FoldTag(strings.TrimPrefix(v, "#"))
	case "region":
		return regionCode(v)
	}
	return v
}

// form reads the query of a page by the fields of its operation. Fields that the operation does
// not know are passed to the hall too, which reports every fault at once.
func (s *Web) form(r *http.Request, op *protocol.Operation) (*form, error) {
	query, err := queryOf(r)
	if err != nil {
		return nil, err
	}
	f := &form{op: op, values: given(query), args: map[string]any{}}
	for name := range f.values {
		if strings.Contains(op.HTTP.Path, "{"+name+"}") {
			return nil, unknown(name)
		}
		f.args[name] = coerce(s.types[op.Name][name], f.get(name))
		if m, _ := memberAt(op.In, name); m.tag.Get("decimal") != "" {
			f.args[name] = plainAmount(protocol.Rupee, f.get(name))
		}
	}
	return f, nil
}

// bare refuses any query on a page that has none.
func bare(r *http.Request) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	for name := range given(query) {
		return unknown(name)
	}
	return nil
}

// queryOf parses the query of a request. It refuses a query that cannot be parsed completely:
// without one of its filters, the listing would be a different one.
func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the query string cannot be read: check the percent-encoding")
	}
	return query, nil
}

// unknown is the fault for a query parameter that the page does not have: agents misspell
// (contract §1).
func unknown(name string) error {
	return protocol.Invalid(protocol.Fault{
		Pointer: "/" + hall.Escape(name), Code: "unknown-member",
		Detail: "there is no such query parameter; check the spelling",
	})
}

// list reads a listing with the form's filters. A refused form gives an empty page and stores the
// reason in f; any other error is returned.
func list[In, Out any](s *Web, r *http.Request, op protocol.Op[In, Out], f *form) (page Out, err error) {
	if page, err = read(s, r, op, f.args); err != nil {
		if e := protocol.AsError(err); e.Code == protocol.Validation {
			f.err, err = e, nil
		}
	}
	return page, err
}

// coerce converts a string to a JSON value of the field's type. A string that does not fit stays a
// string, so that the schema check reports the fault.
func coerce(kind, v string) any {
	switch kind {
	case "integer":
		if n, err := strconv.ParseInt(v, 10, 53); err == nil {
			return n
		}
	case "boolean":
		if b, err := strconv.ParseBool(v); err == nil {
			return b
		}
	}
	return v
}

// get returns the value of a field.
func (f *form) get(name string) string { return f.values.Get(name) }

// has reports whether a value of a comma list was ticked.
func (f *form) has(name, value string) bool {
	for v := range strings.SplitSeq(f.values.Get(name), ",") {
		if v == value {
			return true
		}
	}
	return false
}

// fault returns what is wrong with a field, "" for nothing. A wrong shape is explained by the
// field's hint and not by its regular expression.
func (f *form) fault(ctx context.Context, name, hint string) string {
	if f.err == nil {
		return ""
	}
	for _, x := range f.err.Faults {
		if x.Pointer == "/"+name {
			if len(f.err.Places) > 0 && name == "near" {
				return tr(ctx, "Several places have this name: choose one.")
			}
			if x.Code == "wrong-shape" && hint != "" {
				return tr(ctx, "This is not %s.", hint)
			}
			return sentence(faultText(ctx, x))
		}
	}
	return ""
}

// otherFaults returns the faults that belong to none of the named fields.
func (f *form) otherFaults(fields ...string) []protocol.Fault {
	if f.err == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.err.Faults), func(x protocol.Fault) bool {
		return slices.Contains(fields, strings.TrimPrefix(x.Pointer, "/"))
	})
}

// filtered reports whether any filter is set, other than the position in the listing.
func (f *form) filtered() bool {
	for name := range f.values {
		if name != "after" && name != "limit" {
			return true
		}
	}
	return false
}

// narrowed reports whether any filter but that of the words is set, or was refused.
func (f *form) narrowed(words string) bool {
	for name := range f.values {
		if name != words && name != "after" && name != "limit" {
			return true
		}
	}
	return f.err != nil
}

// selection returns the query of the listing from its newest item, with its question mark; "" when
// everything is shown.
func (f *form) selection() string {
	q := url.Values{}
	for k, v := range f.values {
		if k != "after" && k != "limit" {
			q[k] = v
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// to returns the path of the listing with one field changed, or removed for "".
func (f *form) to(path, name, value string) string {
	q := url.Values{}
	for k, v := range f.values {
		q[k] = v
	}
	if q.Del(name); name != "after" { // another list
		q.Del("after")
	}
	if name == "near" && value == "" {
		q.Del("radius")
	}
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// next returns the path of the next page of a listing, "" on the last.
func (f *form) next(path string, cursor *string) string {
	if cursor == nil {
		return ""
	}
	return f.to(path, "after", *cursor)
}
