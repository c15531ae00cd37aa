package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"
)

// What a deleted profile leaves is deleted in bounded transactions; the handle can be
// taken only afterwards, so that its next owner reads none of it. Others keep theirs.
func TestDropThreads(t *testing.T) {
	t.Parallel()
	const threads, rows = 250, 2500
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		put := func(handle string) error {
			return db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) error {
				return must.Err(tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: handle, Name: handle, Kind: protocol.Person}}))
			})
		}
		require.NoError(t, put("asha"))
		require.NoError(t, put("bela"))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, t := range []*storage.StoredThread{
				{ID: "thr_0", Handle: "asha", Kind: protocol.Question, State: protocol.ThreadOpen, Writer: "w", Messages: 20},
				{ID: "thr_x", Handle: "bela", Kind: protocol.Question, State: protocol.ThreadOpen, Writer: "w", WriterHandle: "asha"},
			} {
				if err := tx.Threads().Insert(ctx, t); err != nil {
					return err
				}
			}
			for _, handle := range []string{"asha", "bela"} {
				if err := tx.Callbacks().Insert(ctx, &storage.StoredCallback{ID: "msg_" + handle, State: protocol.CallbackDone, Handle: handle}); err != nil {
					return err
				}
				if err := tx.ContactBlocks().Insert(ctx, &storage.ContactBlock{ID: "blk_" + handle, Handle: handle, Writer: "w", Names: []string{"w"}}); err != nil {
					return err
				}
				if err := tx.News().Append(ctx, storage.NewsInbox, "thr_0#1", "handle:"+handle); err != nil {
					return err
				}
			}
			return nil
		})
		copies := func(table, where string, n int, set map[string]string) {
			require.NoError(t, storage.CopyRows(t.Context(), db, table, where, n, set))
		}
		id := map[string]string{"id": "id || CAST(s AS TEXT)"}
		copies("thread", `id = 'thr_0'`, threads, id)
		copies("thread", `id = 'thr_x'`, rows, id)
		copies("callback", `id = 'msg_asha'`, rows, id)
		copies("news", `reader = 'handle:asha'`, rows, map[string]string{"n": "n + s"})
		copies("contact_block", `id = 'blk_asha'`, rows, map[string]string{"id": "id || CAST(s AS TEXT)", "writer": "CAST(s AS TEXT)"})
		copies("contact_block_name", `handle = 'asha'`, rows, map[string]string{"name": "CAST(s AS TEXT)"})

		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Profiles().Delete(ctx, "asha") })
		steps := 0
		for ; ; steps++ {
			jobs, _, err := db.ClaimJobs(t.Context(), "o", 1, time.Minute)
			require.NoError(t, err)
			if len(jobs) == 0 {
				break
			}
			if jobs[0].Kind == storage.AgentToldJob { // of the new profiles, a second later
				write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Jobs().Finish(ctx, jobs[0].ID) })
				steps--
				continue
			}
			require.Equal(t, storage.DropJob, jobs[0].Kind)
			if steps == 0 {
				require.Equal(t, protocol.Overloaded, protocol.CodeOf(put("asha")), "too much is left")
			}
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				if err := tx.Jobs().Finish(ctx, jobs[0].ID); err != nil {
					return err
				}
				return tx.Threads().DropAll(ctx, string(jobs[0].Args))
			})
		}
		// Threads have 20 messages, of which a transaction deletes a thousand.
		require.Equal(t, threads/50+5*(rows/1000), steps)
		require.NoError(t, put("asha"))
		left := func(rows string) int {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) { return storage.Count(ctx, tx, rows) })
		}
		for _, table := range []string{"callback", "contact_block", "contact_block_name"} {
			require.Zero(t, left(``+table+` WHERE handle = 'asha'`), table)
			require.Equal(t, 1, left(``+table+` WHERE handle = 'bela'`), table)
		}
		require.Zero(t, left(`news WHERE reader = 'handle:asha'`))
		require.Equal(t, 1, left(`news WHERE reader = 'handle:bela'`))
		require.Equal(t, rows+1, left(`thread WHERE handle = 'bela' AND writer_handle IS NULL`))
		require.Equal(t, rows+1, left(`thread`))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { // as a late job would
			if err := tx.News().Append(ctx, storage.NewsInbox, "thr_1#1", "handle:asha"); err != nil {
				return err
			}
			return tx.Threads().DropAll(ctx, "asha")
		})
		require.Equal(t, 1, left(`news WHERE reader = 'handle:asha'`), "the handle has a profile again")
	})
}
