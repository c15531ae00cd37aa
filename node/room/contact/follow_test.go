package contact_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/room/contact"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// Each change of a task is told to who follows it, those of one millisecond too: the clock of this test stands still.
func TestFollow(t *testing.T) {
	each(t, func(w *world) {
		t := w.t
		w.Hub = contact.NewHub(w.db, slog.New(slog.DiscardHandler), contact.MaxFollowers)
		t.Cleanup(w.Hub.Close)
		w.profile("asha", everybody)
		var task protocol.Exchange
		require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) (err error) {
			task, err = w.SendExchange(ctx, tx, outsider, protocol.AgentMessage{Handle: "asha", Text: "Forty chairs?", MessageID: "m-1", Kind: protocol.Question})
			return err
		}))
		var s protocol.Stream
		require.NoError(t, w.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
			s, err = w.Follow(ctx, tx, outsider, protocol.ExchangeInput{Handle: "asha", ID: task.ID})
			return err
		}))
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, as := range []protocol.AnswerAs{protocol.AsProgress, protocol.AsProgress, protocol.AsQuestion} {
			require.NoError(t, w.write(func(ctx context.Context, tx *storage.Tx) error {
				_, err := w.Answer(ctx, tx, asha, protocol.NewAnswer{ThreadRef: protocol.ThreadRef{ThreadID: task.ThreadID}, Message: "Let me see.", As: as})
				return err
			}))
			b := must.Get(s.Next(ctx))(t)
			require.Len(t, b.Events, 1)
			told := must.JSON[protocol.Exchange](b.Events[0].Data)(t)
			require.Len(t, told.Messages, i+2)
		}
	})
}
