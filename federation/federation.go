// Package federation exchanges posts with other nodes over ActivityPub: it serves
// the actors and objects of this node, accepts deliveries from other nodes, and
// delivers what is posted here.
//
// Each board has a numbered log, which is authoritative (log.go). A stoa peer
// follows it by cursor: it is pushed each new entry and pulls what it missed
// (fanout.go, pull.go), so that every entry is applied once and in order, even if
// deliveries are lost, repeated or reordered. An inbox of the fediverse is a cursor
// over the same log. A received activity is stored before it is answered with 202
// (inbox.go) and processed afterwards (process.go).
//
// No network request is made while a transaction is open.
package federation

import (
	"context"
	"crypto"
	"crypto/ed25519"
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
	"stoa/protocol/trace"
	"stoa/storage"
)

// Keys are the node's keys. All its actors publish both: RSA for the fediverse,
// Ed25519 for integrity proofs and between stoa nodes.
type Keys struct {
	RSA     key.Pair // 2048 bits
	Ed25519 key.Pair

	Others func() []ed25519.PublicKey // that were, or will be, valid beside Ed25519; nil for none
	Former func() key.Pair            // the RSA key before a rotation, zero once it is not needed; nil for none
}

func (k Keys) former() key.Pair {
	if k.Former == nil {
		return key.Pair{}
	}
	return k.Former()
}

// A Receiver stores what federation has accepted. Its methods run inside the
// transaction that records the acceptance, make no network requests, and may be
// called again with the same content. An unknown URI is no error.
type Receiver interface {
	ReceivePost(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (id string, err error)
	DeletePost(ctx context.Context, tx *storage.Tx, uri string) error
	HidePost(ctx context.Context, tx *storage.Tx, uri string) error
	RestorePost(ctx context.Context, tx *storage.Tx, uri string) error
}

// A Reporter receives reports by other servers: those of a trusted node count,
// those of others are only shown to the operator. A Receiver may implement it;
// otherwise reports are only written to the audit trail.
type Reporter interface {
	ReportFrom(ctx context.Context, tx *storage.Tx, postID, reporter, reason string) error
	FlagFrom(ctx context.Context, tx *storage.Tx, postID, domain, reason string) error
}

// Authority is integrity.Authority: which key may sign for a chain identity.
type Authority = integrity.Authority

// A Config configures a Federation. Base, DB, Client, Keys and Receiver are
// required.
type Config struct {
	Base      *url.URL // public address, without path
	DB        *storage.DB
	Client    *http.Client // guarded against private addresses
	Keys      Keys
	Receiver  Receiver
	Threads   Correspondent // nil: messages to agents are ignored
	Authority Authority     // nil: no chain is configured, no author of another node is verified
	// Listed is integrity.Claim.Listed, for posts of a host. Nil: no author of another node is verified by a key directory.
	Listed  func(ctx context.Context, host string, ref httpsig.AgentRef, keyid string) (crypto.PublicKey, error)
	Reviews ReviewReader // nil: no chain is configured, reviews are the word of their node

	Software, Version string
	Icon              string                     // address of the picture of the node's own actors, a PNG; "" for none
	AllowPrivate      bool                       // allow plain http, for development
	AuthorizedFetch   bool                       // what is not an actor is served to signed requests of servers that are not refused
	Network           func(*http.Request) string // the client's network; nil: all clients are in one network
	Log               *slog.Logger
	Now               func() time.Time                           // for signatures and caches; nil: time.Now
	Observe           func(event string, host string, err error) // counts events; may be nil
	Traces            *trace.Tracer                              // of deliveries of the log; nil for none
	// Return returns to the client's network the rate that the router charged for a
	// request. It is called at most once per request, after the signature was verified
	// with a key of a known host; the request is then charged to the host instead. May
	// be nil.
	Return func(r *http.Request)
	// Reach connects to a port of a host, by tcp4 or tcp6, unless the address is private. Nil: this node does not check for others
	// whether they can be reached.
	Reach func(ctx context.Context, network, host string, port uint16) error
}

// A Federation is the ActivityPub side of one node. Its handlers and jobs may be
// used concurrently; Run is called at most once.
type Federation struct {
	c      Config
	site   activity.Site
	target httpsig.Target
	log    *slog.Logger
	now    func() time.Time
	client *http.Client // follows redirects within one origin only

	fetching  singleflight.Group
	misses    *cache.Cache[error]      // URLs that could not be fetched recently
	keys      *cache.Cache[*remoteKey] // keys recently read from the database
	unproven  *cache.Cache[*remoteKey] // fetched keys that have not verified anything yet
	lookUps   *buckets                 // rate of fetches caused by unverified requests
	limits    *buckets                 // rate of verified deliveries of hosts that are not peers
	peers     *buckets                 // the same for peers
	mentions  *buckets                 // rate of posts that mention our board
	reaches   *buckets                 // rate of the checks whether another node can be reached, which it asks for
	reaching  chan struct{}            // running checks of these
	hosts     *slots                   // running fetches and deliveries, by host
	strangers places                   // running fetches caused by unverified requests
	fetchFor  time.Duration            // how long a fetch may take; fetchTimeout but in tests
	growth    growth
	backlog   backlog

	maxFollowers, maxFollowersOfHost int

	entries     *cache.Cache[[]byte] // serialized entries of our log
	preparation *preparation
	stretches   *cache.Cache[*stretch]
	blocks      *blocks                // blocks of our log, from which pages are built
	readers     *cache.Cache[struct{}] // stored pairs of post and reader
	reads       chan struct{}          // signed reads that are being verified
	noting      sync.WaitGroup         // for the goroutines that verify signed reads
	boosted     storage.Memo[int]      // number of posts in our board's outbox
	treeDue     chan struct{}          // the log may have entries that are not in its tree
	wanted      sync.Map               // board → int64: highest announced sequence number
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
			PublicKeyPEM: pem, Multikey: multikey, Others: c.Keys.multikeys, Icon: c.Icon,
		},
		misses: cache.OfBytes[error](4 << 20), keys: cache.OfBytes[*remoteKey](8 << 20), unproven: cache.OfBytes[*remoteKey](8 << 20), hosts: newSlots(),
		lookUps: newBuckets(lookUpRate), limits: newBuckets(deliveryRate), peers: newBuckets(peerRate), mentions: newBuckets(mentionRate),
		reaches: newBuckets(reachRate), reaching: make(chan struct{}, reachAtOnce),
		growth:    growth{added: map[storage.Stock]int{}, caps: storage.Caps},
		entries:   cache.OfBytes[[]byte](16 << 20),
		stretches: cache.OfBytes[*stretch](1 << 20), blocks: newBlocks(), treeDue: make(chan struct{}, 1), preparation: newPreparation(),
		maxFollowers: maxFollowers, maxFollowersOfHost: maxFollowersOfHost,
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.now == nil {
		f.now = time.Now
	}
	f.readers, f.reads = cache.OfBytes[struct{}](1<<20), make(chan struct{}, readersAtOnce)
	f.strangers.undisputed, f.fetchFor = strangersUndisputed, fetchTimeout
	f.boosted.Age = boostedAge
	f.boosted.Count = func(ctx context.Context, tx *storage.Tx, _ *int) (int, error) {
		return tx.Posts().CountBoosted(ctx, f.site.Board())
	}
	client := *c.Client
	client.CheckRedirect = sameOriginRedirect
	f.client = &client
	return f, nil
}

func (k Keys) multikeys() (all []string) {
	if k.Others != nil {
		for _, public := range k.Others() {
			all = append(all, key.Multikey(public))
		}
	}
	return all
}

func multikeyOf(pair key.Pair) (string, error) {
	pub, err := ed25519Of(pair)
	if err != nil {
		return "", err
	}
	return key.Multikey(pub), nil
}

// Jobs are the handlers of the federation's durable jobs.
func (f *Federation) Jobs() map[storage.JobKind]storage.JobHandler {
	return map[storage.JobKind]storage.JobHandler{
		storage.ProcessJob: f.process, storage.EraseJob: f.eraseJob, storage.DeliverJob: f.deliverJob, storage.SubmitJob: f.submit, storage.MessageJob: f.sendMessage,
		storage.ForgetJob: f.forget, storage.PullJob: f.pull, storage.RecheckJob: f.recheck, storage.EvictJob: f.evict,
		storage.ReactionsJob: f.dropReactions, storage.DropFollowersJob: f.dropFollowers, storage.RejectJob: f.rejectFollower,
		storage.ReportJob: f.sendReport, storage.WitnessJob: f.askWitness,
	}
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
	mux.HandleFunc("GET /ap/board/tree/{epoch}/{path...}", f.serveTree)
	mux.HandleFunc("GET /ap/board/announces/{seq}", f.serveBoost)
	mux.HandleFunc("GET /ap/posts/{id}", f.servePost)
	mux.HandleFunc("GET /ap/posts/{id}/{part}", f.servePostPart)
	mux.HandleFunc("GET /ap/messages/{id}", f.serveMessage)
	mux.HandleFunc("GET /ap/posts/{id}/quotes/{key}", f.serveStamp)
	mux.HandleFunc("GET /ap/bids/{id}", f.serveBid)
	mux.HandleFunc("GET /ap/news/{id}", f.serveNews)
	mux.HandleFunc("GET /ap/summaries/{handle}", f.serveSummary)
	mux.HandleFunc("GET "+witnessPath+"/checkpoint", f.serveWitnessed)
	mux.HandleFunc("POST "+witnessPath+"/add-checkpoint", f.addCheckpoint)
	mux.HandleFunc("GET "+reachPath, f.serveReach)
	mux.HandleFunc("POST /ap/inbox", f.inbox)
	mux.HandleFunc("POST /ap/{actor}/inbox", f.actorInbox)
	mux.HandleFunc("POST /ap/agents/{handle}/inbox", f.inbox)
	mux.HandleFunc("/ap/", func(w http.ResponseWriter, _ *http.Request) {
		f.problem(w, refuse(http.StatusNotFound, "there is nothing at this path, or not for this method", nil))
	})
	return f.authorized(mux)
}

// observe reports an event at a host to the node's metrics and log.
func (f *Federation) observe(event, host string, err error) {
	if f.c.Observe != nil {
		f.c.Observe(event, host, err)
	}
	if err != nil {
		f.log.Debug("federation "+event, "host", host, "err", err)
	}
}
