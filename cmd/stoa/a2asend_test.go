package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// answerNext answers the next thread with asha once there is one that waits.
func answerNext(t *testing.T, h *nodetest.House, text string) {
	token := h.TokenOf("asha", "test")
	go func() {
		for t.Context().Err() == nil {
			var inbox protocol.Page[protocol.Thread]
			a := h.Ask("GET", "/api/owner/threads?state=open", "", "Authorization", "Bearer "+token)
			if json.Unmarshal(a.Body.Bytes(), &inbox) == nil && len(inbox.Items) > 0 {
				err := h.DB.Write(context.Background(), func(ctx context.Context, tx *storage.Tx) error {
					owner := protocol.Caller{Standing: protocol.Session, Handle: "asha", Name: "Asha Rao", Account: "test"}
					_, err := h.Contact.Answer(ctx, tx, owner, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: inbox.Items[0].ThreadID}, Message: text})
					return err
				})
				if err != nil {
					t.Error(err)
				}
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
}

// TestA2ASend: a guest, a token and a key write to an agent by both versions, wait or stream, and read what they got.
func TestA2ASend(t *testing.T) {
	t.Parallel()
	h := nodetest.Served(t, func(c *node.Config) { c.A2ACallers = "any" })
	h.PutOpen("asha", nil)
	pair := h.Hosted("vikram")
	keyFile := filepath.Join(t.TempDir(), "key.jwk")
	require.NoError(t, os.WriteFile(keyFile, must.Get(pair.MarshalPrivate())(t), 0o600))
	card := h.Base + "/a2a/asha/agent-card.json"
	for name, args := range map[string][]string{
		"guest": {card}, "token": {h.Base + "/a2a/asha", "--token", h.TokenOf("vikram", "test")}, "key": {h.Base + "/a2a/asha/", "--key", keyFile},
		"stream": {card, "--stream"},
	} {
		answerNext(t, h, "To Jaipur,\nand \x1b[31mAjmer.")
		out, errs, code := typed(t, "", append([]string{"a2a", "send", args[0], "Do you deliver?"}, args[1:]...)...)
		require.Zero(t, code, "%s: %s", name, errs)
		require.Contains(t, out, "state completed", name)
		require.Contains(t, out, "reply:\n  To Jaipur,\n  and [31mAjmer.", name)
		require.Equal(t, name == "guest" || name == "stream", strings.Contains(out, "\ntoken "), name)
		id, _, _ := strings.Cut(strings.TrimPrefix(out, "task "), "\n")
		if name == "token" {
			out, _, code = typed(t, "", "a2a", "get", card, id, "--token", args[2], "--json")
			require.Zero(t, code)
			require.Contains(t, out, `"state":"TASK_STATE_COMPLETED"`)
		}
	}

	// By 0.3, of a card that has nothing else.
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write([]byte(`{"name":"Old","url":"http://` + r.Host + `/rpc","preferredTransport":"JSONRPC","protocolVersion":"0.3.0"}`))
			return
		}
		var in struct {
			Method string
			Params struct{ Message struct{ Kind, Role string } }
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Method != "message/send" || in.Params.Message.Role != "user" {
			w.WriteHeader(400)
		}
		w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent",` +
			`"parts":[{"kind":"text","text":"Hi"},{"kind":"data","data":{"a":1}}]}}`))
	}))
	defer old.Close()
	out, errs, code := typed(t, "", "a2a", "send", old.URL, "Hello")
	require.Zero(t, code, errs)
	require.Equal(t, "  Hi\n  {\"a\":1}\n", out)

	// What does not work says why.
	wants := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"name":"Strict","supportedInterfaces":[{"url":"http://` + r.Host + `/rpc","protocolBinding":"` + strings.Trim(r.URL.Path, "/.json") +
			`","protocolVersion":"1.0"}],` +
			`"securitySchemes":{"oauth":{"oauth2SecurityScheme":{}},"key":{"apiKeySecurityScheme":{"name":"X-Key","description":"from us"}}},` +
			`"securityRequirements":[{"schemes":{"oauth":{"list":[]}}},{"schemes":{"key":{"list":[]}}}]}`))
	}))
	defer wants.Close()
	for say, args := range map[string][]string{
		"Strict wants one of":             {wants.URL + "/JSONRPC.json", "Hi"},
		"key, which this does not know":   {wants.URL + "/JSONRPC.json", "Hi"},
		"the card offers GRPC 1.0":        {wants.URL + "/GRPC.json", "Hi"},
		"is not the address":              {"asha", "Hi"},
		"answered 404":                    {h.Base + "/a2a/nobody", "Hi"},
		"the message is empty":            {card, ""},
		"no such context":                 {card, "Hi", "--context", "thr_x"},
		"a chain identity needs the key":  {card, "Hi", "--agent", "eip155:1:0x0:1"},
		"--wait must be positive":         {card, "Hi", "--wait", "0s"},
		"no such file or directory":       {card, "Hi", "--key", "/nowhere.jwk"},
		"give a key or a token, not both": {card, "Hi", "--key", keyFile, "--token", "x"},
	} {
		_, errs, code := typed(t, "", append([]string{"a2a", "send"}, args...)...)
		require.NotZero(t, code, say)
		require.Contains(t, errs, say)
	}
}
