package client

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stoa/protocol"
	"stoa/protocol/pow"
)

// A plan is an operation with its input arranged for HTTP: some members in the
// path, the rest in the query or in the body.
type plan struct {
	op     *protocol.Operation
	target string         // path and query
	rest   map[string]any // members of the body; nil for methods without one
	proof  *pow.Solution  // set when one has been paid
	file   io.ReadSeeker  // the body of an operation that takes one
	out    io.Writer      // where a file in the answer goes
	header http.Header    // members that travel in a header
	secret string         // travels as Authorization: Bearer; "" none
}

func newPlan(op *protocol.Operation, args map[string]any) (*plan, error) {
	rest := maps.Clone(args)
	if rest == nil {
		rest = map[string]any{}
	}
	segments := strings.Split(op.HTTP.Path, "/")
	for i, s := range segments {
		name, ok := strings.CutPrefix(s, "{")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		text, err := text(rest[name])
		switch { // what no path can say is refused here as the node would
		case rest[name] == nil:
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/" + name, Code: "required", Detail: "is required"})
		case err != nil || text == "" || text == "." || text == "..":
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/" + name, Code: "wrong-shape", Detail: "cannot be part of a path"})
		}
		segments[i] = url.PathEscape(text)
		delete(rest, name)
	}
	p := &plan{op: op, target: strings.Join(segments, "/")}
	switch op.HTTP.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		if op.Upload == 0 {
			p.rest = rest
			return p, nil
		}
		if s, ok := rest["passphrase"].(string); ok { // in no URL: addresses reach logs
			p.header = http.Header{protocol.PassphraseHeader: {s}}
			delete(rest, "passphrase")
		}
	}
	if op.Secret != "" && rest[op.Secret] != nil {
		secret, _ := rest[op.Secret].(string)
		if !strings.HasPrefix(secret, protocol.ReadTokenPrefix) || len(secret) > 100 {
			return nil, protocol.Invalid(protocol.Fault{Pointer: "/" + op.Secret, Code: "wrong-shape", Detail: "begins with " + protocol.ReadTokenPrefix})
		}
		p.secret = secret
		delete(rest, op.Secret)
	}
	query, err := queryOf(rest)
	if err != nil {
		return nil, err
	}
	if query != "" {
		p.target += "?" + query
	}
	return p, nil
}

// queryOf writes members as a query, in order of name; null members are left out.
func queryOf(members map[string]any) (string, error) {
	q := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] == nil {
			continue
		}
		s, err := text(members[name])
		if err != nil {
			return "", protocol.Invalid(protocol.Fault{Pointer: "/" + name, Code: "wrong-type", Detail: err.Error()})
		}
		q.Set(name, s)
	}
	return q.Encode(), nil
}

// text formats a value for a path or query: lists with commas.
func text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	switch raw[0] {
	case '{':
		return "", fmt.Errorf("an object cannot be part of a path or query")
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return "", err
		}
		parts := make([]string, len(list))
		for i, e := range list {
			if e[0] == '{' || e[0] == '[' {
				return "", fmt.Errorf("a nested list or object cannot be part of a path or query")
			}
			if err := json.Unmarshal(e, &parts[i]); err != nil {
				parts[i] = string(e)
			}
		}
		return strings.Join(parts, ","), nil
	}
	return string(raw), nil
}

// body is the JSON body, with the proof of work among its members (contract §3);
// nil when the method has none.
func (p *plan) body() ([]byte, error) {
	if p.rest == nil {
		return nil, nil
	}
	members := maps.Clone(p.rest)
	if p.proof != nil {
		members["pow"] = p.proof
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.op.Name, err)
	}
	return raw, nil
}
