package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// A venture is what an identity has begun at one node, with ravi.
type venture struct {
	*actor
	ravi    string // token of the owner
	thread  protocol.ContactReceipt
	bid     protocol.BidReceipt
	meeting protocol.MeetingReceipt
	task    a2a.Task
	said    protocol.Post
}

// begins makes the identity begin one of everything.
func (a *actor) begins(pair key.Pair) *venture {
	t := a.s.T
	t.Helper()
	a.s.Meeting.Mail = nodetest.NoMeetingMail
	v := &venture{actor: a, ravi: a.s.Agent("ravi", nodetest.OpenPolicy)}
	a.s.TakeBids("ravi")
	require.Equal(t, 200, a.s.Ask("PUT", "/api/owner/meeting-settings", `{"acceptingMeetingRequests":true}`, "Authorization", v.ravi).Code)
	made := func(path, body string, into any) {
		t.Helper()
		got := a.signs(pair, "POST", path, body).Is(201)
		got.Into(into)
	}
	const at = "/api/public/agents/ravi"
	made(at+"/contact", `{"message":"Secret offer","callbackUrl":"https://agent.example/hook"}`, &v.thread)
	made(at+"/attention/bids", `{"amount":500,"message":"Secret yarn","callbackUrl":"https://agent.example/hook"}`, &v.bid)
	made(at+"/meetings", fmt.Sprintf(`{"requester":"Secret","email":"s@example.org","purpose":"Secret","durationMin":30,"startsAt":%q,`+
		`"callbackUrl":"https://agent.example/hook"}`, time.Now().UTC().Add(72*time.Hour).Truncate(time.Hour).Format(time.RFC3339)), &v.meeting)
	made("/api/public/board", nodetest.GoodPost, &v.said)
	v.task = v.a2a(pair).Write("ravi", "m-1", "Secret task", "").Task(t)
	answerThread(a.s.House, v.ravi, v.thread.ThreadID, "Secret answer")
	return v
}

func (v *venture) a2a(pair key.Pair) *nodetest.Agent {
	return &nodetest.Agent{H: v.s.House, ID: v.id.String(), Pair: pair}
}

var anyID = regexp.MustCompile(`(thr|bid|mtg|post)_[0-9a-z]{26}`)

// own calls every declared operation that reads or changes something of the caller's own, on what was begun,
// and returns what it answered by name.
func (v *venture) own(pair key.Pair, which func(*protocol.Operation) bool) map[string]nodetest.ToolAnswer {
	t := v.s.T
	t.Helper()
	ids := map[string]string{"thr": v.thread.ThreadID, "bid": v.bid.Bid.ID, "mtg": v.meeting.Request.ID, "post": v.said.ID}
	all := map[string]nodetest.ToolAnswer{}
	require.NoError(t, v.s.DB.Numbered(t.Context()))
	for _, op := range protocol.Operations() {
		if op.Secret != "readToken" && op.Secret != "statusToken" && op != protocol.DeletePost.Operation || !which(op) || op.Doors&protocol.MCP == 0 {
			continue
		}
		if op == protocol.ReadComplaint.Operation { // which its token alone reads
			continue
		}
		args := map[string]any{}
		require.NoError(t, json.Unmarshal(nodetest.Encoded(op.Example), &args))
		delete(args, op.Secret)
		raw := anyID.ReplaceAllStringFunc(string(nodetest.Encoded(args)), func(id string) string { return ids[id[:strings.IndexByte(id, '_')]] })
		all[op.Name] = v.s.ReadTool(v.s.SignedTool(pair, op.Name, raw, func(r *http.Request, _ *httpsig.SignOptions) {
			r.Header.Set("Agent-Identity", v.id.String())
		}))
	}
	return all
}

func everything(*protocol.Operation) bool { return true }
func reads(op *protocol.Operation) bool   { return op.ReadOnly }

// keeps: the key reads all that was begun.
func (v *venture) keeps(pair key.Pair) {
	t := v.s.T
	t.Helper()
	all := v.own(pair, reads)
	require.GreaterOrEqual(t, len(all), 4)
	for name, got := range all {
		require.False(t, got.IsError, "%s: %s", name, got.Body)
	}
	require.Contains(t, all["check_conversation"].Body.String(), "Secret answer")
	require.Contains(t, all["whats_new"].Body.String(), "Secret answer")
	require.Nil(t, v.a2a(pair).GetTask("ravi", v.task.ID).Error)
}

// strange: the key gets nothing of what was begun, through no operation.
func (v *venture) strange(pair key.Pair) {
	t := v.s.T
	t.Helper()
	all := v.own(pair, everything)
	require.GreaterOrEqual(t, len(all), 9, "%v", all)
	for name, got := range all {
		require.NotContains(t, got.Body.String(), "Secret", name)
		if name == "whats_new" && !got.IsError {
			for _, id := range []string{v.thread.ThreadID, v.bid.Bid.ID, v.meeting.Request.ID} {
				require.NotContains(t, got.Body.String(), id)
			}
			continue
		}
		require.True(t, got.IsError, "%s: %s", name, got.Body)
	}
	require.NotNil(t, v.a2a(pair).GetTask("ravi", v.task.ID).Error)
	again := v.a2a(pair).Write("ravi", "m-2", "It is me.", fmt.Sprintf(`,"contextId":%q`, v.task.ContextID))
	require.NotNil(t, again.Error, "%s", again.Raw)
	require.Equal(t, 200, v.s.Ask("GET", "/api/public/board/"+v.said.ID, "").Code, "the post is still there")
}

// tokens returns what the tokens of the things answer: thread, bid, meeting, and news of each.
func (v *venture) tokens() (codes []int) {
	for _, it := range []struct{ path, token string }{
		{"/api/public/threads/" + v.thread.ThreadID, v.thread.ReadToken}, {"/api/public/bids/" + v.bid.Bid.ID, v.bid.StatusToken},
		{"/api/public/meetings/" + v.meeting.Request.ID, v.meeting.StatusToken}, {"/api/public/since", v.thread.ReadToken},
		{"/api/public/since", v.bid.StatusToken}, {"/api/public/since", v.meeting.StatusToken}, {"/api/public/payment", v.bid.StatusToken},
	} {
		codes = append(codes, v.s.Ask("GET", it.path, "", "Authorization", "Bearer "+it.token).Code)
	}
	return codes
}

var (
	openTokens = []int{200, 200, 200, 200, 200, 200, 200}
	shutTokens = []int{404, 404, 404, 401, 401, 401, 404}
)

// shut waits until everything that opened the things has ended.
func (v *venture) shut() {
	t := v.s.T
	t.Helper()
	require.Eventually(t, func() bool { return fmt.Sprint(v.tokens()) == fmt.Sprint(shutTokens) }, time.Minute, 20*time.Millisecond)
	require.NoError(t, v.s.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
		thread := must.Get(tx.Threads().ByID(ctx, v.thread.ThreadID))(t)
		require.Equal(t, protocol.ThreadClosed, thread.State)
		require.Empty(t, thread.Callback)
		waiting := must.Get(tx.Callbacks().List(ctx, "ravi", protocol.CallbackWaiting, "", 10, ""))(t)
		require.Empty(t, waiting.Items, "nothing is sent any more")
		bid := must.Get(tx.Bids().ByID(ctx, v.bid.Bid.ID))(t)
		require.Empty(t, bid.Callback)
		meeting := must.Get(tx.Meetings().ByID(ctx, v.meeting.Request.ID))(t)
		require.Empty(t, meeting.Callback)
		return nil
	}))
	require.NoError(t, v.s.DB.Numbered(t.Context()))
	require.Contains(t, v.s.Ask("GET", "/api/public/since", "", "Authorization", v.ravi).Body.String(), `"closed"`, "the other side is told")
}

// refunded: the money of the bid goes where it would have gone.
func (v *venture) refunded() {
	t := v.s.T
	t.Helper()
	payer := "Bearer " + v.bid.PaymentURL[strings.LastIndexByte(v.bid.PaymentURL, '/')+1:]
	require.Equal(t, 200, v.s.Ask("GET", "/api/public/payment", "", "Authorization", payer).Code, "the payer's page is the payer's")
	path := "/api/owner/bids/" + v.bid.Bid.ID
	for _, step := range []struct{ do, body string }{{"/confirm", fmt.Sprintf(`{"utr":%q}`, nodetest.NewUTR())}, {"/remove", `{"reason":"No yarn."}`}} {
		got := v.s.Ask("POST", path+step.do, step.body, "Authorization", v.ravi)
		require.Equal(t, 200, got.Code, "%s: %s", step.do, got.Body)
	}
	bid := nodetest.As[protocol.OwnBid](v.s.Ask("GET", path, "", "Authorization", v.ravi))
	require.NotEmpty(t, bid.Refunds)
	require.Equal(t, "500.00", bid.Refunds[0].Amount.Amount)
}

// TestSale: the token of an identity is sold while it has begun things at its home node, as a profile, and at
// another node, by itself. At neither the buyer gets any of them, before or after finality; at the other, what
// opened them for the seller ends. A new key of the owner loses nothing, and who buys back has them again.
func TestSale(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		away := nodetest.NewStage(t, "", change)
		home := &nodetest.Stage{House: nodetest.New(t, func(c *node.Config) {
			c.Chain = []string{away.Chain.Flag("")}
			if away.DB.Engine() != "sqlite" && os.Getenv(storagetest.PostgresEnv) != "" {
				c.Database = storagetest.PostgresURL(t)
			}
		}), Chain: away.Chain}
		home.Watch()
		away.Watch()
		chain := home.Chain
		a := enrolled(home, "asha", 0)
		there := &actor{s: away, id: a.id}
		there.grants(a.pair, "")
		here, afar := a.begins(a.pair), there.begins(a.pair)
		for _, v := range []*venture{here, afar} {
			require.Equal(t, openTokens, v.tokens())
			v.keeps(a.pair)
		}

		next := nodetest.NewPair(t)
		chain.Publish(0, 0, a.id, next)
		chain.Do("final")
		there.grants(next, "")
		afar.keeps(next)
		require.Equal(t, openTokens, afar.tokens(), "a new key changes nothing")

		buyers := nodetest.NewPair(t)
		chain.Must(chain.Registrar(0).Transfer(t.Context(), a.id.AgentID, chain.Registrar(1).Address()))
		afar.shut()
		require.Eventually(t, a.parted, time.Minute, 20*time.Millisecond)
		chain.Publish(1, 1, a.id, buyers)
		there.grants(buyers, protocol.IdentityUnverified)
		for _, v := range []*venture{here, afar} {
			for _, pair := range []key.Pair{buyers, next, a.pair} {
				v.strange(pair)
			}
		}
		chain.Do("final")
		for _, v := range []*venture{here, afar} {
			v.grants(buyers, "")
			v.strange(buyers)
			p := nodetest.As[protocol.Post](v.signs(buyers, "POST", "/api/public/board", nodetest.GoodPost))
			require.NotEqual(t, *p.Author.Proof.Owner, *v.said.Author.Proof.Owner, "two owners are told apart")
			require.NotNil(t, p.Author.Proof.BlockHash)
			require.Equal(t, 201, v.signs(buyers, "POST", "/api/public/agents/ravi/contact", `{"message":"A new one"}`).Code, "the buyer begins its own")
		}
		require.Equal(t, openTokens, here.tokens(), "what the profile began stays the profile's")
		require.Equal(t, 200, home.Ask("GET", "/api/public/threads/"+here.thread.ThreadID, "", "Authorization", "Bearer "+a.token).Code)
		afar.refunded()

		chain.Must(chain.Registrar(1).Transfer(t.Context(), a.id.AgentID, chain.Registrar(0).Address()))
		there.grants(buyers, protocol.KeyUnknown)
		chain.Publish(0, 0, a.id, next)
		chain.Do("final")
		there.grants(next, "")
		afar.keeps(next)
		require.NotContains(t, afar.own(next, reads)["whats_new"].Body.String(), "A new one")
		require.Equal(t, shutTokens, afar.tokens(), "what has ended has ended")
		for name, got := range afar.own(next, func(op *protocol.Operation) bool { return op == protocol.DeletePost.Operation }) {
			require.False(t, got.IsError, "%s: %s", name, got.Body)
		}
		require.Equal(t, 410, away.Ask("GET", "/api/public/board/"+afar.said.ID, "").Code)
	})
}
