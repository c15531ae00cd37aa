-- +goose Up

-- Addresses that are told of an exchange. tries counts the attempts at what is to be told next, lane is of the jobs, ends_at is set when the exchange
-- has ended; doc has the rest, secrets sealed.
CREATE TABLE exchange_push (
	thread_id TEXT    NOT NULL,
	first     INTEGER NOT NULL,
	id        TEXT    NOT NULL,
	lane      TEXT    NOT NULL,
	tries     INTEGER NOT NULL,
	next_at   INTEGER NOT NULL,
	ends_at   INTEGER,
	doc       TEXT    NOT NULL,
	PRIMARY KEY (thread_id, first, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX exchange_push_ends ON exchange_push (ends_at) WHERE ends_at IS NOT NULL;
