package node_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// FedifyEnv names the Node that runs a server made with Fedify; make test sets it.
const FedifyEnv = "STOA_TEST_FEDIFY"

// A fedify is a server of the fediverse whose people follow nobody.
type fedify struct {
	t    *testing.T
	base string
	host string
}

// told is what one of them was sent.
type told struct {
	Type, ID, Actor, Object, To, InReplyTo, Content, Result string
	Languages, Mentions, Addressed                          []string
}

func startFedify(t *testing.T) *fedify {
	t.Helper()
	program := os.Getenv(FedifyEnv)
	if program == "" {
		t.Skipf("%s names no Node: no server made with Fedify was talked to (make test installs it)", FedifyEnv)
	}
	cmd := exec.Command(program, "peer.mjs")
	cmd.Dir = "../federation/testdata/peer"
	var log bytes.Buffer
	cmd.Stderr = &log
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Fedify: %s", &log)
		}
	})
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	base := strings.TrimSpace(line)
	return &fedify{t, base, strings.TrimPrefix(base, "http://")}
}

// do has someone there do something.
func (f *fedify) do(deed string, in map[string]any, out any) {
	f.t.Helper()
	raw := must.Get(json.Marshal(in))(f.t)
	res := must.Get(http.Post(f.base+"/test/"+deed, "application/json", bytes.NewReader(raw)))(f.t)
	defer res.Body.Close()
	var body bytes.Buffer
	must.Get(body.ReadFrom(res.Body))(f.t)
	require.Equal(f.t, 200, res.StatusCode, "%s: %s", deed, &body)
	if out != nil {
		require.NoError(f.t, json.Unmarshal(body.Bytes(), out))
	}
}

// user is the actor of someone there.
func (f *fedify) user(name string) string { return f.base + "/users/" + name }

// sent waits until someone was sent something about an object.
func (f *fedify) sent(to, kind, object string) (found told) {
	f.t.Helper()
	f.wait(func() bool {
		var all struct{ Received []told }
		f.do("received", nil, &all)
		i := slices.IndexFunc(all.Received, func(a told) bool { return a.To == to && a.Type == kind && a.Object == object })
		if i >= 0 {
			found = all.Received[i]
		}
		return i >= 0
	}, "%s was not sent the %s of %s", to, kind, object)
	return found
}

func (f *fedify) wait(until func() bool, what string, args ...any) {
	f.t.Helper()
	for end := time.Now().Add(4 * time.Minute); !until(); time.Sleep(50 * time.Millisecond) { // minutes may pass between two tries
		if time.Now().After(end) {
			var all any
			f.do("received", nil, &all)
			require.Failf(f.t, "waited in vain", what+"\nFedify has %v", append(args, all)...)
		}
	}
}

// TestFedify has people of another server, who follow nothing, talk with the
// board. Each step ends when its effect shows on the other side.
func TestFedify(t *testing.T) {
	t.Parallel()
	f := startFedify(t)
	h := nodetest.Served(t)
	h.Work()
	life, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Federation().Run(life) }()
	t.Cleanup(func() { stop(); <-ended })
	h.PutOpen("asha", func(d *protocol.ProfileDraft) { d.Languages = []string{"hi", "en"} })
	bearer := "Bearer " + h.OwnerToken("asha")
	operator := h.Operator()

	text := "Hand-made paper."
	post := func(title, parent string) (p protocol.Post) {
		body := nodetest.Encoded(protocol.NewPost{Kind: protocol.Offer, Title: title, Body: text, InReplyTo: parent})
		a := h.Ask("POST", "/api/public/board", string(body), "Authorization", bearer).Is(201)
		a.Into(&p)
		return p
	}
	root := post("Paper", "")
	inbox := h.Base + "/ap/agents/asha/inbox"
	reply := func(by, id string) (uri string) {
		var out struct{ Note string }
		f.do("reply", map[string]any{"by": by, "id": id, "post": root.URI, "inbox": inbox}, &out)
		return out.Note
	}
	// shown waits until a reply is on the board.
	shown := func(uri string) (found protocol.Post) {
		t.Helper()
		f.wait(func() bool {
			p := nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+root.ID, ""))
			i := slices.IndexFunc(p.Replies.Items, func(r protocol.Post) bool { return r.URI == uri })
			if i >= 0 {
				found = p.Replies.Items[i]
			}
			return i >= 0
		}, "%s is not on the board", uri)
		return found
	}

	// Dora's server does not answer for her key: she is to try again, and does.
	f.do("away", map[string]any{"by": "dora", "on": true}, nil)
	late := reply("dora", "late")
	f.wait(func() bool {
		var all struct{ RetryAfters []string }
		f.do("received", nil, &all)
		return len(all.RetryAfters) > 0
	}, "Dora was not asked to try again")

	var read struct{ Type, ID string }
	// Alice asks, and is answered in Hindi with a mention; the answer is taken back.
	question := shown(reply("alice", "question"))
	require.Equal(t, f.host, *question.Node)
	answer := post("INR 6 a sheet", question.ID)
	created := f.sent("alice", "Create", answer.URI)
	require.Equal(t, question.URI, created.InReplyTo)
	require.Equal(t, []string{f.user("alice")}, created.Mentions)
	require.Equal(t, []string{"hi"}, created.Languages)
	require.Contains(t, created.Content, "INR 6 a sheet")
	require.Equal(t, 204, h.Ask("DELETE", "/api/public/board/"+answer.ID, "", "Authorization", bearer).Code)
	require.Equal(t, created.Actor, f.sent("alice", "Delete", answer.URI).Actor)

	// Alice changes what she wrote, and is told when an answer is changed; a quote of the post is approved.
	f.do("edit", map[string]any{"by": "alice", "id": "question", "text": "And for 200 sheets?", "inbox": inbox}, nil)
	f.wait(func() bool { return shown(question.URI).Body == "And for 200 sheets?" }, "the changed question is not on the board")
	require.NotNil(t, shown(question.URI).EditedAt)
	price := post("INR 7 a sheet", question.ID)
	f.sent("alice", "Create", price.URI)
	h.Ask("PUT", "/api/public/board/"+price.ID, `{"kind":"offer","title":"INR 7 a sheet","body":"INR 6.50 above 100."}`, "Authorization", bearer).Is(200)
	require.Contains(t, f.sent("alice", "Update", price.URI).Content, "INR 6.50 above 100.")
	var quote struct{ Note string }
	f.do("quote", map[string]any{"by": "alice", "id": "quote", "post": root.URI, "inbox": inbox}, &quote)
	f.wait(func() bool {
		return nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+root.ID, "")).Post.Quotes == 1
	}, "the quote is not counted")
	stamp := h.Base + "/ap/posts/" + root.ID + "/quotes/"
	f.wait(func() bool {
		var all struct{ Received []told }
		f.do("received", nil, &all)
		i := slices.IndexFunc(all.Received, func(a told) bool { return a.To == "alice" && a.Type == "Accept" && strings.HasPrefix(a.Result, stamp) })
		if i >= 0 {
			stamp = all.Received[i].Result
		}
		return i >= 0
	}, "the quote was not approved")
	require.Equal(t, 200, h.Ask("GET", strings.TrimPrefix(stamp, h.Base), "").Code)

	// The operator hides an answer and restores it.
	hidden := post("INR 5 a sheet", question.ID)
	first := f.sent("alice", "Create", hidden.URI)
	operator.Do(200, "POST", "/api/operator/posts/"+hidden.ID+"/hide", map[string]string{"reason": "price"}, nil)
	f.sent("alice", "Delete", hidden.URI)
	operator.Do(200, "POST", "/api/operator/posts/"+hidden.ID+"/restore", map[string]string{}, nil)
	f.wait(func() bool {
		var all struct{ Received []told }
		f.do("received", nil, &all)
		return slices.ContainsFunc(all.Received, func(a told) bool { return a.Type == "Create" && a.Object == hidden.URI && a.ID != first.ID })
	}, "the restored answer was not sent anew")

	// Who is named in the text is mentioned, and sent it once a server.
	wish := shown(reply("carol", "wish"))
	text = "For @carol@" + f.host + " and @alice@" + f.host + "."
	named := post("Both of you", root.ID)
	require.Equal(t, []string{f.user("carol"), f.user("alice")}, f.sent("carol", "Create", named.URI).Mentions)

	// Carol reports the post: the operator reads it in the queue.
	f.do("report", map[string]any{"by": "carol", "post": root.URI, "inbox": inbox, "reason": "too dear"}, nil)
	f.wait(func() bool {
		var queue protocol.Page[protocol.ReviewItem]
		operator.Do(200, "GET", "/api/operator/queue", nil, &queue)
		return len(queue.Items) == 1 && queue.Items[0].Post.ID == root.ID && queue.Items[0].Open == 0 &&
			queue.Items[0].Reports[0].Reason == "too dear" && *queue.Items[0].Reports[0].Node == f.host
	}, "the report is not in the queue")

	// Bob deletes his account: his document is gone, and what he wrote goes too.
	written := shown(reply("bob", "farewell"))
	f.do("leave", map[string]any{"by": "bob", "inbox": inbox}, nil)
	f.wait(func() bool { return h.Ask("GET", "/api/public/board/"+written.ID, "").Code == 410 }, "%s is still on the board", written.URI)

	// Carol fetches a visitor's post, which is sent to nobody, and is told of its end.
	anonymous := h.Post("Looms")
	f.do("read", map[string]any{"by": "carol", "address": anonymous.URI}, &read)
	require.Equal(t, "Note "+anonymous.URI, read.Type+" "+read.ID)
	f.wait(func() bool {
		var readers []string
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
			readers, err = tx.Posts().Readers(ctx, anonymous.ID)
			return err
		}))
		return slices.Equal(readers, []string{f.user("carol")})
	}, "Carol's read was not noted")
	operator.Do(200, "POST", "/api/operator/posts/"+anonymous.ID+"/delete", map[string]string{}, nil)
	require.Equal(t, h.Base+"/ap/anon", f.sent("carol", "Delete", anonymous.URI).Actor)

	// Carol writes to asha alone: it is a thread. The answer is hers alone too, mentions her, and she can fetch it; her answer continues the thread.
	var letter struct{ Note string }
	f.do("write", map[string]any{"by": "carol", "id": "private", "agent": h.Base + "/ap/agents/asha"}, &letter)
	thread := func() (all []string) {
		threads := nodetest.As[protocol.Page[protocol.Thread]](h.Ask("GET", "/api/owner/threads", "", "Authorization", bearer))
		for _, t := range threads.Items {
			c := nodetest.As[protocol.Conversation](h.Ask("GET", "/api/owner/threads/"+t.ThreadID, "", "Authorization", bearer))
			for _, m := range c.Messages.Items {
				all = append(all, t.ThreadID, m.Text)
			}
		}
		return all
	}
	f.wait(func() bool { return len(thread()) == 2 }, "the message is in no thread")
	id := thread()[0]
	require.Equal(t, []string{id, "private by carol"}, thread())
	said := answerThread(h, bearer, id, "In private too.")
	private := f.sent("carol", "Create", h.Base+"/ap/messages/"+said.Message.ID)
	require.Equal(t, [][]string{{f.user("carol")}, {f.user("carol")}}, [][]string{private.Mentions, private.Addressed})
	require.Equal(t, letter.Note, private.InReplyTo)
	require.Contains(t, private.Content, `class="u-url mention"`)
	f.do("read", map[string]any{"by": "carol", "address": private.Object}, &read)
	require.Equal(t, "Note "+private.Object, read.Type+" "+read.ID)
	require.Equal(t, 401, h.Ask("GET", "/ap/messages/"+said.Message.ID, "").Code)
	f.do("write", map[string]any{"by": "carol", "id": "thanks", "agent": h.Base + "/ap/agents/asha", "answers": private.Object}, nil)
	f.wait(func() bool { return len(thread()) == 6 }, "the answer is in no thread")
	require.Equal(t, []string{id, "private by carol", id, "In private too.", id, "thanks by carol"}, thread())

	// Carol follows asha: her posts come from her. She likes and boosts one, then thinks better of it.
	agent := h.Base + "/ap/agents/asha"
	act := func(kind, object string, undo bool) {
		f.do("act", map[string]any{"by": "carol", "kind": kind, "object": object, "inbox": inbox, "undo": undo}, nil)
	}
	act("Follow", agent, false)
	f.wait(func() bool {
		var all struct{ Received []told }
		f.do("received", nil, &all)
		return slices.ContainsFunc(all.Received, func(a told) bool { return a.To == "carol" && a.Type == "Accept" && a.Actor == agent })
	}, "the follow was not accepted")
	text = "Wove them myself."
	news := post("New looms", "")
	require.Equal(t, agent, f.sent("carol", "Create", news.URI).Actor)
	counts := func(likes, shares int) {
		f.wait(func() bool {
			p := nodetest.As[protocol.PostWithReplies](h.Ask("GET", "/api/public/board/"+news.ID, ""))
			return p.Post.Likes == likes && p.Post.Shares == shares
		}, "%d likes and %d boosts are not shown", likes, shares)
	}
	act("Like", news.URI, false)
	act("Announce", news.URI, false)
	counts(1, 1)
	act("Like", news.URI, true)
	act("Announce", news.URI, true)
	counts(0, 0)
	act("Follow", agent, true)
	f.wait(func() bool {
		page := nodetest.As[protocol.Page[protocol.Follower]](h.Ask("GET", "/api/owner/followers", "", "Authorization", bearer))
		return len(page.Items) == 0
	}, "the follow was not undone")

	// The page of the board leads to its actor, whose outbox can be read to the end.
	f.do("read", map[string]any{"by": "carol", "address": h.Base + "/board"}, &read)
	require.Equal(t, "Group "+h.Base+"/ap/board", read.Type+" "+read.ID)
	f.do("away", map[string]any{"by": "dora", "on": false}, nil)
	shown(late)
	var outbox struct {
		Type  string
		Total int
		Items []struct{ Type, ID, Published, Object string }
	}
	f.do("list", map[string]any{"address": h.Base + "/ap/board/outbox"}, &outbox)
	var listed []string
	for _, item := range outbox.Items {
		require.Equal(t, "Announce", item.Type)
		require.NotEmpty(t, item.Published)
		require.Equal(t, 200, h.Ask("GET", strings.TrimPrefix(item.ID, h.Base), "").Code, item.ID)
		listed = append(listed, item.Object)
	}
	require.ElementsMatch(t, []string{root.URI, question.URI, price.URI, hidden.URI, wish.URI, named.URI, late, news.URI}, listed)

	var all struct{ Received []told }
	f.do("received", nil, &all)
	require.Len(t, all.Received, 13, "nothing else, and nothing twice: %v", all.Received)
}
