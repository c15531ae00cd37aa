package a2aapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// begin is a new task of the kit's caller by 1.0.
func (k kit) begin(t *testing.T, id string) a2a.Task {
	t.Helper()
	return k.call(t, "SendMessage", said(t.Name()+id, hi, "")).Task(t)
}

// ended is a task that its agent has answered.
func (k kit) ended(t *testing.T, id string) a2a.Task {
	t.Helper()
	task := k.begin(t, id)
	answeredTask(k.h.On(t), task.ContextID, "Yes.")
	return task
}

// list is the answer to ListTasks.
func (k kit) list(t *testing.T, params string) (page a2a.TaskList) {
	t.Helper()
	require.NoError(t, json.Unmarshal(k.call(t, "ListTasks", params).Result, &page))
	return page
}

// rest asks the HTTP+JSON binding.
func (k kit) rest(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	a := k.h.On(t).Ask(method, "/a2a/asha"+path, body, k.bearer...)
	require.Equal(t, status, a.Code, "%s", a.Body)
	return a.Body.String()
}

// card1 is the card of 1.0.
func (k kit) card1(t *testing.T) (card map[string]any) {
	t.Helper()
	k.h.On(t).Ask("GET", "/a2a/asha/agent-card.json", "", "A2A-Version", "1.0").Is(200).Into(&card)
	return card
}

// streams opens a stream with the kit's token.
func (k kit) streams(t *testing.T, method, params string) *streamed {
	t.Helper()
	return opens(k.h.On(t), method, params, strings.TrimPrefix(k.bearer[1], "Bearer "))
}

// missing gives no task for a method.
func missing(method string) func(*testing.T, kit) {
	return func(t *testing.T, k kit) { k.fails(t, -32001, method, inOf("task_01k9y3v6k8e5w9q2x4z7c1m0ad_1")) }
}

var (
	camel     = regexp.MustCompile(`"[a-z]+_[a-z_]+":`)
	stateName = regexp.MustCompile(`^TASK_STATE_(SUBMITTED|WORKING|INPUT_REQUIRED|AUTH_REQUIRED|COMPLETED|FAILED|CANCELED|REJECTED)$`)
)

// checks1 are what the kit for 1.0 demands (level MUST), by the ids of its requirements.
var checks1 = map[string]func(*testing.T, kit){
	"CORE-SEND-001": func(t *testing.T, k kit) { require.NotEmpty(t, k.begin(t, "").ID) },
	"CORE-SEND-002": func(t *testing.T, k kit) {
		k.fails(t, -32004, "SendMessage", said(t.Name()+"2", hi, fmt.Sprintf(`,"taskId":%q`, k.ended(t, "").ID)))
	},
	"CORE-SEND-003": func(t *testing.T, k kit) { // the kit counts the refusal that it demands as a failure
		k.fails(t, -32005, "SendMessage", said("x", `{"raw":"dGNr","mediaType":"application/x-unsupported-tck-type"}`, ""))
	},
	"CORE-STREAM-001": func(t *testing.T, k kit) {
		require.NotNil(t, k.streams(t, "SendStreamingMessage", said(t.Name(), hi, "")).next().Task)
	},
	"CORE-STREAM-002": func(t *testing.T, k kit) {
		s := k.streams(t, "SendStreamingMessage", said(t.Name(), `{"data":{"operation":"get_agent_profile"}}`, ""))
		require.NotNil(t, s.next().Message)
		require.Nil(t, s.next())
	},
	"CORE-STREAM-003": func(t *testing.T, k kit) {
		s := k.streams(t, "SendStreamingMessage", said(t.Name(), hi, ""))
		task := s.next().Task
		answeredTask(k.h.On(t), task.ContextID, "Yes.")
		require.NotNil(t, s.next().ArtifactUpdate)
		require.Equal(t, a2a.Completed, s.next().StatusUpdate.Status.State)
		require.Nil(t, s.next())
	},
	"CORE-GET-001": func(t *testing.T, k kit) {
		task := k.call(t, "GetTask", inOf(k.ended(t, "").ID)).Task(t)
		require.Equal(t, a2a.Completed, task.Status.State)
		require.Len(t, task.Artifacts, 1)
	},
	"CORE-GET-002": missing("GetTask"),
	"CORE-LIST-001": func(t *testing.T, k kit) {
		task, others := k.begin(t, ""), 0
		require.Contains(t, string(k.call(t, "ListTasks", `{"pageSize":100}`).Result), task.ID)
		stranger := plain(k.h.On(t), "/a2a/asha", "ListTasks", `{"pageSize":100}`, "Authorization", "Bearer "+k.h.TokenOf("asha", "kit"))
		var page a2a.TaskList
		require.NoError(t, json.Unmarshal(stranger.Result, &page), "%s", stranger.Raw)
		for _, other := range page.Tasks {
			if other.ID == task.ID {
				others++
			}
		}
		require.Zero(t, others, "it is another's")
	},
	"CORE-LIST-002": func(t *testing.T, k kit) {
		k.begin(t, "1")
		k.begin(t, "2")
		page := k.list(t, `{"pageSize":1}`)
		require.Len(t, page.Tasks, 1)
		require.NotEmpty(t, page.NextPageToken)
		require.NotEqual(t, page.Tasks[0].ID, k.list(t, fmt.Sprintf(`{"pageSize":1,"pageToken":%q}`, page.NextPageToken)).Tasks[0].ID)
		k.fails(t, -32602, "ListTasks", `{"pageSize":0}`)
	},
	"CORE-LIST-003": func(t *testing.T, k kit) {
		first, second := k.begin(t, "1"), k.begin(t, "2")
		nodetest.Tick()
		answeredTask(k.h.On(t), first.ContextID, "Yes.")
		var at []string
		for _, task := range k.list(t, `{"pageSize":100}`).Tasks {
			if task.ID == first.ID || task.ID == second.ID {
				at = append(at, task.ID)
			}
		}
		require.Equal(t, []string{first.ID, second.ID}, at, "the one that changed last is first")
	},
	"CORE-LIST-004": func(t *testing.T, k kit) {
		members := must.JSON[map[string]json.RawMessage](k.call(t, "ListTasks", `{"contextId":"thr-none"}`).Result)(t)
		require.Equal(t, `""`, string(members["nextPageToken"]))
		require.Equal(t, "[]", string(members["tasks"]))
		require.Contains(t, members, "pageSize")
		require.Contains(t, members, "totalSize")
	},
	"CORE-LIST-005": func(t *testing.T, k kit) {
		task := k.ended(t, "")
		for asks, has := range map[string]bool{`,"includeArtifacts":true`: true, `,"includeArtifacts":false`: false, "": false} {
			a := k.call(t, "ListTasks", fmt.Sprintf(`{"contextId":%q%s}`, task.ContextID, asks))
			require.Equal(t, has, strings.Contains(string(a.Result), `"artifacts"`))
		}
	},
	"CORE-CANCEL-001": func(t *testing.T, k kit) {
		require.Equal(t, a2a.Canceled, k.call(t, "CancelTask", inOf(k.begin(t, "").ID)).Task(t).Status.State)
	},
	"CORE-CANCEL-002": func(t *testing.T, k kit) { k.fails(t, -32002, "CancelTask", inOf(k.ended(t, "").ID)) },
	"CORE-CANCEL-003": missing("CancelTask"),
	"CORE-EXECUTION-MODE-002": func(t *testing.T, k kit) {
		params := strings.TrimSuffix(said(t.Name(), hi, ""), "}") + `,"configuration":{"returnImmediately":true}}`
		require.Equal(t, a2a.Submitted, k.call(t, "SendMessage", params).Task(t).Status.State)
	},
	"CORE-ERR-001": func(t *testing.T, k kit) {
		a := k.call(t, "GetTask", inOf("t-1"))
		require.NotEmpty(t, a.Error.Message)
		require.Contains(t, string(a.Raw), "google.rpc.ErrorInfo")
	},
	"CORE-ERR-002": func(t *testing.T, k kit) {
		for _, params := range []string{`{}`, `{"message":{}}`, said("", hi, ""), `{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`} {
			k.fails(t, -32602, "SendMessage", params)
		}
	},
	"CORE-MULTI-001a": func(t *testing.T, k kit) { require.NotEmpty(t, k.begin(t, "").ContextID) },
	"CORE-MULTI-002a": func(t *testing.T, k kit) { // as CORE-SEND-003
		one, two := k.begin(t, "1"), k.begin(t, "2")
		k.fails(t, -32602, "SendMessage", said(t.Name()+"3", hi, fmt.Sprintf(`,"taskId":%q,"contextId":%q`, one.ID, two.ContextID)))
	},
	"CORE-MULTI-003": func(t *testing.T, k kit) { require.NotEqual(t, k.begin(t, "1").ID, k.begin(t, "2").ID) },
	"CORE-MULTI-004": func(t *testing.T, k kit) {
		k.fails(t, -32001, "SendMessage", said(t.Name(), hi, `,"taskId":"task-none"`))
	},
	"CORE-MULTI-005": func(t *testing.T, k kit) {
		task := k.begin(t, "1")
		require.Equal(t, task.ContextID, k.call(t, "SendMessage", said(t.Name()+"2", hi, fmt.Sprintf(`,"taskId":%q`, task.ID))).Task(t).ContextID)
	},
	"CORE-MULTI-006": func(t *testing.T, k kit) {
		k.fails(t, -32602, "SendMessage", said(t.Name()+"2", hi, fmt.Sprintf(`,"taskId":%q,"contextId":"thr-none"`, k.begin(t, "1").ID)))
	},
	"CORE-HIST-002": func(t *testing.T, k kit) {
		task := k.begin(t, "1")
		k.call(t, "SendMessage", said(t.Name()+"2", hi, fmt.Sprintf(`,"taskId":%q`, task.ID)))
		for length, want := range []int{0, 1, 2, 2} {
			require.Len(t, k.call(t, "GetTask", fmt.Sprintf(`{"id":%q,"historyLength":%d}`, task.ID, length)).Task(t).History, want)
		}
	},
	"DM-TASK-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		require.NotContains(t, []string{task.ID, task.ContextID, string(task.Status.State)}, "")
	},
	"DM-TASK-002": func(t *testing.T, k kit) { require.Regexp(t, stateName, string(k.begin(t, "").Status.State)) },
	"DM-MSG-002": func(t *testing.T, k kit) {
		for _, m := range k.call(t, "GetTask", inOf(k.ended(t, "").ID)).Task(t).History {
			require.Contains(t, []a2a.Role{"ROLE_USER", a2a.RoleAgent}, m.Role)
		}
	},
	"DM-PART-001": func(t *testing.T, k kit) {
		k.fails(t, -32602, "SendMessage", said(t.Name(), `{"text":"a","data":{}}`, ""))
		k.fails(t, -32602, "SendMessage", said(t.Name(), `{}`, ""))
	},
	"DM-ART-001": func(t *testing.T, k kit) {
		task, answer := k.begin(t, ""), assistant(k.h.On(t))
		answer(task.ContextID, `"message":"u","as":"progress","attachment":{"url":"https://a.example/x","mediaType":"image/png"}`)
		answer(task.ContextID, `"message":"d","as":"progress","attachment":{"data":[1]}`)
		answer(task.ContextID, `"message":"f","attachment":{"name":"x.txt","bytes":"aGk="}`)
		parts := k.call(t, "GetTask", inOf(task.ID)).Task(t).Artifacts
		require.Len(t, parts, 3)
		for _, artifact := range parts {
			require.NotEmpty(t, artifact.ArtifactID)
		}
		require.Equal(t, "https://a.example/x", parts[0].Parts[1].URL)
		require.JSONEq(t, `[1]`, string(parts[1].Parts[1].Data))
		require.Equal(t, "hi", string(parts[2].Parts[1].Raw))
		require.Equal(t, "f", *parts[2].Parts[0].Text)
	},
	"DM-STATUS-001": func(t *testing.T, k kit) { require.Equal(t, a2a.Submitted, k.begin(t, "").Status.State) },
	"DM-SERIAL-001": func(t *testing.T, k kit) {
		for _, raw := range [][]byte{k.call(t, "SendMessage", said(t.Name(), hi, "")).Result, k.call(t, "ListTasks", `{}`).Result} {
			require.NotRegexp(t, camel, string(raw))
		}
	},
	"DM-SERIAL-002": func(t *testing.T, k kit) {
		raw := string(k.call(t, "SendMessage", said(t.Name(), hi, "")).Result)
		require.Contains(t, raw, `"state":"TASK_STATE_SUBMITTED"`)
		require.Contains(t, raw, `"role":"ROLE_USER"`)
	},
	"DM-SERIAL-003": func(t *testing.T, k kit) {
		at := k.begin(t, "").Status.Timestamp
		must.Get(time.Parse(time.RFC3339Nano, at))(t)
		require.True(t, strings.HasSuffix(at, "Z"), at)
	},
	"DM-SERIAL-004": func(t *testing.T, k kit) {
		for _, without := range []string{"messageId", "role", "parts"} {
			members := map[string]any{"messageId": "m", "role": "ROLE_USER", "parts": []any{map[string]string{"text": "a"}}}
			delete(members, without)
			raw := must.Get(json.Marshal(map[string]any{"message": members}))(t)
			k.fails(t, -32602, "SendMessage", string(raw))
		}
	},
	"CARD-DISC-001": func(t *testing.T, k kit) { require.NotEmpty(t, k.card1(t)["name"]) },
	"CARD-PROTO-001": func(t *testing.T, k kit) {
		require.NotEmpty(t, k.card1(t)["supportedInterfaces"])
	},
	"CARD-PROTO-002": func(t *testing.T, k kit) {
		for _, i := range k.card1(t)["supportedInterfaces"].([]any) {
			i := i.(map[string]any)
			require.Contains(t, []string{"JSONRPC", "HTTP+JSON"}, i["protocolBinding"])
			require.Equal(t, k.h.Base+"/a2a/asha", i["url"])
		}
	},
	"CARD-STRUCT-001": func(t *testing.T, k kit) {
		card := k.card1(t)
		for _, name := range []string{"name", "description", "version", "supportedInterfaces", "capabilities", "skills", "defaultInputModes", "defaultOutputModes"} {
			require.NotEmpty(t, card[name], name)
		}
	},
	"CARD-EXT-001": func(t *testing.T, k kit) {
		require.Equal(t, 401, plain(k.h.On(t), "/a2a/asha", "GetExtendedAgentCard", `{}`).Status)
		require.NotEmpty(t, k.call(t, "GetExtendedAgentCard", `{}`).Result)
	},
	"CARD-SIGN-003": func(t *testing.T, k kit) {
		for _, s := range k.card1(t)["signatures"].([]any) {
			raw := must.Get(base64.RawURLEncoding.DecodeString(s.(map[string]any)["protected"].(string)))(t)
			var head struct{ Alg, Kid string }
			require.NoError(t, json.Unmarshal(raw, &head))
			require.NotContains(t, []string{head.Alg, head.Kid}, "")
		}
	},
	"STREAM-SUB-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		require.Equal(t, task.ID, k.streams(t, "SubscribeToTask", inOf(task.ID)).next().Task.ID)
	},
	"STREAM-SUB-002": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		s := k.streams(t, "SubscribeToTask", inOf(task.ID))
		s.next()
		answeredTask(k.h.On(t), task.ContextID, "Yes.")
		for e := s.next(); e != nil; e = s.next() {
			if e.StatusUpdate != nil {
				task.Status = e.StatusUpdate.Status
			}
		}
		require.Equal(t, a2a.Completed, task.Status.State)
	},
	"STREAM-SUB-003": func(t *testing.T, k kit) { k.fails(t, -32004, "SubscribeToTask", inOf(k.ended(t, "").ID)) },
	"STREAM-SUB-004": missing("SubscribeToTask"),
	"VER-SERVER-001": func(t *testing.T, k kit) {
		at := func(version string) string {
			return string(plain(k.h.On(t), "/a2a/asha", "ListTasks", `{}`, append([]string{"A2A-Version", version}, k.bearer...)...).Raw)
		}
		require.Contains(t, at("1.0"), `"tasks"`)
		require.Contains(t, at("0.3"), "-32601")
	},
	"VER-SERVER-002": func(t *testing.T, k kit) {
		a := plain(k.h.On(t), "/a2a/asha", "GetTask", inOf("t-1"), append([]string{"A2A-Version", "9.9"}, k.bearer...)...)
		require.Equal(t, -32009, a.Error.Code)
	},
	"VER-SERVER-003": func(t *testing.T, k kit) {
		require.Contains(t, string(k.call(t, "message/send", said03(t.Name(), "Hello", "")).Result), `"kind":"task"`)
	},
	"VER-CLIENT-002": func(t *testing.T, k kit) {
		a := plain(k.h.On(t), "/a2a/asha", "ListTasks", `{}`, append([]string{"A2A-Version", "1.0.7"}, k.bearer...)...)
		require.Nil(t, a.Error, "%s", a.Raw)
	},
	"HTTP_JSON-URL-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		require.Contains(t, k.rest(t, 200, "GET", "/tasks/"+task.ID, ""), task.ID)
		require.Contains(t, k.rest(t, 200, "GET", "/tasks", ""), `"tasks"`)
		require.Contains(t, k.rest(t, 200, "POST", "/tasks/"+task.ID+":cancel", ""), "CANCELED")
	},
	"HTTP_JSON-URL-002": func(t *testing.T, k kit) {
		for path, method := range map[string]string{"/tasks": "POST", "/message:send": "GET", "/tasks/t-1": "DELETE"} {
			require.Equal(t, 405, k.h.On(t).Ask(method, "/a2a/asha"+path, "", k.bearer...).Code, path)
		}
	},
	"HTTP_JSON-SVC-002": func(t *testing.T, k kit) {
		a := k.h.On(t).Ask("GET", "/a2a/asha/tasks", "", append([]string{"A2A-Version", "9.9"}, k.bearer...)...)
		require.Contains(t, a.Body.String(), "VERSION_NOT_SUPPORTED")
	},
	"HTTP_JSON-QP-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		require.Contains(t, k.rest(t, 200, "GET", "/tasks?contextId="+task.ContextID+"&pageSize=5&includeArtifacts=false", ""), `"totalSize":1`)
	},
	"HTTP_JSON-ERR-001": func(t *testing.T, k kit) {
		var e struct {
			Error struct {
				Code            int
				Status, Message string
				Details         []map[string]any
			}
		}
		require.NoError(t, json.Unmarshal([]byte(k.rest(t, 404, "GET", "/tasks/t-1", "")), &e))
		require.Equal(t, []any{404, "NOT_FOUND"}, []any{e.Error.Code, e.Error.Status})
		require.NotEmpty(t, e.Error.Message)
		require.NotEmpty(t, e.Error.Details)
	},
	"HTTP_JSON-ERR-002": func(t *testing.T, k kit) {
		require.Regexp(t, `"reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"`, k.rest(t, 404, "GET", "/tasks/t-1", ""))
	},
	"HTTP_JSON-STATUS-001": func(t *testing.T, k kit) {
		k.rest(t, 404, "POST", "/tasks/t-1:cancel", "")
		k.rest(t, 400, "POST", "/tasks/"+k.ended(t, "").ID+":cancel", "")
		k.rest(t, 400, "POST", "/message:send", said(t.Name(), `{"raw":"aGk="}`, ""))
	},
	"JSONRPC-FMT-001": func(t *testing.T, k kit) {
		k.raw(t, -32600, `{"jsonrpc":"1.0","id":1,"method":"ListTasks"}`)
		for i := range 12 { // more than ten wait: the kit's caller has one
			require.Nil(t, k.call(t, "SendMessage", said(fmt.Sprint(t.Name(), i), hi, "")).Error)
		}
	},
	"JSONRPC-FMT-002": func(t *testing.T, k kit) {
		require.Equal(t, "application/json", k.call(t, "ListTasks", `{}`).Header.Get("Content-Type"))
	},
	"JSONRPC-SVC-001": func(t *testing.T, k kit) {
		a := plain(k.h.On(t), "/a2a/asha", "sendMessage", `{}`, append([]string{"A2A-Version", "1.0"}, k.bearer...)...)
		require.Equal(t, -32601, a.Error.Code)
	},
	"JSONRPC-SVC-002": func(t *testing.T, k kit) {
		require.Equal(t, "1.0", k.call(t, "ListTasks", `{}`).Header.Get("A2A-Version"))
	},
	"JSONRPC-ERR-001": func(t *testing.T, k kit) {
		a := k.call(t, "GetTask", `{}`)
		require.Equal(t, -32602, a.Error.Code)
		require.NotEmpty(t, a.Error.Message)
	},
	"JSONRPC-ERR-002": missing("GetTask"),
	"JSONRPC-SSE-001": func(t *testing.T, k kit) { // opens compares the media type, next the envelope
		require.NotNil(t, k.streams(t, "SendStreamingMessage", said(t.Name(), hi, "")).next().Task)
	},
	"JSONRPC-SSE-002": func(t *testing.T, k kit) {
		k.fails(t, -32001, "GetTask", inOf("t-1"))
		k.fails(t, -32002, "CancelTask", inOf(k.ended(t, "1").ID))
		k.fails(t, -32004, "SubscribeToTask", inOf(k.ended(t, "2").ID))
		k.fails(t, -32005, "SendMessage", said(t.Name()+"3", `{"raw":"aGk="}`, ""))
	},
	"PUSH-CREATE-001": func(t *testing.T, k kit) { require.NotEmpty(t, k.config(t, "")) },
	"PUSH-CREATE-002": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		id := k.configOf(t, task.ID)
		answerAs(k.h.On(t), task.ContextID, "Of which wood?", protocol.AsQuestion)
		require.Contains(t, string(k.call(t, "GetTaskPushNotificationConfig", pushOf(task.ID, id)).Result), id)
	},
	"PUSH-GET-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		id := k.configOf(t, task.ID)
		require.Contains(t, string(k.call(t, "GetTaskPushNotificationConfig", pushOf(task.ID, id)).Result), "https://a.example/told")
	},
	"PUSH-GET-002": func(t *testing.T, k kit) {
		a := k.call(t, "GetTaskPushNotificationConfig", pushOf(k.begin(t, "").ID, "none"))
		require.NotNil(t, a.Error, "%s", a.Raw)
	},
	"PUSH-LIST-001": func(t *testing.T, k kit) {
		task := k.begin(t, "")
		one, two := k.configOf(t, task.ID), k.configOf(t, task.ID)
		all := string(k.call(t, "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, task.ID)).Result)
		require.Contains(t, all, one)
		require.Contains(t, all, two)
	},
	"PUSH-DEL-001": func(t *testing.T, k kit) { k.deleted(t, 1) },
	"PUSH-DEL-002": func(t *testing.T, k kit) { k.deleted(t, 2) },
}

func pushOf(task, id string) string { return fmt.Sprintf(`{"taskId":%q,"id":%q}`, task, id) }

// config is the id of a push config of a new task, configOf of one that is there.
func (k kit) config(t *testing.T, id string) string { return k.configOf(t, k.begin(t, id).ID) }

func (k kit) configOf(t *testing.T, task string) string {
	t.Helper()
	a := k.call(t, "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":"https://a.example/told"}`, task))
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(a.Result, &made), "%s", a.Raw)
	return made.ID
}

// deleted deletes a push config so many times.
func (k kit) deleted(t *testing.T, times int) {
	t.Helper()
	task := k.begin(t, "")
	id := k.configOf(t, task.ID)
	for range times {
		require.Nil(t, k.call(t, "DeleteTaskPushNotificationConfig", pushOf(task.ID, id)).Error)
	}
	require.NotNil(t, k.call(t, "GetTaskPushNotificationConfig", pushOf(task.ID, id)).Error)
}

// whole1 are the requirements that have a test of their own.
var whole1 = map[string]string{
	"CORE-EXECUTION-MODE-001": "TestA2A_Blocking", "STREAM-ORDER-001": "TestA2A_Streams", "STREAM-ORDER-002": "TestA2A_Streams",
	"STREAM-ORDER-003": "TestA2A_Streams", "STREAM-ORDER-004": "TestA2A_Streams", "PUSH-DELIVER-001": "TestA2A_Push", "PUSH-DELIVER-002": "TestA2A_Push",
	"PUSH-DELIVER-003": "TestA2A_Push", "CARD-SIGN-001": "TestSign_Vectors", "CARD-SIGN-002": "TestA2A_Card", "HTTP_JSON-SSE-001": "TestA2A_REST",
}

// open1 are the requirements that nothing here shows, and why.
var open1 = map[string]string{
	"DM-MSG-001":   "by design: free text is answered by a task, since a person answers; an operation is answered by a message (CORE-STREAM-002)",
	"CORE-CAP-001": "agents have push notifications", "CORE-CAP-002": "and streams", "CORE-CAP-003": "and an extended card",
	"CORE-CAP-004": "no extension is required", "CARD-EXT-002": "it is made from the profile, and so always there",
	"CARD-SIGN-004": "of clients", "VER-CLIENT-001": "of clients",
}
