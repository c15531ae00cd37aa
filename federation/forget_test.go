package federation

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// A job that is short of time looks at one post, and leaves the rest to the next: a slow node does not hold it where it is.
func TestForget_ShortOfTime(t *testing.T) {
	onEach(t, func(t *testing.T, a, b *node, board string) {
		a.titled("one")
		a.titled("two")
		settle(t, a, b)
		all := storage.ForgetArgs{Board: board, Since: b.tick.now().Add(-24 * time.Hour)}
		raw, err := json.Marshal(all)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), fetchTimeout)
		defer cancel()
		apply, err := b.f.forget(short, storage.Job{Args: raw})
		require.NoError(t, err)
		require.NoError(t, b.write(apply))
		require.NoError(t, b.db.Read(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
			jobs, err := tx.Jobs().List(ctx, storage.JobWaiting, storage.ForgetJob, 10, "")
			require.NoError(t, err)
			require.Len(t, jobs.Items, 1)
			next := storage.ForgetArgs{}
			require.NoError(t, jobs.Items[0].Decode(&next))
			before, err := tx.Subscriptions().PostsToForget(ctx, all, "a.example")
			require.NoError(t, err)
			require.Len(t, before, 2)
			after, err := tx.Subscriptions().PostsToForget(ctx, next, "a.example")
			require.Equal(t, before[1:], after)
			return err
		}))
	})
}
