-- +goose Up

-- Certificates of the node's names, and the key of its account at the authority, sealed. One process at a time, owner, orders.
CREATE TABLE certificate (
	name       TEXT COLLATE "C" PRIMARY KEY,
	names      TEXT COLLATE "C" NOT NULL,
	sealed     BYTEA NOT NULL,
	not_after  BIGINT NOT NULL,
	renew_at   BIGINT NOT NULL,
	look_at    BIGINT NOT NULL,
	next_at    BIGINT NOT NULL,
	failures   BIGINT NOT NULL,
	last_error TEXT COLLATE "C" NOT NULL,
	owner      TEXT COLLATE "C" NOT NULL,
	lease_end  BIGINT NOT NULL
);

-- What proves to the authority that a name is the node's, which it may ask any process for.
CREATE TABLE acme_challenge (
	key     TEXT COLLATE "C" PRIMARY KEY,
	sealed  BYTEA NOT NULL,
	ends_at BIGINT NOT NULL
);
CREATE INDEX acme_challenge_ends ON acme_challenge (ends_at);
