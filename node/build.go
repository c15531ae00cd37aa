package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"stoa/federation"
	"stoa/identity"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/proof"
	"stoa/node/door/mcpapi"
	"stoa/node/door/ucpapi"
	"stoa/node/door/web"
	"stoa/node/hall"
	"stoa/node/money"
	"stoa/node/out/calendar"
	"stoa/node/out/outbound"
	"stoa/node/out/push"
	"stoa/node/out/signed"
	"stoa/node/out/webhook"
	"stoa/node/room/account"
	"stoa/node/room/attention"
	"stoa/node/room/board"
	"stoa/node/room/catalog"
	"stoa/node/room/complaint"
	"stoa/node/room/contact"
	"stoa/node/room/credential"
	"stoa/node/room/directory"
	"stoa/node/room/feed"
	"stoa/node/room/leave"
	"stoa/node/room/meeting"
	"stoa/node/room/moderation"
	"stoa/node/room/operate"
	"stoa/node/room/order"
	"stoa/node/room/picture"
	"stoa/node/room/reputation"
	"stoa/node/room/site"
	"stoa/node/work/worker"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/netx"
	"stoa/storage"
	"stoa/wellknown"
)

// build makes the parts of the node in the order in which they need each other: the chain, mail and clients; the rooms; the
// gate and the hall; federation; the worker; the documents and the doors.
func (n *Node) build(ctx context.Context) error {
	c := n.Config
	base, err := url.Parse(n.Base)
	if err != nil {
		return err
	}
	if n.texts, err = readTexts(c.Texts); err != nil {
		return err
	}
	if err := n.openTraces(); err != nil {
		return err
	}
	client := outbound.New(outboundOptions(c, n.Base))
	n.signer = &signed.Signer{Key: n.Keys.Ed, Base: n.Base, First: signed.Form(c.AgentForm), Memory: formMemory{n.DB}}
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
	n.metrics = newMetrics(n.DB, c.Version, n.Feed.Hub)
	if len(c.Replicas) > 0 {
		n.metrics.replicas(n.DB)
	}
	if n.certifier != nil {
		n.metrics.certificate(n.certifier)
	}
	if n.Chain != nil {
		n.metrics.chains(n.Chain.Reader)
	}
	if n.exporter != nil {
		n.metrics.exported(n.exporter)
	}
	if n.directories, err = credential.NewDirectories(n.DB, n.signer.Client(client), n.log, c.private()); err != nil {
		return err
	}
	n.prover = credential.NewProver(credential.Prover{DB: n.DB, Base: n.Base, Key: n.Keys.Ed, Chain: n.Chain, Directories: n.directories, Log: n.log})
	gate, proofs, err := n.gate(ctx, base)
	if err != nil {
		return err
	}
	if n.backup, err = c.backups(n.DB, n.Base, n.log); err != nil {
		return err
	}
	if err := n.openHall(ctx, gate, proofs); err != nil {
		return err
	}
	if n.federation, err = n.federate(base, client); err != nil {
		return err
	}
	n.prover.Logged = n.federation.Logged
	if err := n.openDoctor(ctx); err != nil {
		return err
	}
	rooms = append(rooms,
		&site.Site{Base: n.Base, Files: siteFiles(), Census: n.agents.Census, Current: n.current, Proofs: proofs,
			Texts: n.textPages()},
		&operate.Operate{Base: n.Base, Health: n.state,
			Upkeep: operate.Upkeep{DB: n.DB, PartsAfter: c.PartsAfter, Owner: owner()}, Examinations: operate.Examinations{Look: n.doctor.Look},
			FollowJobs: operate.FollowJobs{Follow: n.Follow, Unfollow: n.federation.Unfollow, Log: n.log}})
	for _, r := range rooms {
		r.Bind(n.Table)
	}
	if err := n.Table.Complete(protocol.Operations()); err != nil {
		return err
	}
	if err := n.jobs(ctx, rooms); err != nil {
		return err
	}
	documents, err := wellknown.New(wellknown.Config{
		Base: base, Directory: n.agents, Keys: n.Keys, Site: siteList{n.DB, n.Directory}, Name: c.Name, Version: c.Version,
		Doors: protocol.HTTP | protocol.MCP | protocol.A2A, MCPVersions: mcpapi.Versions(), Registries: registryNames(c), Feeds: feedDocuments(),
		Contact: c.Contact, Policy: c.SecurityPolicy, Signal: c.ContentSignal, RegistryKey: c.RegistryKey, Texts: n.textPages(),
		Open: n.Accounts.Joining.Policy.Everybody(), Log: n.log,
	})
	if err != nil {
		return err
	}
	return n.route(documents, n.signer.Client(client))
}

// A room does operations. One with a method Jobs also does the jobs that they enqueue.
type room interface{ Bind(*hall.Table) }

// rooms makes the rooms. A new one is one more line of the result.
func (n *Node) rooms(ctx context.Context, client *http.Client, mail account.Mailer) ([]room, error) {
	c := n.Config
	var faults []error
	random := func(name string) []byte {
		secret, err := n.Keys.Random(ctx, name)
		faults = append(faults, err)
		return secret
	}
	h := hall.House{Base: n.Base, DB: n.DB, Log: n.log, Words: lettersIn(), Private: c.private()}
	hooks := &webhook.Sender{Client: client, Sign: n.signer, Private: h.Private}
	floors, err := protocol.ParseReviewFloors(c.ReviewFloor)
	faults = append(faults, err)
	ways, err := n.signInWays(random(credential.SecretSignIn))
	faults = append(faults, err)

	var reader *erc8004.Reader
	if n.Chain != nil {
		reader = n.Chain.Reader
	}
	signer := &credential.Signer{Keys: n.Keys}
	posts := board.New(n.Base, signer.Sign)
	reviews := reputation.New(h, n.Keys.Ed, reader, client, c.ReceiptNodes, floors, n.author, c.Dev)
	n.Directory = directory.New(n.Base, reviews.Of)
	n.Directory.House, n.Directory.Client = h, n.signer.Client(outbound.New(directoryOptions(c, n.Base)))
	reviews.Ever = n.Keys.Ever
	reviews.Sign, n.Directory.Sign = signer.SignNews, signer.SignNews
	n.agents = credential.NewAgents(n.DB, n.Directory, n.Chain, n.Enrolments)
	n.Board, n.Moderation = posts, moderation.New(n.Base, c.limits(), n.Keys.Networks.Of, posts.Delete, posts.Distribute)
	n.Moderation.SetState = n.Directory.SetState
	n.Feed = feed.New(h, cmp.Or(c.MaxStreams, feed.MaxStreams))
	n.Money = &money.Money{Base: n.Base, DB: n.DB, Seal: n.Keys, Pay: n.payProviders(client), Kinds: map[string]money.Kind{}}
	n.Attention = attention.New(h, c.Dev || c.PaySandbox, n.Money, hooks, random(credential.SecretBidLinks))
	letterKey := random(credential.SecretMeetingLinks)
	reviews.MailKey = letterKey
	n.Orders = order.New(h, n.name(), n.Money, letterKey, n.orderMail, reviews)
	n.Orders.Platforms = &order.Platforms{Send: hooks.SendWith, Page: n.Base + protocol.UCPProfilePath,
		Body: func(o *protocol.PlatformOrder) ([]byte, error) { return ucpapi.OrderBody(o, n.Base) }}
	n.Meeting = meeting.New(h, n.meetingMail, c.MeetingMails, hooks, n.Keys, letterKey, outbound.New(calendarOptions(c, n.Base)))
	links := map[string]account.LinkFor{protocol.BidID: n.Attention.LinkFor, protocol.MeetingID: n.Meeting.LinkFor}
	n.Accounts = account.New(h, n.name(), mail, hooks, links, ways, n.Keys.SealAgent, n.joining(c))
	n.Archive = newArchive(c, n.DB, n.Keys, n.Accounts, client, n.Chain)
	n.Archive.LinkKey, n.Archive.Buyer = letterKey, n.Orders.BuyerOf
	pictures := picture.New(h, spool(c.Data))
	n.Archive.Picture = pictures.Make
	n.Directory.Guests = c.A2ACallers == string(a2a.SignedCallers) || c.A2ACallers == string(a2a.AnyCallers)
	n.Contact, n.Reputation = contact.New(h, hooks, n.Keys, cmp.Or(c.MaxStreams, contact.MaxFollowers)), reviews
	n.Contact.Limits = c.threadLimits()
	leaves := &leave.Leave{Base: n.Base, SetState: n.Directory.SetState, Drop: n.Directory.Drop, Distribute: posts.Distribute, Erase: posts.Erase,
		Recent: n.Accounts.Recent, Tell: n.Accounts.Leaves, LinkKey: letterKey}
	n.Accounts.Return, n.Accounts.UndoLink = leaves.Return, leaves.Link
	n.Accounts.Opens = map[string]account.Opens{protocol.ThreadID: n.Contact.Opens, protocol.BidID: n.Attention.Opens, protocol.MeetingID: n.Meeting.Opens}
	pushKey, err := push.NewKey(random(credential.SecretPush))
	faults = append(faults, err)
	n.Accounts.Push = &push.Sender{Client: client, Key: pushKey, Contact: c.pushContact(n.Base), Private: h.Private}
	programs, err := account.NewOAuth(h, random(credential.SecretOAuth), n.signer.Client(client))
	faults = append(faults, err)
	return []room{
		complaint.New(h, n.name(), c.complaintTimes(), letterKey, c.MeetingMails, n.complaintMail,
			complaint.Appeals{Authored: posts.Authored, Restore: n.Moderation.Restore, Lift: n.Moderation.LiftSuspension}),
		leaves, n.Accounts, n.Archive, n.Attention, n.Board, n.Directory, n.Feed, n.Meeting, n.Moderation, n.Contact, n.Reputation, n.Orders,
		catalog.New(catalog.Catalog{DB: n.DB, Spool: spool(c.Data), Changed: n.Directory.CatalogChanged, Error: directory.CatalogError,
			Client: outbound.New(catalogOptions(c, n.Base)), Private: h.Private}),
		programs, pictures,
		credential.SignIns{DB: n.DB, SignIn: n.Accounts.Agents},
		credential.Enroller{DB: n.DB, Chain: n.readChain, Recent: n.Accounts.Recent, Told: n.Accounts.Connected, Status: n.Directory.Identity},
	}, errors.Join(faults...)
}

// joining is how people and agents join the node.
func (n *Node) joining(c Config) account.Joining {
	policy := protocol.Registrations(c.Registrations)
	u, err := url.Parse(n.Base)
	if policy == "" {
		if policy = protocol.RegistrationsApproval; err == nil && netx.IsLoopback(u.Hostname()) {
			policy = protocol.RegistrationsOpen
		}
	}
	j := account.Joining{Policy: policy, PerNetwork: 20, PerDay: 2000, Invites: c.OwnerInvitations, Put: n.Directory.Put, SetState: n.Directory.SetState}
	if c.Dev {
		j.PerNetwork = 1000
	}
	for _, name := range []string{n.name(), u.Hostname(), strings.TrimSuffix(u.Hostname(), path.Ext(u.Hostname()))} {
		j.Reserved = append(j.Reserved, protocol.HandleSkeleton(strings.ToLower(name)))
	}
	return j
}

// author is a profile as the Author of what the node publishes for it.
func (n *Node) author(p *storage.StoredProfile, at time.Time) protocol.Author {
	return directory.Author(n.Base, p, at)
}

// name is what the operator calls the node, its host by default.
func (n *Node) name() string {
	return n.Config.name(strings.TrimPrefix(strings.TrimPrefix(n.Base, "https://"), "http://"))
}

// readChain returns the chain; conflict on a node that reads none.
func (n *Node) readChain() (*credential.Chain, error) {
	if n.Chain == nil {
		return nil, protocol.Errorf(protocol.Conflict, "this node reads no blockchain, so it cannot check an identity")
	}
	return n.Chain, nil
}

// current is what a page shows. It reads n.Web when it is called, since the pages are made after the rooms.
func (n *Node) current(ctx context.Context, c protocol.Caller, in protocol.PageInput) (protocol.CurrentPage, error) {
	return n.Web.Current(ctx, c, in)
}

// openChain makes what reads the chain and keeps enrolments in step with it. A chain that does not
// answer now is no error: /readyz and the metrics report it.
func (n *Node) openChain(ctx context.Context) (err error) {
	if n.Chain, err = credential.NewChain(n.Config.Chain, n.Config.Dev, n.DB, n.log); err != nil || n.Chain == nil {
		return err
	}
	err = n.Chain.Reader.Check(ctx)
	if wrong, ok := errors.AsType[*erc8004.SettingError](err); ok {
		return fmt.Errorf("%w: %w", ErrConfig, wrong)
	}
	n.Enrolments = credential.NewEnrolments(n.DB, n.Chain, n.log)
	return ctx.Err()
}

// openHall makes the hall, and what limits and observes its requests.
func (n *Node) openHall(ctx context.Context, gate *identity.Gate, proofs *proof.Issuer) error {
	c := n.Config
	n.Table = hall.New(n.DB, gate, hall.NewLimits(c.rates()))
	n.Table.Base = n.Base
	n.Meter = &operate.Meter{DB: n.DB, Log: n.log}
	n.state = operate.NewHealth(n.DB, c.Version, n.mailState(), n.Chain.Health)
	if n.backup != nil {
		n.state.Backups = n.backup.Place.String()
	}
	n.Table.Observe = n.observe
	proxies := trusted(c)
	n.front = &front{limits: n.Table.Limits, refused: n.metrics.limited,
		network: func(r *http.Request) string { return n.Keys.Networks.Of(clientAddr(r, proxies)) },
		given:   func(r *http.Request) string { return givenID(r, proxies) }}
	receipts, err := n.Keys.Random(ctx, credential.SecretReceipts)
	if err != nil {
		return err
	}
	if n.Table.Receipts, err = key.NewSealer(receipts); err != nil {
		return err
	}
	n.Table.Rules = &operate.Rules{DB: n.DB, Log: n.log, Limits: n.Table.Limits, Proofs: proofs, Config: c.rates(), Dev: c.Dev}
	if n.DB.Engine() == "postgres" && !c.Dev {
		n.usage = operate.NewUsage(owner(), n.DB, n.log, n.Table.Limits, proofs)
	}
	return nil
}

// jobs makes the worker, gives it the handler of each kind of job, and enqueues the first of those that repeat.
func (n *Node) jobs(ctx context.Context, rooms []room) error {
	n.Worker = &worker.Worker{DB: n.DB, Log: n.log, Owner: owner(), Observe: n.metrics.job, Traces: n.tracer}
	handle := func(jobs map[storage.JobKind]storage.JobHandler) {
		for kind, handler := range jobs {
			n.Worker.Handle(kind, handler)
		}
	}
	handle(n.federation.Jobs())
	handle(n.Money.Jobs())
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
	if err := n.Worker.Complete(storage.JobKinds()); err != nil {
		return err
	}
	return n.DB.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return errors.Join(operate.Upkeep{}.Enqueue(ctx, tx), n.Reputation.Enqueue(ctx, tx), n.Accounts.Enqueue(ctx, tx))
	})
}

// gate makes what admits callers, and the issuer of proofs of work.
func (n *Node) gate(ctx context.Context, base *url.URL) (*identity.Gate, *proof.Issuer, error) {
	target, err := httpsig.ParseTarget(n.Base)
	if err != nil {
		return nil, nil, err
	}
	master, err := n.Keys.Random(ctx, credential.SecretPow)
	if err != nil {
		return nil, nil, err
	}
	config := proof.Config{Master: master, Audience: base.Host}
	if n.Config.Dev {
		config.Flat, config.Cost = new(0), n.Config.ProofCost
	}
	proofs := proof.New(config)
	gate := &identity.Gate{
		Target: target, Directory: n.agents, Directories: n.directories, Proofs: proofs,
		AllowLoopback: n.Config.private(), SignIn: n.Accounts.Agents,
	}
	if n.Chain != nil {
		gate.Chain = n.Chain
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

// catalogOptions are those of the client for catalogs, whose addresses owners write.
func catalogOptions(c Config, base string) outbound.Options {
	o := outboundOptions(c, base)
	o.Timeout, o.MaxBody = catalog.AnswerFor, protocol.MaxItemsUpload
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
		Base: base, DB: n.DB, Client: client,
		Keys:     federation.Keys{RSA: n.Keys.RSA, Ed25519: n.Keys.Ed, Others: n.Keys.Others, Former: n.Keys.FormerRSA},
		Receiver: receiver{n.Board, n.Moderation}, Threads: n.Contact, Software: "stoa", Version: n.Config.Version,
		Icon:         base.Scheme + "://" + base.Host + web.PicturePath(),
		AllowPrivate: n.Config.private(), AuthorizedFetch: n.Config.AuthorizedFetch, Log: n.log, Observe: n.federated,
		Traces: n.tracer, Network: n.front.network, Return: n.front.handBack, Listed: n.prover.Listed, Reach: n.reach,
	}
	if n.Chain != nil {
		c.Authority, c.Reviews = n.Chain, n.Chain.Review
	}
	return federation.New(c)
}
