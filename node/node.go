// Package node builds every part of a node from one Config, binds the rooms to the
// declared operations, and runs servers and background work until its context ends.
// The packages below it read no globals, and start no goroutine that they do not wait
// for.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"stoa/federation"
	"stoa/identity"
	keydirectory "stoa/identity/directory"
	"stoa/identity/erc8004"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/identity/proof"
	"stoa/node/door/httpapi"
	"stoa/node/door/mcpapi"
	"stoa/node/door/ucpapi"
	"stoa/node/door/web"
	"stoa/node/hall"
	"stoa/node/out/calendar"
	"stoa/node/out/outbound"
	"stoa/node/out/webhook"
	"stoa/node/room/account"
	"stoa/node/room/archive"
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
	"stoa/node/work/liveness"
	"stoa/node/work/worker"
	"stoa/protocol"
	"stoa/protocol/pow"
	"stoa/storage"
	"stoa/wellknown"
)

// A Node is one running node. Make it with New, run it with Run, once.
type Node struct {
	Base string // public address, without a slash at the end
	URL  string // where it listens, http://host:port

	config      Config
	log         *slog.Logger
	db          *storage.DB
	keys        *credential.Keyring
	agents      *credential.Agents
	chain       *credential.Chain
	enrolments  *credential.Enrolments // nil when no chain is configured
	directories *keydirectory.Cache
	table       *hall.Table
	front       *front
	worker      *worker.Worker
	federation  *federation.Federation
	metrics     *metrics
	board       *board.Board
	directory   *directory.Directory
	moderation  *moderation.Moderation
	prober      *liveness.Prober
	sightings   *liveness.Sightings
	usage       *operate.Usage // nil when the node is a single process
	meter       *operate.Meter
	state       *operate.Health
	feed        *feed.Feed
	web         *web.Web
	api         *httpapi.API
	ucp         *ucpapi.API
	contact     *contact.Contact
	attention   *attention.Attention
	meeting     *meeting.Meeting
	reputation  *reputation.Reputation
	webhooks    *webhook.Sender
	accounts    *account.Accounts
	archive     *archive.Archive
	catalog     *catalog.Catalog

	listener, operatorListener net.Listener
	lmtp                       net.Listener // nil when no answers to mail are taken
	handler                    http.Handler
	draining                   atomic.Bool
	pulse                      pulse
}

// New builds a node: it opens the database (making and migrating it as needed),
// the keys and the listening sockets. The node serves nothing before Run. The
// caller closes the node when New succeeded and Run is not called.
func New(ctx context.Context, c Config, log *slog.Logger) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := &Node{config: c, log: log}
	if err := n.open(ctx); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) open(ctx context.Context) error {
	c := n.config
	var err error
	if n.db, n.keys, err = openStore(ctx, c, n.log, true); err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return fmt.Errorf("%w: listen: %w", ErrConfig, err)
	}
	if c.OperatorListen != "" {
		if n.operatorListener, err = net.Listen("tcp", c.OperatorListen); err != nil {
			return fmt.Errorf("%w: operator-listen: %w", ErrConfig, err)
		}
	}
	if c.LMTP != "" {
		if n.lmtp, err = listenLMTP(c.LMTP); err != nil {
			return err
		}
	}
	n.URL = "http://" + n.listener.Addr().String()
	n.Base = c.base(n.listener.Addr().String())
	if err := claimBase(ctx, n.db, n.Base); err != nil {
		return err
	}
	n.rooms()
	n.metrics = newMetrics(n.db, c.Version, n.feed.Hub)
	return n.wire(ctx)
}

// openStore opens the database, to serve it or next to the process that does, and the
// keys that are sealed in it.
func openStore(ctx context.Context, c Config, log *slog.Logger, serve bool) (*storage.DB, *credential.Keyring, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, nil, fmt.Errorf("%w: data: %w", ErrConfig, err)
	}
	if _, err := key.LoadMaster(c.masterKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	db, err := storage.Open(ctx, storage.Config{Path: c.sqlite(), URL: c.Database, Log: log, Serve: serve})
	if errors.Is(err, storage.ErrServed) {
		return nil, nil, fmt.Errorf("%w: a node runs on the data directory %s already: stop it, or give this one another with --data; "+
			"several processes of one node need PostgreSQL (--database)", ErrConfig, c.Data)
	}
	if errors.Is(err, storage.ErrNewer) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	sealer, err := credential.MasterKey(ctx, db, c.masterKey())
	if errors.Is(err, credential.ErrNoMaster) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	keys, err := credential.OpenKeyring(ctx, db, sealer, c.newRSA)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, keys, nil
}

func (n *Node) rooms() {
	n.board = &board.Board{Base: n.Base}
	n.directory = directory.New(n.Base)
	n.moderation = newModeration(n.keys, n.board, n.config)
	n.feed = &feed.Feed{Base: n.Base, Hub: feed.NewHub(n.db, n.Base, n.log), Pulse: feed.NewPulse(n.db, n.log)}
	n.feed.Hub.Max = cmp.Or(n.config.MaxStreams, feed.MaxStreams)
	n.contact = &contact.Contact{Base: n.Base, Private: n.config.AllowPrivatePeers || n.config.Dev, DB: n.db}
	n.meeting = &meeting.Meeting{Base: n.Base, Private: n.config.AllowPrivatePeers || n.config.Dev, DB: n.db, Mail: n.meetingMail, PerHour: n.config.MeetingMails}
	n.attention = &attention.Attention{Base: n.Base, Private: n.config.AllowPrivatePeers || n.config.Dev, Sandbox: n.config.Dev || n.config.PaySandbox,
		DB: n.db, Seal: n.keys}
	n.reputation = &reputation.Reputation{Base: n.Base, Key: n.keys.Ed, DB: n.db, Log: n.log, Trusted: n.config.ReceiptNodes, Author: n.directory.Author,
		Every: time.Minute, Pace: 30 * time.Second, Pauses: reputation.Pauses}
	n.reputation.Floors, _ = reputation.ParseFloors(n.config.ReviewFloor) // Validate has parsed them
	if n.config.Dev {
		n.reputation.Every, n.reputation.Pace = time.Second, 0
	}
	n.accounts = &account.Accounts{Base: n.Base, Name: n.config.name(strings.TrimPrefix(strings.TrimPrefix(n.Base, "https://"), "http://")), DB: n.db,
		Private: n.config.AllowPrivatePeers || n.config.Dev, Seal: n.keys.SealAgent}
	n.agents = credential.NewAgents(n.db, n.directory)
	n.board.Sign = (&credential.Signer{Keys: n.keys}).Sign
}

// wire connects the parts: gate, hall, doors, worker, federation.
func (n *Node) wire(ctx context.Context) error {
	c := n.config
	base, err := url.Parse(n.Base)
	if err != nil {
		return err
	}
	client := outbound.New(outboundOptions(c, n.Base))
	if err := n.openChain(ctx); err != nil {
		return err
	}
	n.reputation.Client = client
	if n.chain != nil {
		n.reputation.Chain, n.directory.Reputation = n.chain.Reader, n.reputation.Of
	}
	n.catalog = catalog.New(catalog.Catalog{DB: n.db, Spool: spool(c.Data), Changed: n.directory.CatalogChanged, Error: directory.CatalogError})
	n.archive = newArchive(c, n.db, n.keys, n.accounts, client, n.chain)
	n.webhooks = &webhook.Sender{Client: client, Key: n.keys.Ed, Base: n.Base, Private: c.AllowPrivatePeers || c.Dev, Form: webhook.Form(c.AgentForm)}
	n.contact.Webhook = n.webhooks
	n.accounts.Webhook = n.webhooks
	n.attention.Webhook, n.attention.Pay = n.webhooks, n.payProviders(client)
	if n.attention.LinkKey, err = n.keys.Random(ctx, credential.SecretBidLinks); err != nil {
		return err
	}
	n.accounts.Links = map[string]account.LinkFor{protocol.BidID: n.attention.LinkFor, protocol.MeetingID: n.meeting.LinkFor}
	n.meeting.Webhook, n.meeting.Seal, n.meeting.CalendarClient = n.webhooks, n.keys, outbound.New(calendarOptions(c, n.Base))
	if n.meeting.LinkKey, err = n.keys.Random(ctx, credential.SecretMeetingLinks); err != nil {
		return err
	}
	if err := n.signInWays(ctx); err != nil {
		return err
	}
	if n.accounts.Mail, err = n.mailer(ctx, base); err != nil {
		return err
	}
	if n.directories, err = credential.NewDirectories(n.db, client, n.log, c.Dev || c.AllowPrivatePeers); err != nil {
		return err
	}
	gate, proofs, err := n.gate(ctx, base)
	if err != nil {
		return err
	}
	n.table = hall.New(n.db, gate, hall.NewLimits(c.rates()))
	n.meter = &operate.Meter{DB: n.db, Log: n.log}
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
	n.bind(proofs)
	if err := n.table.Complete(protocol.Operations()); err != nil {
		return err
	}
	if n.federation, err = n.federate(base, client); err != nil {
		return err
	}
	if err := n.jobs(ctx); err != nil {
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

// openChain makes what reads the chain and keeps enrolments in step with it. A chain that does not
// answer now is no error: /readyz and the metrics report it.
func (n *Node) openChain(ctx context.Context) (err error) {
	c := n.config
	if n.chain, err = credential.NewChain(c.Chain, c.Dev, n.db, n.log); err != nil || n.chain == nil {
		return err
	}
	err = n.chain.Reader.Check(ctx)
	if wrong, ok := errors.AsType[*erc8004.SettingError](err); ok {
		return fmt.Errorf("%w: %w", ErrConfig, wrong)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n.metrics.registry.MustRegister(chainStates{n.chain.Reader})
	n.enrolments = credential.NewEnrolments(n.db, n.chain, n.log)
	n.agents.Chain, n.agents.Enrolled = n.chain, n.enrolments
	return nil
}

// jobs makes the worker, gives it the handler of each kind of job, and enqueues the first of those that repeat.
func (n *Node) jobs(ctx context.Context) error {
	n.worker = &worker.Worker{DB: n.db, Log: n.log, Owner: owner(), Observe: n.metrics.job}
	for kind, handle := range n.federation.Jobs() {
		n.worker.Handle(kind, worker.Handler(handle))
	}
	n.worker.Handle(storage.NoticeJob, n.accounts.Notice)
	n.worker.Handle(storage.MailJob, n.accounts.SendMail)
	n.worker.Handle(storage.WebhookJob, n.accounts.SendWebhook)
	n.worker.Handle(storage.SignInJob, n.accounts.SendLink)
	n.worker.Handle(storage.ConfirmJob, n.accounts.SendConfirmation)
	n.worker.Handle(storage.AddressJob, n.accounts.SendAddressCode)
	n.worker.Handle(storage.FormerJob, n.accounts.NotifyFormer)
	n.worker.Handle(storage.SecurityJob, n.accounts.SendSecurity)
	n.worker.Handle(storage.SilenceJob, n.contact.Silence)
	n.worker.Handle(storage.CallbackJob, n.contact.Deliver)
	for kind, handle := range map[storage.JobKind]worker.Handler{
		storage.BidDueJob: n.attention.Due, storage.BidLinkJob: n.attention.Link, storage.BidCancelJob: n.attention.Cancel,
		storage.BidPollJob: n.attention.Poll, storage.PayEventJob: n.attention.Event, storage.RefundJob: n.attention.Refund,
		storage.BidUpdateJob: n.attention.Update, storage.MeetingDueJob: n.meeting.Due, storage.MeetingMailJob: n.meeting.SendMail,
		storage.MeetingUpdateJob: n.meeting.Update, storage.CalendarCheckJob: n.meeting.Check, storage.CalendarBusyJob: n.meeting.ReadBusy,
		storage.CalendarEventJob: n.meeting.WriteEvent, storage.MeetingRemindJob: n.meeting.Remind,
	} {
		n.worker.Handle(kind, handle)
	}
	n.worker.Handle(storage.FeedbackJob, n.reputation.Index)
	n.worker.Handle(storage.FeedbackCheckJob, n.reputation.Checks)
	n.worker.Handle(storage.ImportJob, n.archive.Resume)
	keep := operate.Upkeep{DB: n.db}
	n.worker.Handle(storage.PruneJob, keep.Prune)
	n.worker.Handle(storage.ScrubJob, keep.Scrub)
	n.worker.Handle(storage.HoursJob, keep.Hours)
	n.worker.Handle(storage.AdoptJob, keep.Adopt)
	n.worker.Handle(storage.DropJob, keep.DropThreads)
	n.worker.Handle(storage.ShopWordsJob, keep.ShopWords)
	n.worker.Handle(storage.DropItemsJob, keep.DropItems)
	peers := operate.FollowJobs{Follow: n.Follow, Unfollow: n.federation.Unfollow, Log: n.log}
	n.worker.Handle(storage.FollowJob, peers.Job)
	n.worker.Handle(storage.UnfollowJob, peers.EndJob)
	if err := n.liveness(ctx); err != nil {
		return err
	}
	if err := n.worker.Complete(storage.JobKinds()); err != nil {
		return err
	}
	return n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
		return errors.Join(keep.Enqueue(ctx, tx), n.reputation.Enqueue(ctx, tx))
	})
}

func outboundOptions(c Config, base string) outbound.Options {
	return outbound.Options{AllowPrivate: c.AllowPrivatePeers || c.Dev, UserAgent: "stoa/" + c.Version + " (+" + base + ")"}
}

// calendarOptions are those of the client for calendar servers, whose addresses owners write.
func calendarOptions(c Config, base string) outbound.Options {
	o := outboundOptions(c, base)
	o.Timeout, o.MaxBody = calendar.Timeout, calendar.MaxBody
	return o
}

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
		AllowLoopback: n.config.Dev || n.config.AllowPrivatePeers,
	}
	if n.chain != nil {
		gate.Chain = n.chain
	}
	return gate, proofs, nil
}

// bind binds every declared operation to the room that runs it.
func (n *Node) bind(proofs *proof.Issuer) {
	t := n.table
	about := &site.Site{Base: n.Base, Files: siteFiles(), Census: n.agents.Census}

	// board
	hall.Bind(t, protocol.PostToBoard, n.board.Post)
	hall.Ahead(t, protocol.PostToBoard, n.board.Ahead)
	hall.Bind(t, protocol.ReadBoard, n.board.Read)
	hall.Bind(t, protocol.GetBoardPost, n.board.Get)
	hall.Bind(t, protocol.DeletePost, n.board.Delete)
	hall.Bind(t, protocol.ListOwnPosts, n.board.ListOwn)
	hall.Bind(t, protocol.DeleteOwnPost, n.board.DeleteOwn)

	// moderation
	hall.Bind(t, protocol.ReportPost, n.moderation.Report)
	hall.Ahead(t, protocol.ReportPost, n.moderation.Ahead)
	bindOperators(t, n.moderation, n.accounts)
	n.state = operate.NewHealth(n.db, n.config.Version, n.mailState(), n.chain.Health)
	hall.Bind(t, protocol.ReadHealth, n.state.Read)
	hall.Bind(t, protocol.ReadTraffic, operate.Traffic)

	// contact
	hall.Bind(t, protocol.ContactAgent, n.contact.Begin)
	hall.Ahead(t, protocol.ContactAgent, n.contact.Ahead)
	hall.Bind(t, protocol.CheckConversation, n.contact.Check)
	hall.Bind(t, protocol.ContinueConversation, n.contact.Continue)
	hall.Bind(t, protocol.ListThreads, n.contact.List)
	hall.Bind(t, protocol.GetThread, n.contact.Get)
	hall.Bind(t, protocol.AnswerThread, n.contact.Answer)
	hall.Bind(t, protocol.MarkThreadRead, n.contact.Read)
	hall.Bind(t, protocol.CloseThread, n.contact.Close)
	hall.Bind(t, protocol.BlockWriter, n.contact.Block)
	hall.Bind(t, protocol.UnblockWriter, n.contact.Unblock)
	hall.Bind(t, protocol.ListBlockedWriters, n.contact.ListBlocked)
	hall.Bind(t, protocol.ListCallbacks, n.contact.ListCallbacks)
	hall.Bind(t, protocol.ReplayCallback, n.contact.Replay)
	hall.Bind(t, protocol.SendExchange, n.contact.SendExchange)
	hall.Bind(t, protocol.GetExchange, n.contact.GetExchange)

	// order receipts and reviews
	hall.Bind(t, protocol.IssueOrderReceipt, n.reputation.Issue)
	hall.Bind(t, protocol.ListOrderReceipts, n.reputation.List)
	hall.Bind(t, protocol.RevokeOrderReceipt, n.reputation.Revoke)
	hall.Bind(t, protocol.AdjustOrder, n.reputation.Adjust)
	hall.Bind(t, protocol.HideReview, n.reputation.Hide)
	hall.Bind(t, protocol.RestoreReview, n.reputation.Restore)
	hall.Bind(t, protocol.ListHiddenReviews, n.reputation.ListHidden)
	hall.Bind(t, protocol.GetReceiptStatus, n.reputation.Status)
	hall.Bind(t, protocol.ListReviews, n.reputation.Reviews)

	// feed
	hall.Bind(t, protocol.ReadFeed, n.feed.Read)
	hall.Bind(t, protocol.StreamFeed, n.feed.Stream)
	hall.Bind(t, protocol.WhatsNew, n.feed.News)

	bindAttention(t, n.attention)
	bindMeetings(t, n.meeting)
	bindDirectory(t, n.directory)
	bindAccounts(t, n.accounts)
	hall.BindPlain(t, protocol.ConnectIdentity, credential.Enroller{DB: n.db, Chain: func() (*credential.Chain, error) {
		if n.chain == nil {
			return nil, protocol.Errorf(protocol.Conflict, "this node reads no blockchain, so it cannot check an identity")
		}
		return n.chain, nil
	}, Recent: n.accounts.Recent, Told: n.accounts.Connected, Status: n.directory.Identity}.Connect)

	// archive
	hall.BindPlain(t, protocol.ExportArchive, n.archive.Export)
	hall.BindFile(t, protocol.ImportArchive, n.archive.Import)
	hall.BindFile(t, protocol.ImportItems, n.catalog.Import)
	hall.BindPlain(t, protocol.ExportItems, n.catalog.Export)

	// site
	hall.BindPlain(t, protocol.AboutService, about.About)
	hall.BindPlain(t, protocol.GetSiteMap, about.Map)
	hall.BindPlain(t, protocol.GetCurrentPage, func(ctx context.Context, c protocol.Caller, in protocol.PageInput) (protocol.CurrentPage, error) {
		return n.web.Current(ctx, c, in)
	})
	hall.BindPlain(t, protocol.GetChallenge, func(_ context.Context, c protocol.Caller, in protocol.PowInput) (pow.Challenge, error) {
		return proofs.Issue(in.Purpose, c.Network), nil
	})
}

func bindDirectory(t *hall.Table, d *directory.Directory) {
	hall.Bind(t, protocol.GetAgentProfile, d.Get)
	hall.Bind(t, protocol.SearchAgents, d.Search)
	hall.Bind(t, protocol.SearchARD, d.SearchARD)
	hall.Bind(t, protocol.ExploreARD, d.ExploreARD)
	hall.Bind(t, protocol.ListPeople, d.People)
	hall.Bind(t, protocol.ListMerchants, d.Merchants)
	hall.Bind(t, protocol.GetMerchant, d.Merchant)
	hall.Bind(t, protocol.ListItems, d.Items)
	hall.Bind(t, protocol.ListOwnItems, d.OwnItems)
	hall.Bind(t, protocol.GetOwnItem, d.OwnItem)
	hall.Bind(t, protocol.PutItem, d.PutItem)
	hall.Bind(t, protocol.RemoveItem, d.RemoveItem)
	hall.Bind(t, protocol.PutItems, d.PutItems)
	hall.Bind(t, protocol.UCPItems, d.ItemsForUCP)
	hall.Bind(t, protocol.UCPLocations, d.LocationsForUCP)
	hall.Bind(t, protocol.GetMerchantRecord, d.Record)
	hall.Bind(t, protocol.PutMerchant, d.PutRecord)
	hall.Bind(t, protocol.GetOwnProfile, d.GetOwn)
	hall.Bind(t, protocol.GetTurnedAway, d.TurnedAway)
	hall.Bind(t, protocol.PutOwnProfile, d.PutOwn)
	hall.Bind(t, protocol.ListNeeds, d.Needs)
	hall.Bind(t, protocol.PutNeed, d.PutNeed)
	hall.Bind(t, protocol.DeleteNeed, d.DeleteNeed)
	hall.Bind(t, protocol.ListCapabilities, d.Capabilities)
	hall.Bind(t, protocol.PutCapability, d.PutCapability)
	hall.Bind(t, protocol.DeleteCapability, d.DeleteCapability)
	hall.Bind(t, protocol.GetIdentity, d.Identity)
	hall.Bind(t, protocol.DropIdentity, d.DropIdentity)
}

func bindAttention(t *hall.Table, a *attention.Attention) {
	hall.Bind(t, protocol.ReadBidLink, a.ReadLink)
	hall.Bind(t, protocol.UseBidLink, a.UseLink)
	hall.Bind(t, protocol.ListAttentionBoards, a.List)
	hall.Bind(t, protocol.ReadAttentionBoard, a.ReadBoard)
	hall.Bind(t, protocol.CheckBid, a.Check)
	hall.Bind(t, protocol.BidForAttention, a.Bid)
	hall.Ahead(t, protocol.BidForAttention, a.Ahead)
	hall.Bind(t, protocol.GetBid, a.Get)
	hall.Bind(t, protocol.WithdrawBid, a.Withdraw)
	hall.Bind(t, protocol.DisputePayment, a.Dispute)
	hall.Bind(t, protocol.TracePayment, a.Trace)
	hall.Bind(t, protocol.TraceOwnPayment, a.TraceOwn)
	hall.Bind(t, protocol.GetPayment, a.GetPayment)
	hall.Bind(t, protocol.ClaimPayment, a.Claim)
	hall.Bind(t, protocol.PressSandbox, a.Press)
	hall.Bind(t, protocol.ListBids, a.Bids)
	hall.Bind(t, protocol.GetOwnBid, a.GetBid)
	hall.Bind(t, protocol.AnswerBid, a.Answer)
	hall.Bind(t, protocol.ApproveBid, a.Approve)
	hall.Bind(t, protocol.RemoveBid, a.Remove)
	hall.Bind(t, protocol.ConfirmBidPayment, a.Confirm)
	hall.Bind(t, protocol.DenyBidPayment, a.Deny)
	hall.Bind(t, protocol.CloseAttentionBoard, a.Close)
	hall.Bind(t, protocol.ListPayments, a.Payments)
	hall.Bind(t, protocol.ListRefunds, a.Refunds)
	hall.Bind(t, protocol.MarkRefunded, a.MarkRefunded)
	hall.Bind(t, protocol.ExportPayments, a.Export)
	hall.Bind(t, protocol.GetOwnAttentionBoard, a.GetOwn)
	hall.Bind(t, protocol.PutAttentionBoard, a.PutOwn)
	hall.Bind(t, protocol.GetPaymentAccount, a.GetAccount)
	hall.Bind(t, protocol.PutPaymentAccount, a.PutAccount)
	hall.Bind(t, protocol.DeletePaymentAccount, a.DeleteAccount)
}

func bindMeetings(t *hall.Table, m *meeting.Meeting) {
	hall.Bind(t, protocol.GetMeetingInfo, m.Info)
	hall.Bind(t, protocol.GetMeetingSettings, m.GetSettings)
	hall.Bind(t, protocol.PutMeetingSettings, m.PutSettings)
	hall.Bind(t, protocol.RequestMeeting, m.Ask)
	hall.Ahead(t, protocol.RequestMeeting, m.Ahead)
	hall.Bind(t, protocol.GetMeeting, m.Get)
	hall.Bind(t, protocol.CancelMeeting, m.Cancel)
	hall.Bind(t, protocol.PickMeetingTime, m.Pick)
	hall.Bind(t, protocol.ReadMeetingLink, m.ReadLink)
	hall.Bind(t, protocol.UseMeetingLink, m.UseLink)
	hall.Bind(t, protocol.ReadDecisionLink, m.ReadDecisionLink)
	hall.Bind(t, protocol.UseDecisionLink, m.UseDecisionLink)
	hall.Bind(t, protocol.ListMeetings, m.List)
	hall.Bind(t, protocol.GetOwnMeeting, m.GetOwn)
	hall.Bind(t, protocol.ApproveMeeting, m.Approve)
	hall.Bind(t, protocol.DeclineMeeting, m.Decline)
	hall.Bind(t, protocol.ProposeMeetingTimes, m.Propose)
	hall.Bind(t, protocol.MoveMeeting, m.Move)
	hall.Bind(t, protocol.CancelOwnMeeting, m.CancelOwn)
	hall.Bind(t, protocol.MarkNoShow, m.NoShow)
	hall.Bind(t, protocol.ListCalendars, m.Calendars)
	hall.Bind(t, protocol.ConnectCalendar, m.ConnectCalendar)
	hall.Bind(t, protocol.GetCalendar, m.GetCalendar)
	hall.Bind(t, protocol.ChooseCalendars, m.ChooseCalendars)
	hall.Bind(t, protocol.CheckCalendar, m.CheckCalendar)
	hall.Bind(t, protocol.DisconnectCalendar, m.DisconnectCalendar)
	hall.Bind(t, protocol.MakeMeetingFeed, m.MakeFeed)
	hall.Bind(t, protocol.DeleteMeetingFeed, m.DeleteFeed)
	hall.Bind(t, protocol.GetMeetingICS, m.ICS)
}

func bindAccounts(t *hall.Table, a *account.Accounts) {
	hall.Bind(t, protocol.ServiceSession, a.Session)
	hall.Bind(t, protocol.GetAccount, a.Get)
	hall.Bind(t, protocol.PutAccount, a.Put)
	hall.Bind(t, protocol.GetAccountMail, a.GetMail)
	hall.Bind(t, protocol.PutAccountMail, a.PutMail)
	hall.Bind(t, protocol.ConfirmAccountMail, a.ConfirmAccountMail)
	hall.Bind(t, protocol.ListTokens, a.Tokens)
	hall.Bind(t, protocol.CreateToken, a.CreateToken)
	hall.Bind(t, protocol.RevokeToken, a.RevokeToken)
	hall.Bind(t, protocol.ListSessions, a.Sessions)
	hall.Bind(t, protocol.EndSession, a.EndSession)
	hall.Bind(t, protocol.EndOtherSessions, a.EndOtherSessions)
	hall.Bind(t, protocol.GetSignInMethods, a.Methods)
	hall.Bind(t, protocol.GetPasskeyOptions, a.PasskeyOptions)
	hall.Bind(t, protocol.AddPasskey, a.AddPasskey)
	hall.Bind(t, protocol.DeletePasskey, a.DeletePasskey)
	hall.Bind(t, protocol.MakeRecoveryCodes, a.MakeRecoveryCodes)
	hall.Bind(t, protocol.GetNotify, a.GetNotify)
	hall.Bind(t, protocol.PutNotify, a.PutNotify)
	hall.Bind(t, protocol.ConfirmMail, a.ConfirmMail)
	hall.Bind(t, protocol.ListKeys, a.Keys)
	hall.Bind(t, protocol.AddKey, a.AddKey)
	hall.Bind(t, protocol.MakeKey, a.MakeKey)
	hall.Bind(t, protocol.RetireKey, a.RetireKey)
}

// bindOperators binds the operator's operations, and the public moderation log.
func bindOperators(t *hall.Table, m *moderation.Moderation, accounts *account.Accounts) {
	hall.Bind(t, protocol.ListAccounts, accounts.List)
	hall.Bind(t, protocol.OpenAccount, accounts.OpenFor)
	hall.Bind(t, protocol.MakeSignInLink, accounts.LinkFor)
	hall.Bind(t, protocol.CloseAccount, accounts.Close)

	hall.Bind(t, protocol.ReadModerationLog, m.PublicLog)
	hall.Bind(t, protocol.ListReviewQueue, m.Queue)
	hall.Bind(t, protocol.HidePost, m.Hide)
	hall.Bind(t, protocol.RestorePost, m.Restore)
	hall.Bind(t, protocol.DismissReports, m.Dismiss)
	hall.Bind(t, protocol.ReopenReports, m.Reopen)
	hall.Bind(t, protocol.RemovePost, m.Remove)
	hall.Bind(t, protocol.AddNote, m.AddNote)
	hall.Bind(t, protocol.ListNotes, m.Notes)
	hall.Bind(t, protocol.DeleteNote, m.DeleteNote)
	hall.Bind(t, protocol.AddBlock, m.AddBlock)
	hall.Bind(t, protocol.ListBlocks, m.Blocks)
	hall.Bind(t, protocol.LiftBlock, m.LiftBlock)
	hall.Bind(t, protocol.ReadLimits, m.Limits)
	hall.Bind(t, protocol.SetLimits, m.SetLimits)
	hall.Bind(t, protocol.ResetLimits, m.ResetLimits)
	hall.Bind(t, protocol.ReadAudit, m.Audit)
	hall.Bind(t, protocol.ReadStatistics, m.Statistics)
	hall.Bind(t, protocol.ListPeers, m.Peers)
	hall.Bind(t, protocol.SetPeerPolicy, m.SetPolicy)
	hall.Bind(t, protocol.FollowPeer, operate.Follow)
	hall.Bind(t, protocol.UnfollowPeer, operate.Unfollow)
	hall.Bind(t, protocol.RetryPeer, operate.Peers{Base: m.Base}.Retry)
	hall.Bind(t, protocol.ListJobs, operate.Jobs)
	hall.Bind(t, protocol.RequeueJob, operate.Requeue)
	hall.Bind(t, protocol.DropJob, operate.Drop)
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
		Receiver: receiver{n.board, n.moderation}, Software: "stoa", Version: n.config.Version,
		AllowPrivate: n.config.AllowPrivatePeers || n.config.Dev, Log: n.log, Observe: n.federated,
		Network: n.front.network, Return: n.front.handBack,
	}
	if n.chain != nil {
		c.Authority = n.chain
	}
	return federation.New(c)
}

// federated counts an event of the federation.
func (n *Node) federated(event, host string, err error) {
	n.metrics.federated(event, host, err)
	if event == "delivery" {
		n.meter.Delivery(err)
	}
}

// observe writes the log line of a request and adds its sample to the metrics.
func (n *Node) observe(o hall.Observation) {
	n.metrics.operation(o)
	n.meter.Operation(o)
	if o.Err == nil {
		n.sightings.Record(o.Caller, protocol.Lookup(o.Op))
	}
	level, code := slog.LevelDebug, protocol.CodeOf(o.Err)
	switch {
	case code == protocol.Internal:
		level = slog.LevelError
	case o.Err == nil && protocol.Lookup(o.Op) != nil && !protocol.Lookup(o.Op).ReadOnly:
		level = slog.LevelInfo
	}
	if !n.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []any{"rid", o.ID, "op", o.Op, "door", o.Door, "caller", o.Caller.Standing.String(), "dur", o.Duration}
	if o.Caller.Handle != "" {
		attrs = append(attrs, "handle", o.Caller.Handle)
	}
	if o.Err != nil {
		attrs = append(attrs, "code", code, "err", cause(o.Err))
	}
	n.log.Log(context.Background(), level, "operation", attrs...)
}

func cause(err error) error {
	if e := protocol.AsError(err); e.Code == protocol.Internal && e.Err != nil {
		return e.Err
	}
	return err
}

// Handler is the public handler of the node, for tests that need no socket.
func (n *Node) Handler() http.Handler { return n.handler }

// Operate runs one operation as the operator, in this process.
func (n *Node) Operate(ctx context.Context, op string, args []byte) error {
	_, err := n.table.Invoke(ctx, hall.Request{Op: op, Args: args, Door: "operator", Evidence: identity.Evidence{Operator: true}})
	return err
}

func trusted(c Config) []netip.Prefix {
	var nets []netip.Prefix
	for _, s := range c.TrustedProxies {
		if p, err := netip.ParsePrefix(s); err == nil {
			nets = append(nets, p)
		}
	}
	return nets
}
