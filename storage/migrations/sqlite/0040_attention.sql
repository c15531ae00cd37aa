-- +goose Up

-- The profile's attention board is open.
ALTER TABLE profile ADD COLUMN attention INTEGER NOT NULL DEFAULT 0 CHECK (attention IN (0, 1));

-- doc holds the board's terms. handle is null once the profile is deleted: what
-- was paid stays on record, and the next owner of the handle does not get it.
-- listed says that the board is in the list: open, of a listed profile.
CREATE TABLE attention_board (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT    NOT NULL UNIQUE,
	handle     TEXT    UNIQUE,
	open       INTEGER NOT NULL CHECK (open IN (0, 1)),
	listed     INTEGER NOT NULL CHECK (listed IN (0, 1)),
	account    TEXT,
	doc        TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX attention_board_listed ON attention_board (seq) WHERE listed;

-- Folded categories of listed boards.
CREATE TABLE attention_category (
	category TEXT    NOT NULL,
	seq      INTEGER NOT NULL,
	PRIMARY KEY (category, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX attention_category_board ON attention_category (seq);

-- Where bids are paid to. The newest of a profile without retired_at is in use;
-- others are kept as long as a bid may have to be refunded by them. hook is the
-- last part of the address of the provider's webhook.
CREATE TABLE payment_account (
	id         TEXT    PRIMARY KEY,
	handle     TEXT    NOT NULL,
	provider   TEXT    NOT NULL CHECK (provider IN ('upi', 'razorpay', 'sandbox')),
	hook       TEXT    NOT NULL UNIQUE,
	doc        TEXT    NOT NULL,
	sealed     BLOB,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	retired_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_account_handle ON payment_account (handle, id);

-- slot_no is a token of the board's capacity, from 1; two bids never have the
-- same. hold_until ends the hold of an unpaid bid, or of a claimed payment.
CREATE TABLE bid (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	state      TEXT    NOT NULL CHECK (state IN ('held', 'claimed', 'unconfirmed', 'lapsed', 'withdrawn', 'live', 'outbid', 'ended', 'removed', 'unanswered', 'refund_due', 'refunding', 'refunded', 'refund_failed')),
	hold       TEXT    NOT NULL CHECK (hold IN ('', 'reserving', 'competing')),
	slot_no    INTEGER CHECK (slot_no IS NULL OR state IN ('held', 'claimed', 'live')),
	paise      INTEGER NOT NULL CHECK (paise > 0),
	bidder     TEXT    NOT NULL,
	anonymous  INTEGER NOT NULL CHECK (anonymous IN (0, 1)),
	test       INTEGER NOT NULL CHECK (test IN (0, 1)),
	denied     INTEGER NOT NULL DEFAULT 0 CHECK (denied IN (0, 1)),
	paid       INTEGER NOT NULL DEFAULT 0 CHECK (paid IN (0, 1)),
	utr        TEXT,
	account    TEXT    NOT NULL,
	token_hash BLOB    NOT NULL,
	pay_hash   BLOB    NOT NULL,
	bid_at     INTEGER NOT NULL,
	hold_until INTEGER,
	free_at    INTEGER,
	moved_at   INTEGER NOT NULL,
	moves      INTEGER NOT NULL,
	doc        TEXT    NOT NULL,
	CHECK (state <> 'live' OR slot_no IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX bid_slot ON bid (board, slot_no) WHERE slot_no IS NOT NULL;
CREATE UNIQUE INDEX bid_token ON bid (token_hash);
CREATE UNIQUE INDEX bid_pay ON bid (pay_hash);
CREATE UNIQUE INDEX bid_claim ON bid (board, utr) WHERE state = 'claimed' AND utr IS NOT NULL;
CREATE INDEX bid_held ON bid (board, hold_until) WHERE state = 'held';
CREATE INDEX bid_claimed ON bid (board, hold_until) WHERE state = 'claimed';
CREATE INDEX bid_bidder ON bid (bidder, board) WHERE state IN ('held', 'claimed');
CREATE INDEX bid_lapsed ON bid (bidder, moved_at) WHERE state = 'lapsed';
CREATE INDEX bid_denied ON bid (bidder, board) WHERE denied;
CREATE INDEX bid_unpaid ON bid (moved_at) WHERE NOT paid AND state IN ('lapsed', 'withdrawn', 'unconfirmed');
CREATE INDEX bid_board ON bid (board, (id || ''));
CREATE INDEX bid_state ON bid (board, state, ('' || id));

-- Every state of a bid, in order.
CREATE TABLE bid_move (
	bid   TEXT    NOT NULL,
	n     INTEGER NOT NULL,
	state TEXT    NOT NULL,
	at    INTEGER NOT NULL,
	note  TEXT    NOT NULL,
	PRIMARY KEY (bid, n)
) STRICT, WITHOUT ROWID;

-- Events of payment providers, as received, once. The signature was checked
-- before. done_at is null until the job has applied it.
CREATE TABLE pay_event (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	provider TEXT    NOT NULL,
	account  TEXT    NOT NULL,
	event_id TEXT    NOT NULL,
	at       INTEGER NOT NULL,
	raw      BLOB    NOT NULL,
	head     TEXT    NOT NULL,
	done_at  INTEGER,
	outcome  TEXT    NOT NULL DEFAULT '',
	UNIQUE (account, event_id)
) STRICT;
CREATE INDEX pay_event_done ON pay_event (done_at) WHERE done_at IS NOT NULL;

-- Money that came in. payee is what the provider's payment ids are unique within.
CREATE TABLE payment (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	bid        TEXT    NOT NULL,
	account    TEXT    NOT NULL,
	provider   TEXT    NOT NULL,
	payee      TEXT    NOT NULL,
	payment_id TEXT    NOT NULL,
	paise      INTEGER NOT NULL CHECK (paise > 0),
	placed     INTEGER NOT NULL CHECK (placed IN (0, 1)),
	test       INTEGER NOT NULL CHECK (test IN (0, 1)),
	paid_at    INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	UNIQUE (provider, payee, payment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_bid ON payment (bid);
CREATE UNIQUE INDEX payment_placed ON payment (bid) WHERE placed;
CREATE INDEX payment_board ON payment (board, (id || ''));

-- Money that goes back. id is also the idempotency key. whole says that it is the
-- refund of the bid itself, whose state follows it, and not of what was paid
-- twice, too little or too much.
CREATE TABLE refund (
	id         TEXT    PRIMARY KEY,
	board      TEXT    NOT NULL,
	bid        TEXT    NOT NULL,
	payment    TEXT    NOT NULL,
	paise      INTEGER NOT NULL CHECK (paise > 0),
	why        TEXT    NOT NULL,
	whole      INTEGER NOT NULL CHECK (whole IN (0, 1)),
	state      TEXT    NOT NULL CHECK (state IN ('due', 'ordered', 'manual', 'failed', 'done')),
	reference  TEXT    NOT NULL DEFAULT '',
	tries      INTEGER NOT NULL DEFAULT 0,
	last_error TEXT    NOT NULL DEFAULT '',
	until      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	done_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX refund_bid ON refund (bid);
CREATE INDEX refund_payment ON refund (payment);
CREATE INDEX refund_open ON refund (board) WHERE state <> 'done';

-- Append-only: what came in is positive, what went back negative.
CREATE TABLE ledger (
	n       INTEGER PRIMARY KEY AUTOINCREMENT,
	board   TEXT    NOT NULL,
	bid     TEXT    NOT NULL,
	payment TEXT    NOT NULL,
	refund  TEXT    NOT NULL DEFAULT '',
	paise   INTEGER NOT NULL CHECK (paise <> 0),
	at      INTEGER NOT NULL,
	UNIQUE (payment, refund)
) STRICT;
CREATE INDEX ledger_board ON ledger (board, at);

-- Receipts are numbered by board and financial year, without gaps.
CREATE TABLE receipt_no (
	board   TEXT    NOT NULL,
	year    TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	payment TEXT    NOT NULL UNIQUE,
	at      INTEGER NOT NULL,
	doc     TEXT    NOT NULL,
	PRIMARY KEY (board, year, n)
) STRICT, WITHOUT ROWID;
