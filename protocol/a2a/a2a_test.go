package a2a

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pair is one object on the wire of 1.0 and of 0.3.
type pair struct {
	Name string
	V1   struct {
		Method string
		Params json.RawMessage
		Result json.RawMessage
	} `json:"v1"`
	V03 struct{ Method string } `json:"v03"`
}

func pairs(t testing.TB) []pair {
	t.Helper()
	raw, err := os.ReadFile("testdata/wire-pairs.json")
	require.NoError(t, err)
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
				_, err := ParseSend(p.V1.Params)
				require.ErrorIs(t, err, ErrContentType)
				var params map[string]any
				require.NoError(t, json.Unmarshal(p.V1.Params, &params))
				m := params["message"].(map[string]any)
				m["parts"] = m["parts"].([]any)[:2]
				raw, err := json.Marshal(params)
				require.NoError(t, err)
				s, err := ParseSend(raw)
				require.NoError(t, err)
				require.True(t, s.Push)
				require.True(t, s.Immediately)
				require.Equal(t, 2, *s.HistoryLength)
				again, err := json.Marshal(s.Message)
				require.NoError(t, err)
				want, err := json.Marshal(m)
				require.NoError(t, err)
				require.JSONEq(t, string(want), string(again))
			case strings.HasPrefix(p.Name, "result: "):
				var r SendResult
				require.NoError(t, json.Unmarshal(p.V1.Result, &r))
				again, err := json.Marshal(r)
				require.NoError(t, err)
				require.JSONEq(t, string(p.V1.Result), string(again))
			case p.V1.Method != "":
				require.NotNil(t, Unoffered(p.V1.Method), "named and refused")
			}
			if p.V03.Method != "" {
				require.ErrorIs(t, Negotiate("", p.V03.Method), ErrVersionNotSupported)
			}
		})
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		asked, method string
		good          bool
	}{
		{"1.0", "SendMessage", true}, {"1", "SendMessage", true}, {"1.0.1", "GetTask", true}, {" 1.0 ", "GetTask", true},
		{"1.0", "message/send", true}, // the method is then unknown
		{"", "SendMessage", true},     // the client forgot the header
		{"", "SendStreamingMessage", true},
		{"", "message/send", false}, {"", "tasks/get", false}, {"", "nonsense", false},
		{"0.3", "message/send", false}, {"0.3", "SendMessage", false}, {"0.3.0", "GetTask", false},
		{"1.1", "SendMessage", false}, {"2", "SendMessage", false}, {"10", "SendMessage", false},
		{"one", "SendMessage", false}, {"1.0.0.0", "SendMessage", false}, {"1..0", "SendMessage", false}, {"-1", "GetTask", false}, {"1.0, 0.3", "GetTask", false},
	}
	for _, tt := range tests {
		err := Negotiate(tt.asked, tt.method)
		if tt.good {
			require.Nil(t, err, "%q %s", tt.asked, tt.method)
			continue
		}
		require.ErrorIs(t, err, ErrVersionNotSupported, "%q %s", tt.asked, tt.method)
		require.Equal(t, "1.0", err.Metadata["supportedVersions"])
	}
}

func TestUnoffered(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]*Error{
		"SendStreamingMessage": ErrUnsupportedOperation, "SubscribeToTask": ErrUnsupportedOperation, "ListTasks": ErrUnsupportedOperation,
		"GetExtendedAgentCard": ErrUnsupportedOperation, "CreateTaskPushNotificationConfig": ErrPushNotSupported,
		"GetTaskPushNotificationConfig": ErrPushNotSupported, "ListTaskPushNotificationConfigs": ErrPushNotSupported,
		"DeleteTaskPushNotificationConfig": ErrPushNotSupported,
		"message/send":                     ErrMethodNotFound, "sendMessage": ErrMethodNotFound, "": ErrMethodNotFound, strings.Repeat("x", 500): ErrMethodNotFound,
	} {
		err := Unoffered(method)
		require.ErrorIs(t, err, want, method)
		require.Less(t, len(err.Text), 200)
	}
	for _, method := range []string{SendMessage, GetTask, CancelTask} {
		require.Nil(t, Unoffered(method))
	}
	require.Empty(t, ErrUnsupportedOperation.Metadata, "the shared errors are never changed")
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
			_, err := ParseSend(json.RawMessage(tt.params))
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
	q, err := ParseTaskQuery(json.RawMessage(`{"id":"task_1","history_length":0,"tenant":"asha"}`))
	require.NoError(t, err)
	require.Equal(t, TaskQuery{Tenant: "asha", ID: "task_1", HistoryLength: new(0)}, q)
	for _, params := range []string{``, `[]`, `{}`, `{"id":""}`, `{"id":7}`, `{"id":"x","historyLength":-1}`, `{"id":"x","historyLength":1.5}`} {
		_, err := ParseTaskQuery(json.RawMessage(params))
		require.ErrorIs(t, err, ErrInvalidParams, params)
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
	}
	f.Add([]byte(`{"message":{"message_id":"m","role":1,"parts":[{"data":null},{"url":"https://a.example/"}]}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		s, err := ParseSend(params)
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			require.True(t, ok)
			require.LessOrEqual(t, len(e.Violations), maxFaults)
			return
		}
		require.NotEmpty(t, s.Message.MessageID)
		require.NotEmpty(t, s.Message.Parts)
		written, err := json.Marshal(map[string]any{"message": s.Message})
		require.NoError(t, err)
		again, err := ParseSend(written)
		require.NoError(t, err, "%s", written)
		require.Equal(t, s.Message.MessageID, again.Message.MessageID)
		require.Len(t, again.Message.Parts, len(s.Message.Parts))
		_, _ = ParseTaskQuery(params)
	})
}
