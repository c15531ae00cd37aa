// Package cavage reads and writes draft-cavage-http-signatures-12 as the fediverse uses it (SWICG
// ActivityPub HTTP signatures report): the form that peers without RFC 9421 still send to inboxes.
//
// The verifier is the package's own and strict: it requires coverage, hashes the body and checks
// the time. Signing uses go-fed/httpsig, whose verifier does none of that and is used only by the
// tests, as a second opinion. A request with Signature-Input is never read as cavage.
package cavage

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"net/http"
	"slices"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
)

// DefaultWindow is how far Date or (created) may differ from the node's clock, in both directions.
const DefaultWindow = time.Hour

// skew is how late a passed (expires) is still accepted.
const skew = 10 * time.Second

// Resolver finds the public key of a keyId, the URL of a key or an actor in the fediverse. It
// returns an httpsig.Code or *httpsig.Error such as key-unknown; other errors become
// key-unavailable. The caller of Verify must check that the key's owner is the actor of the
// activity.
type Resolver interface {
	Resolve(ctx context.Context, keyID string) (Resolved, error)
}

// Resolved is a key and who owns it.
type Resolved struct {
	Key       crypto.PublicKey // *rsa.PublicKey or ed25519.PublicKey
	Principal any              // opaque; handed to Result
}

// Verifier checks requests. It may be shared and must not be changed once in use.
type Verifier struct {
	Keys          Resolver
	Now           func() time.Time // nil: time.Now
	Window        time.Duration    // 0: DefaultWindow
	AllowTestKeys bool             // tests only
}

// Result is what was verified: the request target, the host, a time within the window and, with a
// body or a method other than GET and HEAD, the body.
type Result struct {
	KeyID      string
	Headers    []string // covered, lower case, in signed order
	Principal  any
	Thumbprint string // RFC 7638, of the key

	// QueryIgnored: only the path was signed. Some signers leave the query out of
	// (request-target), and peers accept that.
	QueryIgnored bool

	// There is no nonce. ReplayKey, SHA-256 of the signature cut to 16 bytes, may be
	// kept until ReplayUntil to refuse the same signature twice.
	ReplayKey   [16]byte
	ReplayUntil time.Time
}

func fail(c httpsig.Code, detail string) *httpsig.Error {
	return &httpsig.Error{Code: c, Detail: detail}
}

// Signed reports whether a request carries a signature of this form and none of
// RFC 9421.
func Signed(h http.Header) bool {
	_, ok := field(h)
	return ok
}

// Verify checks a request made by httpsig.FromRequest; body is its content as
// transferred. The error is an *httpsig.Error.
func (v *Verifier) Verify(ctx context.Context, m *httpsig.Message, body []byte) (*Result, error) {
	text, ok := field(m.Header)
	if !ok {
		return nil, fail(httpsig.CodeSignatureMissing, "")
	}
	s, e := parse(text)
	if e != nil {
		return nil, e
	}
	if e := s.covers(m.Method, len(body) > 0); e != nil {
		return nil, e
	}
	now, window := time.Now(), v.Window
	if v.Now != nil {
		now = v.Now()
	}
	if window == 0 {
		window = DefaultWindow
	}
	signedAt, e := s.times(m, now, window)
	if e != nil {
		return nil, e
	}
	base, e := s.base(m, true)
	if e != nil {
		return nil, e
	}
	if slices.Contains(s.headers, "digest") {
		if e := checkDigest(m.Header["Digest"], body); e != nil {
			return nil, e
		}
	}
	found, err := v.Keys.Resolve(ctx, s.keyID)
	if err != nil {
		return nil, resolveError(err)
	}
	if err := checkKey(found.Key, s.algorithm); err != nil {
		return nil, err
	}
	thumb := key.Thumbprint(found.Key)
	if !v.AllowTestKeys && key.IsPublicTestKey(thumb) {
		return nil, fail(httpsig.CodeTestKeyRefused, "")
	}
	r := &Result{KeyID: s.keyID, Headers: s.headers, Principal: found.Principal, Thumbprint: thumb, ReplayUntil: signedAt.Add(window)}
	if !verify(found.Key, s.algorithm, base, s.signature) {
		if !m.HasQuery {
			return nil, fail(httpsig.CodeSignatureInvalid, "")
		}
		// Fedify and older Mastodon sign only the path (2026).
		if base, e = s.base(m, false); e != nil {
			return nil, e
		}
		if !verify(found.Key, s.algorithm, base, s.signature) {
			return nil, fail(httpsig.CodeSignatureInvalid, "")
		}
		r.QueryIgnored = true
	}
	sum := sha256.Sum256(s.signature)
	copy(r.ReplayKey[:], sum[:])
	return r, nil
}

func resolveError(err error) error {
	switch e := err.(type) {
	case *httpsig.Error:
		return e
	case httpsig.Code:
		return &httpsig.Error{Code: e}
	}
	return &httpsig.Error{Code: httpsig.CodeKeyUnavailable, Err: err}
}

// checkKey refuses weak keys and a label that contradicts the key. "hs2019" and an absent label
// leave the choice to the key, in practice RSA-SHA256.
func checkKey(pub crypto.PublicKey, algorithm string) error {
	want := httpsig.RSAv15SHA256
	if _, ok := pub.(ed25519.PublicKey); ok {
		want = httpsig.Ed25519
	}
	if _, err := httpsig.NewKeyFor(pub, want); err != nil {
		return err
	}
	if hs := algorithm == "" || algorithm == "hs2019"; !hs && (algorithm == "ed25519") != (want == httpsig.Ed25519) {
		return fail(httpsig.CodeAlgorithmMismatch, "algorithm")
	}
	return nil
}

func verify(pub crypto.PublicKey, algorithm string, base, sig []byte) bool {
	switch pub := pub.(type) {
	case ed25519.PublicKey:
		return len(sig) == ed25519.SignatureSize && ed25519.Verify(pub, base, sig)
	case *rsa.PublicKey:
		if algorithm == "rsa-sha512" {
			sum := sha512.Sum512(base)
			return rsa.VerifyPKCS1v15(pub, crypto.SHA512, sum[:], sig) == nil
		}
		sum := sha256.Sum256(base)
		return rsa.VerifyPKCS1v15(pub, crypto.SHA256, sum[:], sig) == nil
	}
	return false
}
