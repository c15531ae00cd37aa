package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/protocol/pow"
)

// A guest solves the challenge of a refusal and repeats the request; with a token it sends that.
type guest struct{ token string }

func (g *guest) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	send := func(proof string) (*http.Response, error) {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if g.token != "" {
			again.Header.Set("Authorization", "Bearer "+g.token)
		}
		if proof != "" {
			again.Header.Set("Proof-Of-Work", proof)
		}
		return http.DefaultTransport.RoundTrip(again)
	}
	res, err := send("")
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		return res, err
	}
	defer res.Body.Close()
	var refused struct {
		Error struct {
			Data []struct{ Challenge *pow.Challenge }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&refused); err != nil {
		return nil, err
	}
	for _, d := range refused.Error.Data {
		if d.Challenge != nil {
			s, err := pow.Solve(r.Context(), *d.Challenge)
			if err != nil {
				return nil, err
			}
			return send(s.Encode())
		}
	}
	return res, nil
}

// TestA2A_Client lets the official client for Go talk to a node that serves everybody, from the card on.
func TestA2A_Client(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *node.Config) { c.A2ACallers = "any" })
	w.agent("asha")
	ctx, who := t.Context(), &guest{}
	card, err := agentcard.NewResolver(http.DefaultClient).Resolve(ctx, w.URL+"/a2a/asha")
	require.NoError(t, err)
	c, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(&http.Client{Transport: who}))
	require.NoError(t, err)

	res, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("Do you deliver?"))})
	require.NoError(t, err)
	task, ok := res.(*a2a.Task)
	require.True(t, ok, "%T", res)
	require.Equal(t, a2a.TaskStateSubmitted, task.Status.State)
	who.token, ok = task.Metadata["urn:stoa:a2a:contact:v1/readToken"].(string)
	require.True(t, ok)
	got, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: task.ID})
	require.NoError(t, err)
	require.Equal(t, task.ContextID, got.ContextID)
	_, err = c.GetTask(ctx, &a2a.GetTaskRequest{ID: "t-1"})
	require.ErrorIs(t, err, a2a.ErrTaskNotFound)
	listed, err := c.ListTasks(ctx, &a2a.ListTasksRequest{})
	require.NoError(t, err)
	require.Len(t, listed.Tasks, 1)
	canceled, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task.ID})
	require.NoError(t, err)
	require.Equal(t, a2a.TaskStateCanceled, canceled.Status.State)

	who.token = ""
	events := 0
	for event, err := range c.SendStreamingMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("And to Ajmer?"))}) {
		require.NoError(t, err)
		switch e := event.(type) {
		case *a2a.Task:
			who.token, _ = e.Metadata["urn:stoa:a2a:contact:v1/readToken"].(string)
			w.answers(e.ContextID, "As far as Ajmer.")
		case *a2a.TaskArtifactUpdateEvent:
			require.Equal(t, "As far as Ajmer.", e.Artifact.Parts[0].Text())
		case *a2a.TaskStatusUpdateEvent:
			require.Equal(t, a2a.TaskStateCompleted, e.Status.State)
		}
		events++
	}
	require.Equal(t, 3, events)
}
