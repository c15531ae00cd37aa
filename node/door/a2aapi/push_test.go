package a2aapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/a2a"
	"stoa/protocol/must"
	"stoa/storage"
)

// A told is one notification, whose signature was verified with the node's published keys.
type told struct {
	path, id string
	header   http.Header
	body     []byte
}

// directoryOf are the keys that a node publishes.
type directoryOf []key.Public

func (d directoryOf) Resolve(_ context.Context, q httpsig.KeyRequest) (httpsig.Resolved, error) {
	for _, k := range d {
		if k.Thumbprint == q.Params.KeyID {
			found, err := httpsig.NewKey(k.Key)
			return httpsig.Resolved{Key: found}, err
		}
	}
	return httpsig.Resolved{}, httpsig.CodeKeyUnknown
}

// receives is a receiver of notifications that answers with a status and believes only what the node has signed.
func receives(h *nodetest.House, status *atomic.Int32) (address string, came chan told) {
	set := must.Get(key.ParseSet(h.Ask("GET", "/.well-known/http-message-signatures-directory", "").Is(200).Body.Bytes()))(h.T)
	came = make(chan told, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := httpsig.FromRequest(r, httpsig.NewTarget("http", r.Host))
		if err == nil {
			v := httpsig.Verifier{Keys: directoryOf(set.Keys), Now: time.Now, AllowLoopback: true}
			_, err = v.Verify(r.Context(), &m, body, httpsig.WritePolicy())
		}
		if err != nil {
			h.T.Errorf("signature: %v", err)
		}
		w.WriteHeader(int(status.Load()))
		came <- told{r.URL.Path, r.Header.Get("Webhook-Id"), r.Header, body}
	}))
	h.T.Cleanup(server.Close)
	return server.URL, came
}

// TestA2A_Push: who waits for a task is told of each change, signed, in the version that it asked in; a receiver that fails is told later.
func TestA2A_Push(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.Start(t, change)
		h.PutOpen("asha", nil)
		all, answer := h.Agents(2), assistant(h)
		me, other := all[0], all[1]
		var status atomic.Int32
		status.Store(204)
		address, came := receives(h, &status)
		sent := me.Do("/a2a/asha", "SendMessage", fmt.Sprintf(`{"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"id":"p","url":"%s/one",
			"token":"t-1","authentication":{"scheme":"Bearer","credentials":"c-1"}}},"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`, address))
		task := sent.Task(t)
		answer(task.ContextID, `"message":"I am looking.","as":"progress"`)
		first := <-came
		require.Equal(t, "/one", first.path)
		for name, value := range map[string]string{"Content-Type": "application/a2a+json", "A2A-Version": "1.0", "Authorization": "Bearer c-1",
			"A2A-Notification-Token": "t-1", "X-A2A-Notification-Token": "t-1"} {
			require.Equal(t, value, first.header.Get(name))
		}
		event := func(n told) (r a2a.StreamResponse) {
			require.NoError(t, json.Unmarshal(n.body, &r), "%s", n.body)
			return r
		}
		require.Equal(t, a2a.Working, event(first).StatusUpdate.Status.State)

		shown := me.Do("/a2a/asha", "GetTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p"}`, task.ID))
		require.JSONEq(t, fmt.Sprintf(`{"id":"p","taskId":%q,"url":"%s/one","token":"t-1","authentication":{"scheme":"Bearer"}}`, task.ID, address),
			string(shown.Result))
		set := old(me, "tasks/pushNotificationConfig/set", fmt.Sprintf(`{"taskId":%q,"pushNotificationConfig":{"url":"%s/two"}}`, task.ID, address))
		require.JSONEq(t, fmt.Sprintf(`{"taskId":%[1]q,"pushNotificationConfig":{"id":%[1]q,"url":"%[2]s/two"}}`, task.ID, address), string(set.Result))
		read := old(me, "tasks/pushNotificationConfig/get", fmt.Sprintf(`{"id":%q,"pushNotificationConfigId":%q}`, task.ID, task.ID))
		require.JSONEq(t, string(set.Result), string(read.Result))
		for method, params := range map[string]string{
			"CreateTaskPushNotificationConfig": fmt.Sprintf(`{"taskId":%q,"url":"https://a.example/"}`, task.ID),
			"GetTaskPushNotificationConfig":    fmt.Sprintf(`{"taskId":%q,"id":"p"}`, task.ID),
			"ListTaskPushNotificationConfigs":  fmt.Sprintf(`{"taskId":%q}`, task.ID),
			"DeleteTaskPushNotificationConfig": fmt.Sprintf(`{"taskId":%q,"id":"p"}`, task.ID),
		} {
			code, _ := codeOf(other.Do("/a2a/asha", method, params))
			require.Equal(t, -32001, code, "%s of another caller", method)
		}

		me.Write("asha", "m-own", "Any news?", fmt.Sprintf(`,"taskId":%q`, task.ID)).Task(t) // of which nobody is told
		answer(task.ContextID, `"message":"A sketch.","attachment":{"name":"sketch","url":"https://a.example/s.png"}`)
		var last told
		ids, whole := map[string]bool{}, 0
		for range 3 { // artifact and status to the one, the task to the other
			n := <-came
			if n.path == "/two" {
				whole++
				require.Equal(t, "application/json", n.header.Get("Content-Type"))
				require.Contains(t, string(n.body), `"kind":"task"`)
				require.Contains(t, string(n.body), `"state":"completed"`)
				continue
			}
			if len(ids) == 0 {
				require.Equal(t, "sketch", event(n).ArtifactUpdate.Artifact.Name, "in their order")
			}
			ids[n.id], last = true, n
		}
		require.Equal(t, 1, whole)
		require.Len(t, ids, 2)
		require.Equal(t, a2a.Completed, event(last).StatusUpdate.Status.State)
		list := me.Do("/a2a/asha", "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, task.ID))
		configs := must.JSON[a2a.PushConfigList](list.Result)(t)
		require.Len(t, configs.Configs, 2, "they remain for a day after the end of the task")

		// A receiver that fails is told again, under the same id; one that answers 410 is told no more.
		next := me.Do("/a2a/asha", "SendMessage", fmt.Sprintf(`{"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"id":"q","url":"%s/three"}},
			"message":{"messageId":"m-2","role":"ROLE_USER","parts":[{"text":"Hi"}]}}`, address)).Task(t)
		status.Store(500)
		answer(next.ContextID, `"message":"Soon.","as":"progress"`)
		failed := <-came
		status.Store(204)
		again := <-came
		require.Equal(t, failed.id, again.id)
		status.Store(410)
		answer(next.ContextID, `"message":"Sooner.","as":"progress"`)
		<-came
		require.Eventually(t, func() bool {
			gone := me.Do("/a2a/asha", "ListTaskPushNotificationConfigs", fmt.Sprintf(`{"taskId":%q}`, next.ID))
			return string(gone.Result) == `{"configs":[],"nextPageToken":""}`
		}, time.Minute, 5*time.Millisecond)
	})
}

// TestA2A_PushLimits: so many of a task, each with its own id; what a receiver cannot be sent is refused; deleting is idempotent; a day after
// the end of the task they are gone.
func TestA2A_PushLimits(t *testing.T) {
	t.Parallel()
	nodetest.Any(t, func(t *testing.T, change func(*node.Config)) {
		h := nodetest.New(t, change)
		h.PutOpen("asha", nil)
		me := h.Agents(1)[0]
		task := me.Write("asha", "m-1", "Hello", "").Task(t)
		create := func(members string) nodetest.A2AAnswer {
			return me.Do("/a2a/asha", "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,%s}`, task.ID, members))
		}
		for n := range protocol.MaxExchangePushes {
			require.Nil(t, create(fmt.Sprintf(`"id":"p-%d","url":"https://a.example/%d"`, n, n)).Error)
		}
		require.Nil(t, create(`"id":"p-1","url":"https://a.example/again"`).Error, "in place of the one with its id")
		full := create(`"url":"https://a.example/6"`)
		code, _ := codeOf(full)
		require.Equal(t, []any{-32000, "TOO_MANY_PUSH_CONFIGS"}, []any{code, full.Error.Data[0].Reason})
		for members, field := range map[string]string{
			`"url":"http://a.example/"`: "url", `"url":"https://10.0.0.1/"`: "url", `"url":"https://a.example/","token":"a\r\nb"`: "token", `"id":"x"`: "url",
			`"url":"https://a.example/","authentication":{"scheme":"Be arer","credentials":"x"}`: "authentication.scheme",
			`"url":"https://a.example/","authentication":{"scheme":"Bearer","credentials":"é"}`:  "authentication.credentials",
		} {
			a := create(members)
			code, _ := codeOf(a)
			require.Equal(t, -32602, code, "%s: %s", members, a.Raw)
			require.Equal(t, field, a.Error.Data[1].Violations[0].Field, members)
		}
		for range 2 {
			gone := me.Do("/a2a/asha", "DeleteTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p-1"}`, task.ID))
			require.Equal(t, "{}", string(gone.Result))
		}
		gone := old(me, "tasks/pushNotificationConfig/delete", fmt.Sprintf(`{"id":%q,"pushNotificationConfigId":"p-2"}`, task.ID))
		require.Equal(t, "null", string(gone.Result))
		code, _ = codeOf(me.Do("/a2a/asha", "GetTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p-1"}`, task.ID)))
		require.Equal(t, -32001, code)
		code, _ = codeOf(me.Do("/a2a", "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"url":"https://a.example/"}`, task.ID)))
		require.Equal(t, -32003, code, "the node's own agent has no tasks")

		answeredTask(h, task.ContextID, "Yes.")
		left := func() (n int) {
			id, _ := protocol.ParseExchangeID(task.ID)
			require.NoError(t, h.DB.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				all, err := tx.Pushes().List(ctx, id.ThreadID, id.First)
				n = len(all)
				return err
			}))
			return n
		}
		require.Equal(t, 3, left())
		require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			tx.Now = tx.Now.Add(25 * time.Hour)
			_, err := tx.PruneExpired(ctx)
			return err
		}))
		require.Zero(t, left())
	})
}
