package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// follower is a server of the fediverse that keeps what it is sent.
type follower struct {
	w       *world
	got     []activity.Activity
	result  string // of the last Accept of a QuoteRequest
	status  []int  // answers to come; then 202
	refuse  string
	headers http.Header // of the last delivery
	reply   http.Header
}

func newFollower(t *testing.T) *follower {
	t.Helper()
	return followerOf(newWorld(t))
}

// onEachFollower runs a test with a follower of a node on each engine.
func onEachFollower(t *testing.T, fn func(t *testing.T, f *follower)) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) { fn(t, followerOf(newWorldOn(t, c))) })
}

func followerOf(w *world) *follower {
	t := w.t
	f := &follower{w: w}
	w.served[alice+"/inbox"] = func(rw http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(t)
		f.headers = r.Header
		for name, v := range f.reply {
			rw.Header()[name] = v
		}
		if f.refuse == "cavage" && r.Header.Get("Signature-Input") == "" {
			rw.WriteHeader(401)
			return
		}
		if len(f.status) > 0 {
			code := f.status[0]
			f.status = f.status[1:]
			if code != 202 {
				rw.WriteHeader(code)
				return
			}
		}
		a := must.JSON[activity.Activity](body)(t)
		f.got = append(f.got, a)
		var answer struct {
			Result string `json:"result"`
		}
		require.NoError(t, json.Unmarshal(body, &answer))
		f.result = answer.Result
		rw.WriteHeader(202)
	}
	return f
}

func (f *follower) types() string {
	var list []string
	for _, a := range f.got {
		list = append(list, a.Type.String())
	}
	return strings.Join(list, " ")
}

func known(p *protocol.StoredPost) {
	p.Author.Method, p.Author.Verified = protocol.BySession, true
	handle := "ada"
	p.Author.Handle = &handle
}

func TestFediverseFollower(t *testing.T) {
	f := newFollower(t)
	w := f.w
	p, q, anon := w.node.post(known), w.node.post(known), w.node.post(nil)
	settle(t, w.node)
	require.Equal(t, "Announce Announce", f.types(), "posts of nobody stay among stoa nodes")
	require.Equal(t, p.URI, f.got[0].ObjectID())
	require.Equal(t, protocol.BoardID(w.base), f.got[0].Actor.One())
	require.Contains(t, f.headers.Get("Signature"), `keyId="https://u.example/ap/board#main-key"`)

	w.change(p, protocol.Hidden, "hide")
	w.change(q, protocol.Deleted, "delete")
	settle(t, w.node)
	w.change(p, protocol.Visible, "restore")
	settle(t, w.node)
	require.Equal(t, "Announce Announce Undo Delete Announce", f.types())
	undone := must.JSON[activity.Activity](f.got[2].Object)(t)
	require.Equal(t, f.got[0].ID, undone.ID)
	require.NotEqual(t, f.got[0].ID, f.got[4].ID, "boosted again")
	require.Equal(t, w.f.site.Agent("ada"), f.got[3].Actor.One(), "the deletion is its author's")
	_ = anon
}

func TestFediverseOutage(t *testing.T) {
	f := newFollower(t)
	w := f.w
	w.net.set("victim.example", true)
	p := w.node.post(known)
	for range 9 {
		settle(t, w.node)
		w.tick.pass(8 * time.Hour)
		q := w.node.post(known)
		_ = q
	}
	w.change(p, protocol.Deleted, "delete")
	w.net.set("victim.example", false)
	w.tick.pass(16 * time.Hour)
	settle(t, w.node)
	require.Equal(t, strings.Repeat("Announce ", 9)+"Delete", f.types(), "all of it, in order; what was deleted meanwhile only as deleted")
}

func TestFediverseAnswers(t *testing.T) {
	t.Parallel()
	outlet := func(w *world) (o *storage.Outlet) {
		w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
			o, err = tx.Outlets().ByInbox(ctx, protocol.BoardID(w.base), alice+"/inbox")
			return absent(err)
		})
		return o
	}
	t.Run("400 drops this one only", func(t *testing.T) {
		f := newFollower(t)
		f.status = []int{400}
		f.w.node.post(known)
		f.w.node.post(known)
		settle(t, f.w.node)
		require.Equal(t, "Announce", f.types())
	})
	t.Run("410 ends the follower", func(t *testing.T) {
		f := newFollower(t)
		f.status = []int{410}
		f.w.node.post(known)
		settle(t, f.w.node)
		require.Nil(t, outlet(f.w))
		f.w.read(func(ctx context.Context, tx *storage.Tx) error {
			require.Zero(t, must.Get(tx.Followers().Count(ctx, protocol.BoardID(f.w.base)))(t))
			return nil
		})
	})
	t.Run("429 waits as long as asked", func(t *testing.T) {
		f := newFollower(t)
		f.status, f.reply = []int{429}, http.Header{"Retry-After": {"7200"}}
		f.w.node.post(known)
		settle(t, f.w.node)
		require.WithinDuration(t, f.w.tick.now().Add(2*time.Hour), outlet(f.w).NextAt, time.Second)
		f.w.tick.pass(2*time.Hour + time.Second)
		settle(t, f.w.node)
		require.Equal(t, "Announce", f.types())
	})
	t.Run("401 tries the other signature once and remembers", func(t *testing.T) {
		f := newFollower(t)
		f.refuse = "cavage"
		f.w.node.post(known)
		settle(t, f.w.node)
		require.Equal(t, "Announce", f.types())
		require.Equal(t, schemeRSA, f.w.f.schemeOf(t.Context(), "victim.example"))
		posts := f.w.net.count("POST victim.example")
		f.w.node.post(known)
		settle(t, f.w.node)
		require.Equal(t, posts+1, f.w.net.count("POST victim.example"))
	})
	t.Run("a host that is heard of is tried at once", func(t *testing.T) {
		f := newFollower(t)
		f.status = []int{500, 500}
		f.w.node.post(known)
		settle(t, f.w.node)
		require.Equal(t, storage.OutletSlow, outlet(f.w).State)
		f.status = nil
		require.Equal(t, 202, f.w.deliver(alice, []byte(fmt.Sprintf(`{"id":"https://victim.example/v","type":"View","actor":%q,"object":"x"}`, alice))))
		settle(t, f.w.node)
		require.Equal(t, "Announce", f.types())
		require.Equal(t, storage.OutletActive, outlet(f.w).State)
	})
}

func TestFollowOfOtherActorsIsRejected(t *testing.T) {
	f := newFollower(t)
	for i, object := range []string{"https://u.example/ap/feed", "https://u.example/ap/agents/nobody", activity.Public} {
		require.Equal(t, 202, f.w.deliver(alice, []byte(fmt.Sprintf(`{"id":"https://victim.example/f/%d","type":"Follow","actor":%q,"object":%q}`, 10+i,
			alice, object))))
	}
	settle(t, f.w.node)
	require.Equal(t, "Reject Reject Reject", f.types())
	f.w.unharmed(1)
}

func TestFediverseReply(t *testing.T) {
	w := newWorld(t)
	body := w.note(60, `,"name":"A\u202e <i>title</i>","tag":[{"type":"Hashtag","name":"#Offer"},{"type":"Hashtag","name":"#Jaipur"},{"type":"Hashtag",`+
		`"name":"#हिन्दी"},{"type":"Hashtag","name":"#ДОМ"},{"type":"Hashtag","name":"#two words"}]`)
	require.Equal(t, 202, w.deliver(alice, body))
	private := strings.ReplaceAll(string(w.note(61, "")), `"to":["as:Public"]`, `"to":["https://u.example/ap/board"]`)
	require.Equal(t, 202, w.deliver(alice, []byte(private)))
	require.Equal(t, 202, w.deliver(alice, []byte(strings.Replace(string(w.note(62, "")), "2026-11-20T10", "2036-11-20T10", 1))))
	settle(t, w.node)
	p := w.held("https://victim.example/n/60")
	require.Equal(t, []any{"A <i>title</i>", protocol.Offer, []string{"jaipur", "हिन्दी", "дом"}, "A <b>name</b>", "hi"},
		[]any{p.Title, p.Kind, p.Tags, p.Author.Name, p.Body})
	require.Empty(t, protocol.CheckText("", p.Post))
	require.Nil(t, w.held("https://victim.example/n/61"), "what is not public never reaches the board")
	id := w.held("https://victim.example/n/62").ID
	require.Less(t, id, protocol.NewID(protocol.PostID, w.tick.now().Add(10*time.Minute)), "a claimed time does not pin a post to the top")
}

// A reply of the fediverse, logged by our board, reaches a stoa node that has
// never heard of its author: the note is fetched from its own server, because
// the board's word is not enough; and so is its deletion.
func TestFediverseReplyTravelsOn(t *testing.T) {
	w := newWorld(t)
	gone := false
	w.served[w.reply] = func(rw http.ResponseWriter, r *http.Request) {
		if gone {
			rw.WriteHeader(http.StatusGone)
			return
		}
		rw.Header().Set("Content-Type", activity.MediaType)
		_, _ = rw.Write(w.fill(fmt.Sprintf(`{"id":%q,"type":"Note","attributedTo":%q,"content":"<p>as its server has it</p>",`+
			`"published":"2026-11-20T10:00:00Z","to":"as:Public","inReplyTo":"POST"}`, w.reply, alice)))
	}
	a := newNode(t, w.net, w.tick, 0, nil)
	a.follow(w.node)
	require.Equal(t, "as its server has it", a.held(w.reply).Body)
	require.Equal(t, w.post.URI, a.held(w.reply).ReplyTo)

	del := []byte(fmt.Sprintf(`{"id":"%s#delete","type":"Delete","actor":%q,"to":"as:Public","object":%q}`, w.reply, alice, w.reply))
	require.Equal(t, 202, w.deliver(alice, del))
	settle(t, w.node, a)
	require.Equal(t, protocol.Deleted, w.state(w.reply))
	require.Equal(t, protocol.Visible, a.state(w.reply), "its server still has it")
	gone = true
	w.served["https://victim.example/n/70"] = w.served[w.reply]
	require.Equal(t, 202, w.deliver(alice, w.note(70, "")))
	settle(t, w.node, a)
	require.Nil(t, a.held("https://victim.example/n/70"), "gone before it could be fetched")
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<p>a</p><p>b<br>c</p>`:                               "a\n\nb\nc",
		`<ul><li>a</li><li>b</li></ul>`:                       "a\nb",
		`a &lt;b&gt; &amp;`:                                   "a <b> &",
		`<script>x</script><style>y</style>z`:                 "z",
		`<a href="https://x.example/">x</a>`:                  "x (https://x.example/)",
		`<a href="https://x.example/">https://x.example/</a>`: "https://x.example/",
		`<a href="https://evil.example"><span class="invisible">https://</span>bank.example</a>`: "https://bank.example (https://evil.example)",
		`<a href="javascript:1">x</a>`: "x",
		`<p><span class="h-card"><a href="https://u.example/@ada" class="u-url mention">@<span>ada</span></a></span> hello <a class="mention hashtag" ` +
			`href="https://m/t">#<span>x</span></a></p>`: "hello #x",
		`<img src=x onerror=alert(1)><svg><script>1</script></svg><a href="javascript:1">x</a><noscript><p title="</noscript><img src=x onerror=1>">`: "x\">",
		`<p>unclosed <a href="https://x.example/">link`: "unclosed link (https://x.example/)",
		``: "",
	} {
		require.Equal(t, want, plainText(in), in)
	}
}

func TestServedDocuments(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "ada", Name: "Ada", Kind: protocol.Person},
			ERC8004: agentID, CreatedAt: tx.Now, UpdatedAt: tx.Now}))
	}))
	p, gone, hidden := w.node.post(known), w.node.post(known), w.node.post(known)
	w.change(gone, protocol.Deleted, "delete")
	w.change(hidden, protocol.Hidden, "hide")
	settle(t, w.node)
	client := &http.Client{Transport: w.net}
	for path, c := range map[string]struct {
		code int
		want string
	}{
		"/ap/node": {200, `"type":"Application"`}, "/ap/board": {200, `"type":"Group"`}, "/ap/feed": {200, `"type":"Service"`},
		"/ap/anon": {200, `"type":"Service"`}, "/ap/agents/ada": {200, `"stoa:erc8004"`}, "/ap/agents/nobody": {404, "problem"},
		"/ap/nothing": {404, "problem"}, "/ap/board/outbox": {200, "first"}, "/ap/board/outbox?before=first": {200, p.URI},
		"/ap/board/posts?before=first": {200, p.URI}, "/ap/board/followers": {200, `"totalItems":1`}, "/ap/node/following": {200, "OrderedCollection"},
		"/ap/agents/ada/outbox?before=first": {200, p.URI}, "/ap/agents/ada/followers": {200, "OrderedCollection"},
		"/ap/posts/" + p.ID: {200, `"stoa:kind"`}, "/ap/posts/" + p.ID + "/activity": {200, `"proofValue"`},
		"/ap/posts/" + p.ID + "/replies": {200, "first"}, "/ap/posts/" + p.ID + "/context?after=first": {200, p.URI},
		"/ap/posts/" + gone.ID: {410, "Tombstone"}, "/ap/posts/" + hidden.ID: {200, "Tombstone"}, "/ap/posts/" + hidden.ID + "/activity": {200, "Tombstone"},
		"/ap/posts/post_00000000000000000000000000": {404, "problem"}, "/ap/posts/x": {404, "problem"}, "/ap/board/log/1": {200, `"stoa:seq":1`},
		"/ap/board/log/99": {404, "problem"}, "/ap/board/announces/3": {200, p.URI},
	} {
		res := must.Get(client.Get(w.base + path))(t)
		body := must.Get(io.ReadAll(res.Body))(t)
		require.NoError(t, res.Body.Close())
		require.Equal(t, c.code, res.StatusCode, path)
		if c.want == "problem" {
			require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"), path)
			continue
		}
		require.Contains(t, string(body), c.want, path)
		require.NotContains(t, string(body), "\x00", path)
		require.Equal(t, activity.MediaType, res.Header.Get("Content-Type"), path)
		if c.code != 200 {
			continue
		}
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", w.base+path, nil))(t)
		r.Header.Set("If-None-Match", res.Header.Get("ETag"))
		res = must.Get(client.Do(r))(t)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 304, res.StatusCode, path)
	}
}
