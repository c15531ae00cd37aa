package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
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
func directed(h *nodetest.House, pair key.Pair, method, path, body string) nodetest.Answer {
	h.T.Helper()
	return h.AskSigned(pair, method, path, body, "Signature-Agent", `sig1="https://bot.example"`)
}

// TestClaimedName: in every room that takes a name, a verified author is called by what this node
// knows, and its own word for itself is claimedName, without a mark (contract §9).
func TestClaimedName(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		h.Hosted("asha")
		d := &nodetest.Doors{T: t, House: h, Token: h.OwnerToken("asha")}
		takesMeetings(d)
		agent, bot := h.Agents(1)[0], nodetest.NewPair(t)
		h.Meeting.Mail = nodetest.NoMeetingMail
		h.Table.Gate.Directories = oneDirectory{bot, "Asha Card"}
		byAgent := func(path, body string) []byte {
			got := askAs(agent, h, "POST", path, body)
			require.Less(t, got.Status, 300, "%s", got.Raw)
			return got.Raw
		}
		bySite := func(path, body string) []byte {
			got := directed(h, bot, "POST", path, body)
			require.Less(t, got.Code, 300, "%s", got.Body)
			return got.Body.Bytes()
		}
		for _, who := range []struct {
			known string
			send  func(path, body string) []byte
		}{{"Agent 1", byAgent}, {"bot.example", bySite}} {
			d.Reopen(protocol.PayUPI)
			check := func(what string, a protocol.Author, claimed string) {
				t.Helper()
				require.Equal(t, []any{who.known, claimed, true}, []any{a.Name, a.ClaimedName, a.Verified}, what)
			}
			var p protocol.Post
			require.NoError(t, json.Unmarshal(who.send("/api/public/board",
				`{"kind":"offer","title":"Looms of `+who.known+`","body":"Two.","name":"Asha Menon"}`), &p))
			check("the answer", p.Author, "Asha Menon")
			shownPost(h, p, who.known)

			var begun protocol.ContactReceipt
			require.NoError(t, json.Unmarshal(who.send("/api/public/agents/asha/contact", `{"message":"Hello `+who.known+`","name":"Asha Menon"}`), &begun))
			who.send("/api/public/threads/"+begun.ThreadID+"/messages", `{"message":"And more."}`)
			var talk protocol.Conversation
			d.Good("GET", "/api/public/threads/"+begun.ThreadID, "", d.Token, &talk)
			check("the thread", talk.Thread.Writer, "Asha Menon")
			for _, m := range talk.Messages.Items {
				check("a message", m.Author, "Asha Menon")
			}

			made := bidID.FindString(string(who.send("/api/public/agents/asha/attention/bids", `{"amount":500,"message":"Yarn.","name":"Asha Menon"}`)))
			d.Good("POST", "/api/owner/bids/"+made+"/confirm", fmt.Sprintf(`{"utr":%q}`, nodetest.NewUTR()), d.Token, nil)
			d.Good("POST", "/api/owner/bids/"+made+"/approve", `{}`, d.Token, nil)
			board := nodetest.As[protocol.AttentionBoard](h.Ask("GET", "/api/public/agents/asha/attention", ""))
			check("the live bid", board.Bids[0].Bidder, "Asha Menon")
			news := nodetest.As[protocol.Page[protocol.FeedItem]](h.Ask("GET", "/api/public/feed?types=attention_bid", ""))
			check("its feed item", news.Items[0].Actor, "Asha Menon")
			require.NotContains(t, news.Items[0].Summary, "Asha Menon")

			var asked protocol.MeetingReceipt
			require.NoError(t, json.Unmarshal(who.send("/api/public/agents/asha/meetings", fmt.Sprintf(
				`{"requester":"Asha Menon","email":%q,"purpose":"Yarn.","durationMin":30,"startsAt":%q}`, newMailbox(),
				time.Now().UTC().Add(48*time.Hour).Truncate(time.Hour).Format(time.RFC3339))), &asked))
			var own protocol.OwnMeeting
			d.Good("GET", "/api/owner/meetings/"+asked.Request.ID, "", d.Token, &own)
			check("the meeting", own.Author, "Asha Menon")

			p = protocol.Post{}
			require.NoError(t, json.Unmarshal(who.send("/api/public/board", `{"kind":"offer","title":"Nameless","body":"Two."}`), &p))
			check("without a name", p.Author, map[string]string{"bot.example": "Asha Card"}[who.known])
		}
		found := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board?verifiedOnly=true&q=menon", ""))
		require.Empty(t, found.Items, "nobody is found by the name that he claims")

		by := agent.Do("/a2a/asha", "SendMessage", `{"message":{"messageId":"n","role":"ROLE_USER","parts":[{"data":{"operation":"post_to_board",`+
			`"input":{"kind":"offer","title":"Spun","body":"Two.","name":"Asha Menon"}}}]}}`)
		require.Contains(t, string(by.Raw), `"name":"Agent 1"`)
		require.Contains(t, string(by.Raw), `"claimedName":"Asha Menon"`)
	})
}

// shownPost checks a post by a verified author that calls itself Asha Menon, wherever it is shown.
func shownPost(h *nodetest.House, p protocol.Post, known string) {
	h.T.Helper()
	list := nodetest.As[protocol.Page[protocol.Post]](h.Ask("GET", "/api/public/board?verifiedOnly=true", ""))
	require.Equal(h.T, p.Author, list.Items[0].Author)
	news := nodetest.As[protocol.Page[protocol.FeedItem]](h.Ask("GET", "/api/public/feed?types=board_post", ""))
	require.Equal(h.T, []string{known, "Asha Menon"}, []string{news.Items[0].Actor.Name, news.Items[0].Actor.ClaimedName})
	quotes := strings.NewReplacer("“", "", "”", "") // Markdown has them around names
	for _, at := range [][2]string{{"/board/" + p.ID, "text/html"}, {"/board", "text/html"}, {"/feed", "text/html"}, {"/board/" + p.ID, "text/markdown"}} {
		path := at[0]
		page := h.Ask("GET", path, "", "Accept", at[1])
		require.Equal(h.T, 200, page.Code, path)
		text := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(quotes.Replace(page.Body.String()), " ")), " ")
		require.Contains(h.T, text, "calls itself Asha Menon", path)
		require.NotContains(h.T, text, "by Asha Menon", path)
		require.NotContains(h.T, text, "Asha Menon verified", path)
	}
	require.NotContains(h.T, h.Ask("GET", "/feed.atom", "").Body.String(), "Asha Menon")
	note := h.Ask("GET", strings.TrimPrefix(p.URI, h.Base), "", "Accept", "application/activity+json")
	require.Equal(h.T, http.StatusOK, note.Code)
	var o struct {
		Content string
		Author  struct{ Name string } `json:"stoa:author"`
	}
	note.Into(&o)
	require.Contains(h.T, o.Content, "<p>"+known+" (")
	require.Contains(h.T, o.Content, ", calls itself Asha Menon):")
	require.Equal(h.T, "Asha Menon", o.Author.Name, "what was signed: the reader decides who that is")
}

// TestCopyAsActivity: who asks for the page of another node's post as ActivityPub is led to the post
// itself, which this node does not serve.
func TestCopyAsActivity(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	const uri = "https://b.example/ap/posts/1"
	ravi := protocol.Author{Name: "Ravi", Node: new("b.example"), Actor: new("https://b.example/ap/anon"), Method: protocol.ByFederation}
	id := h.Receive(uri, ravi, "Yarn", "Two.")
	own := h.Post("Looms")
	for at, want := range map[string]string{id: uri, own.ID: own.URI, protocol.NewID(protocol.PostID, time.Now()): ""} {
		a := h.Ask("GET", "/board/"+at, "", "Accept", "application/activity+json")
		if want == "" {
			want = h.Base + "/ap/posts/" + at
		}
		require.Equal(t, 303, a.Code)
		require.Equal(t, want, a.Header().Get("Location"))
	}
}
