package a2aapi_test

import (
	"context"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/storage"
)

// code is the code of JSON-RPC and our own.
func codeOf(a nodetest.A2AAnswer) (int, protocol.Code) {
	if a.Error == nil {
		return 0, ""
	}
	return a.Error.Code, a.Error.Data[len(a.Error.Data)-1].Code
}

// answered makes the agent's owner answer.
func answeredTask(h *nodetest.House, threadID, text string) {
	h.T.Helper()
	answerAs(h, threadID, text, "")
}

func answerAs(h *nodetest.House, threadID, text string, as protocol.AnswerAs) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		owner := protocol.Caller{Standing: protocol.Session, Handle: "asha", Name: "Asha Rao", Account: "test"}
		_, err := h.Contact.Answer(ctx, tx, owner, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: threadID}, Message: text, As: as})
		return err
	}))
}

// change alters a thread.
func changeThread(h *nodetest.House, threadID string, alter func(context.Context, *storage.Tx, *storage.StoredThread) error) {
	h.T.Helper()
	require.NoError(h.T, h.DB.Write(h.T.Context(), func(ctx context.Context, tx *storage.Tx) error {
		s, err := tx.Threads().ByID(ctx, threadID)
		if err != nil {
			return err
		}
		if err := alter(ctx, tx, s); err != nil {
			return err
		}
		return tx.Threads().Save(ctx, s)
	}))
}
