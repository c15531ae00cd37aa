package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"

	"stoa/protocol"
)

// A form that makes something is done once: by a second click, after going back, and when its answer is
// loaded again, it has the same idempotency key, so the node repeats its answer. The key is made of what was sent
// and of the hidden field once, which names one visit of the page. A page that is kept for everyone has
// it empty: the script of the page fills it in. Without script it is the text that is done once: by an account within
// the life of a receipt, or with a proof of work.

type onceKey struct{}

// withOnce returns a context in which forms name a new visit of a page.
func withOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, rand.Text())
}

func onceOf(ctx context.Context) string {
	visit, _ := ctx.Value(onceKey{}).(string)
	return visit
}

// formKey returns the idempotency key of what a posted form makes, "" for a request that makes nothing.
func formKey(r *http.Request, op *protocol.Operation) string {
	if r.Method != http.MethodPost || r.PostForm == nil || op.ReadOnly {
		return ""
	}
	form := maps.Clone(r.PostForm)
	if form.Get("once") != "" {
		delete(form, "altcha") // is solved again for each try
	}
	sum := sha256.Sum256([]byte(op.Name + " " + r.URL.Path + " " + form.Encode()))
	return "form-" + base64.RawURLEncoding.EncodeToString(sum[:24])
}
