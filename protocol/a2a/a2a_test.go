package a2a

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol/must"
)

// pair is one object on the wire of 1.0 and of 0.3.
type pair struct {
	Name string
	V1   struct {
		Method string
		Params json.RawMessage
		Result json.RawMessage
	} `json:"v1"`
	V03 struct {
		Method string
		Params json.RawMessage
		Result json.RawMessage
	} `json:"v03"`
}

func pairs(t testing.TB) []pair {
	t.Helper()
	raw := must.Get(os.ReadFile("testdata/wire-pairs.json"))(t)
	var file struct{ Pairs []pair }
	require.NoError(t, json.Unmarshal(raw, &file))
	return file.Pairs
}

func TestWirePairs(t *testing.T) {
	t.Parallel()
	for _, p := range pairs(t) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			switch {
			case p.V1.Method == SendMessage:
				// The vector holds an inline file and a push configuration, of which
				// this side takes neither; without them it is read whole.
				require.ErrorIs(t, must.Err(ParseSend(Version, p.V1.Params)), ErrContentType)
				want := sent(t, Version, p.V1.Params)
				old := sent(t, Legacy, p.V03.Params)
				require.True(t, old.Push.Legacy)
				old.Push.Legacy = false
				require.Equal(t, want, old, "the same message in 0.3")
				require.NotNil(t, want.Push)
				require.True(t, want.Immediately)
				require.Equal(t, 2, *want.HistoryLength)
				require.JSONEq(t, `{"k":"v"}`, string(want.Message.Metadata))
				require.Len(t, want.Message.Parts, 2)
			case strings.HasPrefix(p.Name, "result: "):
				r := must.JSON[SendResult](p.V1.Result)(t)
				again := must.Get(json.Marshal(r))(t)
				require.JSONEq(t, string(p.V1.Result), string(again))
				old := must.Get(json.Marshal(In(Legacy, r)))(t)
				require.JSONEq(t, string(p.V03.Result), string(old))
			case p.V1.Method != "":
				name, _ := Method(Legacy, p.V03.Method)
				require.Equal(t, p.V1.Method, name)
			}
		})
	}
}

// sent reads the parameters of a vector without its file and the type of its text, which only one of the versions has.
func sent(t *testing.T, version string, raw []byte) Send {
	t.Helper()
	params := must.JSON[map[string]any](raw)(t)
	m := params["message"].(map[string]any)
	m["parts"] = m["parts"].([]any)[:2]
	raw = must.Get(json.Marshal(params))(t)
	s := must.Get(ParseSend(version, raw))(t)
	for i := range s.Message.Parts {
		s.Message.Parts[i].MediaType = ""
	}
	return s
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	tests := []struct{ asked, method, version string }{
		{"1.0", "SendMessage", Version}, {"1", "SendMessage", Version}, {"1.0.1", "GetTask", Version}, {" 1.0 ", "GetTask", Version},
		{"1.0", "message/send", Version}, // the method is then unknown
		{"", "SendMessage", Version},     // the client forgot the header
		{"", "SendStreamingMessage", Version},
		{"", "message/send", Legacy}, {"", "tasks/get", Legacy}, {"", "nonsense", Legacy}, {"", "", Legacy},
		{"0.3", "message/send", Legacy}, {"0.3", "SendMessage", Legacy}, {"0.3.0", "GetTask", Legacy},
		{"1.1", "SendMessage", ""}, {"2", "SendMessage", ""}, {"10", "SendMessage", ""}, {"0.2", "message/send", ""},
		{"one", "SendMessage", ""}, {"1.0.0.0", "SendMessage", ""}, {"1..0", "SendMessage", ""}, {"-1", "GetTask", ""}, {"1.0, 0.3", "GetTask", ""},
	}
	for _, tt := range tests {
		version, err := Negotiate(tt.asked, tt.method)
		if tt.version != "" {
			require.Nil(t, err, "%q %s", tt.asked, tt.method)
			require.Equal(t, tt.version, version, "%q %s", tt.asked, tt.method)
			continue
		}
		require.ErrorIs(t, err, ErrVersionNotSupported, "%q %s", tt.asked, tt.method)
		require.Equal(t, "1.0,0.3", err.Metadata["supportedVersions"])
	}
}

func TestMethod(t *testing.T) {
	t.Parallel()
	for name, refusal := range methods {
		got, err := Method(Version, name)
		require.Equal(t, name, got)
		require.Equal(t, refusal == nil, err == nil)
		require.ErrorIs(t, must.Err(Method(Legacy, name)), ErrMethodNotFound, "a name of 1.0 in 0.3")
	}
	for old, name := range legacy {
		got, err := Method(Legacy, old)
		require.Equal(t, name, got)
		require.Equal(t, methods[name] == nil, err == nil)
		require.ErrorIs(t, must.Err(Method(Version, old)), ErrMethodNotFound, "a name of 0.3 in 1.0")
	}
	require.Len(t, legacy, len(methods)-1, "all but the list of tasks")
	for _, method := range []string{"sendMessage", "", "tasks/list", strings.Repeat("x", 500)} {
		for _, version := range []string{Version, Legacy} {
			_, err := Method(version, method)
			require.ErrorIs(t, err, ErrMethodNotFound, method)
			require.Less(t, len(err.Text), 200)
		}
	}
	require.Empty(t, ErrUnsupportedOperation.Metadata, "the shared errors are never changed")
}

// TestParseSend_Legacy reads messages of 0.3.
func TestParseSend_Legacy(t *testing.T) {
	t.Parallel()
	message := func(parts string) string {
		return `{"message":{"kind":"message","messageId":"m","role":"user","parts":[` + parts + `]}}`
	}
	for name, tt := range map[string]struct {
		params string
		field  string // of the violation; "": it is good
	}{
		"text":             {message(`{"kind":"text","text":"hi"}`), ""},
		"data":             {message(`{"kind":"data","data":{"a":1},"metadata":{"b":2}}`), ""},
		"address":          {message(`{"kind":"file","file":{"uri":"https://a.example/f.pdf","name":"f.pdf","mimeType":"application/pdf"}}`), ""},
		"without a type":   {message(`{"kind":"file","file":{"uri":"https://a.example/f"}}`), ""},
		"no kind":          {message(`{"text":"hi"}`), "message.parts[0].kind"},
		"unknown kind":     {message(`{"kind":"video","text":"hi"}`), "message.parts[0].kind"},
		"no text":          {message(`{"kind":"text"}`), "message.parts[0].text"},
		"data of no shape": {message(`{"kind":"data","data":[1]}`), "message.parts[0].data"},
		"no file":          {message(`{"kind":"file"}`), "message.parts[0].file"},
		"empty file":       {message(`{"kind":"file","file":{}}`), "message.parts[0].file"},
		"both":             {message(`{"kind":"file","file":{"uri":"https://a.example/","bytes":"aGk="}}`), "message.parts[0].file"},
		"plain http":       {message(`{"kind":"file","file":{"uri":"http://a.example/"}}`), "message.parts[0].file.uri"},
		"role of 1.0":      {`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"kind":"text","text":"hi"}]}}`, "message.role"},
		"no parts":         {message(``), "message.parts"},
	} {
		s, err := ParseSend(Legacy, json.RawMessage(tt.params))
		if tt.field == "" {
			require.NoError(t, err, name)
			require.Equal(t, RoleUser, s.Message.Role)
			continue
		}
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, name)
		require.Equal(t, tt.field, e.Violations[0].Field, name)
	}
	require.ErrorIs(t, must.Err(ParseSend(Legacy, json.RawMessage(message(`{"kind":"file","file":{"bytes":"aGk="}}`)))), ErrContentType)
	for blocking, immediately := range map[string]bool{`"blocking":true`: false, `"blocking":false`: true, `"x":1`: false} {
		s := must.Get(ParseSend(Legacy, json.RawMessage(`{"configuration":{`+blocking+`},`+message(`{"kind":"text","text":"hi"}`)[1:])))(t)
		require.Equal(t, immediately, s.Immediately, blocking)
	}
}

func TestParseSend(t *testing.T) {
	t.Parallel()
	good := `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}`
	message := func(members string) string { return `{"message":{` + members + `}}` }
	tests := []struct {
		name, params string
		fields       []string // of violations; nil: it is good
		other        *Error
	}{
		{name: "plain", params: good},
		{name: "snake case", params: `{"message":{"message_id":"m","role":1,"context_id":"c","task_id":"t","parts":[{"text":"hi",` +
			`"media_type":"text/plain"}],"reference_task_ids":["x"]},"configuration":{"history_length":"3","return_immediately":true,"accepted_output_modes":["a/b"]}}`},
		{name: "null is absence", params: `{"tenant":null,"message":{"messageId":"m","role":"ROLE_USER","contextId":null,"parts":[{"text":"hi",` +
			`"metadata":null}]},"configuration":null}`},
		{name: "unknown members", params: `{"x":1,"message":{"messageId":"m","role":"ROLE_USER","y":[],"parts":[{"text":"hi","kind":"text"}]}}`},
		{name: "data null", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"data":null}]`)},
		{name: "text empty", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]`)},
		{name: "address", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"url":"https://a.example/f.pdf","mediaType":"application/pdf",` +
			`"filename":"f.pdf"}]`)},
		{name: "charset", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/plain; charset=utf-8"}]`)},
		{name: "nothing", params: ``, fields: []string{""}},
		{name: "no message", params: `{}`, fields: []string{"message"}},
		{name: "message of a wrong type", params: `{"message":5}`, fields: []string{"message"}},
		{name: "empty message", params: `{"message":{}}`, fields: []string{"message.messageId", "message.parts"}},
		{name: "all faults at once", params: message(`"messageId":5,"contextId":[],"role":"ROLE_USER","parts":[{"text":"a","data":1},{},{"text":7}],"metadata":"x"`),
			fields: []string{"message.messageId", "message.contextId", "message.metadata", "message.parts[0]", "message.parts[1]", "message.parts[2].text"}},
		{name: "role of the agent", params: message(`"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]`), fields: []string{"message.role"}},
		{name: "role of 0.3", params: message(`"messageId":"m","role":"user","parts":[{"text":"hi"}]`), fields: []string{"message.role"}},
		{name: "twice", params: message(`"messageId":"m","message_id":"n","role":"ROLE_USER","parts":[{"text":"hi"}]`), fields: []string{"message.messageId"}},
		{name: "other case", params: message(`"MessageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]`), fields: []string{"message.messageId"}},
		{name: "plain http", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"url":"http://a.example/"}]`), fields: []string{"message.parts[0].url"}},
		{name: "too many parts", params: message(`"messageId":"m","role":"ROLE_USER","parts":[` + strings.Repeat(`{"text":"x"},`, 20) + `{"text":"x"}]`),
			fields: []string{"message.parts"}},
		{name: "id too long", params: message(`"messageId":"` + strings.Repeat("x", 257) + `","role":"ROLE_USER","parts":[{"text":"hi"}]`),
			fields: []string{"message.messageId"}},
		{name: "negative history", params: `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"historyLength":-1}}`,
			fields: []string{"configuration.historyLength"}},
		{name: "metadata too long", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}],"metadata":{"a":"` +
			strings.Repeat("x", 17<<10) + `"}`), fields: []string{"message.metadata"}},
		{name: "bytes", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk="}]`), other: ErrContentType},
		{name: "another type", params: message(`"messageId":"m","role":"ROLE_USER","parts":[{"text":"<b>","mediaType":"text/html"}]`), other: ErrContentType},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSend(Version, json.RawMessage(tt.params))
			switch {
			case tt.other != nil:
				require.ErrorIs(t, err, tt.other)
			case tt.fields == nil:
				require.NoError(t, err)
			default:
				e, ok := errors.AsType[*Error](err)
				require.True(t, ok)
				var fields []string
				for _, v := range e.Violations {
					fields = append(fields, v.Field)
				}
				require.Equal(t, tt.fields, fields)
				require.ErrorIs(t, err, ErrInvalidParams)
			}
		})
	}
}

func TestParseTaskQuery(t *testing.T) {
	t.Parallel()
	q := must.Get(ParseTaskQuery(json.RawMessage(`{"id":"task_1","history_length":0,"tenant":"asha"}`)))(t)
	require.Equal(t, TaskQuery{Tenant: "asha", ID: "task_1", HistoryLength: new(0)}, q)
	for _, params := range []string{``, `[]`, `{}`, `{"id":""}`, `{"id":7}`, `{"id":"x","historyLength":-1}`, `{"id":"x","historyLength":1.5}`} {
		require.ErrorIs(t, must.Err(ParseTaskQuery(json.RawMessage(params))), ErrInvalidParams, params)
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	history := make([]Message, 130)
	for i := range history {
		history[i].MessageID = string(rune('a' + i))
	}
	require.Len(t, Recent(history, nil), 100)
	require.Empty(t, Recent(history, new(0)))
	require.Equal(t, history[127:], Recent(history, new(3)))
	require.Len(t, Recent(history, new(1000)), 100)
	require.Len(t, Recent(history[:2], new(5)), 2)
}

// FuzzParseSend: whatever parameters come, reading them ends with a message that
// can be written again and read to the same, or with an error that lists fields.
func FuzzParseSend(f *testing.F) {
	for _, p := range pairs(f) {
		f.Add([]byte(p.V1.Params))
		f.Add([]byte(p.V03.Params))
	}
	f.Add([]byte(`{"message":{"message_id":"m","role":1,"parts":[{"data":null},{"url":"https://a.example/"}]}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if _, err := ParseSend(Legacy, params); err != nil {
			_, ok := errors.AsType[*Error](err)
			require.True(t, ok)
		}
		s, err := ParseSend(Version, params)
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			require.True(t, ok)
			require.LessOrEqual(t, len(e.Violations), maxFaults)
			return
		}
		require.NotEmpty(t, s.Message.MessageID)
		require.NotEmpty(t, s.Message.Parts)
		written := must.Get(json.Marshal(map[string]any{"message": s.Message}))(t)
		again, err := ParseSend(Version, written)
		require.NoError(t, err, "%s", written)
		require.Equal(t, s.Message.MessageID, again.Message.MessageID)
		require.Len(t, again.Message.Parts, len(s.Message.Parts))
		_, _ = ParseTaskQuery(params)
	})
}
