package httpsig

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"stoa/identity/key"
)

// KeyRequest is what is known about a signature before its key is known. Everything in it is the
// sender's claim; Agent and Identity are covered by the signature.
type KeyRequest struct {
	Params   Params
	Agent    AgentRef
	Identity string // Agent-Identity field value, "" when not covered
	Receipt  string // X-SIWA-Receipt field value, "" when not covered
	Inline   Key    // that the request itself gives in Signature-Key, covered; nil for none. Params.KeyID is its thumbprint
	// Published and Kid are where the key is that the request names in Signature-Key, covered, and its name there; Params.KeyID is a hash of both.
	Published AgentRef
	Kid       string
	Now       time.Time
}

// Resolved is a key and its owner.
type Resolved struct {
	Key       Key
	Principal any // opaque; handed to Result
}

// KeyResolver finds the key of a signature. Look it up by the pair of agent URL and keyid, or by
// the identity: with a lookup by keyid only, one directory could speak for another. Resolve
// returns a Code or an *Error (key-unknown, agent-missing, key-expired, directory-…); any other
// error becomes CodeKeyUnavailable. It is called at most Limits.Candidates times per message,
// concurrently.
type KeyResolver interface {
	Resolve(ctx context.Context, q KeyRequest) (Resolved, error)
}

// Verifier verifies messages. It has no state, may be shared, and must not be changed once in use.
type Verifier struct {
	Keys   KeyResolver
	Now    func() time.Time // nil: time.Now
	Limits Limits

	AllowTestKeys bool // accept keys whose private half is published in an RFC: tests only
	AllowLoopback bool // accept http and IP literals in Signature-Agent URLs of this machine: development only
}

// Result is what a verified signature proves. It exists only after the signature, the key, the
// times, the coverage and the body have been checked; only the nonce remains for the caller to
// spend. Its strings share memory with the header.
type Result struct {
	Label      string // chosen by the sender or an intermediary: no meaning in it
	Params     Params
	Covered    Covered
	Agent      AgentRef
	Principal  any
	Algorithm  Algorithm
	Thumbprint string // of the key
	Inline     bool   // the request itself gave the key, or its place (Signature-Key)
	BodyBound  bool   // content-digest is covered and matches the body

	coverage coverage

	// NonceKey identifies the signature among all that can still be accepted: SHA-256(keyid ‖ 0 ‖
	// nonce), 16 bytes. The caller inserts it in its own transaction, keeps it until NonceUntil,
	// and answers CodeReplayed if it exists already. It is zero when the signature has no nonce.
	NonceKey   [16]byte
	NonceUntil time.Time
}

var pool = sync.Pool{New: func() any { return new(parse) }}

// release returns the work space to the pool. Buffers that one huge header enlarged are dropped.
func (p *parse) release() {
	p.s = ""
	clear(p.members)
	if cap(p.base) <= 64<<10 && cap(p.value) <= 64<<10 {
		pool.Put(p)
	}
}

// Verify checks a message against a policy. body is the content as transferred, already read
// within the route's limit; nil and empty are the same.
//
// The error is always an *Error. Of several signatures for this node the first that verifies is
// used, in wire order; otherwise the first failure is returned. A failed signature is never tried
// as another profile.
func (v *Verifier) Verify(ctx context.Context, m *Message, body []byte, q *Policy) (*Result, error) {
	p := pool.Get().(*parse)
	defer p.release()
	r, e := v.verify(ctx, p, m, body, q)
	if e != nil {
		e.Label = strings.Clone(e.Label)
		return nil, e
	}
	return r, nil
}

func (v *Verifier) verify(ctx context.Context, p *parse, m *Message, body []byte, q *Policy) (*Result, *Error) {
	input, signature := m.Header["Signature-Input"], m.Header["Signature"]
	if len(input) == 0 || len(signature) == 0 {
		return nil, fail(CodeSignatureMissing, "")
	}
	p.limits = v.Limits.orDefault()
	if e := p.read(input, signature); e != nil {
		return nil, e
	}
	now := q.At
	if now.IsZero() {
		now = time.Now()
		if v.Now != nil {
			now = v.Now()
		}
	}
	ours := 0
	for i := range p.members {
		if q.ours(m, &p.members[i]) {
			ours++
		}
	}
	if ours == 0 {
		return nil, fail(CodeNoAcceptableSignature, "tag")
	}
	if ours > p.limits.Candidates {
		return nil, fail(CodeTooManySignatures, "candidates")
	}
	var first *Error
	for i := range p.members {
		sig := &p.members[i]
		if !q.ours(m, sig) {
			continue // for another application (RFC 9421 §2.3, tag)
		}
		r, e := v.judge(ctx, p, m, body, q, sig, now)
		if e == nil {
			return r, nil
		}
		if q.SkipUncovered && (e.Code == CodeCoverageInsufficient || e.Code == CodeAgentNotCovered || e.Code == CodeDigestMissing) {
			continue
		}
		if e.Label = sig.label; first == nil {
			first = e
		}
	}
	if first == nil {
		return nil, fail(CodeNoAcceptableSignature, "coverage")
	}
	return nil, first
}

// judge checks one signature in every step, cheap ones first.
func (v *Verifier) judge(ctx context.Context, p *parse, m *Message, body []byte, q *Policy, sig *member, now time.Time) (*Result, *Error) {
	inline, e := q.inline(m, sig)
	if e != nil {
		return nil, e
	}
	if e := q.checkParams(sig, now, inline != nil); e != nil {
		return nil, e
	}
	if e := p.buildBase(m, sig); e != nil {
		return nil, e.wanting(m, body)
	}
	comps := p.comps[sig.compFrom:sig.compTo]
	cov := coverageOf(comps)
	if e := q.checkCoverage(m, body, &sig.params, cov); e != nil {
		return nil, e.wanting(m, body)
	}
	if inline != nil && cov&coverKey == 0 {
		return nil, fail(CodeCoverageInsufficient, "signature-key")
	}
	agent, e := agentOf(m, sig.label, comps, v.AllowLoopback)
	if e != nil {
		return nil, e
	}
	ask := KeyRequest{Params: sig.params, Agent: agent, Now: now}
	if inline != nil {
		ask.Inline, ask.Published, ask.Kid = inline.key, inline.at, inline.kid
	}
	if cov&coverIdentity != 0 {
		ask.Identity = fieldOf(m, "Agent-Identity")
	}
	if cov&coverReceipt != 0 {
		ask.Receipt = fieldOf(m, "X-Siwa-Receipt")
	}
	found, err := v.Keys.Resolve(ctx, ask)
	if err != nil {
		return nil, asError(err, CodeKeyUnavailable)
	}
	if found.Key == nil {
		return nil, fail(CodeKeyUnknown, "")
	}
	thumb := found.Key.Thumbprint()
	if inline != nil {
		sig.params.KeyID = thumb
	}
	if !v.AllowTestKeys && key.IsPublicTestKey(thumb) {
		return nil, fail(CodeTestKeyRefused, "")
	}
	alg := found.Key.Algorithm()
	if !q.accepts(alg) {
		return nil, fail(CodeAlgorithmUnsupported, string(alg))
	}
	if sig.params.HasAlg && Algorithm(sig.params.Alg) != alg { // RFC 9421 §3.2: the key decides
		return nil, fail(CodeAlgorithmMismatch, "alg")
	}
	if err := found.Key.Verify(p.base, p.sigs[sig.sigFrom:sig.sigTo]); err != nil {
		if err == CodeSignatureMalformed {
			return nil, fail(CodeSignatureMalformed, "length")
		}
		if _, decided := err.(Code); !decided { // an account's contract was not to be had
			return nil, asError(err, CodeKeyUnavailable)
		}
		return nil, fail(CodeSignatureInvalid, p.derived(sig))
	}
	if cov&coverDigest != 0 {
		if e := verifyDigest(m.Header["Content-Digest"], body); e != nil {
			return nil, e
		}
	}
	r := &Result{
		Label: sig.label, Params: sig.params, Covered: Covered{list: string(p.listOf(sig))}, Agent: agent,
		Principal: found.Principal, Algorithm: alg, Thumbprint: thumb, Inline: inline != nil, BodyBound: cov&coverDigest != 0, coverage: cov,
	}
	if sig.params.HasNonce {
		r.NonceKey, r.NonceUntil = p.nonceKey(&sig.params), q.until(&sig.params)
	} else if inline != nil {
		r.NonceKey, r.NonceUntil = onceOnly(p.base, thumb), now.Add(q.MaxWindow+q.Skew)
	}
	return r, nil
}

// Meets reports whether a signature that verified for m also satisfies another policy with the
// same tags and algorithms.
func (r *Result) Meets(q *Policy, m *Message, body []byte) bool {
	p := &r.Params
	window := !q.wants(RequireExpires) || p.HasExpires && (q.MaxWindow == 0 || p.Expires-p.Created <= int64(q.MaxWindow/time.Second))
	nonce := !q.wants(RequireNonce) || len(p.Nonce) >= MinNonce
	return window && nonce && q.checkCoverage(m, body, p, r.coverage) == nil
}

// derived returns the part of a signature base that depends on how the request was received: the
// lines of derived components, shortened for people.
func (p *parse) derived(sig *member) string {
	var b strings.Builder
	b.WriteString("the signature does not match its base, in which this node has")
	rest := p.base
	for i := sig.compFrom; i < sig.compTo; i++ {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		if !bytes.HasPrefix(line, []byte(`"@`)) || b.Len() > 600 {
			continue
		}
		b.WriteByte(' ')
		b.Write(line[:min(len(line), 200)])
	}
	return b.String()
}

// listOf returns the inner list without the signature's parameters.
func (p *parse) listOf(sig *member) []byte {
	end := sig.canonFrom + 1
	if sig.compTo > sig.compFrom {
		end = p.comps[sig.compTo-1].idTo
	}
	return p.canon[sig.canonFrom : end+1]
}

func (p *parse) nonceKey(q *Params) (k [16]byte) {
	b := append(p.value[:0], q.KeyID...)
	b = append(append(b, 0), q.Nonce...)
	sum := sha256.Sum256(b)
	p.value = b
	copy(k[:], sum[:])
	return k
}

func fieldOf(m *Message, name string) string {
	lines := m.Header[name]
	if len(lines) == 1 {
		return strings.Trim(lines[0], " \t")
	}
	return string(appendLines(nil, lines))
}

// Signed reports whether a header carries both signature fields, so that a missing signature can
// be told from an invalid one. It reads no value.
func Signed(h http.Header) bool {
	return len(h["Signature-Input"]) > 0 && len(h["Signature"]) > 0
}
