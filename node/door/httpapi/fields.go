package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"stoa/node/hall"
	"stoa/protocol"
)

// fields knows which members of an operation's input are in the path and the types of the others,
// so that strings of a query become JSON values.
type fields struct {
	op    *protocol.Operation
	path  []string
	types map[string]string // member → JSON Schema type
	body  bool              // the other members are in the body, otherwise in the query
}

func newFields(s *hall.Schemas, op *protocol.Operation) *fields {
	f := &fields{op: op, path: PathParams(op.HTTP.Path), types: map[string]string{}}
	for name, p := range s.Resolve(s.Of(op.In)).Properties {
		f.types[name] = s.Resolve(p).Type
	}
	f.body = op.Upload == 0 && (op.HTTP.Method == http.MethodPost || op.HTTP.Method == http.MethodPut || op.HTTP.Method == http.MethodPatch)
	return f
}

// PathParams returns the names in braces of a route's path.
func PathParams(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") {
			names = append(names, segment[1:len(segment)-1])
		}
	}
	return names
}

// gather combines path, query and body into one JSON object. The hall reports the faults together
// with its own.
func (f *fields) gather(r *http.Request, body []byte) ([]byte, []protocol.Fault, error) {
	query, err := f.query(r)
	if err != nil {
		return nil, nil, err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && f.op.Streams() { // HTML Standard §9.2.4: the id of the last event that the client received
		query = maps.Clone(query)
		if query == nil {
			query = map[string]any{}
		}
		query["after"] = id
	}
	var faults []protocol.Fault
	if _, sent := query[f.op.Secret]; sent && f.op.Secret != "" {
		delete(query, f.op.Secret)
		faults = []protocol.Fault{{Pointer: "/" + f.op.Secret, Code: "secret-in-url",
			Detail: "addresses are written to logs; send it as Authorization: Bearer, and consider this one exposed"}}
	}
	if f.op.Upload > 0 {
		const secret = "passphrase"
		if _, sent := query[secret]; sent {
			faults = append(faults, protocol.Fault{Pointer: "/" + secret, Code: "secret-in-url",
				Detail: "addresses are written to logs; send it in the header " + protocol.PassphraseHeader + ", and consider this one exposed"})
			delete(query, secret)
		}
		if p := r.Header.Get(protocol.PassphraseHeader); p != "" {
			if query == nil {
				query = map[string]any{}
			}
			query[secret] = p
		}
	}
	args, err := f.fold(r, query, body)
	return args, faults, err
}

func (f *fields) fold(r *http.Request, query map[string]any, body []byte) ([]byte, error) {
	if len(f.path) == 0 && len(query) == 0 {
		return body, nil
	}
	args := map[string]any{}
	for name, v := range query {
		args[name] = v
	}
	for _, name := range f.path {
		args[name] = coerce(f.types[name], r.PathValue(name))
	}
	if len(body) == 0 {
		return json.Marshal(args)
	}
	return splice(args, body)
}

// splice adds the members of args to the body's object. A member that is in both occurs twice in
// the result, which the hall reports.
func splice(args map[string]any, body []byte) ([]byte, error) {
	front, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	rest := strings.TrimLeft(string(body), " \t\r\n")
	if !strings.HasPrefix(rest, "{") {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the body must be a JSON object")
	}
	if inner := strings.TrimLeft(rest[1:], " \t\r\n"); strings.HasPrefix(inner, "}") {
		return append(front[:len(front)-1:len(front)-1], inner...), nil
	}
	front[len(front)-1] = ','
	return append(front, rest[1:]...), nil
}

// query reads the query string. Unknown names are faults, because agents misspell; utm_*, which
// mailers add, is ignored (contract §1).
func (f *fields) query(r *http.Request) (map[string]any, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the query string cannot be read: check the percent-encoding")
	}
	out := map[string]any{}
	var faults []protocol.Fault
	for name, vs := range values {
		if len(faults) >= protocol.MaxFaults { // the others are only counted
			faults = append(faults, protocol.Fault{})
			continue
		}
		kind, known := f.types[name]
		switch {
		case strings.HasPrefix(name, "utm_"):
		case !known && !f.body && name != "pow": // the hall reports it together with the other faults
			out[name] = vs[0]
		case !known || f.body || f.inPath(name):
			faults = append(faults, protocol.Fault{
				Pointer: "/" + hall.Escape(name), Code: "unknown-member", Detail: "there is no such query parameter; check the spelling",
			})
		case len(vs) > 1 && kind != "array":
			faults = append(faults, protocol.Fault{Pointer: "/" + hall.Escape(name), Code: "repeated", Detail: "give this parameter once"})
		case kind == "array":
			out[name] = strings.Split(strings.Join(vs, ","), ",")
		default:
			out[name] = coerce(kind, vs[0])
		}
	}
	if len(faults) > 0 {
		return nil, protocol.Invalid(faults...)
	}
	return out, nil
}

func (f *fields) inPath(name string) bool {
	for _, p := range f.path {
		if p == name {
			return true
		}
	}
	return false
}

// coerce converts a string to a JSON value of the member's type. A string that does not fit stays
// a string, so that the schema check reports the fault.
func coerce(kind, s string) any {
	switch kind {
	case "integer":
		if n, err := strconv.ParseInt(s, 10, 53); err == nil {
			return n
		}
	case "number":
		if n, err := strconv.ParseFloat(s, 64); err == nil && json.Valid([]byte(s)) { // NaN, Inf and 0x1p4 are not JSON
			return n
		}
	case "boolean":
		switch s {
		case "true", "1":
			return true
		case "false", "0":
			return false
		}
	}
	return s
}
