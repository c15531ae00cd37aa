package httpsig

import (
	"context"
	"time"
)

// Proof says whether a key of a directory signed the directory.
type Proof struct {
	Thumbprint string
	// Err is nil when the key signed the directory, CodeSignatureMissing when it made no
	// acceptable signature (older clients cover no digest: the proof is absent, not wrong), and
	// another code when a signature with the key is invalid: refuse the key.
	Err error
}

// VerifyDirectory verifies the signatures of a key directory with its own keys
// (draft-meunier-webbotauth-httpsig-protocol-02). m is the response with Related set to the
// request that fetched it, or would have: its Target is what is proven. The result has one entry
// for each key, in order. Proof is required for key material that someone else relayed, optional
// for a directory fetched over TLS.
func VerifyDirectory(m *Message, body []byte, keys []Key, now time.Time, allowTestKeys bool) []Proof {
	proofs := make([]Proof, len(keys))
	for i, k := range keys {
		proofs[i] = Proof{Thumbprint: k.Thumbprint(), Err: proveKey(m, body, k, now, allowTestKeys)}
	}
	return proofs
}

// oneKey resolves one thumbprint.
type oneKey struct{ key Key }

func (o oneKey) Resolve(_ context.Context, q KeyRequest) (Resolved, error) {
	if q.Params.KeyID != o.key.Thumbprint() {
		return Resolved{}, CodeKeyUnknown
	}
	return Resolved{Key: o.key}, nil
}

func proveKey(m *Message, body []byte, k Key, now time.Time, allowTestKeys bool) error {
	v := Verifier{Keys: oneKey{k}, AllowTestKeys: allowTestKeys}
	q := DirectoryPolicy()
	p := pool.Get().(*parse)
	defer p.release()
	p.limits = v.Limits.orDefault()
	input, signature := m.Header["Signature-Input"], m.Header["Signature"]
	if len(input) == 0 || len(signature) == 0 {
		return fail(CodeSignatureMissing, "")
	}
	if e := p.read(input, signature); e != nil {
		return e
	}
	err := fail(CodeSignatureMissing, "")
	for i := range p.members { // at most Limits.Labels, one verification for each key
		sig := &p.members[i]
		if !q.ours(m, sig) || sig.params.KeyID != k.Thumbprint() {
			continue
		}
		_, e := v.judge(context.Background(), p, m, body, q, sig, now)
		if e == nil {
			return nil
		}
		if e.Code != CodeCoverageInsufficient && e.Code != CodeDigestMissing {
			return e
		}
	}
	return err
}
