package httpsig

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
)

// Wanted is the signature that a server requests. Its zero value requests what WritePolicy
// requires for a request with a body.
type Wanted struct {
	Label      string   // default "sig1"; the answer uses the same
	Components []string // as in SignOptions; nil: full coverage with a body
	Nonce      string   // to be echoed; "": the signer chooses
	KeyID, Alg string   // to be echoed; "": any
	Tag        string   // default web-bot-auth
}

// AcceptFor returns the value of Accept-Signature in the answer to r: the signature that
// WritePolicy accepts for the same request, with a fresh nonce, so that a client that follows it
// literally is admitted (RFC 9421 §5.2). The signer chooses created and expires, at most 300 s
// apart. more are further components to cover, fields that the next request will have.
func AcceptFor(r *http.Request, more ...string) string {
	query := r.URL.RawQuery != "" || r.URL.ForceQuery
	list := wanted(r.Header, query, r.ContentLength != 0)
	if r.Header["Signature-Agent"] == nil && r.Header["Agent-Identity"] == nil && len(more) == 0 {
		// Whoever says with the next request where its key is must cover that.
		list = append(list, "signature-agent")
	}
	for _, name := range more {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return AcceptSignature(Wanted{Components: list, Nonce: rand.Text()})
}

// wanted returns what a signature must cover by WritePolicy, for a request with these fields.
func wanted(h http.Header, query, body bool) []string {
	list := []string{"@method", "@authority", "@path"}
	if query {
		list = append(list, "@query")
	}
	if body {
		list = append(list, "content-type", "content-digest")
	}
	for _, name := range [...]string{"Content-Encoding", "Signature-Agent", "Agent-Identity"} {
		if _, sent := h[name]; sent {
			list = append(list, strings.ToLower(name))
		}
	}
	return list
}

// AcceptSignature returns the value of the Accept-Signature response field (RFC 9421 §5). created
// and expires are bare flags in it. Characters that a string cannot contain are removed from
// parameter values.
func AcceptSignature(w Wanted) string {
	if w.Label == "" {
		w.Label = "sig1"
	}
	if w.Tag == "" {
		w.Tag = TagWebBotAuth
	}
	if w.Components == nil {
		w.Components = []string{"@method", "@authority", "@path", "@query", "content-type", "content-digest",
			`signature-agent;key="` + w.Label + `"`}
	}
	b := append([]byte(w.Label), "=("...)
	for i, c := range w.Components {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendID(b, c)
	}
	b = append(b, ");created;expires"...)
	for _, p := range [...]struct{ name, value string }{{"nonce", w.Nonce}, {"keyid", w.KeyID}, {"alg", w.Alg}, {"tag", w.Tag}} {
		if p.value == "" {
			continue
		}
		b = append(append(append(b, ';'), p.name...), `="`...)
		b = append(b, strings.Map(printable, p.value)...)
		b = append(b, '"')
	}
	return string(b)
}

func printable(r rune) rune {
	if r < 0x20 || r >= 0x7f || r == '"' || r == '\\' {
		return -1
	}
	return r
}
