-- +goose Up

-- The till of a shop: how it takes orders. Its row is locked by whoever changes an order of the shop, or its stock. handle is null once
-- the profile is deleted. Payments, refunds, receipts and the ledger of orders are in the tables of those of bids, with the till as
-- board and the order as bid.
CREATE TABLE till (
	id         TEXT PRIMARY KEY,
	handle     TEXT UNIQUE,
	open       INTEGER NOT NULL,
	doc        TEXT NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;

-- Orders of shops. sealed is who bought, and where it goes, encrypted. mailbox is a keyed hash. hold_until ends the wait for a
-- payment; null where none ends it. unproved: made by somebody of whom the node knew nothing.
CREATE TABLE shop_order (
	id         TEXT PRIMARY KEY,
	till       TEXT NOT NULL,
	state      TEXT NOT NULL CHECK (state IN ('awaiting_payment', 'paid', 'fulfilled', 'canceled', 'refunded')),
	claimed    INTEGER NOT NULL,
	paise      INTEGER NOT NULL CHECK (paise > 0),
	buyer      TEXT NOT NULL,
	mailbox    BLOB NOT NULL,
	anonymous  INTEGER NOT NULL,
	test       INTEGER NOT NULL,
	paid       INTEGER NOT NULL,
	utr        TEXT,
	account    TEXT NOT NULL,
	token_hash BLOB NOT NULL UNIQUE,
	made_at    INTEGER NOT NULL,
	hold_until INTEGER,
	moved_at   INTEGER NOT NULL,
	moves      INTEGER NOT NULL,
	sealed     BLOB NOT NULL,
	doc        TEXT NOT NULL
) STRICT;
CREATE INDEX shop_order_till ON shop_order (till, (id || ''));
CREATE INDEX shop_order_state ON shop_order (till, state, ('' || id));
CREATE INDEX shop_order_due ON shop_order (till, hold_until) WHERE state = 'awaiting_payment';
CREATE INDEX shop_order_buyer ON shop_order (buyer) WHERE state = 'awaiting_payment';
CREATE INDEX shop_order_strangers ON shop_order (till, made_at) WHERE state = 'awaiting_payment' AND anonymous;
CREATE INDEX shop_order_made ON shop_order (made_at) WHERE anonymous;
CREATE UNIQUE INDEX shop_order_mailbox ON shop_order (till, mailbox) WHERE state = 'awaiting_payment';
CREATE UNIQUE INDEX shop_order_claim ON shop_order (till, utr) WHERE claimed AND utr IS NOT NULL;
CREATE INDEX shop_order_utr ON shop_order (utr) WHERE utr IS NOT NULL;
CREATE INDEX shop_order_unpaid ON shop_order (moved_at) WHERE NOT paid AND state = 'canceled';
CREATE INDEX shop_order_account ON shop_order (account, state, moved_at);

-- How many pieces of a variant a shop has left to sell. A variant without a row is not counted.
CREATE TABLE stock (
	till    TEXT NOT NULL,
	variant TEXT NOT NULL,
	pieces  INTEGER NOT NULL CHECK (pieces >= 0),
	PRIMARY KEY (till, variant)
) STRICT;

-- Pieces that an order holds until it is paid or ends.
CREATE TABLE order_hold (
	order_id  TEXT NOT NULL,
	till      TEXT NOT NULL,
	variant   TEXT NOT NULL,
	pieces    INTEGER NOT NULL CHECK (pieces > 0),
	anonymous INTEGER NOT NULL,
	PRIMARY KEY (order_id, variant)
) STRICT;
CREATE INDEX order_hold_variant ON order_hold (till, variant, order_id);
