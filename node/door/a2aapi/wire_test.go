package a2aapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
)

// TestA2A_Refusals: the wire as the sheet has it, for a caller who is known.
func TestA2A_Refusals(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	method := func(name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{}}`, name)
	}
	data := func(data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":%s}]}}}`, data)
	}
	tests := []struct {
		name, body string
		headers    []string
		status     int // 200 when it is not said
		code       int
		ours       protocol.Code
		id, reason string
		field      string
	}{
		{name: "not JSON", body: `{"jsonrpc":`, code: -32700, ours: protocol.InvalidRequest, id: "null"},
		{name: "twice", body: `{"jsonrpc":"2.0","id":7,"id":8,"method":"GetTask"}`, code: -32700, ours: protocol.InvalidRequest, id: "null"},
		{name: "deep", body: strings.Repeat("[", 30) + strings.Repeat("]", 30), code: -32700, ours: protocol.InvalidRequest, id: "null"},
		{name: "a batch", body: "[" + nodetest.Hello + "]", code: -32600, ours: protocol.InvalidRequest, id: "null"},
		{name: "no version of JSON-RPC", body: `{"id":7,"method":"GetTask","params":{}}`, code: -32600, ours: protocol.InvalidRequest},
		{name: "no method", body: `{"jsonrpc":"2.0","id":7}`, code: -32600, ours: protocol.InvalidRequest},
		{name: "method of a wrong type", body: `{"jsonrpc":"2.0","id":7,"method":1}`, code: -32600, ours: protocol.InvalidRequest},
		{name: "id of a wrong type", body: `{"jsonrpc":"2.0","id":{},"method":"GetTask"}`, code: -32600, ours: protocol.InvalidRequest, id: "null"},
		{name: "params of a wrong type", body: `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[1]}`, code: -32600, ours: protocol.InvalidRequest},
		{name: "text id", body: `{"jsonrpc":"2.0","id":"a","method":"nonsense"}`, code: -32601, ours: protocol.NotFound, id: `"a"`},
		{name: "null id", body: `{"jsonrpc":"2.0","id":null,"method":"nonsense"}`, code: -32601, ours: protocol.NotFound, id: "null"},
		{name: "unknown method", body: method("Nonsense"), code: -32601, ours: protocol.NotFound},
		{name: "method of 0.3 in 1.0", body: method("message/send"), code: -32601, ours: protocol.NotFound},
		{name: "0.3 by its method", body: method("message/send"), headers: []string{"A2A-Version", ""}, code: -32602, ours: protocol.Validation,
			reason: "INVALID_PARAMS"},
		{name: "method of 1.0 in 0.3", body: nodetest.Hello, headers: []string{"A2A-Version", "0.3"}, code: -32601, ours: protocol.NotFound},
		{name: "unknown method without a version", body: method("nonsense"), headers: []string{"A2A-Version", ""}, code: -32601, ours: protocol.NotFound},
		{name: "9.9", body: nodetest.Hello, headers: []string{"A2A-Version", "9.9"}, code: -32009, ours: protocol.InvalidRequest,
			reason: "VERSION_NOT_SUPPORTED"},
		{name: "streaming nothing", body: method("SendStreamingMessage"), code: -32602, ours: protocol.Validation, field: "message"},
		{name: "subscribing to nothing", body: method("SubscribeToTask"), code: -32602, ours: protocol.Validation, field: "id"},
		{name: "push", body: method("CreateTaskPushNotificationConfig"), code: -32602, ours: protocol.Validation, field: "taskId"},
		{name: "push to a private place", body: strings.Replace(nodetest.Hello, `"params":{`,
			`"params":{"configuration":{"taskPushNotificationConfig":{"url":"http://10.0.0.1/"}},`, 1), code: -32602, ours: protocol.Validation,
			field: "configuration.taskPushNotificationConfig.url"},
		{name: "push of an operation", body: strings.Replace(data(`{"operation":"read_board"}`), `"params":{`,
			`"params":{"configuration":{"taskPushNotificationConfig":{"url":"https://a.example/"}},`, 1), code: -32003, ours: protocol.Conflict,
			reason: "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{name: "no params", body: `{"jsonrpc":"2.0","id":7,"method":"SendMessage"}`, code: -32602, ours: protocol.Validation},
		{name: "another tenant", body: strings.Replace(nodetest.Hello, `"params":{`, `"params":{"tenant":"x",`, 1), code: -32602,
			ours: protocol.Validation, field: "tenant"},
		{name: "bytes", body: strings.Replace(nodetest.Hello, `{"text":"hi"}`, `{"raw":"aGk="}`, 1), code: -32005, ours: protocol.UnsupportedMediaType,
			reason: "CONTENT_TYPE_NOT_SUPPORTED"},
		{name: "too long a text", body: strings.Replace(nodetest.Hello, `"hi"`, `"`+strings.Repeat("x", 2001)+`"`, 1), code: -32602, ours: protocol.Validation,
			field: "message.parts"},
		{name: "invisible text", body: strings.Replace(nodetest.Hello, `"hi"`, `"a\u202eb"`, 1), code: -32602, ours: protocol.Validation, field: "message.parts"},
		{name: "kind", body: strings.Replace(nodetest.Hello, `"role"`, `"metadata":{"urn:stoa:a2a:contact:v1":{"kind":"rumour"}},"role"`, 1), code: -32602,
			ours: protocol.Validation, field: `message.metadata["urn:stoa:a2a:contact:v1"].kind`},
		{name: "kind of a wrong type", body: strings.Replace(nodetest.Hello, `"role"`, `"metadata":{"urn:stoa:a2a:contact:v1":{"kind":1}},"role"`, 1), code: -32602,
			ours: protocol.Validation},
		{name: "unknown operation", body: data(`{"operation":"dance"}`), code: -32602, ours: protocol.Validation, field: "message.parts[0].data.operation"},
		{name: "operation of an owner", body: data(`{"operation":"send_exchange","input":{}}`), code: -32602, ours: protocol.Validation,
			field: "message.parts[0].data.operation"},
		{name: "operation with a wrong input", body: data(`{"operation":"post_to_board","input":{"kind":"rumour","title":"t","body":"b"}}`), code: -32602,
			ours: protocol.Validation, field: "message.parts[0].data.input.kind"},
		{name: "input of a wrong type", body: data(`{"operation":"post_to_board","input":7}`), code: -32602, ours: protocol.Validation,
			field: "message.parts[0].data.input"},
		{name: "about another agent", body: data(`{"operation":"get_agent_profile","input":{"handle":"vikram"}}`), code: -32602, ours: protocol.Validation,
			field: "message.parts[0].data.input.handle"},
		{name: "what is not there", body: data(`{"operation":"get_board_post","input":{"id":"post_01k9h2v4tqe7dsq1h0y5m8x3zr"}}`), code: -32602,
			ours: protocol.NotFound, reason: "NOT_FOUND"},
		{name: "media type", body: nodetest.Hello, headers: []string{"Content-Type", "text/plain"}, status: 415, code: -32005, ours: protocol.UnsupportedMediaType,
			id: "null"},
		{name: "encoding", body: nodetest.Hello, headers: []string{"Content-Encoding", "gzip"}, status: 415, code: -32005,
			ours: protocol.UnsupportedMediaType, id: "null"},
		{name: "too large", body: nodetest.Hello + strings.Repeat(" ", 256<<10), status: 413, code: -32600, ours: protocol.TooLarge, id: "null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := h.On(t)
			a := (&nodetest.Agent{H: h, ID: me.ID, Pair: me.Pair}).Post("/a2a/asha", tt.body, tt.headers...)
			code, ours := codeOf(a)
			require.Equal(t, tt.code, code, "%s", a.Raw)
			require.Equal(t, tt.ours, ours, "%s", a.Raw)
			require.Equal(t, cmp.Or(tt.status, 200), a.Status)
			require.Equal(t, cmp.Or(tt.id, "7"), string(a.ID))
			if tt.reason != "" {
				require.Equal(t, tt.reason, a.Error.Data[0].Reason)
				require.Equal(t, tt.reason == "NOT_FOUND", strings.Contains(string(a.Raw), `"advice"`), "how to mend HTTP is no help with A2A: %s", a.Raw)
			}
			if tt.field != "" {
				require.Equal(t, tt.field, a.Error.Data[1].Violations[0].Field, "%s", a.Raw)
			}
			require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			require.Contains(t, a.Error.Data[len(a.Error.Data)-1].Type, h.Base+"/problems/")
		})
	}
	t.Run("good all the same", func(t *testing.T) {
		for _, headers := range [][]string{
			{"A2A-Version", ""}, {"A2A-Version", "1.0.1"}, {"Content-Type", "application/a2a+json"}, {"Content-Type", "application/json; charset=utf-8"},
		} {
			require.Nil(t, me.Post("/a2a/asha", nodetest.Hello, headers...).Error)
		}
		require.Nil(t, me.Post("/a2a/asha/", nodetest.Hello).Error, "with a slash after it")
		require.Nil(t, me.Post("/a2a/asha", strings.Replace(nodetest.Hello, `"role"`, `"metadata":{"x":"`+strings.Repeat("y", 16000)+`"},"role"`, 1)).Error)
		large := me.Post("/a2a/asha", nodetest.Hello+strings.Repeat(" ", 200<<10))
		require.Nil(t, large.Error, "up to 256 KiB: %s", large.Raw)
		require.Equal(t, 204, me.Post("/a2a/asha", `{"jsonrpc":"2.0","method":"SendMessage"}`).Status, "a notification is not answered")
		require.Equal(t, 405, h.Ask("GET", "/a2a/asha", "").Code)
		require.Equal(t, "POST", h.Ask("GET", "/a2a/asha", "").Header().Get("Allow"))
		preflight := h.Ask("OPTIONS", "/a2a/asha", "")
		require.Contains(t, preflight.Header().Get("Access-Control-Allow-Headers"), "A2A-Version")
	})
}

// TestA2A_Who: nobody is served without an identity that the chain vouches for.
func TestA2A_Who(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	hosted := h.Hosted("vikram")
	token := h.TokenOf("vikram", "test")
	me := h.Agents(1)[0]
	stranger := must.Get(key.GenerateEd25519())(t)
	plain := func(headers ...string) nodetest.A2AAnswer {
		r := httptest.NewRequest("POST", h.Base+"/a2a/asha", strings.NewReader(nodetest.Hello))
		r.RequestURI = "/a2a/asha"
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		return h.ReadA2A(w.Result())
	}
	signed := func(pair key.Pair, identity string, change func(*http.Request)) nodetest.A2AAnswer {
		r := httptest.NewRequest("POST", h.Base+"/a2a/asha", strings.NewReader(nodetest.Hello))
		r.RequestURI = "/a2a/asha"
		r.Header.Set("Content-Type", "application/json")
		if identity != "" {
			r.Header.Set("Agent-Identity", identity)
		}
		target := must.Get(httpsig.ParseTarget(h.Base))(t)
		require.NoError(t, httpsig.SignRequest(r, target, []byte(nodetest.Hello), httpsig.SignOptions{Key: pair.Signer()}))
		r.Body = readCloser(nodetest.Hello)
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		return h.ReadA2A(w.Result())
	}
	tests := []struct {
		name   string
		answer nodetest.A2AAnswer
		status int
		code   int
		ours   protocol.Code
		fault  bool // Signature-Error
	}{
		{"nothing", plain(), 401, -31401, protocol.Unauthorized, false},
		{"a proof of work", plain("Proof-Of-Work", h.Proof("contact")), 401, -31401, protocol.Unauthorized, false},
		{"an owner's token", plain("Authorization", "Bearer "+token), 401, -31401, protocol.Unauthorized, false},
		{"a wrong token", plain("Authorization", "Bearer stoa_x"), 401, -31401, protocol.Unauthorized, false},
		{"a key of a hosted profile without chain identity", signed(hosted, "", nil), 403, -31403, protocol.IdentityUnverified, false},
		{"a key that nobody knows", signed(stranger, "", nil), 401, -31401, protocol.KeyUnknown, true},
		{"a key that the chain does not grant", signed(stranger, me.ID, nil), 401, -31401, protocol.KeyUnknown, false},
		{"an identity that is not registered", signed(me.Pair, me.ID+"7", nil), 403, -31403, protocol.IdentityUnverified, false},
		{"another body", signed(me.Pair, me.ID, func(r *http.Request) { r.Body = readCloser(strings.Replace(nodetest.Hello, "hi", "ho", 1)) }), 401, -31401,
			protocol.SignatureInvalid, true},
		{"half a signature", signed(me.Pair, me.ID, func(r *http.Request) { r.Header.Del("Signature") }), 401, -31401, protocol.SignatureInvalid, true},
		{"an identity that is not covered", signed(me.Pair, "", func(r *http.Request) { r.Header.Set("Agent-Identity", me.ID) }), 401, -31401,
			protocol.SignatureInvalid, true},
	}
	for _, tt := range tests {
		code, ours := codeOf(tt.answer)
		require.Equal(t, tt.status, tt.answer.Status, "%s: %s", tt.name, tt.answer.Raw)
		require.Equal(t, tt.code, code, tt.name)
		require.Equal(t, tt.ours, ours, tt.name)
		require.Contains(t, tt.answer.Header.Get("Accept-Signature"), `"agent-identity"`, tt.name)
		require.Equal(t, tt.fault, tt.answer.Header.Get("Signature-Error") != "", tt.name)
		require.Equal(t, tt.status == 401, tt.answer.Header.Get("WWW-Authenticate") != "", tt.name)
		require.NotContains(t, string(tt.answer.Raw), "API token", "%s: it does not help here", tt.name)
	}
	refused := tests[0].answer.Error.Data[1]
	for _, way := range refused.Accepts {
		require.NotContains(t, []string{string(protocol.ByDirectory), string(protocol.ByProfileKey), string(protocol.BySignIn)}, way.Level)
	}
	require.NotEmpty(t, refused.Accepts)
	require.Equal(t, []string{"contact_agent", "POST", h.Base + "/mcp/public"},
		[]string{refused.Instead[1].Operation, refused.Instead[1].Method, refused.Instead[1].URL})
	require.Contains(t, refused.Identity, "/SKILL.md")
	require.Equal(t, h.Base+"/api/public/agents/asha/contact", refused.Instead[0].URL)
	var sent http.Header
	once := signed(me.Pair, me.ID, func(r *http.Request) { sent = r.Header.Clone() })
	require.Nil(t, once.Error, "%s", once.Raw)
	again := signed(me.Pair, me.ID, func(r *http.Request) { r.Header = sent })
	_, ours := codeOf(again)
	require.Equal(t, protocol.SignatureReplayed, ours, "the same message is signed again")
	fresh := signed(me.Pair, me.ID, nil)
	require.Equal(t, "true", fresh.Header.Get("Idempotency-Replayed"), "then it gets its answer and writes nothing")
	sent.Set("Idempotency-Key", "other") // not covered, as an attacker who copied the request would do
	replayed := signed(me.Pair, me.ID, func(r *http.Request) { r.Header = sent })
	code, ours := codeOf(replayed)
	require.Equal(t, -31401, code)
	require.Equal(t, protocol.SignatureReplayed, ours)
	require.Equal(t, 401, replayed.Status)
}

func readCloser(s string) *body { return &body{strings.NewReader(s)} }

type body struct{ *strings.Reader }

func (*body) Close() error { return nil }

// FuzzA2A: whatever a known caller sends, the door answers with one JSON-RPC
// document or none, and never with an error of its own.
func FuzzA2A(f *testing.F) {
	raw := must.Get(os.ReadFile(nodetest.Source("protocol/a2a/testdata/wire-pairs.json")))(f)
	f.Add(raw)
	f.Add([]byte(nodetest.Hello))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":"task_01k9y3v6k8e5w9q2x4z7c1m0ad_1","history_length":"0"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"method":"SendMessage","params":{"message":{"message_id":"m","role":1,` +
		`"parts":[{"data":{"operation":"read_board","input":{"limit":1}}}]}}}`))
	var file struct {
		Pairs []struct{ V1, V03 json.RawMessage }
	}
	require.NoError(f, json.Unmarshal(raw, &file))
	for _, p := range file.Pairs {
		f.Add([]byte(p.V1))
		f.Add([]byte(p.V03))
	}
	h := nodetest.New(f)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	f.Fuzz(func(t *testing.T, body []byte) {
		a := (&nodetest.Agent{H: h.On(t), ID: me.ID, Pair: me.Pair}).Post("/a2a/asha", string(body))
		require.Contains(t, []int{200, 204, 413}, a.Status)
		code, ours := codeOf(a)
		require.NotEqual(t, -32603, code, "%s", a.Raw)
		require.NotEqual(t, protocol.Internal, ours)
	})
}
