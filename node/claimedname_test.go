package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
)

// oneDirectory is a key directory of one key that calls itself by the name.
type oneDirectory struct {
	pair key.Pair
	name string
}

func (d oneDirectory) Await(context.Context, string, httpsig.AgentRef, string, time.Time) (httpsig.Key, string, error) {
	k, err := httpsig.NewKey(d.pair.Public())
	return k, d.name, err
}

// directed sends a request signed with a key of a key directory at bot.example.
func (h *house) directed(pair key.Pair, method, path, body string) answer {
	h.t.Helper()
	r := httptest.NewRequest(method, h.Base+path, strings.NewReader(body))
	r.RequestURI = path
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Signature-Agent", `sig1="https://bot.example"`)
	target, err := httpsig.ParseTarget(h.Base)
	require.NoError(h.t, err)
	require.NoError(h.t, httpsig.SignRequest(r, target, []byte(body), httpsig.SignOptions{Key: pair.Signer()}))
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return answer{w, h.t}
}

// TestClaimedName: in every room that takes a name, a verified author is called by what this node
// knows, and its own word for itself is claimedName, without a mark (contract §9).
func TestClaimedName(t *testing.T) {
	t.Parallel()
	anyEngine(t, func(t *testing.T, change func(*Config)) {
		h := newHouse(t, change)
		h.hosted("asha")
		d := &doors{t: t, house: h, token: h.ownerToken("asha")}
		d.takesMeetings()
		agent, bot := h.agents(1)[0], newPair(t)
		h.meeting.Mail = noMeetingMail
		h.table.Gate.Directories = oneDirectory{bot, "Asha Card"}
		byAgent := func(path, body string) []byte {
			got := agent.ask(h, "POST", path, body)
			require.Less(t, got.Status, 300, "%s", got.Raw)
			return got.Raw
		}
		bySite := func(path, body string) []byte {
			got := h.directed(bot, "POST", path, body)
			require.Less(t, got.Code, 300, "%s", got.Body)
			return got.Body.Bytes()
		}
		for _, who := range []struct {
			known string
			send  func(path, body string) []byte
		}{{"Agent 1", byAgent}, {"bot.example", bySite}} {
			d.reopen(protocol.PayUPI)
			check := func(what string, a protocol.Author, claimed string) {
				t.Helper()
				require.Equal(t, []any{who.known, claimed, true}, []any{a.Name, a.ClaimedName, a.Verified}, what)
			}
			var p protocol.Post
			require.NoError(t, json.Unmarshal(who.send("/api/public/board",
				`{"kind":"offer","title":"Looms of `+who.known+`","body":"Two.","name":"Asha Menon"}`), &p))
			check("the answer", p.Author, "Asha Menon")
			h.shownPost(p, who.known)

			var begun protocol.ContactReceipt
			require.NoError(t, json.Unmarshal(who.send("/api/public/agents/asha/contact", `{"message":"Hello `+who.known+`","name":"Asha Menon"}`), &begun))
			who.send("/api/public/threads/"+begun.ThreadID+"/messages", `{"message":"And more."}`)
			var talk protocol.Conversation
			d.good("GET", "/api/public/threads/"+begun.ThreadID, "", d.token, &talk)
			check("the thread", talk.Thread.Writer, "Asha Menon")
			for _, m := range talk.Messages.Items {
				check("a message", m.Author, "Asha Menon")
			}

			made := bidID.FindString(string(who.send("/api/public/agents/asha/attention/bids", `{"amount":500,"message":"Yarn.","name":"Asha Menon"}`)))
			d.good("POST", "/api/owner/bids/"+made+"/confirm", fmt.Sprintf(`{"utr":%q}`, newUTR()), d.token, nil)
			d.good("POST", "/api/owner/bids/"+made+"/approve", `{}`, d.token, nil)
			var board protocol.AttentionBoard
			h.ask("GET", "/api/public/agents/asha/attention", "").into(&board)
			check("the live bid", board.Bids[0].Bidder, "Asha Menon")
			var news protocol.Page[protocol.FeedItem]
			h.ask("GET", "/api/public/feed?types=attention_bid", "").into(&news)
			check("its feed item", news.Items[0].Actor, "Asha Menon")
			require.NotContains(t, news.Items[0].Summary, "Asha Menon")

			var asked protocol.MeetingReceipt
			require.NoError(t, json.Unmarshal(who.send("/api/public/agents/asha/meetings", fmt.Sprintf(
				`{"requester":"Asha Menon","email":%q,"purpose":"Yarn.","durationMin":30,"startsAt":%q}`, newMailbox(),
				time.Now().UTC().Add(48*time.Hour).Truncate(time.Hour).Format(time.RFC3339))), &asked))
			var own protocol.OwnMeeting
			d.good("GET", "/api/owner/meetings/"+asked.Request.ID, "", d.token, &own)
			check("the meeting", own.Author, "Asha Menon")

			p = protocol.Post{}
			require.NoError(t, json.Unmarshal(who.send("/api/public/board", `{"kind":"offer","title":"Nameless","body":"Two."}`), &p))
			check("without a name", p.Author, map[string]string{"bot.example": "Asha Card"}[who.known])
		}
		var found protocol.Page[protocol.Post]
		h.ask("GET", "/api/public/board?verifiedOnly=true&q=menon", "").into(&found)
		require.Empty(t, found.Items, "nobody is found by the name that he claims")

		by := agent.do("/a2a/asha", "SendMessage", `{"message":{"messageId":"n","role":"ROLE_USER","parts":[{"data":{"operation":"post_to_board",`+
			`"input":{"kind":"offer","title":"Spun","body":"Two.","name":"Asha Menon"}}}]}}`)
		require.Contains(t, string(by.Raw), `"name":"Agent 1"`)
		require.Contains(t, string(by.Raw), `"claimedName":"Asha Menon"`)
	})
}

// shownPost checks a post by a verified author that calls itself Asha Menon, wherever it is shown.
func (h *house) shownPost(p protocol.Post, known string) {
	h.t.Helper()
	var list protocol.Page[protocol.Post]
	h.ask("GET", "/api/public/board?verifiedOnly=true", "").into(&list)
	require.Equal(h.t, p.Author, list.Items[0].Author)
	var news protocol.Page[protocol.FeedItem]
	h.ask("GET", "/api/public/feed?types=board_post", "").into(&news)
	require.Equal(h.t, []string{known, "Asha Menon"}, []string{news.Items[0].Actor.Name, news.Items[0].Actor.ClaimedName})
	quotes := strings.NewReplacer("“", "", "”", "") // Markdown has them around names
	for _, at := range [][2]string{{"/board/" + p.ID, "text/html"}, {"/board", "text/html"}, {"/feed", "text/html"}, {"/board/" + p.ID, "text/markdown"}} {
		path := at[0]
		page := h.ask("GET", path, "", "Accept", at[1])
		require.Equal(h.t, 200, page.Code, path)
		text := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(quotes.Replace(page.Body.String()), " ")), " ")
		require.Contains(h.t, text, "calls itself Asha Menon", path)
		require.NotContains(h.t, text, "by Asha Menon", path)
		require.NotContains(h.t, text, "Asha Menon verified", path)
	}
	require.NotContains(h.t, h.ask("GET", "/feed.atom", "").Body.String(), "Asha Menon")
	note := h.ask("GET", strings.TrimPrefix(p.URI, h.Base), "", "Accept", "application/activity+json")
	require.Equal(h.t, http.StatusOK, note.Code)
	var o struct {
		Content string
		Author  struct{ Name string } `json:"stoa:author"`
	}
	note.into(&o)
	require.Contains(h.t, o.Content, "<p>"+known+" (")
	require.Contains(h.t, o.Content, ", calls itself Asha Menon):")
	require.Equal(h.t, "Asha Menon", o.Author.Name, "what was signed: the reader decides who that is")
}

// TestCopyAsActivity: who asks for the page of another node's post as ActivityPub is led to the post
// itself, which this node does not serve.
func TestCopyAsActivity(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const uri = "https://b.example/ap/posts/1"
	ravi := protocol.Author{Name: "Ravi", Node: new("b.example"), Actor: new("https://b.example/ap/anon"), Method: protocol.ByFederation}
	id := h.receive(uri, ravi, "Yarn", "Two.")
	own := h.post("Looms")
	for at, want := range map[string]string{id: uri, own.ID: own.URI, protocol.NewID(protocol.PostID, time.Now()): ""} {
		a := h.ask("GET", "/board/"+at, "", "Accept", "application/activity+json")
		if want == "" {
			want = h.Base + "/ap/posts/" + at
		}
		require.Equal(t, 303, a.Code)
		require.Equal(t, want, a.Header().Get("Location"))
	}
}
