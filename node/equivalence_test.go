package node_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
)

// TestEquivalence calls every declared operation over HTTP, MCP and the client
// behind stoa call with the same input: its example, the example with names of
// things that are there, and inputs that each break one or two rules of its
// schema. The result, or the code and the set of faults, must be the same.
func TestEquivalence(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	refused := map[string]bool{} // operations of which no result was compared
	for _, op := range protocol.Operations() {
		if op.Doors&protocol.HTTP == 0 || op.Doors&protocol.MCP == 0 || op == protocol.FileComplaint.Operation { // which has five a day
			continue
		}
		t.Run(op.Name, func(t *testing.T) {
			refused[op.Name] = true
			d := *d
			d.T, d.House = t, d.House.On(t)
			if op.For == protocol.Owners && ofShop(op) {
				d.Token, d.Mine = d.Shop, d.Shopkeeper
			}
			example := nodetest.Members(t, op.Example)
			if op == protocol.RegisterProfile.Operation {
				example["handle"] = "asha" // is taken at each door
			}
			for _, token := range []bool{false, true} {
				if token && op.Access&protocol.Session == 0 && !op.NoStore {
					continue
				}
				compare(&d, call{op, example, token})
				if compareWorld(&d, op, example, token).Code == "" {
					delete(refused, op.Name)
				}
				for name, args := range broken(example, inputOf(t, d.House, op), op) {
					t.Run(fmt.Sprintf("%s token=%t", name, token), func(t *testing.T) {
						d := d
						d.T, d.House = t, d.House.On(t)
						got := compare(&d, call{op, args, token})
						if op.Access == protocol.Anonymous || op.Access&protocol.Proof != 0 || token {
							require.Equal(t, protocol.Validation, got.Code)
							require.NotEmpty(t, got.Faults)
						} else {
							require.Equal(t, protocol.Unauthorized, got.Code, "who may not is not told what is wrong")
						}
					})
				}
			}
		})
	}
	require.Equal(t, unequalled, slices.Sorted(maps.Keys(refused)), "the second list is of the operations that were only refused: make "+
		"what their examples name in newDoors, or list them in unequalled with the reason")
}

// unequalled are the operations of which the doors can compare no result here.
// Confirming mail takes a secret that is only in a mail; a delivery moves on
// by itself while the doors are compared; an order is made on a page; a post is deleted once, with its secret (TestSecrets). What joins and claims is
// tried by TestJoin.
var unequalled = []string{"claim_profile", "confirm_account_mail", "confirm_mail", "delete_post", "register_profile",
	"replay_callback", "review_order", "update_order"}

// ofShop reports whether an operation is about a business and what it sells.
func ofShop(op *protocol.Operation) bool {
	return slices.ContainsFunc([]string{"merchant", "item", "order", "reviews", "till", "stock", "catalog"},
		func(s string) bool { return strings.Contains(op.Name, s) })
}

// compareWorld calls with names of things that are there. A write gets a post of
// its own for each door, so that each finds the same world.
func compareWorld(d *nodetest.Doors, op *protocol.Operation, example map[string]any, token bool) outcome {
	d.T.Helper()
	world := worldOf(d, op, example)
	if op.ReadOnly {
		args := world()
		fixed := func() map[string]any { return args }
		return compareEach(d, op, fixed, token)
	}
	return compareEach(d, op, world, token)
}

// worldOf makes what an operation is about, and the arguments that name it.
func worldOf(d *nodetest.Doors, op *protocol.Operation, example map[string]any) func() map[string]any {
	return func() map[string]any {
		if !ofShop(op) { // delete_profile came before
			d.Good("POST", "/api/owner/profile/restore", `{"handle":"asha"}`, d.Token, nil)
		}
		post := as(d.House, d.Token)
		followers(d.House, "asha", 1)
		return ownThing(d, op, replaced(example, func(name, s string) string {
			switch {
			case strings.HasPrefix(s, "post_"):
				return post.ID
			case name == "kind" && op == protocol.EditPost.Operation:
				return string(post.Kind)
			case strings.HasPrefix(s, "rcpt_"):
				return d.Receipt
			case name == "paidAt":
				return d.PaidAt
			case name == "actor":
				return "https://social.example/users/0"
			case name == "order":
				return "R-8"
			case strings.HasPrefix(s, "thr_") && op == protocol.ContinueConversation.Operation:
				return d.Talk
			case strings.HasPrefix(s, "thr_"):
				return d.Thread
			case name == "handle" && ofShop(op):
				return "bazaar"
			}
			return s
		}))
	}
}

// as posts as the owner of asha, who may take the post back.
func as(h *nodetest.House, token string) (p protocol.Post) {
	h.T.Helper()
	a := h.Ask("POST", "/api/public/board", nodetest.GoodPost, "Authorization", "Bearer "+token).Is(201)
	a.Into(&p)
	return p
}

// thread begins one with asha, as her owner.
func thread(h *nodetest.House, token string) (t protocol.ContactReceipt) {
	h.T.Helper()
	a := h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"Are you there?"}`, "Authorization", "Bearer "+token).Is(201)
	a.Into(&t)
	return t
}

func compare(d *nodetest.Doors, c call) outcome {
	d.T.Helper()
	return compareEach(d, c.op, func() map[string]any {
		if c.op == protocol.BidForAttention.Operation || c.op == protocol.CloseAttentionBoard.Operation { // each door finds the board as the first one did
			d.Reopen(protocol.PayUPI)
		}
		if c.op == protocol.ConnectCalendar.Operation || c.op == protocol.PutItems.Operation { // whose check may have failed since the last door
			ownThing(d, c.op, c.args)
		}
		if c.op == protocol.RequestMeeting.Operation { // nor does it meet a limit
			takesMeetings(d)
			args := maps.Clone(c.args)
			if args["email"] == nodetest.Members(d.T, c.op.Example)["email"] {
				args["email"] = newMailbox()
			}
			return args
		}
		return c.args
	}, c.token)
}

func compareEach(d *nodetest.Doors, op *protocol.Operation, args func() map[string]any, token bool) outcome {
	d.T.Helper()
	overMCP := overMCP(d, call{op, args(), token})
	overCall := overCall(d, call{op, args(), token})
	overHTTP, said := overHTTP(d, call{op, args(), token})
	if overMCP.Code == "" {
		result(d.Published, d.T, op, []byte(overMCP.JSON), op.Name)
	}
	exact := op.ReadOnly && !op.NoStore && op != protocol.CheckBid.Operation // which says when it was made
	for _, o := range []*outcome{&overMCP, &overCall, &overHTTP} {
		o.JSON = plain(d.T, op, o.JSON, exact)
	}
	if !said {
		// No request can say it, so stoa call refuses it itself, in the node's words.
		require.Equal(d.T, protocol.Validation, overCall.Code)
		if overMCP.Code == protocol.Validation {
			require.Subset(d.T, overMCP.Faults, overCall.Faults)
		}
		return overMCP
	}
	require.Equal(d.T, overMCP, overCall, "stoa call")
	require.Equal(d.T, overMCP, overHTTP, "HTTP")
	return overMCP
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// masks hide what two calls cannot have in common.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}\b`), "${1}_ID"},
	{times, "TIME"},
	{regexp.MustCompile(`%2Fmtg_[0-7][0-9a-hjkmnp-tv-z]{25}\b`), "mtg_ID"},
	{regexp.MustCompile(`\d{8}T\d{6}Z|\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ`), "TIME"}, // in links that put a meeting on a calendar
	{regexp.MustCompile(`\b[0-9a-f]{32,}\b`), "HEX"},
	{regexp.MustCompile(`\b\d{10}\b`), "UNIX"},
	{regexp.MustCompile(`\b4\d{11}\b`), "UTR"},
	{regexp.MustCompile(`BID[0-9A-Z]{26}1?`), "REFERENCE"},
	{regexp.MustCompile(`\bbidder-[0-9a-f]+\b`), "BIDDER"},
	{regexp.MustCompile(`\b\d{4}-\d\d/\d{6}\b`), "RECEIPT"},
	{regexp.MustCompile(`stoa_[0-9A-Za-z_-]{16,}|"[0-9A-Za-z_-]{22,}"`), "SECRET"},
	{regexp.MustCompile(`invitation=[0-9A-Za-z_-]+`), "invitation=SECRET"},
}

// plain brings a result into a form that can be compared: members in order, and
// for writes and challenges what is new each time masked.
func plain(t *testing.T, op *protocol.Operation, result string, exact bool) string {
	t.Helper()
	if op.HTTP.Status == http.StatusNoContent && (result == "" || result == "{}") {
		return "" // no content over HTTP is an object without members over MCP
	}
	if result == "" || op.Media != "" {
		return result
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(result), &v))
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	result = string(raw)
	if exact {
		return result
	}
	for _, m := range masks {
		result = m.what.ReplaceAllString(result, m.with)
	}
	return result
}

func replaced(args map[string]any, f func(name, s string) string) map[string]any {
	out := maps.Clone(args)
	for name, v := range out {
		if s, ok := v.(string); ok {
			out[name] = f(name, s)
		}
	}
	return out
}
