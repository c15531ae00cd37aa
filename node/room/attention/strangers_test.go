package attention_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stoa/node/out/pay/paytest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// paidWith is a stranger whose proof exceeds the least one by some levels.
func paidWith(n, above int) protocol.Caller {
	c := unknown(n)
	c.Above = above
	return c
}

// gaveWay is what the owner sees.
func (w *world) gaveWay() (n int) {
	w.t.Helper()
	require.NoError(w.t, w.read(func(ctx context.Context, tx *storage.Tx) (err error) {
		n, err = tx.Crowds().Since(ctx, "asha", storage.CrowdBidGaveWay, storage.CrowdFor)
		return err
	}))
	return n
}

// displaceable is a board with one slot and a live bid that is not protected any more.
func (w *world) displaceable() *paytest.Vendor {
	w.t.Helper()
	v := w.market(protocol.AttentionDraft{Slots: 1})
	require.Equal(w.t, "live", w.delivers(v.Pays(must.Get(w.bids(keyed(9999), "100"))(w.t).Bid.ID, 100_00)))
	w.pass(25 * time.Hour)
	w.runJobs(nil)
	return v
}

// bid10 places ten bids in one transaction.
func (w *world) bid10(first int, who func(int) protocol.Caller) (all []protocol.BidReceipt, err error) {
	err = w.write(func(ctx context.Context, tx *storage.Tx) error {
		for n := first; n < first+10; n++ {
			got, err := w.Bid(ctx, tx, who(n), protocol.NewBid{Handle: "asha", Amount: "25000", Message: "Yarn from Panipat.", Name: "Meera"})
			if err != nil {
				return err
			}
			all = append(all, got)
		}
		return nil
	})
	return all, err
}

// TestBid_Strangers: unpaid bids of any number of networks close a board to nobody. Strangers fill half
// of it, at a price that rises; the oldest of theirs lapses for a new one, and says so; known callers
// have the rest. So does a second process on the same database.
func TestBid_Strangers(t *testing.T) {
	each(t, func(w *world) {
		v := w.displaceable()
		rooms := []*world{w}
		if w.config.URL != "" {
			rooms = append(rooms, w.another())
		}
		half := protocol.SharedBids.Strangers()
		var first []protocol.BidReceipt
		for n := 0; n < half+20; n += 10 {
			got, err := rooms[n/10%len(rooms)].bid10(n, func(n int) protocol.Caller { return paidWith(n, 7) })
			require.NoError(w.t, err, n)
			first = append(first, got...)
			w.pass(time.Second)
		}
		old := w.bid(first[0].Bid.ID)
		require.Equal(w.t, protocol.BidLapsed, old.State, "the oldest gives way")
		require.Contains(w.t, old.Note, "gave way to newer bids")
		require.Equal(w.t, "gave way to newer bids: too many waited unpaid", old.History[1].Note)
		require.Equal(w.t, protocol.BidHeld, w.bid(first[half+19].Bid.ID).State)
		require.Equal(w.t, 20, w.gaveWay())
		_, err := w.bids(paidWith(5000, 3), "25000")
		require.Equal(w.t, protocol.PowRequired, protocol.CodeOf(err), "the price follows what waits")
		require.Equal(w.t, 5, protocol.AsError(err).Steps)

		for n := 0; n < protocol.SharedBids.Most-half; n += 10 {
			require.NoError(w.t, must.Err(rooms[n/10%len(rooms)].bid10(n, keyed)), "every known caller gets through")
		}
		require.Equal(w.t, 20, w.gaveWay(), "without ending anything")
		must.Get(w.bids(keyed(1000), "25000"))(w.t)
		require.Equal(w.t, 21, w.gaveWay(), "then strangers' give way to them too")

		w.runJobs(nil)
		require.Equal(w.t, "live", w.delivers(v.Pays(first[0].Bid.ID, 25000_00)), "who paid all the same gets a slot that can be had")
		w.pass(25 * time.Hour)
		w.runJobs(nil)
		require.Zero(w.t, w.gaveWay(), "it shows one day")
	})
}

// TestBid_StrangersAtOnce: the same when all come at the same time.
func TestBid_StrangersAtOnce(t *testing.T) {
	each(t, func(w *world) {
		w.displaceable()
		var all sync.WaitGroup
		var mu sync.Mutex
		refused := map[string]int{}
		for worker := range 8 {
			all.Go(func() {
				for n := worker; n < 200; n += 8 {
					who, c := "stranger", paidWith(n, 7)
					if n%4 == 0 {
						who, c = "known", keyed(n)
					}
					if _, err := w.bids(c, "500"); err != nil {
						mu.Lock()
						refused[who+fmt.Sprint(err)]++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		require.Empty(w.t, refused)
		require.NoError(w.t, w.write(func(ctx context.Context, tx *storage.Tx) error {
			b := must.Get(tx.AttentionBoards().ByHandle(ctx, "asha"))(w.t)
			require.Equal(w.t, protocol.Waiting{Known: 50, Strangers: 150}, must.Get(tx.Bids().CountBidder(ctx, b.ID, "x"))(w.t).Unpaid)
			return nil
		}))
	})
}
