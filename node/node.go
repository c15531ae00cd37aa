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
	"stoa/node/account"
	"stoa/node/archive"
	"stoa/node/attention"
	"stoa/node/board"
	"stoa/node/catalog"
	"stoa/node/contact"
	"stoa/node/credential"
	"stoa/node/directory"
	"stoa/node/dispatch"
	"stoa/node/feed"
	"stoa/node/httpapi"
	"stoa/node/liveness"
	"stoa/node/mcpapi"
	"stoa/node/meeting"
	"stoa/node/moderation"
	"stoa/node/operate"
	"stoa/node/outbound"
	"stoa/node/provider/calendar"
	"stoa/node/reputation"
	"stoa/node/site"
	"stoa/node/ucpapi"
	"stoa/node/web"
	"stoa/node/webhook"
	"stoa/node/worker"
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
	table       *dispatch.Table
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
	n.table = dispatch.New(n.db, gate, dispatch.NewLimits(c.rates()))
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
	dispatch.Bind(t, protocol.PostToBoard, n.board.Post)
	dispatch.Ahead(t, protocol.PostToBoard, n.board.Ahead)
	dispatch.Bind(t, protocol.ReadBoard, n.board.Read)
	dispatch.Bind(t, protocol.GetBoardPost, n.board.Get)
	dispatch.Bind(t, protocol.DeletePost, n.board.Delete)
	dispatch.Bind(t, protocol.ListOwnPosts, n.board.ListOwn)
	dispatch.Bind(t, protocol.DeleteOwnPost, n.board.DeleteOwn)

	// moderation
	dispatch.Bind(t, protocol.ReportPost, n.moderation.Report)
	dispatch.Ahead(t, protocol.ReportPost, n.moderation.Ahead)
	bindOperators(t, n.moderation, n.accounts)
	n.state = operate.NewHealth(n.db, n.config.Version, n.mailState(), n.chain.Health)
	dispatch.Bind(t, protocol.ReadHealth, n.state.Read)
	dispatch.Bind(t, protocol.ReadTraffic, operate.Traffic)

	// contact
	dispatch.Bind(t, protocol.ContactAgent, n.contact.Begin)
	dispatch.Ahead(t, protocol.ContactAgent, n.contact.Ahead)
	dispatch.Bind(t, protocol.CheckConversation, n.contact.Check)
	dispatch.Bind(t, protocol.ContinueConversation, n.contact.Continue)
	dispatch.Bind(t, protocol.ListThreads, n.contact.List)
	dispatch.Bind(t, protocol.GetThread, n.contact.Get)
	dispatch.Bind(t, protocol.AnswerThread, n.contact.Answer)
	dispatch.Bind(t, protocol.MarkThreadRead, n.contact.Read)
	dispatch.Bind(t, protocol.CloseThread, n.contact.Close)
	dispatch.Bind(t, protocol.BlockWriter, n.contact.Block)
	dispatch.Bind(t, protocol.UnblockWriter, n.contact.Unblock)
	dispatch.Bind(t, protocol.ListBlockedWriters, n.contact.ListBlocked)
	dispatch.Bind(t, protocol.ListCallbacks, n.contact.ListCallbacks)
	dispatch.Bind(t, protocol.ReplayCallback, n.contact.Replay)
	dispatch.Bind(t, protocol.SendExchange, n.contact.SendExchange)
	dispatch.Bind(t, protocol.GetExchange, n.contact.GetExchange)

	// order receipts and reviews
	dispatch.Bind(t, protocol.IssueOrderReceipt, n.reputation.Issue)
	dispatch.Bind(t, protocol.ListOrderReceipts, n.reputation.List)
	dispatch.Bind(t, protocol.RevokeOrderReceipt, n.reputation.Revoke)
	dispatch.Bind(t, protocol.AdjustOrder, n.reputation.Adjust)
	dispatch.Bind(t, protocol.HideReview, n.reputation.Hide)
	dispatch.Bind(t, protocol.RestoreReview, n.reputation.Restore)
	dispatch.Bind(t, protocol.ListHiddenReviews, n.reputation.ListHidden)
	dispatch.Bind(t, protocol.GetReceiptStatus, n.reputation.Status)
	dispatch.Bind(t, protocol.ListReviews, n.reputation.Reviews)

	// feed
	dispatch.Bind(t, protocol.ReadFeed, n.feed.Read)
	dispatch.Bind(t, protocol.StreamFeed, n.feed.Stream)
	dispatch.Bind(t, protocol.WhatsNew, n.feed.News)

	bindAttention(t, n.attention)
	bindMeetings(t, n.meeting)
	bindDirectory(t, n.directory)
	bindAccounts(t, n.accounts)
	dispatch.BindPlain(t, protocol.ConnectIdentity, credential.Enroller{DB: n.db, Chain: func() (*credential.Chain, error) {
		if n.chain == nil {
			return nil, protocol.Errorf(protocol.Conflict, "this node reads no blockchain, so it cannot check an identity")
		}
		return n.chain, nil
	}, Recent: n.accounts.Recent, Told: n.accounts.Connected, Status: n.directory.Identity}.Connect)

	// archive
	dispatch.BindPlain(t, protocol.ExportArchive, n.archive.Export)
	dispatch.BindFile(t, protocol.ImportArchive, n.archive.Import)
	dispatch.BindFile(t, protocol.ImportItems, n.catalog.Import)
	dispatch.BindPlain(t, protocol.ExportItems, n.catalog.Export)

	// site
	dispatch.BindPlain(t, protocol.AboutService, about.About)
	dispatch.BindPlain(t, protocol.GetSiteMap, about.Map)
	dispatch.BindPlain(t, protocol.GetCurrentPage, func(ctx context.Context, c protocol.Caller, in protocol.PageInput) (protocol.CurrentPage, error) {
		return n.web.Current(ctx, c, in)
	})
	dispatch.BindPlain(t, protocol.GetChallenge, func(_ context.Context, c protocol.Caller, in protocol.PowInput) (pow.Challenge, error) {
		return proofs.Issue(in.Purpose, c.Network), nil
	})
}

func bindDirectory(t *dispatch.Table, d *directory.Directory) {
	dispatch.Bind(t, protocol.GetAgentProfile, d.Get)
	dispatch.Bind(t, protocol.SearchAgents, d.Search)
	dispatch.Bind(t, protocol.SearchARD, d.SearchARD)
	dispatch.Bind(t, protocol.ExploreARD, d.ExploreARD)
	dispatch.Bind(t, protocol.ListPeople, d.People)
	dispatch.Bind(t, protocol.ListMerchants, d.Merchants)
	dispatch.Bind(t, protocol.GetMerchant, d.Merchant)
	dispatch.Bind(t, protocol.ListItems, d.Items)
	dispatch.Bind(t, protocol.ListOwnItems, d.OwnItems)
	dispatch.Bind(t, protocol.GetOwnItem, d.OwnItem)
	dispatch.Bind(t, protocol.PutItem, d.PutItem)
	dispatch.Bind(t, protocol.RemoveItem, d.RemoveItem)
	dispatch.Bind(t, protocol.PutItems, d.PutItems)
	dispatch.Bind(t, protocol.UCPItems, d.ItemsForUCP)
	dispatch.Bind(t, protocol.UCPLocations, d.LocationsForUCP)
	dispatch.Bind(t, protocol.GetMerchantRecord, d.Record)
	dispatch.Bind(t, protocol.PutMerchant, d.PutRecord)
	dispatch.Bind(t, protocol.GetOwnProfile, d.GetOwn)
	dispatch.Bind(t, protocol.GetTurnedAway, d.TurnedAway)
	dispatch.Bind(t, protocol.PutOwnProfile, d.PutOwn)
	dispatch.Bind(t, protocol.ListNeeds, d.Needs)
	dispatch.Bind(t, protocol.PutNeed, d.PutNeed)
	dispatch.Bind(t, protocol.DeleteNeed, d.DeleteNeed)
	dispatch.Bind(t, protocol.ListCapabilities, d.Capabilities)
	dispatch.Bind(t, protocol.PutCapability, d.PutCapability)
	dispatch.Bind(t, protocol.DeleteCapability, d.DeleteCapability)
	dispatch.Bind(t, protocol.GetIdentity, d.Identity)
	dispatch.Bind(t, protocol.DropIdentity, d.DropIdentity)
}

func bindAttention(t *dispatch.Table, a *attention.Attention) {
	dispatch.Bind(t, protocol.ReadBidLink, a.ReadLink)
	dispatch.Bind(t, protocol.UseBidLink, a.UseLink)
	dispatch.Bind(t, protocol.ListAttentionBoards, a.List)
	dispatch.Bind(t, protocol.ReadAttentionBoard, a.ReadBoard)
	dispatch.Bind(t, protocol.CheckBid, a.Check)
	dispatch.Bind(t, protocol.BidForAttention, a.Bid)
	dispatch.Ahead(t, protocol.BidForAttention, a.Ahead)
	dispatch.Bind(t, protocol.GetBid, a.Get)
	dispatch.Bind(t, protocol.WithdrawBid, a.Withdraw)
	dispatch.Bind(t, protocol.DisputePayment, a.Dispute)
	dispatch.Bind(t, protocol.TracePayment, a.Trace)
	dispatch.Bind(t, protocol.TraceOwnPayment, a.TraceOwn)
	dispatch.Bind(t, protocol.GetPayment, a.GetPayment)
	dispatch.Bind(t, protocol.ClaimPayment, a.Claim)
	dispatch.Bind(t, protocol.PressSandbox, a.Press)
	dispatch.Bind(t, protocol.ListBids, a.Bids)
	dispatch.Bind(t, protocol.GetOwnBid, a.GetBid)
	dispatch.Bind(t, protocol.AnswerBid, a.Answer)
	dispatch.Bind(t, protocol.ApproveBid, a.Approve)
	dispatch.Bind(t, protocol.RemoveBid, a.Remove)
	dispatch.Bind(t, protocol.ConfirmBidPayment, a.Confirm)
	dispatch.Bind(t, protocol.DenyBidPayment, a.Deny)
	dispatch.Bind(t, protocol.CloseAttentionBoard, a.Close)
	dispatch.Bind(t, protocol.ListPayments, a.Payments)
	dispatch.Bind(t, protocol.ListRefunds, a.Refunds)
	dispatch.Bind(t, protocol.MarkRefunded, a.MarkRefunded)
	dispatch.Bind(t, protocol.ExportPayments, a.Export)
	dispatch.Bind(t, protocol.GetOwnAttentionBoard, a.GetOwn)
	dispatch.Bind(t, protocol.PutAttentionBoard, a.PutOwn)
	dispatch.Bind(t, protocol.GetPaymentAccount, a.GetAccount)
	dispatch.Bind(t, protocol.PutPaymentAccount, a.PutAccount)
	dispatch.Bind(t, protocol.DeletePaymentAccount, a.DeleteAccount)
}

func bindMeetings(t *dispatch.Table, m *meeting.Meeting) {
	dispatch.Bind(t, protocol.GetMeetingInfo, m.Info)
	dispatch.Bind(t, protocol.GetMeetingSettings, m.GetSettings)
	dispatch.Bind(t, protocol.PutMeetingSettings, m.PutSettings)
	dispatch.Bind(t, protocol.RequestMeeting, m.Ask)
	dispatch.Ahead(t, protocol.RequestMeeting, m.Ahead)
	dispatch.Bind(t, protocol.GetMeeting, m.Get)
	dispatch.Bind(t, protocol.CancelMeeting, m.Cancel)
	dispatch.Bind(t, protocol.PickMeetingTime, m.Pick)
	dispatch.Bind(t, protocol.ReadMeetingLink, m.ReadLink)
	dispatch.Bind(t, protocol.UseMeetingLink, m.UseLink)
	dispatch.Bind(t, protocol.ReadDecisionLink, m.ReadDecisionLink)
	dispatch.Bind(t, protocol.UseDecisionLink, m.UseDecisionLink)
	dispatch.Bind(t, protocol.ListMeetings, m.List)
	dispatch.Bind(t, protocol.GetOwnMeeting, m.GetOwn)
	dispatch.Bind(t, protocol.ApproveMeeting, m.Approve)
	dispatch.Bind(t, protocol.DeclineMeeting, m.Decline)
	dispatch.Bind(t, protocol.ProposeMeetingTimes, m.Propose)
	dispatch.Bind(t, protocol.MoveMeeting, m.Move)
	dispatch.Bind(t, protocol.CancelOwnMeeting, m.CancelOwn)
	dispatch.Bind(t, protocol.MarkNoShow, m.NoShow)
	dispatch.Bind(t, protocol.ListCalendars, m.Calendars)
	dispatch.Bind(t, protocol.ConnectCalendar, m.ConnectCalendar)
	dispatch.Bind(t, protocol.GetCalendar, m.GetCalendar)
	dispatch.Bind(t, protocol.ChooseCalendars, m.ChooseCalendars)
	dispatch.Bind(t, protocol.CheckCalendar, m.CheckCalendar)
	dispatch.Bind(t, protocol.DisconnectCalendar, m.DisconnectCalendar)
	dispatch.Bind(t, protocol.MakeMeetingFeed, m.MakeFeed)
	dispatch.Bind(t, protocol.DeleteMeetingFeed, m.DeleteFeed)
	dispatch.Bind(t, protocol.GetMeetingICS, m.ICS)
}

func bindAccounts(t *dispatch.Table, a *account.Accounts) {
	dispatch.Bind(t, protocol.ServiceSession, a.Session)
	dispatch.Bind(t, protocol.GetAccount, a.Get)
	dispatch.Bind(t, protocol.PutAccount, a.Put)
	dispatch.Bind(t, protocol.GetAccountMail, a.GetMail)
	dispatch.Bind(t, protocol.PutAccountMail, a.PutMail)
	dispatch.Bind(t, protocol.ConfirmAccountMail, a.ConfirmAccountMail)
	dispatch.Bind(t, protocol.ListTokens, a.Tokens)
	dispatch.Bind(t, protocol.CreateToken, a.CreateToken)
	dispatch.Bind(t, protocol.RevokeToken, a.RevokeToken)
	dispatch.Bind(t, protocol.ListSessions, a.Sessions)
	dispatch.Bind(t, protocol.EndSession, a.EndSession)
	dispatch.Bind(t, protocol.EndOtherSessions, a.EndOtherSessions)
	dispatch.Bind(t, protocol.GetSignInMethods, a.Methods)
	dispatch.Bind(t, protocol.GetPasskeyOptions, a.PasskeyOptions)
	dispatch.Bind(t, protocol.AddPasskey, a.AddPasskey)
	dispatch.Bind(t, protocol.DeletePasskey, a.DeletePasskey)
	dispatch.Bind(t, protocol.MakeRecoveryCodes, a.MakeRecoveryCodes)
	dispatch.Bind(t, protocol.GetNotify, a.GetNotify)
	dispatch.Bind(t, protocol.PutNotify, a.PutNotify)
	dispatch.Bind(t, protocol.ConfirmMail, a.ConfirmMail)
	dispatch.Bind(t, protocol.ListKeys, a.Keys)
	dispatch.Bind(t, protocol.AddKey, a.AddKey)
	dispatch.Bind(t, protocol.MakeKey, a.MakeKey)
	dispatch.Bind(t, protocol.RetireKey, a.RetireKey)
}

// bindOperators binds the operator's operations, and the public moderation log.
func bindOperators(t *dispatch.Table, m *moderation.Moderation, accounts *account.Accounts) {
	dispatch.Bind(t, protocol.ListAccounts, accounts.List)
	dispatch.Bind(t, protocol.OpenAccount, accounts.OpenFor)
	dispatch.Bind(t, protocol.MakeSignInLink, accounts.LinkFor)
	dispatch.Bind(t, protocol.CloseAccount, accounts.Close)

	dispatch.Bind(t, protocol.ReadModerationLog, m.PublicLog)
	dispatch.Bind(t, protocol.ListReviewQueue, m.Queue)
	dispatch.Bind(t, protocol.HidePost, m.Hide)
	dispatch.Bind(t, protocol.RestorePost, m.Restore)
	dispatch.Bind(t, protocol.DismissReports, m.Dismiss)
	dispatch.Bind(t, protocol.ReopenReports, m.Reopen)
	dispatch.Bind(t, protocol.RemovePost, m.Remove)
	dispatch.Bind(t, protocol.AddNote, m.AddNote)
	dispatch.Bind(t, protocol.ListNotes, m.Notes)
	dispatch.Bind(t, protocol.DeleteNote, m.DeleteNote)
	dispatch.Bind(t, protocol.AddBlock, m.AddBlock)
	dispatch.Bind(t, protocol.ListBlocks, m.Blocks)
	dispatch.Bind(t, protocol.LiftBlock, m.LiftBlock)
	dispatch.Bind(t, protocol.ReadLimits, m.Limits)
	dispatch.Bind(t, protocol.SetLimits, m.SetLimits)
	dispatch.Bind(t, protocol.ResetLimits, m.ResetLimits)
	dispatch.Bind(t, protocol.ReadAudit, m.Audit)
	dispatch.Bind(t, protocol.ReadStatistics, m.Statistics)
	dispatch.Bind(t, protocol.ListPeers, m.Peers)
	dispatch.Bind(t, protocol.SetPeerPolicy, m.SetPolicy)
	dispatch.Bind(t, protocol.FollowPeer, operate.Follow)
	dispatch.Bind(t, protocol.UnfollowPeer, operate.Unfollow)
	dispatch.Bind(t, protocol.RetryPeer, operate.Peers{Base: m.Base}.Retry)
	dispatch.Bind(t, protocol.ListJobs, operate.Jobs)
	dispatch.Bind(t, protocol.RequeueJob, operate.Requeue)
	dispatch.Bind(t, protocol.DropJob, operate.Drop)
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
func (n *Node) observe(o dispatch.Observation) {
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
	_, err := n.table.Invoke(ctx, dispatch.Request{Op: op, Args: args, Door: "operator", Evidence: identity.Evidence{Operator: true}})
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
