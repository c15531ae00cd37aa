package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

// concurrently runs first in one transaction and, while that is still open, second in
// another. On SQLite, which has one writer, second begins when first has ended.
func concurrently(t *testing.T, db *storage.DB, first, second func(ctx context.Context, tx *storage.Tx) error) (err error) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan error, 1)
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		if err := first(ctx, tx); err != nil {
			return err
		}
		go func() {
			ended <- db.Write(context.WithoutCancel(ctx), second)
			close(done)
		}()
		select { // long enough to read what is not decided yet
		case <-done:
		case <-time.After(300 * time.Millisecond):
		}
		return nil
	})
	return <-ended
}

func decide(id string, state protocol.PostState) func(context.Context, *storage.Tx) error {
	return func(ctx context.Context, tx *storage.Tx) error { return tx.Posts().SetState(ctx, id, state, "test") }
}

// A deletion is final also for a decision made about the post at the same moment.
func TestSetPostState_DeletedBesideHiding(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		root, reply := samplePost(start, 1), samplePost(start.Add(time.Second), 2)
		reply.InReplyTo = &root.ID
		store(t, db, root, reply)
		require.Equal(t, protocol.Gone, protocol.CodeOf(concurrently(t, db, decide(reply.ID, protocol.Deleted), decide(reply.ID, protocol.Hidden))))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			p, err := tx.Posts().ByID(ctx, reply.ID)
			require.NoError(t, err)
			require.Equal(t, protocol.Deleted, p.State)
			p, err = tx.Posts().ByID(ctx, root.ID)
			require.Zero(t, p.ReplyCount)
			return err
		})
	})
}

func TestSetPostState_HiddenTwiceAtOnce(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		root := samplePost(start, 1)
		store(t, db, root)
		for i := range 2 {
			reply := samplePost(start.Add(time.Duration(i+1)*time.Second), int64(i+2))
			reply.InReplyTo = &root.ID
			store(t, db, reply)
			if i == 0 {
				require.NoError(t, concurrently(t, db, decide(reply.ID, protocol.Hidden), decide(reply.ID, protocol.Hidden)))
			}
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 1, must.Get(tx.Posts().ByID(ctx, root.ID))(t).ReplyCount, "taken out once, and another came")
			return nil
		})
	})
}

// Of two changes of a setting at once neither is lost.
func TestSetting_Beside(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		add := func(what string) func(context.Context, *storage.Tx) error {
			return func(ctx context.Context, tx *storage.Tx) error {
				old, err := tx.Settings().Get(ctx, "list")
				if err != nil {
					return err
				}
				return tx.Settings().Put(ctx, "list", old+what)
			}
		}
		for _, what := range []string{"ab", "cd"} { // the setting is new, and is there
			require.NoError(t, concurrently(t, db, add(what[:1]), add(what[1:])))
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, "abcd", must.Get(tx.Settings().Get(ctx, "list"))(t))
			return nil
		})
	})
}

// Two who block the same at once both succeed, and the later block remains.
func TestPutBlock_Beside(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		put := func(id string) func(context.Context, *storage.Tx) error {
			return func(ctx context.Context, tx *storage.Tx) error {
				return tx.Blocks().Put(ctx, protocol.Block{ID: id, Kind: protocol.BlockHost, Value: "spam.example", CreatedAt: tx.Now})
			}
		}
		require.NoError(t, concurrently(t, db, put("blk_a"), put("blk_b")))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			all, err := tx.Blocks().All(ctx)
			require.Len(t, all, 1)
			require.Equal(t, "blk_b", all[0].ID)
			return err
		})
	})
}

// A limit that is counted holds for two at once.
func TestCountTokens_Beside(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		before := func(want int) func(context.Context, *storage.Tx) error {
			return func(ctx context.Context, tx *storage.Tx) error {
				n, err := tx.Tokens().Count(ctx, "acc")
				if err != nil {
					return err
				}
				if n != want {
					return fmt.Errorf("counted %d, not %d", n, want)
				}
				return tx.Tokens().Insert(ctx, storage.Token{ID: protocol.NewID(protocol.TokenID, tx.Now), Hash: [32]byte{byte(want)}, Account: "acc"})
			}
		}
		require.NoError(t, concurrently(t, db, before(0), before(1)))
	})
}
