package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// policy is the operator's policy for a host: an active block is a rejection,
// otherwise the policy of the longest matching domain suffix applies.
func (f *Federation) policy(ctx context.Context, host string) (storage.Policy, error) {
	var p storage.Policy
	err := f.c.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		found, err := policyOf(ctx, tx, host)
		p = found
		return err
	})
	return p, err
}

func policyOf(ctx context.Context, tx *storage.Tx, host string) (storage.Policy, error) {
	if blocked, err := tx.Blocks().MatchHost(ctx, host); err != nil || blocked {
		return storage.PolicyReject, err
	}
	p, err := tx.Peers().PolicyFor(ctx, host)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return p.Policy, err
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
	for kind, value := range map[protocol.BlockKind]*string{protocol.BlockActor: a.Actor, protocol.BlockKey: a.KeyID} {
		if value == nil {
			continue
		}
		if blocked, err := tx.Blocks().Match(ctx, kind, *value); err != nil || blocked {
			return blocked, err
		}
	}
	return tx.Blocks().Match(ctx, protocol.BlockAgent, a.AgentBlocks()...)
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
