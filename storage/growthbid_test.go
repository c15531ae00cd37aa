package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/protocol"
	"stoa/protocol/must"
	"stoa/storage"
)

// skewBids fills a database with many attention boards, of which one is old and busy: nearly all of its
// bids were never paid, and there are as many slots, holds and open refunds at any scale. at is when a
// row is due to end.
func skewBids(t *testing.T, db *storage.DB, scale int, fill func(full int, insert string, args ...any), at string) {
	t.Helper()
	exec := func(text string, args ...any) {
		t.Helper()
		require.NoError(t, storage.Exec(t.Context(), db, text, args...))
	}
	now := start.UnixMilli()
	account := storage.PaymentAccount{ID: "A", Handle: "board", Provider: protocol.PayRazorpay, Hook: "hook"}
	write(t, db, func(ctx context.Context, tx *storage.Tx) error {
		_, err := tx.Profiles().Put(ctx, &storage.StoredProfile{Draft: protocol.ProfileDraft{Handle: "board", Name: "Board", Kind: protocol.Person}})
		terms, _ := protocol.AttentionDraft{Slots: 5, Categories: []protocol.BoardCategory{{Name: "Yarn"}}}.Terms()
		b := &storage.AttentionBoard{ID: "B", Handle: "board", Open: true, Terms: terms, Account: "A"}
		return errors.Join(err, tx.PaymentAccounts().Put(ctx, &account), tx.AttentionBoards().Put(ctx, b))
	})
	copies := func(full int, table, where string, set map[string]string) {
		t.Helper()
		require.NoError(t, storage.CopyRows(t.Context(), db, table, where, full*scale/1000, set))
	}
	copies(100_000, "profile", `handle = 'board'`,
		map[string]string{"seq": "seq + s", "handle": "handle || CAST(s AS TEXT)", "pos": "NULL", "listed": "FALSE"})
	copies(100_000, "attention_board", `id = 'B'`, map[string]string{"seq": "seq + s", "id": "id || CAST(s AS TEXT)", "handle": "handle || CAST(s AS TEXT)"})
	copies(100_000, "attention_category", `category = 'yarn'`, map[string]string{"seq": "seq + s"})

	blob := map[bool]string{true: "BYTEA", false: "BLOB"}[storage.OnPostgres(db)]
	bids := func(prefix, state, moved, until, slot, paid string) string {
		key := `CAST('` + prefix + `' || CAST(n AS TEXT) AS ` + blob + `)`
		return `SELECT '` + prefix + `' || CAST(n AS TEXT), 'B', '` + state + `', '', ` + slot + `, 100 + n, 'net:' || CAST(n AS TEXT), FALSE, FALSE, ` + paid +
			`, 'A', ` + key + `, ` + key + `, 1, ` + until + `, ` + moved + `, 1, '{}' FROM series`
	}
	const insert = `INSERT INTO bid (id, board, state, hold, slot_no, paise, bidder, anonymous, test, paid, account, token_hash, pay_hash,
		bid_at, hold_until, moved_at, moves, doc) `
	series := func(n int) string {
		return fmt.Sprintf(`WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < %d) `, n)
	}
	many := `WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < CAST(? AS BIGINT)) `
	fill(200_000, insert+many+bids("bid_a", "lapsed", at, "NULL", "NULL", "FALSE"))
	fill(100_000, insert+many+bids("bid_b", "ended", "1", "NULL", "NULL", "TRUE"))
	exec(insert + series(5) + bids("bid_c", "live", "1", "NULL", "n", "TRUE"))
	exec(insert + series(3) + bids("bid_d", "held", "1", "1", "NULL", "FALSE"))
	exec(insert + series(3) + bids("bid_e", "held", "1", fmt.Sprint(now+1000), "NULL", "FALSE"))
	fill(50_000, `INSERT INTO bid_move (bid, n, state, at, note) `+many+`SELECT 'bid_a' || CAST(n AS TEXT), 1, 'held', 1, '' FROM series`)
	fill(100_000, `INSERT INTO payment (id, board, bid, account, provider, payee, payment_id, paise, placed, test, paid_at, at) `+many+
		`SELECT 'pay_' || CAST(n AS TEXT), 'B', 'bid_b' || CAST(n AS TEXT), 'A', 'razorpay', 'A', CAST(n AS TEXT), 100, FALSE, FALSE, 1, 1 FROM series`)
	fill(100_000, `INSERT INTO refund (id, board, bid, payment, paise, why, whole, state, reference, until, created_at) `+many+
		`SELECT 'rfd_' || CAST(n AS TEXT), 'B', 'bid_b' || CAST(n AS TEXT), 'pay_' || CAST(n AS TEXT), 100, '', TRUE,
			CASE WHEN n <= 5 THEN 'manual' ELSE 'done' END, CASE WHEN n <= 5 THEN '' ELSE 'r' || CAST(n AS TEXT) END, 1, 1 FROM series`)
	fill(100_000, `INSERT INTO pay_event (provider, account, event_id, at, raw, head, done_at) `+many+
		`SELECT 'razorpay', 'A', CAST(n AS TEXT), 1, ?, '[]', `+at+` FROM series`, []byte("{}"))
}

// grownBids are the statements of every bid, every page of a board, every poll and every hour.
func grownBids(ctx context.Context, tx *storage.Tx) []call {
	return []call{
		{"attention boards", looks, func() error { return some(tx.AttentionBoards().List(ctx, "", 20, "")) }},
		{"attention boards of a category", looks, func() error { return some(tx.AttentionBoards().List(ctx, "yarn", 20, "")) }},
		{"place of a bid", looks, func() error {
			v, err := tx.AttentionBoards().View(ctx, &storage.AttentionBoard{ID: "B"}, "")
			return found(len(v.Live)*v.Contested, err)
		}},
		{"ranked live bids", looks, func() error { return some(tx.Bids().ListLive(ctx, "B")) }},
		{"holds that are over", looks, func() error { return some(tx.Bids().ListDue(ctx, "B")) }},
		{"limits of a bidder", undone, func() error {
			n, err := tx.Bids().CountBidder(ctx, "B", "net:1")
			return found(n.Unpaid.Known+n.Unpaid.Strangers, err)
		}},
		{"open bids of a board", looks, func() error { return some(tx.Bids().ListOpen(ctx, "B")) }},
		{"bid and account of a poll", looks, func() error {
			b, err := tx.Bids().ByID(ctx, "bid_c1")
			if err == nil {
				_, err = tx.PaymentAccounts().ByID(ctx, b.Account)
			}
			return err
		}},
		{"is a payment known", looks, func() error {
			known, err := tx.Payments().Exists(ctx, protocol.PayRazorpay, "A", "7")
			return found(map[bool]int{true: 1}[known], err)
		}},
		{"refund by its id, and of a payment", looks, func() error {
			_, err := tx.Refunds().ByReference(ctx, "A", "r7")
			_, one := tx.Payments().AtProvider(ctx, protocol.PayRazorpay, "A", "3")
			_, all := tx.Refunds().OfPayment(ctx, "p3")
			_, events := tx.Payments().ReopenEvents(ctx, "A", "3", "unknown payment")
			return errors.Join(err, one, all, events)
		}},
		{"bids, payments and refunds of a board", looks, func() error {
			bids, err := tx.Bids().List(ctx, "B", "", 20, "")
			payments, e := tx.Payments().List(ctx, "B", 20, "")
			refunds, f := tx.Refunds().ListOpen(ctx, "B", 20, "")
			return found(len(bids.Items)*len(payments.Items)*len(refunds.Items), errors.Join(err, e, f))
		}},
		{"does an account owe", looks, func() error { return must.Err(tx.PaymentAccounts().Owes(ctx, "A")) }},
		{"prune bids", undone, func() error { return some(tx.Bids().Prune(ctx, longAgo)) }},
		{"prune events of payments", undone, func() error { return some(tx.Payments().PruneEvents(ctx, longAgo)) }},
	}
}
