package federation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"stoa/identity/strictjson"
	"stoa/identity/tree"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Limits of fetching.
const (
	fetchTimeout   = 10 * time.Second
	maxFetch       = 1 << 20
	maxStranger    = 256 << 10       // of a document named by an unverified request
	actorAge       = 24 * time.Hour  // age after which an actor is fetched again
	unavailableAge = 5 * time.Second // how long a host that did not answer is not asked again
	failureAge     = 5 * time.Minute // how long a document that was refused is not fetched again
	goneAge        = 10 * time.Hour  // the same, after 410
	keyRetryAge    = 5 * time.Minute // age after which a key that fails is fetched again
	jrd            = "application/jrd+json"
)

// fetchLimits are the limits of a fetched document; a page of a log is the largest.
var fetchLimits = strictjson.Limits{MaxBytes: maxFetch, MaxDepth: 32, MaxTokens: 200_000}

var (
	errGone        = errors.New("the document is gone")
	errNotFound    = errors.New("there is no such document")
	errUnavailable = errors.New("the host does not answer")
)

// unavailable reports whether a fetch failed for a temporary reason: the host did not
// answer, or answered that it is unavailable.
func unavailable(err error) bool {
	return errors.Is(err, errUnavailable) || errors.Is(err, context.DeadlineExceeded) || protocol.CodeOf(err) == protocol.Overloaded
}

// refusedToDial reports whether our own client always refuses the request: to a
// private address, or along a redirect.
func refusedToDial(err error) bool {
	f, ok := errors.AsType[interface {
		error
		Final() bool
	}](err)
	return errors.Is(err, errRedirect) || ok && f.Final()
}

// fetch fetches one ActivityPub document with a request signed by the node, which
// some servers require. It refuses our own host, blocked hosts, redirects to
// another origin, other media types (an upload could be served as an actor,
// CVE-2024-25623) and documents that are too large or malformed. etag is sent as
// If-None-Match; a 304 gives nil without error.
func (f *Federation) fetch(ctx context.Context, address, etag string) ([]byte, error) {
	return f.fetchAs(ctx, address, etag, activity.MediaType+", "+activity.Profile)
}

func (f *Federation) fetchAs(ctx context.Context, address, etag, accept string) ([]byte, error) {
	u, err := f.parseID(withoutFragment(address))
	if err != nil {
		return nil, err
	}
	if f.isLocal(u.String()) {
		return nil, fmt.Errorf("fetch %s: it is on this node", address)
	}
	if err := f.admits(ctx, u.Host); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.fetchFor)
	defer cancel()
	ctx, release, err := f.place(ctx, u.Host)
	if err != nil {
		return nil, err
	}
	defer release()
	scheme := f.schemeOf(ctx, u.Host)
	var res *http.Response
	for i, s := range f.schemesFrom(scheme) {
		if i > 0 {
			closeBody(res)
		}
		if res, err = f.get(ctx, u.String(), etag, accept, s); err == nil && res.StatusCode == http.StatusUnauthorized {
			continue
		}
		if err == nil && res.StatusCode == http.StatusOK && s != scheme && strangerOf(ctx) == nil {
			defer f.rememberScheme(context.WithoutCancel(ctx), u.Host, s)
		}
		break
	}
	if err != nil && refusedToDial(err) {
		return nil, fmt.Errorf("fetch %s: %w", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w: %w", address, unavailableOrBusy(ctx), err)
	}
	defer closeBody(res)
	raw, err := readDocument(ctx, res, accept)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", address, err)
	}
	return raw, nil
}

func (f *Federation) get(ctx context.Context, address, etag, accept, scheme string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", f.userAgent())
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	if err := f.sign(r, nil, f.site.Node(), scheme); err != nil {
		return nil, err
	}
	return f.client.Do(r)
}

func (f *Federation) userAgent() string {
	return f.c.Software + "/" + f.c.Version + " (+" + f.site.Base + ")"
}

func closeBody(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10) // so that the connection can be reused
	_ = res.Body.Close()
}

func readDocument(ctx context.Context, res *http.Response, accept string) ([]byte, error) {
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, nil
	case http.StatusGone:
		return nil, errGone
	case http.StatusNotFound:
		return nil, errNotFound
	default:
		if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 {
			return nil, fmt.Errorf("%w: status %d", errUnavailable, res.StatusCode)
		}
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	if accept == treeTypes {
		return readTreePart(ctx, res)
	}
	if kind := res.Header.Get("Content-Type"); !isActivity(kind) && !(accept == jrd && mediaType(kind) == jrd) {
		return nil, fmt.Errorf("media type %.80q is not %s", kind, activity.MediaType)
	}
	limits := fetchLimits
	if strangerOf(ctx) != nil {
		limits.MaxBytes = maxStranger
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, int64(limits.MaxBytes)+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unavailableOrBusy(ctx), err)
	}
	return raw, strictjson.Check(raw, limits)
}

// treeTypes are the media types of the parts of a log's tree.
const treeTypes = "application/octet-stream, text/plain"

func readTreePart(ctx context.Context, res *http.Response) ([]byte, error) {
	if kind := mediaType(res.Header.Get("Content-Type")); kind == "" || !strings.Contains(treeTypes, kind) {
		return nil, fmt.Errorf("media type %.80q is not one of a tree", kind)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, tree.MaxCheckpoint+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unavailableOrBusy(ctx), err)
	}
	if len(raw) > tree.MaxCheckpoint {
		return nil, fmt.Errorf("more than %d bytes", tree.MaxCheckpoint)
	}
	return raw, nil
}

// isActivity reports whether a media type is one of ActivityPub documents:
// activity+json, or ld+json with the profile.
func isActivity(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch kind {
	case activity.MediaType:
		return true
	case "application/ld+json":
		for profile := range strings.FieldsSeq(params["profile"]) {
			if profile == "https://www.w3.org/ns/activitystreams" {
				return true
			}
		}
	}
	return false
}

func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return kind
}

// actorOf returns an actor document: from the database while it is younger than
// age, otherwise fetched. Its id is the requested one.
func (f *Federation) actorOf(ctx context.Context, id string, age time.Duration) (*activity.Actor, error) {
	var known *storage.RemoteActor
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		known, err = tx.Peers().ActorByID(ctx, id)
		return absent(err)
	})
	if err != nil {
		return nil, err
	}
	if known != nil && f.now().Sub(known.FetchedAt) < age {
		var a activity.Actor
		if err := strictjson.DecodeLoose(known.Doc, &a); err == nil {
			return &a, nil
		}
	}
	return f.fetchActor(ctx, id)
}

// absent converts ErrNotFound to nil, for a row that may be missing.
func absent(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// fetchActor fetches and stores an actor that a verified source named.
func (f *Federation) fetchActor(ctx context.Context, id string) (*activity.Actor, error) {
	a, err := f.lookUpActor(ctx, id)
	if err != nil {
		return nil, err
	}
	return a, f.c.DB.Write(context.WithoutCancel(ctx), func(ctx context.Context, tx *storage.Tx) error { return f.keepActor(ctx, tx, a) })
}

// lookUpActor fetches an actor and stores nothing. Concurrent calls share one
// fetch, and a failure is remembered, so that a flood of signatures cannot cause a
// flood of requests to the host that they name.
func (f *Federation) lookUpActor(ctx context.Context, id string) (*activity.Actor, error) {
	v, err := f.fetchOnce(ctx, "actor "+id, func(ctx context.Context) (any, error) {
		raw, err := f.fetch(ctx, id, "")
		if err != nil {
			return nil, err
		}
		return f.readActor(id, raw)
	})
	if err != nil {
		return nil, err
	}
	return v.(*activity.Actor), nil
}

// fetchOnce runs fetch for a name. It waits for a running fetch of the same name
// instead, and returns the error of one that failed recently.
func (f *Federation) fetchOnce(ctx context.Context, name string, fetch func(ctx context.Context) (any, error)) (any, error) {
	flight := name
	if s := strangerOf(ctx); s != nil { // a refusal of a stranger's fetch applies only to that stranger
		flight += " for " + s.network
	}
	v, err, _ := f.fetching.Do(flight, func() (any, error) {
		if err := f.recentFailure(name); err != nil {
			return nil, err
		}
		if strangerOf(ctx) != nil && !f.lookUps.take(hostOf(name[strings.IndexByte(name, ' ')+1:]), 1, f.now()) {
			return nil, refuse(http.StatusTooManyRequests, "too many keys and actors of this domain are asked for", nil)
		}
		v, err := fetch(context.WithoutCancel(ctx))
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errBusy):
			return nil, refuse(http.StatusServiceUnavailable, errBusy.Error()+"; try again later", err)
		}
		if _, ok := errors.AsType[*refusal](err); ok { // of a lookup inside this one
			return nil, err
		}
		return nil, f.rememberFailure(name, err)
	})
	return v, err
}

func (f *Federation) recentFailure(id string) error {
	err, _ := f.misses.Get(id, f.now())
	return err
}

func (f *Federation) rememberFailure(id string, err error) error {
	age := failureAge
	switch {
	case errors.Is(err, errGone):
		age = goneAge
	case unavailable(err):
		age = unavailableAge
	}
	f.misses.Put(id, err, len(err.Error()), f.now().Add(age))
	return err
}

func (f *Federation) readActor(id string, raw []byte) (*activity.Actor, error) {
	var a activity.Actor
	if err := strictjson.DecodeLoose(raw, &a); err != nil {
		return nil, err
	}
	switch {
	case string(a.ID) != id:
		return nil, fmt.Errorf("actor %s: the document has another id", id)
	case !a.Type.Is(activity.ActorTypes...):
		return nil, fmt.Errorf("actor %s: it is no actor", id)
	case !f.sameOrigin(id, a.Inbox.One()):
		return nil, fmt.Errorf("actor %s: its inbox is elsewhere", id)
	}
	if shared := string(a.Endpoints.SharedInbox); shared != "" && !f.sameOrigin(id, shared) {
		a.Endpoints.SharedInbox = ""
	}
	a.Tidy()
	return &a, nil
}

// keepActor stores the members of an actor that are read again.
func (f *Federation) keepActor(ctx context.Context, tx *storage.Tx, a *activity.Actor) error {
	id := string(a.ID)
	u, err := f.parseID(id)
	if err != nil {
		return err
	}
	doc, err := a.Kept()
	if err != nil {
		return err
	}
	if a.Implements(activity.LogFeature) {
		if err := f.setScheme(ctx, tx, u.Host, schemeEd25519); err != nil {
			return err
		}
	}
	if err := f.grow(ctx, tx, storage.StockActors); err != nil {
		return err
	}
	return tx.Peers().PutActor(ctx, storage.RemoteActor{
		ID: id, Host: u.Host, Type: a.Type.String(), Handle: string(a.Username), Name: string(a.Name),
		Inbox: a.Inbox.One(), SharedInbox: string(a.Endpoints.SharedInbox), Doc: doc, FetchedAt: tx.Now,
	})
}

// inboxOf is the inbox for deliveries to an actor: the shared inbox of its server
// if there is one.
func inboxOf(a *activity.Actor) string {
	if a.Endpoints.SharedInbox != "" {
		return string(a.Endpoints.SharedInbox)
	}
	return a.Inbox.One()
}
