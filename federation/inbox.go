package federation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/identity/integrity"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// inboxLimits bound what an inbox takes.
var inboxLimits = strictjson.Limits{MaxBytes: activity.MaxBody, MaxDepth: 32, MaxTokens: 20_000}

// A delivery is one request to an inbox on its way through the checks.
type delivery struct {
	body   []byte
	act    activity.Activity
	actor  string // the one actor
	host   string // host[:port] of the actor
	key    [32]byte
	signer string // actor whose key signed the request
	rfc    bool   // signed with RFC 9421
	proven bool   // carries a valid integrity proof of its actor
}

// refusal is an answer that ends a request.
type refusal struct {
	status int
	detail string
	err    error // for the log
}

func (r *refusal) Error() string { return r.detail }
func (r *refusal) Unwrap() error { return r.err }

func refuse(status int, detail string, err error) *refusal { return &refusal{status, detail, err} }

// errQuietly ends a request with 202: there is nothing to do.
var errQuietly = errors.New("nothing to do")

func (f *Federation) actorInbox(w http.ResponseWriter, r *http.Request) {
	switch r.PathValue("actor") {
	case "node", "board", "feed", "anon":
		f.inbox(w, r)
	default:
		f.problem(w, refuse(http.StatusNotFound, "there is no such inbox", nil))
	}
}

// inbox takes a delivery. 202 means that it is on disk; what it does is decided
// afterwards, so that a slow decision never times out a peer. Cheap checks come
// first, each ends the request.
func (f *Federation) inbox(w http.ResponseWriter, r *http.Request) {
	d, err := f.admit(w, r)
	if err == nil {
		err = f.keep(r.Context(), d)
	}
	host := ""
	if d != nil {
		host = d.host
	}
	switch {
	case err == nil, errors.Is(err, errQuietly):
		f.observe("inbox", host, nil)
		w.WriteHeader(http.StatusAccepted)
	default:
		f.observe("refused", host, err)
		f.problem(w, err)
	}
}

func (f *Federation) admit(w http.ResponseWriter, r *http.Request) (*delivery, error) {
	if !isActivity(r.Header.Get("Content-Type")) || r.Header.Get("Content-Encoding") != "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "send "+activity.MediaType+" without content encoding", nil)
	}
	if r.ContentLength > activity.MaxBody {
		return nil, refuse(http.StatusRequestEntityTooLarge, "at most 256 KiB", nil)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, activity.MaxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, refuse(http.StatusRequestEntityTooLarge, "at most 256 KiB", err)
		}
		return nil, refuse(http.StatusBadRequest, "the body cannot be read", err)
	}
	if !httpsig.Signed(r.Header) && !cavage.Signed(r.Header) {
		return nil, refuse(http.StatusUnauthorized, "sign the request", nil)
	}
	d := &delivery{body: body}
	if err := f.scan(d); err != nil {
		return d, err
	}
	if err := f.known(r.Context(), d); err != nil {
		return d, err
	}
	if err := f.verify(r, d); err != nil {
		return d, err
	}
	return d, f.checkOrigins(d)
}

// scan reads the envelope and applies every rule that needs no look-up.
func (f *Federation) scan(d *delivery) error {
	if err := strictjson.Check(d.body, inboxLimits); err != nil {
		return refuse(http.StatusBadRequest, err.Error(), err)
	}
	if err := inboxLimits.DecodeLoose(d.body, &d.act); err != nil {
		return refuse(http.StatusBadRequest, err.Error(), err)
	}
	if err := d.act.Check(); err != nil {
		return refuse(http.StatusBadRequest, err.Error(), err)
	}
	d.actor = d.act.Actor.One()
	u, err := f.parseID(d.actor)
	if err != nil {
		return refuse(http.StatusBadRequest, "actor: "+err.Error(), err)
	}
	d.host = u.Host
	if f.ours(d.actor) {
		return refuse(http.StatusForbidden, "the actor is one of this node", nil)
	}
	// An id of another host would let anybody mark that host's activities as seen.
	if !f.sameOrigin(d.actor, string(d.act.ID)) {
		return refuse(http.StatusForbidden, "the activity's id is not of its actor's origin", nil)
	}
	d.key = dedupeKey(&d.act, d.body)
	return f.scanObject(d)
}

// scanObject counts what is in an embedded post before anybody looks at it.
func (f *Federation) scanObject(d *delivery) error {
	if !d.act.Type.Is("Create", "Update") || !d.act.Embedded() {
		return nil
	}
	var n activity.Note
	if err := inboxLimits.DecodeLoose(d.act.Object, &n); err != nil {
		return refuse(http.StatusBadRequest, "object: "+err.Error(), err)
	}
	if !n.Type.Is(activity.NoteTypes...) {
		return nil
	}
	if err := n.Check(); err != nil {
		return refuse(http.StatusBadRequest, "object: "+err.Error(), err)
	}
	return nil
}

// dedupeKey names an activity. GoToSocial (2025) uses one id for all Updates of
// a post, so for an Update the body counts too.
func dedupeKey(a *activity.Activity, body []byte) [32]byte {
	text := a.Type.String() + "\x00" + string(a.ID)
	if a.Type.Is("Update") {
		sum := sha256.Sum256(body)
		text += "\x00" + hex.EncodeToString(sum[:])
	}
	return sha256.Sum256([]byte(text))
}

// known ends what was accepted before, what comes from a blocked host, and what
// would only cost a fetch: servers broadcast the deletion of every actor, and
// the key of one that we never knew is gone.
func (f *Federation) known(ctx context.Context, d *delivery) error {
	var quiet bool
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := policyOf(ctx, tx, d.host)
		if err != nil {
			return err
		}
		if p == storage.PolicyReject {
			return refuse(http.StatusForbidden, "", errBlocked)
		}
		kept, err := tx.KeptByKey(ctx, d.key)
		if absent(err) != nil {
			return err
		}
		quiet = err == nil && kept != nil
		if !quiet && d.act.Type.Is("Delete") && d.act.ObjectID() == d.actor {
			a, err := tx.RemoteActorByID(ctx, d.actor)
			if absent(err) != nil {
				return err
			}
			quiet = a == nil || err != nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	if quiet {
		return errQuietly
	}
	return nil
}

// verify checks the request's signature, and the document's own proof where
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
	owner, err := f.verifySignature(r.Context(), &msg, d)
	if err != nil {
		return err
	}
	d.signer = owner
	if d.act.Proof != nil {
		err := f.verifyProof(r.Context(), d.body, d.actor)
		d.proven = err == nil
		if err != nil && !errors.Is(err, integrity.ErrProof) && owner != d.actor {
			return refuse(http.StatusUnauthorized, "the key of the integrity proof cannot be had", err)
		}
		if errors.Is(err, integrity.ErrProof) && d.act.Type.Is("Create", "Announce") && strings.Contains(string(d.act.Proof), integrity.Cryptosuite) {
			return refuse(http.StatusUnauthorized, "the integrity proof does not verify", err)
		}
	}
	if owner != d.actor && !d.proven { // CVE-2025-54888
		return refuse(http.StatusForbidden, "signed by another than the actor, and without its proof", nil)
	}
	return nil
}

// verifySignature returns the owner of the key that signed the request. A known
// key that fails is fetched once more: it may have been replaced.
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
			return "", refuse(http.StatusUnauthorized, "the signature does not verify: "+string(codeOf(err)), err)
		}
		if first == nil {
			first = err
		}
	}
	return "", refuse(http.StatusUnauthorized, "the signature does not verify: "+string(codeOf(first)), first)
}

func (f *Federation) verifyOnce(ctx context.Context, msg *httpsig.Message, d *delivery, fresh bool) (string, error) {
	keys := &resolver{f: f, fresh: fresh}
	var err error
	if d.rfc { // RFC 9421 when Signature-Input is there, and then nothing else
		v := httpsig.Verifier{Keys: keys, Now: f.now, AllowLoopback: f.c.AllowPrivate}
		policy := httpsig.FederationPolicy()
		policy.Require |= httpsig.RequireDigest
		_, err = v.Verify(ctx, msg, d.body, policy)
	} else {
		v := cavage.Verifier{Keys: cavageKeys{keys}, Now: f.now}
		_, err = v.Verify(ctx, msg, d.body)
	}
	if keys.refused != nil {
		return "", keys.refused
	}
	return keys.owner, err
}

// A resolver finds keys for one request and remembers whose it was.
type resolver struct {
	f       *Federation
	fresh   bool
	owner   string
	refused *refusal
}

func (k *resolver) find(ctx context.Context, keyID string) (*remoteKey, error) {
	u, err := k.f.parseID(withoutFragment(keyID))
	if err != nil {
		k.refused = refuse(http.StatusUnauthorized, "keyid: "+err.Error(), err)
		return nil, httpsig.CodeKeyUnknown
	}
	if err := k.f.admits(ctx, u.Host); err != nil {
		if errors.Is(err, errBlocked) {
			k.refused = refuse(http.StatusForbidden, "", err)
		}
		return nil, httpsig.CodeKeyUnknown
	}
	if !k.fresh && !k.f.limits.take(u.Host, k.f.now()) {
		k.refused = refuse(http.StatusTooManyRequests, "too much from this domain", nil)
		return nil, httpsig.CodeKeyUnknown
	}
	found, err := k.f.keyOf(ctx, keyID, k.fresh)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", httpsig.CodeKeyUnknown, err)
	}
	k.owner = found.Owner
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

// checkOrigins refuses a post that its actor did not write: attributed to
// somebody else, or with the id of another origin (CVE-2024-23832).
func (f *Federation) checkOrigins(d *delivery) error {
	if !d.act.Type.Is("Create") || !d.act.Embedded() {
		return nil
	}
	var n activity.Note
	if err := inboxLimits.DecodeLoose(d.act.Object, &n); err != nil {
		return refuse(http.StatusBadRequest, "object: "+err.Error(), err)
	}
	if !n.Type.Is(activity.NoteTypes...) {
		return nil
	}
	if n.AttributedTo.One() != d.actor || !f.sameOrigin(string(n.ID), d.actor) {
		return refuse(http.StatusForbidden, "the object is not the actor's own", nil)
	}
	return nil
}

// keep writes the activity and the job that processes it, in one transaction.
// The activity counts as seen only from here on: what did not verify must not
// keep the genuine one out.
func (f *Federation) keep(ctx context.Context, d *delivery) error {
	err := f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		fresh, err := tx.KeepActivity(ctx, storage.Kept{
			Key: d.key, Host: d.host, Actor: d.actor, Signer: d.signer, Body: d.body, Proven: d.proven,
		})
		if err != nil || !fresh {
			return err
		}
		if err := f.heard(ctx, tx, d); err != nil {
			return err
		}
		args, err := json.Marshal(processArgs{Key: hex.EncodeToString(d.key[:])})
		if err != nil {
			return err
		}
		return tx.Enqueue(ctx, storage.Job{Kind: "process", Lane: "host:" + d.host, Args: args})
	})
	if protocol.CodeOf(err) == protocol.Overloaded {
		return refuse(http.StatusServiceUnavailable, "too much at once; try again later", err)
	}
	return err
}

// heard notes what a signed request tells about its host: it is up, so what
// waits for it is tried now; and it speaks RFC 9421.
func (f *Federation) heard(ctx context.Context, tx *storage.Tx, d *delivery) error {
	if d.rfc {
		known, err := tx.HostScheme(ctx, d.host)
		if absent(err) != nil {
			return err
		}
		if known == "" || known == schemeCavage {
			if err := tx.SetHostScheme(ctx, d.host, schemeRSA); err != nil {
				return err
			}
		}
	}
	return tx.WakeHost(ctx, d.host)
}

// problem answers with an RFC 9457 document. A blocked host gets no word.
func (f *Federation) problem(w http.ResponseWriter, err error) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		e := protocol.AsError(err)
		r = refuse(e.Code.Status(), e.Detail, err)
		f.log.Error("federation request failed", "err", err)
	}
	head := w.Header()
	switch r.status {
	case http.StatusUnauthorized:
		head.Set("Accept-Signature", `sig1=("@method" "@target-uri" "content-digest");created;keyid`)
		head.Set("Vary", "Signature, Signature-Input")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		head.Set("Retry-After", "60")
	}
	if r.detail == "" {
		w.WriteHeader(r.status)
		return
	}
	doc, merr := json.Marshal(map[string]any{"type": "about:blank", "title": http.StatusText(r.status), "status": r.status, "detail": r.detail})
	if merr != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	head.Set("Content-Type", "application/problem+json")
	w.WriteHeader(r.status)
	_, _ = w.Write(doc)
}
