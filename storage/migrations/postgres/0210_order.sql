-- +goose Up

-- The till of a shop: how it takes orders. Its row is locked by whoever changes an order of the shop, or its stock. handle is null once
-- the profile is deleted. Payments, refunds, receipts and the ledger of orders are in the tables of those of bids, with the till as
-- board and the order as bid.
CREATE TABLE till (
	id         TEXT COLLATE "C" PRIMARY KEY,
	handle     TEXT COLLATE "C" UNIQUE,
	open       BOOLEAN NOT NULL,
	doc        TEXT COLLATE "C" NOT NULL,
	updated_at BIGINT NOT NULL
);

-- Orders of shops. sealed is who bought, and where it goes, encrypted. mailbox is a keyed hash. hold_until ends the wait for a
-- payment; null where none ends it. unproved: made by somebody of whom the node knew nothing.
CREATE TABLE shop_order (
	id         TEXT COLLATE "C" PRIMARY KEY,
	till       TEXT COLLATE "C" NOT NULL,
	state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('awaiting_payment', 'paid', 'fulfilled', 'canceled', 'refunded')),
	claimed    BOOLEAN NOT NULL,
	paise      BIGINT NOT NULL CHECK (paise > 0),
	buyer      TEXT COLLATE "C" NOT NULL,
	mailbox    BYTEA NOT NULL,
	anonymous  BOOLEAN NOT NULL,
	test       BOOLEAN NOT NULL,
	paid       BOOLEAN NOT NULL,
	utr        TEXT COLLATE "C",
	account    TEXT COLLATE "C" NOT NULL,
	token_hash BYTEA NOT NULL UNIQUE,
	made_at    BIGINT NOT NULL,
	hold_until BIGINT,
	moved_at   BIGINT NOT NULL,
	moves      BIGINT NOT NULL,
	sealed     BYTEA NOT NULL,
	doc        TEXT COLLATE "C" NOT NULL
);
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
	till    TEXT COLLATE "C" NOT NULL,
	variant TEXT COLLATE "C" NOT NULL,
	pieces  BIGINT NOT NULL CHECK (pieces >= 0),
	PRIMARY KEY (till, variant)
);

-- Pieces that an order holds until it is paid or ends.
CREATE TABLE order_hold (
	order_id  TEXT COLLATE "C" NOT NULL,
	till      TEXT COLLATE "C" NOT NULL,
	variant   TEXT COLLATE "C" NOT NULL,
	pieces    BIGINT NOT NULL CHECK (pieces > 0),
	anonymous BOOLEAN NOT NULL,
	PRIMARY KEY (order_id, variant)
);
CREATE INDEX order_hold_variant ON order_hold (till, variant, order_id);
