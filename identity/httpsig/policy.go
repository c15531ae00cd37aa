package httpsig

import (
	"slices"
	"time"
)

// Require is a set of conditions on what a signature covers. Only exact
// identifiers count: "content-digest" and "content-digest";sf bind the body,
// "content-digest";bs and ;req do not.
type Require uint16

const (
	RequireMethod           Require = 1 << iota // @method
	RequireAuthority                            // @authority or @target-uri
	RequireTarget                               // @target-uri, or @authority, @path and, when there is a query, @query
	RequireBody                                 // content-digest when there is a body
	RequireContentType                          // content-type when there is a body; content-encoding when present
	RequireAgent                                // signature-agent when present
	RequireIdentity                             // agent-identity when present
	RequireDigest                               // content-digest, body or not
	RequireRelatedAuthority                     // "@authority";req in a response
	RequireExpires                              // parameter expires
	RequireNonce                                // parameter nonce of 16 to 256 bytes
	RequireUCPAgent                             // ucp-agent when present
	RequireIdempotencyKey                       // idempotency-key when present
)

// TagWebBotAuth, TagStoa and TagDirectory are the values of the tag parameter
// that this node reads and writes.
const (
	TagWebBotAuth = "web-bot-auth"
	TagStoa       = "stoa"
	TagDirectory  = "http-message-signatures-directory"
)

// MaxNonce and MinNonce bound a nonce in bytes; MaxKeyID a keyid.
const (
	MinNonce = 16
	MaxNonce = 256
	MaxKeyID = 512
)

// Policy is what a route requires of a signature. keyid is always required. A Policy must not be
// changed once in use; change a copy.
type Policy struct {
	Tags      []string      // accepted tags; signatures with others are not for this node. nil: any tag or none
	Require   Require       //
	MaxWindow time.Duration // longest expires-created; 0: no bound
	MaxAge    time.Duration // longest now-created; 0: no bound but expires
	Skew      time.Duration // how far clocks may differ, in both directions

	// Undated accepts signatures without created, which do not expire. A tagged one needs it.
	Undated bool

	// Untagged accepts signatures without a tag in addition to Tags.
	Untagged bool

	// Accounts accepts signatures of Ethereum accounts (ERC-8128) in addition to Tags.
	Accounts bool

	// Inline accepts signatures without tag and keyid whose key is in Signature-Key, covered, by the scheme hwk or jwks_uri
	// (draft-hardt-httpbis-signature-key-08), in addition to Tags. They need no nonce and no expires: NonceKey names each all the same.
	Inline bool

	// SkipUncovered ignores a signature that does not cover what is required, as if it were for
	// another application.
	SkipUncovered bool

	// Algorithms accepted; nil: all that NewKey makes.
	Algorithms []Algorithm

	// NamedQuery accepts @query-param components instead of @query. The handler may then read only
	// parameters that Result.Covered.QueryParam confirms.
	NamedQuery bool

	// At sets the time, for evidence that is verified later. Zero: Verifier.Now.
	At time.Time
}

// WritePolicy is for requests that change something: full coverage, at most five minutes, and a
// nonce to spend.
func WritePolicy() *Policy {
	return &Policy{
		Tags: []string{TagWebBotAuth, TagStoa},
		Require: RequireMethod | RequireTarget | RequireBody | RequireContentType | RequireAgent | RequireIdentity |
			RequireExpires | RequireNonce,
		MaxWindow: 300 * time.Second,
		Skew:      30 * time.Second,
		Accounts:  true,
		Inline:    true,
	}
}

// ReadPolicy is the minimum of Web Bot Auth. What it accepts can be replayed for a day against any
// path: it identifies a caller for rate limits and nothing else.
func ReadPolicy() *Policy {
	return &Policy{
		Tags:      []string{TagWebBotAuth, TagStoa},
		Require:   RequireAuthority | RequireAgent | RequireIdentity | RequireExpires,
		MaxWindow: 24 * time.Hour,
		Skew:      30 * time.Second,
		Accounts:  true,
	}
}

// FederationPolicy is for inboxes and signed fetches: what Mastodon, Fedify and others send. There
// is no nonce; the inbox is idempotent by activity id.
func FederationPolicy() *Policy {
	return &Policy{
		Require: RequireMethod | RequireTarget | RequireBody,
		MaxAge:  65 * time.Minute,
		Skew:    60 * time.Minute,
	}
}

// UCPPolicy is for requests of the Universal Commerce Protocol (UCP 2026-08-25, Identity Resolution
// Algorithm): untagged signatures, which need no date, and those of Web Bot Auth, with the same
// coverage. There is no nonce: it admits to reads only.
func UCPPolicy() *Policy {
	return &Policy{
		Tags: []string{TagWebBotAuth}, Untagged: true, Undated: true, SkipUncovered: true,
		Require: RequireMethod | RequireTarget | RequireBody | RequireContentType | RequireAgent | RequireUCPAgent | RequireIdempotencyKey,
		// A tagged signature is valid for a day at most.
		MaxWindow:  24 * time.Hour,
		Skew:       30 * time.Second,
		Algorithms: []Algorithm{ECDSAP256SHA256, ECDSAP384SHA384, Ed25519},
	}
}

// DirectoryPolicy is for key directories that are signed with their own keys
// (draft-meunier-webbotauth-httpsig-protocol-02, "signed by the key itself").
func DirectoryPolicy() *Policy {
	return &Policy{
		Tags:    []string{TagDirectory},
		Require: RequireRelatedAuthority | RequireDigest | RequireExpires,
		Skew:    30 * time.Second,
	}
}

func (q *Policy) wants(r Require) bool { return q.Require&r != 0 }

func (q *Policy) ours(m *Message, sig *member) bool {
	p := &sig.params
	if q.Inline && !p.HasTag && !p.HasKeyID && m.Header["Signature-Key"] != nil {
		return true
	}
	return q.Tags == nil || p.HasTag && slices.Contains(q.Tags, p.Tag) || q.Untagged && !p.HasTag || q.Accounts && p.byAccount()
}

func (q *Policy) accepts(a Algorithm) bool {
	return q.Algorithms == nil || slices.Contains(q.Algorithms, a)
}

// checkParams checks types, presence, order and time, before anything expensive.
func (q *Policy) checkParams(sig *member, now time.Time, inline bool) *Error {
	if sig.wrongType != "" {
		return malformed(CodeParameterInvalid, sig.wrongType+": type")
	}
	p := &sig.params
	dated := !q.Undated || p.HasTag
	for _, want := range [...]struct {
		name    string
		missing bool
	}{
		{"created", !p.HasCreated && dated},
		{"expires", !p.HasExpires && !inline && (q.wants(RequireExpires) || q.Undated && p.HasTag)},
		{"keyid", !p.HasKeyID},
		{"nonce", !p.HasNonce && !inline && q.wants(RequireNonce)},
	} {
		if want.missing {
			return fail(CodeParameterMissing, want.name)
		}
	}
	if len(p.KeyID) > MaxKeyID || p.KeyID == "" {
		return fail(CodeParameterInvalid, "keyid: 1 to 512 bytes")
	}
	if len(p.Nonce) > MaxNonce || p.HasNonce && q.wants(RequireNonce) && len(p.Nonce) < MinNonce {
		return fail(CodeParameterInvalid, "nonce: 16 to 256 bytes")
	}
	if p.HasAlg && (!Algorithm(p.Alg).known() || q.Accounts && p.byAccount()) {
		return fail(CodeAlgorithmUnsupported, "alg")
	}
	if q.Accounts && p.byAccount() {
		if _, ok := p.Account(); !ok {
			return fail(CodeKeyUnknown, "keyid: eip155:<chainId>:<address> in lower case with the tag erc8128, or erc8128:<chainId>:<address> without a tag")
		}
	}
	if inline && !p.HasExpires && now.Unix() > p.Created+int64((inlineWindow+q.Skew)/time.Second) {
		return fail(CodeExpired, "created: at most "+inlineWindow.String()+" ago without expires")
	}
	return q.checkTimes(p, now.Unix())
}

func (q *Policy) checkTimes(p *Params, now int64) *Error {
	skew := int64(q.Skew / time.Second)
	if !p.HasCreated { // only with Undated
		if p.HasExpires && now > p.Expires+skew {
			return fail(CodeExpired, "expires")
		}
		return nil
	}
	if p.HasExpires && p.Expires <= p.Created {
		return fail(CodeParameterInvalid, "expires: must be after created")
	}
	if q.MaxWindow > 0 && p.HasExpires && p.Expires-p.Created > int64(q.MaxWindow/time.Second) {
		return fail(CodeValidityTooLong, "expires: at most "+q.MaxWindow.String()+" after created")
	}
	if p.Created-skew > now {
		return fail(CodeNotYetValid, "created")
	}
	if p.HasExpires && now > p.Expires+skew {
		return fail(CodeExpired, "expires")
	}
	if q.MaxAge > 0 && now > p.Created+int64(q.MaxAge/time.Second) {
		return fail(CodeExpired, "created: at most "+q.MaxAge.String()+" ago")
	}
	return nil
}

// until returns the last moment at which the same signature could be accepted.
func (q *Policy) until(p *Params) time.Time {
	end := int64(1<<62 - 1)
	if p.HasExpires {
		end = p.Expires + int64(q.Skew/time.Second)
	}
	if q.MaxAge > 0 {
		end = min(end, p.Created+int64(q.MaxAge/time.Second))
	}
	return time.Unix(end, 0)
}

// checkCoverage checks what the signature covers, after its base could be built. What an account signs by the revision of ERC-8128
// without a tag never covers content-type; the routes take JSON only.
func (q *Policy) checkCoverage(m *Message, body []byte, p *Params, cov coverage) *Error {
	missing := func(name string) *Error { return fail(CodeCoverageInsufficient, name) }
	has := func(name string) bool { _, ok := m.Header[canonicalName(name)]; return ok }
	if q.wants(RequireMethod) && cov&coverMethod == 0 {
		return missing("@method")
	}
	if q.wants(RequireAuthority) && cov&(coverAuthority|coverTargetURI) == 0 {
		return missing("@authority")
	}
	if q.wants(RequireRelatedAuthority) && cov&coverRelatedAuthority == 0 {
		return missing("@authority;req")
	}
	if q.wants(RequireTarget) && cov&coverTargetURI == 0 {
		if cov&(coverAuthority|coverPath) != coverAuthority|coverPath {
			return missing("@authority and @path, or @target-uri")
		}
		if m.HasQuery && cov&coverQuery == 0 && !(q.NamedQuery && cov&coverQueryParam != 0) {
			return missing("@query")
		}
	}
	if cov&coverDigest == 0 && (q.wants(RequireDigest) || q.wants(RequireBody) && len(body) > 0) {
		if !has("content-digest") {
			return fail(CodeDigestMissing, "content-digest")
		}
		return missing("content-digest")
	}
	if q.wants(RequireContentType) {
		if len(body) > 0 && cov&coverContentType == 0 && !(q.Accounts && !p.HasTag && p.byAccount()) {
			return missing("content-type")
		}
		// The digest covers the encoded bytes: an encoding that is added on the way would change
		// their meaning.
		if cov&coverContentEncoding == 0 && has("content-encoding") {
			return missing("content-encoding")
		}
	}
	if q.wants(RequireAgent) && cov&coverAgent == 0 && has("signature-agent") {
		return fail(CodeAgentNotCovered, "signature-agent")
	}
	if q.wants(RequireUCPAgent) && cov&coverUCPAgent == 0 && has("ucp-agent") {
		return missing("ucp-agent")
	}
	if q.wants(RequireIdempotencyKey) && cov&coverIdempotencyKey == 0 && has("idempotency-key") {
		return missing("idempotency-key")
	}
	if q.wants(RequireIdentity) && cov&coverIdentity == 0 && has("agent-identity") {
		return missing("agent-identity")
	}
	return nil
}
