package cavage

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/url"
	"time"

	gofed "github.com/go-fed/httpsig"

	"stoa/identity/httpsig"
)

// Sign signs a request that is about to be sent with RSA-SHA256, labelled hs2019, over
// (request-target), host, date and, with a body or a method other than GET and HEAD, digest. It
// sets Date when absent, Digest and Signature, replacing older values. Sign a retried delivery
// again: the peer checks the date.
//
// Safe for concurrent use with different requests.
func Sign(r *http.Request, body []byte, keyID string, key *rsa.PrivateKey) error {
	if r.URL == nil || r.URL.Opaque != "" {
		return &httpsig.Error{Code: httpsig.CodeTargetInvalid, Detail: "request without a URL"}
	}
	if r.Header.Get("Date") == "" {
		r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	headers := []string{gofed.RequestTarget, "host", "date"}
	if len(body) > 0 || r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != "" {
		headers = append(headers, "digest")
		if body == nil {
			body = []byte{} // go-fed digests any body that is not nil
		}
	} else {
		body = nil
	}
	// A signer keeps its hash between calls and is not safe for concurrent use.
	signer, _, err := gofed.NewSigner([]gofed.Algorithm{gofed.RSA_SHA256}, gofed.DigestSha256, headers, gofed.Signature, 0)
	if err != nil {
		return fmt.Errorf("make cavage signer: %w", err)
	}
	clone := forGoFed(r)
	if err := signer.SignRequest(key, keyID, clone, body); err != nil {
		return fmt.Errorf("sign request for %s: %w", r.URL.Host, err)
	}
	r.Header.Set("Signature", clone.Header.Get("Signature"))
	r.Header.Del("Digest")
	if d := clone.Header.Get("Digest"); d != "" {
		r.Header.Set("Digest", d)
	}
	return nil
}

// forGoFed returns a copy of r that go-fed v1.1.0 signs correctly: it takes Host from the header,
// where net/http never keeps it, and writes the decoded path, so the path is set to its form on
// the wire.
func forGoFed(r *http.Request) *http.Request {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	h := r.Header.Clone()
	h.Set("Host", host)
	h.Del("Digest")
	h.Del("Signature")
	return &http.Request{Method: method, Header: h, URL: &url.URL{Path: r.URL.RequestURI()}}
}
