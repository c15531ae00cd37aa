package node_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestVisitor_DeletesPost: a post without an account is deleted with the secret that its answer has, also by the browser that wrote it, and by no other.
func TestVisitor_DeletesPost(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		write := func() (made protocol.MadePost) {
			h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Proof-Of-Work", h.Proof("board")).Is(201).Into(&made)
			require.NotEmpty(t, made.DeleteToken)
			return made
		}
		made, other := write(), write()
		path := "/api/public/board/" + made.ID
		require.NotContains(t, h.Ask("GET", path, "").Body.String(), made.DeleteToken)
		require.Equal(t, protocol.Unauthorized, h.Ask("DELETE", path, "").Problem().Code)
		require.Equal(t, protocol.Unauthorized, h.Ask("DELETE", path, "", "Authorization", "Bearer "+other.DeleteToken).Problem().Code)
		require.Equal(t, protocol.Forbidden, h.Ask("DELETE", path, "", "Authorization", "Bearer "+h.OwnerToken(hosted(h, "asha"))).Problem().Code)
		h.Ask("GET", path, "").Is(200)
		h.Ask("DELETE", path, "", "Authorization", "Bearer "+made.DeleteToken).Is(204)
		require.Equal(t, 410, h.Ask("GET", path, "").Code)
		require.Equal(t, protocol.Gone, h.Ask("DELETE", path, "", "Authorization", "Bearer "+made.DeleteToken).Problem().Code)
		h.Ask("GET", "/api/public/board/"+other.ID, "").Is(200)

		sent := h.SendForm("/board", url.Values{"kind": {"offer"}, "title": {"Yarn"}, "body": {"Two bales of it."}, "name": {"Ravi"}, "altcha": {h.Proof("board")}})
		require.Equal(t, 303, sent.Code, "%s", sent.Body)
		page := strings.TrimPrefix(sent.Header().Get("Location"), h.Base)
		cookie, _, _ := strings.Cut(sent.Header().Get("Set-Cookie"), ";")
		press := url.Values{"do": {"delete_post"}}
		require.Contains(t, h.Ask("GET", page, "", "Accept", "text/html").Is(200).Body.String(), "delete_post")
		require.GreaterOrEqual(t, h.SendForm(page, press).Code, 400, "another browser")
		h.Ask("GET", page, "", "Accept", "text/html").Is(200)
		h.SendForm(page, press, "Cookie", cookie).Is(200)
		require.Equal(t, 410, h.Ask("GET", page, "", "Accept", "text/html").Code)
	})
}

func hosted(h *nodetest.House, handle string) string {
	h.Hosted(handle)
	return handle
}

// TestVisitor_DeletesMessage: who began a conversation takes back the text of an own message, by the read token or in the browser, also when it is
// answered and closed; nobody else does, nor of an answer. Nobody reads it any more: not the inbox, the archive, or a program by A2A.
func TestVisitor_DeletesMessage(t *testing.T) {
	t.Parallel()
	nodetest.EachHouse(t, func(t *testing.T, h *nodetest.House) {
		asha := []string{"Authorization", h.Agent("asha", nodetest.OpenPolicy)}
		var begun, other protocol.ContactReceipt
		begin := func(word string, into *protocol.ContactReceipt) {
			h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"`+word+`"}`, "Proof-Of-Work", h.Proof("contact")).Is(201).Into(into)
		}
		begin("zzqmfirst", &begun)
		begin("zzqmother", &other)
		writer, stranger := []string{"Authorization", "Bearer " + begun.ReadToken}, []string{"Authorization", "Bearer " + other.ReadToken}
		h.Ask("POST", "/api/public/threads/"+begun.ThreadID+"/messages", `{"message":"zzqmsecond"}`, append(writer, "Proof-Of-Work", h.Proof("contact"))...).Is(201)
		h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/messages", `{"message":"An answer"}`, asha...).Is(201)
		h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/close", `{}`, asha...).Is(200)
		read := func() (c protocol.Conversation) {
			h.Ask("GET", "/api/owner/threads/"+begun.ThreadID, "", asha...).Is(200).Into(&c)
			return c
		}
		all := read().Messages.Items
		at := func(n int) string { return "/api/public/threads/" + begun.ThreadID + "/messages/" + all[n].ID }
		for _, who := range [][]string{nil, stranger, asha} {
			require.Equal(t, 404, h.Ask("DELETE", at(0), "", who...).Code)
		}
		require.Equal(t, 404, h.Ask("DELETE", at(2), "", writer...).Code, "an answer is the agent's")
		require.Contains(t, h.Ask("GET", "/api/owner/threads", "", asha...).Body.String(), "zzqmfirst")
		for range 2 { // once more changes nothing
			h.Ask("DELETE", at(0), "", writer...).Is(204)
		}
		got := read().Messages.Items
		require.Equal(t, []string{protocol.WithdrawnText, "zzqmsecond", "An answer"}, []string{got[0].Text, got[1].Text, got[2].Text})
		require.True(t, got[0].Withdrawn)
		g := &goner{t: t, h: h}
		require.Equal(t, []string{"zzqmother", "zzqmsecond"}, marks(g.archived("asha", asha...)))
		for table, words := range g.rows() {
			require.NotContains(t, words, "zzqmfirst", table)
		}

		sent := h.SendForm("/@asha", url.Values{"do": {"contact_agent"}, "message": {"In a browser"}, "kind": {"question"}, "altcha": {h.Proof("contact")}})
		require.Equal(t, 303, sent.Code, "%s", sent.Body)
		page := strings.TrimPrefix(sent.Header().Get("Location"), h.Base)
		page, _, _ = strings.Cut(page, "#")
		var cookies []string
		for _, c := range sent.Result().Cookies() {
			cookies = append(cookies, c.Name+"="+c.Value)
		}
		cookie := []string{"Cookie", strings.Join(cookies, "; "), "Accept", "text/html"}
		body := h.Ask("GET", page, "", cookie...).Is(200).Body.String()
		require.Contains(t, body, "Delete this message")
		id := regexp.MustCompile(`msg_[0-9a-z]{26}`).FindString(body)
		require.GreaterOrEqual(t, h.SendForm(page, url.Values{"do": {"delete_message"}, "messageId": {id}}).Code, 400, "another browser")
		require.Equal(t, 303, h.SendForm(page, url.Values{"do": {"delete_message"}, "messageId": {id}}, cookie[:2]...).Code)
		body = h.Ask("GET", page, "", cookie...).Is(200).Body.String()
		require.NotContains(t, body, "In a browser")
		require.NotContains(t, body, "Delete this message")
	})
}
