package storage

// bidInvariants are about the money of bids and orders, and the stock that orders hold. Each refund is in full, but nothing below a rupee
// is sent back of a payment that got a slot (protocol.ExcessRefund).
var bidInvariants = []invariant{
	{"a payment that neither got a slot nor goes back in full", `SELECT p.id FROM payment p WHERE NOT p.placed
		AND p.paise <> (SELECT COALESCE(sum(r.paise), 0) FROM refund r WHERE r.payment = p.id) LIMIT 1`},
	{"a payment of more than its bid whose rest does not go back", `SELECT p.id FROM payment p JOIN bid b ON b.id = p.bid WHERE p.placed
		AND p.paise - b.paise >= 100 AND p.paise - b.paise > (SELECT COALESCE(sum(r.paise), 0) FROM refund r WHERE r.payment = p.id) LIMIT 1`},
	{"a payment of which more goes back than came in", `SELECT p.id FROM payment p
		WHERE p.paise < (SELECT COALESCE(sum(r.paise), 0) FROM refund r WHERE r.payment = p.id) LIMIT 1`},
	{"a bid that has, or had, a slot and was not paid for it", `SELECT b.id FROM bid b WHERE b.state IN ('live', 'ended', 'outbid', 'removed', 'unanswered')
		AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.bid = b.id AND p.placed AND p.paise >= b.paise) LIMIT 1`},
	{"a bid that got a slot and is neither live, ended nor on its way to a refund", `SELECT b.id FROM bid b JOIN payment p ON p.bid = b.id
		WHERE p.placed AND b.state IN ('held', 'claimed', 'unconfirmed', 'lapsed', 'withdrawn', 'refund_due') LIMIT 1`},
	{"a bid that waits for a refund that does not exist", `SELECT b.id FROM bid b
		WHERE b.state IN ('removed', 'unanswered', 'refund_due', 'refunding', 'refund_failed')
		AND NOT EXISTS (SELECT 1 FROM refund r WHERE r.bid = b.id AND r.whole AND r.state <> 'done') LIMIT 1`},
	{"a refunded bid whose refund is not done", `SELECT b.id FROM bid b WHERE b.state = 'refunded'
		AND NOT EXISTS (SELECT 1 FROM refund r WHERE r.bid = b.id AND r.whole AND r.state = 'done') LIMIT 1`},
	{"a refund that no job makes", `SELECT r.id FROM refund r WHERE r.state IN ('due', 'ordered') AND NOT EXISTS (SELECT 1 FROM job j
		WHERE j.state = 'waiting' AND j.dedupe > '` + string(RefundJob) + ` ' || r.id AND j.dedupe < '` + string(RefundJob) + ` ' || r.id || '!') LIMIT 1`},
	{"a bid whose end no job brings", `SELECT b.id FROM bid b WHERE b.state IN ('held', 'claimed', 'live') AND NOT EXISTS (SELECT 1 FROM job j
		WHERE j.state = 'waiting' AND j.dedupe = '` + string(BidDueJob) + ` ' || b.id || ' ' || CAST(b.moves AS TEXT) || ' 0') LIMIT 1`},
	{"an order whose end no job brings", `SELECT o.id FROM shop_order o WHERE o.state = 'awaiting_payment' AND o.hold_until IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM job j WHERE j.state = 'waiting'
			AND j.dedupe = '` + string(OrderDueJob) + ` ' || o.id || ' ' || CAST(o.moves AS TEXT) || ' 0') LIMIT 1`},
	{"an order that does not wait and holds pieces", `SELECT h.order_id FROM order_hold h LEFT JOIN shop_order o ON o.id = h.order_id
		LEFT JOIN checkout c ON c.id = h.order_id WHERE (o.id IS NULL OR o.state <> 'awaiting_payment')
		AND (c.id IS NULL OR c.state <> 'open' OR c.hold_until IS NULL) LIMIT 1`},
	{"a checkout whose hold no job ends", `SELECT c.id FROM checkout c WHERE c.hold_until IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM job j WHERE j.state = 'waiting' AND j.dedupe > '` + string(OrderDueJob) + ` ' || c.id || ' '
			AND j.dedupe < '` + string(OrderDueJob) + ` ' || c.id || '!') LIMIT 1`},
	{"an order that was paid at once without a payment", `SELECT o.id FROM shop_order o WHERE o.state IN ('paid', 'fulfilled') AND o.account <> ''
		AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.bid = o.id AND p.placed AND p.paise >= o.paise) LIMIT 1`},
	{"a payment of more than its order whose rest does not go back", `SELECT p.id FROM payment p JOIN shop_order o ON o.id = p.bid WHERE p.placed
		AND p.paise - o.paise >= 100 AND p.paise - o.paise > (SELECT COALESCE(sum(r.paise), 0) FROM refund r WHERE r.payment = p.id) LIMIT 1`},
	{"two bids in one slot", `SELECT min(b.id) FROM bid b WHERE b.slot_no IS NOT NULL GROUP BY b.board, b.slot_no HAVING count(*) > 1 LIMIT 1`},
	{"a live bid without a slot", `SELECT b.id FROM bid b WHERE b.state = 'live' AND b.slot_no IS NULL LIMIT 1`},
	{"a payment without its line of the ledger", `SELECT p.id FROM payment p LEFT JOIN ledger l ON l.payment = p.id AND l.refund = ''
		WHERE l.n IS NULL OR l.paise <> p.paise OR l.bid <> p.bid OR l.board <> p.board LIMIT 1`},
	{"a refund that is done, without its line of the ledger", `SELECT r.id FROM refund r LEFT JOIN ledger l ON l.payment = r.payment AND l.refund = r.id
		WHERE r.state = 'done' AND (l.n IS NULL OR l.paise <> -r.paise OR l.bid <> r.bid OR l.board <> r.board) LIMIT 1`},
	{"a line of the ledger without its payment, or its refund that is done", `SELECT l.payment FROM ledger l LEFT JOIN payment p ON p.id = l.payment
		LEFT JOIN refund r ON r.id = l.refund AND r.payment = l.payment AND r.state = 'done' WHERE p.id IS NULL OR l.refund <> '' AND r.id IS NULL LIMIT 1`},
	{"a board whose disputes are counted wrong", `SELECT b.id FROM attention_board b WHERE b.disputes <>
		(SELECT count(DISTINCT d.dispute) FROM bid d WHERE d.board = b.id AND d.dispute > '') LIMIT 1`},
	{"a dispute of a payment that is decided", `SELECT b.id FROM bid b WHERE b.dispute IS NOT NULL AND b.state <> 'unconfirmed' LIMIT 1`},
	{"receipts with a gap", `SELECT min(n.payment) FROM receipt_no n GROUP BY n.board, n.year HAVING count(*) <> max(n.n) LIMIT 1`},
	{"a bid in the feed that was removed, never live, or is a test", `SELECT f.subject_id FROM feed f JOIN bid b ON b.id = f.subject_id
		WHERE f.visible AND f.type = 'attention_bid' AND (b.test OR EXISTS (SELECT 1 FROM bid_move m WHERE m.bid = b.id AND m.state = 'removed')
			OR NOT EXISTS (SELECT 1 FROM bid_move m WHERE m.bid = b.id AND m.state = 'live')) LIMIT 1`},
}
