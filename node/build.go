package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stoa/federation"
	"stoa/identity"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/proof"
	"stoa/node/door/mcpapi"
	"stoa/node/door/web"
	"stoa/node/hall"
	"stoa/node/out/calendar"
	"stoa/node/out/outbound"
	"stoa/node/out/webhook"
	"stoa/node/room/account"
	"stoa/node/room/attention"
	"stoa/node/room/board"
	"stoa/node/room/catalog"
	"stoa/node/room/contact"
	"stoa/node/room/credential"
	"stoa/node/room/directory"
	"stoa/node/room/feed"
	"stoa/node/room/meeting"
	"stoa/node/room/moderation"
	"stoa/node/room/operate"
	"stoa/node/room/reputation"
	"stoa/node/room/site"
	"stoa/node/work/worker"
	"stoa/protocol"
	"stoa/storage"
	"stoa/wellknown"
)

// build makes the parts of the node in the order in which they need each other: the chain, mail and clients; the rooms; the
// gate and the hall; federation; the worker; the documents and the doors.
func (n *Node) build(ctx context.Context) error {
	c := n.config
	base, err := url.Parse(n.Base)
	if err != nil {
		return err
	}
	client := outbound.New(outboundOptions(c, n.Base))
	if err := n.openChain(ctx); err != nil {
		return err
	}
	mail, err := n.mailer(ctx, base)
	if err != nil {
		return err
	}
	rooms, err := n.rooms(ctx, client, mail)
	if err != nil {
		return err
	}
	n.metrics = newMetrics(n.db, c.Version, n.feed.Hub)
	if n.chain != nil {
		n.metrics.registry.MustRegister(chainStates{n.chain.Reader})
	}
	if n.directories, err = credential.NewDirectories(n.db, client, n.log, c.private()); err != nil {
		return err
	}
	gate, proofs, err := n.gate(ctx, base)
	if err != nil {
		return err
	}
	if err := n.openHall(ctx, gate, proofs); err != nil {
		return err
	}
	if n.federation, err = n.federate(base, client); err != nil {
		return err
	}
	rooms = append(rooms,
		&site.Site{Base: n.Base, Files: siteFiles(), Census: n.agents.Census, Current: n.current, Proofs: proofs},
		&operate.Operate{Base: n.Base, Health: n.state, Upkeep: operate.Upkeep{DB: n.db},
			FollowJobs: operate.FollowJobs{Follow: n.Follow, Unfollow: n.federation.Unfollow, Log: n.log}})
	for _, r := range rooms {
		r.Bind(n.table)
	}
	if err := n.table.Complete(protocol.Operations()); err != nil {
		return err
	}
	if err := n.jobs(ctx, rooms); err != nil {
		return err
	}
	documents, err := wellknown.New(wellknown.Config{
		Base: base, Directory: n.agents, Keys: n.keys, Site: siteList{n.db, n.directory}, Name: c.Name, Version: c.Version,
		Doors: protocol.HTTP | protocol.MCP | protocol.A2A, MCPVersions: mcpapi.Versions(), Registries: registryNames(c), Feeds: feedDocuments(),
		Contact: c.Contact, Policy: c.SecurityPolicy, Signal: c.ContentSignal, Log: n.log,
	})
	if err != nil {
		return err
	}
	return n.route(documents, client)
}

// A room does operations; one with a method Jobs, what is to be done after their commits too.
type room interface{ Bind(*hall.Table) }

// rooms makes the rooms. One more is one more line of what it returns.
func (n *Node) rooms(ctx context.Context, client *http.Client, mail account.Mailer) ([]room, error) {
	c := n.config
	var faults []error
	random := func(name string) []byte {
		secret, err := n.keys.Random(ctx, name)
		faults = append(faults, err)
		return secret
	}
	h := hall.House{Base: n.Base, DB: n.db, Log: n.log, Private: c.private()}
	hooks := &webhook.Sender{Client: client, Key: n.keys.Ed, Base: n.Base, Private: h.Private, Form: webhook.Form(c.AgentForm)}
	floors, err := reputation.ParseFloors(c.ReviewFloor)
	faults = append(faults, err)
	ways, err := n.signInWays(random(credential.SecretSignIn))
	faults = append(faults, err)

	var reader *erc8004.Reader
	if n.chain != nil {
		reader = n.chain.Reader
	}
	signer := &credential.Signer{Keys: n.keys}
	posts := board.New(n.Base, signer.Sign)
	reviews := reputation.New(h, n.keys.Ed, reader, client, c.ReceiptNodes, floors, n.author, c.Dev)
	n.directory = directory.New(n.Base, reviews.Of)
	n.directory.House, n.directory.Client = h, outbound.New(directoryOptions(c, n.Base))
	reviews.Sign, n.directory.Sign = signer.SignNews, signer.SignNews
	n.agents = credential.NewAgents(n.db, n.directory, n.chain, n.enrolments)
	n.board, n.moderation = posts, moderation.New(n.Base, c.limits(), n.keys.Networks.Of, posts.Delete, posts.Distribute)
	n.feed = feed.New(h, cmp.Or(c.MaxStreams, feed.MaxStreams))
	n.attention = attention.New(h, c.Dev || c.PaySandbox, n.payProviders(client), hooks, n.keys, random(credential.SecretBidLinks))
	n.meeting = meeting.New(h, n.meetingMail, c.MeetingMails, hooks, n.keys, random(credential.SecretMeetingLinks), outbound.New(calendarOptions(c, n.Base)))
	links := map[string]account.LinkFor{protocol.BidID: n.attention.LinkFor, protocol.MeetingID: n.meeting.LinkFor}
	n.accounts = account.New(h, n.name(), mail, hooks, links, ways, n.keys.SealAgent)
	n.archive = newArchive(c, n.db, n.keys, n.accounts, client, n.chain)
	n.contact, n.reputation = contact.New(h, hooks), reviews
	return []room{
		n.accounts, n.archive, n.attention, n.board, n.directory, n.feed, n.meeting, n.moderation, n.contact, n.reputation,
		catalog.New(catalog.Catalog{DB: n.db, Spool: spool(c.Data), Changed: n.directory.CatalogChanged, Error: directory.CatalogError}),
		credential.Enroller{DB: n.db, Chain: n.readChain, Recent: n.accounts.Recent, Told: n.accounts.Connected, Status: n.directory.Identity},
	}, errors.Join(faults...)
}

// author is a profile as the author of what the node says about it.
func (n *Node) author(p *storage.StoredProfile, at time.Time) protocol.Author {
	return directory.Author(n.Base, p, at)
}

// name is what the operator calls the node, its host by default.
func (n *Node) name() string {
	return n.config.name(strings.TrimPrefix(strings.TrimPrefix(n.Base, "https://"), "http://"))
}

// readChain is what reads the chain, for what needs one.
func (n *Node) readChain() (*credential.Chain, error) {
	if n.chain == nil {
		return nil, protocol.Errorf(protocol.Conflict, "this node reads no blockchain, so it cannot check an identity")
	}
	return n.chain, nil
}

// current is what a page shows; the pages are made after the rooms.
func (n *Node) current(ctx context.Context, c protocol.Caller, in protocol.PageInput) (protocol.CurrentPage, error) {
	return n.web.Current(ctx, c, in)
}

// openChain makes what reads the chain and keeps enrolments in step with it. A chain that does not
// answer now is no error: /readyz and the metrics report it.
func (n *Node) openChain(ctx context.Context) (err error) {
	if n.chain, err = credential.NewChain(n.config.Chain, n.config.Dev, n.db, n.log); err != nil || n.chain == nil {
		return err
	}
	err = n.chain.Reader.Check(ctx)
	if wrong, ok := errors.AsType[*erc8004.SettingError](err); ok {
		return fmt.Errorf("%w: %w", ErrConfig, wrong)
	}
	n.enrolments = credential.NewEnrolments(n.db, n.chain, n.log)
	return ctx.Err()
}

// openHall makes the hall, and what limits and observes its requests.
func (n *Node) openHall(ctx context.Context, gate *identity.Gate, proofs *proof.Issuer) error {
	c := n.config
	n.table = hall.New(n.db, gate, hall.NewLimits(c.rates()))
	n.meter = &operate.Meter{DB: n.db, Log: n.log}
	n.state = operate.NewHealth(n.db, c.Version, n.mailState(), n.chain.Health)
	n.table.Observe = n.observe
	proxies := trusted(c)
	n.front = &front{limits: n.table.Limits, refused: n.metrics.limited,
		network: func(r *http.Request) string { return n.keys.Networks.Of(clientAddr(r, proxies)) }}
	receipts, err := n.keys.Random(ctx, credential.SecretReceipts)
	if err != nil {
		return err
	}
	if n.table.Receipts, err = key.NewSealer(receipts); err != nil {
		return err
	}
	n.table.Rules = &operate.Rules{DB: n.db, Log: n.log, Limits: n.table.Limits, Proofs: proofs, Config: c.rates(), Dev: c.Dev}
	if n.db.Engine() == "postgres" && !c.Dev {
		n.usage = operate.NewUsage(owner(), n.db, n.log, n.table.Limits, proofs)
	}
	return nil
}

// jobs makes the worker, gives it the handler of each kind of job, and enqueues the first of those that repeat.
func (n *Node) jobs(ctx context.Context, rooms []room) error {
	n.worker = &worker.Worker{DB: n.db, Log: n.log, Owner: owner(), Observe: n.metrics.job}
	handle := func(jobs map[storage.JobKind]storage.JobHandler) {
		for kind, handler := range jobs {
			n.worker.Handle(kind, handler)
		}
	}
	handle(n.federation.Jobs())
	for _, r := range rooms {
		if r, ok := r.(interface {
			Jobs() map[storage.JobKind]storage.JobHandler
		}); ok {
			handle(r.Jobs())
		}
	}
	if err := n.liveness(ctx); err != nil {
		return err
	}
	if err := n.worker.Complete(storage.JobKinds()); err != nil {
		return err
	}
	return n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return errors.Join(operate.Upkeep{}.Enqueue(ctx, tx), n.reputation.Enqueue(ctx, tx))
	})
}

// gate makes what admits callers, and the issuer of proofs of work.
func (n *Node) gate(ctx context.Context, base *url.URL) (*identity.Gate, *proof.Issuer, error) {
	target, err := httpsig.ParseTarget(n.Base)
	if err != nil {
		return nil, nil, err
	}
	master, err := n.keys.Random(ctx, credential.SecretPow)
	if err != nil {
		return nil, nil, err
	}
	config := proof.Config{Master: master, Audience: base.Host}
	if n.config.Dev {
		config.Flat, config.Cost = new(0), n.config.proofCost
	}
	proofs := proof.New(config)
	gate := &identity.Gate{
		Target: target, Directory: n.agents, Directories: n.directories, Proofs: proofs,
		AllowLoopback: n.config.private(),
	}
	if n.chain != nil {
		gate.Chain = n.chain
	}
	return gate, proofs, nil
}

func outboundOptions(c Config, base string) outbound.Options {
	return outbound.Options{AllowPrivate: c.private(), UserAgent: "stoa/" + c.Version + " (+" + base + ")"}
}

// calendarOptions are those of the client for calendar servers, whose addresses owners write.
func calendarOptions(c Config, base string) outbound.Options {
	o := outboundOptions(c, base)
	o.Timeout, o.MaxBody = calendar.Timeout, calendar.MaxBody
	return o
}

// directoryOptions are those of the client for followed directories.
func directoryOptions(c Config, base string) outbound.Options {
	o := outboundOptions(c, base)
	o.MaxBody = protocol.MaxARDDocument
	return o
}

// receiver passes on what federation accepts: posts to the board, reports to
// moderation.
type receiver struct {
	*board.Board
	*moderation.Moderation
}

func (n *Node) federate(base *url.URL, client *http.Client) (*federation.Federation, error) {
	c := federation.Config{
		Base: base, DB: n.db, Client: client,
		Keys:     federation.Keys{RSA: n.keys.RSA, Ed25519: n.keys.Ed},
		Receiver: receiver{n.board, n.moderation}, Threads: n.contact, Software: "stoa", Version: n.config.Version,
		Icon:         base.Scheme + "://" + base.Host + web.PicturePath(),
		AllowPrivate: n.config.private(), AuthorizedFetch: n.config.AuthorizedFetch, Log: n.log, Observe: n.federated,
		Network: n.front.network, Return: n.front.handBack,
	}
	if n.chain != nil {
		c.Authority, c.Reviews = n.chain, n.chain.Review
	}
	return federation.New(c)
}
