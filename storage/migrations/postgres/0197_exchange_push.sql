-- +goose Up

-- Addresses that are told of an exchange. tries counts the attempts at what is to be told next, lane is of the jobs, ends_at is set when the exchange
-- has ended; doc has the rest, secrets sealed.
CREATE TABLE exchange_push (
	thread_id TEXT COLLATE "C" NOT NULL,
	first     BIGINT NOT NULL,
	id        TEXT COLLATE "C" NOT NULL,
	lane      TEXT COLLATE "C" NOT NULL,
	tries     BIGINT NOT NULL,
	next_at   BIGINT NOT NULL,
	ends_at   BIGINT,
	doc       TEXT NOT NULL,
	PRIMARY KEY (thread_id, first, id)
);
CREATE INDEX exchange_push_ends ON exchange_push (ends_at) WHERE ends_at IS NOT NULL;
