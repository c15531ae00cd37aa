package a2aapi_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/node"
	"stoa/node/nodetest"
	"stoa/protocol/a2a"
)

// TestA2A_Program: the sample of an owner's assistant, clients/assistant.py, answers an agent that waits.
func TestA2A_Program(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here; make test installs it")
	}
	h := nodetest.Served(t, func(c *node.Config) { c.A2AWait = 20 })
	h.PutOpen("asha", nil)
	me := h.Agents(1)[0]
	program := exec.CommandContext(t.Context(), "python3", nodetest.Source("clients/assistant.py"), h.Base, h.TokenOf("asha", "test"), "1")
	out := make(chan error, 1)
	go func() {
		said, err := program.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said)
		}
		out <- err
	}()
	asked := me.Write("asha", "m-1", "A quote for chairs, please.", "").Task(t)
	require.Equal(t, a2a.InputRequired, asked.Status.State)
	require.Equal(t, "How many do you need?", *asked.Status.Message.Parts[0].Text)
	done := me.Write("asha", "m-2", "Forty.", fmt.Sprintf(`,"taskId":%q`, asked.ID)).Task(t)
	require.Equal(t, a2a.Completed, done.Status.State)
	var quote struct{ For string }
	require.NoError(t, json.Unmarshal(done.Artifacts[0].Parts[1].Data, &quote))
	require.Equal(t, "Forty.", quote.For)
	require.NoError(t, <-out)
}
