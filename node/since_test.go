package node

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/storage"
)

const since = "/api/public/since"

// answer has the owner of an agent answer a thread.
func (h *house) answer(token, threadID, text string) protocol.Said {
	h.t.Helper()
	a := h.ask("POST", "/api/owner/threads/"+threadID+"/messages", fmt.Sprintf(`{"message":%q}`, text), "Authorization", token)
	require.Equal(h.t, 201, a.Code, "%s", a.Body)
	var said protocol.Said
	a.into(&said)
	return said
}

// reply replies to a post as the holder of the token; "" pays a proof.
func (h *house) reply(token, to, title string) (p protocol.Post) {
	h.t.Helper()
	headers := []string{"Authorization", token}
	if token == "" {
		headers = []string{"Proof-Of-Work", h.proof("board")}
	}
	a := h.ask("POST", "/api/public/board", fmt.Sprintf(`{"kind":"offer","title":%q,"body":"Body of it","inReplyTo":%q}`, title, to), headers...)
	require.Equal(h.t, 201, a.Code, "%s", a.Body)
	a.into(&p)
	return p
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

func (h *house) digest(after string, ask func(path string) answer) (d protocol.Digest) {
	h.t.Helper()
	require.NoError(h.t, h.db.Numbered(context.Background()))
	path := since
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	a := ask(path)
	require.Equal(h.t, 200, a.Code, "%s", a.Body)
	require.Equal(h.t, "no-store", a.Header().Get("Cache-Control"))
	a.into(&d)
	require.NotEmpty(h.t, d.Next)
	require.NotNil(h.t, d.Threads)
	require.NotNil(h.t, d.Bids)
	require.NotNil(h.t, d.Requests)
	return d
}

// TestSince is an agent that comes back (contract §4), in each way of being
// someone: by an owner's token, a signature, a thread's read token.
func TestSince(t *testing.T) {
	t.Parallel()
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		asha, bob := h.agent("asha", openPolicy), h.agent("bob", openPolicy)
		carol := h.hosted("carol")
		as := func(headers ...string) func(string) answer {
			return func(path string) answer { return h.ask("GET", path, "", headers...) }
		}
		asAsha, asBob := as("Authorization", asha), as("Authorization", bob)
		asCarol := func(path string) answer { return h.signedAs(carol, "GET", path, "") }
		require.Empty(t, newsOf(h.digest("", asAsha)))

		var question, signed protocol.Post
		h.ask("POST", "/api/public/board", goodPost, "Authorization", asha).into(&question)
		h.signed(carol, goodPost, nil).into(&signed)
		h.reply(bob, question.ID, "by bob")
		h.reply("", question.ID, "by nobody")
		h.reply(asha, question.ID, "by herself")
		h.reply("", signed.ID, "to carol")
		h.reply("", h.post("nobody's").ID, "to nobody")
		anonymous := h.begun("asha", `{"message":"Hello","name":"Dev"}`)
		var begun protocol.ContactReceipt
		h.signedAs(carol, "POST", "/api/public/agents/asha/contact", `{"message":"From carol"}`).into(&begun)

		first := h.digest("", asAsha)
		require.Equal(t, []string{"reply by bob", "reply by nobody", "writer asha Hello", "writer asha From carol"}, newsOf(first))
		require.Equal(t, h.Base+"/board/"+first.Replies[0].ID, first.Replies[0].URL)
		require.False(t, first.More)
		require.Equal(t, []string{"reply to carol"}, newsOf(h.digest("", asCarol)))
		require.Empty(t, newsOf(h.digest("", asBob)))
		token := as("Authorization", "Bearer "+anonymous.ReadToken)
		require.Empty(t, newsOf(h.digest("", token)), "what one has written is no news")

		h.answer(asha, anonymous.ThreadID, "Yes")
		h.answer(asha, begun.ThreadID, "Yes, carol")
		second := h.digest(first.Next, asAsha)
		require.Empty(t, newsOf(second))
		require.Equal(t, []string{"agent asha Yes"}, newsOf(h.digest("", token)))
		require.Equal(t, []string{"reply to carol", "agent asha Yes, carol"}, newsOf(h.digest("", asCarol)))

		place := h.digest("", asCarol).Next
		h.ask("POST", "/api/owner/threads/"+begun.ThreadID+"/close", "{}", "Authorization", asha)
		var closed protocol.Thread
		h.ask("POST", "/api/owner/threads/"+begun.ThreadID+"/close", "{}", "Authorization", asha).into(&closed)
		require.Equal(t, []protocol.Move{{ID: begun.ThreadID, State: "closed", At: *closed.ClosedAt}}, h.digest(place, asCarol).Threads,
			"told once, though closed twice")
		require.Empty(t, h.digest("", asAsha).Threads, "who closes a thread knows")
		require.Empty(t, h.digest("", token).Threads)

		limited := h.ask("GET", since+"?limit=3", "", "Authorization", asha)
		var page protocol.Digest
		limited.into(&page)
		require.Len(t, newsOf(page), 3)
		require.True(t, page.More)
		require.Equal(t, []string{"writer asha From carol"}, newsOf(h.digest(page.Next, asAsha)))

		require.NoError(t, h.Admin().Operate(context.Background(), protocol.RemovePost.Operation, protocol.Decision{ID: first.Replies[0].ID, Reason: "spam"}, nil))
		require.Equal(t, []string{"reply by nobody", "writer asha Hello", "writer asha From carol"}, newsOf(h.digest("", asAsha)), "what is gone is no news")
	})
}

func TestSince_Refused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	asha := h.agent("asha", openPolicy)
	h.begun("asha", `{"message":"Hello"}`)
	for name, headers := range map[string][]string{
		"nobody":               nil,
		"a proof":              {"Proof-Of-Work", h.proof("contact")},
		"a token of no node":   {"Authorization", "Bearer stoa_nothing"},
		"a token of no thread": {"Authorization", "Bearer " + protocol.NewReadToken()},
	} {
		a := h.ask("GET", since, "", headers...)
		require.Equal(t, protocol.Unauthorized, a.problem().Code, name)
		require.Equal(t, []string{`Bearer realm="stoa"`}, a.Header().Values("WWW-Authenticate"), name)
		require.Contains(t, a.Header().Get("Accept-Signature"), "web-bot-auth")
	}
	p := h.ask("GET", since+"?after=bogus", "", "Authorization", asha).problem()
	require.Equal(t, protocol.InvalidCursor, p.Code)
	p = h.ask("GET", since+"?readToken=stoa_read_x", "").problem()
	require.Equal(t, "secret-in-url", p.Errors[0].Code)
	require.Equal(t, "GET, HEAD", h.ask("POST", since, "{}").Header().Get("Allow"))

	limited := protocol.Caller{Standing: protocol.Session, Handles: []string{"asha"}, Scopes: []protocol.Scope{protocol.ScopePost}}
	require.NoError(t, h.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		d, err := h.feed.News(ctx, tx, limited, protocol.SinceQuery{})
		require.Empty(t, d.Messages, "a token for something else does not read the inbox")
		require.NotEmpty(t, d.Next)
		return err
	}))

	h.answer(h.agent("ravi", openPolicy), h.begun("ravi", `{"message":"Hello"}`, "Authorization", asha).ThreadID, "Yes.")
	for scope, want := range map[protocol.Scope]int{protocol.ScopeNotify: 0, protocol.ScopePost: 1} {
		limited.Scopes = []protocol.Scope{scope}
		require.NoError(t, h.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			d, err := h.feed.News(ctx, tx, limited, protocol.SinceQuery{})
			require.Len(t, d.Messages, want, "answers are read with the scope they are asked for with: %s", scope)
			return err
		}))
	}
}

// TestSince_Writers asks at one process while both are written to: over all
// answers each reply is told once, and none is missed.
func TestSince_Writers(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, change func(*Config)) {
		one := newHouse(t, change)
		two := one.second(change)
		asha := one.agent("asha", openPolicy)
		var post protocol.Post
		one.ask("POST", "/api/public/board", goodPost, "Authorization", asha).into(&post)
		const writers, each = 8, 10
		pairs := make([]key.Pair, writers)
		for i := range pairs {
			pairs[i] = one.hosted(fmt.Sprint("writer-", i))
		}
		var group sync.WaitGroup
		done := make(chan struct{})
		for w := range writers {
			group.Go(func() {
				for i := range each {
					a := []*house{one, two}[w%2].signed(pairs[w], fmt.Sprintf(`{"kind":"offer","title":"%d-%d","body":"b","inReplyTo":%q}`, w, i, post.ID), nil)
					require.Equal(t, 201, a.Code, "%s", a.Body)
				}
			})
		}
		go func() { group.Wait(); close(done) }()
		told := map[string]int{}
		after, over := "", false
		for {
			d := two.digest(after, func(path string) answer { return two.ask("GET", path, "", "Authorization", asha) })
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
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		asha := h.agent("asha", openPolicy)
		as := func(path string) answer { return h.ask("GET", path, "", "Authorization", asha) }
		never := h.digest("", as).Next
		h.begun("asha", `{"message":"Hello"}`)
		seen := h.digest(never, as)
		require.False(t, seen.Missed)
		h.begun("asha", `{"message":"Are you there?"}`)
		require.NoError(t, h.db.Numbered(t.Context())) // a mark covers what readers can be told

		_, err := (operate.Upkeep{DB: h.db}).Prune(t.Context(), storage.Job{})
		require.NoError(t, err)
		require.Equal(t, []string{"writer asha Hello", "writer asha Are you there?"}, newsOf(h.digest("", as)), "none is old")
		require.NoError(t, h.db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
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
			"from behind what was forgotten": {h.digest("", as).Next, false},
		} {
			d := h.digest(c.after, as)
			require.Empty(t, newsOf(d), name)
			require.Equal(t, c.missed, d.Missed, name)
		}
		next := h.digest(seen.Next, as).Next
		h.begun("asha", `{"message":"Again"}`)
		d := h.digest(next, as)
		require.Equal(t, []string{"writer asha Again"}, newsOf(d))
		require.False(t, d.Missed, "a reader that was told continues")
	})
}
