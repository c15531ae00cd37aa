package netx

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// Tag returns the strong entity tag of a body (RFC 9110 §8.8.3).
func Tag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// Unchanged reports whether a request names the tag in If-None-Match, which compares weakly (RFC 9110 §13.1.2). No tag of the node contains
// a comma.
func Unchanged(r *http.Request, tag string) bool {
	for _, field := range r.Header["If-None-Match"] {
		for t := range strings.SplitSeq(field, ",") {
			if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
				return true
			}
		}
	}
	return false
}

// Serve answers a GET or HEAD with a body and its tag, or 304 to a client that has it. What else the answer says is in its header already.
func Serve(w http.ResponseWriter, r *http.Request, media string, body []byte) {
	head, tag := w.Header(), Tag(body)
	head.Set("ETag", tag)
	if Unchanged(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", media)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
