-- +goose Up

-- Certificates of the node's names, and the key of its account at the authority, sealed. One process at a time, owner, orders.
CREATE TABLE certificate (
	name       TEXT PRIMARY KEY,
	names      TEXT NOT NULL,
	sealed     BLOB NOT NULL,
	not_after  INTEGER NOT NULL,
	renew_at   INTEGER NOT NULL,
	look_at    INTEGER NOT NULL,
	next_at    INTEGER NOT NULL,
	failures   INTEGER NOT NULL,
	last_error TEXT NOT NULL,
	owner      TEXT NOT NULL,
	lease_end  INTEGER NOT NULL
) STRICT;

-- What proves to the authority that a name is the node's, which it may ask any process for.
CREATE TABLE acme_challenge (
	key     TEXT PRIMARY KEY,
	sealed  BLOB NOT NULL,
	ends_at INTEGER NOT NULL
) STRICT;
CREATE INDEX acme_challenge_ends ON acme_challenge (ends_at);
