package node_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestTags_AnyScript writes tags as people write them: they are kept in one form,
// and found by every spelling, at every door.
func TestTags_AnyScript(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		pair := h.Hosted("asha")
		const body = `{"kind":"offer","title":"Looms","body":"Two looms.","tags":["Paper","हिन्दी","PAPER","caf\u0065\u0301","caf\u00e9","日本語"]}`
		a := h.Signed(pair, body, nil).Is(201)
		p := nodetest.As[protocol.Post](a)
		require.Equal(t, []string{"paper", "हिन्दी", "cafe\u0301", "café", "日本語"}, p.Tags)

		twelve, thirteen := make([]string, 12), make([]string, 13)
		for i := range thirteen {
			thirteen[i] = fmt.Sprint("t", i)
		}
		copy(twelve, thirteen)
		for _, c := range []struct {
			tags   []string
			status int
			at     string
		}{{twelve, 201, ""}, {thirteen, 422, "/tags"}, {[]string{"ok", "two words"}, 422, "/tags/1"}, {[]string{"#paper"}, 422, "/tags/0"},
			{[]string{strings.Repeat("क", 33)}, 422, "/tags/0"}, {[]string{strings.Repeat("क", 32)}, 201, ""}, {[]string{""}, 422, "/tags/0"}} {
			raw, err := json.Marshal(protocol.NewPost{Kind: protocol.Offer, Title: "Looms", Body: "Two looms.", Tags: c.tags})
			require.NoError(t, err)
			a := h.Signed(pair, string(raw), nil)
			require.Equal(t, c.status, a.Code, "%s %s", raw, a.Body)
			if c.at != "" {
				require.Equal(t, c.at, a.Problem().Errors[0].Pointer)
			}
		}

		for _, tag := range []string{"paper", "PAPER", "हिन्दी", "caf\u00e9", "CAFE\u0301", "日本語"} {
			var page protocol.Page[protocol.Post]
			for _, more := range []string{"", "&author=@Asha", "&verifiedOnly=true", "&kind=offer", "&q=looms", "&author=asha&kind=offer&verifiedOnly=true"} {
				h.Ask("GET", "/api/public/board?tag="+url.QueryEscape(tag)+more, "").Into(&page)
				require.Len(t, page.Items, 1, "%s %s", tag, more)
			}
			require.Contains(t, string(h.Tool("read_board", fmt.Sprintf(`{"tag":%q}`, tag)).Structured), p.ID)
			require.Contains(t, h.Ask("GET", "/board?tag="+url.QueryEscape("#"+tag), "", "Accept", "text/html").Body.String(), p.ID)
		}
		require.Equal(t, "/tag", h.Ask("GET", "/api/public/board?tag=two+words", "").Problem().Errors[0].Pointer)
		page := h.Ask("GET", "/board/"+p.ID, "", "Accept", "text/html").Body.String()
		require.Contains(t, page, `href="/board?tag=`+url.QueryEscape("हिन्दी")+`"`)
		require.Contains(t, h.Ask("GET", "/ap/posts/"+p.ID, "", "Accept", "application/activity+json").Body.String(), `"name":"#हिन्दी"`)

		require.Equal(t, 204, h.AskSigned(pair, "DELETE", "/api/public/board/"+p.ID, "").Code)
		require.NotContains(t, h.Ask("GET", "/api/public/board?tag=paper", "").Body.String(), p.ID)
	})
}

// TestHandles_AsWritten: @Asha, Asha and asha are one agent wherever a handle goes
// in, and asha wherever it comes out.
func TestHandles_AsWritten(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Agent("asha", nodetest.OpenPolicy)
	var post protocol.Post
	a := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", token, "Act-As", "@Asha").Is(201)
	a.Into(&post)
	agents := h.Agents(1)
	for _, handle := range []string{"asha", "Asha", "@asha", "@Asha", "ASHA"} {
		for path, want := range map[string]string{
			"/api/public/agents/" + handle:                                           `"handle":"asha"`,
			"/api/public/board?author=" + handle:                                     post.ID,
			"/board?author=" + handle:                                                post.ID,
			"/a2a/" + handle + "/agent-card.json":                                    `/a2a/asha`,
			"/.well-known/webfinger?resource=acct:" + handle + "@" + host(h):         `"subject":"acct:asha@`,
			"/.well-known/webfinger?resource=" + url.QueryEscape(h.Base+"/@"+handle): `"subject":"acct:asha@`,
			"/api/public/page?path=" + url.QueryEscape("/board?author="+handle):      post.ID,
		} {
			a := h.Ask("GET", path, "")
			require.Equal(t, 200, a.Code, "%s: %s", path, a.Body)
			require.Contains(t, a.Body.String(), want, path)
		}
		require.Contains(t, string(h.Tool("get_agent_profile", fmt.Sprintf(`{"handle":%q}`, handle)).Structured), `"handle":"asha"`)
		require.Equal(t, "asha", readThread(h, begun(h, handle, `{"message":"Hello there"}`)).Handle)
		sent := agents[0].Write(handle, "m-"+handle, "Hello", "")
		require.Nil(t, sent.Error, "%s", sent.Raw)
		for _, path := range []string{"/api/owner/profile", "/api/owner/needs", "/api/owner/threads"} {
			a := h.Ask("GET", path+"?handle="+handle, "", "Authorization", token)
			require.Equal(t, 200, a.Code, "%s: %s", path, a.Body)
		}
		put := h.Ask("PUT", "/api/owner/profile", fmt.Sprintf(`{"handle":%q,"name":"Asha","kind":"person","contactPolicy":%s}`, handle, nodetest.OpenPolicy),
			"Authorization", token).Is(200)
		require.Contains(t, put.Body.String(), `"handle":"asha"`)
	}
	h.PutProfile([]byte(`{"handle":"@Ravi","name":"Ravi","kind":"person"}`))
	require.Equal(t, 200, h.Ask("GET", "/api/public/agents/ravi", "").Code)
	for _, bad := range []string{"@@asha", "as ha", "-asha", "@"} {
		require.Equal(t, protocol.Validation, h.Ask("GET", "/api/public/board?author="+url.QueryEscape(bad), "").Problem().Code, bad)
	}
}

func host(h *nodetest.House) string { return strings.SplitN(h.Base, "//", 2)[1] }

// readThread reads a thread by its read token.
func readThread(h *nodetest.House, r protocol.ContactReceipt) (c protocol.Conversation) {
	h.T.Helper()
	h.Ask("GET", "/api/public/threads/"+r.ThreadID, "", "Authorization", "Bearer "+r.ReadToken).Into(&c)
	return c
}
