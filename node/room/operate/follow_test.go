package operate_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/nodetest"
	"stoa/node/room/operate"
	"stoa/protocol"
	"stoa/storage"
)

// A follow shows from the moment it is asked for, says how often it was tried and
// why in vain, is tried for a day, and is seen as given up after that.
func TestFollow_Shows(t *testing.T) {
	t.Parallel()
	h := nodetest.New(t)
	a, o := h.Admin(), h.Operator()
	const nobody = "http://127.0.0.1:1"
	following := func() []protocol.Followed {
		var v protocol.PeersView
		o.Do(200, "GET", "/api/operator/peers", nil, &v)
		require.NotNil(t, v.Delivering)
		return v.Following
	}
	try := func(change func(*storage.Job)) {
		jobs, _, err := h.DB.ClaimJobs(t.Context(), "test", 10, time.Minute)
		require.NoError(t, err)
		for _, j := range jobs {
			if j.Kind != storage.FollowJob {
				continue
			}
			if change != nil {
				change(&j)
			}
			after, err := storage.HandlerOf(operate.FollowJobs{Follow: h.Follow, Log: slog.New(slog.DiscardHandler)}.Job)(t.Context(), j)
			require.NoError(t, h.DB.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				if err != nil {
					require.Equal(t, protocol.Gone, protocol.CodeOf(err))
					return tx.Jobs().Bury(ctx, j.ID, err.Error())
				}
				if err := tx.Jobs().Finish(ctx, j.ID); err != nil || after == nil {
					return err
				}
				return after(ctx, tx)
			}))
		}
	}
	require.NoError(t, a.Follow(t.Context(), nobody))
	f := following()
	require.Len(t, f, 1)
	require.Equal(t, []any{nobody, "pending", 0, ""}, []any{f[0].Address, f[0].State, f[0].Attempts, f[0].LastError})

	began := time.Now().Truncate(time.Millisecond)
	try(nil)
	f = following()
	require.Equal(t, []any{nobody, "pending", 1}, []any{f[0].Address, f[0].State, f[0].Attempts})
	require.Contains(t, f[0].LastError, "refused")
	require.WithinRange(t, *f[0].NextAt, began, time.Now().Add(10*time.Second))
	require.NoError(t, a.Follow(t.Context(), nobody), "again: it is tried now")
	require.Len(t, following(), 1)

	try(func(j *storage.Job) {
		j.Args = []byte(`{"url":"` + nobody + `","since":"` + time.Now().Add(-22*time.Hour).Format(time.RFC3339) + `","tries":14}`)
	})
	f = following()
	require.Equal(t, "pending", f[0].State)
	require.Equal(t, 15, f[0].Attempts)
	require.NoError(t, a.Follow(t.Context(), nobody))
	try(func(j *storage.Job) {
		j.Args = []byte(`{"url":"` + nobody + `","since":"` + time.Now().Add(-25*time.Hour).Format(time.RFC3339) + `","tries":30}`)
	})
	f = following()
	require.Len(t, f, 1)
	require.Equal(t, "failed", f[0].State)
	require.Contains(t, f[0].LastError, "given up after a day")
	require.Nil(t, f[0].NextAt)

	require.NoError(t, a.Follow(t.Context(), nobody))
	f = following()
	require.Equal(t, "pending", f[0].State, "a new life")
	require.NoError(t, a.Unfollow(t.Context(), nobody))
	require.Empty(t, following())
	require.Error(t, a.Unfollow(t.Context(), nobody))
}
