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
	"sync"
	"time"

	"stoa/identity/httpsig"
	"stoa/identity/httpsig/cavage"
	"stoa/identity/strictjson"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// inboxLimits are the limits of an inbox's request body.
var inboxLimits = strictjson.Limits{MaxBytes: activity.MaxBody, MaxDepth: 32, MaxTokens: 20_000}

// A delivery is one request to an inbox while it is checked.
type delivery struct {
	body   []byte
	act    activity.Activity
	actor  string // the activity's only actor
	host   string // host[:port] of the actor
	key    [32]byte
	signer string // actor whose key signed the request
	peer   bool   // its host follows our board, or is followed
	rfc    bool   // signed with RFC 9421
	proven bool   // carries a valid integrity proof of its actor
}

// A refusal is an error with the HTTP answer that ends a request.
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

// inbox accepts a delivery. 202 means that it is stored; it is processed
// afterwards, so that slow processing never times out a peer. Cheap checks come
// first, and each can end the request.
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
		return nil, refuse(http.StatusRequestTimeout, "the body did not arrive whole; send it again", err) // not 400: senders repeat after 408
	}
	if !httpsig.Signed(r.Header) && !cavage.Signed(r.Header) {
		return nil, refuse(http.StatusUnauthorized, "sign the request", nil)
	}
	d := &delivery{body: body}
	if err := f.scan(d); err != nil {
		return d, err
	}
	if err := f.precheck(r.Context(), d); err != nil {
		return d, err
	}
	if err := f.verify(r, d); err != nil {
		if err = f.acceptGoneActor(r, d, err); err != nil {
			return d, err
		}
	}
	if err := d.checkSize(); err != nil {
		return d, err
	}
	return d, f.checkOrigins(d)
}

// checkSize refuses an activity that would be stored unchanged in our log and is
// larger than any server needs.
func (d *delivery) checkSize() error {
	if !d.proven || !d.act.Type.Is("Create", "Update", "Delete") {
		return nil
	}
	most, n := maxProven, activity.Note{}
	if d.act.Type.Is("Create", "Update") && strictjson.DecodeChecked(d.act.Object, &n) == nil && n.IsStoa(d.act.Context) {
		most += maxStoaNote
	}
	if len(d.body) > most {
		return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("a %s with a proof may have %d KiB", d.act.Type, most>>10), nil)
	}
	return nil
}

// scan reads the envelope and applies every rule that needs no lookup.
func (f *Federation) scan(d *delivery) error {
	if err := strictjson.Check(d.body, inboxLimits); err != nil {
		return refuse(http.StatusBadRequest, err.Error(), err)
	}
	if err := strictjson.DecodeChecked(d.body, &d.act); err != nil {
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
	if f.isLocal(d.actor) {
		return refuse(http.StatusForbidden, "the actor is one of this node", nil)
	}
	// An id of another host would allow any server to mark that host's activities as
	// seen.
	if !f.sameOrigin(d.actor, string(d.act.ID)) {
		return refuse(http.StatusForbidden, "the activity's id is not of its actor's origin", nil)
	}
	d.key = dedupeKey(&d.act, d.body)
	return f.scanObject(d)
}

// scanObject checks the limits of an embedded post before it is used.
func (f *Federation) scanObject(d *delivery) error {
	if !d.act.Type.Is("Create", "Update") || !d.act.Embedded() {
		return nil
	}
	var n activity.Note
	if err := strictjson.DecodeChecked(d.act.Object, &n); err != nil {
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

// dedupeKey identifies an activity. GoToSocial (2025) uses one id for all Updates
// of a post, so for an Update the body is included; also for an entry of a log, whose
// id is its number: another entry of the number must not be taken for a repeat.
func dedupeKey(a *activity.Activity, body []byte) [32]byte {
	text := a.Type.String() + "\x00" + string(a.ID)
	if a.Type.Is("Update") || a.Seq != nil {
		sum := sha256.Sum256(body)
		text += "\x00" + hex.EncodeToString(sum[:])
	}
	return sha256.Sum256([]byte(text))
}

// precheck ends the request of an activity that was accepted before, that comes from a
// blocked host, or that would only cause a fetch: servers broadcast the deletion of
// every actor, and the key of one that we never knew is gone.
func (f *Federation) precheck(ctx context.Context, d *delivery) error {
	var quiet bool
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		p, err := policyOf(ctx, tx, d.host)
		if err != nil {
			return err
		}
		blocked, err := tx.Blocks().Match(ctx, protocol.BlockActor, d.actor)
		if err != nil {
			return err
		}
		if blocked || p == storage.PolicyReject {
			return refuse(http.StatusForbidden, "", errBlocked)
		}
		kept, err := tx.Inbox().ByKey(ctx, d.key)
		if absent(err) != nil {
			return err
		}
		quiet = err == nil && kept != nil
		if !quiet && d.deletesActor() {
			held, err := tx.Posts().OfActor(ctx, d.actor, 1)
			if err != nil || len(held) > 0 {
				return err
			}
			if wrote, err := wroteMessages(ctx, tx, d.actor, 1); err != nil || len(wrote) > 0 {
				return err
			}
			_, err = tx.Peers().ActorByID(ctx, d.actor)
			quiet = errors.Is(err, storage.ErrNotFound)
			return absent(err)
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

// deletesActor reports whether the activity is the deletion of its own actor.
func (d *delivery) deletesActor() bool { return d.act.Type.Is("Delete") && d.act.ObjectID() == d.actor }

// acceptGoneActor accepts the deletion of its own actor although its signature was
// refused, if the actor's document is gone: then its key is gone too, and may not
// be stored here. Otherwise it returns the refusal.
func (f *Federation) acceptGoneActor(r *http.Request, d *delivery, refused error) error {
	no, ok := errors.AsType[*refusal](refused)
	if !ok || no.status != http.StatusUnauthorized || !d.deletesActor() {
		return refused
	}
	_, err := f.lookUpActor(forStranger(r.Context(), f.networkOf(r)), d.actor)
	if !errors.Is(err, errGone) {
		return refused
	}
	d.signer = d.actor
	d.peer, err = f.withinRate(r, d.host, len(d.body))
	return err
}

// checkOrigins refuses a post that its actor did not write: attributed to another
// actor, or with the id of another origin (CVE-2024-23832).
func (f *Federation) checkOrigins(d *delivery) error {
	if !d.act.Type.Is("Create", "Update") || !d.act.Embedded() {
		return nil
	}
	var n activity.Note
	if err := strictjson.DecodeChecked(d.act.Object, &n); err != nil {
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

// keep stores the activity and the job that processes it, in one transaction. Only
// a stored activity counts as seen: an activity that did not verify must not block
// the genuine one.
func (f *Federation) keep(ctx context.Context, d *delivery) error {
	if err := f.backlogged(ctx, d); err != nil {
		return err
	}
	err := f.c.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		fresh, err := tx.Inbox().Keep(ctx, storage.Kept{
			Key: d.key, Host: d.host, Actor: d.actor, Signer: d.signer, Body: d.body, Proven: d.proven,
		})
		if err != nil || !fresh {
			return err
		}
		if err := f.grow(ctx, tx, storage.StockKept); err != nil {
			return err
		}
		if err := f.noteHost(ctx, tx, d); err != nil {
			return err
		}
		args, err := json.Marshal(processArgs{Key: hex.EncodeToString(d.key[:])})
		if err != nil {
			return err
		}
		return tx.Enqueue(ctx, storage.Job{Kind: storage.ProcessJob, Lane: "host:" + d.host, Args: args})
	})
	if protocol.CodeOf(err) == protocol.Overloaded {
		return refuse(http.StatusServiceUnavailable, "too much at once; try again later", err)
	}
	return err
}

// maxBacklog is the largest size in bytes of the activities that wait to be
// processed. Half of it is reserved for peers.
const maxBacklog = 128 << 20

// A backlog is the number of waiting bytes, as measured at most a second ago, plus
// what this process added since.
type backlog struct {
	mu    sync.Mutex // guards at and bytes
	at    time.Time
	bytes int64
}

// backlogged refuses a delivery when too much is waiting. One delivery per second
// measures; the others use its result.
func (f *Federation) backlogged(ctx context.Context, d *delivery) error {
	b := &f.backlog
	b.mu.Lock()
	last, before, now := b.at, b.bytes, f.now()
	due := now.Sub(last) >= time.Second
	if due {
		b.at = now
	}
	b.mu.Unlock()
	if due {
		var bytes int64
		err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
			bytes, err = tx.Inbox().WaitingBytes(ctx, maxBacklog)
			return err
		})
		b.mu.Lock()
		if err == nil {
			b.bytes += bytes - before
		} else {
			b.at = last // the next delivery measures again
		}
		b.mu.Unlock()
		if err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	most := int64(maxBacklog)
	if !d.peer {
		most /= 2
	}
	size := int64(len(d.body)) + storage.KeptCost
	if b.bytes+size > most {
		return refuse(http.StatusServiceUnavailable, "too much waits to be processed; try again later", nil)
	}
	b.bytes += size
	return nil
}

// noteHost records what a signed request shows about its host: it is up, so
// deliveries that wait for it are retried now; and it uses RFC 9421.
func (f *Federation) noteHost(ctx context.Context, tx *storage.Tx, d *delivery) error {
	if d.rfc {
		known, err := tx.Peers().Scheme(ctx, d.host)
		if absent(err) != nil {
			return err
		}
		if known == "" || known == schemeCavage {
			if err := f.setScheme(ctx, tx, d.host, schemeRSA); err != nil {
				return err
			}
		}
	}
	return tx.Outlets().WakeHost(ctx, d.host)
}

// problem answers with an RFC 9457 document. A blocked host receives no detail.
func (f *Federation) problem(w http.ResponseWriter, err error) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		e := protocol.AsError(err)
		r = refuse(e.Code.Status(), e.Detail, err)
		if e.Code == protocol.Internal {
			f.log.Error("federation request failed", "err", err)
		}
	}
	head := w.Header()
	switch r.status {
	case http.StatusUnauthorized:
		head.Set("Accept-Signature", `sig1=("@method" "@target-uri" "content-digest");created;keyid`)
		head.Add("Vary", "Signature, Signature-Input")
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
