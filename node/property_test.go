package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/door/httpapi"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage/storagetest"
)

// rounds is how often TestProperty calls each operation at each door with random inputs.
const rounds = 8

// unreached are the operations that no call of TestProperty can make succeed,
// each with the reason.
var unreached = map[string]string{
	"put_stock":            "takes a variant on sale: TestBrowser_Order",
	"update_order":         "takes an order, which a page makes: TestBrowser_Order",
	"review_order":         "takes an order that was paid: TestBrowser_Review",
	"get_passkey_options":  "takes a browser that signed in lately",
	"add_passkey":          "takes a passkey",
	"add_device":           "takes a browser that is signed in, or the token of the thread",
	"delete_device":        "needs one that a browser added",
	"remove_wallet":        "takes a browser that signed in lately",
	"delete_passkey":       "takes a browser that signed in lately",
	"remove_credential":    "takes a browser that is signed in",
	"grant_client":         "takes a browser that is signed in",
	"read_client_request":  "takes a browser that is signed in",
	"make_recovery_codes":  "takes a browser that signed in lately",
	"close_account":        "takes a browser that signed in lately",
	"connect_identity":     "takes a browser that signed in lately, and a chain",
	"confirm_account_mail": "takes a secret that stands in a mail alone",
	"confirm_mail":         "takes a secret that stands in a mail alone",
	"delete_message":       "takes a message of a thread with the secret of its writer",
	"fetch_archive":        "takes a link that an operator has made",
	"read_bid_link":        "takes a ticket that stands in a mail alone",
	"use_bid_link":         "takes a ticket that stands in a mail alone",
	"read_meeting_link":    "takes a ticket that stands in a mail alone",
	"read_decision_link":   "takes a ticket that stands in a notice alone",
	"use_decision_link":    "takes a ticket that stands in a notice alone",
	"use_meeting_link":     "takes a ticket that stands in a mail alone",
	"undo_deletion":        "takes a ticket that stands in a mail alone",
	"read_claim":           "takes a link that an agent has",
	"claim_profile":        "takes a link that an agent has",
	"make_claim_link":      "takes a profile that an agent registered",
	"release_profile":      "takes a profile that an agent registered and a person claimed",
	"decide_joining":       "takes a profile that waits for approval",

	"confirm_complaint_mail": "takes a ticket that stands in a mail alone",
}

// TestProperty calls every operation with inputs that its schema allows and with
// inputs that it does not, over a socket, at the HTTP and MCP doors: no answer is
// an error of ours, and each is valid against the schema that is published for
// it. The first round is of good inputs, and each operation succeeds; in the second one
// member too many is in each, and each refuses; those after it are random. The seed is the same each time, so that a change is judged by itself;
// STOA_TEST_SEED is another, or "new" for one of the clock, which is printed.
func TestProperty(t *testing.T) {
	t.Parallel()
	seed, least := storagetest.Seed(t), storagetest.Rounds(t, rounds)
	nodetest.Each(t, func(t *testing.T, change func(*node.Config)) {
		p := newProber(t, rand.New(rand.NewPCG(seed, 1)), change)
		for p.round = range 2 + least {
			for _, op := range protocol.Operations() {
				if op.Doors&protocol.HTTP != 0 {
					p.overHTTP(op)
				}
				if op.Doors&protocol.MCP != 0 {
					p.overMCP(op)
				}
			}
			if p.round == 1 {
				require.Empty(t, p.unreached())
			}
		}
	})
}

// unreached lists the operations that never succeeded, or that took everything.
func (p *prober) unreached() (list []string) {
	for _, op := range protocol.Operations() {
		for door, bit := range map[string]protocol.Door{"http": protocol.HTTP, "mcp": protocol.MCP} {
			key := door + " " + op.Name
			if op.Doors&bit == 0 {
				continue
			}
			if p.succeeded[key] == 0 && unreached[op.Name] == "" {
				list = append(list, fmt.Sprintf("%s never succeeded: %v", key, p.refused[key]))
			}
			if p.failed[key] == 0 {
				list = append(list, key+" was never refused")
			}
		}
	}
	slices.Sort(list)
	return list
}

// A prober calls operations at random.
type prober struct {
	t         *testing.T
	round     int
	n         *nodetest.House
	r         *rand.Rand
	token     string // of the owner of asha, a person
	shop      string // of the owner of bazaar, a business
	hidden    string // a post that the operator has hidden
	thread    string // of asha with herself, which nothing closes
	operator  string
	archive   []byte          // of asha
	keep      map[string]bool // ids that must not be used up
	client    *http.Client
	inputs    map[string]map[string]any // schema of the tool
	published *nodetest.OpenAPI
	pool      map[string][]string // ids that answers named, by prefix
	succeeded map[string]int
	failed    map[string]int
	refused   map[string]map[protocol.Code]int
}

func newProber(t *testing.T, r *rand.Rand, change func(*node.Config)) *prober {
	n := nodetest.Start(t, change, func(c *node.Config) { c.OwnerInvitations, c.NoProbes = 10_000, true })
	p := &prober{
		t: t, n: n, r: r, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, inputs: map[string]map[string]any{},
		published: newOpenAPI(t), pool: map[string][]string{}, succeeded: map[string]int{}, failed: map[string]int{}, refused: map[string]map[protocol.Code]int{},
	}
	p.populate(n)
	for _, op := range protocol.Operations() {
		if op.Doors != 0 {
			p.inputs[op.Name] = inputOf(t, n, op)
		}
	}
	return p
}

// inputOf returns the whole schema of an operation's input.
func inputOf(t testing.TB, n *nodetest.House, op *protocol.Operation) (schema map[string]any) {
	t.Helper()
	in := must.Get(n.Table.Schemas.Input(op))(t)
	raw := must.Get(json.Marshal(in))(t)
	require.NoError(t, json.Unmarshal(raw, &schema))
	return schema
}

// args are a good input as often as not, else one with up to three faults.
func (p *prober) args(op *protocol.Operation) map[string]any {
	args := p.good(op)
	if p.round == 1 {
		args["nonsense"] = "x"
	}
	if p.round < 2 || p.r.IntN(3) == 0 {
		return args
	}
	for range 1 + p.r.IntN(3) {
		p.spoil(args, p.inputs[op.Name], 0)
	}
	for name, of := range map[string]*protocol.Operation{"handle": protocol.PutOwnProfile.Operation, "as": protocol.ImportArchive.Operation} {
		if handle := protocol.CleanHandle(word(args[name])); op == of && protocol.IsHandle(handle) {
			args[name] = "asha" // with a second profile every call would have to say who acts
		}
	}
	if op.For == protocol.Operators && !op.ReadOnly { // who calls is needed to the end
		for _, name := range []string{"account", "handle"} {
			if protocol.CleanHandle(word(args[name])) == "asha" || protocol.CleanHandle(word(args[name])) == "bazaar" {
				args[name] = "nobody"
			}
		}
		delete(args, "handles")
	}
	return args
}

// overHTTP makes one call of the HTTP door and checks the answer.
func (p *prober) overHTTP(op *protocol.Operation) {
	p.t.Helper()
	args := p.args(op)
	r, said := p.request(op, args)
	if !said {
		return
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	res, err := p.client.Do(r.WithContext(ctx))
	require.NoError(p.t, err, "%s %s", r.Method, r.URL)
	defer res.Body.Close()
	about := fmt.Sprintf("%s %s %.2000s", r.Method, r.URL, nodetest.Encoded(args))
	require.Less(p.t, res.StatusCode, 500, about)
	if media := res.Header.Get("Content-Type"); strings.HasPrefix(media, "text/event-stream") {
		p.succeeded["http "+op.Name]++ // it does not end by itself
		require.NoError(p.t, res.Body.Close())
		require.Eventually(p.t, func() bool { return p.n.Feed.Hub.Streams() == 0 }, time.Minute, time.Millisecond, "a network has but a few places")
		return
	}
	raw := must.Get(io.ReadAll(res.Body))(p.t)
	checkAnswer(p.published, p.t, op, res, raw, about)
	if res.StatusCode < 300 {
		require.Equal(p.t, op.HTTP.Status, res.StatusCode, about)
		p.success("http", op, raw)
		return
	}
	var problem httpapi.Problem
	require.NoError(p.t, json.Unmarshal(raw, &problem), about)
	require.Equal(p.t, op.Dialect.Status(problem.Code), res.StatusCode, about)
	p.failure("http", op, problem.Code)
}

// request lays a call out for HTTP; said is false for what no request can say.
func (p *prober) request(op *protocol.Operation, args map[string]any) (*http.Request, bool) {
	rest := map[string]any{}
	for name, v := range args {
		rest[name] = v
	}
	path := op.HTTP.Path
	for _, name := range httpapi.PathParams(path) {
		s := word(rest[name])
		if s == "" || s == "." || s == ".." || len(s) > 2000 {
			return nil, false
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(s), 1)
		delete(rest, name)
	}
	secret := ""
	if s := word(rest[op.Secret]); op.Private() && strings.HasPrefix(s, protocol.ReadTokenPrefix) { // in no URL
		secret = sayable(s)
		delete(rest, op.Secret)
	}
	var body io.Reader = http.NoBody
	inBody := (op.HTTP.Method == "POST" || op.HTTP.Method == "PUT") && op.Upload == 0
	media, passphrase := "application/json", ""
	if op.Upload > 0 { // the whole file as often as not, else a piece of it; the whole one also in earnest
		file := p.archive
		if op == protocol.ImportItems.Operation {
			file = []byte(nodetest.CatalogCSV)
		}
		if op == protocol.PutPicture.Operation {
			file = []byte(pictureOf(p.t, color.White, 8, 8))
		}
		if p.round > 0 {
			switch p.r.IntN(4) {
			case 0, 1:
				file = file[:p.r.IntN(len(file))]
			case 2:
				delete(rest, "dryRun")
			}
		}
		body, passphrase = bytes.NewReader(file), sayable(word(rest["passphrase"]))
		delete(rest, "passphrase")
		media, _, _ = strings.Cut(op.UploadMedia, ", ")
	}
	if inBody {
		body = bytes.NewReader(nodetest.Encoded(rest))
	} else if len(rest) > 0 {
		query := url.Values{}
		for name, v := range rest {
			if s := word(v); len(s) < 4000 {
				query.Set(name, s)
			}
		}
		path += "?" + query.Encode()
	}
	r := must.Get(http.NewRequest(op.HTTP.Method, p.n.URL+path, body))(p.t)
	if inBody || op.Upload > 0 {
		r.Header.Set("Content-Type", media)
	}
	if passphrase != "" {
		r.Header.Set(protocol.PassphraseHeader, passphrase)
	}
	p.identify(r.Header, op)
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return r, true
}

// sayable is s where a header can say it, else nothing. Longer headers are refused
// by the server, before any operation.
func sayable(s string) string {
	if len(s) > 4000 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}

// identify adds what admits the caller, in the random rounds most of the time.
func (p *prober) identify(head http.Header, op *protocol.Operation) {
	random := p.round > 1
	switch {
	case random && p.r.IntN(12) == 0:
	case op.Access&protocol.Proof != 0 && op != protocol.ContinueConversation.Operation && (!random || p.r.IntN(2) == 0):
		head.Set("Proof-Of-Work", p.n.Proof(op.Purpose))
	case op == protocol.RegisterProfile.Operation: // with a second profile every call of asha's would have to say who acts
		head.Set("Proof-Of-Work", p.n.Proof(op.Purpose))
	case op.For == protocol.Operators:
		head.Set("Authorization", "Bearer "+p.operator)
	case op.For == protocol.Owners && ofShop(op):
		head.Set("Authorization", "Bearer "+p.shop)
	default:
		head.Set("Authorization", "Bearer "+p.token)
	}
}

// overMCP makes one call of a tool and checks the answer.
func (p *prober) overMCP(op *protocol.Operation) {
	p.t.Helper()
	args := p.args(op)
	about := fmt.Sprintf("%s %.2000s", op.Name, nodetest.Encoded(args))
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, op.Name, nodetest.Encoded(args))
	r, err := http.NewRequestWithContext(p.t.Context(), "POST", p.n.URL+nodetest.DoorOf(op.Name), bytes.NewReader(body))
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", "application/json")
	p.identify(r.Header, op)
	res, err := p.client.Do(r)
	require.NoError(p.t, err, about)
	defer res.Body.Close()
	raw := must.Get(io.ReadAll(res.Body))(p.t)
	require.Less(p.t, res.StatusCode, 500, about)
	var answer struct {
		ID     int
		Result *struct {
			Content    []struct{ Text string }
			Structured json.RawMessage `json:"structuredContent"`
			IsError    bool
		}
		Error *struct {
			Code int
			Data struct{ Code protocol.Code }
		}
	}
	require.NoError(p.t, json.Unmarshal(raw, &answer), "%s: %s", about, raw)
	switch {
	case answer.Error != nil:
		require.Contains(p.t, []int{-32700, -32600, -32602, -32603}, answer.Error.Code, "%s: %s", about, raw)
		require.NotEqual(p.t, protocol.Internal, answer.Error.Data.Code, "%s: %s", about, raw)
		p.failure("mcp", op, answer.Error.Data.Code)
	case answer.Result.IsError:
		var refused struct{ Code protocol.Code }
		require.NoError(p.t, json.Unmarshal([]byte(answer.Result.Content[0].Text), &refused), "%s: %s", about, raw)
		require.Contains(p.t, protocol.Codes(), refused.Code, about)
		require.Less(p.t, refused.Code.Status(), 500, "%s: %s", about, raw)
		p.failure("mcp", op, refused.Code)
	default:
		result(p.published, p.t, op, answer.Result.Structured, about)
		p.success("mcp", op, answer.Result.Structured)
	}
}

func (p *prober) success(door string, op *protocol.Operation, raw []byte) {
	p.succeeded[door+" "+op.Name]++
	p.harvest(op, raw)
}

func (p *prober) failure(door string, op *protocol.Operation, code protocol.Code) {
	key := door + " " + op.Name
	p.failed[key]++
	if p.refused[key] == nil {
		p.refused[key] = map[protocol.Code]int{}
	}
	p.refused[key][code]++
}

// word is a value in a path or query.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = word(v[i])
		}
		return strings.Join(parts, ",")
	}
	return string(nodetest.Encoded(v))
}
