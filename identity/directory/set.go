package directory

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

// keysOf parses a JWK Set in doc, which src returned. An unusable key does not affect the others.
// A set without a usable key is valid too: its owner has revoked all keys.
func keysOf(doc *document, set []byte, src source, now time.Time) (*found, *Failure) {
	parsed, err := key.ParseSet(set) // at most MaxBody bytes and MaxKeys keys; no private members
	if err != nil {
		return nil, &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: src.url + " sent no JWK Set", Err: err}
	}
	f := &found{keys: map[string]listed{}, at: now, lifetime: lifetime(doc.header)}
	var good []key.Public
	for _, p := range parsed.Keys {
		k, failure := listKey(p, src.wellKnown())
		if failure == nil {
			failure = prove(doc, src, k.key, now)
		}
		if failure != nil {
			k = listed{refused: failure}
		}
		if _, twice := f.keys[p.Thumbprint]; twice {
			continue // the first one counts
		}
		if _, twice := f.keys[p.ID]; src.kids && p.ID != "" && !twice {
			f.keys[p.ID] = k
		}
		if f.keys[p.Thumbprint] = k; failure == nil {
			if p.Alg != "RS256" { // the only name that says more than the type of key
				p.Alg = ""
			}
			good = append(good, p)
		}
	}
	if f.set, err = key.MarshalSet(good); err != nil {
		return nil, &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: src.url + " sent keys that cannot be kept", Err: err}
	}
	return f, nil
}

// listKey decides about one key by what its JWK says.
func listKey(p key.Public, wellKnown bool) (listed, *Failure) {
	if p.Use != "" && p.Use != "sig" {
		return listed{}, &Failure{Code: httpsig.CodeKeyMalformed, Detail: "the key directory says that the key is not for signatures (use)"}
	}
	if wellKnown && p.ID != "" && p.ID != p.Thumbprint {
		return listed{}, &Failure{Code: httpsig.CodeKeyMalformed, Detail: "kid is not the thumbprint of the key, as it must be at the well-known path"}
	}
	alg, ok := algorithms[p.Alg]
	if !ok {
		return listed{}, &Failure{Code: httpsig.CodeAlgorithmUnsupported, Detail: "the key directory names an algorithm (alg) that HTTP signatures do not have"}
	}
	k, err := httpsig.NewKeyFor(p.Key, alg)
	if err != nil {
		code := httpsig.CodeKeyMalformed
		if e, ok := errors.AsType[*httpsig.Error](err); ok {
			code = e.Code
		}
		return listed{}, &Failure{Code: code, Detail: "the key cannot be used", Err: err}
	}
	return listed{key: k, from: p.NotBefore, until: p.Expires}, nil
}

// algorithms maps JOSE names (RFC 7518, RFC 8037, RFC 9864) to those of RFC 9421. Without a name,
// the type of key decides.
var algorithms = map[string]httpsig.Algorithm{
	"": "", "EdDSA": httpsig.Ed25519, "Ed25519": httpsig.Ed25519,
	"ES256": httpsig.ECDSAP256SHA256, "ES384": httpsig.ECDSAP384SHA384,
	"PS512": httpsig.RSAPSSSHA512, "RS256": httpsig.RSAv15SHA256,
}

// prove verifies a signature that a key made over its directory. A directory that is fetched over
// TLS from its own address needs none; an invalid one means that someone publishes a key that is
// not theirs.
func prove(doc *document, src source, k httpsig.Key, now time.Time) *Failure {
	target, err := httpsig.ParseTarget(src.url)
	if err != nil {
		return &Failure{Code: httpsig.CodeAgentMalformed, Detail: "URL of the key directory", Err: err}
	}
	_, rest, _ := strings.Cut(src.url, "://")
	path := "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		path = rest[i:]
	}
	asked := httpsig.Message{Method: http.MethodGet, Target: target, Header: http.Header{}}
	asked.RawPath, asked.RawQuery, asked.HasQuery = strings.Cut(path, "?")
	answer := httpsig.Message{Status: http.StatusOK, Header: doc.header, Related: &asked}
	for _, proof := range httpsig.VerifyDirectory(&answer, doc.body, []httpsig.Key{k}, now, false) {
		if proof.Err == nil || errors.Is(proof.Err, httpsig.CodeSignatureMissing) {
			continue
		}
		code := httpsig.CodeSignatureInvalid
		if e, ok := errors.AsType[*httpsig.Error](proof.Err); ok {
			code = e.Code
		}
		return &Failure{Code: code, Detail: "the signature of the key directory with this key is not valid", Err: proof.Err}
	}
	return nil
}

// card is the part of a Signature Agent Card, an OAuth client metadata document, that says where
// its keys are. Without either member it has none.
type card struct {
	name string // client_name, as it may be shown; "" for none
	uri  string
	set  []byte
}

var cardLimits = strictjson.Limits{MaxBytes: MaxBody, MaxDepth: 16, MaxTokens: 4096}

// parseCard parses a card that was fetched from url (draft-meunier-webbotauth-registry-04).
func parseCard(body []byte, url string) (card, *Failure) {
	fail := func(why string, err error) (card, *Failure) {
		return card{}, &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: "card " + url + ": " + why, Err: err}
	}
	var doc struct {
		ClientID *string         `json:"client_id"`
		Name     json.RawMessage `json:"client_name"`
		URI      *string         `json:"jwks_uri"`
		Set      json.RawMessage `json:"jwks"`
	}
	if err := cardLimits.DecodeLoose(body, &doc); err != nil {
		return fail("not a client metadata document", err)
	}
	name := nameOf(doc.Name)
	inline := len(doc.Set) > 0 && string(doc.Set) != "null"
	switch {
	case doc.ClientID == nil || *doc.ClientID != url: // simple string comparison (RFC 3986 §6.2.1)
		return fail("client_id must be the URL of the card", nil)
	case doc.URI != nil && inline:
		return fail("jwks and jwks_uri exclude each other", nil)
	case doc.URI != nil && *doc.URI == "":
		return fail("jwks_uri is empty", nil)
	case doc.URI != nil:
		return card{name: name, uri: *doc.URI}, nil
	case inline:
		return card{name: name, set: doc.Set}, nil
	}
	return card{set: []byte(`{"keys":[]}`)}, nil
}

// parseMetadata returns the jwks_uri of metadata that was fetched from url, {id}/.well-known/{name}, and whose issuer is that id
// (draft-hardt-httpbis-signature-key-08).
func parseMetadata(body []byte, url string) (string, *Failure) {
	var doc struct {
		Issuer string `json:"issuer"`
		URI    string `json:"jwks_uri"`
	}
	if err := cardLimits.DecodeLoose(body, &doc); err != nil {
		return "", &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: url + " is no metadata", Err: err}
	}
	if id, _, _ := strings.Cut(url, "/.well-known/"); strings.TrimSuffix(doc.Issuer, "/") != id || doc.URI == "" {
		return "", &Failure{Code: httpsig.CodeDirectoryMalformed, Detail: url + " must have its own address as issuer, and a jwks_uri"}
	}
	return doc.URI, nil
}

// maxName is the length of a client_name in characters; a longer one is not used.
const maxName = 60

// nameOf returns a client_name as one line of fit text; "" for anything else (RFC 7591 §2).
func nameOf(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return ""
	}
	name = strings.Join(strings.Fields(protocol.CleanText(name)), " ")
	if utf8.RuneCountInString(name) > maxName {
		return ""
	}
	return name
}

// named adds the name of a card to its set, so that both are kept in one document.
func (f *found) named(name string) {
	if name == "" {
		return
	}
	raw, _ := json.Marshal(name) // a string always encodes
	f.name, f.set = name, slices.Concat(f.set[:len(f.set)-1], []byte(`,"client_name":`), raw, []byte("}"))
}
