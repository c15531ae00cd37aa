package node_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// A wallsWorld is a node with things of every kind: of asha, a person, of bazaar, a business, and of those who write to them.
type wallsWorld struct {
	*nodetest.Doors
	*nodetest.House
	t       *testing.T
	account string          // of asha
	others  map[string]from // who are strangers to most things
	file    *sql.DB         // the node's database
}

func newWalls(t *testing.T) *wallsWorld {
	d := newDoors(t)
	w := &wallsWorld{Doors: d, House: d.House, t: t, others: map[string]from{}}
	admin := d.House.Admin()
	var err error
	w.file, err = sql.Open("sqlite", filepath.Join(d.House.Config.Data, "stoa.db")+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.file.Close()) })
	w.account = w.owner("asha")
	d.House.PutOpen("asha", nil)
	d.House.Hosted("ravi")
	d.House.Hosted("loom")
	require.NoError(t, admin.PutIdentity(t.Context(), "loom", chainAgent(8), strings.Repeat("l", 43)))
	_, _, err = admin.PutProfile(t.Context(), []byte(`{"handle":"stall","name":"Stall","kind":"business"}`))
	require.NoError(t, err)
	_, _, err = admin.PutProfile(t.Context(), []byte(`{"handle":"asha-two","name":"Asha, too","kind":"person"}`))
	require.NoError(t, err)
	operator, _, err := admin.OpenAccount(t.Context(), "Operator", protocol.RoleOperator, "", []string{"loom"})
	require.NoError(t, err)
	token := func(account string, scopes ...protocol.Scope) from {
		secret, _, err := admin.CreateAccountToken(t.Context(), account, "walls", 0, scopes...)
		require.NoError(t, err)
		return from{bearer: secret}
	}
	all := append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)
	signer := func(c protocol.Caller) from {
		c.Standing, c.Network = protocol.Signed, "n"
		return from{caller: &c}
	}
	maps.Copy(w.others, map[string]from{
		"nobody":        {},
		"a proof":       {caller: &protocol.Caller{Standing: protocol.Proof, Network: "elsewhere"}},
		"another owner": {bearer: d.House.OwnerToken("ravi")},
		"another shop":  {bearer: d.House.OwnerToken("stall")},
		"another key": signer(protocol.Caller{Handle: "ravi", Name: "Ravi", KeyID: strings.Repeat("r", 43),
			Proof: protocol.AuthorProof{Level: protocol.ByProfileKey}}),
		"a directory": signer(protocol.Caller{Name: "https://ravi.example", KeyID: strings.Repeat("d", 43),
			Proof: protocol.AuthorProof{Level: protocol.ByDirectory}}),
		"the operator":   token(operator.ID, append([]protocol.Scope{protocol.ScopeOperator}, all...)...),
		"another tenant": {cookie: w.cookie(w.owner("ravi"))},
		"another identity": signer(protocol.Caller{Agent: chainAgent(7), Owner: "0xa", KeyID: strings.Repeat("i", 43),
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}),
		"the buyer of the identity, who has its key": signer(protocol.Caller{Agent: chainAgent(9), Owner: "0xd", KeyID: strings.Repeat("n", 43),
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}),
		"an identity with a profile": signer(protocol.Caller{Agent: chainAgent(8), Owner: "0xb", Handle: "loom", Name: "Loom", KeyID: strings.Repeat("l", 43),
			Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}),
		"the owner":                             {bearer: d.Token},
		"an operator's token without the scope": token(operator.ID, all...),
		"an operator's token with the scope of the operation alone": token(operator.ID, protocol.ScopeAccount),
	})
	return w
}

func chainAgent(n int) string {
	return fmt.Sprintf("eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432:%d", n)
}

func newID(prefix string) string { return protocol.NewID(prefix, time.Now()) }

// owner is the id of the account of a profile.
func (w *wallsWorld) owner(handle string) string {
	var a storage.Account
	require.NoError(w.t, w.House.DB.Read(w.t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
		a, err = tx.Accounts().OfProfile(ctx, handle)
		return err
	}))
	return a.ID
}

// in is the same world for a subtest.
func (w *wallsWorld) in(t *testing.T) *wallsWorld {
	next, d := *w, *w.Doors
	d.T, d.House = t, w.House.On(t)
	next.t, next.Doors, next.House = t, &d, d.House
	return &next
}

// cookie is the secret of a new session of an account.
func (w *wallsWorld) cookie(account string) string {
	return strings.TrimPrefix(w.House.On(w.t).SessionOf(account, 0), "stoa_session=")
}

// strangers are who has no right to a thing.
func (w *wallsWorld) strangers(op *protocol.Operation, row wall) map[string]from {
	w.t.Helper()
	out := map[string]from{}
	for name, f := range w.others {
		if name != "the owner" && !strings.Contains(name, "without the scope") && !strings.Contains(name, "alone") {
			out[name] = f
		}
	}
	switch row {
	case ofMaker: // to whom it was sent is not who sent it
		out["the owner"] = w.others["the owner"]
		return out
	case ofBoth:
		return out
	}
	of := "asha"
	if ofShop(op) {
		of = "bazaar"
	}
	admin := w.House.Admin()
	if op.Scope != "" { // the owner's own, for something else
		rest := append([]protocol.Scope{protocol.ScopeAccount}, protocol.OwnerScopes...)
		rest = slices.DeleteFunc(rest, func(s protocol.Scope) bool { return s == op.Scope })
		secret, _, err := admin.CreateAccountToken(w.t.Context(), of, "scopes", time.Hour, rest...)
		require.NoError(w.t, err)
		out["a token of the owner without the scope"] = from{bearer: secret}
	}
	if row != ofAccount { // a token for another profile of the same account
		require.NoError(w.t, admin.LinkProfile(w.t.Context(), w.owner(of), "asha-two"))
		secret, _, err := admin.CreateToken(w.t.Context(), "asha-two", "bound", time.Hour)
		require.NoError(w.t, err)
		out["a token for another profile of the account"] = from{bearer: secret}
	}
	return out
}

// apart ends that asha-two belongs to the account of another profile.
func (w *wallsWorld) apart() {
	if err := w.House.Admin().UnlinkProfile(w.t.Context(), "asha-two"); protocol.CodeOf(err) != protocol.NotFound {
		require.NoError(w.t, err)
	}
}

// ways are the arguments by which a stranger may try: with the handle of the owner, and without any; without the secret, and with
// one that opens nothing.
func (w *wallsWorld) ways(op *protocol.Operation, row wall, args map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	with := func(name string, change func(map[string]any)) {
		a := maps.Clone(args)
		delete(a, op.Secret)
		change(a)
		out[name] = a
	}
	if row == ofMaker || row == ofBoth {
		with("without its secret", func(map[string]any) {})
		if op.Secret != "" {
			with("with another secret", func(a map[string]any) { a[op.Secret] = protocol.NewReadToken() })
		}
		return out
	}
	_, owned := op.In.FieldByName("Handle")
	if !owned {
		with("by its id", func(map[string]any) {})
		return out
	}
	of := "asha"
	if ofShop(op) {
		of = "bazaar"
	}
	with("with the owner's handle", func(a map[string]any) { a["handle"] = of })
	if op.HTTP.Method != "PUT" { // which would make it for the stranger's own profile
		with("without a handle", func(a map[string]any) { delete(a, "handle") })
	}
	return out
}

// thing makes what an operation is about, in the state in which it can do something, and returns the arguments that name it, and its
// owner.
func (w *wallsWorld) thing(op *protocol.Operation) (args map[string]any, mine from) {
	w.t.Helper()
	d, example := w.Doors, exampleOf(op)
	mine = from{bearer: d.Token}
	if ofShop(op) {
		mine = from{bearer: d.Shop}
	}
	if op.Access == protocol.Session || slices.Contains(op.Codes, protocol.SignInAgain) {
		mine = from{cookie: w.cookie(w.account)}
	}
	put := func(fn func(ctx context.Context, tx *storage.Tx) error) {
		require.NoError(w.t, d.House.DB.Write(w.t.Context(), fn))
	}
	agent := from{caller: &protocol.Caller{Standing: protocol.Signed, Network: "n", Agent: chainAgent(9), Owner: "0xc", KeyID: strings.Repeat("n", 43),
		Proof: protocol.AuthorProof{Level: protocol.ByChainKey}}}
	switch args = maps.Clone(example); op {
	case protocol.GetExchange.Operation, protocol.SendExchange.Operation, protocol.CancelExchange.Operation, protocol.FollowExchange.Operation,
		protocol.SetExchangePush.Operation, protocol.ListExchangePushes.Operation, protocol.DeleteExchangePush.Operation:
		begun := w.call(protocol.SendExchange.Operation, exampleOf(protocol.SendExchange.Operation), agent)
		require.Empty(w.t, begun.Code, "%v", begun)
		args["id"] = begun.task()
		if op == protocol.SendExchange.Operation {
			delete(args, "id")
			args["exchangeId"], args["messageId"] = begun.task(), "m-2"
		}
		return args, agent
	case protocol.ReplayCallback.Operation, protocol.ListCallbacks.Operation:
		id := newID(protocol.MessageID)
		put(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Callbacks().Insert(ctx, &storage.StoredCallback{ID: id, Handle: "asha", ThreadID: d.Thread, URL: "https://127.0.0.1:1/hook", N: 1,
				State: protocol.CallbackFailed, NextAt: tx.Now, Until: tx.Now.Add(time.Hour)})
		})
		args["id"] = id
		if op == protocol.ListCallbacks.Operation {
			args = map[string]any{"threadId": d.Thread}
		}
	case protocol.DeleteMessage.Operation:
		var begun protocol.ContactReceipt
		got := w.call(protocol.ContactAgent.Operation, exampleOf(protocol.ContactAgent.Operation), agent)
		require.NoError(w.t, json.Unmarshal([]byte(got.JSON), &begun), "%v", got)
		put(func(ctx context.Context, tx *storage.Tx) error {
			first, err := tx.Threads().MessageByNumber(ctx, begun.ThreadID, 1)
			if err == nil {
				args["threadId"], args["messageId"] = begun.ThreadID, first.ID
			}
			return err
		})
		return args, agent
	case protocol.DeletePasskey.Operation:
		id := newID(protocol.PasskeyID)
		put(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Passkeys().Insert(ctx, storage.Passkey{ID: id, Credential: []byte(id), Account: w.account, PublicKey: []byte{1},
				Domain: "n1.example", Name: "Phone"})
		})
		args["id"] = id
	case protocol.DeleteDevice.Operation:
		id := newID(protocol.DeviceID)
		put(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Devices().Put(ctx, storage.Device{ID: id, Reader: w.account, Endpoint: "https://push.example/" + id, P256dh: []byte{1}, Auth: []byte{1}}, 1)
		})
		args["id"] = id
	case protocol.UpdateOrder.Operation:
		args["id"] = w.ordered().Order.ID
	case protocol.UCPCheckout.Operation, protocol.UCPPutCheckout.Operation, protocol.UCPCancelCheckout.Operation, protocol.UCPOrder.Operation:
		platform := from{caller: protocol.PlatformCaller("https://walls.example/ucp")}
		made := w.checkout(platform)
		if args["session"] = made.ID; op == protocol.UCPOrder.Operation {
			args["session"] = w.ordered("checkout", made.Token).Order.ID
		}
		return args, platform
	case protocol.CheckConversation.Operation, protocol.ContinueConversation.Operation:
		begun := w.writes()
		args["threadId"], args["readToken"] = begun.ThreadID, begun.ReadToken
		return args, from{caller: &protocol.Caller{Standing: protocol.Proof, Network: "n"}}
	case protocol.PutItem.Operation, protocol.PutNeed.Operation, protocol.PutCapability.Operation:
		require.Empty(w.t, w.call(op, args, mine).Code)
	default:
		args = replaced(args, func(name, s string) string {
			switch {
			case strings.HasPrefix(s, "post_"):
				return as(d.House, d.Token).ID
			case strings.HasPrefix(s, "rcpt_"):
				return d.Receipt
			case strings.HasPrefix(s, "thr_"):
				return w.writes().ThreadID
			}
			return s
		})
		args = ownThing(d, op, args)
	}
	if op == protocol.EditPost.Operation {
		args["kind"] = "offer" // that of goodPost
	}
	if walls[op.Name] == ofMaker {
		mine = from{}
	}
	return args, mine
}

// ordered makes an order at the shop, which is paid when it is fetched.
func (w *wallsWorld) ordered(more ...string) (made protocol.MadeOrder) {
	w.t.Helper()
	args := map[string]any{"items": w.sells(), "name": "Ravi", "mail": newID("m") + "@example.org", "way": "pickup", "pay": "later"}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	got := w.call(protocol.MakeOrder.Operation, args, from{})
	require.Empty(w.t, got.Code, "%v", got)
	require.NoError(w.t, json.Unmarshal([]byte(got.JSON), &made))
	return made
}

// checkout makes a checkout of UCP at the shop.
func (w *wallsWorld) checkout(by from) (made protocol.Checkout) {
	w.t.Helper()
	got := w.call(protocol.UCPMakeCheckout.Operation, map[string]any{"items": w.sells(), "release": protocol.UCPVersions[0],
		"buyer": map[string]any{"mail": newID("m") + "@example.org"}}, by)
	require.Empty(w.t, got.Code, "%v", got)
	require.NoError(w.t, json.Unmarshal([]byte(got.JSON), &made))
	return made
}

// sells makes the shop take orders, which are paid when they are fetched, and returns a basket of it.
func (w *wallsWorld) sells() []any {
	w.t.Helper()
	d := w.Doors
	d.Good("PUT", "/api/owner/merchant/items/walls", `{"name":"Thali","price":{"currency":"INR","amount":"90"}}`, d.Shop, nil)
	d.Good("PUT", "/api/owner/till", `{"open":true,"pickup":true,"payAtPickup":true}`, d.Shop, nil)
	var item protocol.OwnItem
	d.Good("GET", "/api/owner/merchant/items/walls", "", d.Shop, &item)
	return []any{map[string]any{"id": item.VariantIDs[0], "quantity": 1}}
}

// writes begins a thread with asha as nobody in particular.
func (w *wallsWorld) writes() (begun protocol.ContactReceipt) {
	w.t.Helper()
	nobody := from{caller: &protocol.Caller{Standing: protocol.Proof, Network: newID("net")}}
	got := w.call(protocol.ContactAgent.Operation, exampleOf(protocol.ContactAgent.Operation), nobody)
	require.Empty(w.t, got.Code, "%v", got)
	require.NoError(w.t, json.Unmarshal([]byte(got.JSON), &begun))
	return begun
}

// task is the id of the exchange that an outcome is of.
func (o outcome) task() string {
	_, rest, _ := strings.Cut(o.JSON, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func exampleOf(op *protocol.Operation) (args map[string]any) {
	if err := json.Unmarshal(nodetest.Encoded(op.Example), &args); err != nil {
		panic(err)
	}
	return args
}

var ulid = regexp.MustCompile(`[0-7][0-9a-hjkmnp-tv-z]{25}`)

// rows are the rows of the database that have the names of a thing in them, but those of jobs, and of the log, which jobs write for a profile
// that changed: they move by themselves.
func (w *wallsWorld) rows(op *protocol.Operation, args map[string]any) (found []string) {
	w.t.Helper()
	var ids []string
	for name, v := range args {
		s, ok := v.(string)
		if !ok {
			continue
		}
		if id := ulid.FindString(s); id != "" && name != op.Secret {
			ids = append(ids, id)
		} else if name == "keyid" || name == "sku" || name == "id" {
			ids = append(ids, s)
		}
	}
	tables, err := w.file.QueryContext(w.t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
		AND name NOT IN ('job', 'log')
		AND name NOT LIKE 'sqlite%' AND name NOT GLOB '*_word_*'`)
	require.NoError(w.t, err)
	var names []string
	for tables.Next() {
		var name string
		require.NoError(w.t, tables.Scan(&name))
		names = append(names, name)
	}
	require.NoError(w.t, tables.Close())
	for _, name := range names {
		found = append(found, w.holding(name, ids)...)
	}
	slices.Sort(found)
	return found
}

// sighted are the columns of a profile that change when it is seen, which is noted some time after a call.
var sighted = []string{"alive", "last_seen_at", "pos"}

// holding are the rows of a table that have one of the ids.
func (w *wallsWorld) holding(name string, ids []string) (found []string) {
	rows, err := w.file.QueryContext(w.t.Context(), `SELECT * FROM "`+name+`"`)
	require.NoError(w.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(w.t, err)
	cells, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		require.NoError(w.t, rows.Scan(into...))
		line := name
		for i, c := range cells {
			if name == "profile" && slices.Contains(sighted, columns[i]) {
				continue
			}
			line += fmt.Sprintf(" %s=%s", columns[i], text(c))
		}
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(line, id) }) {
			found = append(found, line)
		}
	}
	require.NoError(w.t, rows.Err())
	return found
}

func text(v any) string {
	if raw, ok := v.([]byte); ok {
		return string(raw)
	}
	return fmt.Sprint(v)
}
