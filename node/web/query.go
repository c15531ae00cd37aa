package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"stoa/node/dispatch"
	"stoa/protocol"
)

// A form is what a reader asked of a listing, and what was wrong with it, so
// that the page can show both again.
type form struct {
	values url.Values // what was given, each field once
	args   map[string]any
	err    *protocol.Error // why it was refused, nil when it was not
}

// typesOf is the JSON Schema type of each field of an operation's input.
func typesOf(s *dispatch.Schemas, op *protocol.Operation) map[string]string {
	types := map[string]string{}
	for name, p := range s.Resolve(s.Of(op.In)).Properties {
		types[name] = s.Resolve(p).Type
	}
	return types
}

// given is the query as a form sends it: a field that was left empty was not
// given, and one that was ticked several times is a comma list.
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

// tidy takes what people write for what they mean: @asha, #paper, in-ka.
func tidy(name, v string) string {
	switch name {
	case "author":
		return protocol.CleanHandle(v)
	case "tag":
		return protocol.FoldTag(strings.TrimPrefix(v, "#"))
	case "region":
		return strings.ToUpper(v)
	}
	return v
}

// form reads the query of a page by the fields of its operation. What the
// operation does not know goes to the hall too, which names every fault at once.
func (s *Web) form(r *http.Request, op *protocol.Operation) (*form, error) {
	query, err := queryOf(r)
	if err != nil {
		return nil, err
	}
	f := &form{values: given(query), args: map[string]any{}}
	for name := range f.values {
		if strings.Contains(op.HTTP.Path, "{"+name+"}") {
			return nil, unknown(name)
		}
		f.args[name] = coerce(s.types[op.Name][name], f.get(name))
	}
	return f, nil
}

// bare refuses the query of a page that takes none.
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

// queryOf is the query of a request. One that cannot be read in whole is refused:
// without a filter that somebody meant, a listing would be another one.
func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the query string cannot be read: check the percent-encoding")
	}
	return query, nil
}

// unknown is the fault of a query parameter that the page does not take: agents
// misspell (contract §1).
func unknown(name string) error {
	return protocol.Invalid(protocol.Fault{
		Pointer: "/" + dispatch.Escape(name), Code: "unknown-member",
		Detail: "there is no such query parameter; check the spelling",
	})
}

// list reads a listing by the form. A refused form gives an empty page and
// keeps the reason in f; any other error is the page's.
func list[In, Item any](s *Web, r *http.Request, op protocol.Op[In, protocol.Page[Item]], f *form) (protocol.Page[Item], error) {
	var none protocol.Page[Item]
	page, err := read(s, r, op, f.args)
	if err != nil {
		if e := protocol.AsError(err); e.Code == protocol.Validation {
			f.err = e
			return none, nil
		}
		return none, err
	}
	return page, nil
}

// coerce makes a JSON value of a string by the field's type. What does not fit
// stays a string, so that the schema check names the fault.
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

// get is what was given for a field.
func (f *form) get(name string) string { return f.values.Get(name) }

// has reports whether one of a comma list was ticked.
func (f *form) has(name, value string) bool {
	for v := range strings.SplitSeq(f.values.Get(name), ",") {
		if v == value {
			return true
		}
	}
	return false
}

// fault is what is wrong with a field, "" when nothing is. A shape is named by
// the field's own hint and not by its regular expression.
func (f *form) fault(name, hint string) string {
	if f.err == nil {
		return ""
	}
	for _, x := range f.err.Faults {
		if x.Pointer == "/"+name {
			if x.Code == "wrong-shape" && hint != "" {
				return "This is not " + hint + "."
			}
			return sentence(x.Detail)
		}
	}
	return ""
}

// stray is what is wrong elsewhere than at the named fields.
func (f *form) stray(fields ...string) []protocol.Fault {
	if f.err == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.err.Faults), func(x protocol.Fault) bool {
		return slices.Contains(fields, strings.TrimPrefix(x.Pointer, "/"))
	})
}

// filtered reports whether anything but the place in the listing was asked for.
func (f *form) filtered() bool {
	for name := range f.values {
		if name != "after" && name != "limit" {
			return true
		}
	}
	return false
}

// selection is the query of the listing from its newest item, with its question
// mark; "" when everything is shown.
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

// to is a path of the same listing with one field changed; "" takes it out.
func (f *form) to(path, name, value string) string {
	q := url.Values{}
	for k, v := range f.values {
		q[k] = v
	}
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// next is the path of the next page of a listing, "" on the last.
func (f *form) next(path string, cursor *string) string {
	if cursor == nil {
		return ""
	}
	return f.to(path, "after", *cursor)
}
