package storage_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stoa/storage"
)

// A small world of money that is in order: a live bid that was paid too much, one that came too late
// and was refunded, one that was removed.
var soundMoney = []string{
	`INSERT INTO bid (id, board, state, hold, slot_no, paise, bidder, anonymous, test, paid, account, token_hash, pay_hash, bid_at, moved_at, moves, doc) VALUES
		('bid_live', 'B', 'live', '', 1, 1000, 'x', FALSE, FALSE, TRUE, 'A', ?, ?, 1, 1, 2, '{}'),
		('bid_late', 'B', 'refunded', '', NULL, 1000, 'x', FALSE, FALSE, TRUE, 'A', ?, ?, 1, 1, 2, '{}'),
		('bid_spam', 'B', 'refunding', '', NULL, 1000, 'x', FALSE, FALSE, TRUE, 'A', ?, ?, 1, 1, 2, '{}'),
		('bid_held', 'B', 'held', 'reserving', 2, 1000, 'x', FALSE, FALSE, FALSE, 'A', ?, ?, 1, 1, 1, '{}')`,
	`INSERT INTO bid_move (bid, n, state, at, note) VALUES ('bid_live', 1, 'held', 1, ''), ('bid_live', 2, 'live', 1, '')`,
	`INSERT INTO payment (id, board, bid, account, provider, payee, payment_id, paise, placed, test, paid_at, at) VALUES
		('pay_live', 'B', 'bid_live', 'A', 'upi', 'p', '1', 1100, TRUE, FALSE, 1, 1), ('pay_late', 'B', 'bid_late', 'A', 'upi', 'p', '2', 1000, FALSE, FALSE, 1, 1),
		('pay_spam', 'B', 'bid_spam', 'A', 'upi', 'p', '3', 1000, TRUE, FALSE, 1, 1)`,
	`INSERT INTO refund (id, board, bid, payment, paise, why, whole, state, until, created_at) VALUES
		('rfd_live', 'B', 'bid_live', 'pay_live', 100, '', FALSE, 'due', 1, 1), ('rfd_late', 'B', 'bid_late', 'pay_late', 1000, '', TRUE, 'done', 1, 1),
		('rfd_spam', 'B', 'bid_spam', 'pay_spam', 1000, '', TRUE, 'manual', 1, 1)`,
	`INSERT INTO ledger (board, bid, payment, refund, paise, at) VALUES ('B', 'bid_live', 'pay_live', '', 1100, 1), ('B', 'bid_late', 'pay_late', '', 1000, 1),
		('B', 'bid_spam', 'pay_spam', '', 1000, 1), ('B', 'bid_late', 'pay_late', 'rfd_late', -1000, 1)`,
	`INSERT INTO job (kind, args, state, run_at, dedupe) VALUES ('refund-bid', ?, 'waiting', 1, 'refund-bid rfd_live 0 0'),
		('bid-due', ?, 'waiting', 1, 'bid-due bid_live 2 0'), ('bid-due', ?, 'waiting', 1, 'bid-due bid_held 1 0')`,
	`INSERT INTO receipt_no (board, year, n, payment, at, doc) VALUES ('B', '2026-27', 1, 'pay_live', 1, '{}'), ('B', '2026-27', 2, 'pay_spam', 1, '{}')`,
}

// blobs are different bytes for each ? of a statement.
func blobs(text string) (all []any) {
	for i := range strings.Count(text, "?") {
		all = append(all, []byte{byte(i)})
	}
	return all
}

// Each fault of the money of bids is found, and nothing else is said to be one.
func TestCheck_Money(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ do, want string }{
		{"", ""}, // as it is
		{`DELETE FROM refund WHERE id = 'rfd_spam'`, "a bid that waits for a refund that does not exist: bid_spam"},
		{`UPDATE refund SET state = 'done' WHERE id = 'rfd_spam'`, "a bid that waits for a refund that does not exist: bid_spam"},
		{`UPDATE refund SET paise = 999 WHERE id = 'rfd_late'`, "a payment that neither got a slot nor goes back in full: pay_late"},
		{`UPDATE refund SET paise = 99 WHERE id = 'rfd_live'`, "a payment of more than its bid whose rest does not go back: pay_live"},
		{`UPDATE refund SET paise = 1001 WHERE id = 'rfd_spam'`, "a payment of which more goes back than came in: pay_spam"},
		{`UPDATE refund SET state = 'ordered' WHERE id = 'rfd_late'`, "a refunded bid whose refund is not done: bid_late"},
		{`UPDATE payment SET placed = FALSE WHERE id = 'pay_live'`, "a bid that has, or had, a slot and was not paid for it: bid_live"},
		{`UPDATE bid SET state = 'lapsed', slot_no = NULL WHERE id = 'bid_live'`,
			"a bid that got a slot and is neither live, ended nor on its way to a refund: bid_live"},
		{`UPDATE ledger SET paise = 1099 WHERE payment = 'pay_live'`, "a payment without its line of the ledger: pay_live"},
		{`DELETE FROM ledger WHERE payment = 'pay_spam'`, "a payment without its line of the ledger: pay_spam"},
		{`DELETE FROM ledger WHERE refund = 'rfd_late'`, "a refund that is done, without its line of the ledger: rfd_late"},
		{`INSERT INTO ledger (board, bid, payment, refund, paise, at) VALUES ('B', 'bid_spam', 'pay_spam', 'rfd_spam', -1000, 1)`,
			"a line of the ledger without its payment, or its refund that is done: pay_spam"},
		{`DELETE FROM job WHERE kind = 'refund-bid'`, "a refund that no job makes: rfd_live"},
		{`UPDATE job SET state = 'done' WHERE dedupe = 'refund-bid rfd_live 0 0'`, "a refund that no job makes: rfd_live"},
		{`DELETE FROM job WHERE dedupe = 'bid-due bid_held 1 0'`, "a bid whose end no job brings: bid_held"},
		{`UPDATE bid SET moves = 3 WHERE id = 'bid_live'`, "a bid whose end no job brings: bid_live"},
		{`DELETE FROM receipt_no WHERE n = 1`, "receipts with a gap: pay_spam"},
		{`INSERT INTO feed (seq, id, type, subject_id, visible, doc, n) VALUES (1, 'feed_1', 'attention_bid', 'bid_live', TRUE, '{}', 1)`, ``},
		{`INSERT INTO feed (seq, id, type, subject_id, visible, doc, n) VALUES (1, 'feed_1', 'attention_bid', 'bid_spam', TRUE, '{}', 1)`,
			"a bid in the feed that was removed, never live, or is a test: bid_spam"},
	} {
		t.Run(cmp.Or(test.do, "nothing"), func(t *testing.T) {
			each(t, func(t *testing.T, db *storage.DB) {
				for _, text := range append(slices.Clone(soundMoney), test.do) {
					if text == "" {
						continue
					}
					require.NoError(t, storage.Exec(t.Context(), db, text, blobs(text)...))
				}
				err := db.Check(t.Context())
				if test.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, test.want)
			})
		})
	}
}

// Two live bids in one slot cannot be stored at all.
func TestCheck_OneSlot(t *testing.T) {
	each(t, func(t *testing.T, db *storage.DB) {
		require.NoError(t, storage.Exec(t.Context(), db, soundMoney[0], blobs(soundMoney[0])...))
		require.Error(t, storage.Exec(t.Context(), db, `UPDATE bid SET slot_no = 1 WHERE id = 'bid_held'`))
	})
}
