package httpsig

import "strings"

// Wanted is the signature that a server asks for. Its zero value asks for what
// WritePolicy demands of a request with a body.
type Wanted struct {
	Label      string   // default "sig1"; the answer uses the same
	Components []string // as in SignOptions; nil: full coverage with a body
	Nonce      string   // to be echoed; "": the signer chooses
	KeyID, Alg string   // to be echoed; "": any
	Tag        string   // default web-bot-auth
}

// WantedBodyless asks for full coverage of a request without a body.
func WantedBodyless() Wanted {
	return Wanted{Components: []string{"@method", "@authority", "@path", "@query", `signature-agent;key="sig1"`}}
}

// AcceptSignature is the value of the Accept-Signature response field
// (RFC 9421 §5). created and expires stand in it as bare flags. Characters that no
// string may hold are left out of parameter values.
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
