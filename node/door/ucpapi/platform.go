package ucpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"stoa/identity/cache"
	"stoa/identity/strictjson"
	"stoa/protocol/netx"
	"stoa/protocol/rate"
)

// Bounds of what is done for profiles, which strangers name (UCP 2026-08-25, Fetching).
const (
	MaxProfile = 256 << 10 // bytes of a profile; UCP asks for at least 128 KiB

	maxProfileURL  = 512
	maxPlatforms   = 2000            // profiles remembered, with those that failed
	leastAge       = time.Minute     // of a profile, whatever its Cache-Control says
	profileAge     = 5 * time.Minute // of every profile
	failureAge     = time.Minute
	fetchTimeout   = 5 * time.Second
	patience       = time.Second // how long a request waits for a fetch
	fetchSoon      = 2 * time.Second
	maxFetches     = 32 // at once
	fetchesASecond = 10 // after a burst of
	fetchBurst     = 50
)

var profileLimits = strictjson.Limits{MaxBytes: MaxProfile, MaxDepth: 32, MaxTokens: 20_000}

// A platform is what a platform's profile says. It does not change.
type platform struct {
	url          string
	version      string
	capabilities map[string]capability
	keys         []platformKey
	webhook      string // where it is told of its orders, "" for nowhere
}

// A profile is a platform, or why there is none.
type profile struct {
	platform *platform
	fault    *fault
	at       time.Time // when it was fetched
}

// platforms fetches profiles and keeps them for some minutes. A fetch goes on in the background when
// the request that began it does not wait for its end.
type platforms struct {
	client   *http.Client
	refused  func(error) bool
	blocked  func(context.Context, string) (bool, error)
	loopback bool
	kept     *cache.Cache[*profile]
	ctx      context.Context
	stop     context.CancelFunc
	group    sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	closed  bool
	fetches map[string]chan struct{} // by URL; closed at the end of the fetch
	budget  rate.Limit
	free    int64 // of the budget
}

func newPlatforms(c Config) *platforms {
	own := *c.Client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	ctx, stop := context.WithCancel(context.Background())
	return &platforms{client: &own, refused: c.Refused, blocked: c.Blocked, loopback: c.Loopback, kept: cache.Of[*profile](maxPlatforms), ctx: ctx, stop: stop,
		fetches: map[string]chan struct{}{}, budget: rate.PerSecond(fetchesASecond, fetchBurst)}
}

func (ps *platforms) close() {
	ps.mu.Lock()
	ps.closed = true
	ps.mu.Unlock()
	ps.stop()
	ps.group.Wait()
}

// get returns the platform whose profile is at an address. It waits a second at most.
func (ps *platforms) get(ctx context.Context, address string) (*platform, error) {
	u, f := ps.check(address)
	if f != nil {
		return nil, f
	}
	if ps.blocked != nil {
		if blocked, err := ps.blocked(ctx, u.Hostname()); err != nil {
			return nil, err
		} else if blocked {
			return nil, &fault{status: http.StatusForbidden, rpc: rpcRefused, code: "profile_not_trusted", text: "the operator of this node has blocked " + u.Hostname()}
		}
	}
	if p, ok := ps.kept.Get(address, time.Now()); ok {
		return p.result()
	}
	return ps.await(ctx, address)
}

// renew fetches the profile of a platform again, unless that was done within the least age.
func (ps *platforms) renew(ctx context.Context, old *platform) (*platform, bool) {
	p, ok := ps.kept.Get(old.url, time.Now())
	if ok && time.Since(p.at) < leastAge {
		if p.platform != nil && p.platform != old { // another request has renewed it
			return p.platform, true
		}
		return nil, false
	}
	fresh, err := ps.await(ctx, old.url)
	return fresh, err == nil
}

func (p *profile) result() (*platform, error) {
	if p.fault != nil {
		return nil, p.fault
	}
	return p.platform, nil
}

// check refuses an address before anything is looked up.
func (ps *platforms) check(address string) (*url.URL, *fault) {
	bad := func(why string) (*url.URL, *fault) {
		return nil, discovery(http.StatusBadRequest, "invalid_profile_url", "the address of the platform's profile "+why)
	}
	u, err := url.Parse(address)
	switch {
	case len(address) > maxProfileURL:
		return bad("is longer than 512 bytes")
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return bad("is not an absolute https address")
	case u.Scheme == "http" && ps.loopback && netx.IsLoopback(u.Hostname()):
	case u.Scheme != "https":
		return bad("must be https")
	}
	return u, nil
}

// await begins a fetch, or finds one under way, and waits for its end.
func (ps *platforms) await(ctx context.Context, address string) (*platform, error) {
	ended, f := ps.begin(address)
	if f != nil {
		return nil, f
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		if p, ok := ps.kept.Get(address, time.Now()); ok {
			return p.result()
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, &fault{status: http.StatusServiceUnavailable, rpc: rpcRefused, code: "profile_pending", retry: fetchSoon,
		text: "the platform's profile is being fetched; send the request again"}
}

func (ps *platforms) begin(address string) (<-chan struct{}, *fault) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ended := ps.fetches[address]; ended != nil {
		return ended, nil
	}
	next, wait := ps.budget.Take(ps.free, time.Now().UnixNano(), 1)
	if ps.closed || wait > 0 || len(ps.fetches) >= maxFetches {
		return nil, &fault{status: http.StatusServiceUnavailable, rpc: rpcRefused, code: "discovery_busy", retry: max(wait, fetchSoon),
			text: "too many profiles of platforms are being fetched; send the request again later"}
	}
	ps.free = next
	ended := make(chan struct{})
	ps.fetches[address] = ended
	ps.group.Go(func() {
		p, age := ps.fetch(address)
		ps.kept.Put(address, p, 0, p.at.Add(age))
		ps.mu.Lock()
		delete(ps.fetches, address)
		ps.mu.Unlock()
		close(ended)
	})
	return ended, nil
}

// fetch gets a profile: status 200 only, no redirect.
func (ps *platforms) fetch(address string) (p *profile, age time.Duration) {
	ctx, cancel := context.WithTimeout(ps.ctx, fetchTimeout)
	defer cancel()
	raw, f := ps.load(ctx, address)
	p = &profile{at: time.Now()}
	if f == nil {
		p.platform, f = readPlatform(raw)
	}
	if f != nil {
		p.fault = f
		return p, failureAge
	}
	p.platform.url = address
	return p, profileAge
}

func (ps *platforms) load(ctx context.Context, address string) ([]byte, *fault) {
	unreachable := func(why string) ([]byte, *fault) {
		return nil, discovery(http.StatusFailedDependency, "profile_unreachable", "the platform's profile "+why)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, discovery(http.StatusBadRequest, "invalid_profile_url", "the address of the platform's profile cannot be read")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := ps.client.Do(req)
	switch {
	case err != nil && ps.refused != nil && ps.refused(err):
		return nil, discovery(http.StatusBadRequest, "invalid_profile_url", "the address of the platform's profile is not a public address on port 443")
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return unreachable("did not come within 5 seconds")
	case err != nil:
		return unreachable("cannot be reached")
	}
	defer resp.Body.Close()
	switch coding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode/100 == 3:
		return unreachable("redirects; it must be served at its own address")
	case resp.StatusCode != http.StatusOK:
		return unreachable("was answered with status " + http.StatusText(resp.StatusCode))
	case coding != "" && coding != "identity":
		return unreachable("came with a Content-Encoding that was not asked for")
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxProfile+1))
	switch {
	case len(raw) > MaxProfile:
		return nil, discovery(http.StatusUnprocessableEntity, "profile_malformed", "the platform's profile is larger than 256 KiB")
	case err != nil:
		return unreachable("ended early")
	}
	return raw, nil
}
