package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stoa/identity/key"
)

// SignOptions says how to sign. Key is required; all else has a default.
type SignOptions struct {
	Key       crypto.Signer // ed25519.PrivateKey, *rsa.PrivateKey or *ecdsa.PrivateKey
	Algorithm Algorithm     // "" means by kind of key, for RSA rsa-v1_5-sha256
	KeyID     string        // default: the key's thumbprint
	Label     string        // default "sig1"

	Tag     string        // default web-bot-auth; "-" leaves the tag out
	Created time.Time     // default: now
	TTL     time.Duration // expires-created; default 60 s; negative leaves expires out
	Nonce   string        // default: 18 random bytes in base64url; "-" leaves the nonce out
	SendAlg bool          // send the alg parameter (the fediverse expects it)

	// Components replaces the default list. An entry is a name with parameters in the form after
	// the quoted name: "@path", `signature-agent;key="sig1"`, "@authority;req".
	Components []string
	Extra      []string // added to the list, such as "idempotency-key"
	WholeAgent bool     // cover Signature-Agent as a field by default, even if it has a member for the label
}

// SignRequest signs a request that is about to be sent: it sets Content-Digest when there is a
// body, and adds Signature-Input and Signature. body is what r.Body will yield; it is not read
// from there. Sign last: changing a header afterwards invalidates the signature.
//
// By default it covers what WritePolicy requires: @method, @authority, @path, @query when there is
// one, content-type, content-digest, signature-agent and agent-identity when present. For actors
// of the fediverse set Components to @method, @target-uri and content-digest.
//
// On error the request is unchanged except for Content-Digest. The error is an *Error when the
// request is at fault.
func SignRequest(r *http.Request, t Target, body []byte, o SignOptions) error {
	m, err := FromRequest(r, t)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Digest", ContentDigest(body))
	}
	if o.Components == nil {
		o.Components = defaultComponents(&m, len(body) > 0, o)
	}
	if o.Nonce == "" {
		o.Nonce = newNonce()
	}
	return sign(&m, o)
}

// SignResponse signs a response; related is the request that it answers. By default the response
// is a key directory signed with its own key: components "@authority";req and content-digest, tag
// http-message-signatures-directory, label binding0, valid for seven days, no nonce. It sets
// Content-Digest.
func SignResponse(h http.Header, status int, related *Message, body []byte, o SignOptions) error {
	h.Set("Content-Digest", ContentDigest(body))
	if o.Components == nil {
		o.Components = []string{"@authority;req", "content-digest"}
	}
	if o.Tag == "" {
		o.Tag = TagDirectory
	}
	if o.Label == "" {
		o.Label = "binding0"
	}
	if o.TTL == 0 {
		o.TTL = 7 * 24 * time.Hour
	}
	if o.Nonce == "" {
		o.Nonce = "-"
	}
	return sign(&Message{Status: status, Header: h, Related: related}, o)
}

func (o SignOptions) label() string {
	if o.Label == "" {
		return "sig1"
	}
	return o.Label
}

func defaultComponents(m *Message, body bool, o SignOptions) []string {
	list := []string{"@method", "@authority", "@path"}
	if m.HasQuery {
		list = append(list, "@query")
	}
	if m.Target.Scheme != "https" {
		list = []string{"@method", "@target-uri"} // the reader would assume another scheme
	}
	has := func(name string) bool { return len(m.Header[canonicalName(name)]) > 0 }
	if body {
		for _, name := range []string{"content-type", "content-encoding"} {
			if has(name) {
				list = append(list, name)
			}
		}
		list = append(list, "content-digest")
	}
	if has("signature-agent") {
		if _, ok := singleString(m.Header["Signature-Agent"], o.label()); ok && !o.WholeAgent {
			list = append(list, `signature-agent;key="`+o.label()+`"`)
		} else {
			list = append(list, "signature-agent")
		}
	}
	if has("agent-identity") {
		list = append(list, "agent-identity")
	}
	return list
}

func newNonce() string {
	var b [18]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sign writes the member as text and builds its base with the verifier's own scanner, so that what
// is signed is what a strict reader sees.
func sign(m *Message, o SignOptions) error {
	alg, err := o.algorithm()
	if err != nil {
		return err
	}
	text, err := o.input(alg)
	if err != nil {
		return err
	}
	p := pool.Get().(*parse)
	defer p.release()
	p.limits = Limits{}.orDefault()
	p.canon, p.comps, p.members = p.canon[:0], p.comps[:0], p.members[:0]
	if e := p.readInput(text); e != nil {
		return e
	}
	if len(p.members) != 1 {
		return fail(CodeSignatureInputMalformed, "label")
	}
	if e := p.buildBase(m, &p.members[0]); e != nil {
		return e
	}
	sig, err := signBase(o.Key, alg, p.base)
	if err != nil {
		return err
	}
	m.Header.Add("Signature-Input", text)
	m.Header.Add("Signature", o.label()+"=:"+base64.StdEncoding.EncodeToString(sig)+":")
	return nil
}

// input is the Signature-Input member.
func (o SignOptions) input(alg Algorithm) (string, error) {
	created := o.Created
	if created.IsZero() {
		created = time.Now()
	}
	b := append([]byte(o.label()), "=("...)
	for i, c := range append(o.Components[:len(o.Components):len(o.Components)], o.Extra...) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendID(b, c)
	}
	b = appendInt(append(b, ");created="...), created.Unix())
	if o.TTL == 0 {
		o.TTL = 60 * time.Second
	}
	if o.TTL > 0 {
		b = appendInt(append(b, ";expires="...), created.Add(o.TTL).Unix())
	}
	if o.KeyID == "" {
		o.KeyID = key.Thumbprint(o.Key.Public())
	}
	if o.Tag == "" {
		o.Tag = TagWebBotAuth
	}
	texts := [...]struct{ name, value string }{{"nonce", o.Nonce}, {"keyid", o.KeyID}, {"alg", ""}, {"tag", o.Tag}}
	if o.SendAlg {
		texts[2].value = string(alg)
	}
	for _, t := range texts {
		if t.value == "" || t.value == "-" {
			continue
		}
		for i := 0; i < len(t.value); i++ {
			if c := t.value[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
				return "", fail(CodeParameterInvalid, t.name+": printable ASCII without quotes")
			}
		}
		b = append(append(append(b, ';'), t.name...), `="`...)
		b = append(append(b, t.value...), '"')
	}
	return string(b), nil
}

// appendID turns `name;params` into `"name";params`.
func appendID(b []byte, c string) []byte {
	name, params, has := strings.Cut(c, ";")
	b = append(append(append(b, '"'), name...), '"')
	if has {
		b = append(append(b, ';'), params...)
	}
	return b
}

func (o SignOptions) algorithm() (Algorithm, error) {
	if o.Key == nil {
		return "", fail(CodeKeyMalformed, "no private key")
	}
	want := o.Algorithm
	if _, ok := o.Key.Public().(*rsa.PublicKey); ok && want == "" {
		want = RSAv15SHA256
	}
	if _, ok := o.Key.(ed25519.PrivateKey); ok && want == "" {
		return Ed25519, nil // avoids the curve check on every request
	}
	k, err := NewKeyFor(o.Key.Public(), want)
	if err != nil {
		return "", err
	}
	return k.Algorithm(), nil
}

// signBase makes the signature bytes of RFC 9421 §3.3.
func signBase(priv crypto.Signer, alg Algorithm, base []byte) ([]byte, error) {
	switch alg {
	case Ed25519:
		return priv.Sign(nil, base, crypto.Hash(0))
	case RSAPSSSHA512:
		sum := sha512.Sum512(base)
		return priv.Sign(rand.Reader, sum[:], pssOptions)
	case RSAv15SHA256:
		sum := sha256.Sum256(base)
		return priv.Sign(rand.Reader, sum[:], crypto.SHA256)
	case ECDSAP256SHA256, ECDSAP384SHA384:
		k, ok := priv.(*ecdsa.PrivateKey)
		if !ok {
			break
		}
		r, s, err := ecdsa.Sign(rand.Reader, k, ecdsaDigest(k.Curve, base))
		if err != nil {
			return nil, err
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		sig := make([]byte, 2*size)
		r.FillBytes(sig[:size])
		s.FillBytes(sig[size:])
		return sig, nil
	}
	return nil, fmt.Errorf("httpsig: cannot sign %s with %T", alg, priv)
}
