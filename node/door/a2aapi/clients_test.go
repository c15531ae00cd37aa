package a2aapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol/must"
)

// ClientsEnv names the program that drives agents with the released clients of A2A 1.0 and 0.3 from npm; make test sets it.
const ClientsEnv = "STOA_TEST_A2A"

// A released is a client of npm, of a version of A2A.
type released struct {
	h              *nodetest.House
	program        string
	version, token string // "" for a guest
}

func releasedClients(h *nodetest.House) (all []released) {
	h.T.Helper()
	program := os.Getenv(ClientsEnv)
	if program == "" {
		h.T.Skip("the clients are not here; make test installs them")
	}
	return []released{{h: h, program: program, version: "1.0"}, {h: h, program: program, version: "0.3"}, {h: h, program: program, version: "1.0+rest"}}
}

// message is the parameters of a message as the client has them; extra are further members of it.
func (c released) message(id, text, extra string) string {
	if c.version != "0.3" {
		return fmt.Sprintf(`{"message":{"messageId":%q,"role":1,"parts":[{"content":{"$case":"text","value":%q}}]%s}}`, id, text, extra)
	}
	return fmt.Sprintf(`{"message":{"kind":"message","messageId":%q,"role":"user","parts":[{"kind":"text","text":%q}]%s}}`, id, text, extra)
}

// start calls a method of the client.
func (c released) start(handle, method, params string) *exec.Cmd {
	return exec.CommandContext(c.h.T.Context(), "node", c.program, c.version, c.h.Base, handle, c.token, method, params)
}

// call calls a method of the client and returns the first line that it writes.
func (c released) call(handle, method, params string) (answer map[string]any) {
	c.h.T.Helper()
	out, err := c.start(handle, method, params).Output()
	require.NoError(c.h.T, err, "%s", out)
	line, _, _ := strings.Cut(string(out), "\n")
	require.NoError(c.h.T, json.Unmarshal([]byte(line), &answer), "%s", out)
	return answer
}

// stream calls a method that streams, and sends what comes: of a client of 1.0 what an event has, as a client of 0.3 has it.
func (c released) stream(method, params string) <-chan map[string]any {
	c.h.T.Helper()
	cmd := c.start("asha", method, params)
	out := must.Get(cmd.StdoutPipe())(c.h.T)
	require.NoError(c.h.T, cmd.Start())
	events := make(chan map[string]any)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var event map[string]any
			_ = json.Unmarshal(lines.Bytes(), &event)
			if payload, ok := event["payload"].(map[string]any); ok {
				event, _ = payload["value"].(map[string]any)
			}
			events <- event
		}
		_ = cmd.Wait()
	}()
	return events
}

// state is the state of a task, whose name is of 0.3 for both clients.
func state(task map[string]any) string {
	status, _ := task["status"].(map[string]any)
	switch s := status["state"].(type) {
	case string:
		return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s, "TASK_STATE_")), "_", "-")
	case float64: // a2a-js 1.3.0 has numbers
		return []string{"", "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"}[int(s)]
	}
	return ""
}

// push gives a task an address, reads it back and returns it.
func (c released) push(taskID string) (address string) {
	c.h.T.Helper()
	if c.version != "0.3" {
		c.call("asha", "createTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p-1","url":"https://a.example/told","token":"t-1"}`, taskID))
		address, _ = c.call("asha", "getTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"id":"p-1"}`, taskID))["url"].(string)
		return address
	}
	c.call("asha", "setTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":%q,"pushNotificationConfig":{"url":"https://a.example/told"}}`, taskID))
	config, _ := c.call("asha", "getTaskPushNotificationConfig", fmt.Sprintf(`{"id":%q}`, taskID))["pushNotificationConfig"].(map[string]any)
	address, _ = config["url"].(string)
	return address
}

// TestA2A_Released: the released clients, unmodified, of both versions: as a guest, who gets a challenge and solves it, with a
// token, and with a key; that of 1.0 over HTTP+JSON too.
func TestA2A_Released(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, served("any"))
	h.PutOpen("asha", nil)
	pair := h.Hosted("vikram")
	keyFile := filepath.Join(t.TempDir(), "key.jwk")
	require.NoError(t, os.WriteFile(keyFile, must.Get(pair.MarshalPrivate())(t), 0o600))
	for _, client := range releasedClients(h) {
		t.Run(client.version, func(t *testing.T) {
			client.h = h.On(t)
			task := client.call("asha", "sendMessage", client.message("m-"+client.version, "Do you deliver?", ""))
			require.Equal(t, "submitted", state(task), "%v", task)
			token, _ := task["metadata"].(map[string]any)["urn:stoa:a2a:contact:v1/readToken"].(string)
			require.NotEmpty(t, token)
			answeredTask(client.h, task["contextId"].(string), "To Jaipur.")
			client.token = token
			read := fmt.Sprintf(`{"id":%q}`, task["id"])
			for _, reader := range releasedClients(client.h) { // in both versions, whichever it was made in
				reader.token = token
				done := reader.call("asha", "getTask", read)
				require.Equal(t, "completed", state(done), "%s: %v", reader.version, done)
				require.Len(t, done["history"], 2)
			}
			require.EqualValues(t, "TaskNotFoundError", client.call("asha", "getTask", `{"id":"t-1"}`)["error"].(map[string]any)["name"])
			if client.version != "0.3" {
				require.Len(t, client.call("asha", "listTasks", `{}`)["tasks"], 1)
			}
			over := client.call("asha", "cancelTask", read)["error"].(map[string]any)
			require.EqualValues(t, "TaskNotCancelableError", over["name"])

			client.token = ""
			events := client.stream("sendMessageStream", client.message("s-"+client.version, "And to Ajmer?", ""))
			begun := <-events
			answeredTask(client.h, begun["contextId"].(string), "As far as Ajmer.")
			artifact, status := <-events, <-events
			require.NotNil(t, artifact["artifact"], "%v", artifact)
			require.Equal(t, "completed", state(status), "%v", status)
			_, more := <-events
			require.False(t, more)

			client.token = "key:" + keyFile // signed, and followed
			signed := client.call("asha", "sendMessage", client.message("k-"+client.version, "Signed", ""))
			require.Equal(t, "submitted", state(signed), "%v", signed)
			about := fmt.Sprintf(`{"id":%q}`, signed["id"])
			follows := client.stream("resubscribeTask", about)
			require.Equal(t, signed["id"], (<-follows)["id"])
			answeredTask(client.h, signed["contextId"].(string), "So it is.")
			require.NotNil(t, (<-follows)["artifact"])
			require.Equal(t, "completed", state(<-follows))
			require.Equal(t, "completed", state(client.call("asha", "getTask", about)))
			require.Equal(t, "https://a.example/told", client.push(signed["id"].(string)), "a config that was made and read")

			client.token = h.TokenOf("vikram", "test")
			waits := client.call("asha", "sendMessage", client.message("c-"+client.version, "Never mind", ""))
			require.Equal(t, "canceled", state(client.call("asha", "cancelTask", fmt.Sprintf(`{"id":%q}`, waits["id"]))))
			again := client.call("asha", "sendMessage", client.message("n-"+client.version, "From an owner", ""))
			require.Equal(t, "submitted", state(again), "%v", again)
			require.Equal(t, again["id"], client.call("asha", "getTask", fmt.Sprintf(`{"id":%q}`, again["id"]))["id"])
		})
	}
	t.Run("the default", func(t *testing.T) {
		h := nodetest.Served(t)
		h.PutOpen("asha", nil)
		for _, client := range releasedClients(h) {
			refused := client.call("asha", "sendMessage", client.message("m", "Do you deliver?", ""))
			text := must.Get(json.Marshal(refused))(t)
			require.Contains(t, string(text), "contact_agent", "the refusal names a way: %s", text)
		}
	})
}
