-- +goose Up

-- The entries of a followed log that were taken and have not been read again, and the last one: what the next
-- reading of the log is compared with.
CREATE TABLE log_taken (
	board TEXT    NOT NULL,
	seq   INTEGER NOT NULL,
	hash  TEXT    NOT NULL,
	entry BLOB    NOT NULL,
	PRIMARY KEY (board, seq)
) STRICT, WITHOUT ROWID;

-- The last head of the log that its node signed.
ALTER TABLE subscription ADD COLUMN signed_head BLOB;

-- A followed log that contradicts what was taken of it, with both documents.
CREATE TABLE log_conflict (
	board      TEXT    PRIMARY KEY,
	kind       TEXT    NOT NULL CHECK (kind IN ('fork', 'fallback')),
	epoch      TEXT    NOT NULL,
	seq        INTEGER NOT NULL,
	ours       TEXT    NOT NULL,
	theirs     TEXT    NOT NULL,
	ours_doc   BLOB    NOT NULL,
	theirs_doc BLOB    NOT NULL,
	at         INTEGER NOT NULL
) STRICT;

-- What nodes that follow this one report of its log, one report a host.
CREATE TABLE log_report (
	host   TEXT    PRIMARY KEY,
	kind   TEXT    NOT NULL CHECK (kind IN ('fork', 'fallback')),
	epoch  TEXT    NOT NULL,
	seq    INTEGER NOT NULL,
	ours   TEXT    NOT NULL,
	theirs TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	until  INTEGER NOT NULL
) STRICT;
CREATE INDEX log_report_until ON log_report (until);
