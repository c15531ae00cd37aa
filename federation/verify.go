package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/identity/integrity"
	"stoa/storage"
)

// verify checks the request's signature, and the document's integrity proof if
// another actor delivers it.
func (f *Federation) verify(r *http.Request, d *delivery) error {
	if lines := r.Header["Content-Digest"]; len(lines) > 0 { // before a key is fetched
		if err := httpsig.VerifyContentDigest(lines, d.body); err != nil {
			return refuse(http.StatusUnauthorized, "the digest is not that of the body", err)
		}
	}
	msg, err := httpsig.FromRequest(r, f.target)
	if err != nil {
		return refuse(http.StatusUnauthorized, "the request is for another host", err)
	}
	ctx := forStranger(r.Context(), f.networkOf(r))
	owner, err := f.verifySignature(ctx, &msg, d)
	if err != nil {
		return err
	}
	d.signer = owner
	if d.peer, err = f.withinRate(r, hostOf(owner), len(d.body)); err != nil {
		return err
	}
	if d.act.Proof != nil {
		err := f.verifyProof(ctx, d.body, d.actor)
		if r, ok := errors.AsType[*refusal](err); ok && owner != d.actor {
			return r
		}
		d.proven = err == nil
		if err != nil && unavailable(err) && owner != d.actor {
			return refuse(http.StatusServiceUnavailable, "the host of the integrity proof's key does not answer; try again later", err)
		}
		if err != nil && !errors.Is(err, integrity.ErrProof) && owner != d.actor {
			return refuse(http.StatusUnauthorized, "the key of the integrity proof cannot be fetched", err)
		}
		if errors.Is(err, integrity.ErrProof) && d.act.Type.Is("Create", "Announce") && strings.Contains(string(d.act.Proof), integrity.Cryptosuite) {
			return refuse(http.StatusUnauthorized, "the integrity proof is not valid", err)
		}
	}
	if owner != d.actor && !d.proven { // CVE-2025-54888
		return refuse(http.StatusForbidden, "the signer is not the actor, and there is no proof of the actor", nil)
	}
	return nil
}

// verifySignature returns the owner of the key that signed the request. A known key
// that fails is fetched once more: it may have been replaced.
func (f *Federation) verifySignature(ctx context.Context, msg *httpsig.Message, d *delivery) (string, error) {
	d.rfc = httpsig.Signed(msg.Header)
	var first error
	for _, fresh := range []bool{false, true} {
		owner, err := f.verifyOnce(ctx, msg, d, fresh)
		if err == nil {
			return owner, nil
		}
		if r, ok := errors.AsType[*refusal](err); ok {
			return "", r
		}
		if !errors.Is(err, httpsig.CodeSignatureInvalid) {
			return "", refuse(http.StatusUnauthorized, "the signature is not valid: "+string(codeOf(err)), err)
		}
		if first == nil {
			first = err
		}
	}
	return "", refuse(http.StatusUnauthorized, "the signature is not valid: "+string(codeOf(first)), first)
}

func (f *Federation) verifyOnce(ctx context.Context, msg *httpsig.Message, d *delivery, fresh bool) (string, error) {
	keys := &resolver{f: f, fresh: fresh, last: d.act.Type.Is("Delete")}
	var err error
	if d.rfc { // with Signature-Input only RFC 9421 is used
		v := httpsig.Verifier{Keys: keys, Now: f.now, AllowLoopback: f.c.AllowPrivate}
		policy := httpsig.FederationPolicy()
		if d.body != nil { // a read has no body
			policy.Require |= httpsig.RequireDigest
		}
		_, err = v.Verify(ctx, msg, d.body, policy)
	} else {
		v := cavage.Verifier{Keys: cavageKeys{keys}, Now: f.now}
		_, err = v.Verify(ctx, msg, d.body)
	}
	if keys.refused != nil {
		return "", keys.refused
	}
	if err != nil || keys.found == nil {
		return "", err
	}
	return keys.found.Owner, f.keepProven(ctx, keys.found)
}

// A resolver finds keys for one request and remembers the last one.
type resolver struct {
	f       *Federation
	fresh   bool
	last    bool // a key that is gone is used as it was stored
	found   *remoteKey
	refused *refusal
}

func (k *resolver) find(ctx context.Context, keyID string) (*remoteKey, error) {
	u, err := k.f.parseID(withoutFragment(keyID))
	if err != nil {
		k.refused = refuse(http.StatusUnauthorized, "keyid: "+err.Error(), err)
		return nil, httpsig.CodeKeyUnknown
	}
	if err := k.f.admits(ctx, u.Host); err != nil {
		k.refused = refuse(http.StatusServiceUnavailable, "try again later", err)
		if errors.Is(err, errBlocked) {
			k.refused = refuse(http.StatusForbidden, "", err)
		}
		return nil, httpsig.CodeKeyUnknown
	}
	found, err := k.f.keyOf(ctx, keyID, k.fresh)
	if k.last && (errors.Is(err, errGone) || errors.Is(err, errNotFound)) {
		if known, e := k.f.knownKey(ctx, keyID); e != nil || known != nil {
			found, err = known, e
		}
	}
	if err != nil {
		if unavailable(err) { // the sender must retry: it does so after 503, not after 401
			k.refused = refuse(http.StatusServiceUnavailable, keyHostSilent, err)
		}
		if r, ok := errors.AsType[*refusal](err); ok {
			k.refused = r
		}
		return nil, fmt.Errorf("%w: %w", httpsig.CodeKeyUnknown, err)
	}
	k.found = found
	return found, nil
}

func (k *resolver) Resolve(ctx context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	found, err := k.find(ctx, strings.Clone(q.Params.KeyID))
	if err != nil {
		return httpsig.Resolved{}, &httpsig.Error{Code: httpsig.CodeKeyUnknown, Err: err}
	}
	pub, err := httpKey(found)
	if err != nil {
		return httpsig.Resolved{}, err
	}
	return httpsig.Resolved{Key: pub, Principal: found.Owner}, nil
}

type cavageKeys struct{ *resolver }

func (k cavageKeys) Resolve(ctx context.Context, keyID string) (cavage.Resolved, error) {
	found, err := k.find(ctx, keyID)
	if err != nil {
		return cavage.Resolved{}, &httpsig.Error{Code: httpsig.CodeKeyUnknown, Err: err}
	}
	return cavage.Resolved{Key: found.Public, Principal: found.Owner}, nil
}

func codeOf(err error) httpsig.Code {
	if e, ok := errors.AsType[*httpsig.Error](err); ok {
		return e.Code
	}
	return httpsig.CodeSignatureInvalid
}

// networkOf is the network that a request came from.
func (f *Federation) networkOf(r *http.Request) string {
	if f.c.Network == nil {
		return ""
	}
	return f.c.Network(r)
}

// withinRate refuses requests over the rate of a verified sender's domain. It is
// called after the signature is verified, so that nobody can use up another's rate
// by naming its key. A peer's rate replaces that of its client network.
func (f *Federation) withinRate(r *http.Request, host string, bytes int) (peer bool, err error) {
	err = f.c.DB.Read(r.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		peer, err = tx.Peers().Has(ctx, host)
		return err
	})
	if err != nil {
		return false, err
	}
	rates := f.limits
	if peer {
		rates = f.peers
	}
	if !rates.take(host, 1+float64(bytes/weigh), f.now()) {
		return peer, refuse(http.StatusTooManyRequests, "too much from this domain", nil)
	}
	if peer && f.c.Return != nil {
		f.c.Return(r)
	}
	return peer, nil
}
