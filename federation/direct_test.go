package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
	"stoa/storage"
)

const carol = "https://peer.example/u/carol"

// A stranger is a server of the fediverse that follows nothing and keeps what
// its actor is sent.
type stranger struct {
	*world
	got    []activity.Activity
	status int // answer of its inbox; 0 is 202
	note   string
}

// newStranger has carol answer the post of the world.
func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := strangerIn(newWorld(t))
	s.reply(s.note)
	return s
}

// strangerIn is a stranger who has written nothing.
func strangerIn(w *world) *stranger {
	s := &stranger{world: w, note: "https://peer.example/n/1"}
	t := s.t
	s.actors[carol] = &actorKeys{id: carol, keys: nodeKeys(103)}
	s.net.hosts["peer.example"] = http.HandlerFunc(s.remote)
	s.served[carol+"/inbox"] = func(w http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(t)
		a := must.JSON[activity.Activity](body)(t)
		if s.status != 0 {
			w.WriteHeader(s.status)
			return
		}
		s.got = append(s.got, a)
		w.WriteHeader(202)
	}
	return s
}

// reply delivers a reply of carol's to the post of the world.
func (s *stranger) reply(id string) {
	s.t.Helper()
	require.Equal(s.t, 202, s.deliver(carol, s.fill(fmt.Sprintf(`{"id":"%s#create","type":"Create","actor":%q,"to":"as:Public",
		"object":{"id":%q,"type":"Note","attributedTo":%q,"content":"<p>How much?</p>","published":"2026-11-20T10:00:00Z","to":"as:Public",
		"inReplyTo":"POST"}}`, id, carol, id, carol))))
	settle(s.t, s.node)
	require.Equal(s.t, protocol.Visible, s.state(id))
}

// answer is a reply of ada's to carol.
func (s *stranger) answer() *protocol.StoredPost {
	return s.node.post(func(p *protocol.StoredPost) {
		known(p)
		p.ReplyTo, p.Title = s.note, "INR 6 a sheet"
	})
}

func (s *stranger) types() []string {
	types := []string{}
	for _, a := range s.got {
		types = append(types, a.Type.String())
	}
	return types
}

// Whom a reply answers gets it, and what becomes of it, without following anything.
func TestAnswerReachesWhoFollowsNothing(t *testing.T) {
	s := newStranger(t)
	p := s.answer()
	settle(t, s.node)
	require.Equal(t, []string{"Create"}, s.types())
	n := must.JSON[activity.Note](s.got[0].Object)(t)
	require.Equal(t, s.note, n.InReplyTo.One())
	require.Contains(t, n.CC, carol)
	require.Equal(t, "Mention", n.Tag[len(n.Tag)-1].Type.String())
	require.Equal(t, carol, string(n.Tag[len(n.Tag)-1].Href))

	s.change(p, protocol.Hidden, "hide")
	settle(t, s.node)
	s.change(p, protocol.Visible, "restore")
	settle(t, s.node)
	s.change(p, protocol.Deleted, "delete")
	settle(t, s.node)
	require.Equal(t, []string{"Create", "Delete", "Create", "Delete"}, s.types())
	ids := map[string]bool{}
	for _, a := range s.got {
		ids[string(a.ID)] = true
		require.Equal(t, s.f.site.Agent("ada"), a.Actor.One())
		require.Equal(t, p.URI, a.ObjectID())
	}
	require.Len(t, ids, 4, "a peer takes each once")

	s.node.post(func(p *protocol.StoredPost) { p.ReplyTo = s.note }) // of a visitor
	settle(t, s.node)
	require.Len(t, s.got, 4, "what visitors write is sent to nobody")
}

// A host that does not answer is tried again by the usual timetable, also by
// another process, and is not sent what was taken back meanwhile.
func TestAnswer_HostAway(t *testing.T) {
	s := newStranger(t)
	s.status = 503
	kept, taken := s.answer(), s.answer()
	settle(t, s.node)
	require.Empty(t, s.got)
	s.change(taken, protocol.Deleted, "delete")
	s.node.f = s.start(nodeKeys('u'-'a'), nil)
	s.tick.pass(time.Hour)
	settle(t, s.node)
	s.status = 0
	s.tick.pass(time.Hour)
	settle(t, s.node)
	require.ElementsMatch(t, []string{"Create", "Delete"}, s.types())
	for _, a := range s.got {
		require.Equal(t, map[string]string{"Create": kept.URI, "Delete": taken.URI}[a.Type.String()], a.ObjectID())
	}
}

// A host that follows the board learns from the log what becomes of a post, and
// nothing twice. The reply itself it gets in addition to the boost, which mentions nobody.
func TestAnswer_HostFollows(t *testing.T) {
	s := newStranger(t)
	follow := fmt.Sprintf(`{"id":"https://peer.example/f/1","type":"Follow","actor":%q,"object":"https://u.example/ap/board"}`, carol)
	require.Equal(t, 202, s.deliver(carol, []byte(follow)))
	settle(t, s.node)
	require.Equal(t, []string{"Accept"}, s.types())
	p := s.answer()
	settle(t, s.node)
	require.ElementsMatch(t, []string{"Accept", "Announce", "Create"}, s.types())
	s.change(p, protocol.Hidden, "hide")
	s.change(p, protocol.Deleted, "delete")
	settle(t, s.node)
	require.ElementsMatch(t, []string{"Accept", "Announce", "Create", "Undo", "Delete"}, s.types())
}

// A delivery whose key cannot be had now is to be repeated; one whose key is not
// there is refused.
func TestKeyOfAHostThatIsAway(t *testing.T) {
	t.Parallel()
	deliver := func(s *stranger, actor string) *http.Response {
		body := fmt.Sprintf(`{"id":"%s/v","type":"View","actor":%q,"object":"x"}`, actor, actor)
		res := must.Get(s.net.RoundTrip(s.request(actor, schemeCavage, []byte(body))))(t)
		require.NoError(t, res.Body.Close())
		return res
	}
	for status, want := range map[int]int{500: 503, 502: 503, 503: 503, 504: 503, 520: 503, 429: 503, 404: 401, 410: 401, 403: 401, 400: 401} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newStranger(t)
			dave := "https://peer.example/u/dave"
			s.actors[dave] = &actorKeys{id: dave, keys: nodeKeys(101)}
			s.served[dave] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
			res := deliver(s, dave)
			require.Equal(t, want, res.StatusCode)
			require.Equal(t, want == 503, res.Header.Get("Retry-After") != "")
			delete(s.served, dave)
			s.tick.pass(unavailableAge + time.Second)
			if want == 503 {
				require.Equal(t, 202, deliver(s, dave).StatusCode)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		s := newStranger(t)
		s.tick.pass(keyAge + time.Hour) // its key is to be fetched again
		s.net.set("peer.example", true)
		res := deliver(s, carol)
		require.Equal(t, 503, res.StatusCode)
		require.NotEmpty(t, res.Header.Get("Retry-After"))
		s.net.set("peer.example", false)
		s.tick.pass(unavailableAge + time.Second)
		require.Equal(t, 202, deliver(s, carol).StatusCode)
	})
	t.Run("an address that is never dialled", func(t *testing.T) {
		s := newStranger(t)
		dave := "https://inside.example/u/dave"
		s.actors[dave] = &actorKeys{id: dave, keys: nodeKeys(101)}
		s.node.f.client.Transport = refusing{s.net}
		require.Equal(t, 401, deliver(s, dave).StatusCode)
	})
}

// refusing is a guarded client's transport that takes inside.example for private.
type refusing struct{ http.RoundTripper }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == "inside.example" {
		return nil, finally{}
	}
	return r.RoundTripper.RoundTrip(req)
}

type finally struct{}

func (finally) Error() string { return "refused" }
func (finally) Final() bool   { return true }

// leave is the deletion of carol's account, as Mastodon sends it.
func (s *stranger) leave(signer string) int {
	s.t.Helper()
	return s.do(s.request(signer, schemeCavage, []byte(fmt.Sprintf(`{"id":"%s#delete","type":"Delete","actor":%q,"to":["as:Public"],"object":%q}`, carol,
		carol, carol))))
}

// The deletion of an account erases what it wrote, however its key is known.
func TestDeletedAccount(t *testing.T) {
	t.Parallel()
	gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }
	forget := func(s *stranger) {
		require.NoError(t, s.write(func(ctx context.Context, tx *storage.Tx) error {
			return must.Err(tx.Peers().PruneFetched(ctx, tx.Now.Add(time.Hour)))
		}))
		s.tick.pass(keyMemory + time.Second)
	}
	for _, c := range []struct {
		name    string
		prepare func(s *stranger)
		code    int
		erased  bool
	}{
		{"its document is still there", func(*stranger) {}, 202, true},
		{"it is gone, and the key is kept", func(s *stranger) { s.served[carol] = gone }, 202, true},
		{"and the key is due to be fetched again", func(s *stranger) {
			s.served[carol] = gone
			s.tick.pass(keyAge + time.Hour)
		}, 202, true},
		{"and it answers 404", func(s *stranger) {
			s.served[carol] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
			s.tick.pass(keyAge + time.Hour)
		}, 202, true},
		{"and nothing of it is kept here", func(s *stranger) {
			s.served[carol] = gone
			forget(s)
		}, 202, true},
		{"and its domain sends more than it may", func(s *stranger) {
			s.served[carol] = gone
			forget(s)
			for s.f.limits.take("peer.example", 1, s.tick.now()) {
			}
		}, 429, false},
		{"404, and nothing of it is kept here", func(s *stranger) {
			s.served[carol] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
			forget(s)
		}, 401, false},
		{"its host is away, and nothing of it is kept here", func(s *stranger) {
			s.net.set("peer.example", true)
			forget(s)
		}, 503, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStranger(t)
			c.prepare(s)
			require.Equal(t, c.code, s.leave(carol))
			settle(t, s.node)
			require.Equal(t, c.erased, s.state(s.note) == protocol.Deleted)
			require.Equal(t, protocol.Visible, s.state(s.world.reply), "of another account")
		})
	}
	t.Run("forged", func(t *testing.T) {
		s := newStranger(t)
		require.Equal(t, 403, s.leave(mallory))
		r := s.request(mallory, schemeCavage, []byte(`{}`))
		forged := s.request(carol, schemeCavage, []byte(fmt.Sprintf(`{"id":"%s#delete","type":"Delete","actor":%q,"object":%q}`, carol, carol, carol)))
		forged.Header.Set("Signature", r.Header.Get("Signature"))
		require.Contains(t, []int{401, 403}, s.do(forged))
		settle(t, s.node)
		require.Equal(t, protocol.Visible, s.state(s.note))
	})
	t.Run("of somebody unknown", func(t *testing.T) {
		w := newWorld(t)
		calls := w.net.count("GET ")
		w.actors[carol] = &actorKeys{id: carol, keys: nodeKeys(103)}
		s := &stranger{world: w}
		require.Equal(t, 202, s.leave(carol))
		require.Equal(t, calls, w.net.count("GET "), "nothing is fetched")
	})
	t.Run("many posts, a follow, and what is still on its way", func(t *testing.T) {
		s := newStranger(t)
		a := newNode(t, s.net, s.tick, 0, nil)
		a.follow(s.node)
		follow := fmt.Sprintf(`{"id":"https://peer.example/f/1","type":"Follow","actor":%q,"object":"https://u.example/ap/board"}`, carol)
		require.Equal(t, 202, s.deliver(carol, []byte(follow)))
		for i := range erasedAtOnce + 5 {
			uri := fmt.Sprintf("https://peer.example/n/%d", 100+i)
			s.served[uri] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", activity.MediaType)
				_, _ = w.Write(s.fill(fmt.Sprintf(`{"id":%q,"type":"Note","attributedTo":%q,"content":"x","published":"2026-11-20T10:00:00Z","to":"as:Public",`+
					`"inReplyTo":"POST"}`, uri, carol)))
			}
			s.reply(uri)
		}
		settle(t, s.node, a)
		require.Equal(t, protocol.Visible, a.state("https://peer.example/n/100"))
		s.served[carol] = gone
		for i := range erasedAtOnce + 5 {
			s.served[fmt.Sprintf("https://peer.example/n/%d", 100+i)] = gone
		}
		require.Equal(t, 202, s.leave(carol))
		settle(t, s.node, a)
		for i := range erasedAtOnce + 5 {
			uri := fmt.Sprintf("https://peer.example/n/%d", 100+i)
			require.Equal(t, protocol.Deleted, s.state(uri))
			require.Equal(t, protocol.Deleted, a.state(uri), "our followers are told")
		}
		require.NotContains(t, s.logText(), "How much")
		s.read(func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 1+1, must.Get(tx.Followers().Count(ctx, s.f.site.Board()))(t), "alice and the stoa node")
			return nil
		})
		late := s.fill(fmt.Sprintf(`{"id":"https://peer.example/n/9#create","type":"Create","actor":%q,"to":"as:Public",
			"object":{"id":"https://peer.example/n/9","type":"Note","attributedTo":%q,"content":"<p>late</p>","published":"2026-11-20T10:00:00Z",
			"to":"as:Public","inReplyTo":"POST"}}`, carol, carol))
		require.Equal(t, 202, s.deliver(carol, late))
		settle(t, s.node)
		require.Nil(t, s.held("https://peer.example/n/9"))
	})
}

// get reads a document of the node.
func (n *node) get(path string) (doc map[string]any) {
	n.t.Helper()
	res := must.Get((&http.Client{Transport: n.net}).Get(path))(n.t)
	defer res.Body.Close()
	require.Equal(n.t, 200, res.StatusCode, path)
	require.NoError(n.t, json.NewDecoder(res.Body).Decode(&doc))
	return doc
}

// The outbox lists what the board announced, each by the id under which it was
// sent, however much of the board visitors wrote or other boards hold.
func TestOutbox(t *testing.T) {
	f := newFollower(t)
	w := f.w
	w.tick.pass(time.Second)
	first := w.node.post(known)
	w.tick.pass(time.Second)
	hidden := w.node.post(known)
	w.change(hidden, protocol.Hidden, "hide")
	w.change(hidden, protocol.Visible, "restore")
	for range collectionPage + 2 {
		w.node.post(nil)
	}
	far := newNode(t, w.net, w.tick, 0, nil)
	w.node.follow(far)
	for range collectionPage + 2 {
		far.post(nil)
	}
	settle(t, w.node, far)
	sent := map[string]string{} // the last announcement of each
	for _, a := range f.got {
		if a.Type.Is("Announce") {
			sent[a.ObjectID()] = string(a.ID)
		}
	}
	sent[w.reply] = w.base + "/ap/board/announces/2" // before the follower came

	head := w.get(w.base + "/ap/board/outbox")
	require.EqualValues(t, 3, head["totalItems"])
	page := w.get(head["first"].(string))
	require.NotContains(t, page, "next")
	items := page["orderedItems"].([]any)
	require.Len(t, items, 3)
	for i, uri := range []string{hidden.URI, first.URI, w.reply} {
		item := items[i].(map[string]any)
		require.Equal(t, uri, item["object"])
		require.Equal(t, sent[uri], item["id"])
		require.NotEmpty(t, item["published"])
		require.Equal(t, item["published"], w.get(item["id"].(string))["published"])
	}
	require.Equal(t, []any{hidden.URI, first.URI, w.reply}, w.get(w.base + "/ap/board/posts?before=first")["orderedItems"])

	require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
		return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "ada", Name: "Ada", Kind: protocol.Person},
			CreatedAt: tx.Now, UpdatedAt: tx.Now}))
	}))
	for range collectionPage {
		w.node.post(known)
	}
	page = w.get(w.base + "/ap/agents/ada/outbox?before=first")
	item := page["orderedItems"].([]any)[0].(map[string]any)
	require.Equal(t, "Create", item["type"])
	require.NotEmpty(t, item["published"])
	require.Equal(t, item["id"], w.get(item["id"].(string))["id"])
	page = w.get(page["next"].(string))
	require.Len(t, page["orderedItems"], 2)
	require.NotContains(t, page, "next")
}

// A post says its language where that is known, and nothing where it is not.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	p := w.node.post(func(p *protocol.StoredPost) {
		known(p)
		p.Language = "hi"
	})
	doc := w.get(p.URI)
	require.Equal(t, map[string]any{"hi": doc["content"]}, doc["contentMap"])
	require.Equal(t, doc["contentMap"], w.get(p.URI + "/activity")["object"].(map[string]any)["contentMap"])
	require.NotContains(t, w.get(w.post.URI), "contentMap")
}

// Whom a post names in addition to its parent's author it mentions and addresses. In its text their names are links, and other
// names are not.
func TestMentions(t *testing.T) {
	s := newStranger(t)
	p := s.node.post(func(p *protocol.StoredPost) {
		known(p)
		p.Body = "Ask @Alice@Victim.example, @carol@peer.example <b>or</b> @eve@evil.example.\nhttps://x.example/@alice@victim.example x@alice@victim.example"
		p.ReplyTo, p.Mentions = s.note, []protocol.Mention{{Handle: "alice", Host: "victim.example", Actor: alice}}
	})
	doc := s.get(p.URI)
	require.Subset(t, doc["cc"], []any{carol, alice})
	require.Contains(t, doc["tag"], map[string]any{"type": "Mention", "href": alice, "name": "@alice@victim.example"})
	require.Contains(t, doc["tag"], map[string]any{"type": "Mention", "href": carol, "name": "@carol@peer.example"})
	link := func(actor, name string) string {
		return `<span class="h-card"><a href="` + actor + `" class="u-url mention">@<span>` + name + `</span></a></span>`
	}
	address := "https://x.example/@alice@victim.example"
	require.Contains(t, doc["content"], "<p>Ask "+link(alice, "alice")+", "+link(carol, "carol")+" &lt;b&gt;or&lt;/b&gt; @eve@evil.example.<br>"+
		`<a href="`+address+`" rel="nofollow noopener noreferrer">`+address+"</a> x@alice@victim.example</p>")
}

// fetch reads a post signed by an actor.
func (w *world) fetchAs(actor, scheme, uri string, bend func(*http.Request)) int {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(w.t.Context(), "GET", uri, nil))(w.t)
	require.NoError(w.t, w.as(actor).sign(r, nil, actor, scheme))
	bend(r)
	code := w.do(r)
	w.f.noting.Wait()
	return code
}

// Who fetched a post with a signature that verifies is told when it is hidden or
// deleted, also of a visitor's post, which is sent to nobody; so is who follows.
func TestReadersAreTold(t *testing.T) {
	t.Parallel()
	straight := func(*http.Request) {}
	for name, c := range map[string]struct {
		scheme string
		bend   func(*http.Request)
		want   []string
	}{
		"draft-cavage": {schemeCavage, straight, []string{"Delete", "Delete"}},
		"RFC 9421":     {schemeRSA, straight, []string{"Delete", "Delete"}},
		"unsigned":     {schemeCavage, func(r *http.Request) { r.Header.Del("Signature") }, []string{}},
		"forged":       {schemeCavage, func(r *http.Request) { r.Header.Set("Date", "Fri, 20 Nov 2026 10:00:01 GMT") }, []string{}},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprint(name, known), func(t *testing.T) {
				s := newStranger(t)
				if !known {
					require.NoError(t, s.write(func(ctx context.Context, tx *storage.Tx) error {
						return must.Err(tx.Peers().PruneFetched(ctx, tx.Now.Add(time.Hour)))
					}))
				}
				anonymous := s.node.post(nil)
				require.Equal(t, 200, s.fetchAs(carol, c.scheme, anonymous.URI, c.bend))
				require.Equal(t, 200, s.fetchAs(carol, c.scheme, anonymous.URI, c.bend))
				s.change(anonymous, protocol.Hidden, "hide")
				settle(t, s.node)
				s.tick.pass(time.Second)
				s.change(anonymous, protocol.Deleted, "delete")
				settle(t, s.node)
				require.Equal(t, c.want, s.types())
				ids := map[string]bool{}
				for _, a := range s.got {
					require.Equal(t, s.f.site.Anon(), a.Actor.One())
					require.Equal(t, anonymous.URI, a.ObjectID())
					ids[string(a.ID)] = true
				}
				require.Len(t, ids, len(c.want))
			})
		}
	}
	t.Run("a follower", func(t *testing.T) {
		f := newFollower(t)
		w := f.w
		gone, hidden, back := w.node.post(nil), w.node.post(nil), w.node.post(nil)
		require.Equal(t, 200, w.fetchAs(alice, schemeCavage, gone.URI, straight))
		w.change(gone, protocol.Deleted, "delete")
		w.change(hidden, protocol.Hidden, "hide")
		w.change(back, protocol.Hidden, "hide")
		w.change(back, protocol.Visible, "restore")
		settle(t, w.node)
		require.Equal(t, "Delete Delete", f.types(), "once each, and not what is visible again")
	})
	t.Run("at most so many", func(t *testing.T) {
		w := newWorld(t)
		anonymous := w.node.post(nil)
		w.f.growth.caps = map[storage.Stock]storage.Cap{storage.StockReaders: {Rows: 8, Bytes: 1 << 20}}
		other := w.node.post(nil)
		keep := func(post *protocol.StoredPost, n int) {
			require.NoError(t, w.f.keepReader(t.Context(), post.ID, fmt.Sprintf("https://h%d.example/u", n)))
		}
		count := func(post *protocol.StoredPost) (n int) {
			w.read(func(ctx context.Context, tx *storage.Tx) error {
				actors, err := tx.Posts().Readers(ctx, post.ID)
				n = len(actors)
				return err
			})
			return n
		}
		for n := range 20 {
			keep(anonymous, n)
			settle(t, w.node)
			w.tick.pass(time.Second)
		}
		keep(other, 1)
		settle(t, w.node)
		require.LessOrEqual(t, count(anonymous)+count(other), 9, "the oldest give way")
		require.Equal(t, 1, count(other))
		w.f.growth.caps = storage.Caps
		for n := range storage.MaxReaders + 5 {
			keep(other, n)
		}
		require.Equal(t, storage.MaxReaders, count(other))
	})
}
