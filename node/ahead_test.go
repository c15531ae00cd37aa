package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// TestProof_AskedWhereItHelps: what is wrong with the arguments, and what anyone
// would be refused for, is told before a proof of work is asked for, at every door.
func TestProof_AskedWhereItHelps(t *testing.T) {
	t.Parallel()
	nodetest.AnyHouse(t, func(t *testing.T, h *nodetest.House) {
		h.Agent("asha", nodetest.OpenPolicy)
		h.Agent("ravi", `{"outsideAgentsWithIdentity":true,"anonymous":false}`)
		h.Agent("shop", `{"anonymous":true,"outsideAgentsWithIdentity":true,"kinds":["support"]}`)
		p := h.Post("Looms")
		gone := h.Post("Gone")
		require.NoError(t, h.Admin().Operate(t.Context(), protocol.HidePost.Operation, protocol.Decision{ID: gone.ID, Reason: "spam"}, nil))
		const nowhere = "post_01k9y3v6k8e5w9q2x4z7c1m0ad"
		stale := h.Proof("report") // good for no other purpose
		for _, c := range []struct {
			op, path, body string
			want           protocol.Code
		}{
			{"contact_agent", "/api/public/agents/asha/contact", `{"message":"Do you deliver?"}`, protocol.PowRequired},
			{"contact_agent", "/api/public/agents/asha/contact", `{"message":""}`, protocol.Validation},
			{"contact_agent", "/api/public/agents/asha/contact", `{"message":"m","callbackUrl":"ftp://x"}`, protocol.Validation},
			{"contact_agent", "/api/public/agents/nobody/contact", `{"message":"m"}`, protocol.NotFound},
			{"contact_agent", "/api/public/agents/ravi/contact", `{"message":"m"}`, protocol.ContactRefused},
			{"contact_agent", "/api/public/agents/shop/contact", `{"message":"m"}`, protocol.ContactRefused},
			{"contact_agent", "/api/public/agents/shop/contact", `{"message":"m","kind":"support"}`, protocol.PowRequired},
			{"post_to_board", "/api/public/board", nodetest.GoodPost, protocol.PowRequired},
			{"post_to_board", "/api/public/board", `{"kind":"offer"}`, protocol.Validation},
			{"post_to_board", "/api/public/board", `{"kind":"offer","title":"a","body":"b","inReplyTo":"` + p.ID + `"}`, protocol.PowRequired},
			{"post_to_board", "/api/public/board", `{"kind":"offer","title":"a","body":"b","inReplyTo":"` + nowhere + `"}`, protocol.Validation},
			{"report_post", "/api/public/board/" + p.ID + "/report", `{"reason":"spam"}`, protocol.PowRequired},
			{"report_post", "/api/public/board/" + nowhere + "/report", `{"reason":"spam"}`, protocol.NotFound},
			{"report_post", "/api/public/board/" + gone.ID + "/report", `{"reason":"spam"}`, protocol.Gone},
		} {
			name := c.op + " " + c.path + " " + c.body
			bare := h.Ask("POST", c.path, c.body).Problem()
			require.Equal(t, c.want, bare.Code, name)
			require.Equal(t, c.want == protocol.PowRequired, bare.Challenge != nil, name)
			if c.op != "report_post" {
				bad := h.Ask("POST", c.path, c.body, "Proof-Of-Work", stale).Problem()
				if c.want == protocol.PowRequired {
					require.Equal(t, protocol.PowInvalid, bad.Code, name)
				} else {
					require.Equal(t, c.want, bad.Code, "a proof that is not good is asked for again where it would help: %s", name)
				}
			}
			args := map[string]any{}
			require.NoError(t, json.Unmarshal([]byte(c.body), &args))
			switch part := strings.Split(c.path, "/"); c.op {
			case "contact_agent":
				args["handle"] = part[4]
			case "report_post":
				args["id"] = part[4]
			}
			raw := must.Get(json.Marshal(args))(t)
			require.Equal(t, c.want, h.Tool(c.op, string(raw)).Refused.Code, name)
		}
	})
}

// TestProof_LooksAreLimited: a caller that looks without a proof uses up the network's
// limit like one who writes.
func TestProof_LooksAreLimited(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, func(c *node.Config) { c.Dev, c.WriteRate = false, 0.5 })
	codes := map[int]int{}
	for range 8 {
		codes[h.Ask("POST", "/api/public/agents/nobody/contact", `{"message":"m"}`).Code]++
	}
	require.NotZero(t, codes[http.StatusTooManyRequests], "%v", codes)
	require.NotZero(t, codes[http.StatusNotFound], "%v", codes)
}

// TestProof_BlockedStaysPrivate: that an agent has blocked the writer's network is
// told to one who has paid, and to nobody before.
func TestProof_BlockedStaysPrivate(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	token := h.Agent("asha", nodetest.OpenPolicy)
	begun := begun(h, "asha", `{"message":"Do you deliver?"}`)
	h.Ask("POST", "/api/owner/threads/"+begun.ThreadID+"/block", `{}`, "Authorization", token).Is(201)
	require.Equal(t, protocol.PowRequired, h.Ask("POST", "/api/public/agents/asha/contact", `{"message":"m"}`).Problem().Code)
	require.Equal(t, protocol.ContactRefused, write(h, "asha", `{"message":"m"}`).Problem().Code)
}

// TestProof_Forms: a solution is an object, a string that holds it, or base64; the
// counter alone is enough.
func TestProof_Forms(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	for name, form := range map[string]func(s pow.Solution, plain []byte) any{
		"object":           func(_ pow.Solution, plain []byte) any { return json.RawMessage(plain) },
		"text":             func(_ pow.Solution, plain []byte) any { return string(plain) },
		"text with spaces": func(_ pow.Solution, plain []byte) any { return "\n " + string(plain) + " " },
		"base64":           func(s pow.Solution, _ []byte) any { return s.Encode() },
		"counter alone":    func(s pow.Solution, _ []byte) any { s.Solution.DerivedKey = ""; return s },
		"counter alone, text": func(s pow.Solution, _ []byte) any {
			s.Solution.DerivedKey = ""
			raw, _ := json.Marshal(s)
			return string(raw)
		},
	} {
		solution := func() any {
			s := must.Get(pow.Parse([]byte(h.Proof("board"))))(t)
			plain := must.Get(json.Marshal(s))(t)
			return form(s, plain)
		}
		body := func() string {
			raw := must.Get(json.Marshal(map[string]any{"kind": "offer", "title": "Looms " + name, "body": "b " + name, "pow": solution()}))(t)
			return string(raw)
		}
		a := h.Ask("POST", "/api/public/board", body())
		require.Equal(t, 201, a.Code, "%s: %s", name, a.Body)
		require.False(t, h.Tool("post_to_board", body()).IsError, name)
		wrong := strings.Replace(body(), `counter\":`, `counter\":9`, 1)
		wrong = strings.Replace(wrong, `"counter":`, `"counter":9`, 1)
		if name != "base64" && !strings.HasPrefix(name, "counter") { // where nothing is asked for, every counter will do
			p := h.Ask("POST", "/api/public/board", wrong).Problem()
			require.Equal(t, protocol.PowInvalid, p.Code, "%s: %s", name, fmt.Sprint(p))
		}
	}
}
