package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

func evict(t *testing.T, db *storage.DB, of storage.Stock, most storage.Cap) int {
	t.Helper()
	gone, err := db.Evict(t.Context(), of, most)
	require.NoError(t, err)
	return gone
}

// TestEvict fills each stock and finds that the oldest rows of strangers go, that
// those of peers go when nothing else is left, and that what waits stays.
func TestEvict(t *testing.T) {
	t.Parallel()
	const follower, followed, stranger = "follower.example", "followed.example", "stranger.example"
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
	name := func(host string, i int) string { return fmt.Sprintf("https://%s/%03d", host, i) }
	put := map[storage.Stock]func(ctx context.Context, tx *storage.Tx, host string, i int) error{
		storage.StockActors: func(ctx context.Context, tx *storage.Tx, host string, i int) error {
			return tx.PutRemoteActor(ctx, storage.RemoteActor{ID: name(host, i), Host: host, Doc: make([]byte, 1000), FetchedAt: at(i)})
		},
		storage.StockKeys: func(ctx context.Context, tx *storage.Tx, host string, i int) error {
			return tx.PutRemoteKey(ctx, storage.RemoteKey{KeyID: name(host, i), Host: host, Key: make([]byte, 1000), FetchedAt: at(i)})
		},
		storage.StockTombstones: func(ctx context.Context, tx *storage.Tx, host string, i int) error {
			return tx.PutTombstone(ctx, name(host, i)+strings.Repeat("x", 1000), host, at(i))
		},
	}
	left := map[storage.Stock]func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error){
		storage.StockActors: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			_, err := tx.RemoteActorByID(ctx, name(host, i))
			return err == nil, nil
		},
		storage.StockKeys: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			_, err := tx.RemoteKeyByID(ctx, name(host, i))
			return err == nil, nil
		},
		storage.StockTombstones: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			return tx.Tombstoned(ctx, name(host, i)+strings.Repeat("x", 1000))
		},
	}
	for of := range put {
		t.Run(string(of), func(t *testing.T) {
			t.Parallel()
			storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
				c.Now = func() time.Time { return start.Add(-time.Hour) }
				db, err := storage.Open(t.Context(), c)
				require.NoError(t, err)
				defer db.Close()
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					require.NoError(t, tx.PutFollower(ctx, storage.Follower{LocalActor: boardID, Actor: name(follower, 0), Host: follower}))
					require.NoError(t, tx.PutSubscription(ctx, storage.Subscription{Board: name(followed, 0), Host: followed}))
					for i := range 10 { // those of peers are the oldest
						require.NoError(t, put[of](ctx, tx, follower, i))
						require.NoError(t, put[of](ctx, tx, followed, i))
						require.NoError(t, put[of](ctx, tx, stranger, 100+i))
					}
					return nil
				})
				count := func(host string, from int) (n int, oldest int) {
					read(t, db, func(ctx context.Context, tx *storage.Tx) error {
						for i := from + 9; i >= from; i-- {
							there, err := left[of](ctx, tx, host, i)
							require.NoError(t, err)
							if there {
								n, oldest = n+1, i
							}
						}
						return nil
					})
					return n, oldest
				}
				evict := func(most storage.Cap) int { return evict(t, db, of, most) }
				require.Zero(t, evict(storage.Cap{Rows: 30, Bytes: 1 << 20}))
				require.Equal(t, 5+25/8, evict(storage.Cap{Rows: 25, Bytes: 1 << 20}), "down to seven eighths")
				n, oldest := count(stranger, 100)
				require.Equal(t, []int{2, 108}, []int{n, oldest}, "the oldest of strangers go")
				for _, peer := range []string{follower, followed} {
					n, _ := count(peer, 0)
					require.Equal(t, 10, n, peer)
				}
				require.NotZero(t, evict(storage.Cap{Rows: 30, Bytes: 12_000}), "too many bytes")
				n, _ = count(stranger, 100)
				require.Zero(t, n)
				a, oldest := count(follower, 0)
				b, _ := count(followed, 0)
				require.Less(t, a+b, 12, "those of peers, when there are no others")
				require.Positive(t, oldest, "and of those the oldest")
				require.Positive(t, a+b)
			})
		})
	}
}

// TestEvict_WhatIsOver finds that activities and jobs go when they are over, and
// stay while they wait; and that audit entries go when others caused them.
func TestEvict_WhatIsOver(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range byte(10) {
				for _, key := range [][32]byte{{i}, {i, 1}} {
					fresh, err := tx.KeepActivity(ctx, storage.Kept{Key: key, Host: "h", Actor: "a", Body: make([]byte, 100)})
					require.True(t, fresh)
					require.NoError(t, err)
				}
				require.NoError(t, tx.EmptyKept(ctx, [32]byte{i}))
				require.NoError(t, tx.Audit(ctx, "a", "flag", "p", "bad"))
				require.NoError(t, tx.Audit(ctx, "a", "post hide", "p", "bad"))
				require.NoError(t, tx.Enqueue(ctx, storage.Job{Kind: "k", Args: make([]byte, 100)}))
			}
			bytes, err := tx.WaitingBytes(ctx, 1<<20)
			require.EqualValues(t, 10*(100+storage.KeptCost), bytes)
			require.NoError(t, err)
			bytes, err = tx.WaitingBytes(ctx, 3*storage.KeptCost)
			require.EqualValues(t, 4*(100+storage.KeptCost), bytes, "no more than a bound has room for, and one")
			return err
		})
		jobs, _, err := db.ClaimJobs(t.Context(), "o", 6, time.Minute)
		require.NoError(t, err)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i, j := range jobs {
				end := tx.FinishJob
				if i == 0 {
					end = func(ctx context.Context, id int64) error { return tx.BuryJob(ctx, id, "no") }
				}
				require.NoError(t, end(ctx, j.ID))
			}
			return nil
		})
		for of, want := range map[storage.Stock]int{storage.StockKept: 10, storage.StockTold: 10, storage.StockJobs: 5} {
			gone := evict(t, db, of, storage.Cap{Rows: 10 - want, Bytes: 500})
			require.Positive(t, gone, of)
			gone += evict(t, db, of, storage.Cap{})
			if of == storage.StockJobs {
				want++ // the dead one as the last
			}
			require.Equal(t, want, gone, of)
		}
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range byte(10) {
				_, err := tx.KeptByKey(ctx, [32]byte{i, 1})
				require.NoError(t, err)
			}
			entries, err := tx.ListAudit(ctx, 100, "")
			require.Len(t, entries.Items, 10)
			require.NoError(t, err)
			stats, err := tx.JobStats(ctx)
			require.Len(t, stats, 1)
			require.Equal(t, 4, stats[0].Count)
			return err
		})
	})
}

// TestEvict_Issued finds that issue times of identities that a profile has are kept
// longest, and of the others the newest.
func TestEvict_Issued(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, db *storage.DB) {
		chainID := func(i int) string { return fmt.Sprintf("eip155:1:0xabc:%d", i) }
		mine := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}, ERC8004: chainID(0)}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			_, err := tx.PutProfile(ctx, mine)
			require.NoError(t, err)
			for i := range 16 {
				require.NoError(t, tx.RaiseIssued(ctx, chainID(i), "0xa", uint64(100+i)))
			}
			return tx.RaiseIssued(ctx, chainID(0), "0xb", 1)
		})
		evict := func(rows int) int { return evict(t, db, storage.StockIssued, storage.Cap{Rows: rows, Bytes: 1 << 20}) }
		require.Zero(t, evict(17))
		require.Equal(t, 3, evict(15), "down to seven eighths")
		known := func(i int) (at uint64) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) (err error) {
				at, err = tx.HighestIssued(ctx, chainID(i), "0xa")
				return err
			})
			return at
		}
		require.EqualValues(t, 100, known(0), "an identity that a profile has")
		for i := 1; i <= 3; i++ {
			require.Zero(t, known(i))
		}
		require.EqualValues(t, 104, known(4))
		require.Zero(t, evict(15))
	})
}
