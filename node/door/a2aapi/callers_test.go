package a2aapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/protocol/pow"
)

// plain calls a method without a signature; headers come in pairs.
func plain(h *nodetest.House, path, method, params string, headers ...string) nodetest.A2AAnswer {
	h.T.Helper()
	r := httptest.NewRequest("POST", h.Base+path, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)))
	r.RequestURI, r.RemoteAddr = path, "127.0.0.1:1234" // the network of clients with a connection
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	return h.ReadA2A(w.Result())
}

// said is the parameters of a message; extra are further members of it.
func said(id, part, extra string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[%s]%s}}`, id, part, extra)
}

const hi = `{"text":"Do you deliver to Jaipur?"}`

// readTokenOf is the read token that a new task of a guest has, "" for none.
func readTokenOf(task a2a.Task) (token string) {
	var members map[string]any
	_ = json.Unmarshal(task.Metadata, &members)
	token, _ = members["urn:stoa:a2a:contact:v1/readToken"].(string)
	return token
}

func served(callers string) func(*node.Config) {
	return func(c *node.Config) { c.A2ACallers = callers }
}

// TestA2A_Any: with a2a-callers=any guests, tokens and every key are served, each as at the other doors.
func TestA2A_Any(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change, served("any"))
		h.PutOpen("asha", nil)
		chain := h.Agents(1)[0]
		vikram := &nodetest.Agent{H: h, Pair: h.Hosted("vikram")}
		bearer := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

		// A guest: refused with a challenge, then with its solution, in the header field or the message.
		refused := plain(h, "/a2a/asha", "SendMessage", said("1", hi, ""))
		code, ours := codeOf(refused)
		require.Equal(t, []any{401, -31401, protocol.PowRequired}, []any{refused.Status, code, ours})
		require.Len(t, refused.Header.Values("WWW-Authenticate"), 3)
		solved := must.Get(pow.Solve(t.Context(), *refused.Error.Data[1].Challenge))(t)
		first := plain(h, "/a2a/asha", "SendMessage", said("1", hi, ""), "Proof-Of-Work", solved.Encode())
		task := first.Task(t)
		token := readTokenOf(task)
		require.NotEmpty(t, token)
		again := plain(h, "/a2a/asha", "SendMessage", said("1", hi, ""), "Proof-Of-Work", solved.Encode())
		require.Equal(t, "true", again.Header.Get("Idempotency-Replayed"))
		require.Equal(t, []string{task.ID, token}, []string{again.Task(t).ID, readTokenOf(again.Task(t))})
		inside := plain(h, "/a2a/asha", "SendMessage", said("1", hi, fmt.Sprintf(`,"metadata":{"urn:stoa:a2a:proof-of-work:v1":%q}`, h.Proof("contact"))))
		other := inside.Task(t)
		require.NotEqual(t, task.ContextID, other.ContextID, "another guest of the network with the same id and text: another thread")
		require.NotEqual(t, token, readTokenOf(other))

		answeredTask(h, task.ContextID, "To Jaipur and Ajmer.")
		done := plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID), bearer(token)...).Task(t)
		require.Equal(t, a2a.Completed, done.Status.State)
		require.Empty(t, readTokenOf(done), "it is shown with the first answer only")
		next := plain(h, "/a2a/asha", "SendMessage", said("2", hi, fmt.Sprintf(`,"contextId":%q`, task.ContextID)),
			append(bearer(token), "Proof-Of-Work", h.Proof("contact"))...).Task(t)
		require.Equal(t, task.ContextID, next.ContextID)
		for name, a := range map[string]nodetest.A2AAnswer{
			"another's token":    plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID), bearer(readTokenOf(other))...),
			"an agent":           chain.GetTask("asha", task.ID),
			"an owner elsewhere": plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID), bearer(h.TokenOf("vikram", "test"))...),
		} {
			code, _ := codeOf(a)
			require.Equal(t, -32001, code, name)
		}
		bare := plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID))
		code, ours = codeOf(bare)
		require.Equal(t, []any{401, -31401, protocol.Unauthorized}, []any{bare.Status, code, ours})
		wrong := plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID), bearer("stoa_x")...)
		require.Equal(t, 401, wrong.Status)
		require.Contains(t, wrong.Error.Message, "not from this node")
		lacking := plain(h, "/a2a/asha", "SendMessage", said("3", hi, fmt.Sprintf(`,"contextId":%q`, task.ContextID)), "Proof-Of-Work", h.Proof("contact"))
		code, _ = codeOf(lacking)
		require.Equal(t, -32602, code, "a context needs its token: %s", lacking.Raw)

		// An API token, a key of a profile, and a chain identity.
		for name, sends := range map[string]func(method, params string) nodetest.A2AAnswer{
			"token": func(method, params string) nodetest.A2AAnswer {
				return plain(h, "/a2a/asha", method, params, bearer(h.TokenOf("vikram", "test"))...)
			},
			"profile": func(method, params string) nodetest.A2AAnswer { return vikram.Do("/a2a/asha", method, params) },
			"chain":   func(method, params string) nodetest.A2AAnswer { return chain.Do("/a2a/asha", method, params) },
		} {
			task := sends("SendMessage", said(name, hi, "")).Task(t)
			require.Empty(t, readTokenOf(task), "%s is recognised again", name)
			require.Equal(t, task.ID, sends("GetTask", fmt.Sprintf(`{"id":%q}`, task.ID)).Task(t).ID, name)
		}

		// Operations: reading is open, writing is paid, what cannot succeed is not paid for.
		open := plain(h, "/a2a", "SendMessage", said("4", `{"data":{"operation":"read_board","input":{}}}`, ""))
		require.Nil(t, open.Error, "%s", open.Raw)
		post := `{"data":{"operation":"post_to_board","input":{"kind":"offer","title":"Looms","body":"Two."%s}}}`
		unpaid := plain(h, "/a2a", "SendMessage", said("5", fmt.Sprintf(post, ""), ""))
		require.Equal(t, "board", unpaid.Error.Data[1].Challenge.Parameters.Data.Purpose)
		paid := plain(h, "/a2a", "SendMessage", said("5", fmt.Sprintf(post, fmt.Sprintf(`,"pow":%q`, h.Proof("board"))), ""))
		require.Nil(t, paid.Error, "%s", paid.Raw)
		hopeless := plain(h, "/a2a", "SendMessage", said("6", `{"data":{"operation":"post_to_board","input":{"kind":"rumour"}}}`, ""))
		code, _ = codeOf(hopeless)
		require.Equal(t, -32602, code, "%s", hopeless.Raw)
		require.Equal(t, 200, hopeless.Status)
		code, ours = codeOf(plain(h, "/a2a/nobody", "SendMessage", said("7", hi, "")))
		require.Equal(t, []any{-32602, protocol.NotFound}, []any{code, ours}, "nobody has to pay to learn it")

		h.PutOpen("ravi", func(d *protocol.ProfileDraft) { d.ContactPolicy.OutsideAgentsWithIdentity = false })
		ravi := nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/ravi", ""))
		require.Equal(t, h.Base+"/a2a/ravi", *ravi.Interfaces.A2A, "guests are served, whom the profile takes")
		require.Nil(t, plain(h, "/a2a/ravi", "SendMessage", said("r", hi, ""), "Proof-Of-Work", h.Proof("contact")).Error)
		h.PutOpen("meera", func(d *protocol.ProfileDraft) { *d.ContactPolicy = protocol.PolicyDraft{} })
		require.Nil(t, nodetest.As[protocol.Profile](h.Ask("GET", "/api/public/agents/meera", "")).Interfaces.A2A, "nobody is")
		card := h.Ask("GET", "/a2a/asha/agent-card.json", "", "A2A-Version", "1.0").Body.String()
		for _, needs := range []string{"httpsig", "bearer", "proofOfWork"} {
			require.Contains(t, card, `{"schemes":{"`+needs+`":{"list":["agent"]}}}`)
		}
	})
}

// TestA2A_Signed: with a2a-callers=signed every key is served, and nobody without one.
func TestA2A_Signed(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, served("signed"))
	h.PutOpen("asha", nil)
	vikram := &nodetest.Agent{H: h, Pair: h.Hosted("vikram")}
	task := vikram.Write("asha", "1", "Hello", "").Task(t)
	require.Equal(t, task.ID, vikram.GetTask("asha", task.ID).Task(t).ID)
	stranger := &nodetest.Agent{H: h, Pair: must.Get(key.GenerateEd25519())(t)}
	for name, a := range map[string]nodetest.A2AAnswer{
		"nothing":            plain(h, "/a2a/asha", "SendMessage", said("2", hi, "")),
		"a proof":            plain(h, "/a2a/asha", "SendMessage", said("2", hi, ""), "Proof-Of-Work", h.Proof("contact")),
		"a token":            plain(h, "/a2a/asha", "SendMessage", said("2", hi, ""), "Authorization", "Bearer "+h.TokenOf("vikram", "test")),
		"a token that reads": plain(h, "/a2a/asha", "GetTask", fmt.Sprintf(`{"id":%q}`, task.ID), "Authorization", "Bearer "+h.TokenOf("vikram", "test")),
		"nothing that reads": plain(h, "/a2a", "SendMessage", said("3", `{"data":{"operation":"read_board","input":{}}}`, "")),
	} {
		code, ours := codeOf(a)
		require.Equal(t, []any{http.StatusUnauthorized, -31401, protocol.Unauthorized}, []any{a.Status, code, ours}, "%s: %s", name, a.Raw)
		require.NotContains(t, string(a.Raw), "challenge", name)
		require.NotEmpty(t, a.Error.Data[1].Instead, name)
	}
	_, ours := codeOf(stranger.Write("asha", "4", "Hello", ""))
	require.Equal(t, protocol.KeyUnknown, ours)
	require.NotContains(t, h.Ask("GET", "/a2a/asha/agent-card.json", "").Body.String(), "API token")
}
