package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"

	"github.com/stretchr/testify/require"
)

func TestOutlets(t *testing.T) {
	clocked(t, func(t *testing.T, db *storage.DB, advance func(time.Duration)) {
		append3 := func() {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for range 3 {
					if err := tx.Logs().Append(ctx, boardID, "create", "x", nil); err != nil {
						return err
					}
				}
				return nil
			})
		}
		due := func(owner string) (inboxes []string) {
			outlets := must.Get(db.ClaimOutlets(t.Context(), owner, 10, 10, time.Minute))(t)
			for _, o := range outlets {
				inboxes = append(inboxes, o.Inbox)
			}
			return inboxes
		}
		do := func(fn func(ctx context.Context, tx *storage.Tx) error) { t.Helper(); write(t, db, fn) }
		put := storage.Outlet{Board: boardID, Inbox: "https://a/inbox", Host: "a", Stoa: true}
		do(func(ctx context.Context, tx *storage.Tx) error {
			b := storage.Outlet{Board: boardID, Inbox: "https://b/inbox", Host: "b", Cursor: 3}
			if err := tx.Outlets().Put(ctx, put); err != nil {
				return err
			}
			return tx.Outlets().Put(ctx, b)
		})
		require.Empty(t, due("one"), "no log yet")
		append3()
		require.Equal(t, []string{"https://a/inbox"}, due("one"), "b has everything")
		require.Empty(t, due("two"), "leased")
		do(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Outlets().Advance(ctx, boardID, put.Inbox, 2)
		})
		require.Equal(t, []string{"https://a/inbox"}, due("two"))
		do(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Outlets().Advance(ctx, boardID, put.Inbox, 1)
		})
		get := func() storage.Outlet {
			o := reads(t, db, func(ctx context.Context, tx *storage.Tx) (*storage.Outlet, error) {
				return tx.Outlets().ByInbox(ctx, boardID, put.Inbox)
			})
			return *o
		}
		require.EqualValues(t, 2, get().Cursor, "forward only")
		do(func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().Put(ctx, put) })
		require.EqualValues(t, 2, get().Cursor, "known already")

		require.NoError(t, db.FailOutlet(t.Context(), boardID, put.Inbox, time.Hour, "503", storage.OutletSlow))
		require.Equal(t, storage.Outlet{Board: boardID, Inbox: put.Inbox, Host: "a", Stoa: true, Cursor: 2, Failures: 1, NextAt: start.Add(time.Hour),
			State: storage.OutletSlow, LastError: "503", LastOK: start}, get())
		require.Empty(t, due("one"))
		do(func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().WakeHost(ctx, "a") })
		require.Len(t, due("one"), 1)
		require.NoError(t, db.ReleaseOutlets(t.Context(), "one"))
		require.Len(t, due("two"), 1)
		advance(2 * time.Minute)
		require.Len(t, due("three"), 1, "the lease expired")
		do(func(ctx context.Context, tx *storage.Tx) error {
			return tx.Outlets().Advance(ctx, boardID, put.Inbox, 3)
		})
		require.Equal(t, storage.OutletActive, get().State)
		require.Zero(t, get().Failures)
		append3()
		require.Contains(t, due("one"), put.Inbox)
		require.ErrorIs(t, db.FailOutlet(t.Context(), boardID, "nobody", 0, "", storage.OutletSlow), storage.ErrNotFound)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			first := must.Get(tx.Outlets().List(ctx, boardID, 1, ""))(t)
			second, err := tx.Outlets().List(ctx, boardID, 1, *first.Next)
			require.Equal(t, "https://b/inbox", second.Items[0].Inbox)
			require.Nil(t, second.Next)
			return err
		})
		do(func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().Delete(ctx, boardID, put.Inbox) })
	})
}

func TestSubscriptions(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const board = "https://far.example/ap/board"
		sub := storage.Subscription{Board: board, Host: "far.example", NodeActor: "n", LogURL: "l", Epoch: "e1", State: storage.SubscriptionAccepted,
			FollowID: "f", NextAt: start, CheckedAt: start}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Subscriptions().Put(ctx, sub) })
		advance := func(epoch string, from, to int64) bool {
			return writes(t, db, func(ctx context.Context, tx *storage.Tx) (bool, error) {
				return tx.Subscriptions().Advance(ctx, board, epoch, from, to)
			})
		}
		require.True(t, advance("e1", 0, 3))
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			due := must.Get(tx.Subscriptions().ListDue(ctx, 8))(t)
			require.Equal(t, []string{board}, due)
			require.NoError(t, tx.Enqueue(ctx, storage.Job{Kind: storage.PullJob, Dedupe: storage.WalkName + board}))
			due = must.Get(tx.Subscriptions().ListDue(ctx, 8))(t)
			require.Empty(t, due, "it is queued")
			must.Get(tx.Jobs().DropNamed(ctx, storage.PullJob, storage.WalkName+board))(t)
			sub.NextAt = tx.Now.Add(time.Minute)
			require.NoError(t, tx.Subscriptions().Put(ctx, sub))
			sub.NextAt = start
			require.NoError(t, tx.Subscriptions().HastenAll(ctx, time.Minute))
			due = must.Get(tx.Subscriptions().ListDue(ctx, 8))(t)
			require.Equal(t, []string{board}, due)
			return tx.Subscriptions().Put(ctx, sub)
		})
		require.False(t, advance("e1", 0, 1), "applied already")
		require.False(t, advance("e0", 3, 4), "another epoch")
		require.True(t, advance("e1", 3, 4))
		sub.State, sub.LastSeq = storage.SubscriptionRejected, 0
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Subscriptions().Put(ctx, sub) })
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Subscriptions().NoteFollow(ctx, board, 3, "its answer was quicker")
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			got := must.Get(tx.Subscriptions().ByBoard(ctx, board))(t)
			want := sub
			want.LastSeq = 4
			require.Equal(t, &want, got)
			require.Empty(t, must.Get(tx.Subscriptions().ListDue(ctx, 8))(t), "it was rejected")
			return nil
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.True(t, must.Get(tx.Subscriptions().Reset(ctx, board, "e1", "e2"))(t))
			return nil
		})
		require.True(t, advance("e2", 0, 1))

		winners := make(chan bool, 64)
		together(64, func(int) {
			var ok bool
			err := db.Write(t.Context(), func(ctx context.Context, tx *storage.Tx) (err error) {
				ok, err = tx.Subscriptions().Advance(ctx, board, "e2", 1, 2)
				return err
			})
			if err != nil {
				t.Error(err)
			} else if ok {
				winners <- true
			}
		})
		require.Len(t, winners, 1)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Subscriptions().Delete(ctx, board) })
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Subscriptions().ByBoard(ctx, board)), storage.ErrNotFound)
			all, err := tx.Subscriptions().List(ctx)
			require.Empty(t, all)
			return err
		})
	})
}

func TestFollowers(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		for n := range 5 {
			f := storage.Follower{LocalActor: boardID, Actor: fmt.Sprintf("https://%d.example/%s", n, string(make([]byte, 0, 200))), Inbox: "i",
				SharedInbox: "s", Host: "h", FollowID: "f"}
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Followers().Put(ctx, f) })
			f.Stoa = true
			write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Followers().Put(ctx, f) })
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Followers().Delete(ctx, boardID, "https://2.example/")
		})
		var actors []string
		after := ""
		for {
			var p protocol.Page[storage.Follower]
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				p, err = tx.Followers().List(ctx, boardID, 3, after)
				return err
			})
			for _, f := range p.Items {
				require.True(t, f.Stoa)
				actors = append(actors, f.Actor)
			}
			if p.Next == nil {
				break
			}
			after = *p.Next
		}
		require.Equal(t, []string{"https://0.example/", "https://1.example/", "https://3.example/", "https://4.example/"}, actors)
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 4, must.Get(tx.Followers().Count(ctx, boardID))(t))
			return nil
		})
	})
}

func TestRemoteMemory(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		actor := storage.RemoteActor{ID: "https://far.example/u", Host: "far.example", Type: "Person", Handle: "u", Name: "U'\"?", Inbox: "i", SharedInbox: "s",
			Doc: []byte(`{"a":"?"}`), FetchedAt: start}
		key := storage.RemoteKey{KeyID: "k", Owner: "o", Host: "far.example", Algorithm: "ed25519", Key: []byte{0, 1, 255}, FetchedAt: start}
		kept := storage.Kept{Key: [32]byte{1}, Host: "h", Actor: "a", Signer: "s", Body: []byte("{}"), Proven: true}
		for range 2 {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.NoError(t, tx.Peers().PutActor(ctx, actor))
				return tx.Peers().PutKey(ctx, key)
			})
		}
		for _, fresh := range []bool{true, false} {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.Equal(t, fresh, must.Get(tx.Inbox().Keep(ctx, kept))(t))
				return nil
			})
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.NoError(t, tx.Inbox().PutTombstone(ctx, "gone", "far.example", tx.Now.Add(time.Hour)))
			require.NoError(t, tx.Inbox().PutTombstone(ctx, "gone", "far.example", tx.Now)) // never shortened
			require.NoError(t, tx.Inbox().PutTombstone(ctx, "past", "far.example", tx.Now.Add(-time.Hour)))
			require.Equal(t, 1, must.Get(tx.PruneExpired(ctx))(t))
			return nil
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, &actor, must.Get(tx.Peers().ActorByID(ctx, actor.ID))(t))
			require.Equal(t, &key, must.Get(tx.Peers().KeyByID(ctx, "k"))(t))
			got := must.Get(tx.Inbox().ByKey(ctx, kept.Key))(t)
			want := kept
			want.At = got.At
			require.Equal(t, &want, got)
			gone, err := tx.Inbox().Tombstoned(ctx, "gone")
			require.True(t, gone)
			require.NoError(t, err)
			gone, err = tx.Inbox().Tombstoned(ctx, "past")
			require.False(t, gone)
			return err
		})
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			n, err := tx.Peers().PruneFetched(ctx, start.Add(time.Second))
			require.Equal(t, 2, n)
			require.NoError(t, err)
			n, err = tx.Inbox().Prune(ctx, tx.Now.Add(time.Hour))
			require.Equal(t, 1, n)
			return err
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.ErrorIs(t, must.Err(tx.Peers().ActorByID(ctx, actor.ID)), storage.ErrNotFound)
			require.ErrorIs(t, must.Err(tx.Peers().KeyByID(ctx, "k")), storage.ErrNotFound)
			require.ErrorIs(t, must.Err(tx.Inbox().ByKey(ctx, kept.Key)), storage.ErrNotFound)
			return nil
		})
	})
}

func TestHostPolicies(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for host, p := range map[string]storage.Policy{
				"example": storage.PolicyReject, "good.example": storage.PolicyTrusted, "127.0.0.1:8080": storage.PolicySilence,
			} {
				require.NoError(t, tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: host, Policy: p, Note: "n"}))
			}
			require.NoError(t, tx.Peers().SetScheme(ctx, "h", "cavage"))
			return tx.Peers().SetScheme(ctx, "h", "rfc9421")
		})
		for host, want := range map[string]storage.Policy{"example": "reject", "a.b.example": "reject", "x.Good.example": "trusted", "good.example:443": "trusted",
			"notgood.example": "reject", "127.0.0.1:8080": "silence", "127.0.0.1:8081": "", "[::1]:80": "", "other": "", "": ""} {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				require.Equal(t, want, must.Get(tx.Peers().PolicyFor(ctx, host))(t), host)
				return nil
			})
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Peers().SetPolicy(ctx, storage.HostPolicy{Host: "example"})
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			all, err := tx.Peers().ListPolicies(ctx)
			require.Len(t, all, 2)
			require.NoError(t, err)
			s, err := tx.Peers().Scheme(ctx, "h")
			require.Equal(t, "rfc9421", s)
			require.NoError(t, err)
			s, err = tx.Peers().Scheme(ctx, "other")
			require.Empty(t, s)
			return err
		})
	})
}

// TestDropDeadFollowers ends the follows of inboxes that are given up, shared ones
// and single ones, and no others.
func TestDropDeadFollowers(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		follower := func(name, shared string) storage.Follower {
			return storage.Follower{LocalActor: boardID, Actor: name, Inbox: name + "/inbox", SharedInbox: shared, Host: "h"}
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for _, f := range []storage.Follower{follower("a", "dead"), follower("b", "dead"), follower("c", ""), follower("d", "alive"), follower("e", "")} {
				require.NoError(t, tx.Followers().Put(ctx, f))
			}
			for _, inbox := range []string{"dead", "c/inbox", "alive", "e/inbox"} {
				require.NoError(t, tx.Outlets().Put(ctx, storage.Outlet{Board: boardID, Inbox: inbox, Host: "h"}))
			}
			return nil
		})
		for _, inbox := range []string{"dead", "c/inbox"} {
			require.NoError(t, db.FailOutlet(t.Context(), boardID, inbox, 0, "gone", storage.OutletDead))
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Equal(t, 2, must.Get(tx.Followers().DropDead(ctx, boardID))(t))
			return nil
		})
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for name, want := range map[string]bool{"a": false, "b": false, "c": false, "d": true, "e": true} {
				require.Equal(t, want, must.Get(tx.Followers().Has(ctx, boardID, name))(t), name)
			}
			require.Len(t, must.Get(tx.Outlets().List(ctx, boardID, 10, ""))(t).Items, 2)
			return nil
		})
	})
}

// A log is looked at while one of its outlets is behind, also one that failed and then reached a part; the logs of agents are no boards.
func TestOutlets_DueLogs(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const agent, inbox = "https://n1.example/ap/agents/ada", "https://a/inbox"
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			head, err := tx.Logs().OpenAgent(ctx, agent)
			require.Zero(t, head)
			if err == nil {
				err = tx.Logs().AppendAgent(ctx, agent, storage.LogCreate, "a")
			}
			return errors.Join(err, tx.Outlets().Put(ctx, storage.Outlet{Board: agent, Inbox: inbox, Host: "a"}))
		})
		due := func() int {
			require.NoError(t, db.Numbered(t.Context()))
			outlets := must.Get(db.ClaimOutlets(t.Context(), "one", 10, 10, time.Minute))(t)
			return len(outlets)
		}
		require.Zero(t, due(), "it has no followers")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			return tx.Followers().Put(ctx, storage.Follower{LocalActor: agent, Actor: "https://a/u", Inbox: inbox, Host: "a"})
		})
		for range 3 {
			write(t, db, func(ctx context.Context, tx *storage.Tx) error {
				return tx.Logs().AppendAgent(ctx, agent, storage.LogCreate, "b")
			})
		}
		require.Equal(t, 1, due())
		require.NoError(t, db.FailOutlet(t.Context(), agent, inbox, 0, "503", storage.OutletSlow))
		require.Equal(t, 1, due(), "as one that failed")
		require.Zero(t, due())
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().Advance(ctx, agent, inbox, 2) })
		require.Equal(t, 1, due(), "the rest")
		write(t, db, func(ctx context.Context, tx *storage.Tx) error { return tx.Outlets().Advance(ctx, agent, inbox, 3) })
		require.Zero(t, due())
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			require.Empty(t, must.Get(tx.Outlets().Stats(ctx))(t))
			return nil
		})
	})
}
