package federation

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/node/room/contact"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A network is a map host → handler. It replaces the network: nothing leaves
// the process.
type network struct {
	mu    sync.Mutex // guards all
	hosts map[string]http.Handler
	down  map[string]bool
	calls []string                                  // "POST a.example/ap/inbox"
	bend  func(r *http.Request, body []byte) []byte // changes requests on the way; nil: none
	reply func(r *http.Request, body []byte) []byte // changes answers on the way; nil: none
}

func newNetwork() *network {
	return &network{hosts: map[string]http.Handler{}, down: map[string]bool{}}
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	n.mu.Lock()
	n.calls = append(n.calls, r.Method+" "+r.URL.Host+r.URL.RequestURI())
	h, down, bend, reply := n.hosts[r.URL.Host], n.down[r.URL.Host], n.bend, n.reply
	n.mu.Unlock()
	if h == nil || down {
		return nil, fmt.Errorf("dial %s: connection refused", r.URL.Host)
	}
	if bend != nil {
		body = bend(r, body)
	}
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	in.Host, in.Header = r.URL.Host, r.Header.Clone()
	in.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	res := w.Result()
	res.Request = r
	if reply != nil {
		raw, _ := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(reply(r, raw)))
	}
	return res, nil
}

func (n *network) set(host string, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[host] = down
}

func (n *network) count(prefix string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := 0
	for _, call := range n.calls {
		if len(call) >= len(prefix) && call[:len(prefix)] == prefix {
			c++
		}
	}
	return c
}

// A clock that all nodes of a test share.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)} }

// nodeKeys makes key pairs once a process: RSA costs a while.
var nodeKeys = func() func(i int) Keys {
	var mu sync.Mutex
	made := map[int]Keys{}
	return func(i int) Keys {
		mu.Lock()
		defer mu.Unlock()
		if k, ok := made[i]; ok {
			return k
		}
		rsa, err := key.GenerateRSA(2048)
		if err != nil {
			panic(err)
		}
		ed, err := key.GenerateEd25519()
		if err != nil {
			panic(err)
		}
		made[i] = Keys{RSA: rsa, Ed25519: ed}
		return made[i]
	}
}()

// A node is federation, storage and a small board.
type node struct {
	t    *testing.T
	name string
	base string
	db   *storage.DB
	f    *Federation
	net  *network
	tick *clock
	room *room
}

// room is a Receiver that keeps posts and can be made to fail.
type room struct {
	base   string
	failAt int // the n-th call from now fails, 0 never
	calls  int
	got    []string
	told   []string // reports by other servers
}

func (r *room) ReportFrom(_ context.Context, _ *storage.Tx, _, reporter, reason string) error {
	r.told = append(r.told, "report by "+reporter+": "+reason)
	return nil
}

func (r *room) FlagFrom(_ context.Context, _ *storage.Tx, _, domain, reason string) error {
	r.told = append(r.told, "flag by "+domain+": "+reason)
	return nil
}

var errCrash = errors.New("the power went out")

func (r *room) step() error {
	r.calls++
	if r.failAt > 0 && r.calls >= r.failAt {
		r.failAt = 0
		return errCrash
	}
	return nil
}

func (r *room) ReceivePost(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost) (string, error) {
	if err := r.step(); err != nil {
		return "", err
	}
	if parent, err := tx.Posts().ByURI(ctx, p.ReplyTo); err == nil {
		p.InReplyTo = &parent.ID
	}
	p.URL = r.base + "/board/" + p.ID
	if err := tx.Posts().Insert(ctx, p); err != nil {
		return "", err
	}
	r.got = append(r.got, p.URI)
	return p.ID, r.step()
}

func (r *room) DeletePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return r.move(ctx, tx, uri, protocol.Deleted)
}

func (r *room) HidePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return r.move(ctx, tx, uri, protocol.Hidden)
}

func (r *room) RestorePost(ctx context.Context, tx *storage.Tx, uri string) error {
	return r.move(ctx, tx, uri, protocol.Visible)
}

func (r *room) move(ctx context.Context, tx *storage.Tx, uri string, to protocol.PostState) error {
	if err := r.step(); err != nil {
		return err
	}
	p, err := tx.Posts().ByURI(ctx, uri)
	if errors.Is(err, storage.ErrNotFound) || err == nil && p.State == protocol.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.Posts().SetState(ctx, p.ID, to, "by its origin")
}

func newNode(t *testing.T, net *network, tick *clock, i int, authority Authority) *node {
	t.Helper()
	return newNodeOn(t, net, tick, i, authority, storage.Config{})
}

// newNodeOn is newNode with a database of its own.
func newNodeOn(t *testing.T, net *network, tick *clock, i int, authority Authority, c storage.Config) *node {
	t.Helper()
	host := string(rune('a'+i)) + ".example"
	c.Now = tick.now
	db := storagetest.OpenConfig(t, c)
	base := "https://" + host
	n := &node{t: t, name: host, base: base, db: db, net: net, tick: tick, room: &room{base: base}}
	n.f = n.start(nodeKeys(i), authority)
	net.mu.Lock()
	net.hosts[host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.f.Handler().ServeHTTP(w, r) })
	net.mu.Unlock()
	return n
}

// start builds the federation of the node as a fresh process would.
func (n *node) start(keys Keys, authority Authority) *Federation {
	n.t.Helper()
	u := must.Get(url.Parse(n.base))(n.t)
	f := must.Get(New(Config{
		Base: u, DB: n.db, Client: &http.Client{Transport: n.net}, Keys: keys, Receiver: n.room, Authority: authority,
		Threads: &contact.Contact{Base: n.base, DB: n.db}, Software: "stoa", Version: "0", Now: n.tick.now, Log: slog.New(slog.DiscardHandler),
	}))(n.t)
	return f
}

// work runs what is due once: jobs, fan-out, due walks. It reports whether there
// was anything to do.
func (n *node) work() bool {
	n.t.Helper()
	ctx := n.t.Context()
	busy := false
	require.NoError(n.t, n.db.Numbered(ctx))
	n.growTree()
	require.NoError(n.t, n.f.pullDue(ctx))
	jobs, _, err := n.db.ClaimJobs(ctx, "test", 16, time.Minute)
	require.NoError(n.t, err)
	for _, j := range jobs {
		busy = true
		n.do(j)
	}
	outlets := must.Get(n.db.ClaimOutlets(ctx, "test", 16, 16, time.Minute))(n.t)
	for _, o := range outlets {
		busy = true
		n.f.serveOutlet(ctx, o)
	}
	return busy
}

// growTree puts all of the log into its tree.
func (n *node) growTree() {
	n.t.Helper()
	for behind := int64(1); behind > 0; {
		behind = must.Get(n.f.growTree(n.t.Context()))(n.t)
	}
}

// do runs one job as package worker does.
func (n *node) do(j storage.Job) {
	n.t.Helper()
	ctx := n.t.Context()
	handle := n.f.Jobs()[j.Kind]
	if j.Kind == storage.AgentToldJob { // of the room of profiles, which is not here
		handle = func(context.Context, storage.Job) (after, error) { return nil, nil }
	}
	require.NotNil(n.t, handle, j.Kind)
	after, err := handle(ctx, j)
	if err == nil {
		err = n.db.Write(ctx, func(ctx context.Context, tx *storage.Tx) error {
			if after != nil {
				if err := after(ctx, tx); err != nil {
					return err
				}
			}
			return tx.Jobs().Finish(ctx, j.ID)
		})
	}
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok && !e.Code.Temporary() {
		require.NoError(n.t, n.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Bury(ctx, j.ID, err.Error()) }))
		return
	}
	require.NoError(n.t, n.db.RetryJob(ctx, j.ID, time.Minute, err.Error()))
}

// settle lets all nodes work until nobody has anything to do.
func settle(t *testing.T, nodes ...*node) {
	t.Helper()
	for range 200 {
		busy := false
		for _, n := range nodes {
			busy = n.work() || busy
		}
		if !busy {
			return
		}
	}
	t.Fatal("the nodes do not come to rest")
}

func (n *node) write(fn func(ctx context.Context, tx *storage.Tx) error) error {
	return n.db.Write(n.t.Context(), fn)
}

func (n *node) read(fn func(ctx context.Context, tx *storage.Tx) error) {
	n.t.Helper()
	require.NoError(n.t, n.db.Read(n.t.Context(), fn))
}

// reads gives what a read of a node returns.
func reads[T any](n interface {
	read(fn func(ctx context.Context, tx *storage.Tx) error)
}, fn func(ctx context.Context, tx *storage.Tx) (T, error)) (v T) {
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		var err error
		v, err = fn(ctx, tx)
		return err
	})
	return v
}

// post writes a post as the board room does.
func (n *node) post(change func(*protocol.StoredPost)) *protocol.StoredPost {
	n.t.Helper()
	now := n.tick.now()
	id := protocol.NewID(protocol.PostID, now)
	p := &protocol.StoredPost{
		Post: protocol.Post{
			ID: id, URI: n.base + "/ap/posts/" + id, Kind: protocol.Requirement, Title: "Paper", Body: "200 sheets.",
			Tags: []string{"paper"}, Author: protocol.Author{Name: "Ada", Method: protocol.ByProof}, CreatedAt: now, Untrusted: true,
		},
		State: protocol.Visible, Board: protocol.BoardID(n.base),
	}
	if change != nil {
		change(p)
	}
	require.NoError(n.t, n.write(func(ctx context.Context, tx *storage.Tx) error {
		if p.ReplyTo != "" {
			parent, err := tx.Posts().ByURI(ctx, p.ReplyTo)
			if err != nil {
				return err
			}
			p.InReplyTo, p.Board = &parent.ID, parent.Board
		}
		if err := tx.Posts().Insert(ctx, p); err != nil {
			return err
		}
		return n.tell(ctx, tx, p, "create")
	}))
	return p
}

// tell does what the board room's Tell does.
func (n *node) tell(ctx context.Context, tx *storage.Tx, p *protocol.StoredPost, kind storage.LogKind) error {
	if p.Board != protocol.BoardID(n.base) {
		return tx.Enqueue(ctx, storage.Job{Kind: "submit", Lane: "to:" + hostOf(p.Board), Args: []byte(`{"post":"` + p.ID + `","kind":"` + string(kind) + `"}`)})
	}
	if err := tx.Logs().Append(ctx, p.Board, kind, p.ID, nil); err != nil {
		return err
	}
	if p.Author.Handle != nil && p.Author.Method != protocol.ByProof {
		if err := tx.Logs().AppendAgent(ctx, n.base+"/ap/agents/"+*p.Author.Handle, kind, p.ID); err != nil {
			return err
		}
	}
	var to []string
	if kind == "hide" || kind == "delete" {
		var err error
		if to, err = tx.Posts().Readers(ctx, p.ID); err != nil {
			return err
		}
	}
	if p.ReplyTo != "" && p.Author.Method != protocol.ByProof {
		parent, err := tx.Posts().ByURI(ctx, p.ReplyTo)
		if err != nil {
			return err
		}
		if parent.Author.Actor != nil {
			to = append(to, *parent.Author.Actor)
		}
	}
	for _, actor := range to {
		s := submitArgs{Post: p.ID, Kind: kind, To: actor, At: tx.Now.UnixMilli(), Direct: true}
		if err := tx.Enqueue(ctx, storage.Job{Kind: "submit", Lane: "to:" + hostOf(actor), Args: asJSON(n.t, s)}); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) change(p *protocol.StoredPost, to protocol.PostState, kind storage.LogKind) {
	n.t.Helper()
	require.NoError(n.t, n.write(func(ctx context.Context, tx *storage.Tx) error {
		if err := tx.Posts().SetState(ctx, p.ID, to, "test"); err != nil {
			return err
		}
		return n.tell(ctx, tx, p, kind)
	}))
}

// held is a post by its ActivityPub id, nil when the node does not have it.
func (n *node) held(uri string) *protocol.StoredPost {
	n.t.Helper()
	return must.Get(n.f.storedPost(n.t.Context(), uri))(n.t)
}

func (n *node) state(uri string) protocol.PostState {
	n.t.Helper()
	p := n.held(uri)
	if p == nil {
		return ""
	}
	return p.State
}

func (n *node) subscription(board string) storage.Subscription {
	n.t.Helper()
	var s storage.Subscription
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		found, err := tx.Subscriptions().ByBoard(ctx, board)
		if err == nil {
			s = *found
		}
		return err
	})
	return s
}

// follow makes n follow the board of other and settles.
func (n *node) follow(other *node) {
	n.t.Helper()
	must.Get(n.f.Follow(n.t.Context(), other.base))(n.t)
	settle(n.t, n, other)
	require.Equal(n.t, storage.SubscriptionAccepted, n.subscription(protocol.BoardID(other.base)).State)
}

// registry is a chain of one agent.
const registryOwner = "0x00000000000000000000000000000000000000aa"

type registry struct {
	mu    sync.Mutex
	id    string
	keys  map[string]crypto.PublicKey
	err   error
	asked int
}

func (r *registry) Authority(_ context.Context, id, keyid string) (integrity.Grant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.err != nil {
		return integrity.Grant{}, r.err
	}
	if k, ok := r.keys[keyid]; ok && id == r.id {
		return integrity.Grant{Key: k, Owner: registryOwner, Block: 7, BlockHash: "0x7"}, nil
	}
	return integrity.Grant{}, protocol.Errorf(protocol.KeyUnknown, "no such key")
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}
