package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

var (
	errBlocked  = errors.New("the host is blocked here")
	errIdentity = errors.New("the id is not one that this node takes")
	errRedirect = errors.New("a redirect that is not followed")
)

// parseID parses an id or address of another node in its only accepted spelling:
// https (http only where private peers are allowed), a lower-case host without
// final dot, default port or user, no dot segments. Other spellings of the same
// host would be a second identity (CVE-2023-42451).
func (f *Federation) parseID(id string) (*url.URL, error) {
	bad := func(why string) (*url.URL, error) { return nil, fmt.Errorf("%w: %s", errIdentity, why) }
	if id == "" || len(id) > activity.MaxID {
		return bad("its length")
	}
	for i := range len(id) {
		if id[i] <= 0x20 || id[i] >= 0x7f || id[i] == '\\' {
			return bad("its characters")
		}
	}
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return bad("not an absolute URL")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && f.c.AllowPrivate) || !strings.HasPrefix(id, u.Scheme+"://"+u.Host) {
		return bad("it is not https")
	}
	name, port := u.Hostname(), u.Port()
	switch {
	case u.Host != strings.ToLower(u.Host), strings.HasSuffix(name, "."), strings.ContainsAny(name, "%_~!$&'()*+,;="):
		return bad("the spelling of its host")
	case strings.HasSuffix(u.Host, ":"), u.Scheme == "https" && port == "443", u.Scheme == "http" && port == "80":
		return bad("its port")
	}
	return u, nil
}

// origin is the scheme and host of an id that parseID accepted (FEP-fe34).
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// sameOrigin reports whether two ids have the same origin; an id that this node
// does not accept has none.
func (f *Federation) sameOrigin(a, b string) bool {
	u, err := f.parseID(a)
	v, err2 := f.parseID(b)
	return err == nil && err2 == nil && origin(u) == origin(v)
}

// isLocal reports whether an id belongs to this node.
func (f *Federation) isLocal(id string) bool {
	return id == f.site.Base || strings.HasPrefix(id, f.site.Base+"/")
}

func withoutFragment(id string) string {
	id, _, _ = strings.Cut(id, "#")
	return id
}

type policiesKey struct{}

// withPolicies makes the policy of a host be looked up once under ctx, for the entries of
// one page.
func withPolicies(ctx context.Context) context.Context {
	return context.WithValue(ctx, policiesKey{}, &sync.Map{})
}

// policyOnce returns what was looked up of a host under ctx before, otherwise what lookUp
// returns.
func policyOnce(ctx context.Context, host string, lookUp func() (storage.Policy, error)) (storage.Policy, error) {
	known, ok := ctx.Value(policiesKey{}).(*sync.Map)
	if !ok {
		return lookUp()
	}
	if p, ok := known.Load(host); ok {
		return p.(storage.Policy), nil
	}
	p, err := lookUp()
	if err == nil {
		known.Store(host, p)
	}
	return p, err
}

// policy is the operator's policy in force for a host.
func (f *Federation) policy(ctx context.Context, host string) (storage.Policy, error) {
	return policyOnce(ctx, host, func() (p storage.Policy, err error) {
		err = f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
			p, err = tx.Peers().PolicyFor(ctx, host)
			return err
		})
		return p, err
	})
}

// policyOf is policy inside a transaction.
func policyOf(ctx context.Context, tx *storage.Tx, host string) (storage.Policy, error) {
	return policyOnce(ctx, host, func() (storage.Policy, error) { return tx.Peers().PolicyFor(ctx, host) })
}

// admits refuses a blocked host with errBlocked.
func (f *Federation) admits(ctx context.Context, host string) error {
	p, err := f.policy(ctx, host)
	if err == nil && p == storage.PolicyReject {
		return errBlocked
	}
	return err
}

// blockedAuthor reports whether the operator has blocked the author of a post: its
// actor, its verified chain identity, or its key.
func blockedAuthor(ctx context.Context, tx *storage.Tx, a protocol.Author) (bool, error) {
	as := storage.BlockedAs{protocol.BlockAgent: a.AgentBlocks()}
	for kind, value := range map[protocol.BlockKind]*string{protocol.BlockActor: a.Actor, protocol.BlockKey: a.KeyID} {
		if value != nil {
			as[kind] = []string{*value}
		}
	}
	return tx.Blocks().MatchAny(ctx, as)
}

// sameOriginRedirect allows at most three redirects of a fetch, never to another
// origin: a document of another origin has no authority over the id.
func sameOriginRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 3 {
		return fmt.Errorf("%w: more than 3", errRedirect)
	}
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return fmt.Errorf("%w: to another origin", errRedirect)
	}
	return nil
}
