package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/stretchr/testify/require"

	"stoa/cmd/stoa/client"
	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/protocol/must"
)

// signingTransport signs each request as an agent with a chain identity, which is
// all that a client of another implementation needs here.
type signingTransport struct {
	node string
	id   string
	pair key.Pair
}

func (s signingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Agent-Identity", s.id)
	target, err := httpsig.ParseTarget(s.node)
	if err != nil {
		return nil, err
	}
	if err := httpsig.SignRequest(r, target, body, httpsig.SignOptions{Key: s.pair.Signer()}); err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// a2aStory: an agent with a chain identity writes to another by A2A, the owner
// answers, and the agent reads the answer. A post made by A2A is verified by the
// other node.
func a2aStory(t *testing.T, w *localWorld) {
	node, asha := w.Nodes[1].URL, w.agent("asha") // where she has no profile
	raw := must.Get(os.ReadFile(*asha.Key))(t)
	pair := must.Get(key.ParsePair(raw))(t)
	profile, _ := get[protocol.Profile](t, node+"/api/public/agents/ravi")
	require.NotNil(t, profile.Interfaces.A2A)
	card, status := get[struct {
		SupportedInterfaces []struct{ URL string }
		Signatures          []any
	}](t, profile.Interfaces.AgentCard)
	require.Equal(t, 200, status)
	require.Equal(t, *profile.Interfaces.A2A, card.SupportedInterfaces[0].URL)
	require.NotEmpty(t, card.Signatures)

	ctx := context.Background()
	at := func(url string) *a2aclient.Client {
		c := must.Get(a2aclient.NewFromEndpoints(ctx, []*sdk.AgentInterface{sdk.NewAgentInterface(url, sdk.TransportProtocolJSONRPC)},
			a2aclient.WithJSONRPCTransport(&http.Client{Transport: signingTransport{node, *asha.ERC8004, pair}})))(t)
		return c
	}
	ravi := at(*profile.Interfaces.A2A)
	res, err := ravi.SendMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Would you translate a label?"))})
	require.NoError(t, err)
	task, ok := res.(*sdk.Task)
	require.True(t, ok, "%T", res)
	require.Equal(t, sdk.TaskStateSubmitted, task.Status.State)

	owner := must.Get(client.New(node, client.Options{Token: w.agent("ravi").OwnerToken}))(t)
	listed := must.Get(owner.Call(ctx, "list_threads", map[string]any{}))(t)
	threads := must.JSON[protocol.Page[protocol.Thread]](listed.Body)(t)
	require.Equal(t, task.ContextID, threads.Items[0].ThreadID)
	require.Equal(t, asha.ERC8004, threads.Items[0].Writer.ERC8004)
	require.True(t, threads.Items[0].Writer.Verified)
	must.Get(owner.Call(ctx, "answer_thread", map[string]any{"threadId": task.ContextID, "message": "Gladly, by Monday."}))(t)
	task = must.Get(ravi.GetTask(ctx, &sdk.GetTaskRequest{ID: task.ID}))(t)
	require.Equal(t, sdk.TaskStateCompleted, task.Status.State)
	require.Equal(t, "Gladly, by Monday.", task.Artifacts[0].Parts[0].Text())

	res = must.Get(at(node+"/a2a").SendMessage(ctx, &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewDataPart(map[string]any{
		"operation": "post_to_board", "input": map[string]any{"kind": "ability", "title": "Labels", "body": "Printed by hand.", "tags": []string{"labels"}},
	}))}))(t)
	message, ok := res.(*sdk.Message)
	require.True(t, ok, "%T", res)
	uri := message.Parts[0].Data().(map[string]any)["uri"].(string)
	require.True(t, arrives(t, w.Nodes[0].URL, uri, soon).Author.Verified, "the other node checks the signed A2A request itself")
}
