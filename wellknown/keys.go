package wellknown

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
)

// Life of the signature on a key directory. A cached answer is valid for as long as any cache may
// keep it, and a node that is down for days stays verifiable through others' copies.
const (
	signFor   = 7 * 24 * time.Hour
	signAgain = 12 * time.Hour

	nodeKeysAge  = time.Hour // the limit of how long a retired key may still be believed
	agentKeysAge = 5 * time.Minute

	directoryMedia = "application/http-message-signatures-directory+json"
	jwkSetMedia    = "application/jwk-set+json"
)

// nodeKeys is the node's own key directory, signed by each key in it
// (draft-meunier-webbotauth-httpsig-protocol-02, HTTP Message Signatures
// Directory).
func (w *WellKnown) nodeKeys(r *http.Request) (document, error) {
	pairs, err := w.c.Keys.Node(r.Context())
	if err != nil {
		return document{}, fmt.Errorf("keys of the node: %w", err)
	}
	var name strings.Builder // a rotated key is published at once
	for _, p := range pairs {
		name.WriteString(p.Thumbprint())
	}
	d := document{media: directoryMedia, maxAge: nodeKeysAge, fixed: true}
	d.body, d.header, err = w.signedOnce(name.String(), func() ([]byte, http.Header, error) { return w.sign(pairs) })
	return d, err
}

// Front serves the node's key directory at the node's own address to clients that ask for its
// media type: some verifiers fetch the value of Signature-Agent itself
// (draft-ietf-webbotauth-httpsig-protocol-01). All others get the page.
func (w *WellKnown) Front(page http.Handler) http.Handler {
	keys := w.serve(w.nodeKeys)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
			media, params, err := mime.ParseMediaType(part)
			if err == nil && (media == directoryMedia || media == jwkSetMedia) && params["q"] != "0" {
				rw.Header().Add("Vary", "Accept")
				keys.ServeHTTP(rw, r)
				return
			}
		}
		page.ServeHTTP(rw, r)
	})
}

// agentKeys is the key directory of one agent, signed with the key itself: by the node for a key
// that it keeps, in advance by the owner for any other.
func (w *WellKnown) agentKeys(r *http.Request) (document, error) {
	k, err := w.agentKey(r)
	if err != nil {
		return document{}, err
	}
	d := document{media: jwkSetMedia, maxAge: agentKeysAge, fixed: true}
	if k.Signed != nil {
		return w.presigned(k, d)
	}
	thumbprint := k.Public.Thumbprint
	d.body, d.header, err = w.signedOnce(k.Handle+"/"+thumbprint, func() ([]byte, http.Header, error) {
		pair, err := w.c.Keys.Agent(r.Context(), k.Handle, thumbprint)
		switch {
		case err != nil && protocol.CodeOf(err) == protocol.NotFound:
			return nil, nil, unsigned()
		case err != nil:
			return nil, nil, fmt.Errorf("key %s of %s: %w", thumbprint, k.Handle, err)
		case pair.Thumbprint() != thumbprint:
			return nil, nil, fmt.Errorf("key %s of %s: opened %s", thumbprint, k.Handle, pair)
		}
		return w.sign([]key.Pair{pair})
	})
	return d, err
}

func (w *WellKnown) agentKey(r *http.Request) (AgentKey, error) {
	hash := r.PathValue("hash")
	if len(hash) != 43 { // SHA-256 in base64url
		return AgentKey{}, protocol.Errorf(protocol.NotFound, "there is no such key; the path must contain the RFC 7638 thumbprint of a key")
	}
	k, err := w.c.Directory.Key(r.Context(), hash)
	if err == nil && k.Public.Thumbprint != hash {
		err = fmt.Errorf("directory gave key %s for %s", k.Public.Thumbprint, hash)
	}
	return k, err
}

// sign returns the key set of the pairs, signed with each, with the labels binding0, binding1, ….
// The signature depends only on the authority and the bytes, so one answer serves every request.
func (w *WellKnown) sign(pairs []key.Pair) ([]byte, http.Header, error) {
	return signSet(w.target, pairs)
}

// signSet returns the key set of all pairs, signed with each.
func signSet(target httpsig.Target, pairs []key.Pair) ([]byte, http.Header, error) {
	if len(pairs) == 0 {
		return nil, nil, errors.New("no key to publish")
	}
	set := make([]key.Public, len(pairs))
	for i, p := range pairs {
		set[i] = p.Published()
	}
	body, err := key.MarshalSet(set)
	if err != nil {
		return nil, nil, err
	}
	h := http.Header{}
	for i, p := range pairs {
		err := httpsig.SignResponse(h, http.StatusOK, asked(target), body, httpsig.SignOptions{
			Key: p.Signer(), Label: "binding" + strconv.Itoa(i), TTL: signFor,
			Algorithm: directoryAlgorithm(p),
		})
		if err != nil {
			return nil, nil, fmt.Errorf("sign key directory: %w", err)
		}
	}
	return body, h, nil
}

// directoryAlgorithm returns rsa-pss-sha512 for RSA keys, as Web Bot Auth expects, and otherwise
// the only algorithm of the key.
func directoryAlgorithm(p key.Pair) httpsig.Algorithm {
	k, err := httpsig.NewKey(p.Public())
	if err != nil {
		return ""
	}
	return k.Algorithm()
}

// asked returns the request of a directory, as far as its signature covers it ("@authority";req).
func asked(t httpsig.Target) *httpsig.Message {
	return &httpsig.Message{Method: http.MethodGet, RawPath: "/", Target: t, Header: http.Header{}}
}

// A SignedDirectory is a key directory that the owner of a key signed for this node: the body and
// the three header fields of the signature.
type SignedDirectory struct {
	Body           string `json:"body"` // JWK Set, the signed bytes
	ContentDigest  string `json:"contentDigest"`
	SignatureInput string `json:"signatureInput"`
	Signature      string `json:"signature"`
}

// SignDirectory returns the directory of one key for the node at target, valid for seven days:
// what the owner of a key submits.
func SignDirectory(target httpsig.Target, pair key.Pair) (SignedDirectory, error) {
	body, h, err := signSet(target, []key.Pair{pair})
	if err != nil {
		return SignedDirectory{}, err
	}
	return SignedDirectory{
		Body: string(body), ContentDigest: h.Get("Content-Digest"),
		SignatureInput: h.Get("Signature-Input"), Signature: h.Get("Signature"),
	}, nil
}

func (d SignedDirectory) header() http.Header {
	return http.Header{
		"Content-Digest":  {d.ContentDigest},
		"Signature-Input": {d.SignatureInput},
		"Signature":       {d.Signature},
	}
}

// Check verifies that the directory contains exactly the key with this thumbprint and is signed
// with it for target, now and for at most seven more days. The error is a *protocol.Error that
// tells the owner what to do.
func (d SignedDirectory) Check(target httpsig.Target, thumbprint string, now time.Time) error {
	set, err := key.ParseSet([]byte(d.Body))
	if err != nil || len(set.Keys) != 1 || set.Ignored > 0 || set.Keys[0].Thumbprint != thumbprint {
		return protocol.Errorf(protocol.SignatureInvalid, "body must be a JWK Set with only the key %s", thumbprint)
	}
	k, err := httpsig.NewKey(set.Keys[0].Key)
	if err != nil {
		return protocol.Errorf(protocol.SignatureInvalid, "the key cannot sign a directory: %w", err)
	}
	m := &httpsig.Message{Status: http.StatusOK, Header: d.header(), Related: asked(target)}
	proven := func(at time.Time) error {
		return httpsig.VerifyDirectory(m, []byte(d.Body), []httpsig.Key{k}, at, false)[0].Err
	}
	switch err := proven(now); {
	case errors.Is(err, httpsig.CodeExpired):
		return protocol.Errorf(protocol.SignatureExpired, "the signature on the key directory has expired; sign it again")
	case err != nil:
		return protocol.Errorf(protocol.SignatureInvalid, `sign ("@authority";req "content-digest") with tag %q for authority %s: %w`,
			httpsig.TagDirectory, target.Authority, err)
	}
	if !errors.Is(proven(now.Add(signFor+time.Minute)), httpsig.CodeExpired) {
		return protocol.Errorf(protocol.SignatureInvalid, "the signature must expire within seven days")
	}
	return nil
}

// presigned serves what the owner signed, until the signature expires.
func (w *WellKnown) presigned(k AgentKey, d document) (document, error) {
	var s SignedDirectory
	if err := json.Unmarshal(k.Signed, &s); err != nil {
		return document{}, fmt.Errorf("signed directory of %s: %w", k.Handle, err)
	}
	err := s.Check(w.target, k.Public.Thumbprint, time.Now())
	if protocol.CodeOf(err) == protocol.SignatureExpired {
		return document{}, unsigned()
	}
	if err != nil { // it was checked when it was submitted, but the node's address may have changed since
		return document{}, fmt.Errorf("signed directory of %s: %v", k.Handle, err)
	}
	d.body, d.header = []byte(s.Body), s.header()
	return d, nil
}

// unsigned returns the temporary error: the owner may sign at any time.
func unsigned() *protocol.Error {
	return &protocol.Error{Code: protocol.DirectoryExpired, RetryAfter: time.Hour,
		Detail: "The agent keeps its own key, and the key directory has no valid signature of that key now."}
}

// signedMost is how many signed directories are kept until they have to be signed again.
const signedMost = 4096

// A signedSet is a key directory with its signature.
type signedSet struct {
	body   []byte
	header http.Header // not to be changed
}

// signedOnce returns the entry under name, or makes it. Two goroutines may make the same entry
// at once; either is valid.
func (w *WellKnown) signedOnce(name string, make func() ([]byte, http.Header, error)) ([]byte, http.Header, error) {
	now := time.Now()
	s, ok := w.signed.Get(name, now)
	if !ok {
		var err error
		if s.body, s.header, err = make(); err != nil {
			return nil, nil, err
		}
		w.signed.Put(name, s, 0, now.Add(signAgain))
	}
	return s.body, s.header, nil
}
