package node_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/storage"
)

const since = "/api/public/since"

// answer has the owner of an agent answer a thread.
func answerThread(h *nodetest.House, token, threadID, text string) protocol.Said {
	h.T.Helper()
	a := h.Ask("POST", "/api/owner/threads/"+threadID+"/messages", fmt.Sprintf(`{"message":%q}`, text), "Authorization", token).Is(201)
	said := nodetest.As[protocol.Said](a)
	return said
}

// newsOf is a digest in few words.
func newsOf(d protocol.Digest) (words []string) {
	for _, p := range d.Replies {
		words = append(words, "reply "+p.Title)
	}
	for _, m := range d.Messages {
		words = append(words, string(m.Message.From)+" "+m.Handle+" "+m.Message.Text)
	}
	return words
}

func digest(h *nodetest.House, after string, ask func(path string) nodetest.Answer) (d protocol.Digest) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Numbered(context.Background()))
	path := since
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	a := ask(path).Is(200)
	require.Equal(h.T, "private, no-cache", a.Header().Get("Cache-Control"))
	a.Into(&d)
	require.NotEmpty(h.T, d.Next)
	require.NotNil(h.T, d.Threads)
	require.NotNil(h.T, d.Bids)
	require.NotNil(h.T, d.Requests)
	return d
}

// TestSince is an agent that comes back (contract §4), in each way of being
// someone: by an owner's token, a signature, a thread's read token.
func TestSince(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		asha, bob := h.Agent("asha", nodetest.OpenPolicy), h.Agent("bob", nodetest.OpenPolicy)
		carol := h.Hosted("carol")
		as := func(headers ...string) func(string) nodetest.Answer {
			return func(path string) nodetest.Answer { return h.Ask("GET", path, "", headers...) }
		}
		asAsha, asBob := as("Authorization", asha), as("Authorization", bob)
		asCarol := func(path string) nodetest.Answer { return h.AskSigned(carol, "GET", path, "") }
		require.Empty(t, newsOf(digest(h, "", asAsha)))

		var question, signed protocol.Post
		h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", asha).Into(&question)
		h.Signed(carol, nodetest.GoodPost, nil).Into(&signed)
		h.Reply(bob, question.ID, "by bob")
		h.Reply("", question.ID, "by nobody")
		h.Reply(asha, question.ID, "by herself")
		h.Reply("", signed.ID, "to carol")
		h.Reply("", h.Post("nobody's").ID, "to nobody")
		anonymous := begun(h, "asha", `{"message":"Hello","name":"Dev"}`)
		begun := nodetest.As[protocol.ContactReceipt](h.AskSigned(carol, "POST", "/api/public/agents/asha/contact", `{"message":"From carol"}`))

		first := digest(h, "", asAsha)
		require.Equal(t, []string{"reply by bob", "reply by nobody", "writer asha Hello", "writer asha From carol"}, newsOf(first))
		require.Equal(t, h.Base+"/board/"+first.Replies[0].ID, first.Replies[0].URL)
		require.False(t, first.More)
		require.Equal(t, []string{"reply to carol"}, newsOf(digest(h, "", asCarol)))
		require.Empty(t, newsOf(digest(h, "", asBob)))
		token := as("Authorization", "Bearer "+anonymous.ReadToken)
		require.Empty(t, newsOf(digest(h, "", token)), "what one has written is no news")

		answerThread(h, asha, anonymous.ThreadID, "Yes")
		answerThread(h, asha, begun.ThreadID, "Yes, carol")
		second := digest(h, first.Next, asAsha)
		require.Empty(t, newsOf(second))
		require.Equal(t, []string{"agent asha Yes"}, newsOf(digest(h, "", token)))
		require.Equal(t, []string{"reply to carol", "agent asha Yes, carol"}, newsOf(digest(h, "", asCarol)))

		place := digest(h, "", asCarol).Next
		h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/close", "{}", "Authorization", asha)
		closed := nodetest.As[protocol.Thread](h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/close", "{}", "Authorization", asha))
		require.Equal(t, []protocol.Move{{ID: begun.ThreadID, State: "closed", At: *closed.ClosedAt}}, digest(h, place, asCarol).Threads,
			"told once, though closed twice")
		require.Empty(t, digest(h, "", asAsha).Threads, "who closes a thread knows")
		require.Empty(t, digest(h, "", token).Threads)

		page := nodetest.As[protocol.Digest](h.Ask("GET", since+"?limit=3", "", "Authorization", asha))
		require.Len(t, newsOf(page), 3)
		require.True(t, page.More)
		require.Equal(t, []string{"writer asha From carol"}, newsOf(digest(h, page.Next, asAsha)))

		require.NoError(t, h.Admin().Operate(context.Background(), protocol.RemovePost.Operation, protocol.Decision{ID: first.Replies[0].ID, Reason: "spam"}, nil))
		require.Equal(t, []string{"reply by nobody", "writer asha Hello", "writer asha From carol"}, newsOf(digest(h, "", asAsha)), "what is gone is no news")
	})
}

func TestSince_Refused(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	asha := h.Agent("asha", nodetest.OpenPolicy)
	begun(h, "asha", `{"message":"Hello"}`)
	for name, headers := range map[string][]string{
		"nobody":               nil,
		"a proof":              {"Proof-Of-Work", h.Proof("contact")},
		"a token of no node":   {"Authorization", "Bearer stoa_nothing"},
		"a token of no thread": {"Authorization", "Bearer " + protocol.NewReadToken()},
	} {
		a := h.Ask("GET", since, "", headers...)
		require.Equal(t, protocol.Unauthorized, a.Problem().Code, name)
		require.Equal(t, []string{`Bearer realm="stoa"`}, a.Header().Values("WWW-Authenticate"), name)
		require.Contains(t, a.Header().Get("Accept-Signature"), "web-bot-auth")
	}
	p := h.Ask("GET", since+"?after=bogus", "", "Authorization", asha).Problem()
	require.Equal(t, protocol.InvalidCursor, p.Code)
	p = h.Ask("GET", since+"?readToken=stoa_read_x", "").Problem()
	require.Equal(t, "secret-in-url", p.Errors[0].Code)
	require.Equal(t, "GET, HEAD", h.Ask("POST", since, "{}").Header().Get("Allow"))

	limited := protocol.Caller{Standing: protocol.Session, Handles: []string{"asha"}, Scopes: []protocol.Scope{protocol.ScopePost}}
	require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		d, err := h.Feed.News(ctx, tx, limited, protocol.SinceQuery{})
		require.Empty(t, d.Messages, "a token for something else does not read the inbox")
		require.NotEmpty(t, d.Next)
		return err
	}))

	answerThread(h, h.Agent("ravi", nodetest.OpenPolicy), begun(h, "ravi", `{"message":"Hello"}`, "Authorization", asha).ThreadID, "Yes.")
	for scope, want := range map[protocol.Scope]int{protocol.ScopeNotify: 0, protocol.ScopePost: 1} {
		limited.Scopes = []protocol.Scope{scope}
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			d, err := h.Feed.News(ctx, tx, limited, protocol.SinceQuery{})
			require.Len(t, d.Messages, want, "answers are read with the scope they are asked for with: %s", scope)
			return err
		}))
	}
}

// TestSince_Writers asks at one process while both are written to: over all
// answers each reply is told once, and none is missed.
func TestSince_Writers(t *testing.T) {
	t.Parallel()
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		one := nodetest.New(t, change)
		two := one.Second(change)
		asha := one.Agent("asha", nodetest.OpenPolicy)
		post := nodetest.As[protocol.Post](one.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", asha))
		const writers, each = 8, 10
		pairs := make([]key.Pair, writers)
		for i := range pairs {
			pairs[i] = one.Hosted(fmt.Sprint("writer-", i))
		}
		var group sync.WaitGroup
		done := make(chan struct{})
		for w := range writers {
			group.Go(func() {
				for i := range each {
					a := []*nodetest.House{one, two}[w%2].Signed(pairs[w], fmt.Sprintf(`{"kind":"offer","title":"%d-%d","body":"b","inReplyTo":%q}`, w, i, post.ID), nil)
					require.Equal(t, 201, a.Code, "%s", a.Body)
				}
			})
		}
		go func() { group.Wait(); close(done) }()
		told := map[string]int{}
		after, over := "", false
		for {
			d := digest(two, after, func(path string) nodetest.Answer { return two.Ask("GET", path, "", "Authorization", asha) })
			for _, p := range d.Replies {
				told[p.Title]++
			}
			after = d.Next
			if over && !d.More {
				break
			}
			select {
			case <-done:
				over = true
			default:
			}
		}
		require.Len(t, told, writers*each)
		for title, n := range told {
			require.Equal(t, 1, n, title)
		}
	})
}

// TestSince_Forgotten is who comes back after longer than news are told: it
// learns that it has missed something, and continues from there.
func TestSince_Forgotten(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		asha := h.Agent("asha", nodetest.OpenPolicy)
		as := func(path string) nodetest.Answer { return h.Ask("GET", path, "", "Authorization", asha) }
		never := digest(h, "", as).Next
		begun(h, "asha", `{"message":"Hello"}`)
		seen := digest(h, never, as)
		require.False(t, seen.Missed)
		begun(h, "asha", `{"message":"Are you there?"}`)
		require.NoError(t, h.DB.Numbered(t.Context())) // a mark covers what readers can be told

		_, err := (operate.Upkeep{DB: h.DB}).Prune(t.Context(), storage.Job{})
		require.NoError(t, err)
		require.Equal(t, []string{"writer asha Hello", "writer asha Are you there?"}, newsOf(digest(h, "", as)), "none is old")
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.News().Prune(ctx, tx.Now) // as after a hundred and eighty days: there is a mark from before
			return err
		}))

		for name, c := range map[string]struct {
			after  string
			missed bool
		}{
			"from the first day":             {never, true},
			"from in between":                {seen.Next, true},
			"with no place":                  {"", false},
			"from behind what was forgotten": {digest(h, "", as).Next, false},
		} {
			d := digest(h, c.after, as)
			require.Empty(t, newsOf(d), name)
			require.Equal(t, c.missed, d.Missed, name)
		}
		next := digest(h, seen.Next, as).Next
		begun(h, "asha", `{"message":"Again"}`)
		d := digest(h, next, as)
		require.Equal(t, []string{"writer asha Again"}, newsOf(d))
		require.False(t, d.Missed, "a reader that was told continues")
	})
}

// TestSince_Unchanged: whoever asks again and has no news is told so in a line, until there are some.
func TestSince_Unchanged(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		asha, bob := h.Agent("asha", nodetest.OpenPolicy), h.Agent("bob", nodetest.OpenPolicy)
		begun(h, "asha", `{"message":"Hello","name":"Dev"}`)
		digest := func(after, token string) protocol.Digest {
			return digest(h, after, func(path string) nodetest.Answer { return h.Ask("GET", path, "", "Authorization", token) })
		}
		at := digest("", asha).Next
		poll := func(after, token, tag string) nodetest.Answer {
			return h.Ask("GET", since+"?after="+after, "", "Authorization", token, "If-None-Match", tag)
		}
		first := poll(at, asha, `"none"`)
		require.Equal(t, at, nodetest.As[protocol.Digest](first).Next, "it stays where it was")
		require.Equal(t, "private, no-cache", first.Header().Get("Cache-Control"))
		tag := first.Header().Get("ETag")
		begun(h, "bob", `{"message":"Hello, Bob","name":"Dev"}`) // news of others
		require.NoError(t, h.DB.Numbered(t.Context()))
		again := poll(at, asha, tag).Is(304)
		require.Empty(t, again.Body.String())
		require.Equal(t, tag, again.Header().Get("ETag"))
		require.Equal(t, 200, poll(at, asha, `"other"`).Code)
		require.Equal(t, 200, poll(at, bob, tag).Code, "it is another's")
		require.Equal(t, 401, poll(at, "Bearer none", tag).Code)

		begun(h, "asha", `{"message":"Are you there?","name":"Dev"}`)
		require.NoError(t, h.DB.Numbered(t.Context()))
		require.Equal(t, []string{"writer asha Are you there?"}, newsOf(nodetest.As[protocol.Digest](poll(at, asha, tag))))
	})
}
