-- +goose Up

-- The entries of a followed log that were taken and have not been read again, and the last one: what the next
-- reading of the log is compared with.
CREATE TABLE log_taken (
	board TEXT COLLATE "C" NOT NULL,
	seq   BIGINT NOT NULL,
	hash  TEXT COLLATE "C" NOT NULL,
	entry BYTEA NOT NULL,
	PRIMARY KEY (board, seq)
);

-- The last head of the log that its node signed.
ALTER TABLE subscription ADD COLUMN signed_head BYTEA;

-- A followed log that contradicts what was taken of it, with both documents.
CREATE TABLE log_conflict (
	board      TEXT COLLATE "C" PRIMARY KEY,
	kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('fork', 'fallback')),
	epoch      TEXT COLLATE "C" NOT NULL,
	seq        BIGINT NOT NULL,
	ours       TEXT COLLATE "C" NOT NULL,
	theirs     TEXT COLLATE "C" NOT NULL,
	ours_doc   BYTEA NOT NULL,
	theirs_doc BYTEA NOT NULL,
	at         BIGINT NOT NULL
);

-- What nodes that follow this one report of its log, one report a host.
CREATE TABLE log_report (
	host   TEXT COLLATE "C" PRIMARY KEY,
	kind   TEXT COLLATE "C" NOT NULL CHECK (kind IN ('fork', 'fallback')),
	epoch  TEXT COLLATE "C" NOT NULL,
	seq    BIGINT NOT NULL,
	ours   TEXT COLLATE "C" NOT NULL,
	theirs TEXT COLLATE "C" NOT NULL,
	at     BIGINT NOT NULL,
	until  BIGINT NOT NULL
);
CREATE INDEX log_report_until ON log_report (until);
