package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stoa/identity/erc8004"
	"stoa/identity/registration"
	"stoa/node/out/outbound"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// Bounds of the reading of registration documents.
const (
	documentsAtOnce  = 60          // identities of one run
	documentsGone    = 500         // of those without a profile any more, that one run deletes
	documentsEvery   = time.Minute // between two runs
	documentsPerHost = 10          // identities of one run whose documents are at one host
	documentReaders  = 6           // at the same time
	documentRun      = 50 * time.Second
	documentTimeout  = 5 * time.Second // one answer, redirects included
	documentDaily    = 24 * time.Hour
	documentRetry    = 10 * time.Minute   // after the first reading that could not be completed
	documentKept     = 3 * 24 * time.Hour // for so long what was found last is shown while it cannot be asked again
	maxTwins         = 4
	maxTwinTries     = 8 // identities on other chains that one document names and the chain is asked about
	maxDomains       = 3
)

// Documents reads the registration documents of the identities that have a profile here, in the background, and finds out which domains
// vouch for an identity and which identities on other chains are the same agent. No request waits for it, and it decides nothing about who
// may sign.
type Documents struct {
	DB     *storage.DB
	Chain  *Chain       // nil when no chain is configured
	Client *http.Client // of node/out/outbound, with MaxBody of registration.MaxDomainDocument
	Host   string       // host[:port] of this node, which is never asked
	Log    *slog.Logger
	Pause  time.Duration // between two runs; 0: a minute
}

// Enqueue enqueues the job unless it is queued already.
func (d *Documents) Enqueue(ctx context.Context, tx *storage.Tx) error {
	if d.Chain == nil {
		return nil
	}
	return d.enqueueAt(ctx, tx, tx.Now)
}

func (d *Documents) enqueueAt(ctx context.Context, tx *storage.Tx, at time.Time) error {
	name := string(storage.DocumentsJob)
	return tx.Enqueue(ctx, storage.Job{Kind: storage.DocumentsJob, Lane: name, Dedupe: name, RunAt: at})
}

// A linked is an identity whose document is due, with the profile that has it.
type linked struct {
	storage.AgentDocument
	now   time.Time // of the run
	owner string    // of its enrolment
	site  string    // of its profile, "" for none
	links protocol.AgentLinks
}

// Job reads what is due, stores what it found, and enqueues the next run: the handler of DocumentsJob.
func (d *Documents) Job(ctx context.Context, _ storage.Job) (func(context.Context, *storage.Tx) error, error) {
	if d.Chain == nil {
		return nil, nil
	}
	began, due, gone, err := d.due(ctx)
	if err != nil {
		return nil, err
	}
	run := &documentRunner{Documents: d, hosts: map[string]int{}, domains: map[string]*domainAnswer{}}
	work, cancel := context.WithTimeout(ctx, documentRun)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(documentReaders)
	for _, l := range due {
		group.Go(func() error {
			if work.Err() != nil { // it stays due
				return nil
			}
			links := run.read(work, &l)
			if work.Err() != nil {
				return nil
			}
			if err := d.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
				return tx.AgentDocuments().Put(ctx, l.AgentDocument, l.owner, links)
			}); err != nil && ctx.Err() == nil {
				d.Log.Warn("store links of an identity", "identity", l.Agent, "err", err)
			}
			return nil
		})
	}
	_ = group.Wait() // no reading returns an error
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	pause := d.Pause
	if pause == 0 {
		pause = documentsEvery
	}
	return func(ctx context.Context, tx *storage.Tx) error {
		for _, agent := range gone {
			if _, err := tx.Enrolments().ByIdentity(ctx, agent); !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			if err := tx.AgentDocuments().Drop(ctx, agent); err != nil {
				return err
			}
		}
		return d.enqueueAt(ctx, tx, began.Add(pause))
	}, nil
}

// due returns the time, the identities of the next run, and those that have no profile any more.
func (d *Documents) due(ctx context.Context) (now time.Time, due []linked, gone []string, err error) {
	err = d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) error {
		now = tx.Now
		all, err := tx.AgentDocuments().Due(ctx, documentsAtOnce+documentsGone)
		for _, doc := range all {
			if err != nil || len(due) == documentsAtOnce {
				return err
			}
			l := linked{AgentDocument: doc, now: tx.Now}
			var e storage.Enrolment
			switch e, err = tx.Enrolments().ByIdentity(ctx, doc.Agent); {
			case errors.Is(err, storage.ErrNotFound):
				gone, err = append(gone, doc.Agent), nil
				continue
			case err != nil:
				return err
			}
			var p *storage.StoredProfile
			if p, err = tx.Profiles().Own(ctx, e.Handle); err != nil {
				return err
			}
			l.owner, l.links = e.Owner, p.Links
			if p.Draft.Kind == protocol.Business {
				if _, m, none := tx.Merchants().Own(ctx, e.Handle); none == nil && m != nil {
					l.site = m.Draft.Website
				}
			}
			due = append(due, l)
		}
		return err
	})
	return now, due, gone, err
}

// A documentRunner is one run of Documents.
type documentRunner struct {
	*Documents
	mu      sync.Mutex // guards both
	hosts   map[string]int
	domains map[string]*domainAnswer // by host[:port]
}

// A domainAnswer is agent-registration.json of a domain, which is asked for once in a run.
type domainAnswer struct {
	once sync.Once
	doc  registration.Document
	err  error
}

// hostName is what may be shown as the name of a domain: no text that somebody wrote.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?$`)

// errUnread wraps what says nothing: the chain or a host did not answer, or not now.
var errUnread = errors.New("not read")

func unread(err error) error { return fmt.Errorf("%w: %w", errUnread, err) }

// errCrowded means that enough documents of the host were read in this run.
var errCrowded = errors.New("the host is asked about other identities now")

// read reads what concerns one identity. It returns the links that are shown from now on, and sets in l what is stored of the reading.
func (d *documentRunner) read(ctx context.Context, l *linked) (links protocol.AgentLinks) {
	now := l.now
	l.ReadAt, l.Fault = now, ""
	id, err := erc8004.ParseID(l.Agent)
	var snap erc8004.Snapshot
	if err == nil {
		snap, err = d.Chain.Reader.Snapshot(ctx, id)
	}
	switch owner, _ := controllers(snap); {
	case errors.Is(err, erc8004.ErrUnavailable):
		return d.conclude(l, keepRecent(l.links, now), unread(errors.New("the chain cannot be read now")))
	case err != nil:
		return d.conclude(l, links, errors.New("the chain has no such identity, or this node does not read it"))
	case owner != l.owner: // its enrolment ends, or begins anew
		return d.conclude(l, links, unread(errors.New("the identity has another owner")))
	}
	sum := sha256.Sum256([]byte(snap.URI))
	l.URI = base64.RawURLEncoding.EncodeToString(sum[:])
	doc, docErr := d.document(ctx, snap.URI)
	if docErr == nil && !doc.Names(id) {
		doc, docErr = registration.Document{}, errors.New("its registrations do not name this identity")
	}
	worst := docErr
	note := func(list *[]protocol.AgentLink, name string, before []protocol.AgentLink, err error) {
		i := slices.IndexFunc(before, func(b protocol.AgentLink) bool { return b.Name == name })
		switch {
		case err == nil && i >= 0:
			*list = append(*list, protocol.AgentLink{Name: name, Since: before[i].Since, CheckedAt: now.UTC()})
		case err == nil:
			*list = append(*list, protocol.AgentLink{Name: name, Since: now.UTC(), CheckedAt: now.UTC()})
		case errors.Is(err, errUnread):
			if worst = err; i >= 0 && now.Sub(before[i].CheckedAt) < documentKept {
				*list = append(*list, before[i])
			}
		case worst == nil:
			worst = err
		}
	}
	for _, host := range d.candidates(snap.URI, l.site, doc) {
		note(&links.Domains, host, l.links.Domains, d.vouches(ctx, host, id, snap.URI, docErr == nil))
	}
	if errors.Is(docErr, errUnread) {
		links.AlsoRegistered = keepRecent(l.links, now).AlsoRegistered
	}
	tried := 0
	for _, other := range doc.Registrations {
		if tried < maxTwinTries && len(links.AlsoRegistered) < maxTwins && other.ChainID != id.ChainID {
			tried++
			note(&links.AlsoRegistered, other.String(), l.links.AlsoRegistered, d.twin(ctx, snap, other))
		}
	}
	if docErr != nil {
		worst = docErr
	}
	return d.conclude(l, links, worst)
}

// conclude decides when the identity is read again, and what its owner is told.
func (d *documentRunner) conclude(l *linked, links protocol.AgentLinks, err error) protocol.AgentLinks {
	wait := netx.Spread(documentDaily, 0.1)
	l.Failures++
	switch {
	case errors.Is(err, errCrowded):
		l.Failures--
		wait = documentRetry + time.Duration(rand.Int64N(int64(time.Hour)))
	case errors.Is(err, errUnread):
		wait = netx.Jitter(netx.Backoff(documentRetry, documentDaily, l.Failures))
	default:
		l.Failures = 0
	}
	if err != nil {
		l.Fault = protocol.Clip(protocol.CleanText(strings.TrimPrefix(err.Error(), errUnread.Error()+": ")), 300)
	}
	l.NextAt = l.ReadAt.Add(wait)
	return links
}

// keepRecent returns the links that were found lately, while they cannot be asked for again.
func keepRecent(links protocol.AgentLinks, now time.Time) protocol.AgentLinks {
	old := func(l protocol.AgentLink) bool { return now.Sub(l.CheckedAt) >= documentKept }
	return protocol.AgentLinks{Domains: slices.DeleteFunc(slices.Clone(links.Domains), old),
		AlsoRegistered: slices.DeleteFunc(slices.Clone(links.AlsoRegistered), old)}
}

func controllers(s erc8004.Snapshot) (owner, wallet string) {
	return erc8004.Grant{Owner: s.Owner, Wallet: s.Wallet}.Controllers()
}

// candidates are the hosts that may vouch for an identity: that of its agentURI, that of the site of its profile, and those that its document
// calls its web sites. Each has to say so itself.
func (d *documentRunner) candidates(uri, site string, doc registration.Document) (hosts []string) {
	for _, address := range []string{uri, site} {
		if u, err := url.Parse(address); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
			hosts = append(hosts, strings.ToLower(u.Host))
		}
	}
	var some []string
	for _, host := range append(hosts, doc.Hosts...) {
		if hostName.MatchString(host) && host != d.Host && !slices.Contains(some, host) && len(some) < maxDomains {
			some = append(some, host)
		}
	}
	return some
}

// vouches returns nil when a domain names the identity. ERC-8004 "Endpoint Domain Verification" also takes the document at the agentURI for
// that. Departs from it: only under /.well-known/ of the host (RFC 8615), since at many hosts anybody may publish a file, and such a host
// vouches for nobody.
func (d *documentRunner) vouches(ctx context.Context, host string, id erc8004.ID, uri string, named bool) error {
	u, err := url.Parse(uri)
	if err == nil && named && strings.EqualFold(u.Host, host) && strings.HasPrefix(u.Path, "/.well-known/") {
		return nil
	}
	d.mu.Lock()
	a := d.domains[host]
	if a == nil {
		a = &domainAnswer{}
		d.domains[host] = a
	}
	d.mu.Unlock()
	a.once.Do(func() {
		scheme := "https"
		if err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, host) { // the client takes it on machines of developers only
			scheme = "http"
		}
		var raw []byte
		if raw, a.err = d.get(ctx, scheme+"://"+host+registration.DomainPath, registration.MaxDomainDocument, true); a.err == nil {
			a.doc, a.err = registration.ParseDomain(raw)
		}
	})
	if a.err == nil && !a.doc.Names(id) {
		return errors.New(host + " does not name this identity")
	}
	return a.err
}

// twin returns nil when another identity is of the same owner or agent wallet, and its document names both.
func (d *documentRunner) twin(ctx context.Context, mine erc8004.Snapshot, other erc8004.ID) error {
	theirs, err := d.Chain.Reader.Snapshot(ctx, other)
	if errors.Is(err, erc8004.ErrUnavailable) {
		return unread(err)
	}
	if err != nil {
		return err
	}
	// An agentURI survives a sale, so that the document that names both may be a former owner's.
	owner, wallet := controllers(mine)
	theirOwner, theirWallet := controllers(theirs)
	switch {
	case owner != theirOwner && (wallet == "" || wallet != theirWallet):
		return errors.New("it has another owner")
	case mine.URI == theirs.URI:
		return nil
	}
	doc, err := d.document(ctx, theirs.URI)
	if err == nil && (!doc.Names(mine.ID) || !doc.Names(other)) {
		err = errors.New("its document does not name both")
	}
	return err
}

// document reads the document that an agentURI contains or leads to.
func (d *documentRunner) document(ctx context.Context, uri string) (doc registration.Document, err error) {
	raw, inline, err := registration.Inline(uri)
	if !inline {
		var u *url.URL
		switch u, err = url.Parse(uri); {
		case uri == "":
			err = errors.New("the identity has no agentURI")
		case err != nil || len(uri) > registration.MaxAgentURI:
			err = errors.New("the agentURI is not an address of at most 2,048 bytes")
		case u.Scheme != "https" && u.Scheme != "http":
			err = fmt.Errorf("this node does not read addresses of the scheme %q, only https: and data: URLs", protocol.Clip(u.Scheme, 20))
		case strings.EqualFold(u.Host, d.Host):
			err = errors.New("the document is this node's own")
		default:
			raw, err = d.get(ctx, uri, registration.MaxDocument, false)
		}
	}
	if err != nil {
		return doc, err
	}
	return registration.Parse(raw)
}

// get fetches a document with status 200 and at most so many bytes. within keeps redirects in the domain, so that it is the host that
// answers.
func (d *documentRunner) get(ctx context.Context, address string, most int64, within bool) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	host := strings.ToLower(req.URL.Hostname())
	if err := d.admit(ctx, req.URL.Host, host); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	req = req.WithContext(ctx)
	req.Header.Set("Accept", "application/json")
	client := *d.Client
	if within {
		client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
			to := strings.ToLower(next.URL.Hostname())
			if to != host && !strings.HasSuffix(to, "."+host) || next.URL.Scheme != req.URL.Scheme {
				return http.ErrUseLastResponse
			}
			return d.Client.CheckRedirect(next, via)
		}
	}
	res, err := client.Do(req)
	if err != nil {
		if refused, ok := errors.AsType[*outbound.Refused](err); ok && refused.Form {
			return nil, errors.New("the address at " + host + " is not https, or names a port")
		} else if ok {
			return nil, errors.New(host + " has no public address")
		}
		return nil, unread(errors.New(host + " does not answer in time"))
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
		return nil, unread(fmt.Errorf("%s answers with status %d", host, res.StatusCode))
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers with status %d", host, res.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case errors.Is(err, outbound.ErrBodyTooLarge) || int64(len(raw)) > most:
		return nil, fmt.Errorf("the document of %s has more than %d bytes", host, most)
	case err != nil:
		return nil, unread(errors.New(host + " does not answer in time"))
	}
	return raw, nil
}

// admit counts a request to a server, or says why none is sent.
func (d *documentRunner) admit(ctx context.Context, server, host string) error {
	d.mu.Lock()
	d.hosts[server]++
	n := d.hosts[server]
	d.mu.Unlock()
	if n > documentsPerHost {
		return unread(errCrowded)
	}
	refused := false
	if err := d.DB.Read(ctx, func(ctx context.Context, tx *storage.Tx) (err error) {
		refused, err = tx.Peers().Refused(ctx, host)
		return err
	}); err != nil {
		return unread(err)
	}
	if refused {
		return errors.New("this node refuses " + host)
	}
	return nil
}
