package httpsig

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"stoa/identity/key"
)

// maxKeyField bounds Signature-Key in bytes: a P-256 key has about 200.
const maxKeyField = 2 << 10

// signatureKey is the member of Signature-Key for a signature (draft-hardt-httpbis-signature-key-08): its scheme and parameters. ok is false
// without one.
func signatureKey(m *Message, label string) (scheme string, params *httpsfv.Params, ok bool) {
	lines := m.Header["Signature-Key"]
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if size == 0 || size > maxKeyField {
		return "", nil, false
	}
	d, err := httpsfv.UnmarshalDictionary(trimmed(lines))
	if err != nil {
		return "", nil, false
	}
	member, _ := d.Get(label)
	item, ok := member.(httpsfv.Item)
	if !ok {
		return "", nil, false
	}
	token, ok := item.Value.(httpsfv.Token)
	return string(token), item.Params, ok
}

// An ownKey is what a request itself says of the key of its signature (Signature-Key).
type ownKey struct {
	key Key      // scheme hwk; nil for jwks_uri
	at  AgentRef // scheme jwks_uri: where the key is
	kid string   // and its name there
}

// inline makes the keyid of a signature without one from what the request itself says of the key: of a key (scheme hwk) the RFC 7638
// thumbprint; of the place of a key (scheme jwks_uri) a hash, until the key is there. It is nil for every other signature, also one that has a
// keyid or a tag.
func (q *Policy) inline(m *Message, sig *member) (*ownKey, *Error) {
	if !q.Inline || sig.params.HasKeyID || sig.params.HasTag || m.Header["Signature-Key"] == nil {
		return nil, nil
	}
	scheme, params, ok := signatureKey(m, sig.label)
	if !ok {
		return nil, malformed(CodeKeyMalformed, "Signature-Key has no scheme for this signature")
	}
	if scheme == "jwks_uri" {
		return published(params, sig)
	}
	if scheme != "hwk" {
		return nil, fail(CodeKeyUnknown, "Signature-Key of the scheme "+scheme+" is not read, only hwk and jwks_uri; send the address of a key directory as "+
			"Signature-Agent")
	}
	jwk := map[string]string{}
	for _, name := range params.Names() {
		value, _ := params.Get(name)
		if jwk[name], ok = value.(string); !ok {
			return nil, malformed(CodeKeyMalformed, "Signature-Key: "+name+" is not a string")
		}
	}
	raw, err := json.Marshal(jwk)
	if err != nil {
		return nil, malformed(CodeKeyMalformed, "Signature-Key")
	}
	pub, err := key.ParsePublic(raw)
	if err != nil {
		return nil, malformed(CodeKeyMalformed, "Signature-Key: "+err.Error())
	}
	k, err := NewKey(pub.Key)
	if err != nil {
		return nil, asError(err, CodeKeyMalformed)
	}
	sig.params.KeyID, sig.params.HasKeyID = pub.Thumbprint, true
	return &ownKey{key: k}, nil
}

// metadataName is the name of a document under /.well-known/ (dwk).
var metadataName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const maxKid = 128

// published is where the key of a signature is by the scheme jwks_uri: the document {id}/.well-known/{dwk} names the key set, and kid the key
// in it. The form of the address is checked where it is fetched.
func published(params *httpsfv.Params, sig *member) (*ownKey, *Error) {
	text := map[string]string{}
	for _, name := range []string{"id", "dwk", "kid"} {
		value, _ := params.Get(name)
		if text[name], _ = value.(string); text[name] == "" {
			return nil, malformed(CodeKeyMalformed, "Signature-Key: the scheme jwks_uri needs id, dwk and kid, which are strings")
		}
	}
	id := strings.TrimSuffix(text["id"], "/")
	if !metadataName.MatchString(text["dwk"]) || len(text["kid"]) > maxKid || len(id) > MaxAgentURL || strings.ContainsAny(id, "?#") {
		return nil, malformed(CodeKeyMalformed, "Signature-Key: id is an https address of at most 512 bytes, dwk the name of a document, kid has at most 128 bytes")
	}
	own := &ownKey{at: AgentRef{Form: AgentMetadata, URL: id + "/.well-known/" + text["dwk"]}, kid: text["kid"]}
	sum := sha256.Sum256([]byte(own.at.URL + "\n" + own.kid))
	sig.params.KeyID, sig.params.HasKeyID = base64.RawURLEncoding.EncodeToString(sum[:]), true
	return own, nil
}

// onceOnly is what a signature by an inline key, which has no nonce, is known by: its base, with the key. A base cannot be signed again, also not
// by changing the signature.
func onceOnly(base []byte, thumbprint string) (k [16]byte) {
	h := sha256.New()
	h.Write([]byte(thumbprint + "\x00"))
	h.Write(base)
	copy(k[:], h.Sum(nil))
	return k
}

// inlineWindow is how long after created a signature by an inline key that has no expires is valid.
const inlineWindow = 60 * time.Second
