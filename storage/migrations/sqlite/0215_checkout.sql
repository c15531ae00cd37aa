-- +goose Up

-- Checkouts and carts of UCP. A row of order_hold of a checkout has its id as order. sealed is who buys, encrypted; mailbox is a keyed
-- hash. hold_until ends what it holds; null where it holds nothing. site: of its platform; free: made out of the room of that site.
CREATE TABLE checkout (
	id         TEXT PRIMARY KEY,
	token_hash BLOB NOT NULL UNIQUE,
	till       TEXT NOT NULL,
	state      TEXT NOT NULL CHECK (state IN ('open', 'canceled', 'ordered')),
	platform   TEXT NOT NULL,
	signed     INTEGER NOT NULL,
	site       TEXT NOT NULL,
	free       INTEGER NOT NULL,
	maker      TEXT NOT NULL,
	mailbox    BLOB,
	cart       TEXT,
	order_id   TEXT,
	made_at    INTEGER NOT NULL,
	hold_until INTEGER,
	expires_at INTEGER NOT NULL,
	ends_at    INTEGER NOT NULL,
	sealed     BLOB NOT NULL,
	doc        TEXT NOT NULL
) STRICT;
CREATE INDEX checkout_ends ON checkout (ends_at);
CREATE INDEX checkout_due ON checkout (till, hold_until) WHERE hold_until IS NOT NULL;
CREATE INDEX checkout_site ON checkout (site, made_at) WHERE free;
CREATE INDEX checkout_made ON checkout (made_at) WHERE NOT free;
CREATE INDEX checkout_age ON checkout (made_at) WHERE hold_until IS NULL;
CREATE INDEX checkout_cart ON checkout (cart) WHERE cart IS NOT NULL AND state = 'open';
CREATE INDEX checkout_mailbox ON checkout (mailbox, maker, till) WHERE state = 'open';
