package node

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stoa/identity/erc8004"
	"stoa/identity/key"
	"stoa/identity/sshsig"
	"stoa/node/hall"
	"stoa/node/out/signed"
	"stoa/node/room/complaint"
	"stoa/protocol"
	"stoa/protocol/netx"
	"stoa/storage"
)

// A Config is the configuration of one node. Each field is a flag, an environment
// variable and a key of the configuration file; its tags are the reference.
// The zero value of every field is safe, and no setting is needed to start.
type Config struct {
	Listen            string   `default:"127.0.0.1:8080" env:"STOA_LISTEN" placeholder:"ADDR" help:"Address to serve on; :443 with domain or tls-cert, unless it is set."`
	Domains           []string `name:"domain" env:"STOA_DOMAIN" placeholder:"NAME" help:"Name of the node, such as stoa.example: it serves HTTPS by itself, gets and renews the certificate (acme-directory), and its public address is https:// and the first name. Ports 443 and 80 must reach it. Repeatable; separated by commas in the environment."`
	TLSCert           string   `name:"tls-cert" env:"STOA_TLS_CERT" placeholder:"FILE" help:"PEM file of a certificate with its chain, to serve HTTPS with. Read again when it changes."`
	TLSKey            string   `name:"tls-key" env:"STOA_TLS_KEY" placeholder:"FILE" help:"PEM file of its key."`
	HTTPListen        string   `name:"http-listen" default:":80" env:"STOA_HTTP_LISTEN" placeholder:"ADDR" help:"With domain or tls-cert, where readers without TLS are led to the public address. Empty: not served."`
	ACMEDirectory     string   `name:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" env:"STOA_ACME_DIRECTORY" placeholder:"URL" help:"Authority that certifies domain, by ACME. Its terms of service are accepted."`
	ACMEContact       string   `name:"acme-contact" env:"STOA_ACME_CONTACT" placeholder:"ADDRESS" help:"Mail address for its notices. Default: that of contact."`
	ACMERoots         string   `name:"acme-roots" env:"STOA_ACME_ROOTS" placeholder:"FILE" help:"PEM file of the roots of an authority of your own, which may be on a private address."`
	BaseURL           string   `name:"base-url" env:"STOA_BASE_URL" placeholder:"URL" help:"Public address of the node, such as https://stoa.example. Default: http:// and the listening address."`
	Data              string   `default:"./data" env:"STOA_DATA" placeholder:"DIR" help:"Data directory: the SQLite database and the master key."`
	Database          string   `env:"STOA_DATABASE" placeholder:"URL" help:"postgres:// URL. Default: SQLite in the data directory."`
	Replicas          []string `name:"database-replica" env:"STOA_DATABASE_REPLICA" sep:";" placeholder:"URL" help:"postgres:// URL of a standby of database that reads may go to. A read finds all that was answered before it, or goes to database. Repeatable; separated by ; in the environment."`
	MasterKey         string   `env:"STOA_MASTER_KEY" placeholder:"FILE" help:"File of the key that seals all secrets in the database; several processes on one database share it. Default: master.key in the data directory."`
	PartsAfter        int      `name:"parts-after" env:"STOA_PARTS_AFTER" placeholder:"MONTHS" help:"After how many months what is long of a post (text, evidence) moves from the database into a file of its month, where it is read as before; a search then finds the post by its title and tags. 0: never."`
	PartsDir          string   `name:"parts-dir" env:"STOA_PARTS_DIR" placeholder:"DIR" help:"Directory of these files, the same for all processes of the node. Default: parts in the data directory."`
	NoMigrationCopy   bool     `name:"no-migration-copy" env:"STOA_NO_MIGRATION_COPY" help:"Do not copy the SQLite database, beside it, before a new version changes its tables."`
	OperatorListen    string   `default:"127.0.0.1:8081" env:"STOA_OPERATOR_LISTEN" placeholder:"ADDR" help:"Address for the operator alone: metrics and profiles. Empty: not served."`
	OperatorHosts     []string `name:"operator-hosts" env:"STOA_OPERATOR_HOSTS" placeholder:"HOST" help:"Names, in addition to those of loopback and IP addresses, under which the operator's address answers. Repeatable; separated by commas in the environment."`
	Chain             []string `env:"STOA_CHAIN" sep:";" placeholder:"ID=RPC,REGISTRY" help:"A chain to check identities on: chainId=rpcURL[|rpcURL],identityRegistry[,reputationRegistry][,finality][,quorum:<n>], finality being finalized, safe or depth:<blocks>, and the quorum how many endpoints must agree. Repeatable; separated by ; in the environment."`
	A2ACallers        string   `name:"a2a-callers" enum:",identity,signed,any" default:"identity" env:"STOA_A2A_CALLERS" help:"Whom A2A serves: identity (agents with a chain identity), signed (also other keys: of profiles, key directories and wallets) or any (also API tokens, and guests with a proof of work)."`
	A2AWait           int      `name:"a2a-wait" default:"20" env:"STOA_A2A_WAIT" placeholder:"SECONDS" help:"How long a message over A2A waits for the agent's answer, unless its sender asks otherwise. 0: not at all."`
	OpenThreads       int      `name:"open-threads" default:"10" env:"STOA_OPEN_THREADS" placeholder:"N" help:"Threads of one recognised caller with one agent that may wait for its answer. 0: the default."`
	NetworkThreads    int      `name:"network-threads" default:"30" env:"STOA_NETWORK_THREADS" placeholder:"N" help:"The same for the guests of one network together."`
	Unanswered        int      `name:"unanswered-messages" default:"20" env:"STOA_UNANSWERED_MESSAGES" placeholder:"N" help:"Messages in one thread that may wait for an answer."`
	ReceiptNodes      []string `name:"receipt-nodes" env:"STOA_RECEIPT_NODES" placeholder:"URL" help:"Other nodes, such as https://stoa.example, whose order receipts prove the order of a review, as those of this node do. Repeatable; separated by commas in the environment."`
	ReviewFloor       []string `name:"review-floor" default:"INR=50" env:"STOA_REVIEW_FLOOR" placeholder:"CURRENCY=AMOUNT" help:"Least total of an order whose review counts. Orders in other currencies do not count. Repeatable; separated by commas in the environment."`
	TrustedProxies    []string `env:"STOA_TRUSTED_PROXIES" placeholder:"CIDR" help:"Networks of reverse proxies whose X-Forwarded-For is believed."`
	AllowPrivatePeers bool     `env:"STOA_ALLOW_PRIVATE_PEERS" help:"Talk to peers on loopback and private addresses, over plain http. For development."`
	AuthorizedFetch   bool     `name:"authorized-fetch" env:"STOA_AUTHORIZED_FETCH" help:"Serve posts, collections and logs over ActivityPub only to servers that sign their requests and are not refused. Pages and the other doors stay public."`
	NoProbes          bool     `name:"no-probes" env:"STOA_NO_PROBES" help:"Do not ask the endpoints and sites that profiles list whether they answer."`
	UCPStrict         bool     `name:"ucp-strict" env:"STOA_UCP_STRICT" help:"Refuse requests of the Universal Commerce Protocol that name no platform profile (UCP-Agent). Without it they are served in the current release."`
	ReadRate          float64  `default:"50" env:"STOA_READ_RATE" placeholder:"N" help:"Requests a second that one client network may make, after a burst of four seconds' worth."`
	WriteRate         float64  `default:"5" env:"STOA_WRITE_RATE" placeholder:"N" help:"Writes a second that one client network may try, after a burst of eight seconds' worth."`
	IdentityRate      float64  `default:"10" env:"STOA_IDENTITY_RATE" placeholder:"N" help:"Writes a second of one verified identity, after a burst of six seconds' worth."`
	MaxStreams        int      `name:"max-streams" default:"2048" env:"STOA_MAX_STREAMS" placeholder:"N" help:"Streams of the feed that a process serves at a time, half of them to unknown callers; each is an open connection."`
	Registrations     string   `enum:",closed,invite,approval,open" default:"" env:"STOA_REGISTRATIONS" help:"Who joins by himself: closed (nobody), invite (with an invitation), approval (everybody, and an operator approves those without an invitation) or open (everybody). Default: approval; open where the public address is on loopback."`
	OwnerInvitations  int      `name:"owner-invitations" env:"STOA_OWNER_INVITATIONS" placeholder:"N" help:"How many may be invited within 30 days by an account that is no operator's."`
	Name              string   `env:"STOA_NAME" placeholder:"TEXT" help:"What you call the node. Default: its host."`
	Contact           string   `env:"STOA_CONTACT" placeholder:"URL" help:"Where to report vulnerabilities, mailto: or https:. Served as security.txt."`
	Texts             string   `env:"STOA_TEXTS" placeholder:"DIR" help:"Directory of the texts that you write about the node: contact.md, terms.md, privacy.md, and contact.hi.md and so on for readers of Hindi. Each is optional; they are read at the start."`
	GrievanceOfficer  string   `name:"grievance-officer" env:"STOA_GRIEVANCE_OFFICER" placeholder:"TEXT" help:"Who takes complaints, with name, address and mail, as the page /contact shows it (in India: IT Rules 2021, rule 3(2))."`
	ComplaintRead     int      `name:"complaint-read-hours" default:"24" env:"STOA_COMPLAINT_READ_HOURS" placeholder:"HOURS" help:"Within how many hours you acknowledge a complaint (in India 24: IT Rules 2021, rule 3(2))."`
	ComplaintAnswer   int      `name:"complaint-answer-days" default:"15" env:"STOA_COMPLAINT_ANSWER_DAYS" placeholder:"DAYS" help:"Within how many days you answer a complaint (in India 15)."`
	ComplaintKept     int      `name:"complaint-kept-days" default:"365" env:"STOA_COMPLAINT_KEPT_DAYS" placeholder:"DAYS" help:"How many days a complaint is kept after its answer."`
	SecurityPolicy    string   `name:"security-policy" env:"STOA_SECURITY_POLICY" placeholder:"URL" help:"Page that says how reports of vulnerabilities are handled. Named in security.txt."`
	RegistryKey       string   `name:"mcp-registry-key" env:"STOA_MCP_REGISTRY_KEY" placeholder:"KEY" help:"Ed25519 public key, 32 bytes in base64, that you sign in to the MCP registry with. Served as /.well-known/mcp-registry-auth; see stoa registry-json."`
	Releases          string   `env:"STOA_RELEASES" placeholder:"URL" help:"Address of SHA256SUMS of the newest release, with SHA256SUMS.sig beside it: Health and stoa doctor say when that is newer than this program. Empty: nobody is asked."`
	ReleaseKey        string   `name:"releases-key" env:"STOA_RELEASES_KEY" placeholder:"KEY" help:"Public key that signs releases, as ssh-ed25519 AAAA…"`
	AgentForm         string   `name:"signature-agent-form" default:"field" env:"STOA_SIGNATURE_AGENT_FORM" placeholder:"FORM" help:"Form of Signature-Agent in requests of the node: field (a Dictionary, covered whole), member (covered with ;key, as newer drafts ask) or string (older drafts). A receiver that answers 401 or 403 is sent the others in turn."`
	ContentSignal     string   `name:"content-signal" default:"search=yes, ai-input=yes, ai-train=no" env:"STOA_CONTENT_SIGNAL" placeholder:"TEXT" help:"What crawlers may do with what they read here: search, ai-input and ai-train, each yes or no. Said in robots.txt. Empty: nothing is said."`
	SMTP              string   `name:"smtp" env:"STOA_SMTP" placeholder:"HOST:PORT" help:"Mail server that sends notices and sign-in links. Empty: no mail is sent."`
	SMTPSecurity      string   `name:"smtp-security" default:"starttls" env:"STOA_SMTP_SECURITY" placeholder:"HOW" help:"tls (from the first byte), starttls, or none (to this machine only)."`
	SMTPUser          string   `name:"smtp-user" env:"STOA_SMTP_USER" placeholder:"NAME" help:"Who signs in to the mail server. Empty: nobody."`
	SMTPPassword      string   `name:"smtp-password" env:"STOA_SMTP_PASSWORD" placeholder:"FILE" help:"File that holds the password for the mail server."`
	MailFrom          string   `name:"mail-from" env:"STOA_MAIL_FROM" placeholder:"ADDRESS" help:"Address that mail comes from."`
	DKIMKey           string   `name:"dkim-key" env:"STOA_DKIM_KEY" placeholder:"FILE" help:"PEM file of the private key, RSA or Ed25519, that signs mail with DKIM. Empty: the mail server signs, or nobody."`
	DKIMSelector      string   `name:"dkim-selector" env:"STOA_DKIM_SELECTOR" placeholder:"NAME" help:"Selector of the DNS record with the public DKIM key."`
	LMTP              string   `name:"lmtp" env:"STOA_LMTP" placeholder:"ADDR" help:"Where the operator's mail server hands over bounces, and answers to invitations, by LMTP: unix:/path/of/socket, or host:port on this machine. Empty: none are taken."`
	MeetingMails      int      `name:"meeting-mails" default:"200" env:"STOA_MEETING_MAILS" placeholder:"N" help:"Mails within an hour that ask a mailbox to confirm a meeting request. Strangers have half of them; what finds no room waits."`
	BackupDir         string   `name:"backup-dir" env:"STOA_BACKUP_DIR" placeholder:"DIR" help:"Where the node keeps a backup of its database of each day: a directory, or s3://bucket/prefix/. The master key is not in it. Empty: none is made."`
	BackupRecipients  []string `name:"backup-recipient" env:"STOA_BACKUP_RECIPIENT" placeholder:"RECIPIENT" help:"Recipient of age, age1…, that backups are encrypted to; the node does not need the identity. Repeatable; separated by commas in the environment."`
	BackupAt          string   `name:"backup-at" default:"03:00" env:"STOA_BACKUP_AT" placeholder:"HH:MM" help:"When the backup of a day begins, UTC, or up to an hour later."`
	BackupCheck       int      `name:"backup-check-days" default:"1" env:"STOA_BACKUP_CHECK_DAYS" placeholder:"DAYS" help:"A backup is restored on trial each so many days, 1 to 7. Each one is read back."`
	BackupEndpoint    string   `name:"backup-s3-endpoint" env:"STOA_BACKUP_S3_ENDPOINT" placeholder:"URL" help:"Server of s3:// in backup-dir. Default: that of Amazon in the region."`
	BackupRegion      string   `name:"backup-s3-region" default:"us-east-1" env:"STOA_BACKUP_S3_REGION" placeholder:"NAME" help:"Its region."`
	BackupKey         string   `name:"backup-s3-key" env:"STOA_BACKUP_S3_KEY" placeholder:"ID" help:"Id of its access key. Default: AWS_ACCESS_KEY_ID of the environment."`
	BackupSecret      string   `name:"backup-s3-secret" env:"STOA_BACKUP_S3_SECRET" placeholder:"FILE" help:"File that holds the secret of the access key. Default: AWS_SECRET_ACCESS_KEY of the environment."`
	PaySandbox        bool     `name:"pay-sandbox" env:"STOA_PAY_SANDBOX" help:"Offer the payment provider sandbox, which moves no money, to owners of attention boards. Such boards and bids are labelled TEST and are not told to other nodes. For tests."`
	MemoryLimit       uint32   `name:"memory-limit" default:"1024" env:"STOA_MEMORY_LIMIT" placeholder:"MIB" help:"Soft limit of the node's own memory in MiB: near it the garbage collector works more, and nothing fails. 0: none. GOMEMLIMIT, where set, wins. SQLite's and the system's buffers are not counted."`
	Traces            string   `env:"STOA_TRACES" placeholder:"URL" help:"OpenTelemetry collector that traces are sent to by OTLP/HTTP, such as http://127.0.0.1:4318. Empty: none are recorded."`
	TraceHeaders      string   `name:"traces-headers" env:"STOA_TRACES_HEADERS" placeholder:"FILE" help:"File of header fields to send with them, one a line, such as Authorization: Bearer …"`
	TraceShare        float64  `name:"traces-share" default:"0.01" env:"STOA_TRACES_SHARE" placeholder:"N" help:"Share, 0 to 1, of the traces that are sent. Those that failed, or took long, are sent in any case."`
	TraceSlow         int      `name:"traces-slow" default:"1000" env:"STOA_TRACES_SLOW" placeholder:"MS" help:"From how many milliseconds on a trace took long. 0: none does."`
	LogFormat         string   `default:"text" enum:"text,json" env:"STOA_LOG_FORMAT" help:"text or json."`
	LogLevel          string   `default:"info" enum:"debug,info,warn,error" env:"STOA_LOG_LEVEL" help:"debug, info, warn or error."`

	// Dev makes proofs of work cheap and limits wide, and refuses any base URL
	// that is not on loopback. Set by the dev command only.
	Dev bool
	// Version of the software, for NodeInfo and the User-Agent.
	Version string
	// NewRSA makes the node's RSA key at the first start; nil means
	// credential.GenerateRSA. Tests that start hundreds of nodes set it.
	NewRSA func() (key.Pair, error)
	// ProofCost is the cost of proofs of work with Dev; 0 means that of level 0. Tests, which
	// solve thousands, set it.
	ProofCost int
	// ArchiveWork is the work factor of archives' private keys; 0 means that of the package.
	// Tests, which encrypt and decrypt dozens, set it.
	ArchiveWork int
}

// ErrConfig is wrapped by every error of Validate.
var ErrConfig = errors.New("configuration")

// private reports whether addresses of this machine and of private networks are taken.
func (c Config) private() bool { return c.AllowPrivatePeers || c.Dev }

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	if faults := c.Faults(); len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrConfig, errors.Join(faults...))
	}
	return nil
}

// Faults are those of the settings themselves; each begins with the name of a setting and a colon.
func (c Config) Faults() (faults []error) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	c.addressFaults(bad)
	if c.Database != "" && !postgresURL(c.Database) {
		bad("database: must be a postgres:// URL or empty")
	}
	if len(c.Replicas) > 0 && c.Database == "" || slices.ContainsFunc(c.Replicas, func(s string) bool { return !postgresURL(s) }) {
		bad("database-replica: must be a postgres:// URL of a standby of database, which must be set")
	}
	if c.Database == "" && c.Data == "" {
		bad("data: must name a directory")
	}
	if c.PartsAfter < 0 || c.PartsAfter > 1200 {
		bad("parts-after: must be from 0 (never) to 1200 months")
	}
	c.mailFaults(bad)
	c.backupFaults(bad)
	c.traceFaults(bad)
	if c.AgentForm != "" && !slices.Contains(signed.Forms, signed.Form(c.AgentForm)) {
		bad("signature-agent-form: must be one of %v", signed.Forms)
	}
	for _, s := range c.Chain {
		if _, err := erc8004.ParseChain(s); err != nil {
			bad("chain: %w", err)
		}
	}
	if !slices.Contains([]string{"", "identity", "signed", "any"}, c.A2ACallers) {
		bad("a2a-callers: must be identity, signed or any")
	}
	if c.A2AWait < 0 || c.A2AWait > 25 { // an answer is written within 30 seconds
		bad("a2a-wait: must be from 0 to 25")
	}
	for name, most := range map[string]int{"open-threads": c.OpenThreads, "network-threads": c.NetworkThreads, "unanswered-messages": c.Unanswered} {
		if most < 0 || most > 10_000 {
			bad("%s: must be from 0 (the default) to 10000", name)
		}
	}
	if _, err := protocol.ParseReviewFloors(c.ReviewFloor); err != nil {
		bad("review-floor: %w", err)
	}
	for _, s := range c.ReceiptNodes {
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "https" && !c.Dev && !c.AllowPrivatePeers || u.Scheme+"://"+u.Host != s {
			bad("receipt-nodes: %q is not the address of a node such as https://stoa.example, without a path or a slash at its end", s)
		}
	}
	for name, rate := range map[string]float64{"read-rate": c.ReadRate, "write-rate": c.WriteRate, "identity-rate": c.IdentityRate} {
		if rate < 0 || rate > 1e6 {
			bad("%s: must be from 0 (the default) to 1000000", name)
		}
	}
	if c.MaxStreams < 0 || c.MaxStreams > 100_000 {
		bad("max-streams: must be from 0 (the default) to 100000")
	}
	if c.OwnerInvitations < 0 || c.OwnerInvitations > 10_000 {
		bad("owner-invitations: must be from 0 to 10000")
	}
	if c.MeetingMails < 0 || c.MeetingMails > 100_000 {
		bad("meeting-mails: must be from 0 (the default) to 100000")
	}
	for name, n := range map[string]int{
		"complaint-read-hours": c.ComplaintRead, "complaint-answer-days": c.ComplaintAnswer, "complaint-kept-days": c.ComplaintKept,
	} {
		if n < 0 || n > 3650 {
			bad("%s: must be from 0 (the default) to 3650", name)
		}
	}
	for name, s := range map[string]string{"contact": c.Contact, "security-policy": c.SecurityPolicy} {
		u, err := url.Parse(s)
		web := err == nil && u.Scheme == "https" && u.Host != ""
		mail := err == nil && u.Scheme == "mailto" && u.Opaque != "" && name == "contact"
		if s != "" && !web && !mail || strings.ContainsAny(s, "\r\n") {
			bad("%s: %q is no https: URL (a contact may be mailto: too)", name, s)
		}
	}
	if u, err := url.Parse(c.Releases); c.Releases != "" && (err != nil || u.Host == "" || u.Scheme != "https" && !c.AllowPrivatePeers) {
		bad("releases: %q is no https: URL", c.Releases)
	}
	if _, err := sshsig.ParseKey(c.ReleaseKey); (c.Releases != "" || c.ReleaseKey != "") && err != nil {
		bad("releases-key: %q: %w", c.ReleaseKey, err)
	}
	if raw, err := base64.StdEncoding.DecodeString(c.RegistryKey); c.RegistryKey != "" && (err != nil || len(raw) != ed25519.PublicKeySize) {
		bad("mcp-registry-key: must be an Ed25519 public key, 32 bytes in base64")
	}
	if c.ContentSignal != "" && !contentSignal.MatchString(c.ContentSignal) {
		bad("content-signal: %q is not like search=yes, ai-input=yes, ai-train=no", c.ContentSignal)
	}
	for _, s := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(s); err != nil {
			bad("trusted-proxies: %q is not a network such as 10.0.0.0/8", s)
		}
	}
	return faults
}

func postgresURL(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// addressFaults reports the faults of where the node listens and what it is called.
func (c Config) addressFaults(bad func(format string, args ...any)) {
	c.httpsFaults(bad)
	if host, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen: %q is not host:port", c.Listen)
	} else if c.BaseURL == "" && len(c.Domains) == 0 && (c.https() || !netx.IsLoopback(host)) {
		bad("base-url: set the public address; only a node on loopback needs none")
	}
	if c.OperatorListen != "" {
		if _, _, err := net.SplitHostPort(c.OperatorListen); err != nil {
			bad("operator-listen: %q is not host:port", c.OperatorListen)
		}
	}
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
			bad("base-url: %q is not an absolute http or https URL", c.BaseURL)
		case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			bad("base-url: %q must have no path, query or fragment", c.BaseURL)
		case u.Scheme == "http" && !netx.IsLoopback(u.Hostname()) && !c.AllowPrivatePeers:
			bad("base-url: must be https; without TLS anyone on the network path can change what the node signs")
		case c.Dev && !netx.IsLoopback(u.Hostname()):
			bad("base-url: a development node serves on loopback only, not on %s", u.Hostname())
		}
	}
	for _, h := range c.OperatorHosts {
		if h == "" || strings.ContainsAny(h, ":/ ") {
			bad("operator-hosts: %q is not a host name, without port", h)
		}
	}
}

// contentSignal is the form of contentsignals.org.
var contentSignal = regexp.MustCompile(`^(search|ai-input|ai-train)=(yes|no)(, ?(search|ai-input|ai-train)=(yes|no)){0,2}$`)

// base returns the public address of the node, without a slash at the end, for the
// address that it listens on.
func (c Config) base(listening string) string {
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err == nil {
			return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host)
		}
	}
	if len(c.Domains) > 0 {
		return "https://" + c.Domains[0]
	}
	return "http://" + listening
}

// rates are the rate limits of the configuration; zero means the default.
func (c Config) rates() hall.Rates {
	if c.Dev {
		return hall.WideRates()
	}
	return hall.DefaultRates().With(&c.ReadRate, &c.WriteRate, &c.IdentityRate)
}

// threadLimits are how much may wait for an agent's answer.
func (c Config) threadLimits() protocol.ThreadLimits {
	return protocol.ThreadLimits{Open: c.OpenThreads, OfNetwork: c.NetworkThreads, Unanswered: c.Unanswered}
}

// limits are the rate limits of the configuration, in the form of the operations.
func (c Config) limits() protocol.LimitsView {
	r := c.rates()
	return protocol.LimitsView{ReadRate: r.NetworkRead.PerSecond, WriteRate: r.NetworkWrite.PerSecond, IdentityRate: r.IdentityWrite.PerSecond}
}

func (c Config) masterKey() string {
	if c.MasterKey != "" {
		return c.MasterKey
	}
	return filepath.Join(c.Data, "master.key")
}

// Storage is where the node stores.
func (c Config) Storage(log *slog.Logger) storage.Config {
	return storage.Config{Path: c.sqlite(), URL: c.Database, Replicas: c.Replicas, Log: log, NoCopy: c.NoMigrationCopy, Parts: c.parts()}
}

func (c Config) parts() string { return cmp.Or(c.PartsDir, filepath.Join(c.Data, "parts")) }

func (c Config) sqlite() string {
	if c.Database != "" {
		return ""
	}
	return filepath.Join(c.Data, "stoa.db")
}

// complaintTimes are the due dates of complaints, and how long they are kept.
func (c Config) complaintTimes() complaint.Times {
	return complaint.Times{Acknowledge: time.Duration(cmp.Or(c.ComplaintRead, 24)) * time.Hour,
		Resolve: time.Duration(cmp.Or(c.ComplaintAnswer, 15)) * 24 * time.Hour, Kept: time.Duration(cmp.Or(c.ComplaintKept, 365)) * 24 * time.Hour}
}
