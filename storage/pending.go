// Package storage remembers: one concrete store over SQLite or PostgreSQL.
package storage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"stoa/protocol"
)

var errPending = errors.New("storage: not written yet")

var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
)

type Config struct {
	Path  string           // SQLite file; empty with URL
	URL   string           // postgres://…
	Log   *slog.Logger     // nil means slog.Default
	Now   func() time.Time // nil means time.Now
	Queue int              // waiting writes, default 1024
}

type DB struct{}
type Tx struct {
	Now time.Time // UTC ms, fixed at begin
}

func Open(ctx context.Context, c Config) (*DB, error) { return nil, errPending }
func (db *DB) Close() error                           { return errPending }
func (db *DB) Read(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return errPending
}
func (db *DB) Write(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return errPending
}
func (db *DB) Version() uint64                               { return 0 }
func (db *DB) Wake(topic string) <-chan struct{}             { return nil }
func (db *DB) Engine() string                                { return "" }
func (db *DB) Ping(ctx context.Context) error                { return errPending }
func (db *DB) Backup(ctx context.Context, path string) error { return errPending }
func (db *DB) Check(ctx context.Context) error               { return errPending }
func (db *DB) QueueLen() int                                 { return 0 }

func (tx *Tx) Spend(ctx context.Context, s protocol.Spend) error { return errPending }
func (tx *Tx) PruneSpent(ctx context.Context, slice byte) (int, error) {
	return 0, errPending
}

type Receipt struct {
	Caller, Key, Operation string
	Digest                 [32]byte
	Answer                 []byte
	Expires                time.Time
}

func (tx *Tx) Receipt(ctx context.Context, caller, key string) (*Receipt, error) {
	return nil, errPending
}
func (tx *Tx) KeepReceipt(ctx context.Context, r Receipt) error { return errPending }
func (tx *Tx) PruneReceipts(ctx context.Context) (int, error)   { return 0, errPending }
func (tx *Tx) Secret(ctx context.Context, name string, make func() ([]byte, error)) ([]byte, error) {
	return nil, errPending
}

func (tx *Tx) InsertPost(ctx context.Context, p *protocol.StoredPost) error { return errPending }
func (tx *Tx) PostByID(ctx context.Context, id string) (*protocol.StoredPost, error) {
	return nil, errPending
}
func (tx *Tx) PostByURI(ctx context.Context, uri string) (*protocol.StoredPost, error) {
	return nil, errPending
}
func (tx *Tx) ListPosts(ctx context.Context, q protocol.BoardQuery) (protocol.Page[protocol.Post], error) {
	return protocol.Page[protocol.Post]{}, errPending
}
func (tx *Tx) ListReplies(ctx context.Context, postID string, limit int, after string) (protocol.Page[protocol.Post], error) {
	return protocol.Page[protocol.Post]{}, errPending
}
func (tx *Tx) ListHidden(ctx context.Context, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	return protocol.Page[protocol.StoredPost]{}, errPending
}
func (tx *Tx) SetPostState(ctx context.Context, id string, state protocol.PostState, reason string) error {
	return errPending
}
func (tx *Tx) SetPostVerdict(ctx context.Context, id string, verified bool, keyid, note string) error {
	return errPending
}
func (tx *Tx) PostsByAgent(ctx context.Context, erc8004 string, limit int, after string) (protocol.Page[protocol.StoredPost], error) {
	return protocol.Page[protocol.StoredPost]{}, errPending
}
func (tx *Tx) CountPosts(ctx context.Context) (int, error) { return 0, errPending }

type Report struct {
	PostID, Reporter, Reason string
	At                       time.Time
	Spent                    bool // made before the post was restored: does not count again
}

func (tx *Tx) InsertReport(ctx context.Context, postID, reporter, reason string) (fresh bool, distinct int, err error) {
	return false, 0, errPending
}
func (tx *Tx) ListReports(ctx context.Context, postID string) ([]Report, error) {
	return nil, errPending
}

func (tx *Tx) AppendFeed(ctx context.Context, item protocol.FeedItem) error { return errPending }
func (tx *Tx) ListFeed(ctx context.Context, types []protocol.FeedType, limit int, after string) (protocol.Page[protocol.FeedItem], error) {
	return protocol.Page[protocol.FeedItem]{}, errPending
}
func (tx *Tx) SetFeedVisible(ctx context.Context, subjectID string, visible bool) error {
	return errPending
}

type StoredProfile struct {
	Draft        protocol.ProfileDraft
	ERC8004      string // chain identity, lower case, "" none
	KeyHash      string // thumbprint shown in identity, "" none
	IdentityNote string
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

func (tx *Tx) PutProfile(ctx context.Context, p *StoredProfile) (created bool, err error) {
	return false, errPending
}
func (tx *Tx) ProfileByHandle(ctx context.Context, handle string) (*StoredProfile, error) {
	return nil, errPending
}
func (tx *Tx) ProfileByAgent(ctx context.Context, erc8004 string) (*StoredProfile, error) {
	return nil, errPending
}
func (tx *Tx) DeleteProfile(ctx context.Context, handle string) error { return errPending }
func (tx *Tx) ListProfiles(ctx context.Context, q protocol.AgentQuery) (protocol.Page[StoredProfile], error) {
	return protocol.Page[StoredProfile]{}, errPending
}
func (tx *Tx) CountProfiles(ctx context.Context) (int, error) { return 0, errPending }

type AgentKey struct {
	Handle, Thumbprint string
	PublicJWK          []byte
	Sealed             []byte // sealed private key, nil when the owner holds it
	Directory          []byte // stored signed directory headers, JSON, nil when the node signs
	CreatedAt          time.Time
	RetiredAt          *time.Time
}

func (tx *Tx) PutAgentKey(ctx context.Context, k AgentKey) error { return errPending }
func (tx *Tx) AgentKeyByThumbprint(ctx context.Context, thumbprint string) (*AgentKey, error) {
	return nil, errPending
}
func (tx *Tx) AgentKeys(ctx context.Context, handle string) ([]AgentKey, error) {
	return nil, errPending
}
func (tx *Tx) RetireAgentKey(ctx context.Context, thumbprint string) error { return errPending }

type Token struct {
	ID                    string
	Hash                  [32]byte
	Account, Handle, Name string
	Scopes                []string
	CreatedAt             time.Time
	ExpiresAt             *time.Time
	RevokedAt             *time.Time
	LastUsedAt            *time.Time
}

func (tx *Tx) InsertToken(ctx context.Context, t Token) error { return errPending }
func (tx *Tx) TokenByHash(ctx context.Context, hash [32]byte) (*Token, error) {
	return nil, errPending
}
func (tx *Tx) ListTokens(ctx context.Context, handle string) ([]Token, error) {
	return nil, errPending
}
func (tx *Tx) RevokeToken(ctx context.Context, id string) error { return errPending }
func (tx *Tx) TouchToken(ctx context.Context, id string) error  { return errPending }

type Job struct {
	ID        int64
	Kind      string
	Lane      string // "" runs beside everything
	Args      []byte
	RunAt     time.Time // zero means now
	Attempt   int       // 1 on the first run
	LastError string
	Dedupe    string // unique while waiting, "" none
	State     JobState
	DoneAt    *time.Time
}
type JobState string

const (
	JobWaiting JobState = "waiting"
	JobDone    JobState = "done"
	JobDead    JobState = "dead"
)

type JobStat struct {
	Kind   string
	State  JobState
	Count  int
	Oldest time.Time
}

func (tx *Tx) Enqueue(ctx context.Context, j Job) error { return errPending }
func (db *DB) ClaimJobs(ctx context.Context, owner string, n int, lease time.Duration) ([]Job, error) {
	return nil, errPending
}
func (tx *Tx) FinishJob(ctx context.Context, id int64) error { return errPending }
func (db *DB) RetryJob(ctx context.Context, id int64, at time.Time, errText string) error {
	return errPending
}
func (tx *Tx) BuryJob(ctx context.Context, id int64, errText string) error { return errPending }
func (db *DB) ReleaseJobs(ctx context.Context, owner string) error         { return errPending }
func (tx *Tx) ListJobs(ctx context.Context, state JobState, limit int, after string) (protocol.Page[Job], error) {
	return protocol.Page[Job]{}, errPending
}
func (tx *Tx) RequeueJob(ctx context.Context, id int64) error { return errPending }
func (tx *Tx) PruneJobs(ctx context.Context, before time.Time) (int, error) {
	return 0, errPending
}
func (tx *Tx) JobStats(ctx context.Context) ([]JobStat, error) { return nil, errPending }

type LogEntry struct {
	Board    string
	Seq      int64
	Kind     string // create, update, delete, hide, restore
	ObjectID string // post id
	Activity []byte // as received, for relayed foreign activities; nil for local ones
	At       time.Time
	Redacted bool
}

func (tx *Tx) AppendLog(ctx context.Context, board, kind, objectID string, activity []byte) (seq int64, err error) {
	return 0, errPending
}
func (tx *Tx) LogHead(ctx context.Context, board string) (epoch string, head int64, err error) {
	return "", 0, errPending
}
func (tx *Tx) LogAfter(ctx context.Context, board string, after int64, limit int) ([]LogEntry, error) {
	return nil, errPending
}
func (tx *Tx) RedactLog(ctx context.Context, board, objectID string) error { return errPending }
func (tx *Tx) NewEpoch(ctx context.Context, board string) (epoch string, err error) {
	return "", errPending
}

type Follower struct {
	LocalActor, Actor, Inbox, SharedInbox, Host, FollowID string
	Stoa                                                  bool
	CreatedAt                                             time.Time
}

func (tx *Tx) PutFollower(ctx context.Context, f Follower) error { return errPending }
func (tx *Tx) DeleteFollower(ctx context.Context, localActor, actor string) error {
	return errPending
}
func (tx *Tx) Followers(ctx context.Context, localActor string, limit int, after string) (protocol.Page[Follower], error) {
	return protocol.Page[Follower]{}, errPending
}
func (tx *Tx) CountFollowers(ctx context.Context, localActor string) (int, error) {
	return 0, errPending
}

type Outlet struct {
	Board, Inbox, Host string
	Stoa               bool
	Cursor             int64
	Failures           int
	NextAt             time.Time
	State              OutletState
	LastError          string
	LastOK             time.Time
}
type OutletState string

const (
	OutletActive OutletState = "active"
	OutletSlow   OutletState = "slow"
	OutletDead   OutletState = "dead"
)

func (tx *Tx) PutOutlet(ctx context.Context, o Outlet) error { return errPending }
func (tx *Tx) OutletBy(ctx context.Context, board, inbox string) (*Outlet, error) {
	return nil, errPending
}
func (tx *Tx) DeleteOutlet(ctx context.Context, board, inbox string) error { return errPending }
func (db *DB) ClaimOutlets(ctx context.Context, owner string, n int, lease time.Duration) ([]Outlet, error) {
	return nil, errPending
}
func (db *DB) ReleaseOutlets(ctx context.Context, owner string) error { return errPending }

// AdvanceOutlet moves the cursor forward only, records success and gives the lease back.
func (tx *Tx) AdvanceOutlet(ctx context.Context, board, inbox string, cursor int64) error {
	return errPending
}

// MoveOutlet sets the cursor exactly, in any direction, and gives the lease back.
func (tx *Tx) MoveOutlet(ctx context.Context, board, inbox string, cursor int64) error {
	return errPending
}
func (db *DB) FailOutlet(ctx context.Context, board, inbox string, at time.Time, errText string, state OutletState) error {
	return errPending
}
func (tx *Tx) ListOutlets(ctx context.Context, limit int, after string) (protocol.Page[Outlet], error) {
	return protocol.Page[Outlet]{}, errPending
}
func (tx *Tx) WakeHost(ctx context.Context, host string) error { return errPending }

type Subscription struct {
	Board, Host, NodeActor, LogURL, Epoch string
	LastSeq                               int64
	State                                 SubscriptionState
	FollowID                              string
	CheckedAt, NextAt                     time.Time
	Failures                              int
	LastError                             string
}
type SubscriptionState string

const (
	SubscriptionPending  SubscriptionState = "pending"
	SubscriptionAccepted SubscriptionState = "accepted"
	SubscriptionRejected SubscriptionState = "rejected"
)

func (tx *Tx) PutSubscription(ctx context.Context, s Subscription) error { return errPending }
func (tx *Tx) SubscriptionByBoard(ctx context.Context, board string) (*Subscription, error) {
	return nil, errPending
}
func (tx *Tx) ListSubscriptions(ctx context.Context) ([]Subscription, error) {
	return nil, errPending
}
func (tx *Tx) DueSubscriptions(ctx context.Context, now time.Time) ([]Subscription, error) {
	return nil, errPending
}
func (tx *Tx) AdvanceSubscription(ctx context.Context, board, epoch string, fromSeq, toSeq int64) (ok bool, err error) {
	return false, errPending
}
func (tx *Tx) DeleteSubscription(ctx context.Context, board string) error { return errPending }

type RemoteActor struct {
	ID, Host, Type, Handle, Name, Inbox, SharedInbox string
	Doc                                              []byte
	FetchedAt                                        time.Time
}
type RemoteKey struct {
	KeyID, Owner, Algorithm string
	Key                     []byte // SPKI or raw
	FetchedAt               time.Time
	NegativeUntil           time.Time // zero: known; else unknown until then
}

func (tx *Tx) PutRemoteActor(ctx context.Context, a RemoteActor) error { return errPending }
func (tx *Tx) RemoteActorByID(ctx context.Context, id string) (*RemoteActor, error) {
	return nil, errPending
}
func (tx *Tx) PutRemoteKey(ctx context.Context, k RemoteKey) error { return errPending }
func (tx *Tx) RemoteKeyByID(ctx context.Context, keyID string) (*RemoteKey, error) {
	return nil, errPending
}

type Kept struct {
	Key                 [32]byte
	Host, Actor, Signer string
	Body                []byte
	Proven              bool
	At                  time.Time // set by the store
}

func (tx *Tx) KeepActivity(ctx context.Context, k Kept) (fresh bool, err error) {
	return false, errPending
}
func (tx *Tx) KeptByKey(ctx context.Context, key [32]byte) (*Kept, error) {
	return nil, errPending
}
func (tx *Tx) DropKept(ctx context.Context, before time.Time) (int, error) { return 0, errPending }
func (tx *Tx) PutTombstone(ctx context.Context, uri string, until time.Time) error {
	return errPending
}
func (tx *Tx) Tombstoned(ctx context.Context, uri string) (bool, error) { return false, errPending }

type Policy string

const (
	PolicyReject  Policy = "reject"
	PolicySilence Policy = "silence"
	PolicyTrusted Policy = "trusted"
)

type HostPolicy struct {
	Host   string
	Policy Policy // "" none; SetHostPolicy with "" removes
	Note   string
}

func (tx *Tx) SetHostPolicy(ctx context.Context, p HostPolicy) error { return errPending }
func (tx *Tx) HostPolicyFor(ctx context.Context, host string) (HostPolicy, error) {
	return HostPolicy{}, errPending
}
func (tx *Tx) ListHostPolicies(ctx context.Context) ([]HostPolicy, error) {
	return nil, errPending
}
func (tx *Tx) SetHostScheme(ctx context.Context, host, scheme string) error { return errPending }
func (tx *Tx) HostScheme(ctx context.Context, host string) (string, error) {
	return "", errPending
}

func (tx *Tx) HighestIssued(ctx context.Context, identity, signer string) (uint64, error) {
	return 0, errPending
}
func (tx *Tx) RaiseIssued(ctx context.Context, identity, signer string, issuedAt uint64) error {
	return errPending
}

type AuditEntry struct {
	ID                             int64
	Actor, Action, Subject, Detail string
	At                             time.Time
}

func (tx *Tx) Audit(ctx context.Context, actor, action, subject, detail string) error {
	return errPending
}
func (tx *Tx) ListAudit(ctx context.Context, limit int, after string) (protocol.Page[AuditEntry], error) {
	return protocol.Page[AuditEntry]{}, errPending
}
