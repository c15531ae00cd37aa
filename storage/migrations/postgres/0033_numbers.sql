-- +goose Up

-- Feed items and news take their numbers from a sequence, which no transaction
-- waits for. They may become visible in another order: readers are told up to a
-- number below which every transaction has ended.
CREATE SEQUENCE feed_number MINVALUE 0;
SELECT setval('feed_number', (SELECT head FROM tally));
DROP TABLE tally;

-- Entries of logs that are committed and have no number yet. Their ids are in the
-- order in which one can depend on another.
CREATE TABLE log_waiting (
	id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	board     TEXT COLLATE "C" NOT NULL,
	kind      TEXT COLLATE "C" NOT NULL CHECK (kind IN ('create', 'update', 'delete', 'hide', 'restore')),
	object_id TEXT COLLATE "C" NOT NULL,
	at        BIGINT NOT NULL,
	redacted  BOOLEAN NOT NULL,
	activity  BYTEA
);
CREATE INDEX log_waiting_object ON log_waiting (object_id);
