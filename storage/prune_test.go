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

// pruned calls a step of the pruning job until it finds nothing more.
func pruned(t *testing.T, db *storage.DB, some func(ctx context.Context, tx *storage.Tx) (int, error)) (all int) {
	t.Helper()
	for {
		gone := 0
		write(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
			gone, err = some(ctx, tx)
			return err
		})
		require.LessOrEqual(t, gone, 2000, "a step is bounded")
		if all += gone; gone == 0 {
			return all
		}
	}
}

// TestPruneNews forgets what is old, a day more or less, tells how far, and keeps
// what is young however much there was.
func TestPruneNews(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		const kept = 10 * 24 * time.Hour
		prune := func() int {
			return pruned(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.News().Prune(ctx, tx.Now.Add(-kept)) })
		}
		tell := func(n int, what string) {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for i := range n {
					if err := tx.News().Append(ctx, storage.NewsReply, fmt.Sprint(what, i), "handle:asha", "key:k"); err != nil {
						return err
					}
				}
				return nil
			})
		}
		told := func(after int64) (refs []string, upTo, forgotten int64) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				items, n, _, err := tx.News().After(ctx, []string{"handle:asha", "key:k"}, after, 100)
				for _, i := range items {
					refs = append(refs, i.Ref)
				}
				if err == nil {
					forgotten, err = tx.News().Forgotten(ctx)
				}
				upTo = n
				return err
			})
			return refs, upTo, forgotten
		}

		require.Zero(t, prune(), "nothing is there")
		tell(700, "old")
		_, old, _ := told(0)
		advance(25 * time.Hour)
		require.Zero(t, prune(), "and nothing is old; the mark of the second day")
		tell(1, "second")
		advance(kept - 2*time.Hour)
		require.Zero(t, prune(), "the first are eleven days old, less an hour: their mark is not")
		_, _, forgotten := told(0)
		require.Zero(t, forgotten)

		advance(3 * time.Hour)
		tell(1, "young")
		require.Equal(t, 1400, prune(), "both names of each, in several steps")
		refs, upTo, forgotten := told(0)
		require.Equal(t, []string{"second0", "young0"}, refs, "none of what came after the mark")
		require.Equal(t, int64(700), forgotten)
		require.Greater(t, upTo, forgotten)
		_, next, _ := told(old)
		require.Equal(t, upTo, next)
		require.Zero(t, prune(), "again")

		for range 30 {
			advance(24 * time.Hour)
			prune()
		}
		refs, after, forgotten := told(0)
		require.Empty(t, refs)
		require.Equal(t, upTo, after, "the place stays where it is")
		require.Equal(t, upTo, forgotten)
		tell(1, "new")
		refs, _, _ = told(after)
		require.Equal(t, []string{"new0"}, refs)
		require.NoError(t, db.Check(t.Context()))
	})
}

// TestPrune_Ended forgets what is over for long, and nothing that is not.
func TestPrune_Ended(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		const day = 24 * time.Hour
		at := func(d time.Duration) *time.Time { when := start.Add(d); return &when }
		token := func(id byte, expires, revoked *time.Time) storage.Token {
			return storage.Token{ID: fmt.Sprint("tok_", id), Hash: [32]byte{id}, Account: "acc_x", Handle: "asha", ExpiresAt: expires, RevokedAt: revoked}
		}
		callback := func(id string, state protocol.CallbackState) *storage.StoredCallback {
			return &storage.StoredCallback{ID: id, Handle: "asha", ThreadID: "thr_x", URL: "https://a.example/", State: state}
		}
		early, young := protocol.NewID(protocol.MessageID, start), protocol.NewID(protocol.MessageID, start.Add(60*day))
		waits := protocol.NewID(protocol.MessageID, start)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, k := range []storage.Token{token(1, nil, nil), token(2, at(day), nil), token(3, at(800*day), at(day)), token(4, at(60*day), nil)} {
				if err := tx.Tokens().Insert(ctx, k); err != nil {
					return err
				}
			}
			for _, c := range []*storage.StoredCallback{
				callback(early, protocol.CallbackDone), callback(waits, protocol.CallbackWaiting), callback(young, protocol.CallbackDone),
			} {
				if err := tx.Callbacks().Insert(ctx, c); err != nil {
					return err
				}
			}
			if err := tx.Peers().SetScheme(ctx, "old.example", "cavage"); err != nil {
				return err
			}
			return tx.Audit(ctx, "acc_x", "post hide", "post_x", "spam")
		})
		for range 3 { // more than one step takes
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for range 500 {
					if err := tx.Audit(ctx, "https://b.example/board", "kept-out", "b.example", "bad"); err != nil {
						return err
					}
				}
				return nil
			})
		}
		advance(100 * day)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			if err := tx.Peers().SetScheme(ctx, "new.example", "rfc9421"); err != nil {
				return err
			}
			return tx.Audit(ctx, "https://b.example/board", "kept-out", "b.example", "lately")
		})
		steps := func(now time.Duration) (gone []int) {
			before := start.Add(now)
			for _, some := range []func(context.Context, *storage.Tx) (int, error){
				func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Tokens().Prune(ctx, before) },
				func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Callbacks().Prune(ctx, before) },
				func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.Peers().PruneSchemes(ctx, before) },
				func(ctx context.Context, tx *storage.Tx) (int, error) { return tx.AuditLog().Prune(ctx, before, start) },
			} {
				gone = append(gone, pruned(t, db, some))
			}
			return gone
		}
		require.Equal(t, []int{0, 0, 0, 0}, steps(-time.Second))
		require.Equal(t, []int{2, 1, 1, 1500}, steps(10*day))
		require.Equal(t, []int{0, 0, 0, 0}, steps(10*day))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			tokens, err := tx.Tokens().OfProfile(ctx, "asha")
			require.Len(t, tokens, 2)
			require.NoError(t, err)
			for _, id := range []string{waits, young} {
				must.Get(tx.Callbacks().ByID(ctx, id))(t)
			}
			audit, err := tx.AuditLog().List(ctx, "", "", 100, "")
			require.Len(t, audit.Items, 2)
			require.Equal(t, "lately", audit.Items[0].Detail)
			require.Equal(t, "post hide", audit.Items[1].Action)
			return err
		})
		require.Equal(t, 2, pruned(t, db, func(ctx context.Context, tx *storage.Tx) (int, error) {
			return tx.AuditLog().Prune(ctx, start, start.Add(101*day))
		}), "in the end all of it")
	})
}
