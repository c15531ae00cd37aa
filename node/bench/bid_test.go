package bench_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/identity/httpsig"
	"stoa/identity/key"
	"stoa/node/nodetest"
	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// BenchmarkBids compares what bidders do with a board post of the same run, over HTTP on 64
// connections: signed posts and signed bids, each by another key, durable on SQLite
// with synchronous=FULL; check_bid and read_attention_board of a board with 100 live bids, from the
// database and as a kept answer.
func BenchmarkBids(b *testing.B) {
	n := nodetest.Start(b)
	target := must.Get(httpsig.ParseTarget(n.Base))(b)
	const boards = 20 // with 100 slots each; a bidder has at most three unpaid bids
	for i := range boards {
		n.OpenBoard(fmt.Sprintf("board-%d", i), `,"slots":100,"floor":500`)
	}
	fillBoard(b, n, "board-0")
	keys := make([]key.Pair, boards*100/3)
	for i := range keys {
		keys[i] = n.Hosted(fmt.Sprintf("bidder-%d", i))
	}
	b.Run("post", func(b *testing.B) {
		signedWrites(b, n, target, func(i int) (string, []byte, key.Pair) {
			body := fmt.Appendf(nil, `{"kind":"offer","title":"Post %d","body":"Two hundred sheets of hand-made paper from Jaipur, number %d."}`, i, i)
			return "/api/public/board", body, keys[i%len(keys)]
		})
	})
	made := 0 // over all runs: each bid keeps a slot
	b.Run("bid", func(b *testing.B) {
		first := made
		made += b.N
		require.LessOrEqual(b, made, (boards-1)*100, "run it with -benchtime=300x")
		signedWrites(b, n, target, func(i int) (string, []byte, key.Pair) {
			i += first
			path := fmt.Sprintf("/api/public/agents/board-%d/attention/bids", 1+i%(boards-1))
			return path, []byte(`{"amount":1500,"message":"Two hundred sheets of hand-made paper from Jaipur, samples first."}`), keys[i%len(keys)]
		})
	})
	board := "/api/public/agents/board-0/attention"
	var asked atomic.Int64 // no target twice, so that no answer is a kept one
	b.Run("read", func(b *testing.B) {
		ask(b, n, func() string { return fmt.Sprintf("%s?utm_n=%d", board, asked.Add(1)) })
	})
	b.Run("read-kept", func(b *testing.B) { ask(b, n, func() string { return board }) })
	b.Run("check", func(b *testing.B) {
		ask(b, n, func() string { return fmt.Sprintf("%s/check?amount=500&utm_n=%d", board, asked.Add(1)) })
	})
	b.Run("check-kept", func(b *testing.B) { ask(b, n, func() string { return board + "/check?amount=500" }) })
	b.Run("posts", func(b *testing.B) {
		ask(b, n, func() string { return fmt.Sprintf("/api/public/board?utm_n=%d", asked.Add(1)) })
	})
}

// fillBoard gives every slot of a board to a live bid.
func fillBoard(b *testing.B, n *nodetest.House, handle string) {
	b.Helper()
	require.NoError(b, n.DB.Write(b.Context(), func(ctx context.Context, tx *storage.Tx) error {
		board, err := tx.AttentionBoards().ByHandle(ctx, handle)
		if err != nil {
			return err
		}
		for i := range board.Terms.Slots {
			terms := board.Terms
			terms.Rules, terms.Categories = "", nil
			bid := &storage.StoredBid{
				ID: protocol.NewID(protocol.BidID, tx.Now), Board: board.ID, State: protocol.BidLive, Slot: i + 1, Paise: int64(500_00 + i*100),
				Bidder:  fmt.Sprint("key:", i),
				Account: board.Account, TokenHash: [32]byte{byte(i), 1}, PayHash: [32]byte{byte(i), 2}, BidAt: tx.Now, MovedAt: tx.Now, Moves: 1,
				BidDoc: storage.BidDoc{
					Author: protocol.Author{Name: fmt.Sprint("Bidder ", i)}, Message: "Two hundred sheets of hand-made paper from Jaipur, samples first.",
					Handle: handle, Terms: terms, Approved: true, LiveAt: tx.Now, EndsAt: tx.Now.Add(terms.SlotFor()),
				},
			}
			if err := tx.Bids().Insert(ctx, bid); err != nil {
				return err
			}
		}
		return nil
	}))
}

// ask reads targets over raw connections.
func ask(b *testing.B, n *nodetest.House, target func() string) {
	u := must.Get(url.Parse(n.URL))(b)
	before := cpuTime()
	poundEach(b, u.Host, func(int64) []byte { return []byte("GET " + target() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n") })
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}
