package mcpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/strictjson"
	"stoa/node/hall"
	"stoa/protocol"
)

// call runs a tool. An error of the operation becomes a result with isError, so that the model
// sees it. call returns an error only for a message that is not a valid call.
func (a *API) call(w http.ResponseWriter, r *http.Request, m *message, body []byte) error {
	name, ok := strictjson.String(m.params["name"])
	if !ok {
		return invalidParams("params must have the member name, the name of a tool")
	}
	t := a.tools[name]
	if t == nil {
		return &rpcError{status: http.StatusBadRequest, code: badParams, text: "there is no tool " + clip(name), data: errorData{Code: protocol.NotFound}}
	}
	args := m.params["arguments"]
	if bytes.Equal(args, []byte("null")) {
		args = nil // some clients send this for a tool without input
	}
	if len(args) > 0 && args[0] != '{' {
		return invalidParams("arguments must be an object")
	}
	if t.call != nil {
		c := a.newCall(w, r, m, body)
		c.Args = args
		res, err := t.call(c)
		if err != nil || res.Structured == nil {
			return c.reply(res.Members, err)
		}
		a.answer(w, m, a.result(m, t, nil, res.Structured))
		return nil
	}
	network := a.c.Network(r)
	var key string
	var kept []byte
	var look func() bool
	if hall.Open(t.op) {
		key = name + "\x00" + string('0'+rune(m.wire)) + string(args)
		look = func() (ok bool) { kept, ok = a.cache.Get(key); return ok }
		if hall.Unknown(r) && look() {
			a.c.Table.Limits.Fields(w.Header(), network, true)
			a.answer(w, m, kept)
			return nil
		}
	}
	version := a.cache.Version()
	args, err := m.resumed(t, args)
	if err != nil {
		return err
	}
	res, err := a.c.Table.Invoke(r.Context(), hall.Request{
		Op: name, Args: args, Evidence: a.evidence(r, body), IdempotencyKey: r.Header.Get("Idempotency-Key"), Kept: look, Door: "mcp",
		ID: w.Header().Get(requestIDHeader),
	})
	a.c.Table.Limits.Fields(w.Header(), network, t.op.ReadOnly)
	if err != nil {
		if a.awaited(w, r, m, body, args, protocol.AsError(err).Confirm) {
			return nil
		}
		return a.toolError(w, r, m, t, err)
	}
	if res.Caller.Standing != protocol.Signed && httpsig.Signed(r.Header) { // a read that was not recognised
		w.Header().Set("Accept-Signature", httpsig.AcceptFor(r))
	}
	if res.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	if !res.Kept {
		kept = a.result(m, t, args, res.JSON)
	}
	if res.Open {
		a.cache.Put(key, version, kept, len(kept))
	}
	a.answer(w, m, kept)
	return nil
}

// failed converts an error of a [Call].
func failed(err error) error {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return err
	}
	return &rpcError{status: f.Status, code: f.Code, text: f.Text, data: f.Data, retry: f.RetryAfter, always: true}
}

// result writes a successful call: the text and, for a tool with an output schema, the same as
// structured content. Where nothing was found, a second text says what to try.
func (a *API) result(m *message, t *tool, args, answer []byte) []byte {
	structured := t.op == nil || t.op.Media == ""
	if structured {
		answer = bytes.TrimSuffix(answer, []byte("\n"))
	}
	b := make([]byte, 0, 2*len(answer)+len(answer)/4+len(a.info)+192)
	b = append(b, '{')
	if m.wire == modern {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	b = appendString(b, answer)
	if tip := advice(t, args, answer); tip != "" {
		b = append(b, `},{"type":"text","text":`...)
		b = appendString(b, []byte(tip))
	}
	b = append(b, `}]`...)
	if structured {
		b = append(append(b, `,"structuredContent":`...), answer...)
	}
	return a.close(b, m)
}

// advice says what to try when a list has nothing for what it was asked; "" otherwise.
func advice(t *tool, args, answer []byte) string {
	if t.op == nil || !t.op.ReadOnly || !bytes.HasPrefix(answer, []byte(`{"items":[]`)) {
		return ""
	}
	asked := strictjson.Members(args)
	for _, other := range []string{"limit", "after", "sort", "handle"} {
		delete(asked, other)
	}
	words, narrowed := asked["q"] != nil || asked["query"] != nil, slices.Sorted(maps.Keys(asked))
	switch {
	case len(narrowed) == 0:
		return "There is nothing here yet."
	case words && len(narrowed) == 1:
		return "Nothing has all of these words. Try fewer of them, the name of a thing or place, or another spelling."
	}
	return "Nothing has all of " + strings.Join(narrowed, ", ") + ". Leave one of them out, or ask for less."
}

// contentOf is the result of an operation as members of that of a call.
func contentOf(op *protocol.Operation, answer []byte) map[string]any {
	answer = bytes.TrimSuffix(answer, []byte("\n"))
	m := map[string]any{"content": []any{map[string]string{"type": "text", "text": string(answer)}}}
	if op.Media == "" {
		m["structuredContent"] = json.RawMessage(answer)
	}
	return m
}

// toolError writes a call that failed.
func (a *API) toolError(w http.ResponseWriter, r *http.Request, m *message, t *tool, err error) error {
	head := w.Header()
	e := protocol.AsError(err)
	if m.wire == legacy {
		a.log(r, t, e, head.Get(requestIDHeader))
	}
	if members := a.later(m, e.Confirm); members != nil {
		return a.newCall(w, r, m, nil).reply(members, nil)
	}
	var accepts []protocol.Way
	if t.op != nil && e.Code.Status() == http.StatusUnauthorized {
		accepts = t.op.Ways(a.c.Base, a.c.Table.Gate.Chain != nil)
	}
	answer, err := newToolError(err, accepts, head.Get(requestIDHeader))
	if err != nil {
		return &rpcError{
			status: http.StatusInternalServerError, code: internalError, text: "the error cannot be encoded",
			data: errorData{Code: protocol.Internal}, always: true,
		}
	}
	status := http.StatusOK
	if a.credentialRefused(r, e) {
		status = e.Code.Status()
		a.challenged(head, r, e, t.op)
	}
	if e.RetryAfter > 0 {
		setRetry(head, e.RetryAfter)
	}
	b := append(make([]byte, 0, len(answer)+len(answer)/4+len(a.info)+160), '{')
	if m.wire == modern {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	b = appendString(b, answer)
	b = append(b, `}],"isError":true`...)
	a.write(w, status, m.id, "result", a.close(b, m))
	return nil
}

// challenged tells the sender of a refused credential what an operation takes.
func (a *API) challenged(head http.Header, r *http.Request, e *protocol.Error, op *protocol.Operation) {
	if e.Signature != "" {
		head.Set("Signature-Error", e.Signature)
	}
	if op.Access&protocol.Signed != 0 {
		head.Set("Accept-Signature", httpsig.AcceptFor(r))
	}
	if op.Access&protocol.Session != 0 {
		a.challenge(head, r, e, op)
	}
}

// close ends a result; the modern wire wants the server's name in each.
func (a *API) close(b []byte, m *message) []byte {
	if m.wire == modern {
		b = append(b, `,"_meta":{"`+metaServerInfo+`":`...)
		b = append(append(b, a.info...), '}')
	}
	return append(b, '}')
}

// appendString appends text as a JSON string.
func appendString(b, text []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i, c := range text {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, text[from:]...), '"')
}
