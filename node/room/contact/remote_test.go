package contact_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// A thread that a person of another server began, and that came with an archive, has nowhere to send an answer to; its owner is
// told so. Whatever else came with one can be answered.
func TestAnswer_Imported(t *testing.T) {
	each(t, func(w *world) {
		w.profile("asha", everybody)
		for writer, code := range map[string]protocol.Code{
			"at:n2.example actor:https://peer.example/u/carol": protocol.Conflict,
			"at:n2.example account:acc_1":                      "",
		} {
			r := w.begun(visitor)
			require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				old, err := tx.Threads().ByID(ctx, r.ThreadID)
				if err != nil {
					return err
				}
				old.ID, old.Writer = protocol.NewID(protocol.ThreadID, tx.Now), writer
				r.ThreadID = old.ID
				return tx.Threads().Import(ctx, old)
			}))
			require.Equal(w.t, code, protocol.CodeOf(must.Err(w.answer(asha, r.ThreadID, "Yes"))), writer)
		}
	})
}
