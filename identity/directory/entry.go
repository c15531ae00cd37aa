package directory

import (
	"container/list"
	"time"

	"stoa/identity/httpsig"
	"stoa/protocol/netx"
)

// An entry is what is known about one directory. Cache.mu guards it.
type entry struct {
	src source
	pos *list.Element // in Cache.full when it has a set, otherwise in Cache.bare

	keys    map[string]listed // by thumbprint; nil: there is no set
	name    string            // client_name of a card
	size    int               // bytes of the set as JSON
	fetched time.Time
	expires time.Time
	refresh time.Time // when a set in use is fetched again, before it expires

	tried    time.Time // begin of the last fetch
	failures int       // since the last success
	failure  *Failure  // of the last fetch, nil when it succeeded
	retry    time.Time // after a failure: earliest next attempt

	used  bool          // a key was found since the last fetch began
	busy  bool          // queued or being fetched
	ended chan struct{} // closed when that ends
}

// listed is one key of a directory, or the reason why it is not usable.
type listed struct {
	key     httpsig.Key
	from    time.Time // nbf; zero: no bound
	until   time.Time // exp; zero: no bound
	refused *Failure
}

// clockSkew is how far an agent's clock may be ahead of the node's. exp is applied exactly: its
// publisher can rotate in time.
const clockSkew = 30 * time.Second

// usable reports whether the set is valid. After its lifetime it is valid only while refreshing is
// attempted and fails: a set that nobody has used since may have lost a key long ago, and is
// fetched before it is used.
func (e *entry) usable(now time.Time) bool {
	if e.keys == nil {
		return false
	}
	if now.Before(e.expires) {
		return true
	}
	return e.failures > 0 && now.Before(e.fetched.Add(MaxStale)) && now.Before(e.retry.Add(staleGrace))
}

// find returns a key that may be used now.
func (e *entry) find(thumbprint string, now time.Time) (httpsig.Key, *Failure) {
	k, ok := e.keys[thumbprint]
	switch {
	case !ok:
		return nil, &Failure{Code: httpsig.CodeKeyUnknown, Detail: "the key directory " + e.src.url + " has no usable key with this keyid"}
	case k.refused != nil:
		return nil, k.refused
	case !k.until.IsZero() && !now.Before(k.until):
		return nil, &Failure{Code: httpsig.CodeKeyExpired, Detail: "the key directory says that the key has expired (exp)"}
	case !k.from.IsZero() && now.Add(clockSkew).Before(k.from):
		return nil, &Failure{Code: httpsig.CodeKeyNotYetValid, Detail: "the key directory says that the key is not valid yet (nbf)"}
	}
	return k.key, nil
}

// nextTry returns when a lookup that found nothing may cause a fetch.
func (e *entry) nextTry(now time.Time) time.Time {
	var at time.Time
	if e.failures > 0 {
		at = e.retry
	}
	if e.usable(now) { // the keyid may be new: fetch again, but not for every guess
		if again := e.tried.Add(refetchEvery); again.After(at) {
			at = again
		}
	}
	return at
}

// succeed stores what was fetched.
func (e *entry) succeed(f *found) {
	e.keys, e.name, e.size = f.keys, f.name, len(f.set)
	e.fetched, e.expires = f.at, f.at.Add(f.lifetime)
	e.refresh = e.expires.Add(-min(f.lifetime/4, time.Minute))
	e.failures, e.failure, e.retry = 0, nil, time.Time{}
}

// fail records a failure. An existing set is kept.
func (e *entry) fail(f *Failure, now time.Time) {
	e.failures++
	e.failure, e.retry = f, now.Add(netx.Backoff(minRetry, maxRetry, e.failures))
}
