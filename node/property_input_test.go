package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

var keyID = regexp.MustCompile(`"(keyid)":"([A-Za-z0-9_-]{43})"`)

// harvest keeps the ids that an answer names, so that later calls find things
// that are there.
func (p *prober) harvest(op *protocol.Operation, raw []byte) {
	for _, m := range slices.Concat(nodetest.TypeID.FindAllSubmatch(raw, 200), keyID.FindAllSubmatch(raw, 20)) {
		id, prefix := string(m[0]), string(m[1])
		if prefix == "keyid" {
			id = string(m[2])
		}
		prefix = poolOf(op, prefix)
		if p.keep[id] || slices.Contains(p.pool[prefix], id) {
			continue
		}
		if p.pool[prefix] = append(p.pool[prefix], id); len(p.pool[prefix]) > 60 {
			p.pool[prefix] = p.pool[prefix][20:]
		}
	}
}

// good is an input that is likely to succeed: the example, with ids of things
// that are there.
func (p *prober) good(op *protocol.Operation) map[string]any {
	args := nodetest.Members(p.t, op.Example)
	p.names(args, op)
	if op == protocol.ContinueConversation.Operation {
		args["threadId"] = p.thread
	}
	if op == protocol.RestorePost.Operation && p.hidden != "" {
		args["id"] = p.hidden
	}
	if op == protocol.OpenAccount.Operation { // asha's account is needed to the end
		delete(args, "handles")
	}
	if op == protocol.MakeSignInLink.Operation || op == protocol.CloseAccountFor.Operation {
		acc, _ := p.n.OpenAccount("Short-lived", protocol.RoleOwner, "")
		args["account"] = acc.ID
	}
	switch op {
	case protocol.EditPost.Operation:
		args["kind"] = "offer" // that of goodPost
	case protocol.ForwardReport.Operation:
		args["id"] = p.n.Receive("https://b.example/ap/posts/"+protocol.NewID("p_", time.Now()), protocol.Author{Name: "B",
			Node: new("b.example"), Actor: new("https://b.example/ap/agents/b"), Method: protocol.ByFederation}, "Tickets", "Cheap.")
	case protocol.RemoveFollower.Operation:
		f := storage.Follower{LocalActor: protocol.ActorID(p.n.Base, "asha"), Actor: args["actor"].(string), Host: "social.example",
			Inbox: "https://social.example/inbox", FollowID: "https://social.example/follows/1"}
		require.NoError(p.t, p.n.DB.Write(p.t.Context(), func(ctx context.Context, tx *storage.Tx) error { return tx.Followers().Put(ctx, f) }))
	case protocol.IssueOrderReceipt.Operation:
		args["paidAt"] = time.Now().UTC().Format(time.RFC3339)
		args["order"] = protocol.NewID("order_", time.Now()) // an order that has a receipt gets no other
	case protocol.HideReview.Operation, protocol.RestoreReview.Operation:
		id := protocol.NewID(protocol.ReviewID, time.Now())
		args["id"] = id
		require.NoError(p.t, p.n.DB.Write(p.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.Feedbacks().Insert(ctx, storage.Feedback{ID: id, Agent: "eip155:1:0x00000000000000000000000000000000000000aa:1", Client: id, At: tx.Now,
				State: storage.FeedbackUncounted, Reason: protocol.NoProof})
			if err == nil {
				err = tx.Feedbacks().Hide(ctx, id, &tx.Now, "")
			}
			return err
		}))
	case protocol.RequeueJob.Operation, protocol.DropJob.Operation:
		args["id"] = p.n.Dead("no such host", storage.SilenceJob)[0]
	case protocol.UnfollowDirectory.Operation:
		require.NoError(p.t, p.n.DB.Write(p.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.ARDSources().Add(ctx, storage.ARDSource{URL: protocol.UnfollowDirectory.Example.(protocol.ARDDirectoryURL).URL})
		}))
	case protocol.ReadConflict.Operation:
		require.NoError(p.t, p.n.DB.Write(p.t.Context(), nodetest.ConflictOf(protocol.ReadConflict.Example.(protocol.PeerAddress).URL)))
	case protocol.RetryPeer.Operation, protocol.UnfollowPeer.Operation, protocol.RereadPeer.Operation:
		require.NoError(p.t, p.n.DB.Write(p.t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			return tx.Subscriptions().Put(ctx, storage.Subscription{Board: protocol.RetryPeer.Example.(protocol.PeerAddress).URL, Host: "n1.example",
				State: storage.SubscriptionAccepted, NextAt: tx.Now.Add(time.Hour)})
		}))
	}
	if op == protocol.RegisterProfile.Operation {
		args["handle"] = fmt.Sprintf("new-%d", p.r.IntN(1_000_000_000))
	}
	d := nodetest.Doors{T: p.t, House: p.n, Token: p.token, Shop: p.shop}
	if bid(&d, op, args) || op.For != protocol.Owners {
		return args
	}
	properties, _ := p.inputs[op.Name]["properties"].(map[string]any)
	if properties["handle"] != nil {
		args["handle"] = "asha"
		if ofShop(op) {
			args["handle"] = "bazaar"
		}
	}
	if op == protocol.AddKey.Operation {
		pair, err := key.GenerateEd25519()
		require.NoError(p.t, err)
		raw, err := key.MarshalPublic(pair.Published())
		require.NoError(p.t, err)
		jwk := map[string]any{}
		require.NoError(p.t, json.Unmarshal(raw, &jwk))
		args["jwk"] = map[string]any{"kty": jwk["kty"], "crv": jwk["crv"], "x": jwk["x"]}
	}
	if pool := p.pool["callback"]; op == protocol.ReplayCallback.Operation && len(pool) > 0 {
		args["id"] = pool[p.r.IntN(len(pool))]
		return args
	}
	if op == protocol.UnblockWriter.Operation && p.round > 0 { // blocks come of earlier calls
		return args
	}
	if op == protocol.RetireKey.Operation { // making one for each call would meet the limit of keys
		if keys := p.pool["keyid"]; len(keys) > 0 {
			args["keyid"] = keys[p.r.IntN(len(keys))]
		}
		return args
	}
	return ownThing(&d, op, args)
}

func (p *prober) names(args map[string]any, op *protocol.Operation) {
	for name, v := range args {
		switch v := v.(type) {
		case map[string]any:
			p.names(v, op)
		case string:
			if m := nodetest.TypeID.FindStringSubmatch(v); m != nil && m[0] == v {
				if m[1] == protocol.PostID && (!op.ReadOnly || op == protocol.ListRevisions.Operation) { // what is there is taken back, hidden and removed
					args[name] = p.fresh(op)
				} else if pool := p.pool[poolOf(op, m[1])]; len(pool) > 0 {
					args[name] = pool[p.r.IntN(len(pool))]
				}
			}
			if name == "handle" && ofShop(op) {
				args[name] = "bazaar"
			}
		}
	}
}

// poolOf keeps apart what the operators' operations name from what the others do:
// an owner's blocks and the node's have ids alike.
func poolOf(op *protocol.Operation, prefix string) string {
	if op.For == protocol.Operators {
		return "operators " + prefix
	}
	return prefix
}

// fresh is a new post of asha's, reported where that is what an operation is about.
func (p *prober) fresh(op *protocol.Operation) string {
	h := p.n
	post := as(h, p.token)
	if op == protocol.DismissReports.Operation || op == protocol.ReopenReports.Operation {
		require.Equal(p.t, 202, h.Ask("POST", "/api/public/board/"+post.ID+"/report", `{}`, "Proof-Of-Work", h.Proof("report")).Code)
	}
	if op == protocol.ReopenReports.Operation {
		require.NoError(p.t, h.Admin().Operate(p.t.Context(), protocol.DismissReports.Operation, protocol.Decision{ID: post.ID}, nil))
	}
	return post.ID
}

// nasty are texts that have broken someone's program before.
var nasty = []any{
	"", " ", "\t\n", "0", "null", "-1", "asha", "@asha", "ASHA", "..", "../../etc/passwd", "%00", "%2f", "a/b", "a?b#c", "'; DROP TABLE post; --", `" OR 1=1`,
	"<script>alert(1)</script>", "{{.}}", "${jndi:ldap://x}", "\u202eabc", "a\u200bb", "\ufeffa", "e\u0301", "ﷺ", "👩‍👩‍👧‍👦", "नमस्ते", "\u0000",
	"\U000e0041", "\uffff", "\x7f", "ＡＳＨＡ", "ß", "İ",
	json.RawMessage(`"\ud800"`), json.RawMessage(`"\udc00\ud800"`), json.RawMessage(`"\u0000"`), json.RawMessage(`1e400`), json.RawMessage(`-0`),
	json.RawMessage(`9007199254740993`), json.RawMessage(`1.5`), json.RawMessage(`0.1e-7`),
	nil, true, false, 0, -1, 1, 101, 1 << 40, 0.5, []any{}, []any{nil}, []any{[]any{}}, []any{"a", "a"}, map[string]any{}, map[string]any{"a": map[string]any{}},
	"2026-02-30T25:61:00Z", "9999-12-31T23:59:59Z", "https://", "https://a.example/" + strings.Repeat("x", 600), "http://127.0.0.1/",
	"javascript:alert(1)", "https://user:pw@a.example/",
	"post_01k9y3v6k8e5w9q2x4z7c1m0ad", "thr_7zzzzzzzzzzzzzzzzzzzzzzzzz", "post_8zzzzzzzzzzzzzzzzzzzzzzzzz", "Asia/Kolkata", "en-IN", "IN-KA",
	"tag:paper", `"two words" -none kind:person`, `"`, "-", "kind:", strings.Repeat("a ", 90), strings.Repeat("\"", 50),
}

// spoil changes one thing of an input: a member goes, comes, or gets another
// value: one at a limit, one past it, of another type, a nasty one, a long one.
func (p *prober) spoil(args, schema map[string]any, depth int) {
	properties, _ := schema["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	names = slices.DeleteFunc(names, func(s string) bool { return s == "pow" })
	if len(names) == 0 || p.r.IntN(12) == 0 {
		args[[]string{"nonsense", "Handle", "__proto__", "", "limit ", "q\u0000"}[p.r.IntN(6)]] = p.pick()
		return
	}
	name := names[p.r.IntN(len(names))]
	member, _ := properties[name].(map[string]any)
	if inner, ok := args[name].(map[string]any); ok && depth < 4 && p.r.IntN(3) > 0 {
		p.spoil(inner, member, depth+1)
		return
	}
	switch p.r.IntN(6) {
	case 0:
		delete(args, name)
	case 1, 2:
		args[name] = p.pick()
	default:
		args[name] = p.edge(member, depth)
	}
}

func (p *prober) pick() any {
	if p.r.IntN(25) == 0 {
		return strings.Repeat("long ", 20_000)
	}
	return nasty[p.r.IntN(len(nasty))]
}

// written is a whole number in one of the ways that JSON has for it.
func (p *prober) written(n int) any {
	switch p.r.IntN(4) {
	case 0:
		return json.Number(fmt.Sprint(n, ".0"))
	case 1:
		return json.Number(fmt.Sprint(n, "e0"))
	}
	return n
}

// edge is a value at or past a limit of the schema.
func (p *prober) edge(schema map[string]any, depth int) any {
	number := func(name string) (int, bool) {
		f, ok := schema[name].(float64)
		return int(f), ok
	}
	if options, ok := schema["anyOf"].([]any); ok && depth < 6 {
		option, _ := options[p.r.IntN(len(options))].(map[string]any)
		return p.edge(option, depth+1)
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[p.r.IntN(len(values))]
	}
	letters := []string{"x", "é", "न", "👋"}[p.r.IntN(4)]
	switch schema["type"] {
	case "string":
		if most, ok := number("maxLength"); ok && most <= 5000 {
			return strings.Repeat(letters, most+p.r.IntN(3)-1)
		}
		return letters
	case "integer", "number":
		if most, ok := number("maximum"); ok && p.r.IntN(2) == 0 {
			return p.written(most + p.r.IntN(3) - 1)
		}
		if least, ok := number("minimum"); ok {
			return p.written(least + p.r.IntN(3) - 1)
		}
		return p.written(p.r.IntN(5))
	case "boolean":
		return p.r.IntN(2) == 0
	case "array":
		most, ok := number("maxItems")
		if !ok || most > 100 {
			most = 3
		}
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range most + p.r.IntN(3) - 1 {
			list = append(list, p.edge(items, depth+1))
		}
		return list
	case "object":
		inner := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for name, member := range properties {
			if m, ok := member.(map[string]any); ok && depth < 4 && p.r.IntN(3) > 0 {
				inner[name] = p.edge(m, depth+1)
			}
		}
		return inner
	}
	return p.pick()
}

// populate makes a world in which most operations can succeed.
func (p *prober) populate(h *nodetest.House) {
	t := p.t
	h.Meeting.Mail = nodetest.NoMeetingMail
	h.Hosted("asha")
	h.PutOpen("asha", nil)
	p.token = h.OwnerToken("asha")
	raw, err := json.Marshal(protocol.ProfileDraft{Handle: "bazaar", Name: "Bazaar", Kind: protocol.Business,
		ContactPolicy: &protocol.PolicyDraft{Anonymous: true}})
	require.NoError(t, err)
	h.PutProfile(raw)
	p.shop = h.OwnerToken("bazaar")
	operator, _ := h.OpenAccount("Operator", protocol.RoleOperator, "")
	p.operator, _, err = h.Admin().CreateAccountToken(t.Context(), operator.ID, "all", 0, protocol.ScopeOperator, protocol.ScopeAccount)
	require.NoError(t, err)
	p.keep = map[string]bool{operator.ID: true}
	for _, handle := range []string{"asha", "bazaar"} {
		require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			acc, err := tx.Accounts().OfProfile(ctx, handle)
			p.keep[acc.ID] = true
			return err
		}))
	}
	for _, id := range nodetest.TypeID.FindAllString(h.Ask("GET", "/api/owner/tokens", "", "Authorization", "Bearer "+p.token).Body.String(), -1) {
		p.keep[id] = true // the run needs its own token to the end
	}
	p.hidden = as(h, p.token).ID
	require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: p.hidden}, nil))
	p.keep[p.hidden] = true
	p.archive = h.Ask("POST", "/api/owner/export", `{"handle":"asha"}`, "Authorization", "Bearer "+p.token).Body.Bytes()
	p.thread = thread(h, p.token).ThreadID
	p.keep[p.thread] = true
	paid := h.Ask("POST", "/api/owner/order-receipts", fmt.Sprintf(`{"order":"R-1","total":{"currency":"INR","amount":"180.00"},"paidAt":%q}`,
		time.Now().UTC().Format(time.RFC3339)), "Authorization", "Bearer "+p.shop).Is(201)
	p.harvest(protocol.IssueOrderReceipt.Operation, paid.Body.Bytes())
	for range 4 {
		p.harvest(protocol.PostToBoard.Operation, h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+p.token).Body.Bytes())
		var begun protocol.ContactReceipt
		h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Do you deliver?","callbackUrl":"https://127.0.0.1:1/hook"}`, "Proof-Of-Work",
			h.Proof("contact")).Into(&begun)
		h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/messages", `{"message":"Yes."}`, "Authorization", "Bearer "+p.token).Is(201)
		for _, id := range nodetest.TypeID.FindAllString(h.Ask("GET", "/api/owner/callbacks", "", "Authorization", "Bearer "+p.token).Body.String(), -1) {
			if strings.HasPrefix(id, protocol.MessageID) {
				p.pool["callback"] = append(p.pool["callback"], id)
			}
		}
		p.harvest(protocol.ContactAgent.Operation, []byte(thread(h, p.token).ThreadID))
	}
}
