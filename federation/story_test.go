package federation

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/integrity"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

const agentID = "eip155:31337:0xebd1edc26fbdaa767ac49916009bea69c8645045:17"

func two(t *testing.T, authority Authority) (a, b *node) {
	t.Helper()
	net, tick := newNetwork(), newClock()
	a, b = newNode(t, net, tick, 0, authority), newNode(t, net, tick, 1, authority)
	return a, b
}

// pairOf is two nodes, of which b follows a, for a test that runs beside others.
func pairOf(t *testing.T) (a, b *node) {
	t.Helper()
	t.Parallel()
	a, b = two(t, nil)
	b.follow(a)
	return a, b
}

// granted is pairOf with a chain that grants a key to the agent.
func granted(t *testing.T) (a, b *node, pair key.Pair, chain *registry) {
	t.Helper()
	t.Parallel()
	pair = must.Get(key.GenerateEd25519())(t)
	chain = &registry{id: agentID, keys: map[string]crypto.PublicKey{pair.Thumbprint(): pair.Public()}}
	a, b = two(t, chain)
	b.follow(a)
	return a, b, pair, chain
}

func TestPostReachesTheFollower(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	before := a.post(nil)
	b.follow(a)
	require.Equal(t, protocol.Visible, b.state(before.URI), "what was there before is walked")

	pulls := b.net.count("GET a.example/ap/board/log")
	p := a.post(func(p *protocol.StoredPost) { p.Tags = []string{"paper", "हिन्दी", "ink.blue"} })
	settle(t, a, b)
	got := b.held(p.URI)
	require.NotNil(t, got)
	require.Equal(t, []any{p.Title, p.Body, p.Tags, p.Kind, protocol.BoardID(a.base)}, []any{got.Title, got.Body, got.Tags, got.Kind, got.Board})
	require.Equal(t, "a.example", *got.Node)
	require.False(t, got.Author.Verified)
	require.True(t, protocol.IsRemoteID(got.ID, p.URI))
	require.Equal(t, pulls, b.net.count("GET a.example/ap/board/log"), "one behind: pushed, not pulled")
	require.Equal(t, int64(2), b.subscription(protocol.BoardID(a.base)).LastSeq)

	var head int64
	b.read(func(ctx context.Context, tx *storage.Tx) error {
		_, h, err := tx.Logs().Head(ctx, protocol.BoardID(b.base))
		head = h
		return absent(err)
	})
	require.Zero(t, head, "what is hosted elsewhere is not in our log")
}

func TestBurstIsOnePushAndPages(t *testing.T) {
	a, b := pairOf(t)
	pushes := a.net.count("POST b.example")
	var posts []*protocol.StoredPost
	for range 230 {
		posts = append(posts, a.post(nil))
	}
	settle(t, a, b)
	for range 5 { // a page that a busy machine was too slow to make is asked for again
		if b.state(posts[len(posts)-1].URI) == protocol.Visible {
			break
		}
		b.tick.pass(time.Minute)
		settle(t, a, b)
	}
	for _, p := range posts {
		require.Equal(t, protocol.Visible, b.state(p.URI))
	}
	require.Equal(t, pushes+1, a.net.count("POST b.example"))
	require.Len(t, b.room.got, 230)
}

func TestPeerAwayCatchesUp(t *testing.T) {
	a, b := pairOf(t)
	a.net.set("b.example", true)
	var posts []*protocol.StoredPost
	for range 9 {
		posts = append(posts, a.post(nil))
		settle(t, a)
		a.tick.pass(8 * time.Hour)
	}
	gone := posts[3]
	a.change(gone, protocol.Deleted, "delete")
	settle(t, a)

	a.net.set("b.example", false)
	b.f = b.start(nodeKeys(1), nil) // a fresh process asks first of all
	require.NoError(t, b.f.pullAll(t.Context()))
	settle(t, b)
	for _, p := range posts {
		if p != gone {
			require.Equal(t, protocol.Visible, b.state(p.URI))
		}
	}
	require.Equal(t, protocol.PostState(""), b.state(gone.URI), "deleted meanwhile: its text was never sent")

	p := a.post(nil) // its signed read made b known to be up again
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(p.URI))
}

func TestDeleteHideRestore(t *testing.T) {
	a, b := pairOf(t)
	p, q := a.post(nil), a.post(nil)
	settle(t, a, b)
	a.change(p, protocol.Deleted, "delete")
	a.change(q, protocol.Hidden, "hide")
	settle(t, a, b)
	require.Equal(t, protocol.Deleted, b.state(p.URI))
	require.Equal(t, protocol.Hidden, b.state(q.URI))

	net := a.net
	c := newNode(t, net, a.tick, 2, nil)
	c.follow(a) // walks past the hidden post
	require.Nil(t, c.held(q.URI))
	a.change(q, protocol.Visible, "restore")
	settle(t, a, b, c)
	require.Equal(t, protocol.Visible, b.state(q.URI))
	require.Equal(t, protocol.Visible, c.state(q.URI), "fetched when it is back")
}

// A reply on B to a post of A goes to A's board, and from there to everyone.
func TestReplyAcrossNodes(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	c := newNode(t, a.net, a.tick, 2, nil)
	b.follow(a)
	c.follow(a)
	p := a.post(nil)
	settle(t, a, b, c)
	r := b.post(func(r *protocol.StoredPost) { r.ReplyTo, r.Title = p.URI, "I make it" })
	settle(t, a, b, c)
	for _, n := range []*node{a, c} {
		got := n.held(r.URI)
		require.NotNil(t, got, n.name)
		require.Equal(t, p.URI, got.ReplyTo)
		require.Equal(t, "b.example", *got.Node)
	}
	require.Len(t, b.room.got, 1, "its own reply does not come back to b")

	b.change(r, protocol.Deleted, "delete")
	settle(t, a, b, c)
	require.Equal(t, protocol.Deleted, a.state(r.URI))
	require.Equal(t, protocol.Deleted, c.state(r.URI))
	require.NotContains(t, a.log(t, 0), "I make it", "no deleted text stays in the log")
}

// log is a page of the node's log, as text.
func (n *node) log(t *testing.T, after int) string {
	t.Helper()
	res := must.Get((&http.Client{Transport: n.net}).Get(fmt.Sprintf("%s/ap/board/log?after=%d", n.base, after)))(t)
	defer res.Body.Close()
	var b bytes.Buffer
	must.Get(b.ReadFrom(res.Body))(t)
	require.Equal(t, 200, res.StatusCode)
	return b.String()
}

// signed makes the evidence of an agent's request to a node's board.
func signed(t *testing.T, n *node, pair key.Pair, in protocol.NewPost) json.RawMessage {
	t.Helper()
	return signedAs(t, n, pair, in, "Agent-Identity", agentID)
}

// signedAs is the evidence of a request whose author names himself in a field.
func signedAs(t *testing.T, n *node, pair key.Pair, in protocol.NewPost, field, value string) json.RawMessage {
	t.Helper()
	body := asJSON(t, in)
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", n.base+integrity.PostPath, bytes.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(field, value)
	target := httpsig.NewTarget("https", n.name)
	require.NoError(t, httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: pair.Signer(), Created: n.tick.now()}))
	msg := must.Get(httpsig.FromRequest(r, target))(t)
	k := must.Get(httpsig.NewKey(pair.Public()))(t)
	policy := httpsig.WritePolicy()
	policy.At = n.tick.now()
	v := httpsig.Verifier{Keys: fixedKey{k}}
	res := must.Get(v.Verify(t.Context(), &msg, body, policy))(t)
	e := must.Get(httpsig.Capture(&msg, body, res))(t)
	return asJSON(t, e)
}

type fixedKey struct{ k httpsig.Key }

func (f fixedKey) Resolve(context.Context, httpsig.KeyRequest) (httpsig.Resolved, error) {
	return httpsig.Resolved{Key: f.k}, nil
}

func agentPost(t *testing.T, n *node, pair key.Pair, text string) func(*protocol.StoredPost) {
	t.Helper()
	return func(p *protocol.StoredPost) {
		p.Body = text
		in := protocol.NewPost{Kind: p.Kind, Title: p.Title, Body: text, Tags: p.Tags}
		id, thumb := agentID, pair.Thumbprint()
		p.Author = protocol.Author{Name: "Agent 17", ERC8004: &id, KeyID: &thumb, Verified: true, Method: protocol.BySignature,
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey, Owner: new(registryOwner)}}
		if p.ReplyTo != "" {
			parent := n.held(p.ReplyTo)
			require.NotNil(t, parent)
			in.InReplyTo = parent.ID
		}
		p.Evidence = signed(t, n, pair, in)
	}
}

// TestVerdicts_Blocked keeps out what a followed board brings of an author whom
// the operator here has blocked, and takes it again when the block is lifted.
func TestVerdicts_Blocked(t *testing.T) {
	a, b, pair, _ := granted(t)
	actor := a.base + "/ap/anon"
	for kind, value := range map[protocol.BlockKind]string{protocol.BlockAgent: agentID, protocol.BlockKey: pair.Thumbprint(), protocol.BlockActor: actor} {
		block := nodeBlock(kind, value)
		require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { return tx.Blocks().Put(ctx, block) }))
		post := a.post(func(p *protocol.StoredPost) { agentPost(t, a, pair, "Signed and blocked by "+string(kind))(p) })
		settle(t, a, b)
		require.Nil(t, b.held(post.URI), kind)
		require.NoError(t, b.write(func(ctx context.Context, tx *storage.Tx) error { return must.Err(tx.Blocks().Delete(ctx, block.ID)) }))
		post = a.post(func(p *protocol.StoredPost) { agentPost(t, a, pair, "Signed and heard again after "+string(kind))(p) })
		settle(t, a, b)
		require.NotNil(t, b.held(post.URI), kind)
	}
}

func TestVerdicts(t *testing.T) {
	a, b, pair, chain := granted(t)

	good := a.post(agentPost(t, a, pair, "As signed."))
	bad := a.post(func(p *protocol.StoredPost) {
		agentPost(t, a, pair, "As signed.")(p)
		p.Body = "Not as signed." // the node lies about its agent
	})
	after := a.post(nil)
	settle(t, a, b)

	got := b.held(good.URI)
	require.NotNil(t, got)
	require.Equal(t, []any{true, protocol.BySignature, agentID, pair.Thumbprint()},
		[]any{got.Author.Verified, got.Author.Method, *got.Author.ERC8004, *got.Author.KeyID})
	require.Equal(t, []any{protocol.ByChainKey, agentID, "eip155:31337", int64(7)},
		[]any{got.Author.Proof.Level, *got.Author.Proof.Subject, *got.Author.Proof.Chain, *got.Author.Proof.Block}, "of this node's own look at the chain")
	require.Equal(t, []string{"Agent 17", ""}, []string{got.Author.Name, got.Author.ClaimedName})
	require.Nil(t, b.held(bad.URI), "tampered: kept out")
	require.Equal(t, protocol.Visible, b.state(after.URI), "and the log continues")

	reply := b.post(func(p *protocol.StoredPost) {
		p.ReplyTo = good.URI
		agentPost(t, b, pair, "A signed reply on another node.")(p)
		p.Author.Name = "Asha Menon" // as its author, or the other node, calls it
	})
	settle(t, a, b)
	there := a.held(reply.URI).Author
	require.True(t, there.Verified, "the parent is named by the id that the author saw")
	require.Equal(t, []string{"Agent 17", "Asha Menon"}, []string{there.Name, there.ClaimedName})

	chain.mu.Lock()
	chain.keys = nil
	chain.mu.Unlock()
	revoked := a.post(agentPost(t, a, pair, "With a revoked key."))
	settle(t, a, b)
	got = b.held(revoked.URI)
	require.NotNil(t, got)
	require.Equal(t, []any{false, protocol.ByFederation, "a.example"}, []any{got.Author.Verified, got.Author.Method, *got.Author.Node})
	require.Equal(t, protocol.AuthorProof{Level: protocol.ByNothing}, got.Author.Proof, "whatever the other node checked")
}

// A chain that cannot be read decides nothing: the post waits.
func TestChainAway(t *testing.T) {
	a, b, pair, chain := granted(t)
	chain.err = protocol.Errorf(protocol.ChainUnavailable, "no answer")
	p := a.post(agentPost(t, a, pair, "Wait for it."))
	settle(t, a, b)
	require.Nil(t, b.held(p.URI))
	s := b.subscription(protocol.BoardID(a.base))
	require.Contains(t, s.LastError, "chain-unavailable")
	require.EqualValues(t, 1, s.Head-s.LastSeq, "what waits")
	chain.err = nil
	a.tick.pass(time.Minute)
	settle(t, a, b)
	require.True(t, b.held(p.URI).Author.Verified)
	s = b.subscription(protocol.BoardID(a.base))
	require.Equal(t, s.Head, s.LastSeq)
}

// An attacker between two nodes can change nothing: neither what is pushed
// nor what is pulled.
func TestTamperedOnTheWay(t *testing.T) {
	a, b := pairOf(t)
	bend := func(r *http.Request, body []byte) []byte {
		return bytes.ReplaceAll(body, []byte("200 sheets"), []byte("900 sheets"))
	}
	a.net.bend, a.net.reply = bend, bend
	p := a.post(nil)
	settle(t, a, b)
	require.Nil(t, b.held(p.URI), "pushed: the digest tells")
	a.tick.pass(time.Hour)
	settle(t, a, b)
	require.Nil(t, b.held(p.URI), "pulled: the board's proof tells")
	require.Contains(t, b.subscription(protocol.BoardID(a.base)).LastError, "does not verify")
	a.net.bend, a.net.reply = nil, nil
	a.tick.pass(time.Hour)
	settle(t, a, b)
	require.Equal(t, "200 sheets.", b.held(p.URI).Body)
}

// Pushes that come twice, late or out of order change nothing.
func TestRepeatsAndReordering(t *testing.T) {
	a, b := pairOf(t)
	p, q := a.post(nil), a.post(nil)
	a.change(p, protocol.Deleted, "delete")
	entries := a.entries()
	for _, i := range []int{2, 1, 2, 0, 1, 0, 2} {
		a.push(b, entries[i])
		for b.work() {
			continue
		}
	}
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(q.URI))
	require.NotEqual(t, protocol.Visible, b.state(p.URI))
	require.Equal(t, int64(3), b.subscription(protocol.BoardID(a.base)).LastSeq)
	require.Len(t, b.room.got, 1)
}

// entries are the node's log entries as bytes.
func (n *node) entries() [][]byte {
	var all [][]byte
	n.read(func(ctx context.Context, tx *storage.Tx) error {
		epoch, _, err := tx.Logs().Head(ctx, protocol.BoardID(n.base))
		if err != nil {
			return err
		}
		list, err := tx.Logs().After(ctx, protocol.BoardID(n.base), 0, 100)
		for _, e := range list {
			raw, _, err := n.f.entry(ctx, tx, epoch, e)
			if err != nil {
				return err
			}
			all = append(all, raw)
		}
		return err
	})
	return all
}

func (n *node) push(to *node, body []byte) outcome {
	return n.f.send(n.t.Context(), n.f.site.Board(), to.base+"/ap/inbox", body)
}

func TestDeleteBeforeCreate(t *testing.T) {
	a, b := pairOf(t)
	p := a.post(nil)
	settle(t, a, b)
	r := b.post(func(r *protocol.StoredPost) { r.ReplyTo = p.URI })
	create := reads(b, func(ctx context.Context, tx *storage.Tx) ([]byte, error) { return b.f.createOf(ctx, tx, r) })
	del := must.Get(b.f.prove(b.f.site.Delete(r, b.tick.now()), b.f.site.Anon(), b.tick.now()))(t)
	for _, body := range [][]byte{del, create} {
		require.NoError(t, b.f.send(t.Context(), b.f.site.Anon(), a.base+"/ap/board/inbox", body).err)
		for a.work() {
			continue
		}
	}
	require.Nil(t, a.held(r.URI))
}

func TestEpochChange(t *testing.T) {
	a, b := pairOf(t)
	p := a.post(nil)
	settle(t, a, b)
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Logs().NewEpoch(ctx, protocol.BoardID(a.base)))
	}))
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error { // the backup is older than the Follow
		if err := tx.Followers().Delete(ctx, protocol.BoardID(a.base), b.f.site.Node()); err != nil {
			return err
		}
		return tx.Outlets().Delete(ctx, protocol.BoardID(a.base), b.f.site.SharedInbox())
	}))
	a.f = a.start(nodeKeys(0), nil)
	q := a.post(nil)
	a.tick.pass(21 * time.Minute)
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(p.URI))
	require.Equal(t, protocol.Visible, b.state(q.URI))
	require.Len(t, b.room.got, 2, "what is known is not received again")
	require.Equal(t, int64(2), b.subscription(protocol.BoardID(a.base)).LastSeq)
	r := a.post(nil)
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(r.URI), "and it follows again")
}

// Whenever the power goes out on the receiver, nothing is lost and nothing is
// there twice: an effect and the cursor are one transaction.
func TestCrashOfTheReceiver(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 7; at++ {
		t.Run(fmt.Sprint("step ", at), func(t *testing.T) {
			a, b := pairOf(t)
			b.room.calls, b.room.failAt = 0, at
			p, q := a.post(nil), a.post(nil)
			settle(t, a, b)
			a.change(p, protocol.Deleted, "delete")
			r := a.post(nil)
			for range 5 {
				settle(t, a, b)
				b.f = b.start(nodeKeys(1), nil)
				a.tick.pass(20 * time.Minute)
			}
			settle(t, a, b)
			require.NotEqual(t, protocol.Visible, b.state(p.URI))
			require.Equal(t, protocol.Visible, b.state(q.URI))
			require.Equal(t, protocol.Visible, b.state(r.URI))
			require.Equal(t, int64(4), b.subscription(protocol.BoardID(a.base)).LastSeq)
		})
	}
}

// A kill between commit and delivery, and one between delivery and the move of
// the cursor: it goes out at restart, and counts once.
func TestCrashOfTheSender(t *testing.T) {
	a, b := pairOf(t)
	p := a.post(nil)
	require.Len(t, must.Get(a.db.ClaimOutlets(t.Context(), "killed", 10, 10, time.Minute))(t), 1)
	a.push(b, a.entries()[0]) // delivered, and then the process is gone
	a.f = a.start(nodeKeys(0), nil)
	a.tick.pass(2 * time.Minute) // the lease ends
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(p.URI))
	require.Len(t, b.room.got, 1)
}

// A job that is killed after its look-ups and before its transaction runs again.
func TestCrashOfAJob(t *testing.T) {
	a, b := pairOf(t)
	p := a.post(nil)
	a.push(b, a.entries()[0])
	jobs, _, err := b.db.ClaimJobs(t.Context(), "killed", 10, time.Minute)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	must.Get(b.f.process(t.Context(), jobs[0]))(t)
	require.Nil(t, b.held(p.URI))
	a.tick.pass(2 * time.Minute)
	settle(t, a, b)
	require.Equal(t, protocol.Visible, b.state(p.URI))
	require.Len(t, b.room.got, 1)
}

func TestUnfollowAndReject(t *testing.T) {
	a, b := pairOf(t)
	require.NoError(t, b.f.Unfollow(t.Context(), protocol.BoardID(a.base)))
	settle(t, a, b)
	a.read(func(ctx context.Context, tx *storage.Tx) error {
		n, err := tx.Followers().Count(ctx, protocol.BoardID(a.base))
		require.Zero(t, n)
		_, oerr := tx.Outlets().ByInbox(ctx, protocol.BoardID(a.base), b.base+"/ap/inbox")
		require.ErrorIs(t, oerr, storage.ErrNotFound)
		return err
	})
	require.NoError(t, a.write(func(ctx context.Context, tx *storage.Tx) error {
		return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "b.example", Policy: storage.PolicyReject})
	}))
	require.NoError(t, must.Err(b.f.Follow(t.Context(), a.base)), "asking is free")
	settle(t, a, b)
	require.Equal(t, storage.SubscriptionPending, b.subscription(protocol.BoardID(a.base)).State)
}

func TestFollow_RefusesWhatIsNoBoard(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	for _, address := range []string{a.base + "/ap/feed", "not a url", b.base, a.base + "/ap/posts/x", "http://a.example"} {
		require.Equal(t, protocol.InvalidRequest, protocol.CodeOf(must.Err(b.f.Follow(t.Context(), address))), address)
	}
	_, err := b.f.Follow(t.Context(), "https://nobody.example")
	require.Equal(t, protocol.Internal, protocol.CodeOf(err), "who does not answer may answer later")
}

// The same entry has the same bytes on every day and in every process.
func TestEntriesAreStable(t *testing.T) {
	t.Parallel()
	a, _ := two(t, nil)
	p := a.post(nil)
	a.change(p, protocol.Hidden, "hide")
	a.change(p, protocol.Visible, "restore")
	one := a.entries()
	a.tick.pass(time.Hour)
	a.f = a.start(nodeKeys(0), nil)
	require.Equal(t, one, a.entries())
	var e activity.Activity
	require.NoError(t, fetchLimits.DecodeLoose(one[0], &e))
	require.Equal(t, int64(1), *e.Seq)
}

func TestLog_Preconditions(t *testing.T) {
	t.Parallel()
	a, _ := two(t, nil)
	client := &http.Client{Transport: a.net}
	get := func(query, header, value string) *http.Response {
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", a.base+"/ap/board/log"+query, nil))(t)
		if header != "" {
			r.Header.Set(header, value)
		}
		res := must.Get(client.Do(r))(t)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	require.Equal(t, 200, get("", "", "").StatusCode, "an empty log is a log")
	a.post(nil)
	res := get("?after=0&limit=1", "", "")
	etag := res.Header.Get("ETag")
	require.True(t, strings.HasSuffix(etag, `-1"`), etag)
	require.Equal(t, 304, get("", "If-None-Match", etag).StatusCode)
	require.Equal(t, 304, get("", "If-None-Match", `"x", W/`+strings.Replace(etag, `-1"`, `-1-gzip"`, 1)).StatusCode)
	require.Equal(t, 200, get("", "If-Match", etag).StatusCode)
	require.Equal(t, 412, get("", "If-Match", `"another-epoch"`).StatusCode)
	for _, q := range []string{"?after=x", "?after=-1", "?limit=0", "?limit=x"} {
		require.Equal(t, 400, get(q, "", "").StatusCode, q)
	}
	require.Equal(t, 200, get("?after=99", "", "").StatusCode)
}

// A reply to a board that is away for two days is handed in when it is back,
// and meanwhile holds up nothing else that concerns that node.
func TestReplyToABoardThatIsAway(t *testing.T) {
	a, b := pairOf(t)
	p := a.post(nil)
	settle(t, a, b)
	a.net.set("a.example", true)
	r := b.post(func(r *protocol.StoredPost) { r.ReplyTo = p.URI })
	for range 48 {
		settle(t, b)
		b.tick.pass(time.Hour)
	}
	a.net.set("a.example", false)
	b.tick.pass(16 * time.Hour)
	settle(t, a, b)
	require.Equal(t, protocol.Visible, a.state(r.URI))
	require.Len(t, a.room.got, 1)
}

// In real time, with the loops that a node runs: a post is on the other node
// long before two seconds are over.
func TestRun(t *testing.T) {
	a, b := pairOf(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, n := range []*node{a, b} {
		running.Go(func() { require.NoError(t, n.f.Run(ctx)) })
		running.Go(func() {
			for ctx.Err() == nil {
				jobs, _, err := n.db.ClaimJobs(ctx, "worker", 8, time.Minute)
				if err == nil && len(jobs) > 0 {
					for _, j := range jobs {
						n.do(j)
					}
					continue
				}
				select {
				case <-ctx.Done():
				case <-n.db.Wake(storage.TopicJobs):
				}
			}
		})
	}
	var slowest time.Duration
	for range 20 {
		start := time.Now()
		p := a.post(nil)
		require.Eventually(t, func() bool { return b.state(p.URI) == protocol.Visible }, time.Minute, time.Millisecond)
		slowest = max(slowest, time.Since(start))
	}
	t.Log("slowest of 20:", slowest)
	stop()
	running.Wait()
}

// A Follow that cannot be delivered says so with its subscription.
func TestFollow_DeliveryShows(t *testing.T) {
	t.Parallel()
	a, b := two(t, nil)
	board := protocol.BoardID(a.base)
	must.Get(b.f.Follow(t.Context(), a.base))(t)
	a.net.set("a.example", true)
	settle(t, b)
	s := b.subscription(board)
	require.Equal(t, storage.SubscriptionPending, s.State)
	require.Equal(t, 1, s.Failures)
	require.Contains(t, s.LastError, "refused")
	b.tick.pass(time.Minute)
	settle(t, b)
	require.Equal(t, 2, b.subscription(board).Failures)
	a.net.set("a.example", false)
	b.tick.pass(time.Hour)
	settle(t, a, b)
	s = b.subscription(board)
	require.Equal(t, storage.SubscriptionAccepted, s.State)
	require.Empty(t, s.LastError)
}
