package ucpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/strictjson"
	"stoa/protocol"
)

const maxKeys = 16 // of a profile; later ones are ignored

// A platformKey is a key of a platform's profile.
type platformKey struct {
	id  string      // kid as published
	key httpsig.Key // nil for a kind that the node does not verify
}

// readKeys reads a list of JSON Web Keys. Unusable ones do not affect the others.
func readKeys(o *object, name string) []platformKey {
	var keys []platformKey
	for i, raw := range o.list(name) {
		if i >= maxKeys {
			break
		}
		p, err := key.ParsePublic(raw)
		switch {
		case errors.Is(err, key.ErrUnsupported):
			if jwk, f := parse(raw); f == nil {
				keys = append(keys, platformKey{id: jwk.text("kid", httpsig.MaxKeyID)})
			}
			continue
		case err != nil || p.Use != "" && p.Use != "sig" || p.ID == "" || !verifies(raw):
			continue
		}
		k, err := httpsig.NewKey(p.Key)
		if err != nil {
			continue
		}
		keys = append(keys, platformKey{p.ID, k})
	}
	return keys
}

// verifies reports whether key_ops of a key, if it is there, has verify (RFC 7517 §4.3).
func verifies(raw json.RawMessage) bool {
	ops, sent := strictjson.Members(raw)["key_ops"]
	var list []string
	return !sent || json.Unmarshal(ops, &list) == nil && slices.Contains(list, "verify")
}

// Resolve finds the key of a signature by its keyid, the kid of a key in the profile that UCP-Agent
// names. A tagged signature names its key by the thumbprint (Identity Resolution Algorithm, step 4).
func (p *platform) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	i := slices.IndexFunc(p.keys, func(k platformKey) bool { return k.id == q.Params.KeyID })
	if i < 0 {
		return httpsig.Resolved{}, httpsig.CodeKeyUnknown
	}
	k := p.keys[i].key
	switch {
	case k == nil:
		return httpsig.Resolved{}, httpsig.CodeAlgorithmUnsupported
	case q.Params.HasTag && k.Thumbprint() != q.Params.KeyID:
		return httpsig.Resolved{}, httpsig.CodeSignatureInvalid
	}
	return httpsig.Resolved{Key: k}, nil
}

var policyOfUCP = httpsig.UCPPolicy()

// verify checks the signatures of a request, if there are any, and reports whether one is the platform's. Those that do not cover what UCP
// requires do not count, as signatures are optional for reads. A request of which every signature that
// counts fails is refused.
func (x *exchange) verify(r *http.Request, p *platform, body []byte) (vouched bool, err error) {
	if r.Header["Signature"] == nil && r.Header["Signature-Input"] == nil {
		return false, nil
	}
	if r.Header["Signature"] == nil || r.Header["Signature-Input"] == nil {
		return false, signatureFault(http.StatusUnauthorized, rpcRefused, "signature_missing", "Signature and Signature-Input are sent together", nil)
	}
	m, err := httpsig.FromRequest(r, x.target)
	if err != nil {
		return false, verdict(err)
	}
	// A digest that is sent holds whether or not a signature covers it.
	if lines := r.Header["Content-Digest"]; lines != nil {
		if err := httpsig.VerifyContentDigest(lines, body); err != nil {
			return false, verdict(err)
		}
	}
	v := httpsig.Verifier{Keys: p, AllowLoopback: x.c.Loopback}
	_, err = v.Verify(r.Context(), &m, body, policyOfUCP)
	if errors.Is(err, httpsig.CodeKeyUnknown) { // the platform may have a new key
		fresh, renewed := x.platforms.renew(r.Context(), p)
		if !renewed {
			return false, verdict(err)
		}
		v.Keys = fresh
		_, err = v.Verify(r.Context(), &m, body, policyOfUCP)
	}
	if errors.Is(err, httpsig.CodeNoAcceptableSignature) {
		return false, nil
	}
	if err != nil {
		return false, verdict(err)
	}
	return true, nil
}

// verdict converts an error of the verifier to one of UCP.
func verdict(err error) *fault {
	e, _ := errors.AsType[*httpsig.Error](err)
	if e == nil {
		return signatureFault(http.StatusUnauthorized, rpcRefused, "signature_invalid", "the signature is not valid", err)
	}
	text := string(e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	switch e.Code {
	case httpsig.CodeHostUnknown:
		return faultOf(protocol.Errorf(protocol.Misdirected, "the request was signed for another host than this node's"))
	case httpsig.CodeKeyUnknown:
		return signatureFault(http.StatusUnauthorized, rpcRefused, "key_not_found", "no key of the platform's profile has the kid of the signature", err)
	case httpsig.CodeDigestMismatch, httpsig.CodeDigestMalformed, httpsig.CodeDigestUnsupported:
		return signatureFault(http.StatusBadRequest, rpcRequest, "digest_mismatch", text, err)
	case httpsig.CodeAlgorithmUnsupported, httpsig.CodeAlgorithmMismatch:
		return signatureFault(http.StatusBadRequest, rpcRequest, "algorithm_unsupported", text, err)
	}
	return signatureFault(http.StatusUnauthorized, rpcRefused, "signature_invalid", text, err)
}

func signatureFault(status, rpc int, code, text string, cause error) *fault {
	return &fault{status: status, rpc: rpc, code: code, text: text, cause: cause}
}

// signatureError returns the value of Signature-Error for a cause, "" for none.
func signatureError(cause error) string {
	if e, ok := errors.AsType[*httpsig.Error](cause); ok {
		return e.SignatureError()
	}
	return ""
}
