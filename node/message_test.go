package node_test

import (
	"bytes"
	"crypto/rsa"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig/cavage"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/activity"
	"stoa/protocol/must"
)

// A sender is a person of another server of the fediverse.
type sender struct {
	*nodetest.House
	actor string
	pair  key.Pair
	got   chan string // bodies that the person was sent
}

func senderOf(h *nodetest.House) *sender {
	h.T.Helper()
	pair := must.Get(key.GenerateRSA(2048))(h.T)
	s := &sender{House: h, pair: pair, got: make(chan string, 10)}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	h.T.Cleanup(server.Close)
	s.actor = server.URL + "/u/carol"
	return s
}

func (s *sender) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == "POST" {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s.got <- body.String()
		w.WriteHeader(202)
		return
	}
	pem, _ := key.PublicPEM(s.pair.Public())
	w.Header().Set("Content-Type", activity.MediaType)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"@context": "https://www.w3.org/ns/activitystreams", "id": s.actor, "type": "Person", "preferredUsername": "carol", "name": "Carol",
		"inbox": s.actor + "/inbox", "publicKey": map[string]any{"id": s.actor + "#main-key", "owner": s.actor, "publicKeyPem": pem},
	})
}

// write sends a Note to an agent, and to others.
func (s *sender) write(handle, text string, others ...string) {
	s.T.Helper()
	agent := s.Base + "/ap/agents/" + handle
	id := fmt.Sprintf("%s/notes/%d", strings.TrimSuffix(s.actor, "/u/carol"), time.Now().UnixNano())
	body := nodetest.Encoded(map[string]any{
		"@context": "https://www.w3.org/ns/activitystreams", "id": id + "#create", "type": "Create", "actor": s.actor, "to": agent,
		"object": map[string]any{"id": id, "type": "Note", "attributedTo": s.actor, "to": agent, "cc": others, "content": "<p>" + text + "</p>",
			"published": time.Now().UTC()},
	})
	r := must.Get(http.NewRequest("POST", agent+"/inbox", bytes.NewReader(body)))(s.T)
	r.Header.Set("Content-Type", activity.MediaType)
	require.NoError(s.T, cavage.Sign(r, body, s.actor+"#main-key", s.pair.Signer().(*rsa.PrivateKey)))
	res := must.Get(http.DefaultClient.Do(r))(s.T)
	_ = res.Body.Close()
	require.Equal(s.T, 202, res.StatusCode)
}

// served starts the node on an address of its own.
func served(t *testing.T) *nodetest.House {
	t.Helper()
	h := nodetest.Served(t)
	h.Work()
	return h
}

// TestMessage_Private: what a person of the fediverse writes to an agent in private, and the answer, are in no table but that of messages, and
// at no door but those of the agent's owner, where it is a message like others.
func TestMessage_Private(t *testing.T) {
	t.Parallel()
	h := served(t)
	asha, ravi := h.Agent("asha", nodetest.OpenPolicy), h.Agent("ravi", nodetest.OpenPolicy)
	h.Post("Looms")
	carol := senderOf(h)
	const question, answered = "zzqquestion", "zzqanswer"
	carol.write("asha", question)
	var threads protocol.Page[protocol.Thread]
	require.Eventually(t, func() bool {
		h.Ask("GET", "/api/owner/threads", "", "Authorization", asha).Into(&threads)
		return len(threads.Items) == 1
	}, time.Minute, 10*time.Millisecond)
	id := threads.Items[0].ThreadID
	said := answerThread(h, asha, id, answered)
	sent := <-carol.got
	require.Contains(t, sent, answered)

	marked := func(text string) bool { return strings.Contains(text, question) || strings.Contains(text, answered) }
	c := nodetest.As[protocol.Conversation](h.Ask("GET", "/api/owner/threads/"+id, "", "Authorization", asha))
	require.Equal(t, []any{question, carol.actor, "carol", false}, []any{c.Messages.Items[0].Text, *c.Writer.Actor, *c.Writer.Handle, c.Writer.Verified})
	tool := h.ReadTool(h.ModernAt("/mcp/owner", "tools/call", `"name":"get_thread","arguments":{"threadId":"`+id+`"}`,
		"Authorization", asha, "Mcp-Name", "get_thread"))
	var same protocol.Conversation
	require.NoError(t, json.Unmarshal(tool.Structured, &same))
	require.Equal(t, c, same)

	doors := []string{
		"/", "/board", "/agents", "/agents/asha", "/feed", "/threads/" + id, "/openapi.json", "/llms.txt", "/sitemap.xml", "/nodeinfo/2.1",
		"/api/public/threads/" + id, "/api/public/board?q=zzq", "/api/public/agents?q=zzq",
		"/ap/board/outbox?before=first", "/ap/board/log?after=0", "/ap/agents/asha", "/ap/agents/asha/outbox?before=first", "/ap/agents/asha/followers",
		"/ap/agents/asha/following", "/ap/feed/outbox", "/ap/messages/" + said.Message.ID, "/ap/messages/" + c.Messages.Items[0].ID,
	}
	for _, op := range protocol.Operations() {
		if op.ReadOnly && op.HTTP.Method == "GET" && strings.HasPrefix(op.HTTP.Path, "/api/public/") {
			doors = append(doors, strings.NewReplacer("{handle}", "asha", "{threadId}", id).Replace(op.HTTP.Path))
		}
	}
	for _, feed := range node.FeedDocuments() {
		doors = append(doors, feed.Path)
	}
	require.Greater(t, len(doors), 40)
	for _, door := range doors {
		if strings.Contains(door, "stream") { // does not end; the feed has what it tells
			continue
		}
		for _, as := range [][]string{nil, {"Authorization", ravi}} {
			if a := h.Ask("GET", door, "", as...); marked(a.Body.String()) {
				t.Errorf("GET %s tells the message", door)
			}
		}
	}
	require.Equal(t, 404, h.Ask("GET", "/api/owner/threads/"+id, "", "Authorization", ravi).Code)
	require.Equal(t, 401, h.Ask("GET", "/ap/messages/"+said.Message.ID, "").Code)

	db := must.Get(sql.Open("sqlite", filepath.Join(h.Config.Data, "stoa.db")))(t)
	defer db.Close()
	tables := map[string]bool{}
	for _, table := range column(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'`) {
		for _, row := range column(t, db, `SELECT * FROM "`+table+`"`) {
			if marked(row) {
				tables[table] = true
			}
		}
	}
	require.Equal(t, map[string]bool{"thread_message": true}, tables)
}

// TestMessage_Page: the owner sees who wrote, that nobody verified it, and that an answer is public.
func TestMessage_Page(t *testing.T) {
	t.Parallel()
	h := served(t)
	h.Agent("asha", nodetest.OpenPolicy)
	_, link := h.OpenAccount("Asha", protocol.RoleOwner, "", "asha")
	cookie, asha := h.SignIn(link), "Bearer "+h.OwnerToken("asha")
	carol := senderOf(h)
	carol.write("asha", "Are you open?", activity.Public)
	var threads protocol.Page[protocol.Thread]
	require.Eventually(t, func() bool {
		h.Ask("GET", "/api/owner/threads", "", "Authorization", asha).Into(&threads)
		return len(threads.Items) == 1
	}, time.Minute, 10*time.Millisecond)
	page := h.Ask("GET", "/account/threads/"+threads.Items[0].ThreadID, "", "Accept", nodetest.Accept, "Cookie", "stoa_session="+cookie).Is(200)
	plain := page.Body.String()[strings.Index(page.Body.String(), "<main"):]
	for _, want := range []string{"Are you open?", "Carol", "public on the writer&#39;s server, as answers are", "unverified", `href="` + carol.actor + `"`,
		"@carol@" + strings.TrimSuffix(strings.TrimPrefix(carol.actor, "http://"), "/u/carol")} {
		require.Contains(t, plain, want)
	}
	require.NotContains(t, page.Body.String(), "changed ")
}

// column reads the rows of a query, each as text.
func column(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows := must.Get(db.Query(query))(t)
	defer rows.Close()
	names := must.Get(rows.Columns())(t)
	for rows.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		text := make([]string, len(values))
		for i, v := range values {
			if raw, ok := v.([]byte); ok {
				v = string(raw)
			}
			text[i] = fmt.Sprint(v)
		}
		all = append(all, strings.Join(text, " "))
	}
	require.NoError(t, rows.Err())
	return all
}
