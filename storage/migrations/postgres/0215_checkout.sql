-- +goose Up

-- Checkouts and carts of UCP. A row of order_hold of a checkout has its id as order. sealed is who buys, encrypted; mailbox is a keyed
-- hash. hold_until ends what it holds; null where it holds nothing. site: of its platform; free: made out of the room of that site.
CREATE TABLE checkout (
	id         TEXT COLLATE "C" PRIMARY KEY,
	token_hash BYTEA NOT NULL UNIQUE,
	till       TEXT COLLATE "C" NOT NULL,
	state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('open', 'canceled', 'ordered')),
	platform   TEXT COLLATE "C" NOT NULL,
	signed     BOOLEAN NOT NULL,
	site       TEXT COLLATE "C" NOT NULL,
	free       BOOLEAN NOT NULL,
	maker      TEXT COLLATE "C" NOT NULL,
	mailbox    BYTEA,
	cart       TEXT COLLATE "C",
	order_id   TEXT COLLATE "C",
	made_at    BIGINT NOT NULL,
	hold_until BIGINT,
	expires_at BIGINT NOT NULL,
	ends_at    BIGINT NOT NULL,
	sealed     BYTEA NOT NULL,
	doc        TEXT COLLATE "C" NOT NULL
);
CREATE INDEX checkout_ends ON checkout (ends_at);
CREATE INDEX checkout_due ON checkout (till, hold_until) WHERE hold_until IS NOT NULL;
CREATE INDEX checkout_site ON checkout (site, made_at) WHERE free;
CREATE INDEX checkout_made ON checkout (made_at) WHERE NOT free;
CREATE INDEX checkout_age ON checkout (made_at) WHERE hold_until IS NULL;
CREATE INDEX checkout_cart ON checkout (cart) WHERE cart IS NOT NULL AND state = 'open';
CREATE INDEX checkout_mailbox ON checkout (mailbox, maker, till) WHERE state = 'open';
