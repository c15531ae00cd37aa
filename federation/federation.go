// Package federation speaks with other nodes over ActivityPub: it serves the
// actors and objects of this node, takes what others deliver, and hands on what
// is posted here.
//
// A board has a numbered log, and the log is the truth (log.go). A stoa peer
// follows it by cursor: it is pushed each new entry and pulls what it missed
// (fanout.go, pull.go), so that every entry is applied once and in order,
// whatever is lost, repeated or reordered on the way. An inbox of the fediverse
// is a cursor over the same log. What arrives is kept on disk before it is
// answered with 202 (inbox.go) and processed afterwards (process.go).
//
// Nothing is dialled while a transaction is open.
package federation

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"stoa/identity/cache"
	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/storage"
)

// Keys are the node's own. All its actors publish both: RSA for the fediverse,
// Ed25519 for proofs and among nodes like this one.
type Keys struct {
	RSA     key.Pair // 2048 bits
	Ed25519 key.Pair
}

// A Receiver takes what federation has accepted. Its methods run inside the
// transaction that records the acceptance, dial nobody, and may see the same
// thing twice. An unknown URI is no error.
type Receiver interface {
	ReceivePost(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (id string, err error)
	DeletePost(ctx context.Context, tx *storage.Tx, uri string) error
	HidePost(ctx context.Context, tx *storage.Tx, uri string) error
	RestorePost(ctx context.Context, tx *storage.Tx, uri string) error
}

// A Reporter takes reports by other servers: of a trusted node as one that
// counts, of others for the operator to see. A Receiver may be one; otherwise
// they only reach the audit trail.
type Reporter interface {
	ReportFrom(ctx context.Context, tx *storage.Tx, postID, reporter, reason string) error
	FlagFrom(ctx context.Context, tx *storage.Tx, postID, domain, reason string) error
}

// Authority is integrity.Authority: which key may speak for a chain identity.
type Authority = integrity.Authority

// A Config says whom the node speaks as and with what. Base, DB, Client, Keys
// and Receiver are required.
type Config struct {
	Base      *url.URL // public address, without path
	DB        *storage.DB
	Client    *http.Client // guarded against private addresses
	Keys      Keys
	Receiver  Receiver
	Authority Authority // nil: no chain is configured, no foreign author is verified

	Software, Version string
	AllowPrivate      bool                       // talk plain http, for development
	Network           func(*http.Request) string // names the client's network; nil: all are one
	Log               *slog.Logger
	Now               func() time.Time                           // for signatures and caches; nil: time.Now
	Observe           func(event string, host string, err error) // nil: nobody counts
	// Return hands back to the client network what the router took of its bound
	// for a request. It is called at most once a request, after the signature
	// verified with a key of a known host, which is counted in a bound of the host
	// in its place. May be nil.
	Return func(r *http.Request)
}

// A Federation is the ActivityPub side of one node. Its handlers and jobs may
// be used at once by anybody; Run is called at most once.
type Federation struct {
	c      Config
	site   activity.Site
	target httpsig.Target
	log    *slog.Logger
	now    func() time.Time
	client *http.Client // follows redirects within one origin only

	fetching  singleflight.Group
	misses    *cache.Cache[error]      // URLs that could not be fetched, for a while
	keys      *cache.Cache[*remoteKey] // keys as they were in the database a moment ago
	unproven  *cache.Cache[*remoteKey] // keys that were fetched and have verified nothing yet
	lookUps   *buckets                 // fetches that unverified requests cause
	limits    *buckets                 // verified deliveries of hosts that are no peers
	peers     *buckets                 // and of those that are
	hosts     *slots                   // fetches and deliveries under way, by host
	strangers places                   // fetches under way that unverified requests cause
	growth    growth
	backlog   backlog

	maxFollowers int
	entries      *cache.Cache[[]byte]   // entries of our log as bytes
	blocks       *blocks                // of our log, which pages are cut out of
	readers      *cache.Cache[struct{}] // who read what, as far as it is stored
	reads        chan struct{}          // signed reads that are looked at
	noting       sync.WaitGroup         // the same
	boosted      storage.Memo[int]      // how many posts our board shows to the fediverse
	wanted       sync.Map               // board → int64: highest sequence number heard of
}

// New checks the configuration and builds a Federation. It starts nothing.
func New(c Config) (*Federation, error) {
	if c.Base == nil || c.DB == nil || c.Client == nil || c.Receiver == nil {
		return nil, errors.New("federation: base, database, client and receiver are required")
	}
	pub, ok := c.Keys.RSA.Public().(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("federation: an RSA key is required")
	}
	pem, err := key.PublicPEM(pub)
	if err != nil {
		return nil, fmt.Errorf("federation: %w", err)
	}
	multikey, err := multikeyOf(c.Keys.Ed25519)
	if err != nil {
		return nil, err
	}
	base := strings.ToLower(c.Base.Scheme) + "://" + strings.ToLower(c.Base.Host)
	target, err := httpsig.ParseTarget(base)
	if err != nil {
		return nil, fmt.Errorf("federation: base: %w", err)
	}
	f := &Federation{
		c: c, target: target, log: c.Log, now: c.Now,
		site: activity.Site{
			Base: base, Host: strings.ToLower(c.Base.Host), Software: c.Software, Version: c.Version,
			PublicKeyPEM: pem, Multikey: multikey,
		},
		misses: cache.OfBytes[error](4 << 20), keys: cache.OfBytes[*remoteKey](8 << 20), unproven: cache.OfBytes[*remoteKey](8 << 20), hosts: newSlots(),
		lookUps: newBuckets(lookUpRate), limits: newBuckets(deliveryRate), peers: newBuckets(peerRate),
		growth:  growth{added: map[storage.Stock]int{}, caps: storage.Caps},
		entries: cache.OfBytes[[]byte](16 << 20), blocks: newBlocks(), maxFollowers: maxFollowers,
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.now == nil {
		f.now = time.Now
	}
	f.readers, f.reads = cache.OfBytes[struct{}](1<<20), make(chan struct{}, readersAtOnce)
	f.boosted.Age = boostedAge
	f.boosted.Count = func(ctx context.Context, tx *storage.Tx, _ *int) (int, error) {
		return tx.CountBoosted(ctx, f.site.Board())
	}
	client := *c.Client
	client.CheckRedirect = sameOriginRedirect
	f.client = &client
	return f, nil
}

func multikeyOf(pair key.Pair) (string, error) {
	pub, err := ed25519Of(pair)
	if err != nil {
		return "", err
	}
	return key.Multikey(pub), nil
}

// A JobHandler does one durable job; see package worker.
type JobHandler = func(ctx context.Context, j storage.Job) (after func(ctx context.Context, tx *storage.Tx) error, err error)

// Jobs are the kinds of durable jobs that federation does:
// process (one kept activity), erase (posts of a deleted account), deliver (one
// activity to one inbox), submit (a local reply to the board of another node, or
// to whom it answers), pull (walk a board's log), recheck (an author), evict (rows of a
// stock over its cap).
func (f *Federation) Jobs() map[string]JobHandler {
	return map[string]JobHandler{"process": f.process, "erase": f.eraseJob, "deliver": f.deliverJob, "submit": f.submit, "pull": f.pull, "recheck": f.recheck,
		evictKind: f.evict}
}

// Handler serves everything under /ap/.
func (f *Federation) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ap/{actor}", f.serveActor)
	mux.HandleFunc("GET /ap/{actor}/{part}", f.serveActorPart)
	mux.HandleFunc("GET /ap/agents/{handle}", f.serveAgent)
	mux.HandleFunc("GET /ap/agents/{handle}/{part}", f.serveAgentPart)
	mux.HandleFunc("GET /ap/board/log", f.serveLog)
	mux.HandleFunc("GET /ap/board/log/{seq}", f.serveEntry)
	mux.HandleFunc("GET /ap/board/announces/{seq}", f.serveBoost)
	mux.HandleFunc("GET /ap/posts/{id}", f.servePost)
	mux.HandleFunc("GET /ap/posts/{id}/{part}", f.servePostPart)
	mux.HandleFunc("POST /ap/inbox", f.inbox)
	mux.HandleFunc("POST /ap/{actor}/inbox", f.actorInbox)
	mux.HandleFunc("POST /ap/agents/{handle}/inbox", f.inbox)
	mux.HandleFunc("/ap/", func(w http.ResponseWriter, _ *http.Request) {
		f.problem(w, refuse(http.StatusNotFound, "there is nothing at this path, or not for this method", nil))
	})
	return mux
}

// observe tells the node's metrics and log about something at a host.
func (f *Federation) observe(event, host string, err error) {
	if f.c.Observe != nil {
		f.c.Observe(event, host, err)
	}
	if err != nil {
		f.log.Debug("federation "+event, "host", host, "err", err)
	}
}
