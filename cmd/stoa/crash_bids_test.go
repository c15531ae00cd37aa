package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/protocol"
	"stoa/storage"
	"stoa/storage/storagetest"
)

const (
	crowd = 64 // bidders at once
	slots = 5  // of each board
)

// TestCrash_Bids kills a process while 64 bidders bid at once, and while they pay. Every request is
// repeated under its idempotency key until it is answered.
func TestCrash_Bids(t *testing.T) {
	t.Parallel()
	storagetest.EachConfig(t, func(t *testing.T, c storage.Config) {
		a := newAuction(t, c.URL)
		pairs := make([]key.Pair, crowd)
		for i := range pairs {
			pairs[i] = a.bidder(fmt.Sprintf("bidder-%d", i))
		}
		signed := func(i int) func(*http.Request, []byte) {
			return func(r *http.Request, body []byte) {
				require.NoError(t, httpsig.SignRequest(r, a.target, body, httpsig.SignOptions{Key: pairs[i].Signer()}))
			}
		}
		reserving, competing := string(protocol.HoldReserving), string(protocol.HoldCompeting)
		a.opens("signed")
		require.Equal(t, map[string]int{reserving: slots, string(protocol.SlotTaken): crowd - slots}, a.rush("signed", crowd, signed))

		const strangers = 8 // more proofs that one network fetched beforehand are refused, since the price rises
		a.opens("network")
		require.Equal(t, map[string]int{reserving: 1, string(protocol.Conflict): strangers - 1},
			a.rush("network", strangers, a.proofs(strangers, func(int) string { return "" })))
		a.opens("networks")
		keep := protocol.Shared{Most: slots}.Strangers()
		require.Equal(t, map[string]int{reserving: keep, competing: strangers - keep},
			a.rush("networks", strangers, a.proofs(strangers, func(i int) string { return fmt.Sprintf("2a00:%x::1", i+1) })))

		a.opens("paid")
		a.trade("paid", signed)
		for _, s := range a.nodes {
			s.kill()
		}
		out, errs, code := stoa(t, "", append([]string{"admin", "check"}, a.of...)...)
		require.Equal(t, 0, code, errs)
		require.Equal(t, "ok\n", out)
	})
}

// rush lets n bidders bid at once, kills a process in the middle, and counts the answers by hold or
// code. Each bid that was answered is on the board, and no other.
func (a *auction) rush(handle string, n int, as func(i int) func(*http.Request, []byte)) map[string]int {
	a.t.Helper()
	var mu sync.Mutex // guards answers and want
	answers, want := map[string]int{}, map[string]string{}
	var first sync.Once
	begun := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			message := fmt.Sprintf("%x", sha256.Sum256([]byte(handle+fmt.Sprint(i)))) // texts that are alike cost more
			made, code := a.bid(handle, 100, message, as(i))
			first.Do(func() { close(begun) })
			answer := string(code)
			if code == "" {
				answer = string(*made.Bid.Hold)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[answer]++
			if code == "" {
				want[made.Bid.ID] = answer
			}
		})
	}
	<-begun
	a.crash(rand.IntN(len(a.nodes)))
	group.Wait()
	got := map[string]string{}
	for _, b := range a.open(handle) {
		got[b.ID] = string(b.Hold)
	}
	require.Equal(a.t, want, got)
	return answers
}

// presses are the buttons that a payer presses, and how often the amount of the bid is paid by them.
var presses = []struct {
	buttons []string
	halves  int64
}{{[]string{"pay"}, 2}, {[]string{"pay", "pay"}, 2}, {[]string{"pay-twice"}, 4}, {[]string{"pay-partly", "pay"}, 3}}

// trade lets everybody bid more and more, and pay, while processes are killed. Then every bid is
// there; its money has a slot or went back; and never were more bids live than there are slots.
func (a *auction) trade(handle string, as func(i int) func(*http.Request, []byte)) {
	a.t.Helper()
	random, rounds := rand.New(rand.NewPCG(storagetest.Seed(a.t), 4)), storagetest.Rounds(a.t, 8)
	type bought struct {
		protocol.BidReceipt
		halves int64
	}
	var mu sync.Mutex // guards all
	var all []bought
	var price atomic.Int64
	life, end := context.WithCancel(a.t.Context())
	var group sync.WaitGroup
	for i := range crowd {
		group.Go(func() {
			for n := 0; life.Err() == nil; n++ {
				time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
				made, code := a.bid(handle, 100+price.Load()+rand.Int64N(40), fmt.Sprintf("Bid %d of %d", n, i), as(i))
				if code != "" {
					if code != protocol.SlotTaken && code != protocol.Conflict {
						a.t.Errorf("a bid was refused: %s", code)
					}
					continue
				}
				price.Add(10)
				how := presses[rand.IntN(len(presses))]
				for _, button := range how.buttons {
					var payment protocol.Payment
					if code := a.ask("POST", "/api/public/payment/sandbox", fmt.Sprintf(`{"button":%q}`, button), bearer(made.PaymentURL), &payment); code != "" {
						a.t.Errorf("%s was refused: %s", button, code)
					}
				}
				mu.Lock()
				all = append(all, bought{made, how.halves})
				mu.Unlock()
			}
		})
	}
	group.Go(func() {
		for ; life.Err() == nil; time.Sleep(20 * time.Millisecond) {
			var board protocol.AttentionBoard
			if a.ask("GET", "/api/public/agents/"+handle+"/attention", "", func(*http.Request, []byte) {}, &board); len(board.Bids) > slots {
				a.t.Errorf("%d bids are live", len(board.Bids))
			}
		}
	})
	for range rounds {
		time.Sleep(time.Duration(300+random.IntN(400)) * time.Millisecond)
		a.crash(random.IntN(len(a.nodes)))
	}
	more := assert.Eventually(a.t, func() bool { // than there are slots were paid
		mu.Lock()
		defer mu.Unlock()
		return len(all) > slots
	}, 3*time.Minute, 100*time.Millisecond)
	end()
	group.Wait()

	require.True(a.t, more)
	for _, b := range all {
		a.settles(b.BidReceipt, b.halves)
	}
	live := 0
	for _, b := range a.open(handle) {
		require.Equal(a.t, protocol.BidLive, b.State)
		live++
	}
	a.t.Logf("%d bids were paid", len(all))
	require.Equal(a.t, slots, live)
}

// settles waits until a paid bid is live or refunded, and what was paid beyond it is back.
func (a *auction) settles(made protocol.BidReceipt, halves int64) {
	a.t.Helper()
	var bid protocol.Bid
	require.Eventually(a.t, func() bool {
		bid = protocol.Bid{}
		require.Empty(a.t, a.ask("GET", "/api/public/bids/"+made.Bid.ID, "", bearer(made.StatusToken), &bid))
		waits := slices.ContainsFunc(bid.Refunds, func(r protocol.BidRefund) bool { return r.State != "done" })
		return !waits && (bid.State == protocol.BidRefunded || bid.State == protocol.BidLive && kept(bid, halves) == 0)
	}, time.Minute, 50*time.Millisecond, "%+v", &bid)
}

// kept is how many paise of a bid were paid, and did not go back, beyond its amount.
func kept(bid protocol.Bid, halves int64) int64 {
	paise := func(m protocol.Money) int64 {
		n, _ := protocol.Decimal(m.Amount).Paise()
		return n
	}
	rest := paise(bid.Amount) * (halves - 2) / 2
	for _, r := range bid.Refunds {
		rest -= paise(r.Amount)
	}
	return rest
}
