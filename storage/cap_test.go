package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
	"stoa/storage/storagetest"

	"github.com/stretchr/testify/require"
)

func evict(t *testing.T, db *storage.DB, of storage.Stock, most storage.Cap) int {
	t.Helper()
	return must.Get(db.Evict(t.Context(), of, most))(t)
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
			return tx.Peers().PutActor(ctx, storage.RemoteActor{ID: name(host, i), Host: host, Doc: make([]byte, 1000), FetchedAt: at(i)})
		},
		storage.StockKeys: func(ctx context.Context, tx *storage.Tx, host string, i int) error {
			return tx.Peers().PutKey(ctx, storage.RemoteKey{KeyID: name(host, i), Host: host, Key: make([]byte, 1000), FetchedAt: at(i)})
		},
		storage.StockTombstones: func(ctx context.Context, tx *storage.Tx, host string, i int) error {
			return tx.Inbox().PutTombstone(ctx, name(host, i)+strings.Repeat("x", 1000), host, at(i))
		},
	}
	left := map[storage.Stock]func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error){
		storage.StockActors: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			_, err := tx.Peers().ActorByID(ctx, name(host, i))
			return err == nil, nil
		},
		storage.StockKeys: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			_, err := tx.Peers().KeyByID(ctx, name(host, i))
			return err == nil, nil
		},
		storage.StockTombstones: func(ctx context.Context, tx *storage.Tx, host string, i int) (bool, error) {
			return tx.Inbox().Tombstoned(ctx, name(host, i)+strings.Repeat("x", 1000))
		},
	}
	for of := range put {
		t.Run(string(of), func(t *testing.T) {
			eachConfig(t, func(t *testing.T, c storage.Config) {
				c.Now = func() time.Time { return start.Add(-time.Hour) }
				db := storagetest.OpenConfig(t, c)
				write(t, db, func(ctx context.Context, tx *storage.Tx) error {
					require.NoError(t, tx.Followers().Put(ctx, storage.Follower{LocalActor: boardID, Actor: name(follower, 0), Host: follower}))
					require.NoError(t, tx.Subscriptions().Put(ctx, storage.Subscription{Board: name(followed, 0), Host: followed}))
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
							if must.Get(left[of](ctx, tx, host, i))(t) {
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
	each(t, func(t *testing.T, db *storage.DB) {
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range byte(10) {
				for _, key := range [][32]byte{{i}, {i, 1}} {
					fresh, err := tx.Inbox().Keep(ctx, storage.Kept{Key: key, Host: "h", Actor: "a", Body: make([]byte, 100)})
					require.True(t, fresh)
					require.NoError(t, err)
				}
				require.NoError(t, tx.Inbox().Empty(ctx, [32]byte{i}))
				require.NoError(t, tx.Audit(ctx, "a", "flag", "p", "bad"))
				require.NoError(t, tx.Audit(ctx, "a", "post hide", "p", "bad"))
				require.NoError(t, tx.Enqueue(ctx, storage.Job{Kind: "k", Args: make([]byte, 100)}))
			}
			bytes, err := tx.Inbox().WaitingBytes(ctx, 1<<20)
			require.EqualValues(t, 10*(100+storage.KeptCost), bytes)
			require.NoError(t, err)
			bytes, err = tx.Inbox().WaitingBytes(ctx, 3*storage.KeptCost)
			require.EqualValues(t, 4*(100+storage.KeptCost), bytes, "no more than a bound has room for, and one")
			return err
		})
		jobs, _, err := db.ClaimJobs(t.Context(), "o", 6, time.Minute)
		require.NoError(t, err)
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i, j := range jobs {
				end := tx.Jobs().Finish
				if i == 0 {
					end = func(ctx context.Context, id int64) error { return tx.Jobs().Bury(ctx, id, "no") }
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
				must.Get(tx.Inbox().ByKey(ctx, [32]byte{i, 1}))(t)
			}
			entries, err := tx.AuditLog().List(ctx, "", "", 100, "")
			require.Len(t, entries.Items, 10)
			require.NoError(t, err)
			stats, err := tx.Jobs().Stats(ctx)
			require.Len(t, stats, 1)
			require.Equal(t, 4, stats[0].Count)
			return err
		})
	})
}

// TestEvict_Issued finds that issue times of identities that a profile has are kept
// longest, and of the others the newest.
func TestEvict_Issued(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		chainID := func(i int) string { return fmt.Sprintf("eip155:1:0xabc:%d", i) }
		mine := &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "asha", Name: "Asha", Kind: protocol.Person}, ERC8004: chainID(0)}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			must.Get(tx.Profiles().Put(ctx, mine))(t)
			for i := range 16 {
				require.NoError(t, tx.Keys().RaiseIssued(ctx, chainID(i), "0xa", uint64(100+i)))
			}
			return tx.Keys().RaiseIssued(ctx, chainID(0), "0xb", 1)
		})
		evict := func(rows int) int { return evict(t, db, storage.StockIssued, storage.Cap{Rows: rows, Bytes: 1 << 20}) }
		require.Zero(t, evict(17))
		require.Equal(t, 3, evict(15), "down to seven eighths")
		known := func(i int) uint64 {
			return reads(t, db, func(ctx context.Context, tx *storage.Tx) (uint64, error) {
				return tx.Keys().HighestIssued(ctx, chainID(i), "0xa")
			})
		}
		require.EqualValues(t, 100, known(0), "an identity that a profile has")
		for i := 1; i <= 3; i++ {
			require.Zero(t, known(i))
		}
		require.EqualValues(t, 104, known(4))
		require.Zero(t, evict(15))
	})
}

// TestEvict_Bids finds that bids that were never paid go with their moves, oldest first and those that
// may still be paid last, and that no others go; of the events of providers those that were applied.
func TestEvict_Bids(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		const old, young = int64(1), int64(10 * 24 * 3600_000)
		n := 0
		bid := func(state string, paid bool, moved int64) {
			n++
			id, slot := fmt.Sprintf("bid_%02d", n), any(nil)
			if state == "live" {
				slot = n
			}
			require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO bid (id, board, state, hold, slot_no, paise, bidder, anonymous, test, paid, account,
				token_hash, pay_hash, bid_at, moved_at, moves, doc) VALUES (?, 'B', ?, '', ?, 100, 'x', FALSE, FALSE, ?, 'A', ?, ?, 1, ?, 1, '{}')`,
				id, state, slot, paid, []byte(id), []byte(id), moved+int64(n)))
			require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO bid_move (bid, n, state, at, note) VALUES (?, 1, 'held', 1, '')`, id))
		}
		for _, state := range []string{"lapsed", "withdrawn", "unconfirmed", "lapsed", "lapsed", "lapsed"} {
			bid(state, false, old) // 1 to 6
		}
		for range 4 {
			bid("lapsed", false, young) // 7 to 10
		}
		for _, state := range []string{"live", "ended", "held", "claimed", "refunded"} {
			bid(state, state != "held" && state != "claimed", old) // 11 to 15
		}
		bid("lapsed", true, old)
		left := func() (all []string) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for i := range n {
					id := fmt.Sprintf("bid_%02d", i+1)
					_, err := tx.Bids().ByID(ctx, id)
					require.Equal(t, err == nil, len(must.Get(tx.Bids().Moves(ctx, id))(t)) == 1, "moves go with their bid")
					if err == nil {
						all = append(all, id[4:])
					}
				}
				return nil
			})
			return all
		}
		require.Zero(t, evict(t, db, storage.StockBids, storage.Cap{Rows: 10, Bytes: 1 << 20}))
		require.Equal(t, 3, evict(t, db, storage.StockBids, storage.Cap{Rows: 8, Bytes: 1 << 20}))
		require.Equal(t, []string{"04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16"}, left())
		require.Equal(t, 4, evict(t, db, storage.StockBids, storage.Cap{Rows: 3, Bytes: 1 << 20}))
		require.Equal(t, []string{"08", "09", "10", "11", "12", "13", "14", "15", "16"}, left(), "what may be paid late goes last")
		require.Equal(t, 3, evict(t, db, storage.StockBids, storage.Cap{}))
		require.Equal(t, []string{"11", "12", "13", "14", "15", "16"}, left())

		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range 6 {
				e := storage.PayEvent{Provider: "razorpay", Account: "A", EventID: fmt.Sprint(i), Head: []byte("[]"), Raw: make([]byte, 1000)}
				require.NoError(t, tx.Payments().InsertEvent(ctx, &e))
				if i < 4 {
					require.NoError(t, tx.Payments().EndEvent(ctx, e.ID, "live"))
				}
			}
			return nil
		})
		require.Equal(t, 2, evict(t, db, storage.StockPayEvents, storage.Cap{Rows: 10, Bytes: 3000}))
		require.Equal(t, 2, evict(t, db, storage.StockPayEvents, storage.Cap{}), "what is not applied stays")
	})
}

// TestEvict_Meetings finds that requests that are over go, oldest first, and no others; and of the
// mailboxes those that want mail.
func TestEvict_Meetings(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		states := []string{"done", "cancelled", "declined", "expired", "withdrawn", "no_show", "approved", "submitted", "proposed", "unconfirmed"}
		id := func(i int) string { return fmt.Sprintf("mtg_%02d", i) }
		for i, state := range states {
			require.NoError(t, storage.Exec(t.Context(), db, `INSERT INTO meeting (id, handle, state, shown, starts_at, ends_at, requester, mailbox, token_hash,
				asked_at, moved_at, moves, sequence, doc) VALUES (?, 'asha', ?, TRUE, 1, 2, 'x', ?, ?, 1, ?, 1, 0, '{}')`, id(i), state, []byte(id(i)), []byte(id(i)), i))
		}
		left := func() (all []int) {
			read(t, db, func(ctx context.Context, tx *storage.Tx) error {
				for i := range states {
					if _, err := tx.Meetings().ByID(ctx, id(i)); err == nil {
						all = append(all, i)
					}
				}
				return nil
			})
			return all
		}
		require.Zero(t, evict(t, db, storage.StockMeetings, storage.Cap{Rows: 6, Bytes: 1 << 20}))
		require.Equal(t, 2, evict(t, db, storage.StockMeetings, storage.Cap{Rows: 4, Bytes: 1 << 20}))
		require.Equal(t, []int{2, 3, 4, 5, 6, 7, 8, 9}, left(), "the oldest first")
		require.Equal(t, 4, evict(t, db, storage.StockMeetings, storage.Cap{}))
		require.Equal(t, []int{6, 7, 8, 9}, left(), "what is not over stays")

		box := func(i byte) storage.Mailbox {
			return storage.Mailbox{Hash: [32]byte{i}, SentAt: start.Add(time.Duration(i)), Sent: 1, Stopped: i < 2}
		}
		write(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range byte(6) {
				require.NoError(t, tx.Meetings().PutMailbox(ctx, box(i)))
			}
			return nil
		})
		require.Equal(t, 4, evict(t, db, storage.StockMailboxes, storage.Cap{}))
		read(t, db, func(ctx context.Context, tx *storage.Tx) error {
			for i := range byte(6) {
				require.Equal(t, i < 2, must.Get(tx.Meetings().Mailbox(ctx, [32]byte{i}))(t).Stopped, "who wants no mail gets none")
			}
			return nil
		})
		require.Zero(t, evict(t, db, storage.StockStopped, storage.Cap{Rows: 2, Bytes: 1 << 20}))
		require.Equal(t, 2, evict(t, db, storage.StockStopped, storage.Cap{}), "their number has a bound too")
	})
}
