package a2aapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
)

// A bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// restClient is the official client for Go over HTTP+JSON.
func restClient(h *nodetest.House, way http.RoundTripper) *a2aclient.Client {
	h.T.Helper()
	at := sdk.NewAgentInterface(h.Base+"/a2a/asha", sdk.TransportProtocolHTTPJSON)
	return must.Get(a2aclient.NewFromEndpoints(h.T.Context(), []*sdk.AgentInterface{at}, a2aclient.WithRESTTransport(&http.Client{Transport: way})))(h.T)
}

func sdkText(text string) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))}
}

// TestA2A_REST: every method over HTTP+JSON, with another implementation: with a token on a connection, and signed.
func TestA2A_REST(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Served(t, change, served("any"))
		h.PutOpen("asha", nil)
		h.Hosted("vikram")
		ctx := t.Context()
		for name, way := range map[string]http.RoundTripper{"token": bearer(h.TokenOf("vikram", "test")), "signed": h.Agents(1)[0]} {
			c := restClient(h, way)
			task := must.Get(c.SendMessage(ctx, sdkText("Do you deliver to Jaipur?")))(t).(*sdk.Task)
			require.Equal(t, sdk.TaskStateSubmitted, task.Status.State, name)
			made := must.Get(c.CreateTaskPushConfig(ctx, &sdk.PushConfig{TaskID: task.ID, URL: "https://a.example/", Token: "t-1"}))(t)
			require.Equal(t, made, must.Get(c.GetTaskPushConfig(ctx, &sdk.GetTaskPushConfigRequest{TaskID: task.ID, ID: made.ID}))(t))
			require.Len(t, must.Get(c.ListTaskPushConfigs(ctx, &sdk.ListTaskPushConfigRequest{TaskID: task.ID}))(t), 1)
			require.NoError(t, c.DeleteTaskPushConfig(ctx, &sdk.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: made.ID}))
			answeredTask(h, task.ContextID, "To Jaipur and Ajmer.")
			none := 0
			got := must.Get(c.GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID, HistoryLength: &none}))(t)
			require.Equal(t, sdk.TaskStateCompleted, got.Status.State)
			require.Empty(t, got.History)
			listed := must.Get(c.ListTasks(ctx, &sdk.ListTasksRequest{PageSize: 1, IncludeArtifacts: true, ContextID: task.ContextID}))(t)
			require.Equal(t, []int{1, 1, 1}, []int{len(listed.Tasks), listed.PageSize, len(listed.Tasks[0].Artifacts)})
			require.ErrorIs(t, must.Err(c.CancelTask(ctx, &sdk.CancelTaskRequest{ID: task.ID})), sdk.ErrTaskNotCancelable)
			require.ErrorIs(t, must.Err(c.GetTask(ctx, &sdk.GetTaskRequest{ID: "t-1"})), sdk.ErrTaskNotFound)
			waits := must.Get(c.SendMessage(ctx, sdkText("Never mind")))(t).(*sdk.Task)
			require.Equal(t, sdk.TaskStateCanceled, must.Get(c.CancelTask(ctx, &sdk.CancelTaskRequest{ID: waits.ID}))(t).Status.State)
			require.Equal(t, "Asha Rao", must.Get(c.GetExtendedAgentCard(ctx, &sdk.GetExtendedAgentCardRequest{}))(t).Name)
		}

		c := restClient(h, bearer(h.TokenOf("vikram", "test")))
		var states []sdk.TaskState
		task := sdk.TaskID("")
		for event, err := range c.SendStreamingMessage(ctx, sdkText("And to Ajmer?")) {
			require.NoError(t, err)
			switch e := event.(type) {
			case *sdk.Task:
				states, task = append(states, e.Status.State), e.ID
				answerAs(h, e.ContextID, "Let me see.", protocol.AsQuestion)
			case *sdk.TaskStatusUpdateEvent:
				states = append(states, e.Status.State)
			}
		}
		require.Equal(t, []sdk.TaskState{sdk.TaskStateSubmitted, sdk.TaskStateInputRequired}, states)
		states = nil
		for event, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: task}) {
			require.NoError(t, err)
			switch e := event.(type) {
			case *sdk.Task:
				states = append(states, e.Status.State)
				answeredTask(h, e.ContextID, "As far as Ajmer.")
			case *sdk.TaskStatusUpdateEvent:
				states = append(states, e.Status.State)
			}
		}
		require.Equal(t, []sdk.TaskState{sdk.TaskStateInputRequired, sdk.TaskStateCompleted}, states)
		require.Eventually(t, func() bool { return h.Contact.Hub.Count() == 0 }, time.Minute, time.Millisecond)
	})
}

// TestA2A_RESTErrors: a refusal has the status that HTTP has for it, and is a google.rpc.Status; admission is that of the other binding.
func TestA2A_RESTErrors(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	ask := func(method, path, body string, headers ...string) (int, string, http.Header, map[string]any) {
		var reader io.Reader
		if body != "" {
			reader = strings.NewReader(body)
		}
		r := must.Get(http.NewRequest(method, h.Base+path, reader))(t)
		if body != "" {
			r.Header.Set("Content-Type", a2a.MediaType)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res := must.Get(me.RoundTrip(r))(t)
		var got struct{ Error map[string]any }
		raw := must.Get(io.ReadAll(res.Body))(t)
		require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)
		status, _ := got.Error["status"].(string)
		return res.StatusCode, status, res.Header, got.Error
	}
	hi := said("m", `{"text":"Hi"}`, "")
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		code               int
		status             string
	}{
		"no such task":    {"GET", "/tasks/t-1", "", nil, 404, "NOT_FOUND"},
		"no such action":  {"POST", "/tasks/t-1:dance", "", nil, 404, "NOT_FOUND"},
		"wrong size":      {"GET", "/tasks?pageSize=1000", "", nil, 400, "INVALID_ARGUMENT"},
		"not JSON":        {"POST", "/message:send", "{", nil, 400, "INVALID_ARGUMENT"},
		"no object":       {"POST", "/message:send", "[]", nil, 400, "INVALID_ARGUMENT"},
		"no message":      {"POST", "/message:send", "{}", nil, 400, "INVALID_ARGUMENT"},
		"bytes":           {"POST", "/message:send", said("m", `{"raw":"aGk="}`, ""), nil, 400, "INVALID_ARGUMENT"},
		"0.3":             {"POST", "/message:send", hi, []string{"A2A-Version", "0.3"}, 400, "FAILED_PRECONDITION"},
		"9.9":             {"GET", "/tasks?A2A-Version=9.9", "", nil, 400, "FAILED_PRECONDITION"},
		"another tenant":  {"GET", "/tasks?tenant=x", "", nil, 400, "INVALID_ARGUMENT"},
		"a push nowhere":  {"POST", "/tasks/t-1/pushNotificationConfigs", `{"url":"https://a.example/"}`, nil, 404, "NOT_FOUND"},
		"a media type":    {"POST", "/message:send", hi, []string{"Content-Type", "text/plain"}, 415, "INVALID_ARGUMENT"},
		"following ended": {"POST", "/tasks/t-1:subscribe", "", nil, 404, "NOT_FOUND"},
	} {
		code, status, head, e := ask(tt.method, "/a2a/asha"+tt.path, tt.body, tt.headers...)
		require.Equal(t, []any{tt.code, tt.status}, []any{code, status}, "%s: %v", name, e)
		require.EqualValues(t, tt.code, e["code"], name)
		require.Equal(t, "application/json", head.Get("Content-Type"), name)
		require.Contains(t, e["details"].([]any)[0], "reason", name)
	}
	bare := h.Ask("POST", "/a2a/asha/message:send", hi)
	require.Equal(t, 401, bare.Code, "%s", bare.Body)
	require.Contains(t, bare.Body.String(), `"status":"UNAUTHENTICATED"`)
	require.Contains(t, bare.Body.String(), "contact_agent", "it leads to what does the same")
	require.Equal(t, 401, h.Ask("GET", "/a2a/asha/tasks", "").Code)
	mine := must.Get(me.RoundTrip(must.Get(http.NewRequest("GET", h.Base+"/a2a/asha/tasks", nil))(t)))(t)
	require.Equal(t, []any{200, a2a.MediaType}, []any{mine.StatusCode, mine.Header.Get("Content-Type")})
	replayed := must.Get(http.NewRequest("GET", h.Base+"/a2a/asha/tasks?pageSize=5", nil))(t) // a signature for one query is none for another
	replayed.Header = mine.Request.Header
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, replayed)
	require.Equal(t, 401, w.Code)
}

// TestA2A_ExtendedCard: who has shown who it is gets a card with what the endpoint does for it, signed, in both versions.
func TestA2A_ExtendedCard(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t, served("any"))
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	var card a2a.Card
	extended := me.Do("/a2a/asha", "GetExtendedAgentCard", `{}`)
	require.NoError(t, json.Unmarshal(extended.Result, &card), "%s", extended.Raw)
	var ids []string
	for _, s := range card.Skills {
		ids = append(ids, s.ID)
	}
	require.Subset(t, ids, []string{"contact", "make-paper", "request_meeting", "bid_for_attention"})
	require.NotContains(t, ids, "read_board", "which the endpoint of an agent has no part in")
	require.NotEmpty(t, card.Signatures)
	public := nodetest.As[a2a.Card](h.Ask("GET", "/a2a/asha/agent-card.json", "", "A2A-Version", "1.0"))
	require.True(t, public.Capabilities.Extended && public.Capabilities.Push)
	require.Equal(t, "HTTP+JSON", public.SupportedInterfaces[2].ProtocolBinding)
	require.Less(t, len(public.Skills), len(card.Skills))
	require.Contains(t, string(old(me, "agent/getAuthenticatedExtendedCard", `{}`).Result), `"supportsAuthenticatedExtendedCard":true`)
	require.Equal(t, 401, plain(h, "/a2a/asha", "GetExtendedAgentCard", `{}`).Status)
	guessed := plain(h, "/a2a/asha", "GetExtendedAgentCard", `{}`, "Authorization", "Bearer "+protocol.NewReadToken())
	require.Equal(t, 401, guessed.Status, "a token that opens nothing")
	code, _ := codeOf(me.Do("/a2a", "GetExtendedAgentCard", `{}`))
	require.Equal(t, -32007, code)
}
