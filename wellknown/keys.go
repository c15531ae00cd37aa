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

// Life of the signature on a key directory. A cached answer is good for as long
// as any cache may hold it, and a node that is down for days stays verifiable
// through others' copies.
const (
	signFor   = 7 * 24 * time.Hour
	signAgain = 12 * time.Hour

	nodeKeysAge  = time.Hour // the bound on how long a retired key may be believed
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
	var name strings.Builder // a rotated key shows at once
	for _, p := range pairs {
		name.WriteString(p.Thumbprint())
	}
	d := document{media: directoryMedia, maxAge: nodeKeysAge, fixed: true}
	d.body, d.header, err = w.signedOnce(name.String(), func() ([]byte, http.Header, error) { return w.sign(pairs) })
	return d, err
}

// Front answers the address of the node itself with its key directory, to those
// who ask for one by its media type: some verifiers fetch the value of
// Signature-Agent as it is (draft-ietf-webbotauth-httpsig-protocol-01). All
// others get the page.
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

// agentKeys is the key directory of one agent, signed by the key itself: by the
// node for a key it holds, beforehand by the owner for one it does not.
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
		return AgentKey{}, protocol.Errorf(protocol.NotFound, "no such key; the path holds the RFC 7638 thumbprint of one")
	}
	k, err := w.c.Directory.Key(r.Context(), hash)
	if err == nil && k.Public.Thumbprint != hash {
		err = fmt.Errorf("directory gave key %s for %s", k.Public.Thumbprint, hash)
	}
	return k, err
}

// sign writes the set of the pairs' public keys and signs it with each, labels
// binding0, binding1, …. The signature depends on the authority and the bytes
// only, so one answer serves every request.
func (w *WellKnown) sign(pairs []key.Pair) ([]byte, http.Header, error) {
	return signSet(w.target, pairs)
}

// signSet is a key set of all pairs, signed by each.
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

// directoryAlgorithm is rsa-pss-sha512 for RSA keys, as Web Bot Auth reads them,
// and otherwise the key's only one.
func directoryAlgorithm(p key.Pair) httpsig.Algorithm {
	k, err := httpsig.NewKey(p.Public())
	if err != nil {
		return ""
	}
	return k.Algorithm()
}

// asked is the request that a directory answers, as far as its signature looks
// at it ("@authority";req).
func asked(t httpsig.Target) *httpsig.Message {
	return &httpsig.Message{Method: http.MethodGet, RawPath: "/", Target: t, Header: http.Header{}}
}

// A SignedDirectory is a key directory that the owner of a key signed for this
// node: the body and the three fields that prove it.
type SignedDirectory struct {
	Body           string `json:"body"` // JWK Set, the bytes that were signed
	ContentDigest  string `json:"contentDigest"`
	SignatureInput string `json:"signatureInput"`
	Signature      string `json:"signature"`
}

// SignDirectory makes the directory of one key for the node at target, good for
// seven days: what the owner of a key hands in.
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

// Check reports whether the directory holds exactly the key with this thumbprint
// and is signed by it for target, now and for at most seven days more. The error
// is a *protocol.Error that tells the owner what to do.
func (d SignedDirectory) Check(target httpsig.Target, thumbprint string, now time.Time) error {
	set, err := key.ParseSet([]byte(d.Body))
	if err != nil || len(set.Keys) != 1 || set.Ignored > 0 || set.Keys[0].Thumbprint != thumbprint {
		return protocol.Errorf(protocol.SignatureInvalid, "body must be a JWK Set with the key %s alone", thumbprint)
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
		return protocol.Errorf(protocol.SignatureInvalid, `sign ("@authority";req "content-digest") with tag %q for authority %s: %w`, httpsig.TagDirectory, target.Authority, err)
	}
	if !errors.Is(proven(now.Add(signFor+time.Minute)), httpsig.CodeExpired) {
		return protocol.Errorf(protocol.SignatureInvalid, "the signature must expire within seven days")
	}
	return nil
}

// presigned serves what the owner signed, for as long as it proves anything.
func (w *WellKnown) presigned(k AgentKey, d document) (document, error) {
	var s SignedDirectory
	if err := json.Unmarshal(k.Signed, &s); err != nil {
		return document{}, fmt.Errorf("signed directory of %s: %w", k.Handle, err)
	}
	err := s.Check(w.target, k.Public.Thumbprint, time.Now())
	if protocol.CodeOf(err) == protocol.SignatureExpired {
		return document{}, unsigned()
	}
	if err != nil { // it was checked when it came in, unless the node's address has changed since
		return document{}, fmt.Errorf("signed directory of %s: %v", k.Handle, err)
	}
	d.body, d.header = []byte(s.Body), s.header()
	return d, nil
}

// unsigned is temporary: the owner may sign at any time.
func unsigned() *protocol.Error {
	return &protocol.Error{Code: protocol.DirectoryExpired, RetryAfter: time.Hour,
		Detail: "The agent holds its own key, and no signature of it on the key directory is valid now."}
}

// signedMost is how many signed directories are kept until they are to be signed again.
const signedMost = 4096

// A signedSet is a key directory with its signature.
type signedSet struct {
	body   []byte
	header http.Header // not to be changed
}

// signedOnce returns what is kept under name, or makes it. Two goroutines may make
// the same at once; either is good.
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
